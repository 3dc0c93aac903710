"""One input seen through and through: its trace, and what the readings say about the answer, as plain data."""

import time
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from glassformer.errors import UserError
from glassformer.look.readings.ablation import ablate_heads, attentions
from glassformer.look.readings.attribution import attribute
from glassformer.look.readings.logit_lens import logit_lens
from glassformer.look.subject import AnswerKind, LookOptions, Subject
from glassformer.look.subjects import make_subject
from glassformer.look.trace import Trace, trace
from glassformer.model import Transformer
from glassformer.tasks.model_dir import LoadedModel

BEST = 10  # answers that are shown at each position
PATIENCE = 20.0  # seconds that the ablation of all heads may take where nobody asked for it
WHOLE = (("decoder.*", "target.*"), ("*.scores", "*.q", "*.k"))  # kept and dropped: what attribution needs
LENS = 3  # answers that are shown after each layer


@dataclass(frozen=True)
class Scene:
    model: Transformer
    subject: Subject
    seen: Trace
    whole: Trace  # what attribution needs, with all positions of a source that is joined in `seen`

    def score(self) -> float:
        """The mean log-probability of what was answered, or the number that was; runs the model."""
        with torch.no_grad():
            logits = self.model(*self.subject.inputs)
        return score_answers(logits, self.subject.own_answers, self.subject.kind)

    def data(self, ablate: bool | None = None) -> dict[str, Any]:
        """Everything but the tensors, as JSON can hold it; heads are ablated if it is told, or quickly done."""
        used: set[int] = {i for i in self.subject.answers if i >= 0} | {node.token for node in self.subject.beam}
        subject = self.subject
        found: dict[str, Any] = {
            "text": subject.text,
            "answer": subject.answer,
            "kind": subject.kind,
            "sense": subject.sense,
            "source": subject.source,
            "target": subject.target,
            "answers": subject.answers,
            "first": next((i for i, a in enumerate(subject.answers) if a >= 0 and i >= subject.n_prompt), 0),
            "best": self._best(used),
            "beam": [vars(node) for node in subject.beam],
            "path": subject.best,
            "ctc": subject.ctc,
            "ruled": subject.ruled,
            "joined": None if subject.join is None else list(subject.join.sizes),
            "lens": self._lens(used),
            "attribution": self._attribution(),
            "ablation": self._ablation(ablate),
        }
        return found | {"names": {str(i): subject.name(i) for i in sorted(used)}}

    def _best(self, used: set[int]) -> list[dict[str, Any]]:
        """At each position (or once, for a whole sequence) the best answers, and what was answered."""
        if "head.probabilities" not in self.seen:
            return []
        logits = _by_position(self.seen["head.logits"][0])
        shares = (
            logits.sigmoid() if self.subject.kind == "choices" else _by_position(self.seen["head.probabilities"][0])
        )
        rows = []
        for position, (logit, share) in enumerate(zip(logits, shares, strict=True)):
            top = share.topk(min(BEST, len(share)))
            ids: list[int] = top.indices.tolist()
            used.update(ids)
            answered = self.subject.answers[position]
            said = None
            if answered >= 0:
                rank = int((share > share[answered]).sum()) + 1
                said = {"id": answered, "p": float(share[answered]), "logit": float(logit[answered]), "rank": rank}
            rows.append({"ids": ids, "p": top.values.tolist(), "logits": logit[top.indices].tolist(), "said": said})
        return rows

    def _lens(self, used: set[int]) -> dict[str, Any] | None:
        if "head.probabilities" not in self.seen:
            return None
        if self.subject.kind == "choices":  # many may fit, and the lens shows shares of one
            return None
        lens = logit_lens(self.model, self.seen, LENS)
        ids, shares = lens.ids, lens.probabilities
        if ids.dim() == 2:  # one answer for the whole sequence
            ids, shares = ids[:, None], shares[:, None]
        used.update(ids.flatten().tolist())
        return {"ids": ids.tolist(), "p": [[_rounded(row) for row in layer] for layer in shares]}

    def _ablation(self, wanted: bool | None) -> dict[str, list[float]] | None:
        if wanted is None:
            n_passes = sum(part.n_heads for part in attentions(self.model).values())
            start = time.perf_counter()
            self.score()
            wanted = n_passes * (time.perf_counter() - start) < PATIENCE
        if not wanted:
            return None
        return {path: _rounded(fall) for path, fall in ablate_heads(self.model, self.score).items()}

    def _attribution(self) -> list[dict[str, Any]] | None:
        """For each answer, what each part put into its logit."""
        rows = []
        numbered = self.subject.kind == "number"  # then there is one output, and it is the answer
        for position, answer in enumerate([0] if numbered else self.subject.answers):
            if answer < 0 or position < self.subject.n_prompt:
                continue
            try:
                found = attribute(self.model, self.whole, answer, position)
            except UserError:  # the head is not linear
                return None
            tokens = {kind: found.by_token(kind) for kind in ("self", "cross") if _has(found.keys, kind)}
            if self.subject.join is not None:
                tokens["cross"] = self.subject.join.add(tokens["cross"])
            heads = {path: _rounded(values) for path, values in found.heads.items()}
            shares = {kind: _rounded(values) for kind, values in tokens.items()}
            rows.append({"position": position, "parts": found.parts, "heads": heads, "tokens": shares})
        return rows


def look_at(loaded: LoadedModel, text: str, options: LookOptions | None = None) -> Scene:
    """Answer, then see the whole pass again with all positions at once."""
    return scene_of(loaded.model, make_subject(loaded, text, options or LookOptions()))


def scene_of(model: Transformer, subject: Subject) -> Scene:
    with (
        torch.no_grad(),
        trace(model, join=subject.join) as seen,
        nullcontext(seen) if subject.join is None else trace(model, *WHOLE) as whole,
    ):
        model(*subject.inputs)
    return Scene(model, subject, seen, whole)


def score_answers(logits: Tensor, answers: list[int], kind: AnswerKind = "choice") -> float:
    """The mean log-probability of what was answered, at all positions (1, n, N) or once (1, N); or the number."""
    scores = _by_position(logits[0]).float()
    if kind == "number":
        return float(scores[0, 0])
    log_p = scores.log_softmax(dim=-1) if kind == "choice" else torch.nn.functional.logsigmoid(scores)
    given = [float(log_p[i, answer]) for i, answer in enumerate(answers) if answer >= 0]
    return sum(given) / max(1, len(given))


def _by_position(values: Tensor) -> Tensor:
    return values if values.dim() == 2 else values[None]


def _has(keys: dict[str, Tensor], kind: str) -> bool:
    return any(f".{kind}_" in name for name in keys)


def _rounded(values: Tensor) -> list[float]:
    return [float(f"{v:.6g}") for v in values.tolist()]
