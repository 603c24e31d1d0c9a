"""The paper's simulations and the verdict on each thing it says about them.

Two studies: *calibrated*, the four panels at 500 runs on a problem that agrees with the paper's numbers
(`calibration`), and *ensemble*, a hundred random problems of each kind at fewer runs. Every claim is measured on both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from budgetbandits.errors import StudyError
from budgetbandits.experiments.paper import observations, proven, spreads
from budgetbandits.experiments.paper.claims import Claim
from budgetbandits.experiments.paper.proven import Bounds
from budgetbandits.experiments.plan import Experiment
from budgetbandits.experiments.results import Results
from budgetbandits.experiments.runner import ProgressCallback, Workers, run
from budgetbandits.theory.upper import CHAINS

CALIBRATED, ENSEMBLE = "calibrated", "ensemble"


@dataclass(frozen=True)
class Findings:
    """Both studies, and what follows from them; each is worked out once, when it is asked for."""

    calibrated: Results
    ensemble: Results

    @cached_property
    def bounds(self) -> list[Bounds]:
        """What is proven of BTS on each of the four panels."""
        return list(proven.bounds(self.calibrated, count=1))

    @cached_property
    def claims(self) -> list[Claim]:
        """What the paper says of its simulations, in its order, and what it proves about them."""
        both = self.calibrated, self.ensemble
        on_panels, on_random = self.bounds, proven.bounds(self.ensemble, count=proven.SAMPLE)
        scatter = spreads.Spreads.of(self.calibrated), spreads.Spreads.of(self.ensemble)
        observed = [
            observations.lowest(*both),
            observations.much_better(*both),
            spreads.small(*scatter),
            observations.more_arms(*both),
            spreads.epsilon_first_scatters(*scatter),
            spreads.steadier_than_epsilon_first(*scatter),
            observations.logarithmic(*both),
        ]
        evaluated = on_panels, list(on_random)
        return [
            *observed,
            *(proven.theorem_one(chain, both, evaluated) for chain in CHAINS),
            proven.remark_one(self.calibrated),
        ]

    @property
    def is_full(self) -> bool:
        """Whether these are the studies as shipped, and not a quick look."""
        found = {CALIBRATED: self.calibrated, ENSEMBLE: self.ensemble}
        return all(
            found[name].record["runs"] >= whole.runs
            and found[name].budgets == list(whole.budgets)
            and len(found[name].record["problems"]) == len(whole.problems)
            for name, whole in experiments().items()
        )


def experiments(runs: int | None = None, quick: bool = False) -> dict[str, Experiment]:
    """The two studies; ``quick`` is for a look at the machinery, not at the paper."""
    calibrated, ensemble = Experiment.load_shipped("paper"), Experiment.load_shipped("uniform-ensemble")
    if quick:
        few = [problem for place, problem in enumerate(ensemble.problems) if place % 100 < 4]
        ensemble = ensemble.changed(problems=tuple(few), runs=4)
        calibrated = calibrated.changed(runs=20, budgets=tuple(b for b in calibrated.budgets if b <= 10_000))
    if runs is not None:
        calibrated = calibrated.changed(runs=runs)
    return {CALIBRATED: calibrated, ENSEMBLE: ensemble}


def reproduce(
    out: str | Path,
    runs: int | None = None,
    quick: bool = False,
    workers: Workers | None = None,
    progress: ProgressCallback | None = None,
    command: str = "",
) -> Findings:
    """Run both studies into ``out``, as far as they are not there already."""
    for name, experiment in experiments(runs, quick).items():
        run(experiment, Path(out) / name, workers, progress, command)
    return load(out)


def load(out: str | Path) -> Findings:
    try:
        return Findings(Results.load(Path(out) / CALIBRATED), Results.load(Path(out) / ENSEMBLE))
    except StudyError as error:
        raise StudyError(f"{error} (for the paper's two studies: budgetbandits paper --out {out})") from None


def is_paper(folder: str | Path) -> bool:
    """Whether a folder holds the two studies of the paper."""
    return (Path(folder) / CALIBRATED / "study.json").exists()
