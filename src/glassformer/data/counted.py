"""A count with its noun, as every report says it: "1 line", "2 lines", "1,000 pairs"."""


def counted(n: int, noun: str, plural: str | None = None) -> str:
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"
