"""A campaign that is driven over HTTP learns as well as a simulated game."""

import asyncio
import math

import httpx
import numpy as np
import pytest

from budgetbandits import Problem, simulate
from budgetbandits.client import AsyncClient
from budgetbandits.errors import HoldRefused
from budgetbandits.policies import parse_policy
from budgetbandits.problems.oracle import best_ratio, gaps
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.http.app import create_app
from budgetbandits.service.http.auth import make_key
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore
from deep import deep

PROBLEM = Problem.bernoulli([0.7, 0.4, 0.3], [0.5, 0.5, 0.6])
BUDGET, LATE = 40, 3


async def play(client, run):
    """One campaign to the end of its money: costs at once, rewards three decisions late, a third of all told twice."""
    rng, late, pulls = np.random.default_rng([7, run]), [], np.zeros(3)
    name = f"game {run}"
    while True:
        try:
            d = await client.decide(name)
        except HoldRefused:
            return pulls
        arm = int(d.arm)
        pulls[arm] += 1
        await d.settle(cost=float(rng.random() < PROBLEM.cost_means[arm]))
        late.append((d, float(rng.random() < PROBLEM.reward_means[arm])))
        if len(late) > LATE:
            told, reward = late.pop(0)
            await told.settle(reward=reward)
            if rng.random() < 0.33:
                await told.settle(reward=reward)


@pytest.mark.parametrize("runs", [6, *deep(40)])
def test_a_campaign_over_http_learns_like_a_simulation(runs, tmp_path):
    """Campaigns at once against 3,000 simulated games: pseudo-regret, two-sided, a false alarm in a thousand.

    Feedback that comes three pulls late costs a little, which the reference is given by a margin of 2 %.
    """
    with SQLiteStore(tmp_path / "money.db") as store:
        engine = DecisionService(store)
        for run in range(runs):
            engine.create(f"game {run}", "bts", budget=BUDGET, arms={"0": 1.0, "1": 1.0, "2": 1.0})
        transport = httpx.ASGITransport(create_app(engine, store))

        async def all_of_them():
            async with AsyncClient("http://service", make_key(store, ["admin"], 0.0), transport=transport) as client:
                return await asyncio.gather(*(play(client, run) for run in range(runs)))

        pulls = np.array(asyncio.run(all_of_them()))
        for run in range(runs):
            assert engine.account(f"game {run}").left == 0
        assert verify(store, "game 0") == []
    found = pulls @ (PROBLEM.cost_means * gaps(PROBLEM))
    games = simulate(PROBLEM, parse_policy("bts"), [float(BUDGET)], runs=3000, seed=5).pseudo_regret[:, 0]
    # with the deviation of the games: that of a few campaigns varies too much for a false alarm in a thousand
    error = games.std() * math.sqrt(1 / runs + 1 / len(games))
    assert abs(found.mean() - games.mean()) < 3.3 * error + 0.02 * games.mean()
    assert best_ratio(PROBLEM) * BUDGET > 3.5 * found.mean()  # it does learn: pulling in turn loses 1 / 2.7 of that
