"""Tables by what is in them, for the style sheet: many columns; cells with a number, or with prose."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

UNIT = r"(?:%|ms|µs|s|min|MB|kB|B|times)"
CHARACTERS = r"\d\s.,:±–×·()\[\]+−-"
NUMBER = re.compile(rf"[{CHARACTERS}]*\d(?:[%{CHARACTERS}]|\b(?:to|and)\b)*{UNIT}?\)?")
LONGEST_NUMBER, SHORTEST_PROSE = 34, 40
"""Characters."""
MANY_COLUMNS = 8


def classify(_app: Sphinx, doctree: nodes.document, _name: str) -> None:
    for table in doctree.findall(nodes.table):
        if len(list(table.findall(nodes.colspec))) >= MANY_COLUMNS:
            table["classes"].append("columns")
    for cell in doctree.findall(nodes.entry):
        text = cell.astext()
        if len(text) <= LONGEST_NUMBER and NUMBER.fullmatch(text):
            cell["classes"].append("number")
            for part in list(cell.findall(nodes.Text)):
                part.parent.replace(part, whole(part))
        elif len(text) >= SHORTEST_PROSE:
            cell["classes"].append("prose")


def whole(text: str) -> list[nodes.Node]:
    """A line may end before an interval, not inside."""
    pieces = [nodes.inline("", piece, classes=["whole"]) for piece in re.split(r" (?=[(\[])", text)]
    return [node for piece in pieces for node in (piece, nodes.Text(" "))][:-1]


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-resolved", classify)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
