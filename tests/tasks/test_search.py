"""The nearest texts, and the file that keeps their vectors."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from glassformer.errors import UserError
from glassformer.tasks.embedder import Embedder
from glassformer.tasks.model_dir import load_model, save_model
from glassformer.tasks.search import SearchIndex, Texts, keep_index, make_index, read_texts
from tests.exchange.foreign_models import SENTENCES
from tests.tasks.test_embedder import WORDS, loaded


@pytest.fixture
def embedder(tmp_path: Path) -> Embedder:
    one = loaded("pre-norm")
    save_model(tmp_path / "model", "embed", one.model, WORDS)
    return Embedder(load_model(tmp_path / "model"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n\n".join(SENTENCES) + "\n")
    return path


def test_lines_keep_their_numbers(file: Path, tmp_path: Path) -> None:
    texts = read_texts(file)
    assert texts == Texts(SENTENCES, [1, 3, 5, 7])
    (tmp_path / "packed").write_bytes(gzip.compress(file.read_bytes()))
    assert read_texts(tmp_path / "packed") == texts
    (tmp_path / "empty").write_text("\n \n")
    with pytest.raises(UserError, match="nothing but empty lines"):
        read_texts(tmp_path / "empty")


def test_a_text_finds_itself_first(embedder: Embedder, file: Path) -> None:
    index = make_index(embedder, read_texts(file))
    for i, hits in enumerate(index.search(embedder, SENTENCES, top=10)):
        assert len(hits) == 4  # not more than there are
        assert (hits[0].text, hits[0].line) == (SENTENCES[i], 2 * i + 1)
        assert hits[0].score == pytest.approx(1, abs=1e-5)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert len(index.search(embedder, ["a"], top=2)[0]) == 2
    with pytest.raises(UserError, match="top is 0"):
        index.search(embedder, ["a"], top=0)


def test_scores_are_cosines(embedder: Embedder) -> None:
    index = make_index(embedder, Texts(SENTENCES, [1, 2, 3, 4]))
    a, b = embedder.embed(["a ball"], normalise=False)[0], embedder.embed(SENTENCES, normalise=False)
    cosines = b @ a / np.linalg.norm(a) / np.linalg.norm(b, axis=1)
    for hit in index.search(embedder, ["a ball"])[0]:
        assert hit.score == pytest.approx(cosines[hit.line - 1], abs=1e-5)


def test_equals_come_in_their_order(embedder: Embedder) -> None:
    vectors = np.repeat(embedder.embed(["a"], normalise=True), 5, axis=0)
    index = SearchIndex(Texts(list("abcde"), [1, 2, 3, 4, 5]), vectors)
    assert [hit.line for hit in index.search(embedder, ["a"], top=3)[0]] == [1, 2, 3]


def test_an_index_is_read_while_it_fits(embedder: Embedder, file: Path, tmp_path: Path) -> None:
    texts, path = read_texts(file), tmp_path / "index.npz"
    first, done = keep_index(embedder, texts, path)
    assert done == "made"
    second, done = keep_index(embedder, texts, path)
    assert done == "read"
    np.testing.assert_array_equal(first.vectors, second.vectors)

    other = Texts([*texts.texts[:3], "another"], texts.lines)
    assert keep_index(embedder, other, path)[1] == "made again"
    assert keep_index(embedder, other, path)[1] == "read"

    settings = embedder.loaded.path / "settings.json"
    settings.write_text(settings.read_text() + "\n")
    assert keep_index(embedder, other, path)[1] == "made again"


def test_what_is_no_index_stays_as_it_is(embedder: Embedder, file: Path, tmp_path: Path) -> None:
    path, texts = tmp_path / "data.npz", read_texts(file)
    for content in (b"something else", b""):
        path.write_bytes(content)
        with pytest.raises(UserError, match="is no index of texts"):
            keep_index(embedder, texts, path)
        assert path.read_bytes() == content
    for arrays in ({"x": np.zeros(3)}, {"key": np.array("k"), "vectors": np.array([object()])}):
        np.savez(path, **arrays)
        with pytest.raises(UserError, match="is no index of texts"):
            keep_index(embedder, texts, path)
    np.savez(path, key=np.array("k"), vectors=np.full((2, 3), np.nan, dtype=np.float32))
    with pytest.raises(UserError, match="its vectors are none"):
        keep_index(embedder, texts, path)
    with pytest.raises(UserError, match=r"it is an .npz file"):
        keep_index(embedder, texts, tmp_path / "index.json")
