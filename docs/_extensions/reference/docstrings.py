"""The package's docstrings: their parts, and as reStructuredText for autodoc.

They are prose with ``code``, `names`, $formulas$, columns of names with a description each, and examples.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

LISTED = re.compile(r"([\w.*]+(?:, [\w.*]+)*)(?: {2,}(\S.*))$")
SPAN = re.compile(r"``(?P<code>[^`]+)``|`(?P<name>[^`]+)`|\$(?P<math>[^$]+)\$|docs/(?P<page>[\w/]+)\.md", re.DOTALL)


def blocks(text: str) -> list[list[str]]:
    """The lines of a docstring without its indentation, cut at empty lines."""
    return [block.split("\n") for block in re.split(r"\n(?:[ \t]*\n)+", text.strip("\n")) if block.strip()]


def listed(block: list[str]) -> list[tuple[str, str]] | None:
    """(name, description) of each entry of a block that lists names in one column; None for other blocks."""
    entries: list[list[str]] = []
    for line in block:
        if found := LISTED.match(line):
            entries.append([found[1], found[2]])
        elif entries and line.startswith("  "):
            entries[-1][1] += " " + line.strip()
        else:
            return None
    return [(name, about) for name, about in entries]


def parameters(kind: type) -> dict[str, str]:
    """What the docstrings of a class and its bases say of fields by name."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        for block in blocks(inspect.cleandoc(vars(each).get("__doc__") or "")):
            for names, about in listed(block) or ():
                found |= dict.fromkeys(names.split(", "), about)
    return found


def paragraphs(text: str) -> Iterator[str]:
    """The prose of a docstring, without its lists and examples."""
    for block in blocks(inspect.cleandoc(text)):
        if not block[0].startswith((">>>", " ")) and listed(block) is None:
            yield " ".join(line.strip() for line in block)


def to_rst(text: str) -> list[str]:
    """A docstring as reStructuredText: single backticks are names, $…$ is a formula, a column of names a list."""
    made: list[str] = []
    for block in blocks(text):
        if block[0].startswith(">>>"):
            made += block
        elif (entries := listed(block)) is not None:
            made += [f"* {', '.join(f'``{each}``' for each in names.split(', '))} – {inline(about)}"
                     for names, about in entries]  # fmt: skip
        elif all(line.startswith("    ") for line in block):
            made += ["::", "", *block]
        else:
            made += inline("\n".join(block)).split("\n")
        made.append("")
    return made


def inline(text: str) -> str:
    made, last = "", 0
    for found in SPAN.finditer(text):
        made += _escaped(text[last : found.start()])
        last = found.end()
        before, after = made[-1:], text[last : last + 1]
        made += "" if not before or before in " \n([{<\"'/:-–—" else "\\ "
        if found["math"]:
            made += f":math:`{' '.join(found['math'].split())}`"
        elif found["page"]:
            made += f":doc:`/{found['page']}`"
        elif found["name"] and re.fullmatch(r"[\w.]+", found["name"]):
            made += f":py:obj:`{found['name']}`"
        else:
            made += f"``{found['code'] or found['name']}``"
        made += "\\ " if after.isalnum() else ""
    return made + _escaped(text[last:])


def _escaped(text: str) -> str:
    text = re.sub(r"(?<!\*)\*(?!\*)", r"\\*", text.replace("\\", "\\\\"))
    return re.sub(r"(?<=\w)_(?!\w)|\|", lambda found: "\\" + found[0], text)
