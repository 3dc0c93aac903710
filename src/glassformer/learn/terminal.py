"""Figures and steps as lines of a terminal, 80 columns wide if need be; the numbers say all, colours help."""

from collections.abc import Iterator

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.text import Text

from glassformer.learn.figures import Bars, Figure, Lines, Matrix, Pieces, Points, write_number
from glassformer.learn.step import Shown, Step

LONGEST_ROW, LONGEST_COLUMN = 24, 13  # cells of a label
MARGIN = 2
PLOT_HEIGHT = 13
BAR = "#3a82f7"
SPARKS = "▁▂▃▄▅▆▇█"
FAINT = 0.04  # of the largest number: no colour
PALE, BLUE, ORANGE = (72, 82, 104), (30, 110, 240), (205, 92, 10)


def draw_step(number: int, of: int, step: Step, shown: Shown, width: int) -> RenderableType:
    """All of a step but its question."""
    parts: list[RenderableType] = [
        Text(f"{number} of {of} · {step.name}", style="dim"),
        Text(step.title, style="bold"),
        Text(""),
        Text(step.text),
    ]
    if shown.note:
        parts += [Text(""), Text(shown.note, style="italic yellow")]
    for figure in shown.figures:
        parts += [Text(""), Text(figure.caption, style="italic"), Text("")]
        parts += [Padding(line, (0, 0, 0, MARGIN), expand=False) for line in draw(figure, width - MARGIN)]
    return Group(*parts)


def draw_question(shown: Shown) -> RenderableType:
    question = shown.question
    lines = [Text(""), Text.assemble(("Question: ", "bold"), question.text)]
    lines += [Text(f"  {i}. {choice}") for i, choice in enumerate(question.choices or [], start=1)]
    return Group(*lines)


def draw(figure: Figure, width: int) -> Iterator[Text]:
    match figure:
        case Matrix():
            yield from _draw_matrix(figure, width)
        case Bars():
            yield from _draw_bars(figure, width)
        case Lines():
            yield from _draw_lines(figure, width)
        case Pieces():
            yield from _draw_pieces(figure, width)
        case Points():
            yield from _draw_points(figure, width)


def make_console(width: int | None = None) -> Console:
    """A console that neither colours numbers by itself nor reads square brackets as markup."""
    return Console(width=width, highlight=False, markup=False, emoji=False)


def _fit(text: str, width: int, right: bool = False) -> str:
    """As wide as asked for, cut with … if it must be."""
    if cell_len(text) > width:
        text = set_cell_size(text, width - 1).rstrip() + "…"
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def _draw_matrix(figure: Matrix, width: int) -> Iterator[Text]:
    rows, columns = figure.rows, figure.columns
    cells = [[write_number(value) for value in row] for row in figure.values]
    left = min(LONGEST_ROW, max(cell_len(label) for label in (*rows, figure.corner)))
    widths = _column_widths(columns, cells)
    if rows == columns and left + sum(w + 1 for w in widths) > width:  # rows say what the numbers above mean
        if not all(name.split(" ")[0] == str(i + 1) for i, name in enumerate(rows)):
            rows = [f"{i + 1} {name}" for i, name in enumerate(rows)]
        columns = [str(i + 1) for i in range(len(columns))]
        left = min(LONGEST_ROW, max(cell_len(label) for label in (*rows, figure.corner)))
        widths = _column_widths(columns, cells)
    heat = _heat(figure)
    marked = set(figure.highlight or ())
    for first, last in _blocks(widths, width - left):
        head = Text(_fit(figure.corner, left), style="dim")
        for j in range(first, last):
            head.append(" " + _fit(columns[j], widths[j], right=True))
        yield head
        for i, label in enumerate(rows):
            line = Text(_fit(label, left))
            for j in range(first, last):
                line.append(" ")
                style = heat[i][j] + Style(bold=True, underline=True) if (i, j) in marked else heat[i][j]
                line.append(_fit(cells[i][j], widths[j], right=True), style=style)
            yield line
        if last < len(widths):
            yield Text("")


def _column_widths(columns: list[str], cells: list[list[str]]) -> list[int]:
    widths = [min(LONGEST_COLUMN, cell_len(label)) for label in columns]
    return [max(w, *(cell_len(row[j]) for row in cells), 3) for j, w in enumerate(widths)]


def _blocks(widths: list[int], room: int) -> Iterator[tuple[int, int]]:
    """Columns that fit side by side, from first to before last."""
    first, used = 0, 0
    for j, w in enumerate(widths):
        if used + w + 1 > room and j > first:
            yield first, j
            first, used = j, 0
        used += w + 1
    yield first, len(widths)


def _heat(figure: Matrix) -> list[list[Style]]:
    """Blue for positive and orange for negative numbers, the more vivid the larger within the figure."""
    largest = max((abs(v) for row in figure.values for v in row if v is not None), default=0.0) or 1.0

    def style(value: float | None) -> Style:
        if value is None or abs(value) < 1e-9:
            return Style(dim=True)
        share, to = abs(value) / largest, BLUE if value > 0 else ORANGE
        if share < FAINT:
            return Style()
        r, g, b = (round(a + (z - a) * share) for a, z in zip(PALE, to, strict=True))
        return Style(color="#ffffff", bgcolor=f"#{r:02x}{g:02x}{b:02x}")

    return [[style(value) for value in row] for row in figure.values]


def _draw_bars(figure: Bars, width: int) -> Iterator[Text]:
    left = min(32, max(cell_len(label) for label in figure.labels))
    numbers = [write_number(value) for value in figure.values]
    room = max(8, min(40, width - left - max(len(n) for n in numbers) - 3))
    largest = max(figure.values, default=0.0) or 1.0
    for label, value, number in zip(figure.labels, figure.values, numbers, strict=True):
        eighths = round(room * 8 * value / largest)
        bar = "█" * (eighths // 8) + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8]
        yield Text.assemble(_fit(label, left), " ", (bar, BAR), f" {number}")


def _draw_lines(figure: Lines, width: int) -> Iterator[Text]:
    """One line of little bars a series; all share one scale, written at the end."""
    left = max(cell_len(label) for label in figure.labels)
    low = min(min(series) for series in figure.values)
    high = max(max(series) for series in figure.values)
    for label, series in zip(figure.labels, figure.values, strict=True):
        marks = "".join(SPARKS[round((v - low) / ((high - low) or 1.0) * 7)] for v in series[: width - left - 1])
        yield Text.assemble(_fit(label, left), " ", (marks, BAR))
    yield Text(f"{' ' * left} {figure.across}; ▁ is {write_number(low)}, █ is {write_number(high)}", style="dim")


def _draw_pieces(figure: Pieces, width: int) -> Iterator[Text]:
    left = max(cell_len(label) for label in figure.rows)
    for label, tokens in zip(figure.rows, figure.tokens, strict=True):
        line, used = Text(_fit(label, left)), left
        for token in tokens:
            token = _fit(token, min(cell_len(token), width - left - 2))
            if used + cell_len(token) + 1 > width:
                yield line
                line, used = Text(" " * left), left
            line.append(" " if used == left else "│", style="dim")
            line.append(token)
            used += cell_len(token) + 1
        yield line


def _draw_points(figure: Points, width: int) -> Iterator[Text]:
    wide = min(width, 70)
    longest = min(30, max(cell_len(label) for label in figure.labels))
    grid = [[" "] * wide for _ in range(PLOT_HEIGHT)]

    def scale(values: list[float], size: int) -> list[int]:
        low, high = min(values), max(values)
        return [round((v - low) / ((high - low) or 1.0) * (size - 1)) for v in values]

    for label, x, y in zip(
        figure.labels, scale(figure.x, wide - longest - 2), scale(figure.y, PLOT_HEIGHT), strict=True
    ):
        text = f"• {_fit(label, min(cell_len(label), longest))}"
        # The next free line, so that no name is written over another.
        order = sorted(range(PLOT_HEIGHT), key=lambda row: abs(row - (PLOT_HEIGHT - 1 - y)))
        free = next(
            (r for r in order if all(c == " " for c in grid[r][max(0, x - 1) : x + cell_len(text) + 1])), order[0]
        )
        for i, character in enumerate(text):
            grid[free][x + i] = character
    for row in grid:
        yield Text("".join(row).rstrip() or " ")
