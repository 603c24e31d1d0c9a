"""Plain loops that draw every arm in every round: the references that the engine is compared with."""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.runtime.draws import gamma, new_stream, uniform
from budgetbandits.simulation.engines.thompson.engine import FiniteLaws
from engine_runs import RunResults


@njit(cache=True, nogil=True, error_model="numpy")
def choose(stream, probabilities):
    """An index with the given probabilities (summing to 1); rounding at the end falls on the last possible one."""
    u = uniform(stream)
    last = 0
    for index in range(probabilities.shape[0]):
        if probabilities[index] > 0.0:
            if u < probabilities[index]:
                return index
            u -= probabilities[index]
            last = index
    return last


@njit(cache=True, nogil=True, error_model="numpy")
def naive_play(
    stream, classical, ends, whole, step, reward_values, reward_chances, cost_steps, cost_trials, cost_chances,
    out_pulls, out_reward, out_spend, out_rounds,
):  # fmt: skip
    arms = reward_values.shape[0]
    posterior = np.ones((arms, 4))
    pulls = np.zeros(arms, dtype=np.int64)
    spent = 0
    earned = 0.0
    place = 0
    rounds = 0
    while True:
        best = -1.0
        arm = 0
        for candidate in range(arms):
            first = gamma(stream, posterior[candidate, 0])
            ratio = first / (first + gamma(stream, posterior[candidate, 1]))
            if not classical:
                second = gamma(stream, posterior[candidate, 2])
                ratio /= second / (second + gamma(stream, posterior[candidate, 3]))
            if ratio > best:
                best = ratio
                arm = candidate
        value = reward_values[arm, choose(stream, reward_chances[arm])]
        index = choose(stream, cost_chances[arm])
        pulls[arm] += 1
        rounds += 1
        after = spent + cost_steps[arm, index]
        while ends[place] <= after:
            reached = whole[place] > 0 and ends[place] == after
            out_pulls[place, :] = pulls
            out_rounds[place] = rounds
            out_reward[place] = earned + value if reached else earned
            out_spend[place] = (after if reached else spent) * step
            place += 1
            if place == ends.shape[0]:
                return
        spent = after
        earned += value
        posterior[arm, 0 if uniform(stream) < value else 1] += 1.0
        posterior[arm, 2 if uniform(stream) < cost_trials[arm, index] else 3] += 1.0


def naive_runs(laws: FiniteLaws, budgets: list[float], runs: int, seed: int, classical: bool = False) -> RunResults:
    """The compiled plain loop, same outputs as simulate_runs; budgets must be ascending."""
    amounts = np.asarray(budgets, dtype=np.float64)
    ends, whole = laws.steps_of(amounts)
    pulls = np.zeros((runs, amounts.size, laws.arms), dtype=np.int64)
    reward, spend = np.zeros((runs, amounts.size)), np.zeros((runs, amounts.size))
    rounds = np.zeros((runs, amounts.size), dtype=np.int64)
    words = np.random.Generator(np.random.PCG64(seed)).integers(0, 1 << 64, (runs, 4), dtype=np.uint64)
    for run in range(runs):
        stream = new_stream(words[run])
        naive_play(
            stream.ctypes.data, classical, ends, whole, float(laws.step), laws.reward_values, laws.reward_chances,
            laws.cost_steps, laws.cost_trials, laws.cost_chances, pulls[run], reward[run], spend[run], rounds[run],
        )  # fmt: skip
    return RunResults(amounts, pulls, reward, spend, rounds, {})


def numpy_runs(
    reward_means: np.ndarray, cost_means: np.ndarray, budget: int, runs: int, generator: np.random.Generator,
    classical: bool = False,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Games of Bernoulli arms and one whole budget, side by side with NumPy: their pulls by arm, and their rounds."""
    counts = np.ones((2, 2, runs, reward_means.size))  # of rewards and costs: successes, failures
    pulls, rounds = np.zeros((runs, reward_means.size), dtype=np.int64), np.zeros(runs, dtype=np.int64)
    left = np.full(runs, budget)
    while (games := np.flatnonzero(left > 0)).size:
        reward, cost = generator.beta(counts[:, 0, games], counts[:, 1, games])
        arms = np.argmax(reward if classical else reward / cost, axis=1)
        pulls[games, arms] += 1
        rounds[games] += 1
        for row, means in enumerate((reward_means, cost_means)):
            won = generator.random(games.size) < means[arms]
            counts[row, np.where(won, 0, 1), games, arms] += 1.0
        left[games] -= won
    return pulls, rounds
