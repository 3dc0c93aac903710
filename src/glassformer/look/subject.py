"""What is looked at: one input made ready for a model, the answer that it gives, and names for all positions."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from glassformer.data.tokenizer import END, START
from glassformer.decode.beam import beam_search
from glassformer.decode.complete_options import CompleteOptions
from glassformer.decode.options import DecodeOptions
from glassformer.errors import UserError, require
from glassformer.look.beam_tree import Node, WatchedSteps, best_path
from glassformer.model import EncoderDecoder
from glassformer.tasks.backend import DecoderSteps, fit_options
from glassformer.tasks.completer import Completer
from glassformer.tasks.generator import Generator
from glassformer.tasks.model_dir import LoadedModel

LONGEST = 256  # positions; a picture of more is no picture, and attention's numbers grow with the square
COMPLETION = 12  # tokens that a completion shows, where nothing else is asked for


@dataclass(frozen=True, kw_only=True)
class LookOptions:
    # Hypotheses that a translation's search holds.
    beam: int = 4
    # Tokens of the answer at most; None: a translation to its end, and of a completion its beginning.
    max_tokens: int | None = None
    # What the model is made to say, instead of its own answer.
    answer: str | None = None

    def __post_init__(self) -> None:
        for name, value in (("beam", self.beam), ("max_tokens", self.max_tokens)):
            require(value is None or value >= 1, f"{name} is {value}.", "It must be 1 or more.")


@dataclass(frozen=True)
class Subject:
    text: str
    inputs: tuple[Tensor, ...]  # what the model is called with
    source: list[str]  # a name for each position of the source
    target: list[str]  # the same for the decoder of an encoder-decoder
    answer: str
    answers: list[int]  # for each position of the answering stack, what followed it; one for a whole sequence
    name: Callable[[int], str]  # of an answer
    beam: list[Node] = field(default_factory=list)
    best: list[int] = field(default_factory=list)  # the nodes of the answer
    n_prompt: int = 0  # positions whose answer was given, since the model reads on in its own input

    @property
    def positions(self) -> list[str]:
        """Names of the answering stack's positions."""
        return self.target or self.source


@torch.inference_mode()
def make_subject(loaded: LoadedModel, text: str, options: LookOptions) -> Subject:
    """The input as the model's task reads it."""
    if loaded.task not in _MAKERS:
        known = ", ".join(_MAKERS)
        raise UserError(f"{loaded.path} is a model for {loaded.task}.", f"For now, look shows models for {known}.")
    return _MAKERS[loaded.task](loaded, text, options)


def _translation(loaded: LoadedModel, text: str, options: LookOptions) -> Subject:
    model, tokenizer = loaded.model, loaded.tokenizer
    assert isinstance(model, EncoderDecoder)
    require(bool(text.strip()), "There is no text to translate.", "Give a sentence.")
    source = loaded.source_tokenizer.encode(text.strip())
    _check_length(len(source) + 1)
    device = next(model.parameters()).device
    source_ids = torch.tensor([[*source, END]], device=device)
    nodes: list[Node] = []
    if options.answer is None:
        longest = min(options.max_tokens or LONGEST, LONGEST - 1)
        search = DecodeOptions(beam=options.beam, nbest=options.beam, max_len=longest)
        search = fit_options(model, 0, search)
        watched = WatchedSteps(DecoderSteps(model, model.encode(source_ids), options.beam, search.max_len + 1))
        found = beam_search(watched, torch.tensor([[START]], device=device), search, END)[0]
        answer = found[0].ids
        nodes = watched.finish(found, END)
    else:
        answer = tokenizer.encode(options.answer)
    _check_length(len(answer) + 1)
    return Subject(
        text=text,
        inputs=(source_ids, torch.tensor([[START, *answer]], device=device)),
        source=_names(loaded.source_tokenizer.tokens([*source, END])),
        target=_names(tokenizer.tokens([START, *answer])),
        answer=tokenizer.decode(answer),
        answers=[*answer, END],
        name=lambda i: _names(tokenizer.tokens([i]))[0],
        beam=nodes,
        best=best_path(nodes, [*answer, END]),
    )


def _completion(loaded: LoadedModel, text: str, options: LookOptions) -> Subject:
    completer, tokenizer = Completer(loaded), loaded.tokenizer
    prompt = completer.prompt_ids(text)
    _check_length(len(prompt))
    if options.answer is None:
        greedy = CompleteOptions(max_tokens=options.max_tokens or COMPLETION, temperature=0.0)
        generator = Generator(completer.model, [prompt], greedy, tokenizer.marks.ends, completer.context)
        answer = [chosen.id for step in generator for _, chosen in step]
    else:
        answer = tokenizer.encode(options.answer)
    require(bool(answer), "There is no room for an answer.", "Give a shorter text.")
    ids = [*prompt, *answer]
    _check_length(len(ids) - 1)
    device = next(completer.model.parameters()).device
    return Subject(
        text=text,
        inputs=(torch.tensor([ids[:-1]], device=device),),
        source=_names(tokenizer.tokens(ids[:-1])),
        target=[],
        answer=tokenizer.decode(answer),
        answers=ids[1:],
        name=lambda i: _names(tokenizer.tokens([i]))[0],
        n_prompt=len(prompt) - 1,
    )


_MAKERS: dict[str, Callable[[LoadedModel, str, LookOptions], Subject]] = {
    "translate": _translation,
    "complete": _completion,
}


def _check_length(n: int) -> None:
    require(n <= LONGEST, f"The input has {n} positions, but look shows at most {LONGEST}.", "Give a shorter one.")


def _names(tokens: list[str]) -> list[str]:
    """Tokens with their spaces and line ends to be seen."""
    return [token.replace("\n", "⏎").replace("\t", "⇥") or "∅" for token in tokens]
