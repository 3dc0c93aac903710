"""Which script a text is written in, by its letters' Unicode names."""

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

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
_SPACELESS = frozenset(["Han", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Javanese"])
_GAP = 7  # characters for each space: with fewer the words were parted beforehand
_KANA = re.compile("[ぁ-ゖァ-ヺｦ-ﾟ]")
_JAPANESE = 0.1  # of the characters: names of goods bring some kana into Chinese as well


def dominant_script(text: str) -> str:
    """The script of most letters, such as Latin, Cyrillic or Han; empty if there are no letters."""
    if text.isascii():
        return "Latin" if any(map(str.isalpha, text)) else ""
    counts = Counter(map(_script, text))
    counts.pop("", None)
    # of equals the first in the alphabet, so that the answer does not depend on the order of letters
    return min(counts, key=lambda script: (-counts[script], script), default="")


def spaceless_script(texts: Sequence[str]) -> str:
    """The script of texts that have nothing between their words; empty for those that have."""
    script = dominant_script("".join(texts))
    n_spaces = sum(max(len(text.split()) - 1, 0) for text in texts)
    return script if script in _SPACELESS and _GAP * n_spaces <= sum(map(len, texts)) else ""


def is_japanese(texts: Sequence[str]) -> bool:
    """Told by its kana, since Han covers Chinese too."""
    return sum(len(_KANA.findall(text)) for text in texts) > _JAPANESE * sum(map(len, texts))


@functools.lru_cache(maxsize=2**16)
def _script(character: str) -> str:
    if not character.isalpha():
        return ""
    words = unicodedata.name(character, "").split(" ")
    first = words[1] if words[0] in ("FULLWIDTH", "HALFWIDTH") else words[0]
    return "" if first in _NO_SCRIPT else "Han" if first in _EAST_ASIAN else first.capitalize()
