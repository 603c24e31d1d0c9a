"""Games of (budgeted) Thompson sampling by the compiled engine: the Python side.

`ThompsonGames` prepares a problem once; `play` gives one run's results at every budget. One trajectory is played to the
largest budget and read off at every smaller one. Each run is seeded by its own words, so that runs may be played in
any order and in any number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from budgetbandits.errors import BadParameter, RoundLimit
from budgetbandits.policies.thompson import BetaThompson, BudgetedThompson, Thompson
from budgetbandits.problems.problem import Problem
from budgetbandits.simulation.common_outcomes import CommonOutcomes
from budgetbandits.simulation.engines.runtime.draws import new_stream
from budgetbandits.simulation.engines.runtime.laws import tables_of
from budgetbandits.simulation.engines.runtime.status import FINISHED
from budgetbandits.simulation.engines.thompson.alarms import NEVER
from budgetbandits.simulation.engines.thompson.hot_arms import COLUMNS
from budgetbandits.simulation.engines.thompson.laws import FiniteLaws, SampledLaws, engine_laws
from budgetbandits.simulation.engines.thompson.rounds import play
from budgetbandits.simulation.engines.thompson.state import ARRAYS, COUNTERS, GAME
from budgetbandits.simulation.reference import Game

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
    restless: float = 0.0  # above 0: after this much waste every alarm is set anew, at a level a rounding error away


def _first_level(pool: int, classical: bool) -> float:
    share = min(3.0 / max(pool, 1), 0.9)
    if classical:
        return 1.0 - share
    return 0.5 / share if share < 0.5 else 2.0 * (1.0 - share)


class Run:
    """One run: its arrays, and the record by which compiled code finds them."""

    def __init__(
        self,
        laws: FiniteLaws | SampledLaws,
        budgets: np.ndarray,
        words: np.ndarray,
        classical: bool,
        settings: Settings,
        posterior: np.ndarray | None = None,
        frozen: bool = False,
        kappa: float = 1.0,
    ) -> None:
        """``posterior[arm]`` = (a, b, c, d) starts from given counts; ``frozen`` keeps them, to test a single round.

        A trial adds ``kappa`` to a parameter of the posterior.
        """
        arms, number = laws.arms, budgets.size
        self.laws = laws
        self.generator = np.random.Generator(np.random.PCG64DXSM(words[4:].tolist()))
        self.arm_of_slot = np.arange(arms, dtype=np.int64)
        self.posterior = np.ones((arms, 4), dtype=np.int64)
        active = 0
        if posterior is not None:
            pulled = (posterior != 1).any(axis=1)
            self.arm_of_slot = np.concatenate([np.flatnonzero(pulled), np.flatnonzero(~pulled)]).astype(np.int64)
            self.posterior[:] = posterior[self.arm_of_slot]
            active = int(pulled.sum())
        width = 1 << max(4, (max(active, 1) - 1).bit_length())
        capacity = max(width, 1 << max(4, (arms - 1).bit_length()))
        self.stream = new_stream(words)
        self.tree = np.empty(2 * capacity, dtype=np.int64)
        self.tree[: 2 * width] = NEVER
        self.tangents = np.empty((arms, 8))
        self.constants = np.zeros((arms, COLUMNS))
        self.hot = np.empty(arms, dtype=np.int64)
        self.hot_place = np.empty(arms, dtype=np.int64)
        self.next_check = np.zeros(arms, dtype=np.int64)
        self.pulls = np.zeros(arms, dtype=np.int64)
        self.budget = budgets
        self.out_pulls = np.zeros((number, arms), dtype=np.int64)
        self.out_reward = np.zeros(number)
        self.out_spend = np.zeros(number)
        self.out_rounds = np.zeros(number, dtype=np.int64)
        self.game = np.zeros(1, dtype=GAME)
        self._set(
            arms=arms, budgets=number, active=active, base=width, classical=classical, frozen=frozen,
            level=settings.level or _first_level(arms - active, classical),
            limit=settings.restless or (2000.0 if settings.planning else math.inf), patience=3.0, rung=0.3,
            window=settings.first_window, allow_blocks=settings.blocks,
            log_hot=math.log(settings.hot_above) if settings.hot_above > 0 else -math.inf,
            log_largest_dip=math.log(settings.largest_dip), caution=settings.caution,
            log_direct=math.log(settings.direct_above), restless=settings.restless, kappa=kappa,
            # what is proven of stretches is proven for parameters that are whole numbers
            near_ties_from=settings.near_ties_from if kappa == 1.0 else math.inf,
        )  # fmt: skip
        if isinstance(laws, SampledLaws):
            self._keep_outcomes(arms)
        else:
            self._know_laws(laws)
        for name in ARRAYS:
            if hasattr(self, name):
                self.game[f"{name}_at"] = getattr(self, name).ctypes.data

    def _set(self, **fields: float) -> None:
        for name, value in fields.items():
            self.game[name] = value

    def _keep_outcomes(self, arms: int) -> None:
        chunk = int(min(4096, max(1, LARGEST_BUFFER // (2 * arms))))
        self.buffer = np.empty((arms, chunk, 2))
        self.used = np.zeros(arms, dtype=np.int64)
        self.filled = np.zeros(arms, dtype=np.int64)
        self._set(buffered=True, chunk=chunk)

    def _know_laws(self, laws: FiniteLaws) -> None:
        self.ends, self.whole = laws.steps_of(self.budget)
        self._set(**laws.fields)

    @property
    def counters(self) -> dict[str, int]:
        """What the engine did."""
        return {name: int(self.game[name][0]) for name in COUNTERS}

    def play(self) -> None:
        while (status := play(self.game)) != FINISHED:
            self._refill(int(status))

    def _refill(self, arm: int) -> None:
        assert isinstance(self.laws, SampledLaws)
        # Chunks grow with use: most arms are pulled a few times only, and drawing outcomes is the expensive part.
        count = min(self.buffer.shape[1], max(16, 4 * int(self.filled[arm])))
        outcomes = np.asarray(self.laws.sampler(arm, count, self.generator), dtype=np.float64)
        if outcomes.shape != (count, 2) or not ((outcomes >= 0) & (outcomes <= 1)).all():
            raise ValueError("a sampler must return count rows of (reward, cost) in [0, 1]")
        self.buffer[arm, :count] = outcomes
        self.used[arm] = 0
        self.filled[arm] = count


def why_not_lazily(policy: BetaThompson) -> str:
    """Why this engine does not play a policy; empty if it does. It counts trials in whole numbers from 1 on."""
    if policy.kappa != 1.0 and any(number != 1.0 for prior in policy.priors for pair in prior for number in pair):
        return "its counts are multiplied by kappa from another prior than Beta(1, 1)"
    if any(number % 1.0 or number < 1.0 for prior in policy.priors for pair in prior for number in pair):
        return "its priors are not whole numbers, and the lazy engine counts in whole numbers from 1 on"
    return ""


class ThompsonGames:
    """Runs of one policy on one problem."""

    def __init__(
        self, problem: Problem, policy: BudgetedThompson | Thompson, budgets: Sequence[float], common: bool = False
    ) -> None:
        self._policy = policy
        self._laws = engine_laws(tables_of(problem, sampled=common))
        # counts in the order (reward's successes, failures, cost's successes, failures); all 1 is how a run starts
        first = policy.start(len(problem)).statistics[[0, 2, 1, 3]].T
        self._first = None if (first == 1.0).all() else first.astype(np.int64)
        self._budgets = np.array(budgets, dtype=np.float64)
        if self._budgets[-1] / problem.cost_means.min() > LONGEST_GAME:
            raise BadParameter(
                f"a budget of {budgets[-1]:g} buys more than 2^60 rounds of the cheapest arm; lower the budget"
            )

    def play(
        self, seed: np.random.SeedSequence, max_rounds: int = 1 << 60, outcomes: CommonOutcomes | None = None
    ) -> list[Game]:
        """One run: the game at each of the rising budgets."""
        laws = self._laws if outcomes is None else _shared(self._laws.arms, outcomes)
        classical = isinstance(self._policy, Thompson)
        words = seed.generate_state(8, np.uint64)
        run = Run(laws, self._budgets, words, classical, Settings(), self._first, kappa=self._policy.kappa)
        run.play()
        if run.out_rounds[-1] > max_rounds:
            raise RoundLimit(
                f"{self._policy.spec} needs {run.out_rounds[-1]:,} rounds for a budget of {self._budgets[-1]:g}, more "
                f"than {max_rounds:,}; raise max_rounds (--max-rounds) or lower the budget"
            )
        return [
            (float(run.out_reward[i]), float(run.out_spend[i]), int(run.out_rounds[i]), run.out_pulls[i])
            for i in range(len(self._budgets))
        ]


def _shared(arms: int, outcomes: CommonOutcomes) -> SampledLaws:
    following = outcomes.reader()
    return SampledLaws(arms, lambda arm, count, generator: np.stack(following(arm, count), axis=1))
