"""Whisper comes in from both houses with equal numbers, tokens and rules; both engines say the same."""

import base64
import functools
import itertools
import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import WhisperConfig, WhisperForConditionalGeneration
from transformers.generation.logits_process import WhisperTimeStampLogitsProcessor

from glassformer.decode.options import DecodeOptions
from glassformer.errors import UserError
from glassformer.exchange.importing import import_model
from glassformer.exchange.whisper_tokenizer import read_whisper_tokenizer
from glassformer.fast.ctranslate2_whisper import CTranslate2Whisper
from glassformer.tasks.model_dir import load_model
from glassformer.tasks.whisper import WhisperTranscriber, cut_at_times, whisper_marks
from glassformer.tasks.whisper_marks import LANGUAGES, find_marks, mark_names
from glassformer.tasks.whisper_steps import RuledSteps, TorchWhisper
from tests.data.sounds import speechlike, write_sound

MERGED = [b"th", b"the", b" the", b"he", b" a", b"in", b"ing"]
TOKENS = [bytes([i]) for i in range(256)] + MERGED
N_ROWS = len(TOKENS) + len(mark_names(99))


def write_ranks(path: Path) -> Path:
    path.write_text("".join(f"{base64.b64encode(token).decode()} {i}\n" for i, token in enumerate(TOKENS)))
    return path


def theirs(n_rows: int = N_ROWS, **changes: bool) -> WhisperForConditionalGeneration:
    torch.manual_seed(0)
    config = WhisperConfig(
        vocab_size=n_rows,
        num_mel_bins=80,
        d_model=32,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        begin_suppress_tokens=[3],
        **changes,
    )
    model = WhisperForConditionalGeneration(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return model.eval()


# Written down anew, and not read off the code: OpenAI's word for each of Hugging Face's.
WORDS = {
    "self_attn_layer_norm": "attn_ln",
    "encoder_attn_layer_norm": "cross_attn_ln",
    "final_layer_norm": "mlp_ln",
    "self_attn": "attn",
    "encoder_attn": "cross_attn",
    "q_proj": "query",
    "k_proj": "key",
    "v_proj": "value",
    "out_proj": "out",
    "fc1": "mlp.0",
    "fc2": "mlp.2",
    "layers": "blocks",
    "embed_tokens": "token_embedding",
}


def openai_name(name: str) -> str:
    parts = name.removeprefix("model.").split(".")
    if parts[1] == "embed_positions":
        return f"{parts[0]}.positional_embedding"
    if parts[1] == "layer_norm":
        parts[1] = "ln_post" if parts[0] == "encoder" else "ln"
    return ".".join(WORDS.get(part, part) for part in parts)


def write_openai(model: WhisperForConditionalGeneration, path: Path) -> Path:
    state = {openai_name(name): w for name, w in model.state_dict().items() if not name.startswith("proj_out")}
    dims = {"n_mels": 80, "n_vocab": model.config.vocab_size, "n_audio_ctx": 1500, "n_text_ctx": 448}
    for side, n_layers in (("audio", 1), ("text", 2)):
        dims |= {f"n_{side}_state": 32, f"n_{side}_head": 2, f"n_{side}_layer": n_layers}
    torch.save({"dims": dims, "model_state_dict": state}, path)
    return path


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whisper")
    write_ranks(folder / "gpt2.tiktoken")
    import_model(write_openai(theirs(), folder / "small.pt"), folder / "out")
    return folder / "out"


def test_openais_file_gives_their_numbers(imported: Path) -> None:
    model = load_model(imported).model
    frames, ids = torch.randn(1, 3000, 80), torch.randint(N_ROWS, (1, 9))
    with torch.no_grad():
        wanted = theirs()(frames.mT, decoder_input_ids=ids).logits
        assert (model(frames, ids) - wanted).abs().max() < 1e-4
    report = json.loads((imported / "import.json").read_text())
    assert all(check["passed"] for check in report["checks"])


@pytest.mark.parametrize("shard", ["1GB", "100KB"])
def test_hugging_faces_folder_gives_their_numbers(tmp_path: Path, shard: str) -> None:
    model = theirs()
    model.save_pretrained(tmp_path / "source", max_shard_size=shard)
    assert (tmp_path / "source" / "model.safetensors").exists() == (shard == "1GB")
    ranks = write_ranks(tmp_path / "a.tiktoken")
    read_whisper_tokenizer(ranks, N_ROWS).core.save(str(tmp_path / "source" / "tokenizer.json"))
    import_model(tmp_path / "source", tmp_path / "out")
    frames, ids = torch.randn(1, 3000, 80), torch.randint(N_ROWS, (1, 9))
    with torch.no_grad():
        wanted = model(frames.mT, decoder_input_ids=ids).logits
        assert (load_model(tmp_path / "out").model(frames, ids) - wanted).abs().max() < 1e-4


def plain_bpe(text: str) -> list[int]:
    """Join the pair of the lowest rank, again and again; no word here spans a pair."""
    ids: list[int] = []
    words = text.replace(" ", "\0 ").split("\0")
    for word in words:
        parts = [bytes([b]) for b in word.encode()]
        while True:
            pairs = [(TOKENS.index(a + b), i) for i, (a, b) in enumerate(itertools.pairwise(parts)) if a + b in TOKENS]
            if not pairs:
                break
            _, i = min(pairs)
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
        ids += [TOKENS.index(part) for part in parts]
    return ids


@pytest.mark.parametrize("text", ["the thing", "a the he", "ththe", " thing in a ring", "héé ü"])
def test_tokens_are_those_of_the_ranks(tmp_path: Path, text: str) -> None:
    tokenizer = read_whisper_tokenizer(write_ranks(tmp_path / "a.tiktoken"), N_ROWS)
    assert tokenizer.encode(text) == plain_bpe(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_empty_token_of_multilingual_files(tmp_path: Path) -> None:
    path = write_ranks(tmp_path / "a.tiktoken")
    path.write_text(f"{path.read_text()}= {len(TOKENS)}\n")
    tokenizer = read_whisper_tokenizer(path, N_ROWS + 1)
    assert tokenizer.core.token_to_id("<|endoftext|>") == len(TOKENS) + 1
    assert tokenizer.encode("the thing") == plain_bpe("the thing")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # theirs leaves the file open
def test_openais_multilingual_file() -> None:
    """The real file gives the ids of OpenAI's own tokenizer."""
    openai = pytest.importorskip("whisper")
    pytest.importorskip("tiktoken")
    from whisper.tokenizer import get_tokenizer

    theirs = get_tokenizer(True, num_languages=99)
    path = Path(openai.__file__).parent / "assets" / "multilingual.tiktoken"
    ours = read_whisper_tokenizer(path, theirs.encoding.n_vocab)
    for text in ("Guten Tag, wie geht's?", " 今日は 12 度です。", "à bientôt"):
        assert ours.encode(text) == theirs.encode(text)
        assert ours.decode(ours.encode(text)) == text
    assert find_marks(ours, True).times == theirs.timestamp_begin


def test_marks_stand_where_whisper_has_them(tmp_path: Path) -> None:
    tokenizer = read_whisper_tokenizer(write_ranks(tmp_path / "a.tiktoken"), N_ROWS)
    marks = find_marks(tokenizer, True)
    n = len(TOKENS)
    assert (marks.end, marks.start) == (n, n + 1)
    assert list(marks.languages.values()) == list(range(n + 2, n + 101))
    assert marks.no_times == marks.times - 1
    assert marks.times == N_ROWS - 1501
    assert marks.prompt("de", "translate") == [n + 1, n + 2 + LANGUAGES.index("de"), marks.tasks["translate"]]
    with pytest.raises(UserError, match="does not know the language 'xx'"):
        marks.prompt("xx", "transcribe")
    with pytest.raises(UserError, match="knows English only"):
        find_marks(tokenizer, False).prompt("de", "transcribe")


class FixedSteps:
    """Scores that do not depend on anything."""

    def __init__(self, scores: torch.Tensor) -> None:
        self.scores = scores

    def step(self, ids: torch.Tensor) -> torch.Tensor:
        return self.scores[: len(ids)]

    def select(self, rows: torch.Tensor, sentences: torch.Tensor | None = None) -> None: ...


@given(
    st.lists(st.one_of(st.integers(0, 20), st.integers(N_ROWS - 1501, N_ROWS - 1400)), max_size=5), st.integers(0, 99)
)
def test_times_are_ruled_as_in_transformers(imported: Path, said: list[int], seed: int) -> None:
    marks = whisper_marks(load_cached(imported))
    scores = 3 * torch.randn(1, N_ROWS, generator=torch.Generator().manual_seed(seed))
    steps = RuledSteps(FixedSteps(scores), marks, 1, with_times=True)
    steps.step(torch.tensor([[marks.start]]))
    found = scores
    for token in said:
        found = steps.step(torch.tensor([[token]]))
    if not said:
        found = RuledSteps(FixedSteps(scores), marks, 1, with_times=True).step(torch.tensor([[marks.start]]))
    config = type("C", (), {"no_timestamps_token_id": marks.no_times, "eos_token_id": marks.end, "bos_token_id": 1})()
    config.max_initial_timestamp_index = 50
    theirs = WhisperTimeStampLogitsProcessor(config, begin_index=1)
    allowed = scores.clone()
    allowed[:, list(marks.silent)] = -torch.inf
    if not said:
        allowed[:, list(marks.blank)] = -torch.inf
    wanted = theirs(torch.tensor([[marks.start, *said]]), allowed)
    assert torch.equal(found.isinf(), wanted.isinf())


load_cached = functools.cache(load_model)


def test_sentences_between_times() -> None:
    t = 1000  # the first time
    one = [t, 5, 6, t + 50]
    assert cut_at_times(one, 3000, t) == ([(one, 0.0, 1.0)], 3000)
    two = [t, 5, t + 50, t + 50, 6, t + 100]
    assert cut_at_times(two, 3000, t) == ([([t, 5, t + 50], 0.0, 1.0), ([t + 50, 6, t + 100], 1.0, 2.0)], 3000)
    open_end = [t, 5, t + 50, t + 50, 6, 7]
    parts, done = cut_at_times(open_end, 3000, t)
    assert parts == [([t, 5, t + 50], 0.0, 1.0)]
    assert done == 100
    assert cut_at_times([5, 6], 250, t) == ([([5, 6], 0.0, 2.5)], 250)
    assert cut_at_times([], 250, t) == ([], 250)


@pytest.mark.parametrize("by_torch", [True, False])
def test_engines_agree(imported: Path, by_torch: bool) -> None:
    loaded = load_cached(imported)
    marks = whisper_marks(loaded)
    fast = CTranslate2Whisper(loaded.model, loaded.tokenizer, marks, "float32")
    fast.by_torch = by_torch
    slow = TorchWhisper(loaded.model, marks)
    for seed in range(2):
        window = torch.randn(300 + 100 * seed, 80, generator=torch.Generator().manual_seed(seed))
        one, two = (e.say(window, [marks.start], DecodeOptions(beam=1, max_len=12)) for e in (fast, slow))
        assert one.ids == two.ids
        assert one.average == pytest.approx(two.average, abs=1e-3)
        assert one.no_speech == pytest.approx(two.no_speech, abs=1e-4)


def test_files_are_heard(imported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glassformer.tasks.whisper.TEMPERATURES", (0.0, 0.6))
    good = write_sound(tmp_path / "a.wav", speechlike(1.0))
    (tmp_path / "bad.wav").write_text("no sound")
    whisper = WhisperTranscriber(load_cached(imported))
    heard, bad = whisper.transcribe_files([good, tmp_path / "bad.wav"], DecodeOptions(beam=1, max_len=8), details=True)
    assert isinstance(bad, UserError)
    assert heard.seconds == 1.0
    for segment in heard.segments:
        assert 0 <= segment.start <= segment.end


@pytest.mark.parametrize("fast", [True, False])
def test_the_longest_reminder_leaves_room(imported: Path, fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glassformer.tasks.whisper.TEMPERATURES", (0.0,))
    loaded = load_cached(imported)
    marks = find_marks(loaded.tokenizer, True)
    engine = CTranslate2Whisper(loaded.model, loaded.tokenizer, marks, "float32") if fast else None
    whisper = WhisperTranscriber(loaded, engine)
    prompt = [marks.previous, *[5] * 223, *marks.prompt("de", "transcribe")]
    said, _ = whisper.say(torch.randn(300, 80), prompt, whisper.fit(DecodeOptions(beam=1)))
    assert len(said.ids) <= whisper.n_context - len(prompt)
    short, _ = whisper.say(torch.randn(300, 80), prompt, DecodeOptions(beam=1, max_len=5))
    assert len(short.ids) == 5


def test_scores_of_their_own(tmp_path: Path) -> None:
    """A Whisper whose last layer is not its table of tokens."""
    model = theirs(tie_word_embeddings=False)
    assert not torch.equal(model.proj_out.weight, model.model.decoder.embed_tokens.weight)
    model.save_pretrained(tmp_path / "source")
    import_model(tmp_path / "source", tmp_path / "out", tokenizer=write_ranks(tmp_path / "a.tiktoken"))
    frames, ids = torch.randn(1, 3000, 80), torch.randint(N_ROWS, (1, 9))
    with torch.no_grad():
        wanted = model(frames.mT, decoder_input_ids=ids).logits
        assert (load_model(tmp_path / "out").model(frames, ids) - wanted).abs().max() < 1e-4


def test_a_config_that_cannot_be_read(tmp_path: Path) -> None:
    theirs().save_pretrained(tmp_path / "source")
    path, ranks = tmp_path / "source" / "config.json", write_ranks(tmp_path / "a.tiktoken")
    good = json.loads(path.read_text())
    without = {name: value for name, value in good.items() if name != "vocab_size"}
    for config in (without, *({**good, "vocab_size": junk} for junk in (None, "many", -1, True, 1.5, [3]))):
        path.write_text(json.dumps(config))
        with pytest.raises(UserError, match="has vocab_size = "):
            import_model(tmp_path / "source", tmp_path / "out", tokenizer=ranks)
    path.write_text(json.dumps({**good, "activation_function": "relu"}))
    with pytest.raises(UserError, match="activation_function = 'relu', but"):
        import_model(tmp_path / "source", tmp_path / "out", tokenizer=ranks)
    left_out = {name: value for name, value in good.items() if name != "activation_function"}
    path.write_text(json.dumps(left_out))
    import_model(tmp_path / "source", tmp_path / "out", tokenizer=ranks)


def test_the_tokenizer_of_another_model(tmp_path: Path) -> None:
    """A tokenizer.json with a token more or fewer would put every mark beside its row."""
    path = tmp_path / "tokenizer.json"
    read_whisper_tokenizer(write_ranks(tmp_path / "a.tiktoken"), N_ROWS).core.save(str(path))
    read_whisper_tokenizer(path, N_ROWS)
    read_whisper_tokenizer(path, N_ROWS + -N_ROWS % 8)  # filled up to a round number
    odd = [n for n in range(N_ROWS + 1, N_ROWS + 20) if n % 8]
    for n in (N_ROWS - 1, N_ROWS - 8, *odd, 8 * N_ROWS):
        with pytest.raises(UserError, match=f"for {N_ROWS:,} rows, which does not suit a model of {n:,} rows"):
            read_whisper_tokenizer(path, n)
    # Files from before the times were written into them.
    data = json.loads(path.read_text())
    data["added_tokens"] = [token for token in data["added_tokens"] if not token["content"][2:3].isdigit()]
    path.write_text(json.dumps(data))
    assert find_marks(read_whisper_tokenizer(path, N_ROWS), True).times == N_ROWS - 1501
    with pytest.raises(UserError, match="does not suit"):
        read_whisper_tokenizer(path, odd[0])


def test_what_is_refused(imported: Path, tmp_path: Path) -> None:
    ranks = write_ranks(tmp_path / "a.tiktoken")
    torch.save({"weights": torch.zeros(2)}, tmp_path / "other.pt")
    with pytest.raises(UserError, match="holds no Whisper"):
        import_model(tmp_path / "other.pt", tmp_path / "out")
    path = write_openai(theirs(), tmp_path / "a.pt")
    with pytest.raises(UserError, match="no tokenizer beside"):
        import_model(path, tmp_path / "out")
    with pytest.raises(UserError, match="does not suit a model"):
        read_whisper_tokenizer(ranks, N_ROWS + 300)
    (tmp_path / "b.tiktoken").write_text("IQ== 0\nIg== 7\n")
    with pytest.raises(UserError, match="Line 2"):
        read_whisper_tokenizer(tmp_path / "b.tiktoken", N_ROWS)
    assert not (tmp_path / "out").exists()
    with pytest.raises(UserError, match="knows English only"):
        WhisperTranscriber(load_cached(imported), language="de")
