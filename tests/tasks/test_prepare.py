"""Vocabularies of pairs."""

from glassformer.data.pairs import Pair
from glassformer.tasks.prepare import make_tokenizers
from glassformer.tasks.translate import TokenizerSettings


def test_characters_of_a_large_alphabet_stay_whole() -> None:
    pairs = [Pair(i, f"sign {i}", chr(0x4E00 + i)) for i in range(900)]
    for joint in (True, False):
        found = make_tokenizers(lambda: iter(pairs), TokenizerSettings(kind="char", joint=joint))
        assert {len(found.target.encode(pair.target)) for pair in pairs} == {1}
