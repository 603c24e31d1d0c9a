"""Whether the index engines play a policy from outside the package as it is written, found out before a game begins.

Methods are compared (`rules.rule_of`). Once per process extras and index are tried at made-up states, the declared
monotonicity is spot-checked, and the policy is played on short games with outcomes fixed in advance, where each pull of
the engine must be one that the policy's own `choose` could have named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from budgetbandits.errors import BadParameter, NotANumber
from budgetbandits.numerics.arrays import Array
from budgetbandits.policies.base import Knowledge, State
from budgetbandits.policies.index import IndexPolicy, check_arity, index_of, rounded_money
from budgetbandits.policies.statistics import Tally
from budgetbandits.problems.distributions import OutcomeLaw
from budgetbandits.problems.problem import Arm, Problem
from budgetbandits.simulation.engine_support import EngineUnsupported, check_once
from budgetbandits.simulation.engines.index.engine import IndexGames, one_pull_each
from budgetbandits.simulation.engines.index.rules import IndexRule, compiled, completed, rule_of
from budgetbandits.simulation.engines.index.state import BEST_RATIO, CONSTANT, FLOOR_SEEN, MOMENTS, MONEY, OWN
from budgetbandits.simulation.reference import what_is_known

# --- extras and index at made-up states ------------------------------------------------------------------------------


RELATIVE_ERROR = 1e-6
"""Relative to it, an index that is no further off is the same formula, rounded otherwise."""

ABSOLUTE_ERROR = 1e-12
"""The same for an index of about 0."""

ROUNDING_SHIFT = 64.0 * float(np.finfo(float).eps)
"""Relative distance by which numbers are moved to see the effect of rounding."""

TRIALS = 16
"""Number of such moves."""

ROUNDINGS = 4.0
"""Most roundings in a formula, each as large as such a move."""

PULLS = (1, 8, 1_000, 1_000_000)
"""Numbers of pulls, about, in the states in which a policy is checked."""


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
        _add_moments(policy, state, rng.random((2, arms)))
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
            _add_moments(policy, state, np.zeros((2, arms)))
            states.append(state)
    return states


def _add_moments(policy: IndexPolicy, state: Tally, spread: Array) -> None:
    """Variances of the costs and covariances that the means allow, and a prior, if the state has any."""
    reward, cost = state.mean_reward, state.mean_cost
    variance = np.maximum(state.reward_squared / state.pulls - reward * reward, 0.0)
    cost_variance = spread[0] * cost * (1.0 - cost)
    cost_squared = (cost * cost + cost_variance) * state.pulls
    product = (reward * cost + (2.0 * spread[1] - 1.0) * np.sqrt(variance * cost_variance)) * state.pulls
    state.fill(state.reward, state.reward_squared, state.cost, cost_squared, product)
    if policy.lead > 0.0:
        _prior_of(state)[:] = np.array([0.5, 2.0, 4.0, 8.0])[:, None] * (1.0 + spread[0, 0])


def _prior_of(state: Tally) -> Array:
    """The prior in the state of a policy that fits one."""
    return np.asarray(vars(state)["prior"])


def extras_at(
    policy: IndexPolicy, rule: IndexRule, states: Sequence[Tally], corners: Sequence[Tally]
) -> tuple[Any, ...]:
    """The extras at the first state; `EngineUnsupported` if the engines would take them, or the index, for something else."""
    extras_of_states = []
    for state in (*states, *corners):
        try:
            extras = policy.extras(state)
        except Exception as error:
            raise EngineUnsupported(f"its extras fail at a made-up state: {error!r}") from error
        check_arity(policy, extras)
        extras_of_states.append(completed(rule.index, extras))
    for place in range(len(extras_of_states[0])):
        if place == 0 and rule.kind not in (CONSTANT, OWN):
            for state, extras in zip((*states, *corners), extras_of_states, strict=True):
                _check_first(policy, rule, state, extras)
        elif rule.kind not in (MOMENTS, MONEY) or place > (6 if policy.lead > 0.0 else 2):
            _check_constant([extras[place] for extras in extras_of_states], place, own=place == 0 and rule.kind == OWN)
    for state, extras in zip(states, extras_of_states[: len(states)], strict=True):
        _check_index(policy, rule, state, extras)
    return extras_of_states[0]


def _check_constant(values: Sequence[Any], place: int, own: bool) -> None:
    where = f"number {place + 1} of its extras"
    if not all(_same(values[0], other) for other in values):
        raise EngineUnsupported(f"{where} changes with the state, and the engines read it once a game")
    if np.ndim(values[0]) != 0 and not own:
        raise EngineUnsupported(f"{where} is an array; only the first may be one, declared by first_extra = 'own'")
    if np.ndim(values[0]) == 0 and not isinstance(values[0], bool | int | float | np.number | np.bool_):
        raise EngineUnsupported(f"{where} is {values[0]!r:.40}, which is not a number")


def _check_first(policy: IndexPolicy, rule: IndexRule, state: Tally, extras: tuple[Any, ...]) -> None:
    """A first extra that the engines work out by themselves, such as the variance, must be the policy's."""
    expected: tuple[Any, ...] = (np.maximum(state.reward_squared / state.seen - state.mean_reward**2, 0.0),)
    if rule.kind in (MOMENTS, MONEY):
        expected = getattr(state, "moments", (None,))
        if rule.kind == MONEY:
            expected = (*expected[:2], np.asarray(rounded_money(state.left)))
        if policy.lead > 0.0:
            expected = (*expected, *_prior_of(state)[:, 0])
            if len(extras) < len(expected):
                raise EngineUnsupported("its extras do not begin with prior_extras, which the engine writes to")
    elif rule.kind == FLOOR_SEEN:
        expected = (np.asarray(state.mean_cost.min()),)
    elif rule.kind == BEST_RATIO:
        expected = (np.asarray(state.best_ratio),)
    for extra, right in zip(extras, expected, strict=False):
        if np.shape(extra) != np.shape(right) or not np.allclose(
            extra, right, rtol=RELATIVE_ERROR, atol=ABSOLUTE_ERROR
        ):
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
        if not _same(got, right) and not math.isclose(
            got, right, rel_tol=RELATIVE_ERROR, abs_tol=ABSOLUTE_ERROR + blur[arm]
        ):
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
        moved = [number * (1.0 + ROUNDING_SHIFT * rng.uniform(-1.0, 1.0, np.shape(number))) for number in others]
        # in the sum of a mean and a number of about 1 a last digit is one of that sum; a mean of 0 is exact
        moved[:0] = [mean + np.sign(mean) * ROUNDING_SHIFT * rng.uniform(-1.0, 1.0, mean.shape) for mean in means]
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


# --- short games -----------------------------------------------------------------------------------------------------


GAMES = ((5, 80), (40, 60))
"""Arms and budget of the short games: few arms are pulled often, many are sorted into groups."""

STAGES = ((2, 3.0), (5, 80.0), (40, 1e6))
"""Arms and budget with which extras and index are tried out: few and many, soon spent and never."""


def check_policy(policy: IndexPolicy) -> IndexRule:
    """The rule by which the engines play the policy; `EngineUnsupported` if they would play another one.

    That is decided once for a policy, whatever the problem.
    """
    rule = rule_of(policy)
    check_once(policy, check_as_written)
    return rule


def check_as_written(policy: IndexPolicy) -> None:
    """`EngineUnsupported` if the policy is not what the engines take it for, or not played as it is written."""
    rule = rule_of(policy)
    extras = try_out(policy)
    spot_check(rule, tuple(0.5 if np.ndim(extra) else float(extra) for extra in extras), policy=policy.name)
    for arms, money in () if rule.drawn else GAMES:
        rehearse(policy, arms, money)


def try_out(policy: IndexPolicy) -> tuple[Any, ...]:
    """The policy's extras; `EngineUnsupported` if they or its index are not what the engines take them for."""
    extras: tuple[Any, ...] = ()
    for arms, budget in STAGES:
        knowledge = what_is_known(_stage(arms), policy, budget)
        states = made_up_states(policy, arms, knowledge)
        extras = extras_at(policy, rule_of(policy), states, corner_states(policy, arms, knowledge))
    return extras


def _moments(mean_reward: float, mean_cost: float, rng: np.random.Generator) -> list[float]:
    """Variances and a covariance that numbers in [0, 1] with these means can have, or nearly so."""
    rewards, costs = (rng.random() * mean * (1.0 - mean) for mean in (mean_reward, mean_cost))
    return [rewards, costs, rng.uniform(-1.0, 1.0) * np.sqrt(rewards * costs)]


def spot_check(
    rule: IndexRule, extras: tuple[float, ...] = (), points: int = 2_000, seed: int = 0, policy: str = "this policy"
) -> None:
    """Raise BadParameter where a declared monotonicity fails at random points; it can refute, never prove."""
    f = compiled(rule.index)
    monotone = rule.monotone
    rng = np.random.default_rng(seed)
    moves = (
        (monotone.rises_with_reward, 0, 1.0, "rise with mean_reward"),
        (monotone.falls_with_cost, 1, -1.0, "fall with mean_cost"),
        (monotone.falls_with_pulls, 2, -1.0, "fall with pulls"),
        (monotone.rises_with_rounds, 3, 1.0, "rise with rounds"),
        (monotone.ignores_cost, 1, 0.0, "ignore mean_cost"),
        (monotone.ignores_rounds, 3, 0.0, "ignore rounds"),
        (monotone.rises_with_first, 4, 1.0, "rise with its first extra"),
        (monotone.falls_with_first, 4, -1.0, "fall with its first extra"),
        (monotone.rises_with_money, 6, 1.0, "rise with the money left"),
    )
    for _ in range(points):
        pulls = np.floor(np.exp(rng.uniform(0.0, 18.0)))
        point = [rng.random(), rng.random(), pulls, pulls + np.floor(np.exp(rng.uniform(0.0, 18.0))), *extras]
        if rule.kind in (MOMENTS, MONEY):
            point[4:7] = _moments(point[0], point[1], rng)
            if rule.kind == MONEY:
                point[6] = rounded_money(np.exp(rng.uniform(0.0, 18.0)))
        elif rule.kind != CONSTANT:
            point[4:5] = [rng.random()]
        for declared, which, direction, words in moves:
            if not declared:
                continue
            other = list(point)
            if which < 2 or which == 4:
                other[which] += (1.0 - point[which]) * rng.random()
            else:
                other[which] = np.floor(point[which] * np.exp(rng.exponential()) + 1.0)
            low, high = f(*point), f(*other)
            slack = monotone.error * (1.0 + abs(low)) if np.isfinite(low) else 0.0
            fine = low == high or (direction > 0 and high >= low - slack) or (direction < 0 and high <= low + slack)
            if not fine:
                places = [", ".join(f"{number:g}" for number in place) for place in (point, other)]
                raise BadParameter(
                    f"{policy}: its index {rule.index.__name__} does not {words}: {low:g} at ({places[0]}) and {high:g} at "
                    f"({places[1]}); leave that declaration out"
                )


class FixedOutcomes(OutcomeLaw):
    """Outcomes from a generator of its own: the k-th is the same, in whatever batches they are drawn.

    Rewards are continuous, so that ties are rare; costs are quarters, so that every pull passes a multiple of one.
    """

    kind: ClassVar[str] = "rehearsed"

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._least = 0.6 * float(self._rng.random())
        self._power = 1 + seed % 2

    @property
    def reward_mean(self) -> float:
        return self._least + 0.2

    @property
    def cost_mean(self) -> float:
        return 0.625 if self._power == 1 else 1.0 - (0.5 + math.sqrt(0.5) + math.sqrt(0.75)) / 4.0

    def sample(self, rng: np.random.Generator, size: int) -> tuple[Array, Array]:
        drawn = 1.0 - self._rng.random((size, 2))
        return self._least + 0.4 * drawn[:, 0], np.ceil(4.0 * drawn[:, 1] ** self._power) / 4.0

    def cost_atoms(self) -> None:
        return None


def rehearse(policy: IndexPolicy, arms: int, money: int) -> None:
    """Raise `EngineUnsupported` if the engine pulls an arm that `choose` would not."""
    # with a checkpoint at every quarter each pull passes one, so that the order of the pulls can be read off
    budgets = [quarter / 4.0 for quarter in range(1, 4 * money + 1)]
    try:
        games = IndexGames(_stage(arms), policy, budgets).game(budgets, np.random.SeedSequence(0))
    except NotANumber as error:
        raise EngineUnsupported(str(error)) from error
    stage, rng = _stage(arms), np.random.default_rng(0)
    state = policy.start(arms, what_is_known(stage, policy, budgets[-1]))
    before = np.zeros(arms, dtype=np.int64)
    for _, _, rounds, pulls in games:
        if rounds > before.sum():
            arm = int(np.argmax(pulls - before))
            _check_choice(policy, state, arm, rounds)
            rewards, costs = stage.arms[arm].sample(rng, 1)
            policy.observe(state, arm, float(rewards[0]), float(costs[0]), rng)
            before = pulls
    if state.cost.sum() < budgets[-1]:
        _check_choice(policy, state, None, int(before.sum()) + 1)


def _stage(arms: int) -> Problem:
    return Problem(tuple(Arm(f"arm-{seed + 1}", FixedOutcomes(seed)) for seed in range(arms)))


def _check_choice(policy: IndexPolicy, state: Tally, arm: int | None, rounds: int) -> None:
    choices = list(_choices(policy, state, arm))
    if choices[-1] != arm:
        raise EngineUnsupported(
            f"in a rehearsal the engine played arm {arm} in round {rounds}, where its choose names {choices[-1]}; "
            f"check what monotone declares"
        )


def _choices(policy: IndexPolicy, state: State, wanted: int | None) -> Iterator[int | None]:
    """The arms that `choose` may name: one arm, or each of those that tie until the wanted one is found."""
    rng = _TieOrder(np.random.PCG64(0))
    while rng.place <= rng.last:
        choice = policy.choose(state, rng)
        yield choice
        if choice == wanted:
            return
        rng.place += 1


class _TieOrder(np.random.Generator):
    """Where a policy draws one of several equals, gives each of them in turn."""

    place = 0
    last = 0

    def integers(self, low: Any, *rest: Any, **options: Any) -> Any:
        self.last = int(low) - 1
        return self.place
