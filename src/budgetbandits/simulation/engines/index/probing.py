"""Whether the engines may read a policy's `extras` once a game and call its index compiled: tried at made-up states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from budgetbandits.numerics.arrays import Array
from budgetbandits.policies.base import Knowledge
from budgetbandits.policies.index import IndexPolicy, check_arity, index_of
from budgetbandits.policies.statistics import Moments, Tally
from budgetbandits.simulation.engines.index.rules import IndexRule, compiled, completed
from budgetbandits.simulation.engines.index.state import BEST_RATIO, CONSTANT, FLOOR_SEEN, MOMENTS, OWN
from budgetbandits.simulation.known import EngineUnsupported

CLOSE = 1e-6
"""Relative to it, an index that is no further off is the same formula, rounded otherwise."""

TINY = 1e-12
"""The same for an index of about 0."""

LAST_DIGITS = 64.0 * float(np.finfo(float).eps)
TRIALS = 16
ROUNDINGS = 4.0
"""How far numbers are moved to see what rounding does, how often, and how many such roundings a formula may have."""

PULLS = (1, 8, 1_000, 1_000_000)
"""About how often the arms have been pulled in the states at which a policy is tried out."""


def one_pull_each(policy: IndexPolicy, arms: int, known: Knowledge) -> Tally:
    """The simplest state in which a policy may be asked for its extras: every arm has been pulled once."""
    state: Tally = policy.start(arms, known)
    state.pulls[:] = 1
    state.cost[:] = 0.5
    if isinstance(state, Moments):
        state.cost_squared[:] = 0.25
    state.first_pulls_done = arms
    return state


def made_up_states(policy: IndexPolicy, arms: int, known: Knowledge) -> list[Tally]:
    """States that a game could come to, soon and late; means of 0 and 1 are among them."""
    rng = np.random.default_rng(0)
    states = []
    for most in PULLS:
        state = policy.start(arms, known)
        state.pulls[:] = rng.integers(1, most + 1, arms)
        state.first_pulls_done = arms
        reward, cost = (np.where(rng.random(arms) < 0.2, rng.integers(0, 2, arms), rng.random(arms)) for _ in range(2))
        state.reward[:] = reward * state.pulls
        state.reward_squared[:] = (reward * reward + rng.random(arms) * reward * (1.0 - reward)) * state.pulls
        state.cost[:] = cost * state.pulls
        if state.cost.sum() > 0.0:
            state.cost *= min(1.0, 0.5 * state.known.budget / state.cost.sum())
        _add_moments(state, rng.random((2, arms)))
        states.append(state)
    return states


def corner_states(policy: IndexPolicy, arms: int, known: Knowledge) -> list[Tally]:
    """States at which some arm, or every one, has brought or cost nothing so far, or as much as it could."""
    states = [one_pull_each(policy, arms, known)]
    for reward, cost in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)):
        for changed in (slice(None), slice(0, 1), slice(arms - 1, arms)):
            state = one_pull_each(policy, arms, known)
            state.pulls[:] = np.arange(arms) % 3 + 1
            state.reward[:], state.reward_squared[:], state.cost[:] = 0.5, 0.25, 0.5
            state.reward[changed] = reward * state.pulls[changed]
            state.reward_squared[changed] = reward * state.pulls[changed]
            state.cost[changed] = cost * state.pulls[changed]
            _add_moments(state, np.zeros((2, arms)))
            states.append(state)
    return states


def _add_moments(state: Tally, spread: Array) -> None:
    """Variances of the costs and covariances that the means allow, if the state has any."""
    if isinstance(state, Moments):
        reward, cost = state.mean_reward, state.mean_cost
        variance = np.maximum(state.reward_squared / state.pulls - reward * reward, 0.0)
        cost_variance = spread[0] * cost * (1.0 - cost)
        state.cost_squared[:] = (cost * cost + cost_variance) * state.pulls
        state.product[:] = (reward * cost + (2.0 * spread[1] - 1.0) * np.sqrt(variance * cost_variance)) * state.pulls


def extras_at(
    policy: IndexPolicy, rule: IndexRule, states: Sequence[Tally], corners: Sequence[Tally]
) -> tuple[Any, ...]:
    """The extras at the first state; `EngineUnsupported` if the engines would take them, or the index, for something else."""
    found = []
    for state in (*states, *corners):
        try:
            extras = policy.extras(state)
        except Exception as error:
            raise EngineUnsupported(f"its extras fail at a made-up state: {error!r}") from error
        check_arity(policy, extras)
        found.append(completed(rule.index, extras))
    for place in range(len(found[0])):
        if place == 0 and rule.kind not in (CONSTANT, OWN):
            for state, extras in zip((*states, *corners), found, strict=True):
                _check_first(policy, rule, state, extras)
        elif place > 2 or rule.kind != MOMENTS:
            _check_constant([extras[place] for extras in found], place, own=place == 0 and rule.kind == OWN)
    for state, extras in zip(states, found[: len(states)], strict=True):
        _check_index(policy, rule, state, extras)
    return found[0]


def _check_constant(values: Sequence[Any], place: int, own: bool) -> None:
    where = f"number {place + 1} of its extras"
    if not all(_same(values[0], other) for other in values):
        raise EngineUnsupported(f"{where} changes with the state, and the engines read it once a game")
    if np.ndim(values[0]) != 0 and not own:
        raise EngineUnsupported(f"{where} is an array; only the first may be one, declared by first_extra = 'own'")
    if np.ndim(values[0]) == 0 and not isinstance(values[0], bool | int | float | np.number | np.bool_):
        raise EngineUnsupported(f"{where} is {values[0]!r:.40}, which is not a number")


def _check_first(policy: IndexPolicy, rule: IndexRule, state: Tally, extras: tuple[Any, ...]) -> None:
    """What the engines work out by themselves, such as the variance, must be what the policy says."""
    expected: tuple[Any, ...] = (np.maximum(state.reward_squared / state.seen - state.mean_reward**2, 0.0),)
    if rule.kind == MOMENTS:
        expected = state.moments if isinstance(state, Moments) else (None,)
    elif rule.kind == FLOOR_SEEN:
        expected = (np.asarray(state.mean_cost.min()),)
    elif rule.kind == BEST_RATIO:
        expected = (np.asarray(state.best_ratio),)
    for extra, right in zip(extras, expected, strict=False):
        if np.shape(extra) != np.shape(right) or not np.allclose(extra, right, rtol=CLOSE, atol=TINY):
            raise EngineUnsupported(f"its first extra is not the {policy.first_extra} that first_extra declares")


def _check_index(policy: IndexPolicy, rule: IndexRule, state: Tally, extras: tuple[Any, ...]) -> None:
    """Compiled for single arms, the index must be what it is on arrays."""
    try:
        expected = np.broadcast_to(policy.scores(state), state.pulls.shape)
    except Exception as error:
        raise EngineUnsupported(f"its index fails at a made-up state: {error!r}") from error
    index = compiled(rule.index)
    rounds = float(state.pulls.sum())
    blur = _blur(policy, state, extras, expected)
    for arm in range(len(state.pulls)):
        own = tuple(float(extra[arm]) if np.ndim(extra) else float(extra) for extra in extras)
        reward, cost, pulls = state.mean_reward[arm], state.mean_cost[arm], float(state.pulls[arm])
        got, right = index(reward, cost, pulls, rounds, *own), float(expected[arm])
        if not _same(got, right) and not math.isclose(got, right, rel_tol=CLOSE, abs_tol=TINY + blur[arm]):
            raise EngineUnsupported(
                f"compiled, its index is {' instead of '.join(apart(got, right))} at mean_reward {reward:g}, mean_cost "
                f"{cost:g}, pulls {pulls:g}, rounds {rounds:g}"
            )


def _blur(policy: IndexPolicy, state: Tally, extras: tuple[Any, ...], expected: Array) -> Array:
    """How far rounding may move the index of each arm; infinitely far where it may move it to or from infinity.

    Compiled functions and NumPy's round differently in the last digit, and a formula may make much of that, as in the
    difference of two large numbers. So it is tried out: how much does the formula make of a last digit in what it is
    given?
    """
    rng, index = np.random.default_rng(0), index_of(policy)
    means, others = (state.mean_reward, state.mean_cost), (state.seen, float(state.pulls.sum()), *extras)
    blur = np.zeros(len(expected))
    for _ in range(TRIALS):
        moved = [number * (1.0 + LAST_DIGITS * rng.uniform(-1.0, 1.0, np.shape(number))) for number in others]
        # in the sum of a mean and a number of about 1 a last digit is one of that sum; a mean of 0 is exact
        moved[:0] = [mean + np.sign(mean) * LAST_DIGITS * rng.uniform(-1.0, 1.0, mean.shape) for mean in means]
        with np.errstate(all="ignore"):
            values = np.broadcast_to(index(*moved), expected.shape)
            distance = np.abs(values - expected)
        distance[(values == expected) | ((values != values) & (expected != expected))] = 0.0
        blur = np.maximum(blur, np.where(np.isnan(distance), np.inf, distance))
    return np.asarray(ROUNDINGS * np.maximum(blur, np.median(blur)))  # where nothing could be moved, as elsewhere


def apart(one: float, other: float) -> tuple[str, str]:
    """Two numbers that differ, with as many digits as it takes to see it.

    >>> apart(0.001010791, 0.001010792), apart(2.0, 3.0)
    (('0.001010791', '0.001010792'), ('2', '3'))
    """
    digits = next((digits for digits in range(6, 17) if f"{one:.{digits}g}" != f"{other:.{digits}g}"), 17)
    return f"{one:.{digits}g}", f"{other:.{digits}g}"


def _same(one: Any, other: Any) -> bool:
    if np.shape(one) != np.shape(other):
        return False
    return bool(np.all((np.asarray(one) == other) | ((one != one) & (other != other))))
