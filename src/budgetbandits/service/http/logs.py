"""Log entries on stderr: JSON, or plain words on a terminal, which must not act on what came from outside."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog
from structlog.typing import ExcInfo


def write_logs() -> None:
    """Write one line per log entry to stderr: JSON, or plain text on a terminal."""
    person = sys.stderr.isatty()
    shared: list[Any] = [
        structlog.stdlib.add_log_level, structlog.processors.TimeStamper(fmt="iso"),
        structlog.processors.StackInfoRenderer(),
    ]  # fmt: skip
    if person:
        words = structlog.dev.ConsoleRenderer(exception_formatter=_traceback)
        last: list[Any] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta, _visible, words]
    else:
        shared.append(structlog.processors.format_exc_info)
        json = structlog.processors.JSONRenderer()  # escapes what is not ASCII
        last = [structlog.stdlib.ProcessorFormatter.remove_processors_meta, json]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    # the libraries' own log entries go the same way
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processors=last, foreign_pre_chain=shared))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def visible(text: str, keep: str = "") -> str:
    """The text with an escape for whatever cannot be printed: a terminal would act on it.

    >>> visible("ads\\x1b[2J\\n")
    'ads\\\\x1b[2J\\\\n'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else repr(each)[1:-1] for each in text)


def _visible(_logger: Any, _name: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The entry's texts made visible; what is not text is shown by its ``repr``, which escapes too."""
    return {visible(key): visible(value) if isinstance(value, str) else value for key, value in entry.items()}


def _traceback(file: Any, error: ExcInfo) -> None:
    """A traceback made visible: its last line has the error's own words."""
    lines = io.StringIO()
    structlog.dev.plain_traceback(lines, error)
    file.write(visible(lines.getvalue(), keep="\n"))
