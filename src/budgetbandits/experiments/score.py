"""Which policy to prefer over all settings of a suite when tails count as much as means, and by how much it leads.

A policy's score is the mean, over settings and over four statistics of the regret (mean, median, 90 % and 99 %
quantile over the problems), of the statistic by the setting's lower bound C ln B. So a policy that loses one game in
fifty altogether pays for it twice, in the mean and in the last quantile, whatever its median is. With geometric means
a loss of everything in one setting could be made up by a few per cent in the others.

Scored are settings with several problems, since quantiles are over problems, and with a known lower bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from budgetbandits import plugins
from budgetbandits.errors import BadParameter, StudyError
from budgetbandits.experiments import leaderboard
from budgetbandits.experiments.results import Results
from budgetbandits.experiments.standings import SettingGames, competes
from budgetbandits.experiments.statistics import SEED, bootstrap_interval, holm, student
from budgetbandits.experiments.suite import Suite
from budgetbandits.numerics.arrays import AnyArray, Array
from budgetbandits.policies import published

KEYS = ("mean", "median", "q90", "q99")
"""Names of the statistics in standings."""
RESAMPLES = 1_000
"""Number of bootstrap samples."""

LEAST = 1e-9
"""Smallest regret, since 0 has no logarithm."""


class Score(NamedTuple):
    """A policy's statistics divided by the lower bound, with their intervals, the mean of them with its own, and the
    share of resamples of the problems in which it is first."""

    policy: str
    statistics: tuple[float, ...]
    intervals: tuple[tuple[float, float], ...]
    score: float
    low: float
    high: float
    first: float


class Margin(NamedTuple):
    """The lead of the champion over a rival in a setting.

    It has the difference of the mean regrets with its interval, Holm's verdict on it, and the factor between the 99 %
    quantiles with its interval.
    """

    setting: str
    rival: str
    difference: float
    low: float
    high: float
    apart: bool
    factor: float
    factor_low: float
    factor_high: float

    @property
    def ahead(self) -> bool:
        """Whether the champion is surely ahead."""
        return self.apart and self.difference > 0.0

    @property
    def behind(self) -> bool:
        """Whether the champion is surely behind."""
        return self.apart and self.difference < 0.0


def scored_bounds(suite: Suite) -> dict[str, float]:
    """The settings that are scored, each with the lower bound at its largest budget."""
    bounds = {}
    for setting in suite.settings:
        bound = leaderboard.bounds(setting.experiment)[-1]
        if len(setting.experiment.problems) > 1 and bound is not None:
            bounds[setting.name] = bound
    if not bounds:
        raise StudyError(
            "no setting can be scored: each has a single problem, or a horizon, or no known lower bound; play a suite "
            "with count = 2 or more problems in a setting"
        )
    return bounds


def scored_games(suite: Suite, folder: Path) -> tuple[dict[str, SettingGames], dict[str, float]]:
    """The regret of every scored setting at its largest budget, and the lower bounds there."""
    bounds = scored_bounds(suite)
    return {name: SettingGames.of(Results.load(folder / name)) for name in bounds}, bounds


def champion_of(suite: Suite, text: str | None) -> str | None:
    """The policy that the user names, if any, by its spec; it must play where it is scored, and something must be."""
    scored = scored_bounds(suite)
    if text is None:
        return None
    spec = plugins.find_policy(text).spec
    playing = [setting.experiment.policies for setting in suite.settings if setting.name in scored]
    if not any(spec == policy.spec for policies in playing for policy in policies):
        raise BadParameter(f"--champion {text} plays in no setting that is scored; add it by --with {text}")
    return spec


def score_document(suite: Suite, folder: Path, champion: str | None = None) -> dict[str, Any]:
    """The scores of a suite that has been played, and the pairs of ``champion``, as plain data for JSON.

    A pair is a setting and a rival in print that competes there. Without a champion it is the policy with the lowest
    score.
    """
    values, bounds = scored_games(suite, folder)
    scores_found = scores(values, bounds)
    champion = champion or scores_found[0].policy
    pairs = margins(values, champion)
    ahead, behind = sum(pair.ahead for pair in pairs), sum(pair.behind for pair in pairs)
    return {
        "settings": list(values),
        "policies": [
            {
                "policy": score.policy, "published": published(score.policy), "score": score.score, "low": score.low,
                "high": score.high, "first": score.first, **dict(zip(KEYS, score.statistics, strict=True)),
            }
            for score in scores_found
        ],
        "champion": champion,
        "pairs": {"all": len(pairs), "ahead": ahead, "tied": len(pairs) - ahead - behind, "behind": behind},
    }  # fmt: skip


def statistics(games: AnyArray) -> Array:
    """The four statistics of each column.

    >>> statistics(np.arange(101.0)[:, None])[:, 0]
    array([50., 50., 90., 99.])
    """
    return np.vstack([games.mean(axis=0), np.quantile(games, [0.5, 0.9, 0.99], axis=0)])


def scores(
    settings: Mapping[str, SettingGames],
    bounds: Mapping[str, float],
    geometric: bool = False,
    only: Sequence[str] | None = None,
) -> list[Score]:
    """The scores, the lowest first, of policies that compete and play in every setting, or ``only`` some of them."""
    shared = set.intersection(*(set(values.policies) for values in settings.values()))
    shared &= shared if only is None else set(only)
    policies = [name for name in next(iter(settings.values())).policies if name in shared and competes(name)]
    if not policies:
        raise StudyError("no policy that competes plays in every setting; leave out fewer, or score fewer settings")
    rng = np.random.default_rng(SEED)
    sums = np.zeros((RESAMPLES + 1, len(KEYS), len(policies)))
    for name, values in settings.items():
        games = values.games[:, [values.policies.index(policy) for policy in policies]]
        drawn = rng.integers(len(games), size=(RESAMPLES, len(games)))
        for place, rows in enumerate([np.arange(len(games)), *drawn]):
            relative = np.maximum(statistics(games[rows]), LEAST) / bounds[name]
            sums[place] += np.log(relative) if geometric else relative
    sums /= len(settings)
    every = sums.mean(axis=1)
    if geometric:
        sums, every = np.exp(sums), np.exp(every)
    (low, high), around = bootstrap_interval(every[1:]), np.array(bootstrap_interval(sums[1:]))
    first = np.bincount(every[1:].argmin(axis=1), minlength=len(policies)) / RESAMPLES
    ranked = [
        Score(
            policy, tuple(sums[0, :, at].tolist()), tuple(map(tuple, around[:, :, at].T.tolist())),
            *map(float, (every[0, at], low[at], high[at], first[at])),
        )
        for at, policy in enumerate(policies)
    ]  # fmt: skip
    return sorted(ranked, key=lambda score: score.score)


def margins(settings: Mapping[str, SettingGames], champion: str, rivals: Sequence[str] | None = None) -> list[Margin]:
    """The champion against each rival in each setting where both play; without ``rivals`` against all in print that
    compete."""
    rng = np.random.default_rng(SEED)
    rows, p_values = [], []
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
            rows.append(Margin(name, rival, difference, low, high, False, *_tails(games, own, rng)))
            p_values.append(p)
    apart = holm(np.array(p_values)) if p_values else ()
    return [margin._replace(apart=bool(sure)) for margin, sure in zip(rows, apart, strict=True)]


def _tails(games: AnyArray, own: AnyArray, rng: np.random.Generator) -> tuple[float, float, float]:
    """The ratio of two 99 % quantiles, with its interval from a bootstrap over problems."""
    rows = np.vstack([np.arange(len(games)), rng.integers(len(games), size=(RESAMPLES, len(games)))])
    factors = np.quantile(games[rows], 0.99, axis=1) / np.maximum(np.quantile(own[rows], 0.99, axis=1), LEAST)
    low, high = bootstrap_interval(factors[1:])
    return float(factors[0]), float(low), float(high)
