"""An input as the model's task reads it; one maker for each task."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from glassformer.data.tokenizer import END, START, Tokenizer
from glassformer.decode.beam import beam_search
from glassformer.decode.complete_options import CompleteOptions
from glassformer.decode.options import DecodeOptions
from glassformer.errors import UserError, require
from glassformer.look.beam_tree import Node, WatchedSteps, best_path
from glassformer.look.subject import LONGEST, AnswerKind, LookOptions, Subject, check_length, show_tokens
from glassformer.look.subject_picture import picture
from glassformer.look.subject_sound import recording
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly
from glassformer.tasks.backend import DecoderSteps, fit_options
from glassformer.tasks.classifier import Classifier
from glassformer.tasks.completer import Completer
from glassformer.tasks.filler import Filler
from glassformer.tasks.generator import Generator
from glassformer.tasks.model_dir import LoadedModel

COMPLETION = 12  # tokens that a completion shows, where nothing else is asked for


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
    check_length(len(source) + 1)
    device = next(model.parameters()).device
    source_ids = torch.tensor([[*source, END]], device=device)
    nodes: list[Node] = []
    if options.answer is None:
        longest = min(options.max_tokens or LONGEST, LONGEST - 1)
        search = fit_options(model, 0, DecodeOptions(beam=options.beam, nbest=options.beam, max_len=longest))
        watched = WatchedSteps(DecoderSteps(model, model.encode(source_ids), options.beam, search.max_len + 1))
        found = beam_search(watched, torch.tensor([[START]], device=device), search, END)[0]
        answer = found[0].ids
        nodes = watched.finish(found, END)
    else:
        answer = tokenizer.encode(options.answer)
    check_length(len(answer) + 1)
    return Subject(
        text=text,
        inputs=(source_ids, torch.tensor([[START, *answer]], device=device)),
        source=show_tokens(loaded.source_tokenizer.tokens([*source, END])),
        target=show_tokens(tokenizer.tokens([START, *answer])),
        answer=tokenizer.decode(answer),
        answers=[*answer, END],
        name=_namer(tokenizer),
        beam=nodes,
        best=best_path(nodes, [*answer, END]),
    )


def _completion(loaded: LoadedModel, text: str, options: LookOptions) -> Subject:
    completer, tokenizer = Completer(loaded), loaded.tokenizer
    prompt = completer.prompt_ids(text)
    check_length(len(prompt))
    if options.answer is None:
        greedy = CompleteOptions(max_tokens=options.max_tokens or COMPLETION, temperature=0.0)
        generator = Generator(completer.model, [prompt], greedy, tokenizer.marks.ends, completer.context)
        answer = [chosen.id for step in generator for _, chosen in step]
    else:
        answer = tokenizer.encode(options.answer)
    require(bool(answer), "There is no room for an answer.", "Give a shorter text.")
    ids = [*prompt, *answer]
    check_length(len(ids) - 1)
    device = next(completer.model.parameters()).device
    return Subject(
        text=text,
        inputs=(torch.tensor([ids[:-1]], device=device),),
        source=show_tokens(tokenizer.tokens(ids[:-1])),
        target=[],
        answer=tokenizer.decode(answer),
        answers=ids[1:],
        name=_namer(tokenizer),
        n_prompt=len(prompt) - 1,
    )


def _blanks(loaded: LoadedModel, text: str, options: LookOptions) -> Subject:
    _refuse_answer(options)
    filler = Filler(loaded)
    row = filler.encode(text)
    check_length(len(row.ids))
    device = next(filler.model.parameters()).device
    ids = torch.from_numpy(row.ids)[None].to(device)
    logits = filler.model(ids)[0, :, : filler.tokenizer.vocab_size]
    answers = [-1] * len(row.ids)
    for place, spaced in zip(row.blanks, row.spaced, strict=True):
        fitting = filler.fitting[spaced].to(device)
        answers[place] = int(logits[place].masked_fill(~fitting, -torch.inf).argmax())
    return Subject(
        text=text,
        inputs=(ids,),
        source=show_tokens(filler.tokenizer.tokens(row.ids.tolist())),
        target=[],
        answer=filler.fill([text], top=1)[0].text,
        answers=answers,
        name=_namer(filler.tokenizer),
    )


def _pictured(classifier: Classifier, path: str) -> Subject:
    """A picture file."""
    assert isinstance(classifier.model, EncoderOnly)
    pixels = classifier.readable([path]).load(np.array([0])).source[0]
    return picture(classifier.model, pixels, classifier.labels.names, path)


def _classified(loaded: LoadedModel, text: str, options: LookOptions) -> Subject:
    _refuse_answer(options)
    classifier = Classifier(loaded)
    if classifier.input == "pictures":
        return _pictured(classifier, text)
    parts = text.split("\t")  # a pair is parted by a tab, as everywhere
    given = classifier.readable([parts if len(parts) > 1 else text]).load(np.array([0]))
    model, tokenizer = classifier.model, loaded.tokenizer
    assert isinstance(model, DecoderOnly | EncoderOnly)
    given = given.to(next(model.parameters()).device)
    check_length(given.source.shape[1])
    inputs: tuple[Tensor | None, ...] = (given.source, given.keep)
    inputs = inputs if isinstance(model, DecoderOnly) else (*inputs, given.types)
    scores = model(*inputs)[0].float()
    kinds: dict[str, AnswerKind] = {"class": "choice", "classes": "choices", "number": "number"}
    kind = kinds[classifier.labels.kind]
    said = classifier.classify([parts if len(parts) > 1 else text])[0].label
    answer = f"{said:.4g}" if isinstance(said, float) else said if isinstance(said, str) else ", ".join(said) or "none"
    return Subject(
        text=text,
        inputs=inputs,
        source=show_tokens(tokenizer.tokens(given.source[0].tolist())),
        target=[],
        answer=answer,
        answers=[-1 if kind == "number" else int(scores.argmax())],
        name=lambda i: classifier.labels.names[i],
        kind=kind,
    )


_MAKERS: dict[str, Callable[[LoadedModel, str, LookOptions], Subject]] = {
    "translate": _translation,
    "complete": _completion,
    "fill": _blanks,
    "classify": _classified,
    "transcribe": recording,
}


def _refuse_answer(options: LookOptions) -> None:
    require(options.answer is None, "--answer is for models that write.", "Leave it out.")


def _namer(tokenizer: Tokenizer) -> Callable[[int], str]:
    return lambda i: show_tokens(tokenizer.tokens([i]))[0]
