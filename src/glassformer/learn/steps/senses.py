"""Sound and pictures: any series of vectors can enter where embeddings would."""

import math

import torch
from torch import Tensor

from glassformer.learn.figures import Figure, Matrix, rows_of
from glassformer.learn.question import Question
from glassformer.learn.sentences import Sentences
from glassformer.learn.step import Shown
from glassformer.learn.steps.standins import numbered
from glassformer.model.attention import attention
from glassformer.model.inputs import Patches
from glassformer.model.settings import PatchesSettings

RATE, SAMPLES, BANDS, CEPSTRA = 8000, 200, 8, 5  # samples a second, samples a frame
SIDE, PATCH = 8, 4


def hum(word: str) -> Tensor:
    """A frame of sound: the longer the word, the higher the tone."""
    pitch = 300 + 150 * len(word)
    return torch.sin(2 * math.pi * pitch * torch.arange(SAMPLES, dtype=torch.float64) / RATE)


def mel(hertz: float) -> float:
    """Pitch as ears hear it."""
    return 2595 * math.log10(1 + hertz / 700)


def bands() -> Tensor:
    """Triangles, as many as BANDS, evenly spaced for the ear: (bands, bins)."""
    low, high = mel(100), mel(RATE / 2)
    edges = [low + (high - low) * i / (BANDS + 1) for i in range(BANDS + 2)]
    hertz = [700 * (10 ** (edge / 2595) - 1) for edge in edges]
    bins = torch.arange(SAMPLES // 2 + 1, dtype=torch.float64) * RATE / SAMPLES
    rising = torch.stack([(bins - hertz[i]) / (hertz[i + 1] - hertz[i]) for i in range(BANDS)])
    falling = torch.stack([(hertz[i + 2] - bins) / (hertz[i + 2] - hertz[i + 1]) for i in range(BANDS)])
    return torch.minimum(rising, falling).clamp(min=0)


def log_mel(words: list[str]) -> Tensor:
    """The loudness of each band in each word's frame: (words, bands)."""
    window = torch.hann_window(SAMPLES, dtype=torch.float64)
    frames = torch.stack([hum(word) for word in words]) * window
    power = torch.fft.rfft(frames).abs() ** 2 / SAMPLES
    loud: Tensor = (1 + 100 * power @ bands().T).log()
    return loud


def cepstra(loud: Tensor) -> Tensor:
    """The first numbers of a cosine transform: few, and hardly alike."""
    k = torch.arange(CEPSTRA, dtype=torch.float64)[:, None]
    i = torch.arange(BANDS)[None]
    waves = (math.pi * k * (2 * i + 1) / (2 * BANDS)).cos() * math.sqrt(2 / BANDS)
    return loud @ waves.T


def make_audio(sentences: Sentences) -> Shown:
    words = list(sentences.first[:8])
    loud = log_mel(words)
    names = numbered(words)
    figures: list[Figure] = [
        Matrix(
            rows=[f"band {i + 1}" for i in reversed(range(BANDS))],
            columns=names,
            values=rows_of(loud.T.flip(0)),
            caption="Each word hummed, the longer the higher: how loud each band is (logarithm), high sounds on top.",
        ),
        Matrix(
            rows=names,
            columns=[f"c{i}" for i in range(CEPSTRA)],
            values=rows_of(cepstra(loud)),
            caption="The cepstra: one dense row for each moment. They enter the encoder where embeddings would.",
        ),
    ]
    longest = max(len(word) for word in words)
    question = Question(
        text="Which word sounds highest?",
        answers=[word for word in dict.fromkeys(words) if len(word) == longest],
        hint="Look for the column whose dark field is nearest to the top.",
    )
    return Shown(figures, question)


def paint(text: str) -> Tensor:
    """A picture of eight bytes, each a line of eight dots, black or white."""
    lines = list(text.encode("utf-8")[:SIDE])
    lines += [0] * (SIDE - len(lines))
    return torch.tensor([[float(byte >> (7 - bit) & 1) for bit in range(8)] for byte in lines], dtype=torch.float64)


def cut(picture: Tensor) -> Tensor:
    """The patches, one row each, by the model's own front-end with a projection that changes nothing."""
    settings = PatchesSettings(
        height=SIDE, width=SIDE, n_channels=1, patch=PATCH, class_token=False, learned_positions=False
    )
    front_end = Patches(settings, PATCH * PATCH).double().eval()
    with torch.no_grad():
        front_end.projection.weight.copy_(torch.eye(PATCH * PATCH).view(-1, 1, PATCH, PATCH))
        torch.nn.init.zeros_(front_end.projection.bias)  # type: ignore[arg-type]
        patches: Tensor = front_end(picture[None, None])[0][0]
    return patches  # (n, PATCH · PATCH)


def make_pictures(sentences: Sentences) -> Shown:
    text = " ".join(sentences.first)
    picture = paint(text)
    patches = cut(picture)
    _, weights, _ = attention(patches, patches, patches)
    places = ["top left", "top right", "bottom left", "bottom right"]
    lines = [f"line {i + 1}" for i in range(SIDE)]
    figures: list[Figure] = [
        Matrix(
            rows=lines,
            columns=[str(i + 1) for i in range(SIDE)],
            values=rows_of(picture),
            caption=f"A picture of {SIDE} × {SIDE} dots: the first {SIDE} bytes of “{text}”, one a line.",
        ),
        Matrix(
            rows=places,
            columns=[str(i + 1) for i in range(PATCH * PATCH)],
            values=rows_of(patches),
            caption=f"Cut into patches of {PATCH} × {PATCH}, each laid out as a row of {PATCH * PATCH} numbers.",
        ),
        Matrix(rows=places, columns=places, values=rows_of(weights), caption="Self-attention: where each patch looks."),
    ]
    question = Question(
        text=f"How many dots are on (1) in the patch at the {places[-1]}?",
        answers=[float(patches[-1].sum())],
        hint="Add up the last row of the patches.",
    )
    return Shown(figures, question)
