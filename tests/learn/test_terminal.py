"""The lesson in a terminal."""

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from glassformer.learn.figures import Bars, Figure, Lines, Matrix, Pieces, Points
from glassformer.learn.find import find_step
from glassformer.learn.sentences import parse
from glassformer.learn.steps import STEPS
from glassformer.learn.terminal import draw, draw_question, draw_step
from glassformer.learn.walk import walk
from tests.learn.lesson import shown


def console(width: int = 80, colour: bool = False) -> Console:
    return Console(
        file=io.StringIO(),
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        force_terminal=colour,
        color_system="truecolor" if colour else None,
    )


def text_of(some: Console) -> str:
    assert isinstance(some.file, io.StringIO)
    return some.file.getvalue()


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_step_fits_80_columns_and_shows_all_its_numbers(step) -> None:
    made, out = shown(step.name), console()
    out.print(draw_step(1, 26, step, made, 80))
    out.print(draw_question(made))
    text = text_of(out)
    assert max(cell_len(line) for line in text.splitlines()) <= 80
    assert step.title in text
    words = text.split()
    for figure in made.figures:
        if isinstance(figure, Matrix):
            for label in (*figure.rows, *figure.columns):
                assert label[:8] in text
        else:
            assert figure.caption.split()[0] in words


def lines_of(figure: Figure, width: int = 78) -> list[str]:
    return [line.plain for line in draw(figure, width)]


def test_a_matrix_is_aligned_and_marks_what_is_no_number() -> None:
    figure = Matrix(rows=["a", "longer"], columns=["x", "y"], values=[[0.5, None], [-3, 1234567]], caption="")
    assert lines_of(figure) == [
        "          x         y",
        "a      0.50        −∞",
        "longer   −3 1,234,567",
    ]


def test_a_wide_matrix_comes_in_blocks_and_loses_nothing() -> None:
    columns = [f"column{i}" for i in range(12)]
    figure = Matrix(rows=["r"], columns=columns, values=[[float(i) for i in range(12)]], caption="")
    lines = lines_of(figure, 40)
    assert max(len(line) for line in lines) <= 40
    heads = [line for line in lines if "column" in line]
    assert " ".join(heads).split() == columns
    numbers = [line.removeprefix("r").split() for line in lines if line.startswith("r")]
    assert [n for part in numbers for n in part] == [str(i) for i in range(12)]


def test_a_wide_square_is_numbered() -> None:
    words = [f"word{i}" for i in range(14)]
    lines = lines_of(Matrix(rows=words, columns=words, values=[[0.0] * 14] * 14, caption=""))
    assert lines[0].split() == [str(i + 1) for i in range(14)]
    assert lines[1].startswith("1 word0 ")


def test_bars_are_as_long_as_their_shares() -> None:
    lines = lines_of(Bars(labels=["a", "b"], values=[1.0, 0.5], caption=""))
    assert [line.count("█") for line in lines] == [40, 20]
    assert [line.split()[-1] for line in lines] == ["1", "0.50"]


def test_lines_share_one_scale() -> None:
    lines = lines_of(Lines(labels=["a", "b"], values=[[0, 1], [2, 4]], across="time", caption=""))
    assert lines == ["a ▁▃", "b ▅█", "  time; ▁ is 0, █ is 4"]


def test_pieces_wrap() -> None:
    lines = lines_of(Pieces(rows=["t"], tokens=[["one two", "three", "x" * 50]], caption=""), 20)
    assert lines == ["t one two│three", "  " + "x" * 16 + "…"]


def test_points_do_not_write_over_each_other() -> None:
    labels = [f"label{i}" for i in range(6)]
    text = "\n".join(lines_of(Points(labels=labels, x=[0.0] * 6, y=[0.0] * 6, caption="")))
    assert sorted(re.findall(r"label\d", text)) == labels


def test_square_brackets_and_colons_are_text() -> None:
    out = console()
    step = find_step("one-hot")
    out.print(draw_step(1, 26, step, step.show(parse(["[bold]x[/bold] :smile: y"])), 80))
    assert "[bold]x[/bold] :smile: y" in text_of(out)


def test_colours_change_nothing_but_colour() -> None:
    plain, coloured = console(), console(colour=True)
    step = find_step("first-order")
    for out in (plain, coloured):
        out.print(draw_step(4, 26, step, shown("first-order"), 80))
    assert "\x1b[" in text_of(coloured)
    assert re.sub(r"\x1b\[[0-9;]*m", "", text_of(coloured)) == text_of(plain)


def go(*given: str, start: str = "one-hot", n: int = 2) -> str:
    out, replies = console(), iter(given)

    def ask(_: str) -> str:
        try:
            return next(replies)
        except StopIteration:
            raise EOFError from None

    first = next(i for i, step in enumerate(STEPS) if step.name == start)
    walk(out, STEPS[first : first + n], None, ask)
    return text_of(out)


def test_a_right_answer_goes_on_and_a_wrong_one_gets_a_hint() -> None:
    text = go("3", "1", "q")
    hint, right, second = text.index("Not quite. Count the columns"), text.index("Right!"), text.index("2 of 26")
    assert hint < right < second


def test_enter_shows_the_answer_and_goes_on() -> None:
    text = go("", "q")
    assert text.index("It is 1.") < text.index("2 of 26")


@pytest.mark.parametrize("leave", ["q", " Q ", "quit"])
def test_q_leaves(leave: str) -> None:
    assert "2 of 26" not in go(leave)


def test_the_end_of_the_input_leaves() -> None:
    assert "2 of 26" not in go()


def test_all_right_answers_lead_to_the_end() -> None:
    steps = STEPS[:4]
    text = go(*(shown(step.name).question.answer for step in steps), n=4)
    assert text.count("Right!") == 4
