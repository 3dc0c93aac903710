"""How a prompt begins for a language model: with the mark of a text's beginning, if the model learned what that is.

One long book has the mark once. A model of it goes on from anywhere, but after a mark that it hardly knows it babbles.
"""

from glassformer.data.tokenizer import Tokenizer
from glassformer.tasks.text import TextData

RARE = 20  # windows for each beginning: with more it is hardly learned


def knows_beginnings(data: TextData, context: int) -> bool:
    """Whether texts begin often enough in what is learned from."""
    return len(data.documents) * RARE * context >= len(data.stream)


def begin_prompt(tokenizer: Tokenizer, ids: list[int], starts: bool) -> list[int]:
    """The tokens of a prompt as the model reads them; `starts` tells whether it knows the mark."""
    marks = tokenizer.marks
    if marks.start is not None and starts:
        return [marks.start, *ids]
    return ids or ([marks.ends[0]] if marks.start is None else tokenizer.encode("\n"))
