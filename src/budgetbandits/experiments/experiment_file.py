"""An experiment file (TOML), read.

name = "my study"
seed = 1
runs = 200
budgets = [1_000, 10_000]
policies = ["bts", "kube", "epsilon-first:epsilon=[0.05, 0.1, 0.2]", "mine.py:OmegaUCB:rho=[0.25, 1]"]
plugins = ["my_laws.py"]

[[problems]]
file = "shop.toml"

[[problems]]
name = "random"
family = "uniform-bernoulli"
arms = 10
seed = 0
count = 25
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from budgetbandits import plugins
from budgetbandits.errors import BudgetBanditsError, ExperimentError, PluginError
from budgetbandits.experiments.problem_entries import problems_of
from budgetbandits.experiments.toml_fields import no_others, number, several_in, text_in, whole_in
from budgetbandits.policies.base import Policy
from budgetbandits.problems.streams import RequestStream
from budgetbandits.simulation.simulate import ENGINES

KEYS = (
    "name", "seed", "runs", "budgets", "budget_unit", "horizon", "policies", "plugins", "problems", "engine",
    "max_rounds", "common",
)  # fmt: skip
BUDGET_UNITS = ("1", "smallest mean cost", "request", "cheap to expensive")
"""What budgets are: multiples of the largest cost there can be, or of the smallest mean cost of each problem's arms;
money for each request, in the problem's own units; or, also for each request, how far it is from the mean cost of the
arm with the best ratio to that of the arm with the highest reward."""
WITH_HORIZON = BUDGET_UNITS[2:]
"""Those that are for each request."""


def read(text: str, folder: Path) -> dict[str, Any]:
    """The fields of an `Experiment`; its files are looked for in ``folder``. An `ExperimentError` names the key."""
    return read_document(parsed(text), folder)


def parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ExperimentError(f"not TOML: {error}; fix that line") from None


def read_document(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The same of TOML that has been read."""
    if "settings" in document:
        raise ExperimentError("this is a suite of settings; run it by 'budgetbandits leaderboard --suite FILE'")
    no_others(document, KEYS, "an experiment")
    _load_plugins(document, folder)
    return _together(
        {
            "problems": problems_of(document, folder),
            "name": text_in(document, "name"),
            "policies": _policies(document, folder),
            "budgets": _budgets(document),
            "budget_unit": _budget_unit(document),
            "runs": whole_in(document, "runs", smallest=1),
            "seed": whole_in(document, "seed", smallest=0, default=0),
            "engine": _engine(document),
            "max_rounds": whole_in(document, "max_rounds", smallest=1) if "max_rounds" in document else None,
            "common": _common(document),
            "horizon": whole_in(document, "horizon", smallest=1) if "horizon" in document else None,
        }
    )


def _together(found: dict[str, Any]) -> dict[str, Any]:
    """The fields, if they go together."""
    if found["horizon"] is None:
        if found["budget_unit"] in WITH_HORIZON:
            raise ExperimentError(
                f"budget_unit is {found['budget_unit']!r}, but there is no horizon; add horizon = 10_000"
            )
        if any(isinstance(named.problem, RequestStream) for named in found["problems"]):
            raise ExperimentError("problems hold a request stream, but there is no horizon; add horizon = 10_000")
    if found["common"] and any(isinstance(named.problem, RequestStream) for named in found["problems"]):
        raise ExperimentError("a request stream has no common outcomes, since its laws change; leave out common")
    return found


def _engine(document: dict[str, Any]) -> str:
    engine = document.get("engine", "auto")
    if engine not in ENGINES:
        raise ExperimentError(f"engine is {engine!r}; choose one of {', '.join(ENGINES)}")
    return str(engine)


def _budget_unit(document: dict[str, Any]) -> str:
    unit = document.get("budget_unit", BUDGET_UNITS[0])
    if unit not in BUDGET_UNITS:
        raise ExperimentError(f"budget_unit is {unit!r}; write one of {', '.join(map(repr, BUDGET_UNITS))}, or nothing")
    return str(unit)


def _common(document: dict[str, Any]) -> bool:
    common = document.get("common", False)
    if not isinstance(common, bool):
        raise ExperimentError(f"common is {common!r}; write true, or leave it out")
    return common


def _budgets(document: dict[str, Any]) -> tuple[float, ...]:
    budgets = [number(value, "budgets") for value in several_in(document, "budgets", "[1_000, 10_000]")]
    for budget in budgets:
        if budget <= 0.0:
            raise ExperimentError(f"budgets holds {budget:g}; a budget is a positive number")
    if len(set(budgets)) < len(budgets):
        raise ExperimentError("budgets holds the same budget twice; name each once")
    return tuple(sorted(budgets))


def _load_plugins(document: dict[str, Any], folder: Path) -> None:
    for name in several_in(document, "plugins", '["mine.py"]') if "plugins" in document else ():
        if not isinstance(name, str):
            raise ExperimentError(f'plugins holds {name!r}; write each as the name of a file, such as "mine.py"')
        try:
            plugins.load(folder / name)
        except PluginError as error:
            raise ExperimentError(f"plugins: {error}") from None


def _policies(document: dict[str, Any], folder: Path) -> tuple[Policy, ...]:
    policies: list[Policy] = []
    for text in several_in(document, "policies", '["bts", "kube"]'):
        if not isinstance(text, str):
            raise ExperimentError(f'policies holds {text!r}; write each policy as text, such as "bts"')
        try:
            policies += [plugins.find_policy(spec, folder) for spec in plugins.sweep(text)]
        except BudgetBanditsError as error:
            raise ExperimentError(f"policies: {error}") from None
    return tuple(policies)
