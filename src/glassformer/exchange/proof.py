"""Every import and export proves itself: the numbers are those of the foreign weights by plain formulas.

What is found goes into a report, which is stored with the model.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.data.framing import Framing
from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import UserError, require
from glassformer.exchange.foreign import Foreign, ForeignModel, task_of
from glassformer.exchange.huggingface_use import is_cut_to_a_square, picture_fit
from glassformer.exchange.plain import plain_logits
from glassformer.exchange.plain_encoders import plain_bert, plain_vit
from glassformer.model import DecoderOnly, EncoderOnly
from glassformer.model.settings import EncoderOnlySettings, PatchesSettings, TokensSettings

TOLERANCE = 1e-4  # of a logit, or of the largest one where that is above 1
N_SAMPLE = 48
N_GREEDY = 24
PROMPT = "Once upon a time"
TEXTS = [
    "Once upon a time, there was a girl who could see through glass.",
    "It's 7 o'clock -- 3.14159 times 2 is 6.28318 (or so)!",
    "Grüße, čeština, ελληνικά, русский, 日本語, العربية, 🙂👍🏽.",
    "  two spaces,\ttab,\n\nempty line\n    for i in range(10): pass\n",
]


@dataclass(frozen=True)
class Check:
    name: str
    passed: bool
    found: str


def prove(foreign: Foreign, model: ForeignModel) -> list[Check]:
    """What can be said of a model that was just converted; what must not be ends in an error."""
    if foreign.words is not None:
        check_vocabulary(foreign.words, getattr(model.settings.source, "vocab_size", 0))
    with torch.no_grad():
        pairs = _decoder_pairs(foreign, model) if isinstance(model, DecoderOnly) else _encoder_pairs(foreign, model)
    require(
        all(bool(theirs.isfinite().all()) for _, _, theirs in pairs),
        "The weights give scores that are no numbers.",
        "The file is damaged; copy it again from where it came.",
    )
    checks = [compare(ours, theirs, "the file's weights by plain formulas", name) for name, ours, theirs in pairs]
    if foreign.words is None:
        assert isinstance(model, EncoderOnly)
        return [*checks, *check_pictures(foreign.use, model.settings)]
    return [*checks, check_texts(foreign.words) if isinstance(model, DecoderOnly) else check_frames(foreign.words)]


def _decoder_pairs(foreign: Foreign, model: DecoderOnly) -> list[tuple[str, Tensor, Tensor]]:
    """What is compared: its name, ours and theirs."""
    ids = sample_ids(foreign.tokenizer, model)
    return [("logits", model(ids[None])[0], plain_logits(foreign, model.settings, ids))]


def _encoder_pairs(foreign: Foreign, model: EncoderOnly) -> list[tuple[str, Tensor, Tensor]]:
    if foreign.words is None:
        picture = sample_picture(model)
        ours = model.states(picture[None]).x[0], model(picture[None])[0]
        theirs = plain_vit(foreign, model.settings, picture)
    else:
        ids = sample_ids(foreign.words, model)
        types = (torch.arange(len(ids)) >= len(ids) // 2).long() % max(1, foreign.config.get("type_vocab_size", 2))
        ours = model.states(ids[None], types=types[None]).x[0], model(ids[None], types=types[None])[0]
        theirs = plain_bert(foreign, model.settings, ids, types)
    return [("hidden states", ours[0], theirs[0]), ("what the head says", ours[1], theirs[1])]


def sample_picture(model: EncoderOnly) -> Tensor:
    """Noise of the size that the model reads."""
    source = model.settings.source
    assert isinstance(source, PatchesSettings)
    return torch.randn(source.n_channels, source.height, source.width, generator=torch.Generator().manual_seed(1))


def sample_ids(tokenizer: Tokenizer, model: ForeignModel) -> Tensor:
    """A text and, behind it, ids from all over the vocabulary."""
    settings = model.settings.source
    assert isinstance(settings, TokensSettings)
    n_rows = settings.vocab_size
    longest = getattr(settings.positions, "max_len", N_SAMPLE)
    start = [] if tokenizer.marks.start is None else [tokenizer.marks.start]
    text = start + tokenizer.encode(TEXTS[0])[: N_SAMPLE // 2]
    spread = torch.linspace(0, n_rows - 1, N_SAMPLE - len(text)).long().tolist()
    return torch.tensor((text + spread)[: min(longest, N_SAMPLE)])


def check_vocabulary(tokenizer: Tokenizer, n_rows: int) -> None:
    """Every id that may come out of the tokenizer has its row; spare rows do no harm."""
    require(
        bool(tokenizer.marks.ends),
        "Nothing says which token ends a text.",
        "Put its number into the model's config.json or generation_config.json, as eos_token_id.",
    )
    largest = max(tokenizer.core.get_vocab(with_added_tokens=True).values(), default=-1)
    begins = (tokenizer.marks.start, tokenizer.marks.bos)
    marks = [*tokenizer.marks.ends, *(mark for mark in begins if mark is not None)]
    require(min(marks) >= 0, f"The mark {min(marks)} is no token.", "The file is damaged; copy it again.")
    largest = max(largest, *marks)
    require(
        largest < n_rows,
        f"The tokenizer does not fit the weights: its last token is number {largest:,}, but they have {n_rows:,} rows.",
        "Take the tokenizer that belongs to the model.",
    )


def compare(ours: Tensor, theirs: Tensor, what: str, name: str = "logits") -> Check:
    """Numbers of our model beside those of another computation."""
    difference = float((ours - theirs).abs().max())
    allowed = TOLERANCE * max(1.0, float(theirs.abs().max()))
    if not difference <= allowed:
        raise UserError(
            f"The converted model differs from {what}: by {difference:.2g}, where {allowed:.2g} is allowed.",
            "This is a fault of Glassformer; please report it with the name of the model.",
        )
    return Check(f"{name} against {what}", True, f"largest difference {difference:.1e} in {ours.numel():,}")


def check_texts(tokenizer: Tokenizer) -> Check:
    """Some tokenizers change texts (lower case, say), which is theirs to do: this is told, not refused."""
    changed = [text for text in TEXTS if tokenizer.decode(tokenizer.encode(text)) != text]
    return Check("texts come back from the tokenizer", not changed, f"{len(TEXTS) - len(changed)} of {len(TEXTS)}")


def check_frames(tokenizer: Tokenizer) -> Check:
    """An encoder gets texts with the marks that its own tokenizer puts around them; of pairs this is only told."""
    framing, core, ids = Framing(tokenizer.marks, 2**20), tokenizer.core, tokenizer.encode_batch(TEXTS)
    rows = [np.array(row, dtype=np.int64) for row in ids]
    for text, row in zip(TEXTS, rows, strict=True):
        require(
            core.encode(text).ids == framing.frame([row])[0].tolist(),
            "The tokenizer puts other marks around a text than one before it and one behind it.",
            "Take a BERT with its own tokenizer.",
        )
    pair, (found, types) = core.encode(TEXTS[0], TEXTS[1]), framing.frame(rows[:2])
    same = pair.ids == found.tolist() and pair.type_ids == types.tolist()
    return Check("texts and pairs get the tokenizer's own marks", same, f"{len(TEXTS)} texts, {int(same)} of 1 pair")


def check_pictures(about: Mapping[str, Any], settings: EncoderOnlySettings) -> list[Check]:
    """What must be said of pictures that are not simply stretched."""
    source, fit = settings.source, picture_fit(about)
    assert isinstance(source, PatchesSettings)
    if fit == "stretch":
        return []
    if is_cut_to_a_square(about, settings):
        found = "in one step here; transformers rounds to whole pixels in two, so that they shift by less than one"
        return [Check("pictures are cut to a square around the middle", True, found)]
    done = "cut" if fit == "crop" else "padded"
    found = f"no: they are {done} to {source.height} × {source.width} here, but stretched there; give them in that size"
    return [Check("pictures are read by transformers as here", False, found)]


@torch.no_grad()
def continue_greedily(model: DecoderOnly, tokenizer: Tokenizer, prompt: str = PROMPT, n: int = N_GREEDY) -> list[int]:
    """The prompt's ids and at most n more, each the likeliest; it stops before an end."""
    start = [] if tokenizer.marks.start is None else [tokenizer.marks.start]
    ids = (start + tokenizer.encode(prompt)) or [tokenizer.marks.ends[0]]  # some know no letter of it
    room = getattr(model.settings.source.positions, "max_len", len(ids) + n)
    cache = model.new_cache(1, len(ids) + n)
    new = ids[:room]
    for _ in range(min(n, room - len(ids))):
        logits = model(torch.tensor([new]), cache=cache)[0, -1]
        new = [int(logits.argmax())]
        if new[0] in tokenizer.marks.ends:
            break
        ids += new
    return ids


def report(foreign: Foreign, model: ForeignModel, checks: list[Check]) -> dict[str, Any]:
    """Everything that import.json says."""
    found = {
        **foreign.about,
        "task": task_of(model.settings),
        "parameters": sum(p.numel() for p in model.parameters()),
        "context": foreign.context,
        "checks": [asdict(check) for check in checks],
    }
    if foreign.words is not None:
        found |= _report_words(foreign.words, model)
    if isinstance(model, DecoderOnly):
        ids = continue_greedily(model, foreign.tokenizer)
        found["greedy"] = {"prompt": PROMPT, "ids": ids, "text": foreign.tokenizer.decode(ids)}
    return found


def _report_words(tokenizer: Tokenizer, model: ForeignModel) -> dict[str, Any]:
    assert isinstance(model.settings.source, TokensSettings)
    return {
        "vocabulary": tokenizer.vocab_size,
        "rows": model.settings.source.vocab_size,
        "start": tokenizer.marks.start,
        "ends": list(tokenizer.marks.ends),
        "chat_template": tokenizer.marks.chat_template is not None,
    }
