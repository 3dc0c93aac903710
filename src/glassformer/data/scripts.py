"""Which script a text is written in, by its letters' Unicode names."""

import functools
import unicodedata
from collections import Counter

# Letters whose names begin with no script.
_NO_SCRIPT = frozenset(
    [
        "MODIFIER",
        "FEMININE",
        "MASCULINE",
        "MICRO",
        "MATHEMATICAL",
        "DOUBLE-STRUCK",
        "SCRIPT",
        "OHM",
        "KELVIN",
        "ANGSTROM",
    ]
)
# Japanese mixes these in every sentence.
_EAST_ASIAN = frozenset(["CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "IDEOGRAPHIC"])


def dominant_script(text: str) -> str:
    """The script of most letters, such as Latin, Cyrillic or Han; empty if there are no letters."""
    if text.isascii():
        return "Latin" if any(map(str.isalpha, text)) else ""
    counts = Counter(map(_script, text))
    counts.pop("", None)
    # of equals the first in the alphabet, so that the answer does not depend on the order of letters
    return min(counts, key=lambda script: (-counts[script], script), default="")


@functools.lru_cache(maxsize=2**16)
def _script(character: str) -> str:
    if not character.isalpha():
        return ""
    words = unicodedata.name(character, "").split(" ")
    first = words[1] if words[0] in ("FULLWIDTH", "HALFWIDTH") else words[0]
    return "" if first in _NO_SCRIPT else "Han" if first in _EAST_ASIAN else first.capitalize()
