"""Which policy to prefer over all settings of a suite when tails count as much as means, and by how much it leads.

A policy's score is the mean, over settings and over four statistics of the regret (mean, median, 90 % and 99 %
quantile over the problems), of the statistic by the setting's lower bound C ln B. So a policy that loses one game in
fifty altogether pays for it twice, in the mean and in the last quantile, whatever its median is. With geometric means
a loss of everything in one setting could be made up by a few per cent in the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from budgetbandits.errors import StudyError
from budgetbandits.experiments.standings import SettingGames, competes
from budgetbandits.experiments.statistics import LEVEL, SEED, holm, student
from budgetbandits.numerics.arrays import AnyArray, Array
from budgetbandits.policies import published

STATISTICS = ("mean", "median", "90 %", "99 %")
RESAMPLES = 1_000
LEAST = 1e-9
"""A regret of nothing has no logarithm."""


class Score(NamedTuple):
    """A policy's statistics by the lower bound, their mean with its interval, and how often it is the first of
    problems drawn again."""

    policy: str
    statistics: tuple[float, ...]
    score: float
    low: float
    high: float
    first: float


class Margin(NamedTuple):
    """Of a rival's regret over the champion's in a setting: the difference of means with its interval, Holm's verdict
    over all rivals and settings, and the factor of the 99 % quantiles with its interval."""

    setting: str
    rival: str
    difference: float
    low: float
    high: float
    apart: bool
    factor: float
    factor_low: float
    factor_high: float


def statistics(games: AnyArray) -> Array:
    """The four statistics of each column.

    >>> statistics(np.arange(101.0)[:, None])[:, 0]
    array([50., 50., 90., 99.])
    """
    return np.vstack([games.mean(axis=0), np.quantile(games, [0.5, 0.9, 0.99], axis=0)])


def scores(settings: Mapping[str, SettingGames], bounds: Mapping[str, float], geometric: bool = False) -> list[Score]:
    """Of the policies that compete and play in every setting, the lowest score first."""
    shared = set.intersection(*(set(values.policies) for values in settings.values()))
    policies = [name for name in next(iter(settings.values())).policies if name in shared and competes(name)]
    if not policies:
        raise StudyError("no policy that competes plays in every setting; leave out fewer, or score fewer settings")
    rng = np.random.default_rng(SEED)
    sums = np.zeros((RESAMPLES + 1, len(STATISTICS), len(policies)))
    for name, values in settings.items():
        games = values.games[:, [values.policies.index(policy) for policy in policies]]
        drawn = rng.integers(len(games), size=(RESAMPLES, len(games)))
        for place, rows in enumerate([np.arange(len(games)), *drawn]):
            relative = np.maximum(statistics(games[rows]), LEAST) / bounds[name]
            sums[place] += np.log(relative) if geometric else relative
    sums /= len(settings)
    each, every = sums[0], sums.mean(axis=1)
    if geometric:
        each, every = np.exp(each), np.exp(every)
    low, high = np.quantile(every[1:], [0.5 - LEVEL / 2, 0.5 + LEVEL / 2], axis=0)
    first = np.bincount(every[1:].argmin(axis=1), minlength=len(policies)) / RESAMPLES
    found = [
        Score(policy, tuple(map(float, each[:, at])), *map(float, (every[0, at], low[at], high[at], first[at])))
        for at, policy in enumerate(policies)
    ]
    return sorted(found, key=lambda score: score.score)


def margins(settings: Mapping[str, SettingGames], champion: str, rivals: Sequence[str] | None = None) -> list[Margin]:
    """The champion against each rival in each setting where both play; without ``rivals`` against all in print that
    compete."""
    rng = np.random.default_rng(SEED)
    found, p_values = [], []
    for name, values in settings.items():
        if champion not in values.policies:
            continue
        own = values.games[:, values.policies.index(champion)]
        for at, rival in enumerate(values.policies):
            wanted = published(rival) and values.competing[at] if rivals is None else rival in rivals
            if not wanted or rival == champion:
                continue
            games = values.games[:, at]
            behind = student((games - own)[None, :])
            difference, low, high, p = (float(part[0]) for part in behind)
            found.append(Margin(name, rival, difference, low, high, False, *_tails(games, own, rng)))
            p_values.append(p)
    apart = holm(np.array(p_values)) if p_values else ()
    return [margin._replace(apart=bool(sure)) for margin, sure in zip(found, apart, strict=True)]


def _tails(games: AnyArray, own: AnyArray, rng: np.random.Generator) -> tuple[float, float, float]:
    """The factor between two 99 % quantiles, and its interval of problems drawn again."""
    rows = np.vstack([np.arange(len(games)), rng.integers(len(games), size=(RESAMPLES, len(games)))])
    factors = np.quantile(games[rows], 0.99, axis=1) / np.maximum(np.quantile(own[rows], 0.99, axis=1), LEAST)
    low, high = np.quantile(factors[1:], [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
    return float(factors[0]), float(low), float(high)
