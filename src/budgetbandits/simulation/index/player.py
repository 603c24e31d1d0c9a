"""Games of index policies by the compiled engines: the Python side.

`Games` prepares a problem and a policy once; `play` gives one run's results at every budget. A game is seeded by its
own words, so runs may be played in any order, in any number of threads (one `Games` for each).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from budgetbandits.arrays import Array
from budgetbandits.errors import NotANumber, RoundLimit
from budgetbandits.policies.base import Policy
from budgetbandits.policies.estimates import IndexPolicy, check_arity, not_a_number
from budgetbandits.policies.kube import SLACK
from budgetbandits.problem import Problem
from budgetbandits.simulation.compiled.laws import Tables
from budgetbandits.simulation.index.lazy_loop import play_lazily
from budgetbandits.simulation.index.library import rule_of
from budgetbandits.simulation.index.memory import (
    CHECKPOINT,
    CONSTANT,
    EVALUATIONS,
    FLOOR_SEEN,
    LEADER,
    NEEDS_OUTCOMES,
    NOT_A_NUMBER,
    OWN,
    ROUND_LIMIT,
    ROUNDS,
    SWEPT,
    TAKEN_BACK,
    VARIANCE,
    Memory,
    Rule,
)
from budgetbandits.simulation.index.plain_loop import play_plain
from budgetbandits.simulation.index.probing import one_pull_each
from budgetbandits.simulation.index.rules import EXTRAS, IndexRule, compiled, completed
from budgetbandits.simulation.outcome import Engine
from budgetbandits.simulation.reference import TOLERANCE, Game, own_seed, what_is_known

LARGEST_BUFFER = 1 << 22
"""Outcomes kept at once for arms whose laws are not finite, over all arms."""

LARGEST_TAPES = 1 << 20
"""Outcomes kept at once where all laws are finite: 16 megabytes at most, which most games hardly begin to fill."""

LONGEST_TAPE = 1 << 16
"""Outcomes kept at once of a single arm."""

LEAST_TAPE = 512
"""Where there is room for fewer outcomes of an arm there are no sweeps."""

FEW_ARMS = 32
"""Up to so many arms the plain loop is faster for a rule that looks at the smallest mean cost."""


def how_played(rule: IndexRule, arms: int) -> Engine:
    """Which of the engines plays a rule on so many arms, and why not a faster one."""
    known = rule.monotone
    if not known.lazy:
        return Engine("index plain loop", "monotone does not say that its index rises with the rounds")
    if rule.kind == FLOOR_SEEN:
        # where the floor moves with every pull nearly every bound is loose: few arms are sooner evaluated outright
        if arms <= FEW_ARMS:
            return Engine("index plain loop")
        if not known.falls_with_first:
            return Engine("index plain loop", "monotone does not say that its index falls with the smallest cost")
        return Engine("index bounds", "its index depends on the smallest cost, which moves with every pull")
    if not known.blocks:
        return Engine("index bounds", "monotone does not say that its index rises with the mean reward and falls with "
                      "the mean cost and the pulls")  # fmt: skip
    if rule.kind == VARIANCE and not known.rises_with_first:
        return Engine("index bounds", "monotone does not say that its index rises with the variance")
    return Engine("index blocks")


def tape_length(arms: int, buffered: bool) -> int:
    """Outcomes of one arm kept at once, a power of two.

    >>> tape_length(100, buffered=False), tape_length(100_000, buffered=False), tape_length(1_000_000, buffered=True)
    (8192, 8, 4)
    """
    each = min(1024, max(4, LARGEST_BUFFER // arms)) if buffered else min(LONGEST_TAPE, max(1, LARGEST_TAPES // arms))
    return 1 << (each.bit_length() - 1)


class Games:
    """Runs of one policy on one problem."""

    def __init__(self, problem: Problem, policy: Policy, budgets: Sequence[float], lazy: bool = True) -> None:
        assert isinstance(policy, IndexPolicy)
        rule = rule_of(policy)
        self._engine = how_played(rule, len(problem))
        self._problem = problem
        self._policy = policy
        self._budgets = [float(budget) for budget in budgets]
        self._rule = rule
        self._index = compiled(rule.index)
        self._play = play_lazily if lazy and self._engine.name != "index plain loop" else play_plain
        self._rules: dict[float, tuple[Rule, float | Array, float | Array]] = {}
        self._tables = tables = Tables(problem)
        self._memory = memory = Memory(len(problem))
        for name in ("reward_first", "reward_atoms", "cost_first", "cost_atoms", "reward_floor", "cost_top"):
            memory.row(name)[:] = getattr(tables, name)
        self._own, self._price = memory.row("own"), memory.row("price")
        self._buffer = np.zeros((len(problem), tape_length(len(problem), tables.buffered), 2))

    def play(self, seed: np.random.SeedSequence, max_rounds: int = 1 << 60) -> list[Game]:
        """One run: a single game to the largest of the rising budgets, or one for each if the policy must know it."""
        if self._policy.anytime:
            return self.game(self._budgets, seed, max_rounds)
        return [self.game([budget], own_seed(seed, budget), max_rounds)[0] for budget in self._budgets]

    @property
    def evaluations(self) -> int:
        """How often the last game evaluated an index."""
        return int(self._memory.number[EVALUATIONS])

    @property
    def swept(self) -> int:
        """How many rounds of the last game were played in sweeps."""
        return int(self._memory.number[SWEPT])

    @property
    def taken_back(self) -> int:
        """How many sweeps of the last game were taken back."""
        return int(self._memory.number[TAKEN_BACK])

    def game(self, budgets: Sequence[float], seed: np.random.SeedSequence, max_rounds: int = 1 << 60) -> list[Game]:
        """One game to the largest of the rising budgets, and how it stood at the end of each."""
        tables, memory = self._tables, self._memory
        rule, self._own[:], self._price[:] = self._rule_for(budgets[-1])
        memory.clear(seed.generate_state(4, np.uint64))
        world: np.random.Generator | None = None
        places, arms = len(budgets), len(self._problem)
        pulls = np.zeros((places, arms), dtype=np.int64)
        reward, spend, rounds = np.zeros(places), np.zeros(places), np.zeros(places, dtype=np.int64)
        limits = (TOLERANCE * tables.cost_scale, SLACK * tables.cost_scale, max_rounds)
        ends = np.asarray(budgets) * tables.cost_scale
        while True:
            status = self._play(
                self._index, rule, limits, ends,
                memory.floats, memory.wholes, memory.number, memory.amount, memory.table, memory.tree, memory.stream,
                tables.reward_value, tables.reward_chance, tables.cost_value, tables.cost_chance, self._buffer,
                pulls, reward, spend, rounds,
            )  # fmt: skip
            if status != NEEDS_OUTCOMES:
                break
            if world is None:
                world = np.random.default_rng(seed.spawn(1)[0])
            self._refill(int(memory.number[LEADER]), world)
        if status == NOT_A_NUMBER:
            raise self._not_a_number(int(memory.number[LEADER]), budgets[-1])
        if status == ROUND_LIMIT:
            raise RoundLimit(
                f"{self._policy.spec} has played {memory.number[ROUNDS]:,} rounds and part of a budget of "
                f"{budgets[memory.number[CHECKPOINT]]:g} is left; raise max_rounds (--max-rounds) or lower the budget"
            )
        return [(float(reward[i]), float(spend[i]), int(rounds[i]), pulls[i]) for i in range(places)]

    def _rule_for(self, budget: float) -> tuple[Rule, float | Array, float | Array]:
        """The rule at this budget, and the arms' own numbers and prices."""
        if budget in self._rules:
            return self._rules[budget]
        policy, kind, known = self._policy, self._rule.kind, self._rule.monotone
        state = one_pull_each(policy, len(self._problem), what_is_known(self._problem, policy, budget))
        extras = policy.extras(state)
        check_arity(policy, extras)
        extras = completed(self._rule.index, extras)
        # only the policies with a mask of affordable arms have a price to pay before an arm may be chosen
        mask = policy.affordable(state)
        price = 0.0 if mask is None else state.known["costs"] * self._tables.cost_scale
        numbers = [0.0] * EXTRAS
        for place, extra in enumerate(extras):
            if place > 0 or kind == CONSTANT:
                numbers[place] = float(extra)
        finite = not self._tables.buffered and self._buffer.shape[1] >= LEAST_TAPE
        rule = Rule(  # type: ignore[call-arg]
            kind, *numbers, 1.0 / self._tables.reward_scale, 1.0 / self._tables.cost_scale, known.error,
            not known.ignores_rounds, not known.ignores_cost, self._engine.name == "index blocks",
            finite and known.lazy and kind != FLOOR_SEEN,
        )  # fmt: skip
        self._rules[budget] = rule, extras[0] if kind == OWN else 0.0, price
        return self._rules[budget]

    def _not_a_number(self, arm: int, budget: float) -> NotANumber:
        memory, tables = self._memory, self._tables
        state = one_pull_each(self._policy, len(self._problem), what_is_known(self._problem, self._policy, budget))
        state.pulls[:] = memory.row("pulls")
        state.reward[:] = memory.row("reward") / tables.reward_scale
        state.reward_squared[:] = memory.row("square") / tables.reward_scale**2
        state.cost[:] = memory.row("cost") / tables.cost_scale
        value = float(np.broadcast_to(self._policy.scores(state), state.pulls.shape)[arm])
        pulls, rounds = int(state.pulls[arm]), int(memory.number[ROUNDS])
        return not_a_number(self._policy, arm, state.mean_reward[arm], state.mean_cost[arm], pulls, rounds, value)

    def _refill(self, arm: int, world: np.random.Generator) -> None:
        chunk = self._buffer.shape[1]
        # arms are pulled once or twice for the most part: begin small
        size = int(min(chunk, max(4, 2 * self._memory.row("pulls")[arm])))
        rewards, costs = self._tables.arms[arm].sample(world, size)
        self._buffer[arm, :size, 0] = rewards
        self._buffer[arm, :size, 1] = costs
        self._memory.row("used")[arm] = 0
        self._memory.row("filled")[arm] = size
