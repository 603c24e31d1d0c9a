"""The leaderboard: every setting of a suite run as a study, and what they say together as one summary.

A summary is plain data, for JSON: the settings with where each policy stands at each budget, the policies over all
settings, and what each must know. One ships with the package (`shipped_summary`), of the suite that ships.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import budgetbandits
from budgetbandits import plugins
from budgetbandits.allocation.learner import Learner
from budgetbandits.errors import BudgetBanditsError, StudyError
from budgetbandits.experiments.experiment_file import shipped_file
from budgetbandits.experiments.plan import Experiment, scaled
from budgetbandits.experiments.results import Results
from budgetbandits.experiments.runner import ProgressCallback, Workers, run
from budgetbandits.experiments.standings import SettingGames, overall, standings
from budgetbandits.experiments.study import Study
from budgetbandits.experiments.suite import Setting, Suite
from budgetbandits.policies import provenance
from budgetbandits.policies.base import Knowledge, Policy
from budgetbandits.problems.oracle import best_ratio
from budgetbandits.problems.problem import Problem
from budgetbandits.problems.streams import Environment
from budgetbandits.simulation.outcome import slower_lines
from budgetbandits.theory import any_law_constant, lower_constant

SUMMARY = "leaderboard.json"
"""File name of a leaderboard's summary."""

PACED_SUMMARY = "paced.json"
"""File name of the shipped summary of budgets that must last for a number of requests."""

ROUNDS = 1_000
"""Number of asks and tells over which the time of a decision is averaged."""
REFERENCE = "reference"
"""Name of the reference simulator as an engine."""


def play(
    suite: Suite, out: Path, workers: Workers | None = None, progress: ProgressCallback | None = None, command: str = ""
) -> None:
    """Run every setting in a folder of its own name; games that are there already are not played again."""
    for place, setting in enumerate(suite.settings, start=1):
        where = f"{setting.name} ({place} of {len(suite.settings)})"

        def tell(doing: str, finished: int, total: int, where: str = where) -> None:
            if progress is not None:
                progress(f"{where}: {doing}", finished, total)

        run(setting.experiment, out / setting.name, workers, tell, command)


def summarise(
    suite: Suite,
    out: Path,
    progress: Callable[[str], None] = lambda doing: None,
    command: str = "budgetbandits leaderboard",
) -> dict[str, Any]:
    """The summary of a suite that has been played; it is written to leaderboard.json, too."""
    settings, values = [], {}
    for setting in suite.settings:
        progress(setting.name)
        results = Results.load(out / setting.name)
        settings.append(_of_setting(setting, results, Study(out / setting.name)))
        values[setting.name] = SettingGames.of(results)
    ranked = overall(values)
    progress("time of a decision")
    summary = {
        "suite": suite.name,
        "version": budgetbandits.__version__,
        "command": command,
        "settings": settings,
        "overall": ranked,
        "policies": {row["policy"]: about_policy(row["policy"]) for row in ranked},
    }
    Study(out).write(out / SUMMARY, json.dumps(finite(summary), indent=1, ensure_ascii=False).encode())
    return summary


def _of_setting(setting: Setting, results: Results, study: Study) -> dict[str, Any]:
    asked = setting.experiment
    problems = [named.problem for named in asked.problems]
    money = np.array([scaled(asked.budgets, problem, asked.budget_unit, asked.horizon) for problem in problems])
    ratios = [best_ratio(problem) for problem in problems if isinstance(problem, Problem)]
    budgets = []
    for place, (budget, scale) in enumerate(zip(asked.budgets, bounds(asked), strict=True)):
        budgets.append(
            {
                "budget": budget, "money": float(np.median(money[:, place])), "scale": scale,
                "standings": standings(SettingGames.of(results, budget), scale),
            }
        )  # fmt: skip
    return {
        "name": setting.name, "title": setting.title, "laws": setting.laws, "about": setting.about,
        "arms": len(problems[0]), "problems": len(problems), "runs": asked.runs, "seed": asked.seed,
        "budget_unit": asked.budget_unit, "horizon": asked.horizon,
        "best_ratio": float(np.median(ratios)) if ratios else None,
        "without": list(setting.without), "begun": results.record.get("begun"), "budgets": budgets,
        "efforts": efforts(results, study),
    }  # fmt: skip


def bounds(asked: Experiment) -> list[float | None]:
    """The lower bound C ln B at each budget, mean over the problems; None unless it is known for all of them. It is not
    for games that end after a number of requests."""
    constants = [None if asked.horizon is not None else lower_bound(named.problem) for named in asked.problems]
    if None in constants:
        return [None] * len(asked.budgets)
    money = np.array([scaled(asked.budgets, named.problem, asked.budget_unit) for named in asked.problems])
    means = np.mean(np.array(constants, dtype=float)[:, None] * np.log(np.maximum(money, math.e)), axis=0)
    return [float(mean) for mean in means]


def lower_bound(problem: Environment) -> float | None:
    """The constant of the asymptotic lower bound: for independent reward and cost by their means, else for any law;
    None where neither is known, as for request streams."""
    if not isinstance(problem, Problem):
        return None
    for constant in (lower_constant, any_law_constant):
        try:
            value = constant(problem)
        except BudgetBanditsError:
            continue
        return value if math.isfinite(value) and value > 0.0 else None
    return None


def efforts(results: Results, study: Study) -> dict[str, dict[str, Any]]:
    """The effort by policy: processor seconds of all its games, their rounds, and the engine that played them."""
    taken = study.efforts()
    rows: dict[str, dict[str, Any]] = {}
    largest = results.table.filter(pl.col("budget") == results.largest())
    rounds = dict(largest.group_by("policy").agg(pl.col("rounds").sum()).iter_rows())
    for cell in results.record["cells"]:
        row = rows.setdefault(
            cell["policy"], {"seconds": 0.0, "engine": "", "reason": "", "rounds": rounds[cell["policy"]]}
        )
        if cell["key"] in taken:
            effort = taken[cell["key"]]
            row["seconds"] += effort.seconds
            for what, current, between in (("engine", effort.engine, ", "), ("reason", effort.reason, "; ")):
                row[what] = between.join(dict.fromkeys(filter(None, [*row[what].split(between), current])))
    return rows


def slower(summary: dict[str, Any]) -> list[str]:
    """Where no faster engine played, and why, over all settings: a line for each engine and reason."""
    taken = [(policy, effort) for setting in summary["settings"] for policy, effort in setting["efforts"].items()]
    return slower_lines((policy, effort["engine"], effort["reason"]) for policy, effort in taken)


def about_policy(spec: str) -> dict[str, Any]:
    """A policy's needs, what is proven of it and where, and the time that a decision of it takes."""
    policy, source = plugins.find_policy(spec), provenance(spec)
    return {
        "needs": sorted(policy.needs), "proven": source.proven, "reference": source.reference,
        "microseconds": decision_time(policy),
    }  # fmt: skip


def decision_time(policy: Policy, arms: int = 10) -> float:
    """Microseconds of processor time that one choice and its feedback take, as an `Allocation` does it."""
    learner = Learner.new(policy, arms, Knowledge(budget=1e6, cost_floor=0.1, costs=np.full(arms, 0.5)))
    rng, outcomes = np.random.default_rng(0), np.random.default_rng(1).random((ROUNDS, 2)) < 0.5
    began = time.process_time()
    for reward, cost in outcomes:
        arm = learner.choose(rng)
        if arm is None:
            break
        learner.learn(arm, float(reward), float(cost), rng)
    return (time.process_time() - began) / ROUNDS * 1e6


def finite(value: Any) -> Any:
    """The value for JSON, which has neither infinity nor NaN: None instead."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def shipped_summary(paced: bool = False) -> dict[str, Any]:
    """The summary of the suite that ships, or of the one whose budgets must last for a number of requests."""
    summary: dict[str, Any] = json.loads(shipped_file(PACED_SUMMARY if paced else SUMMARY))
    return summary


def read_summary(folder: Path) -> dict[str, Any]:
    """The summary that a leaderboard has written into its folder."""
    try:
        summary: dict[str, Any] = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StudyError(
            f"{folder} holds no leaderboard ({error}); run 'budgetbandits leaderboard --out {folder}' first"
        ) from None
    return summary


def joined(suite: Suite, texts: Sequence[str]) -> Suite:
    """The suite with the user's own policies in every setting, such as mine.py:Mine."""
    policies = [plugins.find_policy(spec) for text in texts for spec in plugins.sweep(text)]
    return Suite(suite.name, tuple(setting.joined_by(policies) for setting in suite.settings))
