"""Games of (budgeted) Thompson sampling by the compiled engine: the Python side.

`ThompsonGames` prepares a problem once; `play` gives one run's results at every budget. One trajectory is played to the
largest budget and read off at every smaller one. Each run is seeded by its own words, so that runs may be played in
any order and in any number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadParameter, RoundLimit
from budgetbandits.numerics.arrays import AnyArray, Array
from budgetbandits.policies.thompson import BetaThompson
from budgetbandits.problems.problem import Problem
from budgetbandits.simulation.common_outcomes import CommonOutcomes
from budgetbandits.simulation.engines.runtime.draws import new_stream
from budgetbandits.simulation.engines.runtime.laws import Tables, padded, tables_of
from budgetbandits.simulation.engines.runtime.records import FINISHED
from budgetbandits.simulation.engines.thompson.hot_arms import COLUMNS
from budgetbandits.simulation.engines.thompson.level import NO_ALARM
from budgetbandits.simulation.engines.thompson.rounds import play
from budgetbandits.simulation.engines.thompson.state import COUNTERS, ThompsonRecord
from budgetbandits.simulation.reference import TOLERANCE, Game

# --- the arms' laws --------------------------------------------------------------------------------------------------


Sampler = Callable[[int, int, np.random.Generator], np.ndarray]


class FiniteLaws:
    """Independent reward and cost laws on finite supports; row i belongs to arm i, zero chances pad short supports.

    Costs are whole numbers of ``step``; rewards are any values in [0, 1].
    """

    def __init__(
        self, reward_values: Array, reward_chances: Array, cost_steps: AnyArray, cost_chances: Array, step: float = 1.0
    ) -> None:
        self.arms, self.step = len(reward_values), step
        values, chances, cost_chances = (
            np.ascontiguousarray(table, dtype=np.float64) for table in (reward_values, reward_chances, cost_chances)
        )
        self.reward_values, self.reward_chances, self.cost_chances = values, chances, cost_chances
        self.cost_steps = steps = np.ascontiguousarray(cost_steps, dtype=np.int64)
        trials, positive = steps * step, (cost_chances > 0) & (steps > 0)
        self.cost_trials = np.minimum(trials, 1.0)
        self.cost_chance = np.minimum(np.where(positive, cost_chances, 0.0).sum(axis=1), 1.0)
        self.cost_top = np.where(positive, steps, 0).max(axis=1)
        # chances of reward 1 and of cost 1, -1 for arms with other values
        two_valued = ((chances == 0) | (values == 0) | (values == 1)).all(axis=1)
        two_valued &= ((cost_chances == 0) | (trials == 0) | (trials == 1)).all(axis=1)
        certain = np.stack([(chances * values).sum(axis=1), self.cost_chance], axis=1)
        self.bernoulli = np.where(two_valued[:, None], certain, -1.0)

    @cached_property
    def fields(self) -> dict[str, float]:
        """The fields of a game's record that describe the laws."""
        widths = {"reward_width": self.reward_values.shape[1], "cost_width": self.cost_steps.shape[1]}
        arrays = {
            name: getattr(self, name).ctypes.data for name in ThompsonRecord.fields_of_kind("LawFloats", "LawWholes")
        }
        return arrays | widths | {"cost_unit": self.step}

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


# --- runs ------------------------------------------------------------------------------------------------------------


LARGEST_BUFFER = 4_000_000  # outcomes held for all arms of a run together

LONGEST_GAME = 2.0**60  # alarms are set up to 2^61 rounds ahead and have to fit into an int64


@dataclass(frozen=True)
class Settings:
    """How the engine works, never what it computes; tests use it to force each branch."""

    level: float = 0.0  # 0: chosen by planning
    planning: bool = True
    hot_above: float = 0.7  # arms whose bound exceeds this are drawn every round
    blocks: bool = True
    first_window: int = 16
    largest_dip: float = 0.3  # blocks need the leader's bound below this
    caution: float = 6.0  # deviations kept between a stretch of pulls and a budget's end
    direct_above: float = 0.37  # above this bound the leader is drawn outright
    near_ties_from: float = 3000.0  # smallest count from which two hot arms are pulled many rounds at a time
    restless: float = 0.0  # above 0: after this much waste every alarm is set again, at a level a rounding error away


def _first_level(pool: int, classical: bool) -> float:
    share = min(3.0 / max(pool, 1), 0.9)
    if classical:
        return 1.0 - share
    return 0.5 / share if share < 0.5 else 2.0 * (1.0 - share)


class Run(ThompsonRecord):
    """The record of one game after another, and the arrays that it points to."""

    def __init__(
        self,
        laws: FiniteLaws | SampledLaws,
        budgets: np.ndarray,
        classical: bool,
        settings: Settings,
        posterior: np.ndarray | None = None,
        frozen: bool = False,
        kappa: float = 1.0,
    ) -> None:
        """``posterior[arm]`` = (a, b, c, d) starts from given counts; ``frozen`` keeps them, to test a single round.

        A trial adds ``kappa`` to a parameter of the posterior.
        """
        super().__init__()
        arms, number = laws.arms, budgets.size
        self._arm_of_slot: NDArray[np.int64] = np.arange(arms, dtype=np.int64)
        self._counts: NDArray[np.int64] = np.ones((arms, 4), dtype=np.int64)
        active = 0
        if posterior is not None:
            pulled = (posterior != 1).any(axis=1)
            self._arm_of_slot = np.concatenate([np.flatnonzero(pulled), np.flatnonzero(~pulled)]).astype(np.int64)
            self._counts[:] = posterior[self._arm_of_slot]
            active = int(pulled.sum())
        width = 1 << max(4, (max(active, 1) - 1).bit_length())
        capacity = max(width, 1 << max(4, (arms - 1).bit_length()))
        self.point_to(stream=np.empty(4, dtype=np.uint64), tree=np.empty(2 * capacity, dtype=np.int64), budget=budgets)
        self.point_to(arm_of_slot=np.empty_like(self._arm_of_slot), posterior=np.empty_like(self._counts))
        self.point_to(tangent_rows=np.empty((arms, 8)), constants=np.empty((arms, COLUMNS)))
        self.point_to(**{name: np.empty(arms, dtype=np.int64) for name in ("hot", "hot_place", "next_check", "pulls")})
        self.keep_results(arms, number)
        self.set(
            arms=arms, budgets=number, active=active, base=width, classical=classical, frozen=frozen,
            level=settings.level or _first_level(arms - active, classical),
            limit=settings.restless or (2000.0 if settings.planning else math.inf), patience=3.0, rung=0.3,
            window=settings.first_window, allow_blocks=settings.blocks,
            log_hot=math.log(settings.hot_above) if settings.hot_above > 0 else -math.inf,
            log_largest_dip=math.log(settings.largest_dip), caution=settings.caution,
            log_direct=math.log(settings.direct_above), restless=settings.restless, kappa=kappa,
            # what is proven of stretches is proven for parameters that are whole numbers
            near_ties_from=settings.near_ties_from if kappa == 1.0 else math.inf,
            tolerance=TOLERANCE, reward_unit=1.0, cost_unit=1.0,
        )  # fmt: skip
        if isinstance(laws, SampledLaws):
            chunk = int(min(4096, max(1, LARGEST_BUFFER // (2 * arms))))
            self.point_to(buffer=np.empty((arms, chunk, 2)))
            self.point_to(**{name: np.empty(arms, dtype=np.int64) for name in ("used", "filled")})
            self.set(buffered=True, chunk=chunk)
        else:
            ends, whole = laws.steps_of(budgets)
            self.point_to(ends=ends, whole=whole)
            self.set(**laws.fields)
        self._laws = laws
        self._start = self.fields()

    def clear(self, words: NDArray[Any], sampler: Sampler | None = None) -> None:
        """Make ready for a game with this seed; ``sampler`` in the place of that of the laws."""
        arrays = self.arrays
        self.restart(self._start)
        arrays["stream"][:] = new_stream(words)
        arrays["tree"][: 2 * self.base] = NO_ALARM
        arrays["arm_of_slot"][:], arrays["posterior"][:] = self._arm_of_slot, self._counts
        for name in ("constants", "next_check", "pulls"):
            arrays[name].fill(0)
        if isinstance(self._laws, SampledLaws):
            arrays["used"].fill(0)
            arrays["filled"].fill(0)
            self._sampler = sampler or self._laws.sampler
            self._generator = np.random.Generator(np.random.PCG64DXSM(words[4:].tolist()))

    @property
    def counters(self) -> dict[str, int]:
        """How often the engine did what, by counter."""
        return {name: getattr(self, name) for name in COUNTERS}

    def play(self) -> None:
        """Play until the game is finished, with outcomes whenever it asks for them."""
        while (status := play(self.game)) != FINISHED:
            self._refill(int(status))

    def _refill(self, arm: int) -> None:
        # Chunks grow with use: most arms are pulled a few times only, and drawing outcomes is the expensive part.
        count = min(self.arrays["buffer"].shape[1], max(16, 4 * int(self.arrays["filled"][arm])))
        self.fill(arm, *self._sampler(arm, count, self._generator).T)


def why_not_lazily(policy: BetaThompson) -> str:
    """Why this engine does not play a policy; empty if it does. It counts trials in whole numbers from 1 on."""
    if policy.kappa != 1.0 and any(number != 1.0 for prior in policy.priors for pair in prior for number in pair):
        return "its counts are multiplied by kappa from another prior than Beta(1, 1)"
    if any(number % 1.0 or number < 1.0 for prior in policy.priors for pair in prior for number in pair):
        return "its priors are not whole numbers, and the lazy engine counts in whole numbers from 1 on"
    return ""


class ThompsonGames:
    """Runs of one policy on one problem."""

    def __init__(self, problem: Problem, policy: BetaThompson, budgets: Sequence[float], common: bool = False) -> None:
        self._policy = policy
        laws = engine_laws(tables_of(problem, sampled=common))
        # counts in the order (reward's successes, failures, cost's successes, failures); all 1 is how a run starts
        first = policy.start(len(problem)).statistics[[0, 2, 1, 3]].T
        counts = None if (first == 1.0).all() else first.astype(np.int64)
        self._budgets = np.array(budgets, dtype=np.float64)
        if self._budgets[-1] / problem.cost_means.min() > LONGEST_GAME:
            raise BadParameter(
                f"a budget of {budgets[-1]:g} buys more than 2^60 rounds of the cheapest arm; lower the budget"
            )
        self._run = Run(laws, self._budgets, policy.ignores_costs, Settings(), counts, kappa=policy.kappa)

    def play(
        self, seed: np.random.SeedSequence, max_rounds: int = 1 << 60, outcomes: CommonOutcomes | None = None
    ) -> list[Game]:
        """One run: the game at each of the rising budgets."""
        run = self._run
        run.clear(seed.generate_state(8, np.uint64), None if outcomes is None else _shared(outcomes))
        run.play()
        results = run.results(len(self._budgets))
        if (rounds := results[-1][2]) > max_rounds:
            raise RoundLimit(
                f"{self._policy.spec} needs {rounds:,} rounds for a budget of {self._budgets[-1]:g}, more than "
                f"{max_rounds:,}; raise max_rounds (--max-rounds) or lower the budget"
            )
        return results


def _shared(outcomes: CommonOutcomes) -> Sampler:
    following = outcomes.reader()
    return lambda arm, count, generator: np.stack(following(arm, count), axis=1)
