"""A recording as a speech model hears it: positions are moments, the answer is what was said."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from glassformer.data.tokenizer import END, START
from glassformer.errors import require
from glassformer.look.beam_tree import Watched, watched_search
from glassformer.look.subject import LONGEST, LookOptions, Subject, check_length, show_tokens
from glassformer.tasks.backend import fit_options
from glassformer.tasks.model_dir import LoadedModel

if TYPE_CHECKING:
    from glassformer.data.audio import Series
    from glassformer.tasks.transcriber import Transcriber


def recording(loaded: LoadedModel, text: str, options: LookOptions) -> Subject:
    """`text` is the path of a sound file, or of vectors if the model reads these."""
    from glassformer.tasks.train_transcribe import read_series  # sound needs libraries that text does without
    from glassformer.tasks.transcriber import DEFAULT, Transcriber

    if "whisper" in loaded.about:
        from glassformer.look.subject_whisper import whispered

        return whispered(loaded, text, options)
    transcriber, tokenizer = Transcriber(loaded), loaded.tokenizer
    model = transcriber.model
    device = next(model.parameters()).device
    wave, title, begin = read_series(Path(text), transcriber.features), Path(text).name, 0.0
    if options.answer is None:
        wave, title, begin = _first_part(transcriber, wave, title)
    features = transcriber.extract([wave])[0]  # (t, f)
    given = features[None].to(device)
    memory = model.encode(given)
    n_positions = memory.x.shape[1]
    check_length(n_positions)
    backend = transcriber.backend
    if options.answer is None:
        longest = min(options.max_tokens or LONGEST, LONGEST - 1)
        search = fit_options(model, 0, replace(DEFAULT, beam=options.beam, max_len=longest))
        start = torch.tensor([[START]], device=device)
        found = watched_search(backend.steps(memory, search), start, search, END, normalise=not backend.ctc)
    else:
        found = Watched(tokenizer.encode(options.answer), [], [])
    answer = found.ids
    check_length(len(answer) + 1)
    step = transcriber.position_seconds
    return Subject(
        text=title,
        inputs=(given, torch.tensor([[START, *answer]], device=device)),
        source=[f"{begin + i * step:.2f} s" for i in range(n_positions)],
        target=show_tokens(tokenizer.tokens([START, *answer])),
        answer=tokenizer.decode(answer),
        answers=[*answer, END],
        name=lambda i: show_tokens(tokenizer.tokens([i]))[0],
        beam=found.nodes,
        best=found.path,
        ctc=backend.ctc,
        sense={"kind": "sound", "seconds": step},
    )


def _first_part(transcriber: "Transcriber", wave: "Series", name: str) -> tuple["Series", str, float]:
    """What `transcribe` would give the model first of a long recording, how that is called, and where it begins."""
    places = transcriber.cut(wave)
    require(bool(places), f"{name} holds only silence.", "Give a recording with sound, or --answer.")
    begin, end = places[0]
    title = name if len(places) == 1 else f"{name} (the first of {len(places)} parts)"
    return wave[begin:end], title, begin / transcriber.rate
