"""Find out, before a game begins, whether the engines play a policy from outside the package as it is written.

Methods are compared (`library`). Once per process extras and index are tried at made-up states (`probing`), and the
policy is played on short games with outcomes fixed in advance, where each pull of the engine must be one that the
policy's own `choose` could have named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from budgetbandits.errors import NotANumber
from budgetbandits.fingerprint import fingerprint, ours
from budgetbandits.numerics.arrays import Array
from budgetbandits.policies.base import State
from budgetbandits.policies.index import IndexPolicy
from budgetbandits.policies.statistics import Tally
from budgetbandits.problems.distributions import OutcomeLaw
from budgetbandits.problems.problem import Arm, Problem
from budgetbandits.simulation.engines.index.engine import Games
from budgetbandits.simulation.engines.index.library import rule_of
from budgetbandits.simulation.engines.index.probing import corner_states, extras_at, made_up_states
from budgetbandits.simulation.engines.index.rules import IndexRule, spot_check
from budgetbandits.simulation.known import EngineUnsupported
from budgetbandits.simulation.reference import what_is_known

GAMES = ((5, 80), (40, 60))
"""Arms and budget of the short games: few arms are pulled often, many are sorted into groups."""

STAGES = ((2, 3.0), (5, 80.0), (40, 1e6))
"""Arms and budget with which extras and index are tried out: few and many, soon spent and never."""

_judged: dict[str, str] = {}
"""By fingerprint: why the engines do not play a policy as it is written, or nothing if they do."""


def check_policy(policy: IndexPolicy) -> IndexRule:
    """The rule by which the engines play the policy; `EngineUnsupported` if they would play another one.

    That is decided once for a policy, whatever the problem.
    """
    rule = rule_of(policy)
    if not ours(type(policy)):  # what the package's own policies declare is tested once for all
        identity = fingerprint(policy)
        if identity not in _judged:
            _judged[identity] = _why_not(policy, rule)
        if _judged[identity]:
            raise EngineUnsupported(_judged[identity])
    return rule


def _why_not(policy: IndexPolicy, rule: IndexRule) -> str:
    try:
        extras = try_out(policy)
        spot_check(rule, tuple(0.5 if np.ndim(extra) else float(extra) for extra in extras), policy=policy.name)
        for arms, money in () if rule.drawn else GAMES:
            rehearse(policy, arms, money)
    except EngineUnsupported as reason:
        return str(reason)
    return ""


def try_out(policy: IndexPolicy) -> tuple[Any, ...]:
    """The policy's extras; `EngineUnsupported` if they or its index are not what the engines take them for."""
    extras: tuple[Any, ...] = ()
    for arms, budget in STAGES:
        known = what_is_known(_stage(arms), policy, budget)
        states = made_up_states(policy, arms, known)
        extras = extras_at(policy, rule_of(policy), states, corner_states(policy, arms, known))
    return extras


class Rehearsed(OutcomeLaw):
    """Outcomes from a generator of its own: whoever asks, in whatever batches, the k-th is the same.

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
        games = Games(_stage(arms), policy, budgets).game(budgets, np.random.SeedSequence(0))
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
    return Problem(tuple(Arm(f"arm-{seed + 1}", Rehearsed(seed)) for seed in range(arms)))


def _check_choice(policy: IndexPolicy, state: Tally, arm: int | None, rounds: int) -> None:
    choices = list(_choices(policy, state, arm))
    if choices[-1] != arm:
        raise EngineUnsupported(
            f"in a rehearsal the engine played arm {arm} in round {rounds}, where its choose names {choices[-1]}; "
            f"check what monotone declares"
        )


def _choices(policy: IndexPolicy, state: State, wanted: int | None) -> Iterator[int | None]:
    """What `choose` may name: one arm, or each of those that tie until the wanted one is found."""
    rng = _InTurn(np.random.PCG64(0))
    while rng.place <= rng.last:
        choice = policy.choose(state, rng)
        yield choice
        if choice == wanted:
            return
        rng.place += 1


class _InTurn(np.random.Generator):
    """Where a policy draws one of several equals, gives each of them in turn."""

    place = 0
    last = 0

    def integers(self, low: Any, *rest: Any, **options: Any) -> Any:
        self.last = int(low) - 1
        return self.place
