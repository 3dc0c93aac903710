"""What a server bears: one frozen dataclass, each limit with its reason."""

import math
from dataclasses import dataclass, fields

from glassformer.errors import require


@dataclass(frozen=True, kw_only=True)
class Limits:
    # Texts of all clients that run together; more make each wait for the longest.
    batch: int = 64
    # Milliseconds that a batch waits for company, and only where the last one had some.
    wait_ms: float = 4.0
    # Completions that are made at once, each a row of one running batch.
    rows: int = 64
    # Texts that may wait over all models; who comes then is told to come again.
    queue: int = 1024
    # Bytes of a request.
    body: int = 32_000_000
    # Texts, and characters of them all together, in a request.
    texts: int = 1024
    characters: int = 200_000
    # Tokens of a prompt and its answer together.
    tokens: int = 8192
    # Hypotheses of a search, and answers to a prompt.
    beam: int = 32
    # Seconds of a recording.
    audio: float = 3600.0
    # Pixels of a picture, unpacked.
    pixels: int = 40_000_000
    # Seconds until a request is given up.
    seconds: float = 600.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value, least = getattr(self, field.name), 0 if field.name == "wait_ms" else 1
            sound = value >= least and value < math.inf
            require(sound, f"The limit {field.name} is {value}.", f"It must be {least} or more, and a number.")
