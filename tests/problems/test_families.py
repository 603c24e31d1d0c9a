"""Families of random problems: each is what its line says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from budgetbandits import Problem, family
from budgetbandits.errors import BadParameter
from budgetbandits.problems.distributions import Beta, Copula, JointTable, Lattice
from budgetbandits.problems.families import ARMS_FAMILIES, FAMILIES
from budgetbandits.problems.oracle import best_arms

SEEDS = range(60)


def problems(name, arms=10):
    return [family(name, arms, seed) for seed in SEEDS]


def ratios(problem):
    return problem.reward_means / problem.cost_means


@pytest.mark.parametrize("name", [*FAMILIES, *ARMS_FAMILIES])
@pytest.mark.parametrize("arms", [2, 11])
def test_a_seed_is_a_problem_and_survives_its_file(name, arms):
    means = {"low": 0.1, "high": 0.9} if name in FAMILIES else {}
    problem = family(name, arms, seed=4, **means)
    assert len(problem) == arms
    assert family(name, arms, seed=4, **means) == problem == Problem.from_toml(problem.to_toml())
    assert family(name, arms, seed=5, **means) != problem


def test_means_lie_in_the_range_and_are_uniform_there():
    """Means of 1,000 arms: Kolmogorov-Smirnov at a false-alarm rate of 1e-6."""
    for name in FAMILIES:
        problem = family(name, 1_000, seed=1, low=0.2, high=0.6)
        for means in (problem.reward_means, problem.cost_means):
            assert 0.2 <= means.min() < means.max() <= 0.6
            if name != "uniform-multinomial":
                assert stats.kstest(means, stats.uniform(0.2, 0.4).cdf).pvalue > 1e-6


def test_they_take_no_range():
    with pytest.raises(BadParameter, match="leave out low and high"):
        family("near-ties", 3, 0, low=0.1)


def test_the_literatures_bernoulli_means_are_uniform():
    # Kolmogorov-Smirnov at fixed seeds, 600 means each: a false alarm has a probability of 0.1 %
    drawn = problems("heyden-bernoulli")
    rewards = np.concatenate([problem.reward_means for problem in drawn])
    costs = np.concatenate([problem.cost_means for problem in drawn])
    assert stats.kstest(rewards, stats.uniform(0.0, 1.0).cdf).pvalue > 0.001
    assert stats.kstest(costs, stats.uniform(0.01, 0.99).cdf).pvalue > 0.001


def test_the_literatures_other_laws():
    law = family("heyden-lattice", 3, 0).arms[0].law
    assert isinstance(law.reward, Lattice)
    assert tuple(law.reward.support) == (0.0, 0.25, 0.5, 0.75, 1.0)
    parameters = [
        value for problem in problems("heyden-beta") for arm in problem.arms for law in (arm.law.reward, arm.law.cost)
        for value in (law.a, law.b)
    ]  # fmt: skip
    assert isinstance(family("heyden-beta", 3, 0).arms[0].law.cost, Beta)
    assert stats.kstest(parameters, stats.uniform(0.0, 5.0).cdf).pvalue > 0.001


def test_near_ties_are_near():
    for problem in problems("near-ties"):
        of = np.sort(ratios(problem))[::-1]
        assert (of[1:] / of[0] >= 0.9 - 1e-12).all()
        assert of[1] / of[0] <= 0.99 + 1e-12


def test_the_rare_cheap_arm_is_the_best_and_anywhere():
    places = set()
    for problem in problems("rare-cheap"):
        (best,) = best_arms(problem)
        assert 0.01 <= problem.cost_means[best] <= 0.05
        assert np.delete(problem.cost_means, best).min() >= 0.3
        places.add(best)
    assert len(places) > 5  # not where policies look first


def test_rare_expensive_arms_look_cheap_and_are_not():
    for problem in problems("rare-expensive"):
        traps = [place for place, arm in enumerate(problem.arms) if isinstance(arm.law, JointTable)]
        assert len(traps) == 3
        assert not set(traps) & set(best_arms(problem))
        for place in traps:
            until_it_comes = problem.reward_means[place] / 0.02
            assert until_it_comes > 3.0 * ratios(problem)[place]


@pytest.mark.parametrize(("name", "sign"), [("correlated", 1), ("anticorrelated", -1)])
def test_rewards_and_costs_are_tied(name, sign):
    arm = family(name, 3, 0).arms[0]
    assert isinstance(arm.law, Copula)
    rewards, costs = arm.sample(np.random.default_rng(1), 4_000)
    assert sign * np.corrcoef(rewards, costs)[0, 1] > 0.2


def test_unit_costs_are_one():
    assert (family("unit-costs", 4, 0).cost_means == 1.0).all()
