"""Log-probabilities in OpenAI's dialect, where names of tokens tell too little."""

import pytest

from glassformer.serve.openai_answers import Places, Tokens

PART = "\N{REPLACEMENT CHARACTER}"


def test_of_tokens_that_look_alike_the_likeliest_is_told() -> None:
    told = Tokens(["a"], [-1.0], [[(PART, -0.5), ("a", -1.0), (PART, -2.0)]]).as_completion(Places("a"))
    assert told["top_logprobs"] == [{PART: -0.5, "a": -1.0}]


def test_bytes_that_are_not_known_are_not_made_up() -> None:
    [ours, part] = Tokens(["ä", PART], [-1.0, -2.0]).as_chat()["content"]
    assert bytes(ours["bytes"]).decode() == "ä"
    assert part["bytes"] is None


@pytest.mark.parametrize(
    ("text", "tokens", "wanted"),
    [
        ("the cat", ["the", " cat"], [0, 3]),
        ("Once upon", ["<s>", " Once", " upon"], [0, 0, 4]),  # a mark and a first space that are not shown
        ("日 😀 ja", [PART, PART, " ", PART, PART, PART, " ja"], [0, 0, 1, 2, 2, 2, 3]),
        ("a😀😀b", ["a", *[PART] * 6, "b"], [0, *[1] * 6, 3]),
        ("ab", ["<s>", "a", "b", "cut off"], [0, 0, 1, 2]),
    ],
)
def test_tokens_are_found_in_their_text(text: str, tokens: list[str], wanted: list[int]) -> None:
    places = Places(text)
    assert [places.next(token) for token in tokens] == wanted


def test_tokens_are_found_while_the_text_grows() -> None:
    places, found = Places("日 ", 2, grows=True), []
    for more, token in (("", PART), ("－", PART), ("a", "a"), ("", " b"), (" bc", "c")):  # " b" is held back at first
        places.text += more
        found.append(places.next(token))
    assert found == [2, 2, 3, 4, 6]
