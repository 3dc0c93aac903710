"""SentencePiece's BPE as a `tokenizers` tokenizer: pieces with scores, spaces as ▁, single bytes to fall back on.

SentencePiece joins the neighbours whose joint piece has the best score. The same comes out of a list of merges: each
piece in each way to cut it into two others, best score first.
"""

from collections.abc import Collection, Sequence

import numpy as np
from tokenizers import AddedToken, decoders, models, normalizers, processors
from tokenizers import Tokenizer as Core

from glassformer.data.tokenizer import BYTE
from glassformer.errors import UserError, require

SPACE = "▁"
LONGEST_PIECE = 128  # characters; each is cut at every place


def scored_pieces_tokenizer(
    pieces: Sequence[str],
    scores: Sequence[float],
    special: Collection[int] = (),
    words: Collection[int] = (),
    unknown: int | None = None,
    start: int | None = None,
    prefix_space: bool = True,
) -> Core:
    """`special` are marks, `words` are pieces that a text's own spelling always finds whole."""
    vocab = vocabulary([piece.replace(" ", SPACE) for piece in pieces])
    whole = {*special, *words}
    joined = ["" if i in whole or BYTE.fullmatch(piece) else piece for piece, i in vocab.items()]
    unk = list(vocab)[unknown] if unknown is not None and 0 <= unknown < len(vocab) else None
    core = Core(
        models.BPE(
            vocab=vocab, merges=merges_by_score(joined, scores), unk_token=unk, fuse_unk=True, byte_fallback=True
        )
    )
    spaces = [normalizers.Replace(" ", SPACE)]
    core.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), *spaces] if prefix_space else spaces)
    decoding = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    core.decoder = decoders.Sequence([*decoding, decoders.Strip(" ", 1, 0)] if prefix_space else decoding)
    add_marks(core, list(vocab), special, words, start)
    return core


def vocabulary(pieces: Sequence[str]) -> dict[str, int]:
    """Each piece with its number; two of the same spelling could not be told apart."""
    vocab = {piece: i for i, piece in enumerate(pieces)}
    if len(vocab) < len(pieces):
        twice = next(piece for i, piece in enumerate(pieces) if vocab[piece] != i)
        raise UserError(f"The vocabulary holds {twice[:40]!r} twice.", "Take a whole tokenizer.json with --tokenizer.")
    return vocab


def merges_by_score(pieces: Sequence[str], scores: Sequence[float]) -> list[tuple[str, str]]:
    """All pairs that make up a piece, best score first; an empty piece is never made."""
    require(
        len(scores) == len(pieces),
        f"The vocabulary holds {len(pieces):,} tokens, but {len(scores):,} scores.",
        "The file is damaged; copy it again from where it came.",
    )
    require(
        max(map(len, pieces), default=0) <= LONGEST_PIECE and bool(np.isfinite(np.asarray(scores)).all()),
        "The vocabulary holds a token that is far too long, or a score that is no number.",
        "The file is damaged; copy it again from where it came.",
    )
    ids = {piece: i for i, piece in enumerate(pieces) if piece}
    found = []
    for piece, i in ids.items():
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in ids and right in ids:
                found.append((-scores[i], i, ids[left], ids[right], left, right))
    found.sort()
    return [(left, right) for *_, left, right in found]


def add_marks(
    core: Core, pieces: Sequence[str], special: Collection[int], words: Collection[int], start: int | None
) -> None:
    """Pieces that are found whole, and the one that each text begins with where it is asked for."""
    core.add_special_tokens([AddedToken(pieces[i], normalized=False, special=True) for i in sorted(special)])
    core.add_tokens([AddedToken(pieces[i], normalized=False, special=False) for i in sorted(words)])
    if start is not None:
        mark = pieces[start]
        core.post_processor = processors.TemplateProcessing(
            single=[mark, "$A"], pair=[mark, "$A", mark, "$B"], special_tokens=[(mark, start)]
        )
