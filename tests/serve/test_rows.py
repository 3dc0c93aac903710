"""Completions that join and leave a running batch: each is as if alone."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.decode.complete_options import CompleteOptions
from glassformer.errors import UserError
from glassformer.serve import rows as rows_file
from glassformer.serve.metrics import Metrics
from glassformer.serve.rows import CompleteJob, Piece, Rows
from glassformer.tasks.completer import Completer, Completion
from glassformer.tasks.model_dir import LoadedModel
from tests.serve.models import words
from tests.tasks.test_completer import KINDS, model_of

PROMPTS = ["the cat", "", "ein Hündchen läuft über die", "1 2 3", "the dog sat on the mat and the cat"]
WAYS = [
    CompleteOptions(max_tokens=9, temperature=0),
    CompleteOptions(max_tokens=30, temperature=0.9, seed=3),
    CompleteOptions(max_tokens=5, temperature=0.7, top_k=20, seed=8, n=3),
    CompleteOptions(max_tokens=14, temperature=1.0, seed=1, stop=("a", "e"), repetition_penalty=1.2),
    CompleteOptions(max_tokens=60, temperature=0.5, seed=2, alternatives=2),
]


@pytest.fixture(scope="module", params=sorted(KINDS))
def completer(request: pytest.FixtureRequest) -> Completer:
    tokenizer = words()
    model = model_of(request.param, tokenizer.vocab_size)
    return Completer(LoadedModel(Path("model"), "complete", model, tokenizer, tokenizer, {}))


def alone(completer: Completer, prompt: str, options: CompleteOptions) -> list[Completion]:
    return [completer.complete_all([prompt], options)[0][i] for i in range(options.n)]


def same(ours: list[Completion], theirs: list[Completion]) -> None:
    assert [a.text for a in ours] == [a.text for a in theirs]
    assert [a.tokens for a in ours] == [a.tokens for a in theirs]
    assert [a.finish for a in ours] == [a.finish for a in theirs]
    for a, b in zip(ours, theirs, strict=True):
        assert a.log_p == pytest.approx(b.log_p, abs=1e-4)


# For each request: steps that are made before it comes, its prompt, its options.
ARRIVALS = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from(PROMPTS), st.sampled_from(WAYS)), min_size=1, max_size=8
)


@given(arrivals=ARRIVALS, places=st.integers(1, 6))
@settings(max_examples=8)
def test_whoever_comes_whenever_gets_what_he_would_get_alone(
    completer: Completer, arrivals: list[tuple[int, str, CompleteOptions]], places: int
) -> None:
    running = Rows(completer, places, Metrics(), "model")
    jobs = []
    for n_steps, prompt, options in arrivals:
        for _ in range(n_steps):
            running.step()
            assert running.n_running() <= places
        jobs.append(CompleteJob([completer.prompt_ids(prompt)], options))
        running.put(jobs[-1])
    while running.n_waiting() + running.n_running():
        running.step()
    for job, (_, prompt, options) in zip(jobs, arrivals, strict=True):
        same(job.future.result(timeout=0), alone(completer, prompt, options))


def test_a_long_prompt_is_read_between_the_steps_of_others(
    completer: Completer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_file, "CHUNK", 2)
    running = Rows(completer, 4, Metrics(), "model")
    short = CompleteJob([completer.prompt_ids("1")], WAYS[1])
    running.put(short)
    running.step()
    long = CompleteJob([completer.prompt_ids(PROMPTS[2])], WAYS[1])
    running.put(long)
    before = len(running.going[0].said.ids)
    running.step()
    assert len(running.going) == 1
    assert len(running.going[0].said.ids) == before + 1
    while running.n_waiting() + running.n_running():
        running.step()
    same(short.future.result(timeout=0), alone(completer, "1", WAYS[1]))
    same(long.future.result(timeout=0), alone(completer, PROMPTS[2], WAYS[1]))


def test_pieces_make_the_whole_and_the_cache_does_not_grow(completer: Completer) -> None:
    running, pieces = Rows(completer, 2, Metrics(), "model"), list[Piece]()
    for turn in range(12):
        job = CompleteJob([completer.prompt_ids(PROMPTS[turn % 5])], WAYS[1], pieces.append)
        running.put(job)
        for _ in range(11):
            running.step()
        if running.cache is not None:
            assert running.cache.capacity <= max(map(len, PROMPTS)) + WAYS[1].max_tokens + rows_file.SPARE
    while running.n_waiting() + running.n_running():
        running.step()
    assert running.cache is None
    assert "".join(piece.text for piece in pieces if piece.row == 0) != ""
    assert sum(piece.finish is not None for piece in pieces) == 12


def test_who_goes_away_leaves_his_place(completer: Completer) -> None:
    running = Rows(completer, 2, Metrics(), "model")
    long = CompleteOptions(max_tokens=30, temperature=0.9, seed=3)
    jobs = [CompleteJob([completer.prompt_ids(p)], long) for p in PROMPTS[:4]]
    for job in jobs:
        running.put(job)
    running.step()
    assert running.n_running() == 2
    assert jobs[0].future.cancel()
    assert jobs[2].future.cancel()
    running.step()
    assert running.n_waiting() == 0
    while running.n_waiting() + running.n_running():
        running.step()
    same(jobs[1].future.result(timeout=0), alone(completer, PROMPTS[1], long))
    same(jobs[3].future.result(timeout=0), alone(completer, PROMPTS[3], long))
    assert not running.left


def test_a_request_of_many_prompts_does_not_keep_a_single_one_waiting(completer: Completer) -> None:
    running = Rows(completer, 2, Metrics(), "model")
    many = CompleteJob([completer.prompt_ids(p) for p in PROMPTS * 4], WAYS[0])
    single = CompleteJob([completer.prompt_ids("1")], WAYS[0])
    running.put(many)
    running.put(single)
    while not single.future.done():
        running.step()
    assert running.n_waiting() > 10


def test_prompts_that_do_not_fit_are_refused() -> None:
    tokenizer = words()
    model = model_of("learned", tokenizer.vocab_size)
    completer = Completer(LoadedModel(Path("model"), "complete", model, tokenizer, tokenizer, {}))
    running = Rows(completer, 2, Metrics(), "model")
    for ids, message in ([5] * 40, "40 tokens"), ([], "empty"):
        with pytest.raises(UserError, match=message):
            running.put(CompleteJob([ids], WAYS[0]))
    assert running.n_waiting() == 0
