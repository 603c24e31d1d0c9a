"""The ratio of two Beta variates above a level, drawn without drawing what stays below.

For θr ~ Beta(a, b) and θc ~ Beta(c, d) with d of at least 1, the density of log θc is log-concave. Its tangent
at a point y bounds it: θc's density is at most a multiple of θc^(μ−1), μ = c − (d−1)y/(1−y). If μ > 0, the measure
with that in place of θc's law gives the ratio a Pareto tail,

    P(θr/θc > ρ) ≤ G = y^c (1−y)^(d−1) / (B(c,d) μ) · (ρy)^(−μ) · B(a+μ, b) / B(a, b),

and is easy to draw from: the ratio q = ρ e^(E/μ) with E ~ Exp(1) comes first, then v ~ Beta(a+μ, b) and w = v/q.
Keeping it with probability (w/y)^(c−μ) ((1−w)/(1−y))^(d−1) leaves exactly the law of the ratio above ρ. Any y is right;
the mode of the joint density on the line θr = ρθc makes G nearly tight.
"""

from __future__ import annotations

import math
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from budgetbandits.allocation.choosers.threshold import ScoresAbove
from budgetbandits.numerics.arrays import Arms, Array
from budgetbandits.policies.base import best
from budgetbandits.policies.thompson import BetaState

SURE = ScoresAbove.plain_above
"""The chance to rise from which on an arm is drawn plainly."""

SCALAR_ARMS_MAX = 12
"""Arms up to which drawing one by one is quicker than as arrays."""

# The formulas below are written once and evaluated on arrays or, thirty times faster, on single numbers.
ARRAYS = SimpleNamespace(
    log=np.log,
    sqrt=np.sqrt,
    exp=np.exp,
    where=np.where,
    most=np.maximum,
    beta=lambda a, b: scipy.special.betaln(a, b),  # SciPy imports this part of itself when it is first used
)
NUMBERS = SimpleNamespace(
    log=math.log,
    sqrt=math.sqrt,
    exp=math.exp,
    where=lambda condition, yes, no: yes if condition else no,
    most=max,
    beta=lambda a, b: float(scipy.special.betaln(a, b)),  # not by math.lgamma: both ways must agree to the last digits
)


def envelope(a: Any, b: Any, c: Any, d: Any, level: float, on: Any = ARRAYS) -> tuple[Any, Any, Any]:
    """G (1 where there is no bound), μ and y."""
    shape = a + c
    half = (shape * (1.0 + level) + (b - 1.0) * level + (d - 1.0)) / 2.0
    bottom = half + on.sqrt(on.most(half * half - level * (shape + b + d - 2.0) * shape, 0.0))
    proper = (bottom > 0.0) & (d >= 1.0)  # with d below 1 no tangent stays above the density of log θc
    y = shape / on.where(proper, bottom, 1.0)
    inside = proper & (y < 1.0) & (level * y <= 1.0)
    y = on.where(inside, y, 0.5)
    slope = c - (d - 1.0) * y / (1.0 - y)
    inside = inside & (slope > 0.0)
    mu = on.where(inside, slope, 1.0)
    log_bound = (
        c * on.log(y)
        + (d - 1.0) * on.log(1.0 - y)
        - on.beta(c, d)
        - on.log(mu)
        - mu * on.log(level * y)
        + on.beta(a + mu, b)
        - on.beta(a, b)
    )
    return on.where(inside, on.exp(-on.most(-log_bound, 0.0)), 1.0), mu, y


@lru_cache(maxsize=4096)
def envelope_of_one(a: float, b: float, c: float, d: float, level: float) -> tuple[float, float, float]:
    """The envelope of one arm, cached: of thousands of arms many have had few pulls, with equal outcomes."""
    bound, mu, y = envelope(a, b, c, d, level, NUMBERS)
    return float(bound), float(mu), float(y)


def log_chance(cost: Any, c: Any, d: Any, mu: Any, y: Any, on: Any = ARRAYS) -> Any:
    """The logarithm of the probability to keep a draw whose cost came out as ``cost``, which is below 1."""
    return (c - mu) * on.log(cost / y) + (d - 1.0) * on.log((1.0 - cost) / (1.0 - y))


def ratios_above(
    successes: Array, failures: Array, level: float, rounds: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """All ratios above the level in ``rounds`` rounds: the round, the arm and the ratio of each.

    The rows of ``successes`` and ``failures`` are (a, c) and (b, d).
    """
    bound, slope, y = envelope(successes[0], failures[0], successes[1], failures[1], level)
    often = np.flatnonzero(bound > SURE)
    theta = rng.beta(successes[:, often], failures[:, often], size=(rounds, 2, len(often)))
    ratio = theta[:, 0] / theta[:, 1]
    plain_round, plain_arm = np.nonzero(ratio > level)
    when, arm = _proposals(np.flatnonzero(bound <= SURE), bound, rounds, rng)
    mu = slope[arm]
    proposed = level * np.exp(rng.standard_exponential(len(arm)) / mu)
    cost = rng.beta(successes[0, arm] + mu, failures[0, arm]) / proposed
    possible = cost < 1.0
    chance = log_chance(np.where(possible, cost, 0.5), successes[1, arm], failures[1, arm], mu, y[arm])
    kept = possible & (rng.standard_exponential(len(arm)) > -chance)
    return (
        np.concatenate([plain_round, when[kept]]),
        np.concatenate([often[plain_arm], arm[kept]]),
        np.concatenate([ratio[plain_round, plain_arm], proposed[kept]]),
    )


def ratio_above(
    a: float, b: float, c: float, d: float, level: float, rounds: int, rng: np.random.Generator
) -> list[tuple[int, float]] | None:
    """The ratios of one arm above the level, as (round, ratio); None if it rises too often for that to be cheap."""
    bound, mu, y = envelope_of_one(a, b, c, d, level)
    if bound > SURE:
        return None
    kept: list[tuple[int, float]] = []
    if bound == 0.0:
        return kept
    # gaps between proposals are geometric; drawn by inversion, which does not overflow when the bound is tiny
    pace = math.log1p(-bound)
    at = 0.0
    while (at := at + math.floor(math.log(1.0 - rng.random()) / pace)) < rounds:
        ratio = proposal(a, b, c, d, level, mu, y, rng)
        if ratio is not None:
            kept.append((int(at), ratio))
        at += 1.0
    return kept


def proposal(
    a: float, b: float, c: float, d: float, level: float, mu: float, y: float, rng: np.random.Generator
) -> float | None:
    """A ratio above the level drawn from the envelope, or None if it is not kept."""
    proposed = level * math.exp(rng.standard_exponential() / mu)
    cost = rng.beta(a + mu, b) / proposed
    kept = cost < 1.0 and rng.standard_exponential() > -log_chance(cost, c, d, mu, y, NUMBERS)
    return proposed if kept else None


def _proposals(
    arms: NDArray[np.int64], bound: Array, rounds: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rounds in which these arms propose, each round with probability G: gaps are geometric."""
    when, who = [], []
    arms = arms[bound[arms] > 0.0]
    clock = np.full(len(arms), -1, dtype=np.int64)
    while len(arms):
        clock = clock + rng.geometric(bound[arms])
        ringing = (clock >= 0) & (clock < rounds)  # a gap past 2⁶³ is cut there by the generator and may wrap
        arms, clock = arms[ringing], clock[ringing]
        when.append(clock)
        who.append(arms)
    empty = np.zeros(0, dtype=np.int64)
    return np.concatenate([empty, *when]), np.concatenate([empty, *who])


class BetaRatios(ScoresAbove[BetaState]):
    """The scores of Budgeted Thompson Sampling."""

    def chances_above(self, state: BetaState, level: float) -> Array:
        a, c, b, d = state.statistics
        return np.asarray(envelope(a, b, c, d, level)[0])

    def chance_above(self, state: BetaState, level: float, arm: int) -> float:
        return envelope_of_one(*_parameters(state, arm), level)[0]

    def propose_above(self, state: BetaState, rng: np.random.Generator, arm: int, level: float) -> float | None:
        a, b, c, d = _parameters(state, arm)
        _, mu, y = envelope_of_one(a, b, c, d, level)
        return proposal(a, b, c, d, level, mu, y, rng)

    def draw_above(
        self, state: BetaState, rng: np.random.Generator, rounds: int, level: float
    ) -> tuple[NDArray[np.int64], Arms, Array]:
        return ratios_above(state.statistics[:2], state.statistics[2:], level, rounds, rng)

    def draw_one_above(
        self, state: BetaState, rng: np.random.Generator, arm: int, rounds: int, level: float
    ) -> list[tuple[int, float]] | None:
        return ratio_above(*_parameters(state, arm), level, rounds, rng)


def _parameters(state: BetaState, arm: int) -> tuple[float, float, float, float]:
    a, c, b, d = state.statistics[:, arm].tolist()
    return a, b, c, d


def choose_of_few(state: BetaState, rng: np.random.Generator) -> int | None:
    """The choice of `BudgetedThompson.choose` with the same draws, made one by one: with few arms, calls on arrays cost
    more than the draws."""
    a, c, b, d = state.statistics.tolist()
    rewards = list(map(rng.beta, a, b))
    costs = list(map(rng.beta, c, d))
    scores = [
        (reward / cost if cost else math.inf) if on else -math.inf
        for reward, cost, on in zip(rewards, costs, state.active.tolist(), strict=True)
    ]
    if state.known.scales is not None:
        scores = [score / scale for score, scale in zip(scores, state.known.scales.tolist(), strict=True)]
    top = max(scores)
    if scores.count(top) == 1 and top > -math.inf:
        return scores.index(top)
    return best(np.array(scores), rng)
