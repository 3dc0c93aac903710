"""Whisper's marks: languages, tasks and times as tokens, and which tokens it is not to say."""

from dataclasses import dataclass

from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import UserError, require

START, END, NO_TIMES = "<|startoftranscript|>", "<|endoftext|>", "<|notimestamps|>"
_CODES = """
    en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml cy
    sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo
    uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue
"""
LANGUAGES = _CODES.split()
N_TIMES = 1501  # from 0.00 to 30.00 seconds
STEP = 0.02  # seconds from one to the next
# Signs that are written but not said, alone and several together.
_TOGETHER = "<< >> <<< >>> -- --- -( -[ (' (\" (( )) ((( ))) [[ ]] {{ }} ♪♪ ♪♪♪"
_SIGNS = [*'"#()*+/:;<=>@[\\]^_`{|}~「」『』', *_TOGETHER.split()]
_MUSIC = [*"♩♪♫♬♭♮♯"]


def mark_names(n_languages: int) -> list[str]:
    """All marks in the order of their ids."""
    languages = [f"<|{code}|>" for code in LANGUAGES[:n_languages]]
    others = ["<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", NO_TIMES]
    return [END, START, *languages, *others, *(f"<|{i * STEP:.2f}|>" for i in range(N_TIMES))]


@dataclass(frozen=True)
class WhisperMarks:
    """The ids of the marks of one model."""

    start: int
    end: int
    times: int  # the first; all after it are times too
    no_times: int
    no_speech: int
    previous: int
    tasks: dict[str, int]
    languages: dict[str, int]  # nothing for a model that knows English only
    blank: tuple[int, ...]  # not said first
    silent: tuple[int, ...]  # never said

    def prompt(self, language: str | None, task: str, times: bool = True) -> list[int]:
        """What an answer begins with."""
        ids = [self.start]
        if self.languages:
            require(task in self.tasks, f"There is no task {task!r}.", f"Choose {' or '.join(self.tasks)}.")
            if language not in self.languages:
                raise UserError(
                    f"Whisper does not know the language {language!r}.", "Give a code such as en, de or fr."
                )
            ids += [self.languages[language], self.tasks[task]]
        else:
            require(
                language in (None, "en") and task == "transcribe",
                "This Whisper knows English only.",
                "Leave out --language and --task, or take a multilingual one.",
            )
        return ids if times else [*ids, self.no_times]


def find_marks(tokenizer: Tokenizer, is_multilingual: bool) -> WhisperMarks:
    """The marks of a tokenizer, found by their names."""

    def number(*names: str) -> int:
        for name in names:
            if (found := tokenizer.core.token_to_id(name)) is not None:
                return int(found)
        raise UserError(f"The tokenizer has no mark {names[0]}.", "Import the model again.")

    tasks = {name: number(f"<|{name}|>") for name in ("transcribe", "translate")}
    start, no_speech = number(START), number("<|nospeech|>", "<|nocaptions|>")
    previous, lm = number("<|startofprev|>"), number("<|startoflm|>")
    codes = {code: tokenizer.core.token_to_id(f"<|{code}|>") for code in LANGUAGES}
    return WhisperMarks(
        start=start,
        end=number(END),
        times=number("<|0.00|>", NO_TIMES) if tokenizer.core.token_to_id("<|0.00|>") else number(NO_TIMES) + 1,
        no_times=number(NO_TIMES),
        no_speech=no_speech,
        previous=previous,
        tasks=tasks,
        languages={code: i for code, i in codes.items() if i is not None} if is_multilingual else {},
        blank=(*tokenizer.encode(" "), number(END)),
        silent=tuple(sorted({*_unsaid(tokenizer), *tasks.values(), start, previous, lm, no_speech})),
    )


def _unsaid(tokenizer: Tokenizer) -> set[int]:
    """Signs that are one token (music even if more), and a dash or quote that stands where a word begins."""
    found = {tokenizer.encode(" -")[0], tokenizer.encode(" '")[0]}
    for sign in _SIGNS + _MUSIC:
        for ids in (tokenizer.encode(sign), tokenizer.encode(" " + sign)):
            if len(ids) == 1 or sign in _MUSIC:
                found.add(ids[0])
    return found
