"""How many steps fit into the time: measured before the run, and again at every validation."""

import math
import time
from typing import TYPE_CHECKING

import torch

from glassformer.train.machine import autocast
from glassformer.train.run_files import Progress
from glassformer.train.settings import VALIDATIONS, TrainSettings

if TYPE_CHECKING:
    from glassformer.train.helpers import Helpers
    from glassformer.train.loop import Job

N_MEASURED = 8
VALIDATING = 0.1  # share of the time that validation may take
ENDING = 3  # validations at the end: the last step, the mean, and one of them again
SAVING = 0.01  # share of the time for writing the model, its card and its picture
FIRST = 15.0  # seconds of training before the first validation
APART = 5  # steps between validations at least, unless their number was chosen: sooner there is nothing new to see
UPDATE = 1.05  # the optimizer's share, which is not measured because that would change the weights


def measure_step(job: "Job", settings: TrainSettings, helpers: "Helpers") -> float:
    """Seconds a step takes here, from a few batches of all lengths; nothing is changed by it."""
    planned = job.plan_epoch(0)
    chosen = [planned[i * len(planned) // N_MEASURED] for i in range(N_MEASURED)]
    device = next(job.model.parameters()).device
    times = []
    job.model.train()
    with torch.random.fork_rng(devices=[]), helpers.one_core():  # as a step will be
        for item in [chosen[0], *chosen]:  # the first is for warming up
            began = time.monotonic()
            batch = job.load(item)
            with autocast(settings.precision, device):
                loss = job.loss(batch) / job.n_tokens(batch)
            loss.backward()  # type: ignore[no-untyped-call]
            times.append(time.monotonic() - began)
    job.model.zero_grad(set_to_none=True)
    return sum(times[1:]) / N_MEASURED * helpers.own_share * UPDATE


def plan_steps(
    progress: Progress, settings: TrainSettings, seconds_a_step: float, seconds_a_validation: float = 0.0
) -> None:
    """Fit the number of steps to the minutes that are left, and say when to validate next.

    The first step is always made; later there may be none left.
    """
    p, s = progress, settings
    interval = APART if s.steps is not None and s.validations == VALIDATIONS else 1
    if s.minutes is not None and seconds_a_step > 0:
        left = max(0.0, s.minutes * 60 * (1 - SAVING) - p.seconds - ENDING * seconds_a_validation)
        # Validation may take its share of the time, no more, and the first comes when there is something to see.
        first = FIRST if p.step == 0 else 0.0
        apart = max(s.minutes * 60 / s.validations, seconds_a_validation / VALIDATING, first)
        validating = left // apart * seconds_a_validation
        p.n_steps = p.step + max(int(p.step == 0), int((left - validating) / seconds_a_step))
        interval = math.ceil(apart / seconds_a_step)
    if s.steps is not None:
        p.n_steps = min(p.n_steps, s.steps)
    p.next_validation = min(p.n_steps, p.step + max(interval, math.ceil(p.n_steps / s.validations)))
