"""A microphone as a series of recordings: one for each time somebody speaks and falls silent again.

Deliberately not here: what is done with them. `sounddevice` is an extra.
"""

from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np

from glassformer.data.audio import Series, level
from glassformer.errors import UserError

RATE = 16000
BLOCK = 0.03  # seconds whose loudness is one number
ABOVE = 12.0  # decibels over the room's own noise: somebody speaks
SOFTEST = -55.0  # decibels: nobody speaks so softly into a microphone
BEFORE = 0.3  # seconds kept from before the first loud one: words begin softly
PAUSE = 0.8  # seconds of silence that end a recording
SHORTEST, LONGEST = 0.15, 30.0  # seconds of speech; less is a click
MEMORY = 10.0  # seconds over which the softest moment tells the noise of the room


def spoken(blocks: Iterable[Series], rate: int = RATE) -> Iterator[Series]:
    """Cut a stream of sound into what was said, with a little silence around it."""
    before: deque[Series] = deque(maxlen=round(BEFORE / BLOCK))
    room: deque[float] = deque(maxlen=round(MEMORY / BLOCK))
    held: list[Series] = []
    n_loud = n_silent = 0
    for block in blocks:
        loudness = level(block)
        is_loud = loudness > max(min(room, default=loudness) + ABOVE, SOFTEST)
        room.append(loudness)
        if not held and not is_loud:
            before.append(block)
            continue
        if not held:
            held, n_loud, n_silent = list(before), 0, 0
            before.clear()
        held.append(block)
        n_loud, n_silent = n_loud + is_loud, 0 if is_loud else n_silent + 1
        seconds = sum(map(len, held)) / rate
        if n_silent * BLOCK >= PAUSE or seconds >= LONGEST:
            if n_loud * BLOCK >= SHORTEST:
                yield np.concatenate(held)
            held = []
    if held and n_loud * BLOCK >= SHORTEST:
        yield np.concatenate(held)


def microphone(rate: int = RATE) -> Iterator[Series]:
    """Blocks of sound from the computer's microphone, for as long as they are wanted."""
    try:
        import sounddevice
    except (ImportError, OSError) as error:  # the package, or the PortAudio library that it calls
        raise UserError(
            f"The microphone cannot be used: {error}.",
            "Install the extra: pip install 'glassformer[mic]'; on Debian also apt install libportaudio2.",
        ) from None
    size = round(BLOCK * rate)
    try:
        with sounddevice.InputStream(samplerate=rate, channels=1, dtype="float32", blocksize=size) as stream:
            while True:
                block, _ = stream.read(size)
                yield np.ascontiguousarray(block[:, 0])
    except sounddevice.PortAudioError as error:
        raise UserError(
            f"The microphone cannot be used: {error}.", "Plug one in, or choose one in the system's settings."
        ) from None
