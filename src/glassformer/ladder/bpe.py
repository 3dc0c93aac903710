"""Byte-pair encoding to read: start from single bytes or characters, join the commonest pair, again and again.

The 256 single bytes always stay in the vocabulary, so that any text can be coded and comes back exactly. The library
`tokenizers`, which does the real work in `data/tokenizer.py`, gives the same tokens and learns the same merges.
"""

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

from glassformer.errors import require

Unit = Literal["bytes", "characters"]
Pair = tuple[int, int]

# White space goes with the word after it; nothing is joined across words.
WORD = re.compile(r"[ \t\n]?[^ \t\n]+|[ \t\n]")
# Bytes in the order that GPT-2 gave them: those with a visible sign first. Ids decide ties, so their order matters.
_VISIBLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
BYTES = (*_VISIBLE, *(b for b in range(256) if b not in _VISIBLE))
_PLACE = {byte: i for i, byte in enumerate(BYTES)}


class Bpe:
    """A trained coder. Ids 0 … 255 are the bytes, then come (for characters) the alphabet, then the joined pieces.

    With "bytes", a piece is written with one sign for each byte, as in Latin-1. With "characters", a character that
    the alphabet lacks is coded as its bytes.
    """

    def __init__(
        self, unit: Unit = "bytes", alphabet: Iterable[str] = (), merges: Iterable[tuple[str, str]] = ()
    ) -> None:
        require(unit in ("bytes", "characters"), f"There is no unit {unit!r}.", "Choose bytes or characters.")
        self.unit = unit
        joinable = [chr(b) for b in BYTES] if unit == "bytes" else sorted(set(alphabet))
        self.pieces = joinable if unit == "bytes" else [f"<0x{b:02X}>" for b in BYTES] + joinable
        self._ids = {piece: len(self.pieces) - len(joinable) + i for i, piece in enumerate(joinable)}
        self._joined: dict[Pair, tuple[int, int]] = {}  # pair -> (rank, id of the whole)
        for left, right in merges:
            require(
                left in self._ids and right in self._ids,
                f"The merge {left!r} + {right!r} joins a piece that is not there yet.",
                "Give the alphabet, and the merges in the order in which they were learned.",
            )
            self.join(self._ids[left], self._ids[right])

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def merges(self) -> list[tuple[str, str]]:
        """The joined pairs, in order."""
        return [(self.pieces[left], self.pieces[right]) for left, right in self._joined]

    def join(self, left: int, right: int) -> int:
        """Learn one merge; the id of the whole, which is new unless two other pieces have already made the same."""
        whole = self.pieces[left] + self.pieces[right]
        if whole not in self._ids:
            self._ids[whole] = len(self.pieces)
            self.pieces.append(whole)
        self._joined.setdefault((left, right), (len(self._joined), self._ids[whole]))
        return self._ids[whole]

    def split(self, word: str) -> list[int]:
        """A word as single bytes or characters."""
        if self.unit == "bytes":
            return [_PLACE[byte] for byte in _to_bytes(word)]
        ids: list[int] = []
        for character in word:
            known = self._ids.get(character)
            ids.extend([known] if known is not None else [_PLACE[byte] for byte in _to_bytes(character)])
        return ids

    def encode(self, text: str) -> list[int]:
        seen: dict[str, list[int]] = {}
        for word in set(WORD.findall(text)):
            seen[word] = self._join_all(self.split(word))
        return [i for word in WORD.findall(text) for i in seen[word]]

    def tokens(self, text: str) -> list[str]:
        """The pieces that a text is cut into, as the vocabulary writes them."""
        return [self.pieces[i] for i in self.encode(text)]

    def decode(self, ids: Sequence[int]) -> str:
        """The text; bytes that make no whole character become �."""
        bad = next((i for i in ids if not 0 <= i < len(self)), None)
        require(bad is None, f"There is no token {bad}.", f"The ids are 0 to {len(self) - 1}.")
        whole = b"".join(self._bytes_of(i) for i in ids)
        try:
            return whole.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return whole.decode("utf-8", "replace")

    def _bytes_of(self, i: int) -> bytes:
        if i < 256:
            return bytes([BYTES[i]])
        return self.pieces[i].encode("latin-1") if self.unit == "bytes" else _to_bytes(self.pieces[i])

    def _join_all(self, ids: list[int]) -> list[int]:
        """Join the pair that was learned first, the leftmost of equals, until no pair is known.

        Joined ids stay in the list's left place, with the next one's place in `after`: nothing is ever moved.
        """
        n = len(ids)
        before, after = list(range(-1, n - 1)), list(range(1, n + 1))
        queue: list[tuple[int, int, int]] = []  # (rank, place, id of the whole)

        def offer(place: int) -> None:
            if place >= 0 and after[place] < n and (found := self._joined.get((ids[place], ids[after[place]]))):
                heapq.heappush(queue, (found[0], place, found[1]))

        for place in range(n):
            offer(place)
        while queue:
            _, place, whole = heapq.heappop(queue)
            right = after[place]
            pair_now = (ids[place], ids[right]) if right < n else (-1, -1)
            if self._joined.get(pair_now, (0, -1))[1] != whole:
                continue  # one of the two has been joined otherwise since
            ids[place], ids[right] = whole, -1
            after[place] = after[right]
            if after[place] < n:
                before[after[place]] = place
            offer(before[place])
            offer(place)
        return [i for i in ids if i >= 0]


def train(texts: Iterable[str], size: int, unit: Unit = "bytes", at_least: int = 2) -> Bpe:
    """Learn merges until the vocabulary holds `size` pieces, or no pair comes `at_least` times.

    The commonest pair is joined; of equals, the one with the smallest ids.
    """
    words = Counter(word for text in texts for word in WORD.findall(text))
    bpe = Bpe(unit, {character for word in words for character in word})
    require(size >= len(bpe), f"A vocabulary of {size} is too small.", f"The single pieces alone are {len(bpe)}.")
    coded = [bpe.split(word) for word in words]
    times = list(words.values())
    counts: Counter[Pair] = Counter()
    places: defaultdict[Pair, set[int]] = defaultdict(set)  # in which words a pair stands, or once stood
    for w, ids in enumerate(coded):
        for pair in pairwise(ids):
            counts[pair] += times[w]
            places[pair].add(w)
    queue = [(-n, pair) for pair, n in counts.items()]
    heapq.heapify(queue)
    while len(bpe) < size and queue:
        negative, pair = heapq.heappop(queue)
        if -negative != counts[pair]:
            continue  # an old count; the right one is in the queue too
        if -negative < max(1, at_least):
            break
        whole = bpe.join(*pair)
        changed: set[Pair] = set()
        for w in places.pop(pair):
            joined = _join(coded[w], pair, whole)
            for old in pairwise(coded[w]):
                counts[old] -= times[w]
                changed.add(old)
            for new in pairwise(joined):
                counts[new] += times[w]
                places[new].add(w)
                changed.add(new)
            coded[w] = joined
        for other in changed:
            if counts[other] > 0:
                heapq.heappush(queue, (-counts[other], other))
    return bpe


def _join(ids: list[int], pair: Pair, whole: int) -> list[int]:
    """Every such pair as one, from the left."""
    joined: list[int] = []
    i = 0
    while i < len(ids):
        if i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair:
            joined.append(whole)
            i += 2
        else:
            joined.append(ids[i])
            i += 1
    return joined


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
