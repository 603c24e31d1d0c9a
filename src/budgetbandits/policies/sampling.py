"""Policies that score every arm by a random draw and pull the best: the shape of Thompson sampling.

Such a policy keeps a few numbers of each arm, its *statistics*. Two functions say all the rest:

    def score(statistics, rng, *extras):                # a draw from the arm's posterior
        return rng.beta(statistics[0], statistics[1])

    def learn(statistics, reward, cost, rng, *extras):  # changes them in place
        statistics[0] += reward
        statistics[1] += 1.0 - reward

Both serve one arm at a time, and use plain arithmetic, `math`, the methods of the generator and `trial`, so that they
can be compiled. Compiled, they draw what they draw here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadParameter, BadState
from budgetbandits.numerics.arrays import Arms, Array
from budgetbandits.policies.base import NOTHING_KNOWN, ChoiceWork, Knowledge, Policy, Scoring, State, best

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    P = TypeVar("P", bound="Posterior", default=Any)
else:
    from budgetbandits.policies.base import S as P


@dataclass
class Posterior(State):
    """The statistics of every arm, a column for each."""

    statistics: Array = field(default_factory=lambda: np.zeros((0, 0)))

    def check(self, name: str, array: NDArray[Any]) -> None:
        if name != "statistics" or name in self.positive:
            super().check(name, array)
        elif np.isnan(array).any():  # statistics of an author's own may be negative
            raise BadState(f"{name!r} holds no number; the saved state is damaged")


@dataclass(frozen=True)
class SamplingPolicy(Policy[P]):
    """Each round every arm draws a score, independently of the others, from its own posterior.

    A policy gives `score`, `learn`, `prior` and `add_history`, and `extras` if the two functions take any. A vectorised
    `draw` makes it faster where arms are many; it must draw from the same distribution as `score`.
    """

    score: ClassVar[Callable[..., float]]
    learn: ClassVar[Callable[..., None]]
    state_class: ClassVar[type[Posterior]] = Posterior
    random_choices = True

    @property
    def scoring(self) -> Scoring | None:
        return self if type(self).choose is SamplingPolicy.choose else None

    def work(self, arms: int, columns: int, draws: int, priced: bool) -> ChoiceWork:
        return ChoiceWork(chosen=(5.0 + 0.4 * arms) * draws)

    def rule_kind(self, horizon: float) -> str:
        return "score"

    def prior(self) -> tuple[float, ...]:
        """The statistics of an arm before its first pull."""
        raise BadParameter(f"{self.name} has no prior; let prior return the statistics of an arm never pulled")

    def extras(self) -> tuple[float, ...]:
        """Further arguments of `score` and `learn`, the same for both: hyper-parameters."""
        return ()

    def first_statistics(self, arms: range) -> Array:
        """The statistics of the arms with these numbers before their first pull, a column for each."""
        return np.repeat(np.array(self.prior(), dtype=float)[:, None], len(arms), axis=1)

    def start(self, arms: int, known: Knowledge = NOTHING_KNOWN) -> P:
        return self._state_of(range(arms), known)

    def new_arm_state(self, state: P, known: Knowledge) -> P:
        return self._state_of(range(len(state.pulls), len(state.pulls) + 1), known)

    def _state_of(self, arms: range, known: Knowledge) -> P:
        state = self.state_class(
            active=np.ones(len(arms), dtype=bool),
            pulls=np.zeros(len(arms), dtype=np.int64),
            known=self.select_knowledge(known),
            statistics=self.first_statistics(arms),
        )
        return cast("P", state)

    def draw(self, state: P, rng: np.random.Generator, rounds: int, arms: Arms | None = None) -> Array:
        """The scores of these arms (all of them if None) in ``rounds`` independent rounds, as (round, arm)."""
        numbers = range(len(state.pulls)) if arms is None else arms.tolist()
        return np.array([self.draw_each(state, rng, numbers) for _ in range(rounds)], dtype=float)

    def draw_each(self, state: P, rng: np.random.Generator, arms: Sequence[int]) -> list[float]:
        """The scores of these arms in one round, drawn one after the other."""
        score, extras, statistics = function_of(self, "score"), self.extras(), state.statistics
        return [float(score(statistics[:, arm], rng, *extras)) for arm in arms]

    def choose(self, state: P, rng: np.random.Generator) -> int | None:
        scores = self.draw(state, rng, 1)[0]
        if state.known.scales is not None:
            scores = scores / state.known.scales  # of reward per cost on the arm's own scale
        return best(np.where(state.active, scores, -np.inf), rng)

    def means(self, state: P, arm: int) -> tuple[float, float] | None:
        """The means of the posterior, once the arm was pulled."""
        kept = self.kept_posterior(state, arm) if state.pulls[arm] else None
        return super().means(state, arm) if kept is None else (kept.reward.mean, kept.cost.mean)

    def observe(self, state: P, arm: int, reward: float, cost: float, rng: np.random.Generator) -> None:
        state.pulls[arm] += 1
        function_of(self, "learn")(state.statistics[:, arm], reward, cost, rng, *self.extras())


def function_of(policy: SamplingPolicy, name: str) -> Callable[..., Any]:
    """The policy's ``score`` or ``learn``; an error if it has none."""
    function: Callable[..., Any] | None = getattr(type(policy), name, None)
    if function is None:
        raise BadParameter(f"{policy.name} has no {name}; write {name} = staticmethod(function) in the class")
    return function
