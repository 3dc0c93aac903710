"""One question a step: its answer is computed with the figures, and whatever a reader types is checked against it."""

import re
from dataclasses import asdict, dataclass
from typing import Any

from glassformer.learn.figures import write_number

# A reader rounds to two digits.
NEAR = 0.0051


@dataclass(frozen=True, kw_only=True)
class Question:
    """`answers` are all that is accepted, the first the one to show; numbers are accepted when they are near."""

    text: str
    answers: list[str] | list[float]
    hint: str
    choices: list[str] | None = None

    @property
    def answer(self) -> str:
        best = self.answers[0]
        return best if isinstance(best, str) else write_number(best)

    def accepts(self, given: str) -> bool:
        """Whether the reader is right; a choice may be named by its number."""
        if self.choices and re.fullmatch(r"\s*[0-9]+\s*", given) and 1 <= int(given) <= len(self.choices):
            given = self.choices[int(given) - 1]
        for answer in self.answers:
            if isinstance(answer, str):
                right = _plain(given) == _plain(answer)
            else:
                number = read_number(given)
                right = number is not None and abs(number - answer) <= max(NEAR, abs(answer) / 1000)
            if right:
                return True
        return False

    def to_data(self) -> dict[str, Any]:
        return asdict(self)


def read_number(text: str) -> float | None:
    """Numbers as people write them: 0.4, .4, 0,4, 40 %, 2/5, 2,500,000."""
    plain = re.sub(r"[\s_]", "", text).replace("−", "-")
    if re.fullmatch(r"-?[1-9]\d{0,2}(,\d{3})+(\.\d+)?", plain):
        plain = plain.replace(",", "")
    plain = plain.replace(",", ".")
    number = r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
    if found := re.fullmatch(rf"({number})(%?)", plain):
        return float(found[1]) / (100 if found[2] else 1)
    if (found := re.fullmatch(rf"({number})/({number})", plain)) and float(found[2]) != 0:
        return float(found[1]) / float(found[2])
    return None


def _plain(text: str) -> str:
    """Without regard to case, spacing and the marks around lists and quotes, unless there is nothing else."""
    return re.sub(r"[\s,;()\[\]\"“”]+", " ", text).lower().strip() or text.strip()
