"""The steps on their examples."""

from glassformer.learn.figures import Bars, Matrix
from glassformer.learn.find import find_step
from glassformer.learn.step import Shown


def shown(name: str) -> Shown:
    return find_step(name).show()


def matrix(name: str, i: int = 0) -> Matrix:
    figure = shown(name).figures[i]
    assert isinstance(figure, Matrix)
    return figure


def bars(name: str, i: int = 0) -> dict[str, float]:
    figure = shown(name).figures[i]
    assert isinstance(figure, Bars)
    return dict(zip(figure.labels, figure.values, strict=True))


def row(figure: Matrix, label: str) -> dict[str, float | None]:
    return dict(zip(figure.columns, figure.values[figure.rows.index(label)], strict=True))
