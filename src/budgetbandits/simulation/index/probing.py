"""Whether the engines may read a policy's `extras` once a game and call its index compiled: tried at made-up states."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from budgetbandits.arrays import Array
from budgetbandits.policies.index_policy import IndexPolicy, check_arity
from budgetbandits.policies.tally import Moments, Tally
from budgetbandits.simulation.index.memory import BEST_RATIO, CONSTANT, FLOOR_SEEN, MOMENTS, OWN
from budgetbandits.simulation.index.rules import IndexRule, compiled, completed
from budgetbandits.simulation.known import Unsuited

PULLS = (1, 8, 1_000, 1_000_000)
"""About how often the arms have been pulled in the states at which a policy is tried out."""


def one_pull_each(policy: IndexPolicy, arms: int, known: Mapping[str, Any]) -> Tally:
    """The simplest state in which a policy may be asked for its extras: every arm has been pulled once."""
    state = policy.start(arms, known)
    state.pulls[:] = 1
    state.cost[:] = 0.5
    if isinstance(state, Moments):
        state.cost_squared[:] = 0.25
    state.opened = arms
    return state


def made_up_states(policy: IndexPolicy, arms: int, known: Mapping[str, Any]) -> list[Tally]:
    """States that a game could come to, soon and late; means of 0 and 1 are among them."""
    rng = np.random.default_rng(0)
    states = []
    for most in PULLS:
        state = policy.start(arms, known)
        state.pulls[:] = rng.integers(1, most + 1, arms)
        state.opened = arms
        reward, cost = (np.where(rng.random(arms) < 0.2, rng.integers(0, 2, arms), rng.random(arms)) for _ in range(2))
        state.reward[:] = reward * state.pulls
        state.reward_squared[:] = (reward * reward + rng.random(arms) * reward * (1.0 - reward)) * state.pulls
        state.cost[:] = cost * state.pulls
        if "budget" in state.known and state.cost.sum() > 0.0:
            state.cost *= min(1.0, 0.5 * state.known["budget"] / state.cost.sum())
        _add_moments(state, rng.random((2, arms)))
        states.append(state)
    return states


def corner_states(policy: IndexPolicy, arms: int, known: Mapping[str, Any]) -> list[Tally]:
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
    """The extras at the first state; `Unsuited` if the engines would take them, or the index, for something else."""
    found = []
    for state in (*states, *corners):
        try:
            extras = policy.extras(state)
        except Exception as error:
            raise Unsuited(f"its extras fail at a made-up state: {error!r}") from error
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
        raise Unsuited(f"{where} changes with the state, and the engines read it once a game")
    if np.ndim(values[0]) != 0 and not own:
        raise Unsuited(f"{where} is an array; only the first may be one, declared by first_extra = 'own'")
    if np.ndim(values[0]) == 0 and not isinstance(values[0], bool | int | float | np.number | np.bool_):
        raise Unsuited(f"{where} is {values[0]!r:.40}, which is not a number")


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
        if np.shape(extra) != np.shape(right) or not np.allclose(extra, right, rtol=1e-9, atol=1e-12):
            raise Unsuited(f"its first extra is not the {policy.first_extra} that first_extra declares")


def _check_index(policy: IndexPolicy, rule: IndexRule, state: Tally, extras: tuple[Any, ...]) -> None:
    """Compiled for single arms, the index must be what it is on arrays."""
    try:
        expected = np.broadcast_to(policy.scores(state), state.pulls.shape)
    except Exception as error:
        raise Unsuited(f"its index fails at a made-up state: {error!r}") from error
    index = compiled(rule.index)
    rounds = float(state.pulls.sum())
    for arm in range(len(state.pulls)):
        own = tuple(float(extra[arm]) if np.ndim(extra) else float(extra) for extra in extras)
        reward, cost, pulls = state.mean_reward[arm], state.mean_cost[arm], float(state.pulls[arm])
        got = index(reward, cost, pulls, rounds, *own)
        if not _same(got, expected[arm]) and not math.isclose(got, expected[arm], rel_tol=1e-9, abs_tol=1e-12):
            raise Unsuited(
                f"compiled, its index is {got:g} instead of {expected[arm]:g} at mean_reward {reward:g}, mean_cost "
                f"{cost:g}, pulls {pulls:g}, rounds {rounds:g}"
            )


def _same(one: Any, other: Any) -> bool:
    if np.shape(one) != np.shape(other):
        return False
    return bool(np.all((np.asarray(one) == other) | ((one != one) & (other != other))))
