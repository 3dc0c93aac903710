"""A recording as a speech model hears it: positions are moments, the answer is what was said."""

from dataclasses import replace
from pathlib import Path

import torch

from glassformer.data.tokenizer import END, START
from glassformer.look.beam_tree import Watched, watched_search
from glassformer.look.subject import LONGEST, LookOptions, Subject, check_length, show_tokens
from glassformer.tasks.backend import fit_options
from glassformer.tasks.model_dir import LoadedModel


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
    features = transcriber.extract([read_series(Path(text), transcriber.features)])[0]  # (t, f)
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
        text=Path(text).name,
        inputs=(given, torch.tensor([[START, *answer]], device=device)),
        source=[f"{i * step:.2f} s" for i in range(n_positions)],
        target=show_tokens(tokenizer.tokens([START, *answer])),
        answer=tokenizer.decode(answer),
        answers=[*answer, END],
        name=lambda i: show_tokens(tokenizer.tokens([i]))[0],
        beam=found.nodes,
        best=found.path,
        ctc=backend.ctc,
        sense={"kind": "sound", "seconds": step},
    )
