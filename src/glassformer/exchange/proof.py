"""Every import and export proves itself: the numbers are those of the foreign weights by plain formulas.

What is found goes into a report, which is stored with the model.
"""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import UserError, require
from glassformer.exchange.foreign import Foreign
from glassformer.exchange.plain import plain_logits
from glassformer.model import DecoderOnly

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


def prove(foreign: Foreign, model: DecoderOnly) -> list[Check]:
    """What can be said of a model that was just converted; what must not be ends in an error."""
    check_vocabulary(foreign.tokenizer, model.settings.source.vocab_size)
    ids = sample_ids(foreign.tokenizer, model)
    with torch.no_grad():
        ours, theirs = model(ids[None])[0], plain_logits(foreign, model.settings, ids)
    require(
        bool(theirs.isfinite().all()),
        "The weights give scores that are no numbers.",
        "The file is damaged; copy it again from where it came.",
    )
    return [compare(ours, theirs, "the file's weights by plain formulas"), check_texts(foreign.tokenizer)]


def sample_ids(tokenizer: Tokenizer, model: DecoderOnly) -> Tensor:
    """A text and, behind it, ids from all over the vocabulary."""
    n_rows, settings = model.settings.source.vocab_size, model.settings.source
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
    marks = [*tokenizer.marks.ends, *([] if tokenizer.marks.start is None else [tokenizer.marks.start])]
    require(min(marks) >= 0, f"The mark {min(marks)} is no token.", "The file is damaged; copy it again.")
    largest = max(largest, *marks)
    require(
        largest < n_rows,
        f"The tokenizer does not fit the weights: its last token is number {largest:,}, but they have {n_rows:,} rows.",
        "Take the tokenizer that belongs to the model.",
    )


def compare(ours: Tensor, theirs: Tensor, what: str) -> Check:
    """Logits of our model beside those of another computation."""
    difference = float((ours - theirs).abs().max())
    allowed = TOLERANCE * max(1.0, float(theirs.abs().max()))
    if not difference <= allowed:
        raise UserError(
            f"The converted model differs from {what}: by {difference:.2g}, where {allowed:.2g} is allowed.",
            "This is a fault of Glassformer; please report it with the name of the model.",
        )
    return Check(f"logits against {what}", True, f"largest difference {difference:.1e} in {ours.numel():,}")


def check_texts(tokenizer: Tokenizer) -> Check:
    """Some tokenizers change texts (lower case, say), which is theirs to do: this is told, not refused."""
    changed = [text for text in TEXTS if tokenizer.decode(tokenizer.encode(text)) != text]
    return Check("texts come back from the tokenizer", not changed, f"{len(TEXTS) - len(changed)} of {len(TEXTS)}")


@torch.no_grad()
def continue_greedily(model: DecoderOnly, tokenizer: Tokenizer, prompt: str = PROMPT, n: int = N_GREEDY) -> list[int]:
    """The prompt's ids and at most n more, each the likeliest; it stops before an end."""
    start = [] if tokenizer.marks.start is None else [tokenizer.marks.start]
    ids = start + tokenizer.encode(prompt)
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


def report(foreign: Foreign, model: DecoderOnly, checks: list[Check]) -> dict[str, Any]:
    """Everything that import.json says."""
    ids = continue_greedily(model, foreign.tokenizer)
    return {
        **foreign.about,
        "parameters": sum(p.numel() for p in model.parameters()),
        "vocabulary": foreign.tokenizer.vocab_size,
        "rows": model.settings.source.vocab_size,
        "context": foreign.context,
        "start": foreign.tokenizer.marks.start,
        "ends": list(foreign.tokenizer.marks.ends),
        "chat_template": foreign.tokenizer.marks.chat_template is not None,
        "checks": [asdict(check) for check in checks],
        "greedy": {"prompt": PROMPT, "ids": ids, "text": foreign.tokenizer.decode(ids)},
    }
