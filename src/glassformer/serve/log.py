"""The server's log: one JSON object a line, without a word of what users wrote."""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime

log = logging.getLogger("glassformer.serve")
LOGGED = "in the log"  # a note on an error that must not be told of twice


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = getattr(record, "fields", {})
        return json.dumps({"time": when, "what": record.getMessage(), **fields}, ensure_ascii=False)


def log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)


def log_failure(error: Exception) -> None:
    """Where it happened; once, though many may wait for what failed."""
    if LOGGED in getattr(error, "__notes__", ()):
        return
    error.add_note(LOGGED)
    where = [f"{f.filename}:{f.lineno} {f.name}" for f in traceback.extract_tb(error.__traceback__)[-4:]]
    log.error("failed", extra={"fields": {"error": type(error).__name__, "where": where}})
