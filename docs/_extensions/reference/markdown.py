"""Tables and words as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any


def row(*cells: Any) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table; the column without a title is the description, which comes second: a phone shows two columns."""
    head = list(head)
    order = sorted(range(len(head)), key=lambda at: (at > 0, head[at] != ""))
    lines = ([cells[at] for at in order] for cells in map(list, rows))
    titles = [head[at] or "description" for at in order]
    return "\n".join([row(*titles), "|" + "---|" * len(head), *(row(*line) for line in lines)]) + "\n"


def code(text: Any) -> str:
    return f"`{text}`" if str(text) else ""


def plain(text: str | None) -> str:
    """A docstring or a help for a table: one line, with the backticks of Markdown, also around options."""
    line = " ".join((text or "").split()).replace("``", "`").replace("...", "…").replace("*", "\\*")
    return re.sub(r"(?<![\w`-])(--[a-z][a-z-]*)(?![\w`])", r"`\1`", line)


def first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s+(?=[A-Z])", text, maxsplit=1)[0]
