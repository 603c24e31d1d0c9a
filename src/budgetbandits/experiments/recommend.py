"""Which policy to use for a new problem, by the settings of a leaderboard that are most like it.

A setting is like a problem if it has about as many arms, about as much money for each, and the same kind of laws. The
result is what was measured there: the policy with the lowest mean, those not surely worse, and the shortest tail.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from budgetbandits.errors import BadParameter
from budgetbandits.experiments.standings import FREE
from budgetbandits.experiments.suite import LAWS
from budgetbandits.policies import POLICIES, provenance
from budgetbandits.policies.base import KNOWLEDGE
from budgetbandits.problems.distributions import Bernoulli, Beta, Fixed, Independent, Lattice
from budgetbandits.problems.problem import Problem
from budgetbandits.validation import integer, positive

SETTINGS_COMPARED = 3
"""Settings that are looked at, the most like the problem first."""
OTHER_LAWS_DISTANCE = 1.5
"""The distance of other laws: as much as 4.5 times the arms or the money."""


@dataclass(frozen=True)
class Case:
    """A problem as its owner knows it: arms, budget in units of the largest cost, laws, and further knowledge."""

    arms: int
    budget: float
    laws: str = "unknown"
    horizon: int | None = None
    knows: frozenset[str] = FREE

    def __post_init__(self) -> None:
        integer("arms", self.arms, 2)
        positive("budget", self.budget, hint=", in units of the largest cost of a pull")
        if self.laws not in LAWS:
            raise BadParameter(f"laws is {self.laws!r}; choose one of {', '.join(LAWS)}")
        if self.horizon is not None:
            integer("horizon", self.horizon, 1, hint=", the largest number of pulls, or leave it out")
        for word in self.knows:
            if word not in KNOWLEDGE:
                raise BadParameter(f"knows holds {word!r}; choose from {', '.join(KNOWLEDGE)}")


def laws_of(problem: Problem) -> str:
    """The kind of laws that all arms of a problem have, or "unknown".

    >>> laws_of(Problem.bernoulli([0.3, 0.6], [0.2, 0.8]))
    'bernoulli'
    """
    kinds = {Bernoulli: "bernoulli", Lattice: "lattice", Beta: "beta"}
    laws = [arm.law for arm in problem.arms]
    if not all(isinstance(law, Independent) for law in laws):
        return "unknown"
    parts = {type(part) for law in laws if isinstance(law, Independent) for part in (law.reward, law.cost)} - {Fixed}
    return kinds.get(parts.pop(), "unknown") if len(parts) == 1 else "unknown"


def recommend(summary: dict[str, Any], case: Case) -> dict[str, Any]:
    """The policy to use and why, as plain data: the settings most like the case, and the best policy of the nearest.

    ``policy`` has the lowest mean regret in the nearest setting of those whose needs are met, ``alternatives`` are not
    surely worse than it, ``tail`` has the lowest 99 % quantile among all of these. ``warnings`` say what to mind.
    """
    near = nearest(summary, case)
    _, played = near[0]
    rows = [row for row in played["standings"] if _can(summary, row, case)]
    if not rows:
        raise BadParameter("every policy of the leaderboard must know more; name what you know under --knows")
    best = rows[0]
    same = [row for row in rows[1:] if row["competes"] and not _surely_behind(row, best)]
    tail = min([best, *same], key=lambda row: row["q99"])
    return {
        "case": asdict(case) | {"knows": sorted(case.knows)},
        "policy": best["policy"],
        "alternatives": [row["policy"] for row in same],
        "tail": tail["policy"],
        "needs": summary["policies"][best["policy"]]["needs"],
        "proven": _proven(summary, best["policy"]),
        "settings": [
            {
                "name": item["name"], "title": item["title"], "arms": item["arms"], "laws": item["laws"],
                "money": where["money"], "requests": item.get("horizon"), "problems": item["problems"],
                "runs": item["runs"],
                "best": _best(summary, where, case),
            }
            for item, where in near
        ],
        "standings": [best, *same[:9]],
        "warnings": _warnings(case, near, summary),
    }  # fmt: skip


def nearest(summary: dict[str, Any], case: Case) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The settings most like the case, each at its most similar budget; the nearest first. Where the budget must last
    for a number of requests, another policy is the best than where it need not."""
    distances: list[tuple[float, int, dict[str, Any], dict[str, Any]]] = []
    for setting in summary["settings"]:
        if (setting.get("horizon") is None) == (case.horizon is None):
            played = min(setting["budgets"], key=lambda budget: _distance(case, setting, budget))
            distances.append((_distance(case, setting, played), len(distances), setting, played))
    if not distances:
        raise BadParameter(
            "no setting of this leaderboard has a horizon; leave out --leaderboard, or run the suite "
            "examples/paced-suite.toml" if case.horizon else "every setting of this leaderboard has a horizon; give one"
        )  # fmt: skip
    return [
        (setting, played) for _, _, setting, played in sorted(distances, key=lambda row: row[:2])[:SETTINGS_COMPARED]
    ]


def _distance(case: Case, setting: dict[str, Any], played: dict[str, Any]) -> float:
    """The distance of a setting from the user's case: in logarithms of arms, of money and of requests, each per arm."""
    arms = abs(math.log(setting["arms"] / case.arms))
    if case.horizon is None:
        money = abs(math.log(played["money"] / setting["arms"] * case.arms / case.budget))
    else:
        money = abs(math.log(played["money"] / setting["horizon"] * case.horizon / case.budget))
        arms += abs(math.log(setting["horizon"] / setting["arms"] * case.arms / case.horizon))
    laws = 0.0 if setting["laws"] == case.laws else OTHER_LAWS_DISTANCE
    one_problem = 0.5 if setting["problems"] == 1 else 0.0  # says less of others than five hundred do
    return arms + money + laws + one_problem


def _surely_behind(row: dict[str, Any], best: dict[str, Any]) -> bool:
    """Whether a policy is surely behind: as the leaderboard found against the best of all, or, if that is not ``best``,
    by their intervals, which asks for more."""
    return bool(row["apart"] if best["best"] else row["low"] > best["high"])


def _can(summary: dict[str, Any], row: dict[str, Any], case: Case) -> bool:
    """Whether what a policy must know is known."""
    knowledge = case.knows if case.horizon is None else case.knows | {"horizon"}
    return set(summary["policies"][row["policy"]]["needs"]) <= knowledge


def _proven(summary: dict[str, Any], policy: str) -> str:
    """The proven bound of a policy: from its source for the package's own, else from the leaderboard."""
    is_known = policy.partition(":")[0] in POLICIES
    return provenance(policy).proven if is_known else str(summary["policies"][policy]["proven"])


def _best(summary: dict[str, Any], played: dict[str, Any], case: Case) -> str:
    return str(next(row["policy"] for row in played["standings"] if _can(summary, row, case)))


def _warnings(case: Case, near: Sequence[tuple[dict[str, Any], dict[str, Any]]], summary: dict[str, Any]) -> list[str]:
    setting, played = near[0]
    notes = []
    money, asked = played["money"], case.budget
    if case.horizon is not None:
        money, asked = money / setting["horizon"], asked / case.horizon
    if not 1 / 3 <= money / asked <= 3.0:
        per_request = " for each request" if case.horizon is not None else ""
        notes.append(
            f"the nearest setting was played with a budget of {money:,.3g}{per_request}, not {asked:,.3g}: "
            f"simulate a problem like yours before you rely on this"
        )
    if not 1 / 3 <= setting["arms"] / case.arms <= 3.0:
        notes.append(f"the nearest setting has {setting['arms']} arms, not {case.arms}")
    if case.laws != "unknown" and setting["laws"] != case.laws:
        notes.append(f"no setting near by has {case.laws} laws")
    if len({_best(summary, where, case) for _, where in near}) > 1:
        notes.append("the settings most like yours do not agree on the best policy")
    if case.horizon is not None:
        if not 1 / 10 <= setting["horizon"] / case.horizon <= 10.0:
            notes.append(f"the nearest setting has {setting['horizon']:,} requests, not {case.horizon:,}")
        if case.horizon <= case.budget:
            notes.append(
                "the horizon ends the game before the money can: this is a bandit without prices; "
                "--budget HORIZON without --horizon finds settings for it, such as 'unit-costs'"
            )
    return notes
