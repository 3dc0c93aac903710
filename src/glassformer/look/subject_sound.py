"""A recording as a speech model hears it: positions are moments, the answer is what was said."""

from dataclasses import replace
from pathlib import Path

import torch

from glassformer.data.tokenizer import END, START
from glassformer.look.subject import LONGEST, LookOptions, Subject, check_length, show_tokens
from glassformer.tasks.model_dir import LoadedModel


def recording(loaded: LoadedModel, text: str, options: LookOptions) -> Subject:
    """`text` is the path of a sound file, or of vectors if the model reads these."""
    from glassformer.tasks.train_transcribe import read_series  # sound needs libraries that text does without
    from glassformer.tasks.transcriber import DEFAULT, Transcriber

    transcriber, tokenizer = Transcriber(loaded), loaded.tokenizer
    model = transcriber.model
    device = next(model.parameters()).device
    features = transcriber.extract([read_series(Path(text), transcriber.features)])[0]  # (t, f)
    given = features[None].to(device)
    n_positions = model.encode(given).x.shape[1]
    check_length(n_positions)
    if options.answer is None:
        search = replace(DEFAULT, beam=options.beam, max_len=min(options.max_tokens or LONGEST, LONGEST - 1))
        found = transcriber.backend.generate([features], search)[0]
        answer = found[0].ids if found else []
    else:
        answer = tokenizer.encode(options.answer)
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
        sense={"kind": "sound", "seconds": step},
    )
