"""What a text holds that a person would want to know before training on it: repetitions, oddities, leaks.

Lines are known by their hashes, eight bytes each: no text is kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from glassformer.data.counted import counted
from glassformer.data.documents import DocumentFiles, DocumentReport, check_documents, read_documents
from glassformer.data.findings import Finding, FirstLines, explain_findings
from glassformer.data.lines import text_hash
from glassformer.data.scripts import dominant_script
from glassformer.data.tally import CONTROL, GARBLED

LONG = 40  # characters; shorter lines repeat in any text
SAMPLED = 100  # every so many lines the script is looked at


@dataclass(frozen=True)
class TextReport:
    """Plain data, ready for JSON; the numbers of lines count through all files."""

    found: DocumentReport
    n_lines: int
    longest_line: int  # in characters
    script: str  # of most lines; empty: there are no letters
    findings: tuple[Finding, ...]
    validation: DocumentReport | None
    n_leaked: int  # long lines of the validation text that are in the training text too


def check_text_files(files: DocumentFiles, valid: DocumentFiles | None = None) -> TextReport:
    """Read everything once, and the validation text after it."""
    found = check_documents(files)
    seen: set[int] = set()
    odd: FirstLines[str] = FirstLines()
    scripts: FirstLines[str] = FirstLines(most=1)
    number = longest = 0
    for line in _lines(files):
        number += 1
        longest = max(longest, len(line))
        if CONTROL.search(line):
            odd.add("has control characters", number)
        if GARBLED.search(line):
            odd.add("looks like text in another encoding", number)
        if number % SAMPLED == 1 and (script := dominant_script(line)):
            scripts.add(script, number)
        if len(line) >= LONG:
            code = text_hash(line)
            if code in seen:
                odd.add("repeats a long line", number)
            seen.add(code)
    leaked = 0 if valid is None else sum(len(line) >= LONG and text_hash(line) in seen for line in _lines(valid))
    return TextReport(
        found=found,
        n_lines=number,
        longest_line=longest,
        script=max(scripts.counts, key=scripts.counts.__getitem__, default=""),
        findings=odd.findings(),
        validation=None if valid is None else check_documents(valid),
        n_leaked=leaked,
    )


def explain_text(report: TextReport) -> str:
    """The report as a person reads it."""
    script = f"; mostly {report.script} script" if report.script else ""
    lines = [
        str(report.found),
        f"  {counted(report.n_lines, 'line')}, the longest of {counted(report.longest_line, 'character')}{script}.",
    ]
    lines += explain_findings("Used, but worth a look", report.findings)
    if report.validation is not None:
        lines.append(f"Validation: {report.validation}")
        lines.append(f"  Also in the training text: {counted(report.n_leaked, 'long line')}.")
    return "\n".join(lines)


def _lines(files: DocumentFiles) -> Iterator[str]:
    """All lines of all documents; a part of a document ends at a line's end."""
    for part in read_documents(files):
        yield from part.text.removesuffix("\n").split("\n")
