"""Common outcomes: the n-th pull of an arm brings every policy the same, and the games keep their law."""

from __future__ import annotations

import numpy as np
import pytest

from budgetbandits import Problem, simulate
from budgetbandits.problems.distributions import Beta, Copula, Independent
from budgetbandits.problems.problem import Arm
from budgetbandits.simulation.common_outcomes import CommonOutcomes
from budgetbandits.testing.engines import FALSE_ALARM, rows, smallest_p
from deep import deep, mostly_deep

BERNOULLI = Problem.bernoulli([0.9, 0.2, 0.5, 0.6], [0.3, 0.6, 0.5, 0.4])
CONTINUOUS = Problem(
    (Arm("a", Independent(Beta(2, 3), Beta(3, 2))), Arm("b", Copula(Beta(1, 1), Beta(4, 2), correlation=0.7)))
)
ENGINES = {
    "bts": "thompson",
    "thompson": "thompson",
    "epsilon-first": "epsilon-first",
    "epsilon-first-greedy": "epsilon-first",
    "kube": "index blocks",
    "kube-fractional": "index blocks",
    "pd-bwk": "index blocks",
    "ucb-bv2": "index plain loop",
    "kube-knapsack": "reference",
}


@pytest.mark.parametrize("policy", mostly_deep(ENGINES, ("bts", "epsilon-first", "kube", "ucb-bv2", "kube-knapsack")))
@pytest.mark.parametrize("problem", [BERNOULLI, CONTINUOUS], ids=["bernoulli", "continuous"])
def test_a_game_takes_the_first_outcomes_of_every_arm(policy, problem):
    """What a game earned and spent is what the first so many outcomes of each arm bring, in every engine. Rewards of
    the pull that overdraws a budget are not counted, which continuous costs nearly always end with."""
    budgets = [17.0, 60.0]
    played = simulate(problem, policy, budgets, runs=4, seed=5, first_run=2, common=True)
    assert played.engine == ENGINES[policy]
    for run in range(4):
        for place, budget in enumerate(budgets):
            outcomes = CommonOutcomes(problem, seed=5, run=2 + run)
            taken = [outcomes.window(arm, 0, int(count)) for arm, count in enumerate(played.pulls[run, place])]
            reward, spend = (sum(float(arm[part].sum()) for arm in taken) for part in (0, 1))
            possible = [(reward, spend)]
            if spend > budget + 1e-9:
                possible = [(reward - arm[0][-1], spend - arm[1][-1]) for arm in taken if len(arm[0])]
            assert any((played.reward[run, place], played.spend[run, place]) == pytest.approx(it) for it in possible)


@pytest.mark.parametrize("policy", ["bts", *deep("kube", "epsilon-first")])
def test_the_games_keep_their_law(policy):
    """Two samples of 400 games; a false alarm in 10⁻⁶ of the cases, after Bonferroni."""
    apart, shared = (simulate(BERNOULLI, policy, [10.0, 60.0], 400, seed=8, common=each) for each in (False, True))
    assert smallest_p(rows(apart), rows(shared)) > FALSE_ALARM


def test_whatever_is_asked_for_at_once_the_outcomes_are_the_same():
    whole = np.stack(CommonOutcomes(CONTINUOUS, 1, 0).window(1, 0, 9_000))
    outcomes, parts, rng, first = CommonOutcomes(CONTINUOUS, 1, 0), [], np.random.default_rng(3), 0
    while first < 9_000:
        count = int(min(rng.integers(1, 700), 9_000 - first))
        outcomes.window(1, first, min(count + 50, 9_000))  # looked at, and not taken
        parts.append(np.stack(outcomes.window(1, first, count)))
        first += count
    assert np.array_equal(np.concatenate(parts, axis=1), whole)
    assert np.array_equal(np.stack(outcomes.window(1, 0, 20)), whole[:, :20])  # another game begins


def test_runs_arms_and_seeds_have_outcomes_of_their_own():
    first = CommonOutcomes(CONTINUOUS, 1, 0).window(0, 0, 50)[0]
    for seed, run, arm in ((2, 0, 0), (1, 1, 0), (1, 0, 1)):
        assert not np.array_equal(CommonOutcomes(CONTINUOUS, seed, run).window(arm, 0, 50)[0], first)


def test_differences_of_regrets_vary_less():
    """On these games the variance of the difference falls to 0.47 of what it was; a third less would still show."""
    ratio = []
    for common in (True, False):
        ours, theirs = (simulate(BERNOULLI, name, [300.0], 200, seed=4, common=common) for name in ("kube", "bts"))
        ratio.append(float((ours.regret - theirs.regret).var()))
    assert ratio[0] < 0.67 * ratio[1]
