"""What the page of the paper's two studies shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from budgetbandits.experiments.paper.findings import CALIBRATED, ENSEMBLE, Findings
from budgetbandits.formatting.numbers import count, exact
from budgetbandits.report import figures as drawings
from budgetbandits.report import study, summary, tables


def content(found: Findings, folder: Path) -> dict[str, Any]:
    """Everything the template asks for; writes the figures and tables beside the page."""
    calibrated, ensemble = found.calibrated, found.ensemble
    figures = drawings.of_paper(found, folder)
    tables.write_files(calibrated, folder / CALIBRATED)
    tables.write_files(ensemble, folder / ENSEMBLE)
    shown = {
        "title": "Thompson Sampling for Budgeted Multi-armed Bandits, reproduced",
        "facts": f"The simulations of Xia, Li, Qin, Yu and Liu (IJCAI 2015) · {len(calibrated.groups)} panels at "
        f"{count(calibrated.record['runs'], 'run')} · {count(len(ensemble.record['problems']), 'random problem')} at "
        f"{count(ensemble.record['runs'], 'run')} and budgets up to {exact(ensemble.largest())}",
        "warning": None
        if found.is_full
        else "This is a quick look, not the reproduction: run 'budgetbandits paper' without --quick or --runs.",
        "sentences": summary.of_paper(found),
        "claims": found.claims,
        "figures": [],
        "winners": tables.winners(ensemble),
        "exceptions": tables.exceptions(ensemble),
        "growth": None,
        "worst": None,
        "records": [calibrated.record, ensemble.record],
    } | study.about(calibrated)
    return shown | {"contents": study.contents(shown), "figures": list(figures)}
