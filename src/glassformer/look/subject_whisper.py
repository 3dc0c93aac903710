"""A recording as a Whisper hears it: its first window of 30 seconds, after marks, with times between the words.

The pass is the true one, over all positions of the window. Shown are the sound's, joined if they are many, and one for
all silence behind it.
"""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from glassformer.data.audio import read_sound
from glassformer.data.features import pad_to
from glassformer.decode.options import DecodeOptions, Hypothesis
from glassformer.decode.steps import Steps
from glassformer.errors import require
from glassformer.look.beam_tree import Watched, watched_search
from glassformer.look.joining import join_sound
from glassformer.look.subject import LookOptions, Subject, check_length, show_tokens
from glassformer.model import EncoderDecoder
from glassformer.tasks.model_dir import LoadedModel
from glassformer.tasks.transcriber import DEFAULT
from glassformer.tasks.whisper import FRAME, WhisperTranscriber, is_silence, whisper_marks
from glassformer.tasks.whisper_marks import STEP
from glassformer.tasks.whisper_steps import N_FRAMES, TorchWhisper

SHOWN = 72  # positions of the sound at most; more leave no room on a page for what comes of them
STRIDE = 2  # frames of a position


class WatchedWhisper(TorchWhisper):
    """The model itself; the tree of its last search is kept."""

    watched = Watched([], [], [])

    def search(self, steps: Steps, prompt: Tensor, options: DecodeOptions) -> list[Hypothesis]:
        # As many answers as the beam found, for the tree; which is the best does not hang on it.
        self.watched = watched_search(steps, prompt, replace(options, nbest=options.beam), self.marks.end)
        return [Hypothesis(self.watched.ids, self.watched.score)]


def whispered(loaded: LoadedModel, text: str, options: LookOptions) -> Subject:
    """`text` is the path of a sound file."""
    assert isinstance(loaded.model, EncoderDecoder)
    engine = WatchedWhisper(loaded.model, whisper_marks(loaded))
    whisper = WhisperTranscriber(loaded, engine)
    marks, features = whisper.marks, whisper.extract(read_sound(Path(text), whisper.features.rate))
    require(len(features) > 0, f"{text} holds no sound.", "Give a longer recording.")
    window = features[:N_FRAMES]
    prompt = whisper.prompt(window, times=options.answer is None)
    found, silent = _answer(whisper, engine, window, prompt, options)
    target = [*prompt, *found.ids]
    check_length(len(target))

    def name(i: int) -> str:
        return f"<{(i - marks.times) * STEP:.2f}>" if i >= marks.times else show_tokens(loaded.tokenizer.tokens([i]))[0]

    n_sound, seconds = -(-len(window) // STRIDE), STRIDE * FRAME
    join = join_sound(n_sound, N_FRAMES // STRIDE, SHOWN)
    n_silent = len(join.sizes) - -(-n_sound // join.sizes[0])
    moments = [f"{i * seconds:.2f} s" for i in join.middles]
    device = next(loaded.model.parameters()).device
    return Subject(
        text=Path(text).name + (", the first 30 seconds" if len(features) > N_FRAMES else ""),
        inputs=(pad_to(window, N_FRAMES)[None].to(device), torch.tensor([target], device=device)),
        source=moments[: len(moments) - n_silent] + ["silence"] * n_silent,
        target=[name(i) for i in target],
        answer="(silence)" if silent else whisper.text(found.ids),
        answers=[-1] * (len(prompt) - 1) + [*found.ids, marks.end],
        name=name,
        beam=found.nodes,
        best=found.path,
        sense={"kind": "sound", "seconds": join.sizes[0] * seconds, "silence": n_silent},
        join=join,
        ruled=options.answer is None,
    )


def _answer(
    whisper: WhisperTranscriber, engine: WatchedWhisper, window: Tensor, prompt: list[int], options: LookOptions
) -> tuple[Watched, bool]:
    """What `transcribe` hears in the window, and whether it takes it for silence; or what the model is made to say."""
    if options.answer is not None:
        return Watched(whisper.loaded.tokenizer.encode(f" {options.answer.strip()}"), [], []), False
    most = options.max_tokens or DEFAULT.max_len
    said, temperature = whisper.say(window, prompt, whisper.fit(DecodeOptions(beam=options.beam, max_len=most)))
    # What was drawn after the search, because its answer was not believed, has no tree.
    found = engine.watched if temperature == 0 else Watched(said.ids, [], [])
    return found, is_silence(said)
