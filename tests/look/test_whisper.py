"""A Whisper seen through: the true pass over its whole window, shown in fewer positions; the answer of `transcribe`."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.data.audio import read_sound
from glassformer.decode.options import DecodeOptions
from glassformer.errors import UserError
from glassformer.look.comparison import compare
from glassformer.look.joining import Join, join_sound
from glassformer.look.page import as_json, make_page
from glassformer.look.readings.attention_maps import attention_maps
from glassformer.look.scene import Scene, look_at
from glassformer.look.subject import LookOptions
from glassformer.look.trace import trace
from glassformer.model.settings import FramesSettings
from glassformer.tasks.model_dir import LoadedModel
from glassformer.tasks.whisper import WhisperTranscriber
from glassformer.tasks.whisper_steps import Said, TorchWhisper
from tests.browser import Tab
from tests.builders import close, encoder_decoder
from tests.data.sounds import speechlike, write_sound
from tests.look.conftest import OPTIONS, Kind, believing

FRAMES = encoder_decoder(source=FramesSettings(n_features=3, strides=(1, 2), dropout=0.0), tie_source_target=False)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.integers(0, 99))
def test_joined_positions_are_sums_of_weights_and_true_vectors(sizes: list[int], seed: int) -> None:
    dice = torch.Generator().manual_seed(seed)
    inputs = torch.randn(2, 2 * sum(sizes), 3, generator=dice), torch.randint(28, (2, 4), generator=dice)
    with torch.no_grad(), trace(FRAMES) as whole, trace(FRAMES, join=Join(tuple(sizes))) as seen:
        FRAMES(*inputs)
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    middles = [end - size + size // 2 for end, size in zip(ends, sizes, strict=True)]
    assert seen.names == whole.names
    for name in whole.names:
        wanted, point = whole[name], name.rsplit(".", 1)[-1]
        over_source = name.startswith("encoder") or "cross_attention" in name
        if name.startswith("encoder") or name == "source.x" or (over_source and point in ("k", "v")):
            wanted = wanted[..., middles, :]
        if name.startswith("source") and name != "source.x":
            continue
        if over_source and point == "weights":
            close(seen[name], torch.stack([part.sum(-1) for part in wanted.split(sizes, dim=-1)], dim=-1))
            close(seen[name], seen[name.replace("weights", "scores")].softmax(-1))
        elif over_source and point == "scores":
            close(seen[name], torch.stack([part.logsumexp(-1) for part in wanted.split(sizes, dim=-1)], dim=-1))
        else:
            assert torch.equal(seen[name], wanted), name
    assert torch.equal(seen["source.input"], whole["source.input"][:, : 2 * sizes[0] * len(sizes)])
    assert torch.equal(seen["source.convolutions.1.convolved"], whole["source.convolutions.1.convolved"][..., middles])


@given(st.integers(1, 1500), st.integers(1, 200))
def test_sound_is_joined_evenly_and_silence_is_one(n_sound: int, most: int) -> None:
    sizes = join_sound(n_sound, 1500, most).sizes
    assert sum(sizes) == 1500
    n = -(-n_sound // sizes[0])  # of sound
    assert n <= most
    assert set(sizes[: n - 1]) <= {sizes[0]}
    assert len(sizes) - n == (n * sizes[0] < 1500)
    assert sizes[0] == 1 or -(-n_sound // (sizes[0] - 1)) > most  # no coarser than it must be


@pytest.fixture(autouse=True)
def _believed() -> Iterator[None]:
    with believing():
        yield


class Listened(TorchWhisper):
    """Remembers what was said to each window."""

    def say(self, window: torch.Tensor, prompt: list[int], options: DecodeOptions) -> Said:
        self.prompt, said = prompt, super().say(window, prompt, options)
        self.heard_first = getattr(self, "heard_first", said)
        return said


def test_the_answer_is_the_one_of_transcribe(whisper: LoadedModel, kinds: dict[str, Kind]) -> None:
    for path, scene in zip(kinds["whisper"].places, kinds["whisper"].scenes, strict=True):
        engine = Listened(whisper.model, WhisperTranscriber(whisper).marks)  # type: ignore[arg-type]
        transcriber, marks = WhisperTranscriber(whisper, engine), engine.marks
        options = DecodeOptions(beam=OPTIONS.beam, max_len=OPTIONS.max_tokens or 0)
        transcriber.hear(read_sound(Path(path), 16_000), options=options)
        said, subject = engine.heard_first, scene.subject
        assert subject.answers == [-1, -1, *said.ids, marks.end]
        assert subject.answer == whisper.tokenizer.decode([i for i in said.ids if i < marks.end]).strip()
        assert subject.inputs[1].tolist() == [[*engine.prompt, *said.ids]]  # type: ignore[union-attr]
        assert subject.target[0] == "<|startoftranscript|>"
        assert subject.target[2] == "<|transcribe|>"
        assert subject.target[3] == f"<{(said.ids[0] - marks.times) * 0.02:.2f}>"
        assert scene.data(ablate=False)["first"] == 2
        # The tree is of the ruled search: its path is the answer, and its sum what Whisper believes it by.
        assert [subject.beam[i].token for i in subject.best][: len(said.ids)] == said.ids
        n = len(said.ids)
        assert subject.beam[subject.best[-1]].total / (n + 1) == pytest.approx(said.average, abs=1e-4)
        assert {node.token >= marks.times for node in subject.beam if node.step == 1} == {True}


def test_the_numbers_are_those_of_the_whole_pass(whisper: LoadedModel, kinds: dict[str, Kind]) -> None:
    short, long = kinds["whisper"].scenes
    assert short.subject.source == [*(f"{0.02 * i:.2f} s" for i in range(50)), "silence"]
    assert long.subject.source[:2] == ["0.02 s", "0.08 s"]  # the middle ones of each three
    assert len(long.subject.source) == 67 + 1
    for scene in (short, long):
        check_numbers(whisper, scene)
    close(short.seen["source.input"], short.subject.inputs[0][:, :102])  # type: ignore[index]
    assert long.seen.n_bytes < 10e6 < 2 * 4 * 1500**2  # of which one head's weights would be one


def check_numbers(whisper: LoadedModel, scene: Scene) -> None:
    with torch.no_grad(), trace(whisper.model, ["*.weights", "head.logits"]) as whole:
        logits = whisper.model(*scene.subject.inputs)
    assert torch.equal(logits, scene.seen["head.logits"])
    join = scene.subject.join
    assert join is not None
    for kind, stack in (("cross", "decoder"), ("self", "encoder")):
        found, wanted = (attention_maps(seen, stack, kind) for seen in (scene.seen, whole))  # type: ignore[arg-type]
        wanted = wanted[:, :, join.middles] if stack == "encoder" else wanted
        for j, part in enumerate(wanted.split(list(join.sizes), dim=-1)):
            close(found[..., j], part.sum(-1))
        close(found.sum(-1), torch.ones(found.shape[:-1]))
    data = scene.data(ablate=False)
    assert [row["position"] for row in data["attribution"]] == list(range(2, len(data["target"])))
    for row in data["attribution"]:
        at = row["position"]
        assert sum(row["parts"].values()) == pytest.approx(float(logits[0, at, data["answers"][at]]), abs=1e-3)
        cross = sum(share for name, share in row["parts"].items() if "cross" in name)
        assert len(row["tokens"]["cross"]) == len(data["source"])
        assert sum(row["tokens"]["cross"]) == pytest.approx(cross, abs=1e-3)


def test_what_a_whisper_is_made_to_say_and_what_it_hears_of_long_recordings(
    whisper: LoadedModel, kinds: dict[str, Kind], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kinds["whisper"].places[0]
    forced = look_at(whisper, path, LookOptions(answer="the thing")).subject
    assert forced.answer == "the thing"
    assert forced.target[3] == "<|notimestamps|>"
    assert "".join(forced.target[4:]) == " the thing"
    assert (forced.beam, forced.ruled) == ([], False)
    long = look_at(whisper, str(write_sound(tmp_path / "a.wav", speechlike(31.0))), replace(OPTIONS, max_tokens=2))
    assert long.subject.text == "a.wav, the first 30 seconds"
    assert len(long.subject.source) <= 72
    assert "silence" not in long.subject.source
    write_sound(tmp_path / "click.wav", speechlike(0.005))
    with pytest.raises(UserError, match="holds no sound"):
        look_at(whisper, str(tmp_path / "click.wav"))
    # More than the rules leave at the beginning: what fills the beam is no part of the tree.
    wide = look_at(whisper, path, LookOptions(beam=60, max_tokens=2))
    assert 1 <= sum(node.step == 1 for node in wide.subject.beam) <= 51
    assert as_json(wide.data(ablate=False))
    # Not believed, it draws, and then there is no tree.
    monkeypatch.setattr("glassformer.tasks.whisper.TEMPERATURES", (0.0, 0.6))
    monkeypatch.setattr("glassformer.tasks.whisper.LEAST_AVERAGE", 1e9)
    monkeypatch.setattr("glassformer.tasks.whisper.SILENT", 2.0)
    assert look_at(whisper, path, OPTIONS).subject.beam == []
    monkeypatch.setattr("glassformer.tasks.whisper.SILENT", -1.0)
    assert look_at(whisper, path, OPTIONS).subject.answer == "(silence)"


def test_two_recordings_are_compared_without_patching(kinds: dict[str, Kind]) -> None:
    first, second = kinds["whisper"].scenes
    found = compare(first, second)
    assert found["own"] == pytest.approx(second.score())
    assert found["foreign"] != pytest.approx(found["own"])
    assert found["map"] is None


def test_the_page_computes_what_it_can(tab: Tab, kinds: dict[str, Kind], tmp_path: Path) -> None:
    for i, scene in enumerate(kinds["whisper"].scenes):
        page = make_page("ears", "transcribe", [scene], ablate=False)
        assert len(page.encode()) < 5_000_000
        (tmp_path / f"{i}.html").write_text(page, encoding="utf-8")
        tab.open(f"{(tmp_path / f'{i}.html').as_uri()}#walk")
        for kind, position, n_checks in (("cross", 3, 4 - i), ("encoder", 5, 4 - i), ("decoder", 3, 4)):
            tab.run(
                f"Page.choose({{ kind: Data.kinds().find((k) => k.id === '{kind}'), layer: 0, position: {position} }})"
            )
            text = tab.text("#view")
            assert "✗" not in text
            assert text.count("✓") >= n_checks, (kind, text)
        tab.run("Page.choose({ kind: Data.kinds()[0], layer: 0, key: Data.all.runs[0].source.length - 1 })")
        assert f"silence stands for {1500 - 50 if i == 0 else 1500 - 67 * 3} positions" in tab.text("#view")
        tab.run("location.hash = '#attention'")
        tab.until("document.querySelector('nav [aria-current]').getAttribute('href') === '#attention'")
        assert ("positions added up" in tab.text("#view")) == (i == 1)
        assert "positions of silence behind them" in tab.text("#view")
        assert f"From left to right {('1.00', '4.02')[i]} seconds" in tab.text("#view")
        maps = tab.run("Array.from(Data.weights(Data.all.runs[0], Data.kinds()[0], 1, 1).values)")
        wanted = attention_maps(scene.seen, "decoder", "cross")[1, 1].flatten().tolist()
        assert maps == pytest.approx(wanted, abs=1e-6)
    assert tab.complaints == []
