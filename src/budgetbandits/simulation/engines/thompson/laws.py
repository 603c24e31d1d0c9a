"""What the arms of a game bring, as the engine takes it: laws on finite supports, or outcomes that are drawn outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from budgetbandits.simulation.engines.runtime.laws import Tables, padded
from budgetbandits.simulation.engines.thompson.state import LAWS

Sampler = Callable[[int, int, np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class FiniteLaws:
    """Independent reward and cost laws on finite supports; row i belongs to arm i, zero chances pad short supports.

    Costs are whole numbers of `step`; rewards are any values in [0,1].
    """

    reward_values: np.ndarray
    reward_chances: np.ndarray
    cost_steps: np.ndarray
    cost_chances: np.ndarray
    step: float = 1.0
    cost_trials: np.ndarray = field(init=False)
    cost_chance: np.ndarray = field(init=False)
    cost_top: np.ndarray = field(init=False)
    bernoulli: np.ndarray = field(init=False)  # chances of reward 1 and of cost 1, -1 for arms with other values

    def __post_init__(self) -> None:
        def store(name: str, values: object, kind: type) -> np.ndarray:
            array: np.ndarray = np.ascontiguousarray(values, dtype=kind)
            object.__setattr__(self, name, array)
            return array

        values = store("reward_values", self.reward_values, np.float64)
        chances = store("reward_chances", self.reward_chances, np.float64)
        steps = store("cost_steps", self.cost_steps, np.int64)
        cost_chances = store("cost_chances", self.cost_chances, np.float64)
        if values.ndim != 2 or values.shape != chances.shape or steps.shape != cost_chances.shape:
            raise ValueError("supports and chances must be matrices of the same shape, one row an arm")
        if steps.shape[0] != values.shape[0]:
            raise ValueError("rewards and costs must describe the same arms")
        for table in (chances, cost_chances):
            if (table < 0).any() or not np.allclose(table.sum(axis=1), 1.0, atol=1e-9):
                raise ValueError("chances must be non-negative and sum to 1 for every arm")
        trials = steps * self.step
        if (values < 0).any() or (values > 1).any() or (steps < 0).any() or (trials > 1 + 1e-9).any():
            raise ValueError("rewards and costs must lie in [0, 1]")
        positive = (cost_chances > 0) & (steps > 0)
        if not positive.any(axis=1).all():
            raise ValueError("every arm needs a cost above zero with positive chance, or its game never ends")
        store("cost_trials", np.minimum(trials, 1.0), np.float64)
        store("cost_chance", np.minimum(np.where(positive, cost_chances, 0.0).sum(axis=1), 1.0), np.float64)
        store("cost_top", np.where(positive, steps, 0).max(axis=1), np.int64)
        two_valued = ((chances == 0) | (values == 0) | (values == 1)).all(axis=1)
        two_valued &= ((cost_chances == 0) | (trials == 0) | (trials == 1)).all(axis=1)
        certain = np.stack([(chances * values).sum(axis=1), self.cost_chance], axis=1)
        store("bernoulli", np.where(two_valued[:, None], certain, -1.0), np.float64)

    @property
    def arms(self) -> int:
        return int(self.reward_values.shape[0])

    @cached_property
    def fields(self) -> dict[str, float]:
        """What the record of a game holds of them."""
        widths = {"reward_width": self.reward_values.shape[1], "cost_width": self.cost_steps.shape[1]}
        return {f"{name}_at": getattr(self, name).ctypes.data for name in LAWS} | widths | {"step": self.step}

    def steps_of(self, budgets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(cumulative steps at which each budget's game ends, whether reaching them exactly is affordable).

        A budget between two multiples of the step is never reached: its game ends with the first pull that passes
        it, and until then pulls that cost nothing still count.
        """
        nearest = np.rint(budgets / self.step)
        whole = np.abs(nearest * self.step - budgets) <= 1e-9 * np.maximum(1.0, budgets)
        ends = np.where(whole, nearest, np.floor(budgets / self.step) + 1)
        return ends.astype(np.int64), whole.astype(np.int64)


@dataclass(frozen=True)
class SampledLaws:
    """Any other laws: sampler(arm, count, generator) returns count rows of (reward, cost) in [0,1].

    Costs must be positive on average, or the game never ends.
    """

    arms: int
    sampler: Sampler


def engine_laws(tables: Tables) -> FiniteLaws | SampledLaws:
    """Finite laws whose costs are whole numbers of one step, or else outcomes one by one."""
    if tables.buffered or (tables.cost_scale == 1 and (tables.cost_value % 1.0).any()):
        arms = tables.arms

        def sample(arm: int, count: int, generator: np.random.Generator) -> np.ndarray:
            return np.stack(arms[arm].sample(generator, count), axis=1)

        return SampledLaws(len(arms), sample)
    rewards, reward_chances = padded(tables.reward_value, tables.reward_chance, tables.reward_atoms)
    costs, cost_chances = padded(tables.cost_value, tables.cost_chance, tables.cost_atoms)
    return FiniteLaws(rewards / tables.reward_scale, reward_chances, costs, cost_chances, 1.0 / tables.cost_scale)
