"""Outcomes that all policies share: the n-th pull of an arm in a run gives every policy the same.

They are derived from the seed, the problem, the run and the arm, never from the policy. So what two policies earn in
one run differs by what they choose and by their own randomness alone, not by the luck of the arms. An arm's outcomes
are drawn in an order and in batches that do not depend on who asks for how many at once.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable

import numpy as np

from budgetbandits.numerics.arrays import Array
from budgetbandits.problems.problem import Problem

SMALLEST_BATCH, LARGEST_BATCH = 16, 4096
"""Outcomes drawn at once: twice as many as before, since most arms are pulled a few times only."""

_SHARED_KEY = int.from_bytes(hashlib.blake2b(b"the outcomes of all policies", digest_size=8).digest(), "little")
"""Stands where the hash of a policy stands in the seed of its own randomness."""


class CommonOutcomes:
    """The outcomes of every arm of a problem in one run.

    >>> problem = Problem.bernoulli(rewards=[0.5, 0.5], costs=[0.5, 0.5])
    >>> rewards, costs = CommonOutcomes(problem, seed=1, run=0).window(arm=1, first=0, count=40)
    >>> bool((CommonOutcomes(problem, seed=1, run=0).window(arm=1, first=30, count=10)[0] == rewards[30:]).all())
    True
    """

    def __init__(self, problem: Problem, seed: int, run: int) -> None:
        self._problem = problem
        self._seed = np.random.SeedSequence(seed, spawn_key=(problem.identity, _SHARED_KEY, run))
        self._arms: dict[int, _ArmOutcomes] = {}

    def window(self, arm: int, first: int, count: int) -> tuple[Array, Array]:
        """Rewards and costs of ``count`` pulls, from the one of number ``first`` on; those before are forgotten."""
        if arm not in self._arms:
            self._arms[arm] = self._begin(arm)
        drawn = self._arms[arm]
        if first < drawn.first:  # another game with the same outcomes
            drawn = self._arms[arm] = self._begin(arm)
        while drawn.first + drawn.outcomes.shape[1] < first + count:
            drawn.draw_more(keep_from=first)
        start = first - drawn.first
        rewards, costs = drawn.outcomes[:, start : start + count]
        return rewards, costs

    def reader(self) -> Callable[[int, int], tuple[Array, Array]]:
        """A reader for one game: a function of an arm and a count that gives the outcomes of the arm's next pulls."""
        taken: Counter[int] = Counter()

        def following(arm: int, count: int) -> tuple[Array, Array]:
            first = taken[arm]
            taken[arm] += count
            return self.window(arm, first, count)

        return following

    def _begin(self, arm: int) -> _ArmOutcomes:
        key = (*self._seed.spawn_key, arm)
        return _ArmOutcomes(self._problem, arm, np.random.SeedSequence(self._seed.entropy, spawn_key=key))


class _ArmOutcomes:
    """The outcomes of one arm that were drawn last, and the number of the first of them."""

    def __init__(self, problem: Problem, arm: int, seed: np.random.SeedSequence) -> None:
        self.outcomes: Array = np.zeros((2, 0))
        self.first = 0
        self._arm = problem.arms[arm]
        self._rng = np.random.default_rng(seed)
        self._batch = SMALLEST_BATCH

    def draw_more(self, keep_from: int) -> None:
        forgotten = min(max(0, keep_from - self.first), self.outcomes.shape[1])
        new = np.stack(self._arm.sample(self._rng, self._batch))
        self.outcomes = np.concatenate([self.outcomes[:, forgotten:], new], axis=1)
        self.first += forgotten
        self._batch = min(2 * self._batch, LARGEST_BATCH)
