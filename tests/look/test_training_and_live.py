"""A run's page and the page that is served."""

import json
import shutil
import socket
import struct
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
import torch

from glassformer.cli.main import run as run_command
from glassformer.data.labels import Labels
from glassformer.errors import UserError
from glassformer.look import training as look_training
from glassformer.look.live import HERE, answer_query, make_server
from glassformer.look.scene import look_at, scene_of
from glassformer.look.subject import LookOptions
from glassformer.look.training import _spread, make_training_page, training_data, write_training_page
from glassformer.model.lora import LoraSettings, add_lora
from glassformer.tasks.model_dir import LoadedModel, load_model, save_adapter
from glassformer.train.checkpoint import trained, write_checkpoint
from tests.browser import Tab
from tests.look.conftest import classifier

TEXT, OPTIONS = "the old man", LookOptions(beam=2, max_tokens=4)


@pytest.fixture(scope="module")
def run(translator: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run: metrics, an early state that looks everywhere alike, and a validated one."""
    folder = tmp_path_factory.mktemp("run") / "mine"
    shutil.copytree(translator.path, folder)
    model = load_model(folder).model
    write_checkpoint(folder / "checkpoints" / "weights-00000200.safetensors", trained(model), {})
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "w_q" in name:
                p.zero_()
    write_checkpoint(
        folder / "early" / "weights-00000016.safetensors", {name: p.half() for name, p in trained(model).items()}, {}
    )
    entries = [
        {"step": 100, "epoch": 0, "loss": 5.0, "lr": 1e-3},
        {"step": 100, "epoch": 0, "valid_loss": 4.5, "samples": ["the old man → <b>der</b>"]},
        {"step": 200, "epoch": 1, "loss": 4.0, "lr": 5e-4, "bad": float("nan")},
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(e) + "\n" for e in entries) + '{"step": 3')
    return folder


def test_a_run_is_told_by_its_metrics_and_saved_states(run: Path) -> None:
    data = training_data(run, TEXT, OPTIONS)
    assert data["curves"] == {
        "loss": [[100, 5.0], [200, 4.0]],
        "lr": [[100, 1e-3], [200, 5e-4]],
        "valid_loss": [[100, 4.5]],
    }
    assert data["samples"] == [{"step": 100, "samples": ["the old man → <b>der</b>"]}]
    steps = data["states"]["steps"]
    assert [state["step"] for state in steps] == ["16", "200", "end"]
    end = look_at(load_model(run), TEXT, OPTIONS)
    name = "decoder.blocks.1.cross_attention"
    wanted = end.seen[f"{name}.weights"][0]
    for state in steps[1:]:
        torch.testing.assert_close(torch.tensor(state["weights"][name]), wanted, atol=1e-4, rtol=1e-3)
        assert state["score"] == pytest.approx(end.score(), abs=1e-4)
    m = wanted.shape[-1]
    torch.testing.assert_close(
        torch.tensor(steps[0]["weights"][name]), torch.full_like(wanted, 1 / m), atol=1e-4, rtol=1e-3
    )
    assert training_data(run, None, OPTIONS)["states"] is None


def test_a_run_beside_a_model_is_told_by_its_detours(completer: LoadedModel, tmp_path: Path) -> None:
    model, lora = load_model(completer.path).model, LoraSettings(rank=2)
    add_lora(model, lora)
    write_checkpoint(tmp_path / "early" / "weights-00000001.safetensors", trained(model), {})  # nothing learned
    with torch.no_grad():
        for name, p in trained(model).items():
            p.copy_(torch.linspace(-1, 1, p.numel()).view_as(p) if name.endswith(".b") else p)
    write_checkpoint(tmp_path / "checkpoints" / "weights-00000200.safetensors", trained(model), {})
    save_adapter(tmp_path, "complete", model, lora, str(completer.path), {})
    (tmp_path / "metrics.jsonl").write_text('{"step": 200, "loss": 4.0}\n')
    told = training_data(tmp_path, TEXT, OPTIONS)["states"]
    scores = {state["step"]: state["score"] for state in told["steps"]}
    assert scores["200"] == pytest.approx(scores["end"], abs=1e-4)
    said = look_at(load_model(tmp_path), TEXT, OPTIONS).subject
    before = scene_of(completer.model, said).score()
    assert scores["1"] == pytest.approx(before, abs=1e-4)
    assert abs(scores["1"] - scores["end"]) > 0.01


def test_what_was_frozen_is_not_asked_of_a_saved_state(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "frozen", ignore=shutil.ignore_patterns("early"))
    tensors = {name: p for name, p in trained(load_model(run).model).items() if name.startswith("decoder")}
    write_checkpoint(tmp_path / "frozen" / "checkpoints" / "weights-00000200.safetensors", tensors, {})
    last, end = training_data(tmp_path / "frozen", TEXT, OPTIONS)["states"]["steps"]
    assert last["score"] == pytest.approx(end["score"], abs=1e-4)


def test_a_page_has_room_for_so_many_states(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [_spread(list(range(9)), most) for most in (2, 3, 9, 20)] == [[0, 8], [0, 4, 8], [*range(9)], [*range(9)]]
    for step in (32, 64, 128):
        shutil.copy(run / "early" / "weights-00000016.safetensors", run / "early" / f"weights-{step:08d}.safetensors")
    monkeypatch.setattr(look_training, "ROOM", 0)
    steps = training_data(run, TEXT, OPTIONS)["states"]["steps"]
    for step in (32, 64, 128):
        (run / "early" / f"weights-{step:08d}.safetensors").unlink()
    assert [state["step"] for state in steps] == ["16", "200", "end"]


def test_what_is_no_run_is_refused(run: Path, translator: LoadedModel, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no metrics\.jsonl with entries"):
        training_data(translator.path, None, OPTIONS)
    shutil.copytree(run, tmp_path / "bare", ignore=shutil.ignore_patterns("checkpoints", "early"))
    with pytest.raises(UserError, match="has no saved weights"):
        training_data(tmp_path / "bare", TEXT, OPTIONS)


def test_the_page_of_a_regression_shows_its_numbers(tab: Tab, tmp_path: Path) -> None:
    folder = tmp_path / "number"
    model = classifier(folder, Labels("number")).model
    write_checkpoint(folder / "checkpoints" / "weights-00000200.safetensors", trained(model), {})
    (folder / "metrics.jsonl").write_text('{"step": 200, "loss": 4.0}\n')
    write_training_page(tmp_path / "t.html", folder, TEXT, OPTIONS)
    tab.open((tmp_path / "t.html").as_uri())
    wanted = float(look_at(load_model(folder), TEXT, OPTIONS).subject.answer)
    shown = [float(text.replace("−", "-")) for text in tab.texts("[data-step] > p")]
    assert shown == pytest.approx([wanted, wanted], abs=6e-4)
    assert "share" not in tab.text("#view section")


def test_the_run_s_page_opens(tab: Tab, run: Path, tmp_path: Path) -> None:
    write_training_page(tmp_path / "t.html", run, TEXT, OPTIONS)
    for width in (1200, 360):
        tab.size(width, 800)
        tab.open((tmp_path / "t.html").as_uri())
        assert tab.run("[...document.querySelectorAll('[data-curve]')].map((f) => f.dataset.curve)") == [
            "loss",
            "lr",
            "valid_loss",
        ]
        assert tab.run("[...document.querySelectorAll('[data-step]')].map((f) => f.dataset.step)") == [
            "16",
            "200",
            "end",
        ]
        assert "<b>der</b>" in tab.run("document.getElementById('view').innerText")
        assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.complaints == []
    assert set(tab.requests) == {(tmp_path / "t.html").as_uri()}


@contextmanager
def serving(loaded: LoadedModel) -> Iterator[str]:
    def answer(texts: list[str]) -> tuple[int, str]:
        return answer_query(loaded, "tiny", OPTIONS, False, texts, "the station")

    with make_server(0, answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://{HERE}:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def address(translator: LoadedModel) -> Iterator[str]:
    with serving(translator) as found:
        yield found


def port_of(address: str) -> int:
    return int(address.rsplit(":", 1)[1].strip("/"))


def get(address: str, host: str | None = None) -> tuple[int, str]:
    request = urllib.request.Request(address, headers={} if host is None else {"Host": host})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_the_served_page_follows_what_is_asked(address: str, completer: LoadedModel) -> None:
    status, page = get(address)
    assert status == 200
    assert 'value="the station"' in page
    evil = quote('<b>"x')
    status, page = get(f"{address}?text={quote('the old man')}&text={evil}")
    assert status == 200
    assert 'value="&lt;b&gt;&quot;x"' in page
    assert "form-action 'self'" in page
    with serving(completer) as other:
        status, page = get(f"{other}?text={quote('the ' * 300)}")
    assert status == 400
    assert "look shows at most" in page
    assert get(f"{address}other")[0] == 404
    assert get(address, host="evil.example")[0] == 404


def test_an_idle_connection_keeps_nobody_waiting(address: str) -> None:
    with socket.create_connection((HERE, port_of(address))):
        assert get(f"{address}other")[0] == 404


def test_a_reader_who_leaves_early_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    gone = threading.Event()

    def answer(_: list[str]) -> tuple[int, str]:
        gone.wait(10)
        return 200, "x" * 10_000_000

    with make_server(0, answer) as server:
        server.daemon_threads = False  # so that closing it waits for what they print
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        with socket.create_connection((HERE, server.server_port)) as reader:
            reader.sendall(f"GET / HTTP/1.1\r\nHost: {HERE}\r\n\r\n".encode())
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # leaves at once
        gone.set()
        # The next is answered, so that the first was taken up before the server ends.
        assert get(f"http://{HERE}:{server.server_port}/other")[0] == 404
        server.shutdown()
        thread.join()
    assert capsys.readouterr().err == ""


def test_a_port_that_is_taken_is_said(address: str) -> None:
    taken = port_of(address)
    with pytest.raises(UserError, match=rf"Port {taken} cannot be used.*Give another --port"):
        make_server(taken, lambda _: (200, ""))
    with pytest.raises(UserError, match="The port is 70000"):
        make_server(70000, lambda _: (200, ""))


def test_a_model_that_reads_files_is_served_with_one_to_begin_with(
    pictures: LoadedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        run_command(["look", str(pictures.path), "--live"])
    assert stop.value.code == 2
    assert "reads files, not text. Give one as INPUT to begin with." in capsys.readouterr().err


def test_the_form_in_the_page_looks_at_another_input(tab: Tab, address: str) -> None:
    tab.open(address)
    tab.run("document.querySelector('.live input').value = 'the young woman'")
    tab.run("document.querySelector('.live button').click()")
    tab.until("document.querySelector('h1')?.innerText.includes('young')")
    assert tab.complaints == []


def test_others_are_not_told_where_the_files_lie(tmp_path: Path) -> None:
    said = ["said 1, is 3: /home/a b/data/x.gz picture 7", "either/or is a word, 1 / 2 a number"]
    entry = json.dumps({"step": 1, "valid_loss": 1.0, "samples": said})
    (tmp_path / "metrics.jsonl").write_text(entry + "\n", encoding="utf-8")
    own, served = (make_training_page(tmp_path, None, LookOptions(), name) for name in (None, "eyes"))
    assert said[0] in own
    assert "/home" not in served
    assert "is 3: x.gz picture 7" in served
    assert said[1] in served
    assert "The training of eyes" in served
