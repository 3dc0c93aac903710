"""Log-probabilities in OpenAI's dialect, where names of tokens tell too little."""

from glassformer.serve.openai_answers import Tokens

PART = "\N{REPLACEMENT CHARACTER}"


def test_of_tokens_that_look_alike_the_likeliest_is_told() -> None:
    told = Tokens(["a"], [-1.0], [[(PART, -0.5), ("a", -1.0), (PART, -2.0)]]).as_completion(0)
    assert told["top_logprobs"] == [{PART: -0.5, "a": -1.0}]


def test_bytes_that_are_not_known_are_not_made_up() -> None:
    [ours, part] = Tokens(["ä", PART], [-1.0, -2.0]).as_chat()["content"]
    assert bytes(ours["bytes"]).decode() == "ä"
    assert part["bytes"] is None
