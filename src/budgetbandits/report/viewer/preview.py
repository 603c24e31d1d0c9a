"""What is drawn of studies: the curves of one that is running, and the report of one that has none."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

from budgetbandits.experiments import plots
from budgetbandits.experiments.results import Results
from budgetbandits.report.figures import WIDTHS, Drawing, Drawn, drawing_of
from budgetbandits.report.page import page_of

ABOUT = Drawn("so-far", "Mean pseudo-regret so far", "", legend=True)


class Curves(NamedTuple):
    """The figure for each width; how many runs and groups of problems are in it."""

    drawings: list[Drawing]
    runs: int
    groups: int


def curves(folder: Path) -> Curves | None:
    """Regret as far as it is known, for two widths; None before the first part."""
    results = Results.so_far(folder)
    if results is None:
        return None
    draw = partial(plots.regret if len(results.budgets) > 1 else plots.dots, results)
    drawings = [drawing_of(ABOUT, draw, width) for width in WIDTHS]
    return Curves(drawings, results.table.height // len(results.budgets), len(results.groups))


def report(folder: Path) -> str:
    """The page that `budgetbandits report` would write, without writing into the study."""
    with tempfile.TemporaryDirectory(prefix="budgetbandits-view-") as beside:
        return page_of(Results.load(folder, keep=False), Path(beside))
