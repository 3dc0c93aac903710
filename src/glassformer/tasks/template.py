"""Chat templates: messages as a model was trained to read them.

Templates are Jinja programs from other people's files. They run in Jinja's sandbox, in which they can change and reach
nothing, without what could fill the memory. Rounds of loops, calls, and the texts that are joined on the way are paid
from one purse, so that a template comes to its end soon; what it makes is counted as it comes.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from glassformer.data.documents import Message
from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import UserError, require

MOST = 1 << 22  # characters of a rendered talk
PURSE = 1 << 27  # characters that one rendering may join, again and again
ROUND = 1 << 10  # what a round of a loop costs, and a call
GROWING = {"center", "ljust", "rjust", "zfill", "expandtabs", "format", "format_map", "join", "indent"}
PIECE = 1 << 8  # what a piece of JSON costs
WIDEST = 16  # spaces that JSON may be indented by
PLACE = "\ue000{}\ue001"  # stands for a message while the template runs


def talk_text(tokenizer: Tokenizer, messages: Sequence[Message], answering: bool = False) -> str:
    """The messages in the model's template; `answering` adds the beginning of its answer."""
    marks = tokenizer.marks
    if marks.chat_template is None:
        raise UserError(
            "There are messages, but the model carries no chat template to read them by.",
            "Start from an instruction-tuned model that was imported, or give plain text.",
        )
    start = tokenizer.piece(marks.bos) if marks.bos is not None else ""
    return render(marks.chat_template, list(messages), start, tokenizer.piece(marks.ends[0]), answering)


def talk_ids(tokenizer: Tokenizer, messages: Sequence[Message], answering: bool = False) -> list[int]:
    """The same in tokens. Marks that a person typed stay text, so that nobody speaks with another's voice."""
    names = [tokenizer.piece(i) for i in tokenizer.special]
    contents = [message["content"] for message in messages]
    if not any(name in content for content in contents for name in names):
        return tokenizer.encode_marked(talk_text(tokenizer, messages, answering))
    places = [PLACE.format(i) for i in range(len(contents))]
    hidden = [{**m, "content": place} for m, place in zip(messages, places, strict=True)]
    ids, rest = list[int](), talk_text(tokenizer, hidden, answering)
    for place, content in zip(places, contents, strict=True):
        before, found, rest = rest.partition(place)
        ids += tokenizer.encode_marked(before) + (tokenizer.encode(content) if found else [])
    return ids + tokenizer.encode_marked(rest)


class _Metered(NodeTransformer):
    """Loops and the joining of texts go through filters that pay for it."""

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802 (named by Jinja)
        if node.recursive:
            raise ValueError("a loop in it calls itself")
        self.generic_visit(node)
        node.iter = _filtered(node.iter, "paid_rounds")
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Expr:  # noqa: N802
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), "paid_text")


class _Generation(Extension):
    """{% generation %}: what the model itself says; it is marked for training elsewhere, and is text here."""

    tags = {"generation"}  # noqa: RUF012 (named by Jinja)

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


def _filtered(node: nodes.Node, name: str) -> nodes.Expr:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, without what makes much out of little."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
        self.purse = PURSE
        self.filters = {n: f for n, f in self.filters.items() if n not in GROWING}
        self.filters |= {"paid_rounds": self._rounds, "paid_text": self._text, "join": self._join}
        self.filters["tojson"] = self._json

    def pay(self, price: int) -> None:
        self.purse -= price
        if self.purse < 0:
            raise ValueError("it does not come to an end")

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        numbers = isinstance(left, int) and isinstance(right, int)
        if operator == "+" and not numbers:
            self.pay(sum(len(side) for side in (left, right) if isinstance(side, str | list | tuple)))
        elif operator == "**" or not (numbers or operator == "+"):
            raise ValueError(f"it may not use {operator} here")
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, obj: Any, *args: Any, **named: Any) -> Any:
        self.pay(ROUND)
        return super().call(context, obj, *args, **named)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return attr not in GROWING and super().is_safe_attribute(obj, attr, value)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree: nodes.Template = _Metered().visit(super()._parse(source, name, filename))
        tree.set_environment(self)
        return tree

    def _rounds(self, values: Any) -> Any:
        values = values if hasattr(values, "__len__") else list(values)
        self.pay(ROUND * len(values))
        return values

    def _text(self, values: Any, between: str = "") -> str:
        parts = []
        for value in values:
            parts.append(str(value))
            self.pay(len(parts[-1]) + len(between))
        return between.join(parts)

    def _join(self, values: Any, d: str = "", attribute: str | None = None) -> str:
        found = values if attribute is None else (self.getitem(value, attribute) for value in values)
        return self._text(found, str(d))

    def _json(
        self,
        value: Any,
        ensure_ascii: bool = False,
        indent: int | str | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        """As transformers has it: letters as they are, and keys in their order. It is paid piece by piece."""
        wide = len(indent) if isinstance(indent, str) else indent or 0
        if wide > WIDEST:
            raise ValueError(f"it may not indent by {wide}")
        how = json.JSONEncoder(ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
        parts = []
        for part in how.iterencode(value):  # small ones, each of which takes its time
            parts.append(part)
            self.pay(len(part) + PIECE)
        return "".join(parts)


def render(template: str, messages: list[Message], start: str, end: str, answering: bool = True) -> str:
    """The messages in the template, which is told whether to begin the model's answer."""

    def refuse(reason: str) -> None:
        raise UserError(f"The chat template refuses this talk: {reason}.", "Say it otherwise.")

    environment = _Environment()
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.now(UTC).strftime(form)
    given = {"messages": messages, "add_generation_prompt": answering, "bos_token": start, "eos_token": end}
    given |= {"tools": None, "documents": None}  # as transformers gives them
    parts, size = [], 0
    try:
        for part in environment.from_string(template).generate(given):
            parts.append(part)
            size += len(part)
            require(size <= MOST, "The talk has become too long.", "Begin a new one.")
    except (TemplateError, TypeError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise UserError(f"The chat template cannot be used: {error}.", "Import the model again.") from None
    return "".join(parts)
