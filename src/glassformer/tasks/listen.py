"""Voice commands: what is heard is one of the allowed sentences, or not understood."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from glassformer.data.audio import level
from glassformer.data.recordings_check import SILENT
from glassformer.data.tokenizer import END
from glassformer.decode.options import DecodeOptions, Hypothesis
from glassformer.decode.tree import build_tree
from glassformer.errors import UserError, require
from glassformer.tasks.train_transcribe import read_series
from glassformer.tasks.transcriber import DEFAULT, Transcriber

MOST = 10_000  # commands
BEAM = 16  # branches of the tree that are tried side by side


@dataclass(frozen=True)
class Heard:
    """The best command, how sure the model is (0 to 1), and whether that is enough; `free` is what it hears unbound."""

    file: str
    command: str | None
    confidence: float
    best: str
    free: str


def read_commands(path: Path) -> list[str]:
    """One command a line; empty lines and lines that begin with # say nothing."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        raise UserError(f"There is no file {path}.", "Write one command a line.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}.", "Write one command a line, in UTF-8.") from None
    found = list(dict.fromkeys(" ".join(line.split()) for line in lines if line.strip() and not line.startswith("#")))
    require(bool(found), f"{path} holds no command.", "Write one command a line.")
    require(len(found) <= MOST, f"{path} holds {len(found):,} commands.", f"At most {MOST:,} can be told apart.")
    return found


class Listener:
    """A recogniser bound to some commands."""

    def __init__(self, transcriber: Transcriber, commands: Sequence[str], threshold: float = 0.5) -> None:
        require(0 <= threshold <= 1, f"The threshold is {threshold}.", "It must be from 0 to 1.")
        self.transcriber, self.threshold = transcriber, threshold
        alphabet = set(str(transcriber.loaded.about.get("alphabet", "")))
        # A model that only ever saw capitals writes capitals.
        self.as_written = {_as_trained(command, alphabet): command for command in commands}
        tokenizer = transcriber.loaded.tokenizer
        self.tree = build_tree((tokenizer.encode(text) for text in self.as_written), END)

    def listen(self, files: Sequence[str | Path]) -> Iterator[Heard | UserError]:
        """One answer for each file; what is wrong with a file is its answer."""
        for file in files:
            try:
                yield self._listen(Path(file))
            except UserError as error:
                yield error

    def _listen(self, file: Path) -> Heard:
        wave = read_series(file, self.transcriber.features)
        if wave.ndim == 1 and level(wave) < SILENT:
            return Heard(str(file), None, 0.0, "", "")
        features = self.transcriber.extract([wave])
        bound = self.transcriber.backend.generate(features, _options(BEAM), self.tree)[0]
        free = self.transcriber.backend.generate(features, _options(DEFAULT.beam))[0]
        decode = self.transcriber.loaded.tokenizer.decode
        heard = decode(free[0].ids) if free else ""
        if not bound:
            return Heard(str(file), None, 0.0, "", heard)
        best = decode(bound[0].ids)
        best = self.as_written.get(best, best)
        confidence = _confidence(bound, free)
        return Heard(str(file), best if confidence >= self.threshold else None, round(confidence, 4), best, heard)


def _options(beam: int) -> DecodeOptions:
    return DecodeOptions(beam=beam, nbest=2 if beam > 1 else 1, length_penalty=0.0, max_len=DEFAULT.max_len)


def _confidence(bound: list[Hypothesis], free: list[Hypothesis]) -> float:
    """How likely the command is beside the other commands and beside whatever else may have been said."""
    rivals = [h.score for h in bound[1:2]] + [h.score for h in free[:1] if h.ids != bound[0].ids]
    best = bound[0].score
    share = 1 / (1 + sum(math.exp(min(50.0, rival - best)) for rival in rivals))
    per_token = math.exp(best / (len(bound[0].ids) + 1))
    return share * per_token


def _as_trained(command: str, alphabet: set[str]) -> str:
    for change in (str, str.upper, str.lower):
        for text in (change(command), re.sub(r"[^\w\s']", "", change(command))):
            if not alphabet or set(text) <= alphabet:
                return " ".join(text.split())
    return command
