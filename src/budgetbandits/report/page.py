"""One HTML page without a network: findings, figures, tables, and how they were made."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from markupsafe import Markup

from budgetbandits.experiments.paper.findings import Findings, is_paper, load
from budgetbandits.experiments.results import Results
from budgetbandits.formatting.numbers import count, estimate, exact, interval, number, open_interval, short
from budgetbandits.policies import label
from budgetbandits.report import paper, study, tables
from budgetbandits.report.figures import exponent
from budgetbandits.web import assets

REPORT = "report.html"
"""File name of a report."""

PACKAGE = "budgetbandits.report"
"""Package that holds the templates."""


def write_report(folder: str | Path, findings: Findings | None = None) -> Path:
    """Write report.html, figures/ and the tables as CSV into a folder that holds a study, or the paper's two.

    ``findings`` are those of the paper's two studies, if they were read before.
    """
    folder = Path(folder)
    if is_paper(folder):
        text = render(paper.content(findings or load(folder), folder))
    else:
        text = page_of(Results.load(folder), folder)
    page = folder / REPORT
    page.write_text(text, encoding="utf-8")
    return page


def page_of(results: Results, folder: Path) -> str:
    """The page of a study; its figures and tables are written into ``folder``."""
    return render(study.content(results, folder))


def _contents(content: dict[str, Any]) -> list[tuple[str, str]]:
    """The id and the name of the sections of a page, for its table of contents."""
    sections = [
        ("claims", "Claims", content["claims"]),
        ("hardest", "Hardest problem", content["worst"]),
        ("budgets", "Every budget", len(content["budgets"]) > 1),
        ("one-budget", "One budget", True),
        ("winners", "Who wins", content["winners"]),
        ("growth", "Growth", content["growth"]),
        ("problems", "Problems", content["problems"]),
        ("made", "How this was made", True),
    ]
    return [(id_, name) for id_, name, present in sections if present]


def with_way_back(page: str, address: str) -> str:
    """The page with the name in its bar as a link; a page without a bar is returned as it is."""
    before, name, after = page.partition('<span class="brand">')
    inside, end, after = after.partition("</span>")
    return f'{before}<a class="brand" href="{address}">{inside}</a>{after}' if end else before + name + inside + after


def render(content: dict[str, Any], template: str = "report.html") -> str:
    """A self-contained page from one of the templates."""
    filters = {"number": number, "short": short, "exact": exact, "policy": label, "exponent": exponent}
    names = {
        "estimate": estimate, "interval": interval, "open_interval": open_interval,
        "counted": count, "shown_arms": tables.ARMS_SHOWN_MAX,
        "shown_groups": tables.GROUPS_SHOWN_MAX,
    }  # fmt: skip
    script = _text("rescale.js") + _text("report.js")
    return (
        assets.environment(PACKAGE, filters, names)
        .get_template(template)
        .render(
            content,
            contents=content.get("contents") or _contents(content),
            style_sheets=Markup(assets.style_sheet() + _text("report.css")),
            script=Markup(script),
            script_hash=_allowed(script),
        )
    )


def _text(name: str) -> str:
    return assets.text(PACKAGE, "templates", name)


def _allowed(script: str) -> str:
    """The hash of a script for the page's policy, by which no other script may run."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
