"""Games that end after so many requests: the rules, and what policies earn beside the optimum."""

import pytest

from budgetbandits import Problem, simulate
from budgetbandits.errors import BadParameter
from budgetbandits.problems.oracle_horizon import fluid_reward, paced_optimum
from deep import deep

PROBLEM = Problem.bernoulli([0.2, 0.8, 0.7], [0.1, 0.5, 0.9])


@pytest.mark.parametrize("policy", ["bts", "kube", "bts-paced", "primal-dual-bwk", "epsilon-first"])
def test_the_game_ends_at_the_horizon_or_when_the_money_is_gone(policy):
    played = simulate(PROBLEM, policy, [5, 200], runs=4, horizon=100)
    assert (played.rounds <= 100).all()
    assert (played.rounds[:, 1] == 100).all()  # money for all of them
    assert (played.spend[:, 0] <= 5).all()
    assert played.horizon == 100.0


def test_regret_is_measured_against_the_fluid_bound():
    played = simulate(PROBLEM, "bts-paced", [30], runs=3, horizon=100)
    assert played.regret.tolist() == (fluid_reward(PROBLEM, 30, 100) - played.reward).tolist()
    # the price on money is 1.5; costs that came out above their means have bought less
    luck = 1.5 * (played.pulls @ PROBLEM.cost_means - played.spend)
    assert played.pseudo_regret == pytest.approx(50.0 - played.pulls @ PROBLEM.reward_means + luck)
    assert played.best_arm_identified.all()


@pytest.mark.parametrize("budget", [30, *deep(4, 95)])
def test_pseudo_regret_has_the_mean_of_the_regret_and_less_noise(budget):
    """At no, some and much money for each request. Paired differences of 400 games, five standard errors, and what the
    last pull may overdraw."""
    played = simulate(PROBLEM, "bts-paced", [budget], runs=400, horizon=100)
    apart = (played.regret - played.pseudo_regret)[:, 0]
    assert abs(apart.mean()) < 5 * apart.std(ddof=1) / 20 + 1e-9
    assert played.pseudo_regret.std() < 0.8 * played.regret.std()
    assert (played.pseudo_regret >= -1e-9).all()


def test_nobody_beats_the_optimum_and_paced_comes_near():
    """400 games: four standard errors; bts, which goes for the best ratio, leaves money over."""
    best = paced_optimum(PROBLEM, 60, 200).reward
    paced, plain = (simulate(PROBLEM, name, [60], runs=400, horizon=200) for name in ("bts-paced", "bts"))
    mean, error = paced.reward.mean(), paced.reward.std(ddof=1) / 20
    assert 0.85 * best < mean < best + 4 * error
    assert paced.spend.mean() > 57
    assert plain.reward.mean() < 0.85 * best
    assert plain.spend.mean() < 55


@pytest.mark.parametrize("horizon", [0, 2.5, True])
def test_what_is_refused(horizon):
    with pytest.raises(BadParameter, match="from 1 upwards, the number of requests"):
        simulate(PROBLEM, "bts", [5], runs=1, horizon=horizon)
