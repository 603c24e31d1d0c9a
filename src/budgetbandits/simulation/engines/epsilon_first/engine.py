"""ε-first and ε-first-greedy in a few draws: exact in distribution, no engine needed.

ε-first on finite laws is compiled (`kernel`). Here are the rest: ε-first-greedy, laws without atoms, and games of
tiny budgets, which are played pull by pull.

Exploration pulls the arms in turn while less than εB is spent, which is checked before every pull. Whole turns
that cannot reach εB whatever they cost are one multinomial draw for each arm; the last turns are drawn one at a
time and cut where εB is reached (what is cut off was never looked at). Exploitation pulls one arm: for costs that
take two values, 0 and another, a negative binomial says how often; else blocks that cannot end the game, then
stretches that are cut where it ends.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from budgetbandits.numerics.arrays import Array
from budgetbandits.policies.epsilon_first import EpsilonFirst
from budgetbandits.policies.kube import SLACK
from budgetbandits.problems.problem import Problem
from budgetbandits.simulation.common_outcomes import CommonOutcomes
from budgetbandits.simulation.engines.epsilon_first.kernel import EpsilonFirstRecord, play
from budgetbandits.simulation.engines.runtime.draws import new_stream
from budgetbandits.simulation.engines.runtime.laws import padded, tables_of
from budgetbandits.simulation.engines.runtime.records import ROUND_LIMIT
from budgetbandits.simulation.reference import TOLERANCE, Game, own_seed, round_limit

STRETCH = 64
"""Pulls drawn at once where the game may end among them."""

LONGEST_STRETCH = 1 << 16
"""Single pulls drawn at once, wherever they may end: memory must not grow with the budget."""


class EpsilonFirstGames:
    """Runs of ε-first or ε-first-greedy on one problem."""

    def __init__(self, problem: Problem, policy: EpsilonFirst, budgets: Sequence[float], common: bool = False) -> None:
        self._budgets = [float(budget) for budget in budgets]
        self._policy = policy
        self._problem = problem
        self._tables = tables_of(problem, sampled=common)
        self._rewards = padded(self._tables.reward_value, self._tables.reward_chance, self._tables.reward_atoms)
        self._costs = padded(self._tables.cost_value, self._tables.cost_chance, self._tables.cost_atoms)
        self._record = self._new_record()
        self._start = self._record.fields()

    def _new_record(self) -> EpsilonFirstRecord:
        tables, record = self._tables, EpsilonFirstRecord()
        arms = len(tables.arms)
        record.set(arms=arms, tolerance=TOLERANCE * tables.cost_scale)
        record.set(reward_scale=tables.reward_scale, cost_scale=tables.cost_scale)
        record.point_to(stream=np.zeros(4, dtype=np.uint64), pulls=np.zeros(arms, dtype=np.int64))
        record.point_to(rewards=np.zeros(arms), costs=np.zeros(arms), **tables.arrays)
        return record

    def play(
        self, seed: np.random.SeedSequence, max_rounds: int = 1 << 60, outcomes: CommonOutcomes | None = None
    ) -> list[Game]:
        """One run: a game for each budget, because the policy must know it."""
        return [self._play_at(budget, own_seed(seed, budget), max_rounds, outcomes) for budget in self._budgets]

    def _play_at(
        self, budget: float, seed: np.random.SeedSequence, max_rounds: int, outcomes: CommonOutcomes | None
    ) -> Game:
        tables = self._tables
        left_over = (1.0 - self._policy.epsilon) * budget * tables.cost_scale
        tolerance = TOLERANCE * tables.cost_scale
        roomy = left_over > float(tables.cost_top.max()) + 2.0 * tolerance
        # costs that hardly ever come make for many small blocks; _NumpyGame draws at once how long the last one takes
        rare = float(self._problem.cost_means.min()) * tables.cost_scale < 0.01 * float(tables.cost_top.max())
        if type(self._policy) is not EpsilonFirst or tables.buffered or not roomy or rare:
            return _NumpyGame(self, budget, np.random.default_rng(seed), max_rounds, outcomes).play()
        return self._play_compiled(budget, seed, max_rounds)

    def _play_compiled(self, budget: float, seed: np.random.SeedSequence, max_rounds: int) -> Game:
        tables, record = self._tables, self._record
        exploration = self._policy.epsilon * budget * tables.cost_scale
        record.restart(self._start)
        record.set(budget=budget * tables.cost_scale, exploration=exploration, max_rounds=max_rounds)
        record.stream[:] = new_stream(seed.generate_state(4, np.uint64))
        for name in ("pulls", "rewards", "costs"):
            record.arrays[name][:] = 0
        if play(record.game) == ROUND_LIMIT:
            raise round_limit(self._policy, max_rounds, budget)
        pulls = record.pulls.copy()
        return record.reward / tables.reward_scale, record.spent / tables.cost_scale, record.rounds, pulls

    def sums(self, rng: np.random.Generator, arms: NDArray[np.int64], pulls: NDArray[np.int64]) -> tuple[Array, Array]:
        """Total reward and cost of ``pulls`` of each of these arms with finite laws, in units."""
        totals = []
        for values, chances in (self._rewards, self._costs):
            totals.append((rng.multinomial(pulls, chances[arms]) * values[arms]).sum(axis=-1))
        return totals[0], totals[1]

    def stretch(self, rng: np.random.Generator, arm: int, pulls: int) -> tuple[Array, Array]:
        """The rewards and costs of single pulls of one arm, in units."""
        rewards, costs = self._tables.arms[arm].sample(rng, pulls)
        if self._tables.reward_scale > 1:
            rewards = np.rint(rewards * self._tables.reward_scale)
        if self._tables.cost_scale > 1:
            costs = np.rint(costs * self._tables.cost_scale)
        return rewards, costs


class _NumpyGame:
    """One game in a few draws of NumPy's generator: any law, and ε-first-greedy too."""

    def __init__(
        self,
        games: EpsilonFirstGames,
        budget: float,
        rng: np.random.Generator,
        max_rounds: int,
        outcomes: CommonOutcomes | None,
    ) -> None:
        tables = games._tables
        arms = len(tables.arms)
        self._games = games
        self._tables = tables
        self._rng = rng
        self._outcomes = outcomes
        self._max_rounds = max_rounds
        self._scale = tables.cost_scale
        self._budget = budget * tables.cost_scale
        self._tolerance = TOLERANCE * tables.cost_scale
        self._exploration = games._policy.epsilon * budget * tables.cost_scale
        self._greedy = games._policy.greedy
        self._prices = games._problem.cost_means * tables.cost_scale if self._greedy else np.zeros(arms)
        self._pulls = np.zeros(arms, dtype=np.int64)
        self._reward, self._cost = np.zeros(arms), np.zeros(arms)
        self._total_reward = self._spent = 0.0
        self._turn = 0
        self._over = False

    def play(self) -> Game:
        # while the policy explores more than (1 - ε)B is left: all arms stay affordable, and a pull ends no game
        enough = max(float(self._prices.max()), float(self._tables.cost_top.max()))
        if self._budget - self._exploration > enough + self._tolerance:
            self._explore_in_turns()
        else:
            self._explore_singly()
        if self._greedy:
            self._exploit_greedily()
        elif not self._over:
            self._exploit(self._best(self._ratios()))
        return (
            self._total_reward / self._tables.reward_scale, self._spent / self._scale, int(self._pulls.sum()),
            self._pulls,
        )  # fmt: skip

    # --- exploration ---------------------------------------------------------------------------------------------

    def _explore_in_turns(self) -> None:
        everyone = np.arange(len(self._pulls))
        turn_cost = float(self._tables.cost_top.sum())  # at most
        while self._spent < self._exploration:
            turns = int((self._exploration - self._spent) / turn_cost - 1e-9)
            if turns >= 1:
                turns = min(turns, LONGEST_STRETCH) if self._tables.buffered else turns
                self._add(everyone, np.full(len(everyone), turns), *self._of_each(everyone, turns))
                continue
            rewards, costs = self._of_each(everyone, 1)
            before = self._spent + np.concatenate([[0.0], np.cumsum(costs)[:-1]])
            happened = int(np.searchsorted(before, self._exploration, side="left"))
            self._add(everyone[:happened], np.ones(happened, dtype=np.int64), rewards[:happened], costs[:happened])
            self._turn = happened % len(everyone)

    def _explore_singly(self) -> None:
        while not self._over and self._spent < self._exploration:
            allowed = self._allowed()
            if not allowed.any():
                self._over = True
                return
            self._pull(self._next_in_turn(allowed))

    def _next_in_turn(self, allowed: NDArray[np.bool_]) -> int:
        while not allowed[self._turn]:
            self._turn = (self._turn + 1) % len(allowed)
        arm = self._turn
        self._turn = (self._turn + 1) % len(allowed)
        return arm

    # --- exploitation --------------------------------------------------------------------------------------------

    def _ratios(self) -> Array:
        seen = np.maximum(self._pulls, 1)
        rewards = self._reward / self._tables.reward_scale
        if self._greedy:
            ratio = rewards / seen / (self._prices / self._scale)
        else:
            costs = self._cost / self._scale
            ratio = np.divide(rewards, costs, out=np.full(len(costs), np.inf), where=costs > 0.0)
        return np.where(self._pulls > 0, ratio, -np.inf)

    def _best(self, ratios: Array) -> int:
        ties = np.flatnonzero(ratios == ratios.max())
        return int(ties[self._rng.integers(len(ties))]) if len(ties) > 1 else int(ties[0])

    def _exploit(self, arm: int) -> None:
        """Pull one arm to the end of the game."""
        if self._two_values(arm):
            self._exploit_at_once(arm)
            return
        alone = np.array([arm])
        while not self._over:
            count = self._cannot_end(arm)
            if count >= STRETCH and self._tables.cost_atoms[arm] > 0:
                self._add(alone, np.array([count]), *self._games.sums(self._rng, alone, np.array([count])))
            else:
                # buffered laws: as many as cannot end the game, and a few more
                self._stretch(arm, float("-inf"), max(STRETCH, min(count, LONGEST_STRETCH)))

    def _two_values(self, arm: int) -> bool:
        first, atoms = self._tables.cost_first[arm], self._tables.cost_atoms[arm]
        return bool(atoms == 2 and self._tables.cost_value[first] == 0.0)

    def _exploit_at_once(self, arm: int) -> None:
        place = self._tables.cost_first[arm] + 1
        cost, chance = float(self._tables.cost_value[place]), float(self._tables.cost_chance[place])
        room = self._budget - self._spent
        payments = max(1, int(np.ceil((room - self._tolerance) / cost)))
        count = payments + int(self._rng.negative_binomial(payments, chance))
        self._check(count)
        fits = payments * cost <= room + self._tolerance
        alone = np.array([arm])
        rewards, _ = self._games.sums(self._rng, alone, np.array([count if fits else count - 1]))
        self._total_reward += float(rewards[0])
        self._spent += (payments if fits else payments - 1) * cost
        self._pulls[arm] += count
        self._over = True

    def _exploit_greedily(self) -> None:
        """Always the densest arm that is affordable; among equals, one at random in every round."""
        ratios = self._ratios()
        while not self._over:
            allowed = self._allowed()
            if not allowed.any():
                return
            if not (ratios[allowed] > -np.inf).any():
                self._pull(self._next_in_turn(allowed))
                continue
            best = np.where(allowed, ratios, -np.inf)
            ties = np.flatnonzero(best == best.max())
            count = min(self._cannot_end(int(arm)) for arm in ties)
            if count >= STRETCH and (self._tables.cost_atoms[ties] > 0).all():
                shares = self._rng.multinomial(count, np.full(len(ties), 1.0 / len(ties)))
                self._add(ties, shares, *self._games.sums(self._rng, ties, shares))
            elif len(ties) == 1:
                dearest_allowed = float(self._prices[ties[0]])
                self._stretch(int(ties[0]), dearest_allowed, max(STRETCH, min(count, LONGEST_STRETCH)))
            else:
                self._pull(int(ties[self._rng.integers(len(ties))]))

    # --- money ---------------------------------------------------------------------------------------------------

    def _allowed(self) -> NDArray[np.bool_]:
        return np.asarray(self._prices <= self._budget - self._spent + SLACK * self._scale)

    def _cannot_end(self, arm: int) -> int:
        """How many pulls of the arm surely neither end the game nor make it unaffordable."""
        room = self._budget - self._spent - self._tolerance - self._prices[arm]
        return max(0, int(room / self._tables.cost_top[arm]) - 1)

    def _add(self, arms: NDArray[np.int64], pulls: NDArray[np.int64], rewards: Array, costs: Array) -> None:
        """Book pulls that end no game; every arm at most once."""
        self._pulls[arms] += pulls
        self._reward[arms] += rewards
        self._cost[arms] += costs
        self._total_reward += float(rewards.sum())
        self._spent += float(costs.sum())
        self._check(0)

    def _check(self, coming: int) -> None:
        if int(self._pulls.sum()) + coming > self._max_rounds:
            raise round_limit(self._games._policy, self._max_rounds, self._budget / self._scale)

    def _stretch(self, arm: int, price: float, size: int) -> None:
        """Pull an arm until the game ends, less than its price is left, or the stretch is through."""
        rewards, costs = self._next_outcomes(arm, size)
        after = self._spent + np.cumsum(costs)
        ending = after >= self._budget - self._tolerance
        poor = self._budget - after + SLACK * self._scale < price
        stops = np.flatnonzero(ending | poor)
        last = int(stops[0]) if len(stops) else size - 1
        if not ending[last]:
            taken = slice(0, last + 1)
            self._add(np.array([arm]), np.array([last + 1]), rewards[taken].sum(keepdims=True),
                      costs[taken].sum(keepdims=True))  # fmt: skip
            return
        fits = after[last] <= self._budget + self._tolerance
        counted = last + 1 if fits else last
        self._total_reward += float(rewards[:counted].sum())
        self._spent += float(costs[:counted].sum())
        self._pulls[arm] += last + 1
        self._over = True

    def _pull(self, arm: int) -> None:
        self._stretch(arm, float("-inf"), 1)

    # --- outcomes ------------------------------------------------------------------------------------------------

    def _next_outcomes(self, arm: int, count: int) -> tuple[Array, Array]:
        """The outcomes of the arm's next pulls, in units; unused ones come again if all policies share them."""
        if self._outcomes is None:
            return self._games.stretch(self._rng, arm, count)
        return self._outcomes.window(arm, int(self._pulls[arm]), count)

    def _of_each(self, arms: NDArray[np.int64], pulls: int) -> tuple[Array, Array]:
        """Total reward and cost of ``pulls`` of each arm, in units."""
        if not self._tables.buffered:
            return self._games.sums(self._rng, arms, np.full(len(arms), pulls))
        outcomes = [self._next_outcomes(int(arm), pulls) for arm in arms]
        return np.array([r.sum() for r, _ in outcomes]), np.array([c.sum() for _, c in outcomes])
