"""An input as the model's task reads it; one maker for each task."""

from collections.abc import Callable

import torch

from glassformer.data.tokenizer import END, START, Tokenizer
from glassformer.decode.complete_options import CompleteOptions
from glassformer.decode.options import DecodeOptions
from glassformer.errors import UserError, require
from glassformer.look.beam_tree import Watched, watched_search
from glassformer.look.subject import LONGEST, LookOptions, Subject, check_length, refuse_answer, show_tokens
from glassformer.look.subject_classes import classified
from glassformer.look.subject_sound import recording
from glassformer.model import EncoderDecoder
from glassformer.tasks.backend import DecoderSteps, TorchBackend, fit_options
from glassformer.tasks.completer import Completer
from glassformer.tasks.filler import Filler
from glassformer.tasks.generator import Generator
from glassformer.tasks.model_dir import LoadedModel
from glassformer.tasks.translator import Translator

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
    text, title = _first_part(loaded, text.strip()) if options.answer is None else (text.strip(), text)
    source = loaded.source_tokenizer.encode(text)
    check_length(len(source) + 1)
    device = next(model.parameters()).device
    source_ids = torch.tensor([[*source, END]], device=device)
    if options.answer is None:
        longest = min(options.max_tokens or LONGEST, LONGEST - 1)
        search = fit_options(model, 0, DecodeOptions(beam=options.beam, nbest=options.beam, max_len=longest))
        steps = DecoderSteps(model, model.encode(source_ids), options.beam, search.max_len + 1)
        found = watched_search(steps, torch.tensor([[START]], device=device), search, END)
    else:
        found = Watched(tokenizer.encode(options.answer), [], [])
    answer = found.ids
    check_length(len(answer) + 1)
    return Subject(
        text=title,
        inputs=(source_ids, torch.tensor([[START, *answer]], device=device)),
        source=show_tokens(loaded.source_tokenizer.tokens([*source, END])),
        target=show_tokens(tokenizer.tokens([START, *answer])),
        answer=tokenizer.decode(answer),
        answers=[*answer, END],
        name=_namer(tokenizer),
        beam=found.nodes,
        best=found.path,
    )


def _first_part(loaded: LoadedModel, text: str) -> tuple[str, str]:
    """What `translate` would give the model first of a text that it cuts, and how that is called."""
    assert isinstance(loaded.model, EncoderDecoder)
    backend = TorchBackend(loaded.model)
    parts = [piece.text for piece in Translator(loaded, lambda *_: backend).cut(text) if piece.text]
    return parts[0], parts[0] if len(parts) == 1 else f"{parts[0]} (the first of {len(parts)} parts)"


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
    refuse_answer(options)
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


_MAKERS: dict[str, Callable[[LoadedModel, str, LookOptions], Subject]] = {
    "translate": _translation,
    "complete": _completion,
    "fill": _blanks,
    "classify": classified,
    "transcribe": recording,
}


def _namer(tokenizer: Tokenizer) -> Callable[[int], str]:
    return lambda i: show_tokens(tokenizer.tokens([i]))[0]
