"""The directive ``mermaid``: a diagram as text, drawn at build time into the page."""

from __future__ import annotations

import html
import re
from typing import Any, ClassVar

import mermaidx
from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx.application import Sphinx

# The page's style sheet colours the diagrams, in light and dark, so Mermaid's own colours must be few.
CONFIG = {"theme": "neutral", "htmlLabels": False, "flowchart": {"htmlLabels": False}}


class Mermaid(Directive):
    """A figure; ``:alt:`` says in words what it shows, and the argument, if any, is its caption."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Any]] = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        if "alt" not in self.options:
            raise self.error("say in :alt: what the diagram shows")
        drawing = mermaidx.render("\n".join(self.content), config=CONFIG).svg()
        label = html.escape(self.options["alt"])
        drawing = re.sub(r"<svg ", f'<svg role="img" aria-label="{label}" ', drawing, count=1)
        figure = nodes.figure("", nodes.raw("", drawing, format="html"), classes=["diagram"])
        if self.arguments:
            parsed, _ = self.state.inline_text(self.arguments[0], self.lineno)
            figure += nodes.caption("", "", *parsed)
        return [figure]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("mermaid", Mermaid)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
