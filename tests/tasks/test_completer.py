"""Completion: batched = alone, cached = uncached, streamed = whole, and everything that ends an answer."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer import config
from glassformer.data.tokenizer import END, Marks, Tokenizer, train_tokenizer
from glassformer.decode.complete_options import CompleteOptions
from glassformer.errors import UserError
from glassformer.exchange.pieces import scored_pieces_tokenizer
from glassformer.model import DecoderOnly, build
from glassformer.model.settings import DecoderOnlySettings
from glassformer.tasks import generator as generator_file
from glassformer.tasks.completer import Completer, TextWriter
from glassformer.tasks.generator import Generator
from glassformer.tasks.model_dir import LoadedModel

TEXTS = ["the cat sat on the mat and the dog", "ein Hündchen läuft über die Straße €", "1 2 3 4 5 6"]
KINDS = {
    "rotary": ("none", {"rotary": {}, "n_kv_heads": 1}),
    "learned": ({"kind": "learned", "max_len": 40}, {}),
    "sinusoidal": ({"kind": "sinusoidal"}, {}),
}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TEXTS * 3, "bpe", 300, sentences=False)


def model_of(kind: str, vocab_size: int) -> DecoderOnly:
    positions, attention = KINDS[kind]
    torch.manual_seed(1)
    data = {
        "source": {"kind": "tokens", "vocab_size": vocab_size, "positions": positions},
        "decoder": {
            "d_model": 16,
            "n_layers": 2,
            "attention": {"n_heads": 2} | attention,
            "feed_forward": {"d_ff": 16},
        },
    }
    model = build(config.parse(DecoderOnlySettings, data))
    assert isinstance(model, DecoderOnly)
    for parameter in model.parameters():
        parameter.data.mul_(3)  # far from uniform
    return model.eval()


@pytest.fixture(scope="module", params=sorted(KINDS))
def completer(request: pytest.FixtureRequest, tokenizer: Tokenizer) -> Completer:
    model = model_of(request.param, tokenizer.vocab_size)
    return Completer(LoadedModel(Path("model"), "complete", model, tokenizer, tokenizer, {}))


@torch.inference_mode()
def uncached(completer: Completer, prompt: str, n: int) -> list[int]:
    """Greedy by the textbook: the whole text through the model for every token."""
    ids = completer.prompt_ids(prompt)
    begin = len(ids)
    for _ in range(n):
        ids.append(int(completer.model(torch.tensor([ids]))[0, -1].argmax()))
        if ids[-1] == END:
            break
    return ids[begin:]


PROMPTS = ["the cat", "", "ein Hündchen läuft über die", "1"]


def test_greedy_equals_the_textbook_alone_and_in_a_batch(completer: Completer) -> None:
    options = CompleteOptions(max_tokens=12, temperature=0)
    together = completer.complete_all(PROMPTS, options)
    for prompt, [answer] in zip(PROMPTS, together, strict=True):
        ids = uncached(completer, prompt, 12)
        wanted = [i for i in ids if i != END]
        assert answer.tokens == completer.tokenizer.tokens(wanted)
        assert answer.finish == ("end" if END in ids else "length")
        [[alone]] = completer.complete_all([prompt], options)
        assert alone.tokens == answer.tokens
        assert alone.log_p == pytest.approx(answer.log_p, abs=1e-4)


def test_a_seed_draws_the_same_alone_in_a_batch_and_streamed(completer: Completer) -> None:
    options = CompleteOptions(max_tokens=10, temperature=1.3, top_k=40, seed=5, n=2)
    together = completer.complete_all(PROMPTS, options)
    for prompt, answers in zip(PROMPTS, together, strict=True):
        [alone] = completer.complete_all([prompt], options)
        assert [a.text for a in alone] == [a.text for a in answers]
        assert len({a.text for a in answers}) == 2  # the samples of one prompt differ
        streamed = "".join(completer.stream(prompt, CompleteOptions(max_tokens=10, temperature=1.3, top_k=40, seed=5)))
        assert streamed == answers[0].text


def test_long_prompts_are_read_in_chunks(completer: Completer, monkeypatch: pytest.MonkeyPatch) -> None:
    options = CompleteOptions(max_tokens=6, temperature=0)
    whole = completer.complete_all([TEXTS[1], "1"], options)
    monkeypatch.setattr(generator_file, "CHUNK", 3)
    assert [a[0].tokens for a in completer.complete_all([TEXTS[1], "1"], options)] == [a[0].tokens for a in whole]


def test_prompt_longer_than_the_context(tokenizer: Tokenizer) -> None:
    completer = Completer(
        LoadedModel(Path("m"), "complete", model_of("learned", tokenizer.vocab_size), tokenizer, tokenizer, {})
    )
    prompt = "1 2 3 4 5 6 7 8 9 " * 6
    with pytest.raises(UserError, match=r"The prompt has \d+ tokens, but the model sees only 40"):
        completer.complete_all([prompt])
    with pytest.raises(UserError, match=r"Prompt 2 has \d+ tokens"):
        completer.complete_all(["the", prompt])
    [[answer]] = completer.complete_all([prompt], CompleteOptions(max_tokens=70, seed=1, slide=True))
    assert len(answer.tokens) == 70 or answer.finish == "end"
    # Without sliding, an answer ends where the context does.
    [[short]] = completer.complete_all(["the"], CompleteOptions(max_tokens=500, seed=1))
    seen = len(completer.prompt_ids("the")) + len(short.tokens) - 1  # the last one is not read again
    assert seen == 40 or short.finish == "end"


@pytest.mark.parametrize("slide", [False, True])
@pytest.mark.parametrize("kind", ["learned", "rotary"])
def test_each_row_has_a_context_of_its_own(tokenizer: Tokenizer, kind: str, slide: bool) -> None:
    model, options = model_of(kind, tokenizer.vocab_size), CompleteOptions(max_tokens=60, temperature=0, slide=slide)
    prompts = [[5 + i % 7 for i in range(n)] for n in (3, 39, 20, 31)]

    def made(*prompts: list[int]) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in prompts]
        for step in Generator(model, list(prompts), options, context=40):
            for row, chosen in step:
                found[row].append(chosen.id)
        return found

    together = made(*prompts)
    assert together == [made(prompt)[0] for prompt in prompts]
    assert [len(row) for row in together] == ([60] * 4 if slide else [38, 2, 21, 10])


def test_sliding_goes_on_from_the_newer_half(tokenizer: Tokenizer) -> None:
    model = model_of("rotary", tokenizer.vocab_size)
    prompt = list(range(3, 13))
    sliding = Generator(model, [prompt], CompleteOptions(max_tokens=3, temperature=0, slide=True), context=8)
    found = [chosen.id for step in sliding for _, chosen in step]
    plain = Generator(model, [prompt[-4:]], CompleteOptions(max_tokens=3, temperature=0))
    assert found == [chosen.id for step in plain for _, chosen in step]


def test_stop_strings_end_the_answer_before_them(completer: Completer) -> None:
    [[free]] = completer.complete_all(["the"], CompleteOptions(max_tokens=20, temperature=0))
    assert len(free.text) > 6
    mark = free.text[3:5]
    [[stopped]] = completer.complete_all(["the"], CompleteOptions(max_tokens=20, temperature=0, stop=("zzz", mark)))
    assert stopped.text == free.text[: free.text.index(mark)]
    assert stopped.finish == "stop"
    assert len(stopped.tokens) < len(free.tokens)


@settings(max_examples=150, deadline=None)
@given(text=st.text(max_size=30), prompt=st.text(max_size=8), stop=st.text(alphabet="ab€", min_size=1, max_size=3))
def test_pieces_make_the_whole(tokenizer: Tokenizer, text: str, prompt: str, stop: str) -> None:
    text, prompt = (t.encode("utf-8", "ignore").decode() for t in (text, prompt))
    writer = TextWriter(tokenizer, tokenizer.encode(prompt), (stop,))
    found = ""
    for token in tokenizer.encode(text):
        found += writer.add(token)
        if writer.stopped:
            break
    found += writer.rest()
    assert found == text.split(stop)[0]


def of_pieces() -> Tokenizer:
    """SentencePiece's kind, as Llama's: few pieces, and all other characters in bytes."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), "▁", "a", "b", "▁a", "ab", "\ufffd", "é"]
    core = scored_pieces_tokenizer(pieces, [-float(i) for i in range(len(pieces))], {0, 1, 2}, unknown=0, start=1)
    return Tokenizer(core, Marks(1, (2,)))


@settings(max_examples=150, deadline=None)
@given(
    text=st.text(alphabet=st.one_of(st.sampled_from("ab é語\ufffd"), st.characters(codec="utf-8")), max_size=30),
    n_prompt=st.integers(0, 40),
)
def test_characters_in_byte_tokens_are_whole(text: str, n_prompt: int) -> None:
    tokenizer = of_pieces()
    ids = tokenizer.encode(text)
    prompt = tokenizer.encode(text[:n_prompt])  # ends with a whole character
    writer = TextWriter(tokenizer, [1, *prompt], ())
    found = "".join(writer.add(token) for token in ids[len(prompt) :]) + writer.rest()
    assert tokenizer.decode(ids) == text
    if ids[: len(prompt)] == prompt:
        assert tokenizer.decode(prompt) + found == text


def test_broken_bytes_do_not_spread() -> None:
    tokenizer = of_pieces()
    good, broken = tokenizer.encode("語"), tokenizer.encode("語")[-1]
    writer = TextWriter(tokenizer, good, ())
    found = [writer.add(i) for i in [*good[-3:], broken, *good[-3:], *tokenizer.encode("a")]]
    assert "".join(found) + writer.rest() == "語\ufffd語 a"


def test_wrong_calls_are_refused(completer: Completer) -> None:
    with pytest.raises(UserError, match="one string"):
        completer.complete_all("abc")
    with pytest.raises(UserError, match="which is no text"):
        completer.complete_all([3])  # type: ignore[list-item]
