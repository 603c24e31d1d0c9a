"""Games of index policies by the compiled engines: the Python side.

`IndexGames` prepares a problem and a policy once; `play` gives one run's results at every budget. A game is seeded by its
own words, so runs may be played in any order, in any number of threads (one `IndexGames` for each).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import NotANumber
from budgetbandits.numerics.arrays import Array
from budgetbandits.policies.base import Knowledge
from budgetbandits.policies.index import IndexPolicy, check_arity, not_a_number
from budgetbandits.policies.kube import SLACK
from budgetbandits.policies.statistics import Tally
from budgetbandits.problems.problem import Problem
from budgetbandits.simulation.common_outcomes import CommonOutcomes
from budgetbandits.simulation.engines.index.loops import play_lazily, play_plain
from budgetbandits.simulation.engines.index.rules import IndexRule, compiled, completed, extras_of, rule_of
from budgetbandits.simulation.engines.index.state import (
    BEST_RATIO,
    CONSTANT,
    EXTRAS,
    FLOOR_SEEN,
    MOMENTS,
    MONEY,
    OWN,
    VARIANCE,
    IndexRecord,
)
from budgetbandits.simulation.engines.runtime.laws import tables_of
from budgetbandits.simulation.engines.runtime.records import LARGEST_BUFFER, NOT_A_NUMBER, ROUND_LIMIT
from budgetbandits.simulation.outcome import Engine
from budgetbandits.simulation.reference import TOLERANCE, Game, own_seed, round_limit, what_is_known

LARGEST_TAPES = 1 << 20
"""Outcomes kept at once where all laws are finite: 16 megabytes at most, which most games hardly begin to fill."""

LONGEST_TAPE = 1 << 16
"""Outcomes kept at once of a single arm."""

LEAST_TAPE = 512
"""Where there is room for fewer outcomes of an arm there are no sweeps."""

FIRST_SAMPLED = 1024
"""Arms for which outcomes are drawn before a game; it may end before more are pulled."""

PLAIN_LOOP_ARMS_MAX = 32
"""Most arms with which the plain loop is faster for a rule that looks at the smallest mean cost."""

DECLARED = "; if that is so, give the class monotone = RISING_INDEX"
"""Remedy for a rule that does not declare how its index moves."""

Sampler = Callable[[int, int], tuple[Array, Array]]
"""Gives the rewards and costs of a number of an arm's next pulls."""

Start = tuple[NDArray[np.int64], float | Array, float | Array, Array]
"""The fields that a game at a budget starts with, the arms' own numbers and prices, and the further extras."""


def how_played(rule: IndexRule, arms: int) -> Engine:
    """Which of the engines plays a rule on this number of arms, and why not a faster one."""
    declared = rule.monotone
    if rule.drawn:
        return Engine("index plain loop", "it draws the arm at random, so every index counts in every round")
    if not declared.lazy:
        return Engine("index plain loop", "monotone does not say that its index never falls with the rounds" + DECLARED)
    if rule.kind >= FLOOR_SEEN:
        common = "best ratio" if rule.kind == BEST_RATIO else "smallest cost"
        # where the floor moves with every pull nearly every bound is loose: few arms are sooner evaluated outright; the
        # best ratio is the leader's for the most part, and hardly moves
        if rule.kind == FLOOR_SEEN and arms <= PLAIN_LOOP_ARMS_MAX:
            return Engine("index plain loop")
        if not declared.falls_with_first:
            return Engine("index plain loop", f"monotone does not say that its index falls with the {common}")
        return Engine("index bounds", f"its index depends on the {common}, which moves with every pull")
    if rule.kind == MOMENTS:
        return Engine("index bounds", "its index depends on variances, which blocks of pulls do not tell")
    if rule.kind == MONEY and not declared.rises_with_money:
        return Engine("index plain loop", "monotone does not say that its index rises with the money left")
    if rule.kind == MONEY:
        return Engine("index bounds", "its index depends on variances, which blocks of pulls do not tell, and on money")
    if not declared.blocks:
        return Engine("index bounds", "monotone does not say that its index never falls with the mean reward, nor rises "
                      "with the mean cost and the pulls" + DECLARED)  # fmt: skip
    if rule.kind == VARIANCE and not declared.rises_with_first:
        return Engine("index bounds", "monotone does not say that its index rises with the variance")
    return Engine("index blocks")


def one_pull_each(policy: IndexPolicy, arms: int, known: Knowledge) -> Tally:
    """The simplest state in which a policy may be asked for its extras: every arm has been pulled once."""
    state: Tally = policy.start(arms, known)
    state.pulls[:] = 1
    nothing, half = np.zeros(arms), np.full(arms, 0.5)
    state.fill(nothing, nothing, half, half * half, nothing)
    state.first_pulls_done = arms
    return state


def tape_length(arms: int, buffered: bool) -> int:
    """Outcomes of one arm kept at once, a power of two.

    >>> tape_length(100, buffered=False), tape_length(100_000, buffered=False), tape_length(1_000_000, buffered=True)
    (8192, 8, 4)
    """
    runs_at_once = (
        min(1024, max(4, LARGEST_BUFFER // arms)) if buffered else min(LONGEST_TAPE, max(1, LARGEST_TAPES // arms))
    )
    return 1 << (runs_at_once.bit_length() - 1)


def _unasked(arm: int, count: int) -> tuple[Array, Array]:
    raise AssertionError(f"arm {arm} has a finite law, of which compiled code draws")


class IndexGames:
    """Runs of one policy on one problem."""

    def __init__(
        self,
        problem: Problem,
        policy: IndexPolicy,
        budgets: Sequence[float],
        common: bool = False,
        horizon: float = math.inf,
        lazy: bool = True,
    ) -> None:
        rule = rule_of(policy)
        self._engine = how_played(rule, len(problem))
        self._problem = problem
        self._policy = policy
        self._budgets = [float(budget) for budget in budgets]
        self._rule = rule
        self._index = compiled(rule.index)
        self._horizon = horizon
        lazy = lazy and horizon == math.inf  # blocks and sweeps do not look at it
        self._play = play_lazily if lazy and self._engine.name != "index plain loop" else play_plain
        self._starts: dict[float, Start] = {}
        self._tables = tables = tables_of(problem, sampled=common)
        more = max(0, extras_of(rule.index) - len(EXTRAS))
        self._record = IndexRecord(len(problem), len(budgets), tape_length(len(problem), tables.buffered), more)
        self._sampled = np.flatnonzero(tables.cost_atoms == 0)[:FIRST_SAMPLED].tolist()
        self._record.point_to(**tables.arrays)
        self._record.set(tolerance=TOLERANCE * tables.cost_scale, affordable=SLACK * tables.cost_scale)
        self._first = self._record.fields()

    def play(
        self, seed: np.random.SeedSequence, max_rounds: int = 1 << 60, outcomes: CommonOutcomes | None = None
    ) -> list[Game]:
        """One run: a single game to the largest of the rising budgets, or one for each if the policy must know it."""
        if self._policy.anytime:
            return self.game(self._budgets, seed, max_rounds, outcomes)
        return [self.game([budget], own_seed(seed, budget), max_rounds, outcomes)[0] for budget in self._budgets]

    @property
    def counters(self) -> dict[str, int]:
        """How often the engine did what in the last game, by counter."""
        return {name: getattr(self._record, name) for name in self._record.fields_of_kind("Counter")}

    def game(
        self,
        budgets: Sequence[float],
        seed: np.random.SeedSequence,
        max_rounds: int = 1 << 60,
        outcomes: CommonOutcomes | None = None,
    ) -> list[Game]:
        """One game to the largest of some of the rising budgets, and how it stood at the end of each."""
        record = self._record
        self._begin(budgets, seed.generate_state(4, np.uint64), max_rounds)
        draw = outcomes.reader() if outcomes else self._sampler(seed)
        for arm in self._sampled:  # they are pulled in this order anyway; to be called for each takes longer
            self._refill(arm, draw)
        while (status := self._play(record.game, self._index)) >= 0:
            self._refill(int(status), draw)
        if status == NOT_A_NUMBER:
            raise self._not_a_number(record.leader, budgets[-1])
        if status == ROUND_LIMIT:
            raise round_limit(self._policy, record.rounds, budgets[record.checkpoint])
        return record.results(len(budgets))

    def _begin(self, budgets: Sequence[float], words: NDArray[Any], max_rounds: int) -> None:
        """Make the record ready for a game."""
        record = self._record
        start, record.own[:], record.price[:], record.more[:] = self._start_at(budgets[-1])
        record.budget[: len(budgets)] = np.asarray(budgets) * self._tables.cost_scale
        record.begin(start, words)
        record.set(budgets=len(budgets), max_rounds=max_rounds, horizon=self._horizon)

    def _start_at(self, budget: float) -> Start:
        if budget in self._starts:
            return self._starts[budget]
        policy, kind, declared = self._policy, self._rule.kind, self._rule.monotone
        tables, record = self._tables, self._record
        state = one_pull_each(policy, len(self._problem), what_is_known(self._problem, policy, budget))
        extras = policy.extras(state)
        check_arity(policy, extras)
        extras = completed(self._rule.index, extras)
        # only the policies with a mask of affordable arms have a price to pay before an arm may be chosen
        mask = policy.affordable(state)
        price = 0.0 if mask is None else state.known.costs * tables.cost_scale
        finite = not tables.buffered and record.arrays["buffer"].shape[1] >= LEAST_TAPE
        record.restart(self._first)
        record.set(
            kind=kind, forced=policy.first_pulls, rounds_matter=not declared.ignores_rounds, cost_matters=not declared.ignores_cost,
            blocks=self._engine.name == "index blocks", sweeps=finite and declared.lazy and kind < MOMENTS,
            softmax=policy.softmax, exploration=policy.exploration(len(self._problem)),
            lead=policy.lead,
            reward_unit=1.0 / tables.reward_scale, cost_unit=1.0 / tables.cost_scale, slack=declared.error,
        )  # fmt: skip
        for place, (name, extra) in enumerate(zip(EXTRAS, extras, strict=False)):
            if kind == CONSTANT or place > (2 if kind in (MOMENTS, MONEY) else 0):
                record.set(**{name: float(extra)})
        more = np.array(extras[len(EXTRAS) :], dtype=float)
        self._starts[budget] = record.fields(), extras[0] if kind == OWN else 0.0, price, more
        return self._starts[budget]

    def _not_a_number(self, arm: int, budget: float) -> NotANumber:
        arrays, tables = self._record.arrays, self._tables
        state = one_pull_each(self._policy, len(self._problem), what_is_known(self._problem, self._policy, budget))
        state.pulls[:] = arrays["pulls"]
        reward, cost = tables.reward_scale, tables.cost_scale
        state.fill(
            arrays["rewards"] / reward, arrays["squares"] / reward**2, arrays["costs"] / cost,
            arrays["cost_squares"] / cost**2, arrays["products"] / (reward * cost),
        )  # fmt: skip
        value = float(np.broadcast_to(self._policy.scores(state), state.pulls.shape)[arm])
        pulls, rounds = int(state.pulls[arm]), self._record.rounds
        return not_a_number(self._policy, arm, state.mean_reward[arm], state.mean_cost[arm], pulls, rounds, value)

    def _sampler(self, seed: np.random.SeedSequence) -> Sampler:
        if not self._sampled:
            return _unasked
        world = np.random.default_rng(seed.spawn(1)[0])
        return lambda arm, count: self._tables.arms[arm].sample(world, count)

    def _refill(self, arm: int, draw: Sampler) -> None:
        arrays = self._record.arrays
        # arms are pulled once or twice for the most part: begin small
        size = int(min(arrays["buffer"].shape[1], max(4, 2 * arrays["pulls"][arm])))
        self._record.fill(arm, *draw(arm, size))
