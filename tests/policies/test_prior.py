"""The prior of all arms: its likelihood against quadrature, when it is fitted, and what a new arm gets of it."""

import numpy as np
import pytest
from scipy.special import roots_jacobi
from scipy.stats import binom

from budgetbandits import Problem, simulate
from budgetbandits.policies import Knowledge, parse_policy
from budgetbandits.policies.prior import MOST_ARMS, SIZES, STEP, fitted_beta, pull_weight
from budgetbandits.problems.distributions import JointTable
from budgetbandits.problems.problem import Arm

GRID = [2.0 ** (row - 3) for row in range(SIZES)]
KNOWN = Knowledge(budget=100.0)


def fitted(hits, pulls, lead=3.0):
    """The prior of arms whose outcomes are 0 and 1."""
    hits = np.asarray(hits, dtype=float)
    return fitted_beta(hits, hits, np.asarray(pulls, dtype=float), lead)


def by_quadrature(hits, pulls, lead):
    """The best prior of the grid, its likelihood by Gauss and Jacobi's quadrature, which is exact for whole hits."""

    def evidence(good, bad):
        nodes, weights = roots_jacobi(8, bad - 1.0, good - 1.0)
        chances = binom.pmf(hits[:, None], pulls[:, None], (1.0 + nodes) / 2.0)
        penalty = STEP * (abs(np.log2(good)) + abs(np.log2(bad)))
        return np.log(chances @ weights / weights.sum()).sum() - penalty

    found = max((evidence(good, bad), good, bad) for good in GRID for bad in GRID)
    return found[1:] if found[0] > evidence(1.0, 1.0) + lead else (1.0, 1.0)


def test_the_likelihood_is_that_of_quadrature():
    rng = np.random.default_rng(5)
    found = set()
    for good, bad, lead in 10 * ((0.5, 2.0, 0.1), (8.0, 8.0, 0.1), (1.0, 1.0, 2.0), (2.0, 0.5, 1.0)):
        pulls = rng.integers(1, 9, 12)
        hits = rng.binomial(pulls, rng.beta(good, bad, 12))
        found.add(fitted(hits, pulls, lead))
        assert fitted(hits, pulls, lead) == by_quadrature(hits, pulls, lead)
    assert len(found) > 8


def test_few_arms_and_even_means_keep_the_uniform_prior():
    rng = np.random.default_rng(7)
    kept = 0
    for _ in range(400):
        pulls = rng.integers(1, 30, 10)
        kept += fitted(rng.binomial(pulls, rng.random(10)), pulls) == (1.0, 1.0)
    assert kept > 380  # a lead of three is rare among ten arms whose means are uniform
    assert fitted([], []) == (1.0, 1.0)


def test_arms_that_are_alike_are_expected_of_the_next():
    rng = np.random.default_rng(8)
    good, bad = fitted(rng.binomial(20, 0.1, 60), np.full(60, 20))
    assert good / (good + bad) == pytest.approx(0.1, abs=0.03)
    assert good + bad > 16.0


def test_outcomes_that_scatter_less_count_for_more():
    rng = np.random.default_rng(9)
    pulls = np.full(4_000, 5.0)
    outcomes = rng.choice([0.25, 0.75], (4_000, 5))  # a quarter of the variance of 0 and 1 with the mean ½
    sums, squares = outcomes.sum(axis=1), (outcomes**2).sum(axis=1)
    assert pull_weight(sums, squares, pulls) == pytest.approx(4.0, rel=0.05)
    coins = rng.binomial(5, 0.3, 4_000).astype(float)
    assert pull_weight(coins, coins, pulls) == pytest.approx(1.0, abs=1e-9)
    assert pull_weight(sums[:9], squares[:9], np.ones(9)) == 1.0  # one pull each says nothing of scatter
    weight = pull_weight(sums[:30], squares[:30], pulls[:30])
    assert fitted_beta(sums[:30], squares[:30], pulls[:30], 3.0) == fitted(weight * sums[:30], weight * pulls[:30])


def test_a_bounded_number_of_arms_is_looked_at():
    policy = parse_policy("gittins-ratio")
    state = policy.start(1_000, KNOWN)
    state.pulls[:] = 5
    state.reward[MOST_ARMS:] = state.reward_squared[MOST_ARMS:] = 5.0  # what the others gave does not matter
    state.fit(3.0)
    assert state.prior[:2, 0].tolist() == [*fitted(np.zeros(MOST_ARMS), np.full(MOST_ARMS, 5.0))]


def test_sixty_arms_are_looked_at_whichever_come_first():
    """Twenty arms of 60 that gave nothing are not what the prior is made of when forty gave something in every pull."""
    state = parse_policy("gittins-ratio").start(60, KNOWN)
    state.pulls[:] = 5
    hits = np.where(np.arange(60) < 20, 0.0, 5.0)
    state.reward[:] = state.reward_squared[:] = hits
    state.fit(3.0)
    assert state.prior[:2, 0].tolist() == [*fitted(hits, np.full(60, 5.0))]
    assert fitted(hits[:20], np.full(20, 5.0)) != fitted(hits, np.full(60, 5.0))


def test_the_prior_is_fitted_at_powers_of_two_and_a_new_arm_gets_it():
    policy, rng = parse_policy("gittins-ratio"), np.random.default_rng(1)
    state = policy.start(12, KNOWN)
    priors = []
    for pull in range(40):
        policy.observe(state, pull % 12, 0.0, 1.0, rng)
        priors.append(state.prior)
    changed = [pull + 1 for pull in range(1, 40) if priors[pull] is not priors[pull - 1]]
    assert changed == [2, 4, 8, 16, 32]
    at_32 = [3] * 8 + [2] * 4
    assert state.prior[2:, 0].tolist() == [*fitted(at_32, at_32)]
    new = policy.new_arm_state(state, KNOWN)
    assert new.prior[:, 0].tolist() == state.prior[:, 0].tolist()


def test_the_prior_of_history_does_not_depend_on_its_order():
    policy = parse_policy("gittins-ratio")
    one, other = policy.start(12, KNOWN), policy.start(12, KNOWN)
    past = [(600, 30.0, 600.0), *[(20, 1.0, 20.0)] * 11]
    for arm, (pulls, reward, cost) in enumerate(past):
        policy.add_history(one, arm, pulls, reward, cost)
    for arm, (pulls, reward, cost) in reversed(list(enumerate(past))):
        policy.add_history(other, arm, pulls, reward, cost)
    assert one.prior[:, 0].tolist() == other.prior[:, 0].tolist()
    assert one.prior[2, 0] > 1.0 > one.prior[3, 0]


def test_known_prices_are_found_out():
    """Where every pull costs 1, ten arms need fewer trials once the others have said so."""
    laws = [JointTable([[1.0, 1.0, mean], [0.0, 1.0, 1.0 - mean]]) for mean in np.linspace(0.1, 0.5, 10)]
    problem = Problem(tuple(Arm(f"arm-{i}", law) for i, law in enumerate(laws)))
    fitted, fixed = (
        simulate(problem, parse_policy(spec), [2_000.0], runs=20, seed=11).pseudo_regret.mean()
        for spec in ("gittins-ratio", "gittins-ratio:lead=1000")
    )
    assert fitted < 0.8 * fixed


@pytest.mark.parametrize("pulls", [2**12, 2**13, 2**20])
def test_the_prior_is_fitted_again_however_many_pulls_there_were(pulls):
    policy, rng = parse_policy("gittins-ratio"), np.random.default_rng(1)
    state = policy.start(10, KNOWN)
    for arm in range(10):
        policy.add_history(state, arm, pulls // 10 + (pulls % 10 - 1) * (arm == 0), 0.0, 0.0)
    state.prior = np.ones_like(state.prior)
    policy.observe(state, 1, 0.0, 0.0, rng)
    assert state.pulls.sum() == pulls
    assert (state.prior[0] < state.prior[1]).all()
