"""What a simulation returns: arrays over (run, budget) or (run, budget, arm)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from budgetbandits import oracle
from budgetbandits.arrays import Array
from budgetbandits.problem import Problem


@dataclass(frozen=True)
class Engine:
    """What plays a policy: "thompson", "epsilon-first", "index blocks", "index bounds", "index plain loop" or
    "reference", and why not a faster one (empty where there is none)."""

    name: str
    reason: str = ""

    @property
    def compiled(self) -> bool:
        return self.name != "reference"


@dataclass(frozen=True)
class Outcome:
    """The games of one policy on one problem. The last pull counts as a pull even when it overdraws the budget; its
    reward is then not earned and its cost not paid."""

    problem: Problem
    policy: str
    budgets: Array
    reward: Array
    spend: Array
    rounds: NDArray[np.int64]
    pulls: NDArray[np.int64]
    engine: str
    """The name of the engine that played, as in `Engine`."""
    engine_reason: str
    """Why no faster engine did; empty where there is none."""
    seconds: float

    @property
    def runs(self) -> int:
        return len(self.reward)

    @property
    def regret(self) -> Array:
        """ρ*B − reward, run by run; ρ*B is R* for Bernoulli arms and whole budgets, and within ρ* of it otherwise."""
        return np.asarray(oracle.best_ratio(self.problem) * self.budgets - self.reward)

    @property
    def pseudo_regret(self) -> Array:
        """Σ μc Δ pulls, run by run: the same mean on Bernoulli problems (Lemma 2), within 2ρ* on others, and far
        less noise."""
        return np.asarray(self.pulls @ (self.problem.cost_means * oracle.gaps(self.problem)))

    @property
    def best_arm_identified(self) -> NDArray[np.bool_]:
        """Whether a best arm was pulled most: for ε-first the arm it settles on. A tie with another is a miss."""
        best = np.zeros(len(self.problem), dtype=bool)
        best[oracle.best_arms(self.problem)] = True
        most = self.pulls == self.pulls.max(axis=2, keepdims=True)
        return np.asarray(~np.any(most & ~best, axis=2))

    def plot(
        self, figure: str = "pulls", *, width: str | float = "page", dark: bool = False, ax: Any = None, **options: Any
    ) -> Any:
        """A Matplotlib figure: "pulls", each arm's share of the pulls beside its ratio, or "regret" against budget.

        ``width`` is "paper", "page", "phone" or inches. "pulls" takes ``budget``; "regret" takes ``deviations``,
        ``log`` and ``ax``, and returns the axes it was given.
        """
        from budgetbandits.simulation import figures  # Matplotlib is in the extra lab

        return figures.draw(self, figure, width, dark, ax, **options)
