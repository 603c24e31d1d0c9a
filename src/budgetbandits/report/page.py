"""One HTML page without a network: what was found, figures, tables, and what was run."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from budgetbandits import web
from budgetbandits.experiments.paper.findings import Findings, is_paper, load
from budgetbandits.experiments.results import Results
from budgetbandits.formatting.numbers import count, estimate, exact, interval, number, open_interval, short
from budgetbandits.policies import label
from budgetbandits.report import paper, problems, study, tables
from budgetbandits.report.theory_figures import exponent

REPORT = "report.html"


def write_report(folder: str | Path, found: Findings | None = None) -> Path:
    """Write report.html, figures/ and the tables as CSV into a folder that holds a study, or the paper's two.

    ``found`` saves reading the paper's two again.
    """
    folder = Path(folder)
    if is_paper(folder):
        text = render(paper.content(found or load(folder), folder))
    else:
        text = page_of(Results.load(folder), folder)
    page = folder / REPORT
    page.write_text(text, encoding="utf-8")
    return page


def page_of(results: Results, folder: Path) -> str:
    """The page of a study; its figures and tables are written into ``folder``."""
    return render(study.content(results, folder))


def with_way_back(page: str, to: str) -> str:
    """The page with the name in its bar as a link; a page that has no such bar is left as it is."""
    before, name, after = page.partition('<span class="brand">')
    inside, end, after = after.partition("</span>")
    return f'{before}<a class="brand" href="{to}">{inside}</a>{after}' if end else before + name + inside + after


def render(content: dict[str, Any], template: str = "report.html") -> str:
    """A page without a network, from one of the templates."""
    environment = Environment(
        loader=PackageLoader("budgetbandits.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"number": number, "short": short, "exact": exact, "policy": label, "exponent": exponent}
    environment.globals |= {
        "estimate": estimate, "interval": interval, "open_interval": open_interval,
        "counted": count, "shown_arms": problems.ARMS,
        "shown_groups": tables.GROUPS,
    }  # fmt: skip
    script = _text("rescale.js") + _text("report.js")
    return environment.get_template(template).render(
        content,
        style_sheets=Markup(web.style_sheet() + _text("report.css")),
        script=Markup(script),
        script_hash=_allowed(script),
    )


def _text(name: str) -> str:
    return (resources.files("budgetbandits.report") / "templates" / name).read_text(encoding="utf-8")


def _allowed(script: str) -> str:
    """The script as a page's policy names it: no other may run, whatever a name smuggles in."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
