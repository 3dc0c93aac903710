"""Transcripts as subtitles: SubRip (srt) and WebVTT (vtt)."""

from collections.abc import Iterator

from glassformer.tasks.transcriber import Segment, Transcript

FORMATS = ("srt", "vtt")


def subtitles(answer: Transcript, form: str) -> Iterator[str]:
    """The lines of a file."""
    if form == "vtt":
        yield from ("WEBVTT", "")
    number = 0
    for segment in answer.segments:
        if segment.text:
            number += 1
            yield from _cue(segment, number, form)


def _cue(segment: Segment, number: int, form: str) -> Iterator[str]:
    point = "," if form == "srt" else "."
    if form == "srt":
        yield str(number)
    yield f"{_clock(segment.start, point)} --> {_clock(segment.end, point)}"
    yield segment.text.replace("-->", "->")
    yield ""


def _clock(seconds: float, point: str) -> str:
    thousandths = round(seconds * 1000)
    whole, rest = divmod(thousandths, 1000)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}{point}{rest:03d}"
