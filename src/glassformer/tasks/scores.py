"""Scores of translations, with the signatures and bootstrap intervals of sacrebleu itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from glassformer.data.scripts import is_japanese, spaceless_script
from glassformer.errors import UserError, require

# Those of sacrebleu that fetch nothing from the network.
TOKENIZERS = ("13a", "none", "intl", "char", "zh", "ja-mecab", "ko-mecab")
N_BOOTSTRAP = 1000
# sacrebleu holds all resamples at once, some 80 bytes a sentence: so many sentences, and fewer resamples beyond.
MOST_RESAMPLED = 10_000_000
FEWEST = 50  # resamples that still show an interval


def usual_tokenize(references: Sequence[str]) -> str:
    """How BLEU finds words if nobody says: without spaces 13a takes whole sentences for words, and few ever match."""
    script = spaceless_script(references)
    if not script:
        return "13a"
    return "zh" if script == "Han" and not is_japanese(references) else "char"


@dataclass(frozen=True)
class Measured:
    """A score with the mean and half the width of its 95 % interval under resampling of the sentences."""

    score: float
    mean: float
    interval: float


@dataclass(frozen=True)
class System:
    name: str
    bleu: Measured
    chrf: Measured
    exact: float  # share of the answers that are the reference, letter for letter


@dataclass(frozen=True)
class Slice:
    """The model's scores on a part of the data; the slices with the same `by` are all of it."""

    by: str
    name: str
    n: int
    bleu: float
    chrf: float
    exact: float


class _Chrf(CHRF):
    """chrF as it is, but always a plain float: sacrebleu stumbles over float32 beside a resample that scores 0."""

    def _compute_f_score(self, statistics: list[int]) -> float:
        return float(super()._compute_f_score(statistics))


class Scorer:
    """The metrics of one report; the signatures are known once something is scored."""

    def __init__(self, tokenize: str = "13a") -> None:
        require(
            tokenize in TOKENIZERS,
            f"There is no way to tokenize called {tokenize!r}.",
            f"Choose one of {', '.join(TOKENIZERS)}.",
        )
        try:
            # force: whoever asks for `none` knows that the text is tokenized, and needs no warning.
            self.bleu = BLEU(tokenize=tokenize, force=True)
        except RuntimeError:
            hint = f"Install them: pip install 'sacrebleu[{tokenize.split('-')[0]}]'."
            raise UserError(f"--tokenize {tokenize} needs packages that are not installed.", hint) from None
        self.chrf = _Chrf()

    def system(self, name: str, answers: Sequence[str], references: Sequence[str]) -> System:
        bleu, chrf = (_measure(metric, answers, references) for metric in (self.bleu, self.chrf))
        return System(name, bleu, chrf, _exact(answers, references))

    def slice(self, by: str, name: str, answers: Sequence[str], references: Sequence[str]) -> Slice:
        bleu, chrf = (metric.corpus_score(answers, [references]).score for metric in (self.bleu, self.chrf))
        return Slice(by, name, len(answers), bleu, chrf, _exact(answers, references))

    def sentence(self, answer: str, reference: str) -> float:
        return float(self.chrf.sentence_score(answer, [reference]).score)

    def signatures(self) -> dict[str, str]:
        return {"bleu": str(self.bleu.get_signature()), "chrf": str(self.chrf.get_signature())}


def _measure(metric: Metric, answers: Sequence[str], references: Sequence[str]) -> Measured:
    # sacrebleu has no public name for the numbers that it prints as "μ = … ± …".
    n = min(N_BOOTSTRAP, max(FEWEST, MOST_RESAMPLED // len(answers)))
    found = metric.corpus_score(answers, [references], n_bootstrap=n)
    return Measured(float(found.score), float(found._mean), float(found._ci))


def _exact(answers: Sequence[str], references: Sequence[str]) -> float:
    return sum(a == b for a, b in zip(answers, references, strict=True)) / len(answers)
