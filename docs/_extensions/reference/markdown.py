"""Tables and words as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any


def row(*cells: Any) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    head = list(head)
    return "\n".join([row(*head), "|" + "---|" * len(head), *(row(*cells) for cells in rows)]) + "\n"


def code(text: Any) -> str:
    return f"`{text}`" if str(text) else ""


def plain(text: str | None) -> str:
    """A docstring or a help for a table: one line, with the backticks of Markdown, also around options."""
    line = " ".join((text or "").split()).replace("``", "`").replace("...", "…").replace("*", "\\*")
    return re.sub(r"(?<![\w`-])(--[a-z][a-z-]*)(?![\w`])", r"`\1`", line)


def first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s+(?=[A-Z])", text, maxsplit=1)[0]
