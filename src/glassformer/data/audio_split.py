"""A long recording cut at its silences into parts that a model can hear at once."""

import numpy as np

from glassformer.data.audio import Series

BLOCK = 0.02  # seconds whose loudness is one number
BELOW = 35.0  # decibels below the loudest: silence
SILENT = -60.0  # decibels: nobody speaks so softly
MARGIN = 0.15  # seconds kept around speech
PAUSE = 1.5  # seconds of silence that always end a part


def cut_at_silence(wave: Series, rate: int, longest: float) -> list[tuple[int, int]]:
    """Where each part begins and ends, in samples; what is silent belongs to none. A short recording stays whole."""
    size = max(1, round(BLOCK * rate))
    loud = _loudness(wave, size)
    if not len(loud) or loud.max() < SILENT:
        return []
    if len(wave) <= longest * rate:
        return [(0, len(wave))]
    spoken = _with_margin(loud > max(loud.max() - BELOW, SILENT), round(MARGIN / BLOCK))
    most, pause = max(2, int(longest / BLOCK)), round(PAUSE / BLOCK)
    parts: list[tuple[int, int]] = []
    for begin, end in _stretches(spoken):
        before = parts[-1] if parts else None
        if before is not None and end - before[0] <= most and begin - before[1] < pause:
            parts[-1] = (before[0], end)
        else:
            parts += _halve(begin, end, loud, most)
    return [(begin * size, min(end * size, len(wave))) for begin, end in parts]


def _loudness(wave: Series, size: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    n = -(-len(wave) // size)
    padded = np.zeros(n * size, dtype=np.float32)
    padded[: len(wave)] = wave
    power: np.ndarray[tuple[int], np.dtype[np.float64]] = np.square(padded.reshape(n, size), dtype=np.float64).mean(
        axis=1
    )
    return 10 * np.log10(power + 1e-12)


def _with_margin(
    spoken: "np.ndarray[tuple[int], np.dtype[np.bool_]]", n: int
) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    return np.convolve(spoken, np.ones(2 * n + 1), mode="same")[: len(spoken)] > 0


def _stretches(spoken: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], spoken, [False]]).astype(np.int8)))
    return [(int(begin), int(end)) for begin, end in zip(edges[::2], edges[1::2], strict=True)]


def _halve(
    begin: int, end: int, loud: "np.ndarray[tuple[int], np.dtype[np.float64]]", most: int
) -> list[tuple[int, int]]:
    """Someone who speaks without a pause is cut where it is softest, in the second half of what fits."""
    parts = []
    while end - begin > most:
        middle = begin + most // 2
        cut = middle + int(loud[middle : begin + most].argmin())
        parts.append((begin, cut))
        begin = cut
    return [*parts, (begin, end)]
