"""Policies that score every arm by a random draw and pull the best: the shape of Thompson sampling.

What such a policy knows of an arm is a few numbers, its *statistics*. Two functions say all the rest:

    def score(statistics, rng, *extras):                # a draw from the arm's posterior
        return rng.beta(statistics[0], statistics[1])

    def learn(statistics, reward, cost, rng, *extras):  # changes them in place
        statistics[0] += reward
        statistics[1] += 1.0 - reward

Both serve one arm at a time, and use plain arithmetic, `math`, the methods of the generator and `trial`, so that they
can be compiled. Compiled, they draw what they draw here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadParameter, BadState
from budgetbandits.numerics.arrays import Array
from budgetbandits.policies.base import Policy, State, best

Arms = NDArray[np.int64]


@dataclass
class Posterior(State):
    """What is known of every arm: a column of statistics for each."""

    statistics: Array = field(default_factory=lambda: np.zeros((0, 0)))

    def check(self, name: str, array: NDArray[Any]) -> None:
        if name != "statistics":
            super().check(name, array)
        elif np.isnan(array).any():  # statistics may be negative: nobody says what they are
            raise BadState(f"{name!r} holds no number; the saved state is damaged")


@dataclass(frozen=True)
class SamplingPolicy(Policy):
    """Each round every arm draws a score, independently of the others, from its own posterior.

    A policy gives `score`, `learn`, `prior` and `recall`, and `extras` if the two functions take any. One that keeps
    another state gives `start`, `draw`, `draw_one` and `observe` instead; then no compiled engine plays it.
    """

    score: ClassVar[Callable[..., float]]
    learn: ClassVar[Callable[..., None]]

    def prior(self) -> tuple[float, ...]:
        """The statistics of an arm before its first pull."""
        raise BadParameter(f"{self.name} has no prior; let prior return the statistics of an arm never pulled")

    def extras(self) -> tuple[float, ...]:
        """Further arguments of `score` and `learn`, the same for both: hyper-parameters."""
        return ()

    def start(self, arms: int, known: Mapping[str, Any]) -> State:
        return Posterior(
            active=np.ones(arms, dtype=bool),
            pulls=np.zeros(arms, dtype=np.int64),
            known=self.take(known),
            statistics=np.repeat(np.array(self.prior(), dtype=float)[:, None], arms, axis=1),
        )

    def statistics(self, state: State) -> Array:
        """The statistics of all arms, a column for each."""
        assert isinstance(state, Posterior)
        return state.statistics

    def draw(self, state: State, rng: np.random.Generator, rounds: int, arms: Arms | None = None) -> Array:
        """The scores of these arms (all of them if None) in so many independent rounds, as (round, arm)."""
        numbers = range(len(state.pulls)) if arms is None else arms.tolist()
        return np.array([[self.draw_one(state, rng, arm) for arm in numbers] for _ in range(rounds)], dtype=float)

    def draw_one(self, state: State, rng: np.random.Generator, arm: int) -> float:
        """The score of one arm in one round."""
        assert isinstance(state, Posterior)
        return float(function_of(self, "score")(state.statistics[:, arm], rng, *self.extras()))

    def choose(self, state: State, rng: np.random.Generator) -> int | None:
        scores = self.draw(state, rng, 1)[0]
        if "scales" in state.known:
            scores = scores / state.known["scales"]  # of reward per cost on the arm's own scale
        return best(np.where(state.active, scores, -np.inf), rng)

    def observe(self, state: State, arm: int, reward: float, cost: float, rng: np.random.Generator) -> None:
        assert isinstance(state, Posterior)
        state.pulls[arm] += 1
        function_of(self, "learn")(state.statistics[:, arm], reward, cost, rng, *self.extras())


def function_of(policy: SamplingPolicy, name: str) -> Callable[..., Any]:
    """The policy's ``score`` or ``learn``; an error if it has none."""
    function: Callable[..., Any] | None = getattr(type(policy), name, None)
    if function is None:
        raise BadParameter(f"{policy.name} has no {name}; write {name} = staticmethod(function) in the class")
    return function
