"""Policies in order: in a study, in a setting of a suite, and over all settings; each number with its interval.

A value is the pseudo-regret of a policy on a problem of the setting, or in a run if the setting is a single problem.
Policies that must know more of the problem than the budget are measured and shown, but no policy is compared with them:
they do not compete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy import special

from budgetbandits import plugins
from budgetbandits.experiments.results import Results, towards_less
from budgetbandits.experiments.statistics import (
    LEVEL,
    RESAMPLES,
    SEED,
    Difference,
    bootstrap_interval,
    holm,
    moments,
    student,
    surely,
    welch,
)
from budgetbandits.numerics.arrays import AnyArray, Array, plain

# --- in a study -------------------------------------------------------------------------------------------------------


def ranking(results: Results, budget: float | None = None, metric: str = "pseudo_regret") -> pl.DataFrame:
    """Group by group, the policies with the best mean first.

    ``difference`` is the mean less the mean of the first, with its 95 % interval: over several problems Student's on
    the paired differences of their means, on a single one Welch's. ``sure`` says whether it is surely no tie, Holm over
    the policies behind the first; of the first, whether it is surely the best of all. ``best_on`` counts problems on
    which a policy has the best mean, ``surely_best_on`` those of them on which that is sure.
    """
    winners = results.winners(budget, metric)
    counts = {(row["group"], row["policy"]): (row["problems"], row["sure"]) for row in winners.rows(named=True)}
    values = results.values(metric, budget)
    groups = np.array([problem["group"] for problem in results.record["problems"]])
    rows = []
    for group in results.groups:
        group_values = values[groups == group]
        means = group_values.mean(axis=(0, -1))
        order = np.argsort(towards_less(metric) * means, kind="stable")
        behind = _behind_first(group_values, order, results.paired)
        worse = np.logical_or(*surely(behind))
        for place, column in enumerate(order):
            policy = results.policies[column]
            best_on, surely_best_on = counts[group, policy]
            interval = (
                [float(part[place - 1]) for part in (behind.value, behind.low, behind.high)] if place else [None] * 3
            )
            difference, low, high = interval
            rows.append(
                {
                    "group": group, "policy": policy, "problems": len(group_values), "mean": float(means[column]),
                    "difference": difference, "low": low, "high": high,
                    "sure": bool(worse[place - 1] if place else worse.all()),
                    "best_on": best_on, "surely_best_on": surely_best_on,
                }
            )  # fmt: skip
    return pl.DataFrame(rows, schema_overrides=dict.fromkeys(("difference", "low", "high"), pl.Float64))


def _behind_first(values: AnyArray, order: AnyArray, paired: bool) -> Difference:
    """The means of all policies but the first less the mean of the first, from problem × policy × run."""
    first, others = values[:, order[:1]], values[:, order[1:]]
    if len(values) > 1:
        return student((others.mean(axis=-1) - first.mean(axis=-1)).T)
    return student(others[0] - first[0]) if paired else welch(moments(others[0]), moments(first[0]))


# --- in a setting -----------------------------------------------------------------------------------------------------


FREE = frozenset({"budget", "horizon"})
"""Knowledge that every user has: the money, and for how many requests it is, if there is such a number. Anything else
that a policy must know is an advantage over others."""
TAIL = 0.99
"""Quantile of regret that stands for the tail."""

MOST = 0.75
"""Smallest share of the settings in which a policy must play to be ranked over all of them."""


@dataclass(frozen=True)
class SettingGames:
    """The values of a setting at one budget, games × policies; ``paired`` if the games of a row are on one problem."""

    policies: tuple[str, ...]
    games: AnyArray
    paired: bool

    @classmethod
    def of(cls, results: Results, budget: float | None = None) -> SettingGames:
        """The games of a study: the means of several problems, or the runs of a single one."""
        values = results.values(budget=budget)
        paired = len(values) > 1
        return cls(tuple(results.policies), values.mean(axis=-1) if paired else values[0].T, paired)

    @property
    def competing(self) -> AnyArray:
        """Whether each policy competes."""
        return np.array([competes(policy) for policy in self.policies])

    @property
    def best(self) -> int:
        """The place of the lowest mean among those that compete."""
        means = np.where(self.competing, self.games.mean(axis=0), np.inf)
        return int(means.argmin())


def competes(policy: str) -> bool:
    """Whether a policy needs only knowledge that every user has."""
    return plugins.find_policy(policy).needs <= FREE


def standings(values: SettingGames, scale: float | None = None) -> list[dict[str, Any]]:
    """A row for each policy, the lowest mean first.

    ``mean`` with its interval ``low`` to ``high``; ``behind`` is the mean less the best competitor's, with its
    interval: Student's on the differences problem by problem, Welch's for runs of one problem. ``apart`` says whether
    that is surely no tie, Holm over all that compete; of the best, whether it is apart from every one of them.
    Quantiles are over the values; the 99 % quantile has an interval by order statistics, which needs no law.
    ``scale`` is the lower bound for these problems, ``times_bound`` the mean divided by it.
    """
    games, best = values.games, values.best
    own, behind = student(games.T), _behind(values)
    rivals = np.flatnonzero(values.competing & (np.arange(len(values.policies)) != best))
    apart = np.zeros(len(values.policies), dtype=bool)
    apart[rivals] = holm(behind.p[rivals])
    apart[best] = bool(len(rivals)) and bool(apart[rivals].all())
    others = np.flatnonzero(~values.competing)
    apart[others] = behind.p[others] <= 1.0 - LEVEL
    q50, q90, q99 = np.quantile(games, [0.5, 0.9, TAIL], axis=0)
    tail_low, tail_high = quantile_interval(games, TAIL)
    first = games == games.min(axis=1, keepdims=True)
    rows = [
        {
            "policy": policy, "competes": bool(values.competing[place]), "best": place == best,
            "mean": own.value[place], "low": own.low[place], "high": own.high[place],
            "behind": behind.value[place], "behind_low": behind.low[place], "behind_high": behind.high[place],
            "apart": bool(apart[place]), "median": q50[place], "q90": q90[place], "q99": q99[place],
            "q99_low": tail_low[place], "q99_high": tail_high[place], "largest": games[:, place].max(),
            "first_on": float(first[:, place].mean()) if values.paired else None,
            "times_bound": None if not scale else own.value[place] / scale,
        }
        for place, policy in enumerate(values.policies)
    ]  # fmt: skip
    return sorted(({key: plain(item) for key, item in row.items()} for row in rows), key=lambda row: row["mean"])


def _behind(values: SettingGames) -> Difference:
    """The mean of each policy less the mean of the best that competes."""
    games, best = values.games, values.best
    if values.paired:
        return student((games - games[:, [best]]).T)
    every = moments(games.T)
    difference = welch(every, type(every)(*(part[best] for part in every)))
    # a policy is not behind itself, however its games scatter
    return Difference(
        *(
            np.where(np.arange(len(part)) == best, same, part)
            for part, same in zip(difference, (0, 0, 0, 1), strict=True)
        )
    )


def quantile_interval(values: AnyArray, share: float, level: float = LEVEL) -> tuple[Array, Array]:
    """Two values of each column between which the quantile lies with at least this probability.

    How many of n values lie below the quantile is binomial, whatever their law is. Where the sample is too small for an
    upper end it is infinite.

    >>> low, high = quantile_interval(np.arange(1.0, 101.0)[:, None], 0.5)
    >>> float(low[0]), float(high[0])
    (40.0, 61.0)
    """
    count = len(values)
    below = special.bdtr(np.arange(count + 1.0), count, share)  # at most this many below it
    first = int(np.searchsorted(below, (1.0 - level) / 2.0, side="right"))
    last = int(np.searchsorted(below, (1.0 + level) / 2.0)) + 1
    rising = np.sort(values, axis=0)
    low = rising[first - 1] if first > 0 else np.full(values.shape[1], -np.inf)
    high = rising[last - 1] if last <= count else np.full(values.shape[1], np.inf)
    return low, high


def overall(settings: Mapping[str, SettingGames]) -> list[dict[str, Any]]:
    """The geometric mean over the settings of how many times the best competitor's mean regret a policy has.

    Of those settings in which it plays, ``settings`` of them. The interval draws the games of every setting again. The
    lowest comes first of those that are ``comparable``, that is, play in most settings: settings differ too much for
    a mean over a few of them to be compared with one over all.
    """
    policies = list(dict.fromkeys(policy for values in settings.values() for policy in values.policies))
    rng = np.random.default_rng(SEED)
    total = np.zeros((RESAMPLES + 1, len(policies)))
    played = np.zeros(len(policies), dtype=int)
    for values in settings.values():
        at = [policies.index(policy) for policy in values.policies]
        total[:, at] += np.log(_times_best(values, rng))
        played[at] += 1
    drawn = np.exp(total / played)
    low, high = bootstrap_interval(drawn[1:])
    rows = [
        {
            "policy": policy, "competes": competes(policy), "settings": int(played[place]),
            "comparable": bool(played[place] >= MOST * len(settings)),
            "times": float(drawn[0, place]), "low": float(low[place]), "high": float(high[place]),
        }
        for place, policy in enumerate(policies)
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (not row["comparable"], row["times"]))


def _times_best(values: SettingGames, rng: np.random.Generator) -> AnyArray:
    """Each policy's mean divided by the best competitor's: of the games, then of resampled games."""
    count = len(values.games)
    weights = rng.multinomial(count, np.full(count, 1.0 / count), RESAMPLES) / count
    means = np.vstack([values.games.mean(axis=0), weights @ values.games])
    floor = np.maximum(means[:, [values.best]], 1e-12)
    return np.asarray(np.maximum(means, 1e-12) / floor)


def policies_shown(ranked: Sequence[dict[str, Any]], always: Sequence[str], count: int = 8) -> list[str]:
    """Policies for a figure: the first of the ranking that compete, and those that a reader will look for."""
    first = [row["policy"] for row in ranked if row["competes"]]
    wanted = [policy for policy in always if policy in first]
    return [*wanted, *[policy for policy in first if policy not in wanted][: count - len(wanted)]]


def given_knowledge(summary: Mapping[str, Any]) -> str:
    """The knowledge that every policy of a leaderboard is given, in words."""
    paced = any(setting.get("horizon") is not None for setting in summary["settings"])
    return "the budget and the horizon" if paced else "the budget"
