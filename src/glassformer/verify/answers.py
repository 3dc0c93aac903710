"""What a model's answers must fulfil: one alone = one among many, and one engine = another, token for token.

A near tie may go either way: the last digits of a sum depend on how it is done.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

import torch

from glassformer.api import load_completer
from glassformer.data.tokenizer import Tokenizer
from glassformer.decode.complete_options import CompleteOptions
from glassformer.decode.options import DecodeOptions
from glassformer.exchange.proof import Check
from glassformer.fast.choose import choose_backend
from glassformer.fast.ctranslate2 import CTranslate2Backend
from glassformer.fast.ctranslate2_spec import cannot_run
from glassformer.model import EncoderDecoder
from glassformer.model.settings import LearnedSettings, TokensSettings
from glassformer.tasks.backend import Backend, Request, TorchBackend
from glassformer.tasks.completer import Completion
from glassformer.tasks.model_dir import LoadedModel

N_ASKED, LONGEST, N_TOKENS = 12, 20, 24
TIE = 1e-3  # of a log-probability per token
COARSE = 0.1  # the same, that whole numbers may cost on average
SEARCHES = {"greedy": DecodeOptions(beam=1, max_len=N_TOKENS), "beam 4": DecodeOptions(beam=4, max_len=N_TOKENS)}


@dataclass(frozen=True)
class Answer:
    tokens: Sequence[object]
    score: float  # log-probability per token


def check_answers(loaded: LoadedModel) -> list[Check]:
    """Of models that answer in tokens to tokens; of all others the passes say everything."""
    if loaded.task == "translate":
        return _check_translator(loaded)
    return [_check_completer(loaded)] if loaded.task == "complete" else []


def _check_translator(loaded: LoadedModel) -> list[Check]:
    model = loaded.model
    assert isinstance(model, EncoderDecoder)
    positions = model.settings.source.positions if isinstance(model.settings.source, TokensSettings) else None
    room = positions.max_len - 1 if isinstance(positions, LearnedSettings) else LONGEST
    asked = [Request(ids) for ids in made_up(loaded.source_tokenizer, room)]
    reference, chosen = TorchBackend(model), choose_backend(model)
    checks = [_one_by_one(reference, asked)]
    if cannot_run(model.settings) is None:
        other = CTranslate2Backend(model, "float32")
        checks += [_same_answers(reference, other, asked, name) for name in SEARCHES]
    if chosen.name == reference.name:
        return checks
    return [*checks, _one_by_one(chosen, asked), _as_good(reference, chosen, asked)]


def _check_completer(loaded: LoadedModel) -> Check:
    completer = load_completer(loaded.path)
    options = CompleteOptions(temperature=0, max_tokens=N_TOKENS)
    begin = completer.prompt_ids("")
    room = LONGEST if completer.context is None else completer.context - len(begin) - 1
    prompts = [begin + ids for ids in made_up(loaded.tokenizer, room)]
    together = [answers[0] for answers in completer.complete_ids(prompts, options)]
    alone = [completer.complete_ids([prompt], options)[0][0] for prompt in prompts]
    parted = [_until_they_part(*pair) for pair in zip(together, alone, strict=True)]
    return _compare(f"{completer.engine}: alone = among others", *zip(*parted, strict=True))


def _until_they_part(one: Completion, other: Completion) -> tuple[Answer, Answer]:
    """Two answers up to their first different token: what follows it has another beginning."""
    both = zip(one.tokens, other.tokens, strict=False)
    end = next((i + 1 for i, (a, b) in enumerate(both) if a != b), max(len(one.tokens), len(other.tokens)))
    return tuple(Answer(each.tokens[:end], sum(each.log_p[:end][-1:])) for each in (one, other))  # type: ignore[return-value]


def made_up(tokenizer: Tokenizer, room: int = LONGEST) -> list[list[int]]:
    """Rows of all lengths from all over a vocabulary, always the same; none has a mark in it."""
    words = torch.tensor([i for i in range(tokenizer.vocab_size) if i not in tokenizer.special])
    chance, longest = torch.Generator().manual_seed(1), max(1, min(LONGEST, room))
    lengths = [1 + i * (longest - 1) // (N_ASKED - 1) for i in range(N_ASKED)]
    return [words[torch.randint(len(words), (n,), generator=chance)].tolist() for n in lengths]


def _ask(backend: Backend, asked: list[Request], search: str) -> list[Answer]:
    return [Answer(best[0].ids, best[0].score) for best in backend.generate(asked, SEARCHES[search])]


def _one_by_one(backend: Backend, asked: list[Request]) -> Check:
    alone = [_ask(backend, [request], "beam 4")[0] for request in asked]
    return _compare(f"{backend.name}: alone = among others", _ask(backend, asked, "beam 4"), alone)


def _same_answers(one: Backend, other: Backend, asked: list[Request], search: str) -> Check:
    return _compare(f"{one.name} = {other.name}, {search}", _ask(one, asked, search), _ask(other, asked, search))


def _as_good(exact: Backend, rounded: Backend, asked: list[Request]) -> Check:
    """Rounded weights may choose other words, but not worse ones."""
    ours, theirs = (_ask(backend, asked, "beam 4") for backend in (exact, rounded))
    cost = abs(mean(a.score - b.score for a, b in zip(ours, theirs, strict=True)))
    n_same = sum(a.tokens == b.tokens for a, b in zip(ours, theirs, strict=True))
    found = f"log-probability per token {cost:.3f} apart, {n_same} of {len(asked)} answers the same"
    return Check(f"{rounded.name} is about as good as {exact.name}", cost <= COARSE, found)


def _compare(name: str, ours: Sequence[Answer], theirs: Sequence[Answer]) -> Check:
    pairs = list(zip(ours, theirs, strict=True))
    n_same = sum(a.tokens == b.tokens for a, b in pairs)
    n_ties = sum(a.tokens != b.tokens and abs(a.score - b.score) <= TIE for a, b in pairs)
    ties = f", {n_ties} nearly tied" if n_ties else ""
    return Check(name, n_same + n_ties == len(pairs), f"{n_same} of {len(pairs)} answers the same{ties}")
