"""Many runs of the Thompson engine at once, with its settings and counters, for tests and benchmarks."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from budgetbandits.simulation.engines.thompson.engine import FiniteLaws, Run, SampledLaws, Settings
from budgetbandits.simulation.engines.thompson.state import COUNTERS


def bernoulli(reward_means: Sequence[float], cost_means: Sequence[float]) -> FiniteLaws:
    """Rewards and costs of 0 or 1."""
    rewards = np.asarray(reward_means, dtype=np.float64)
    costs = np.asarray(cost_means, dtype=np.float64)
    return FiniteLaws(
        np.tile([0.0, 1.0], (rewards.size, 1)),
        np.stack([1.0 - rewards, rewards], axis=1),
        np.tile([0, 1], (costs.size, 1)),
        np.stack([1.0 - costs, costs], axis=1),
    )


@dataclass
class RunResults:
    """Arrays indexed [run, budget] and [run, budget, arm]; counters say what the engine did."""

    budgets: np.ndarray
    pulls: np.ndarray
    reward: np.ndarray
    spend: np.ndarray
    rounds: np.ndarray
    counters: dict[str, np.ndarray]


def simulate_runs(
    laws: FiniteLaws | SampledLaws,
    budgets: Sequence[float],
    runs: int,
    seed: int | Sequence[int] = 0,
    *,
    classical: bool = False,
    workers: int = 1,
    settings: Settings | None = None,
    posterior: np.ndarray | None = None,
    frozen: bool = False,
    kappa: float = 1.0,
) -> RunResults:
    """Play `runs` independent games of BTS (or, with `classical`, Thompson sampling on rewards alone).

    seed is an integer (run i gets the i-th child of its SeedSequence) or one integer per run.  posterior[arm] =
    (a, b, c, d) starts from given counts; frozen keeps them for ever, for tests of a single round.  A trial
    weighs kappa.
    """
    amounts = np.asarray(budgets, dtype=np.float64).ravel()
    if amounts.size == 0 or not (np.isfinite(amounts) & (amounts > 0)).all():
        raise ValueError("budgets must be positive and finite")
    order = np.argsort(amounts, kind="stable")
    ordered = np.ascontiguousarray(amounts[order])
    settings = settings or Settings()
    if np.ndim(seed) == 0:
        seeds = [np.random.SeedSequence(int(seed), spawn_key=(run,)) for run in range(runs)]
    else:
        seeds = [np.random.SeedSequence(int(value)) for value in seed]
        if len(seeds) != runs:
            raise ValueError("give one seed per run")
    number = amounts.size
    pulls = np.zeros((runs, number, laws.arms), dtype=np.int64)
    reward = np.zeros((runs, number))
    spend = np.zeros((runs, number))
    played = np.zeros((runs, number), dtype=np.int64)
    counters = np.zeros((runs, len(COUNTERS)), dtype=np.int64)

    games = threading.local()  # a record for each thread

    def one(run: int) -> None:
        if not hasattr(games, "own"):
            games.own = Run(laws, ordered, classical, settings, posterior, frozen, kappa)
        game = games.own
        game.clear(seeds[run].generate_state(8, np.uint64))
        game.play()
        pulls[run, order] = game.arrays["out_pulls"]
        reward[run, order] = game.arrays["out_reward"]
        spend[run, order] = game.arrays["out_spend"]
        played[run, order] = game.arrays["out_rounds"]
        counters[run] = list(game.counters.values())

    if workers <= 1:
        for run in range(runs):
            one(run)
    else:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(one, range(runs)))
    named = {name: counters[:, place] for place, name in enumerate(COUNTERS)}
    return RunResults(amounts, pulls, reward, spend, played, named)
