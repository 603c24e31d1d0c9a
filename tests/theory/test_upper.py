"""Theorem 1 as numbers: by hand, at the ends, and above what the exact engine measures."""

import math

import numpy as np
import pytest

from budgetbandits import Problem, family, parse_policy, simulate
from budgetbandits.errors import BadParameter
from budgetbandits.theory import delta_gaps, epsilon_gaps, upper_bound, upper_bounds
from budgetbandits.theory.upper import CHAINS
from budgetbandits.theory.waiting import waiting
from deep import deep


def test_the_papers_chain_by_hand():
    """μ = (0.8, 0.4), costs ½: ρ* = 1.6, Δ = 0.8, γ = ½: δ = 0.5·0.5·0.8/2.6 = 1/13, ε = 0.5·0.5·0.8/1.8 = 1/9."""
    bound = upper_bound(Problem.bernoulli([0.8, 0.4], [0.5, 0.5]), budget=1000, gamma=0.5)
    (arm,) = bound.arms
    assert (arm.arm, arm.gap, arm.gamma) == (1, pytest.approx(0.8), 0.5)
    assert (arm.delta, arm.epsilon) == (pytest.approx(1 / 13), pytest.approx(1 / 9))
    assert arm.first_pulls == math.ceil(2 * math.log(1000) * 169) == 2335
    assert arm.lucky_samples == pytest.approx(35 * 169 / 0.5)
    assert arm.waiting == pytest.approx(waiting(0.8, 0.5, 1 / 9).total)
    assert bound.regret == pytest.approx(0.4 * (2335 + 11830 + arm.waiting))
    assert bound.trivial == pytest.approx(800)


def test_the_sharper_chain_by_hand():
    """L + 2 q^(L+1) N + 2 q^L/(1 − q) at the L it chose, and at no other L is it less."""
    bound = upper_bound(Problem.bernoulli([0.8, 0.4], [0.5, 0.5]), budget=1000, gamma=0.5, chain="sharp")
    q = math.exp(-1 / 13**2 / 2)
    sums = [pulls + 2 * q ** (pulls + 1) * 2000 + 2 * q**pulls / (1 - q) for pulls in range(1, 5000)]
    (arm,) = bound.arms
    assert arm.first_pulls + arm.lucky_samples == pytest.approx(min(sums))
    assert arm.first_pulls == 1 + int(np.argmin(sums))


def test_costs_between_zero_and_one_or_a_broken_budget_may_overdraw():
    whole = upper_bound(Problem.bernoulli([0.8, 0.4], [0.5, 0.5]), 1000, gamma=0.5)
    broken = upper_bound(Problem.bernoulli([0.8, 0.4], [0.5, 0.5]), 1000.5, gamma=0.5)
    assert broken.arms[0].lucky_samples == 2 * whole.arms[0].lucky_samples
    assert (whole.overdraft, broken.overdraft) == (0.0, pytest.approx(3.2))
    assert upper_bound(family("uniform-multinomial", 3, seed=1, low=0.2), 1000).overdraft > 0.0


@pytest.mark.parametrize("chain", CHAINS)
def test_no_other_gamma_is_much_better(chain):
    """The grid of ε and the rough sums of the search cost a few percent at most."""
    problem = family("uniform-bernoulli", 6, seed=4, low=0.1)
    bound = upper_bound(problem, 20_000, chain=chain)
    assert len(bound.arms) == 5
    for gamma in np.linspace(0.05, 0.98, 12):
        given = upper_bound(problem, 20_000, gamma=float(gamma), chain=chain)
        for arm, other in zip(bound.arms, given.arms, strict=True):
            assert arm.pulls <= 1.03 * other.pulls
    for arm in bound.arms:  # the γ reported is the one that the terms belong to
        assert arm.delta == pytest.approx(delta_gaps(problem, arm.gamma)[arm.arm])
        assert arm.epsilon == pytest.approx(epsilon_gaps(problem, arm.gamma)[arm.arm])


def test_the_sharper_chain_is_sharper():
    problem = family("uniform-bernoulli", 10, seed=4, low=0.1)
    paper, sharp = (upper_bounds(problem, [10.0, 1000.0, 1e9], chain=chain) for chain in CHAINS)
    for one, other in zip(paper, sharp, strict=True):
        assert all(b.pulls < a.pulls for a, b in zip(one.arms, other.arms, strict=True))


@pytest.mark.parametrize("chain", CHAINS)
def test_the_ends_of_gamma_are_infinite(chain):
    problem = Problem.bernoulli([0.8, 0.4], [0.5, 0.5])
    assert upper_bound(problem, 1000, gamma=0.0, chain=chain).regret == math.inf
    assert upper_bound(problem, 1000, gamma=1.0, chain=chain).regret == math.inf
    assert upper_bound(problem, 1000, gamma=1e-9, chain=chain).regret > 1e9
    assert math.isfinite(upper_bound(problem, 1000, gamma=1 - 1e-9, chain=chain).regret)


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize(
    ("rewards", "costs"),
    [
        ([1.0, 0.5], [0.5, 0.5]),  # a best arm that always pays
        ([0.5, 0.0], [0.5, 0.5]),  # a worse arm that never pays
        ([0.9, 0.2], [1.0, 1.0]),  # μc + ε ≥ 1
        ([1.0, 1.0], [0.9, 1.0]),
        ([0.5, 0.5], [0.5, 0.5000001]),  # almost a tie
        ([1e-6, 1e-9], [1.0, 1.0]),
        ([0.5, 0.3], [1e-6, 1e-6]),
    ],
)
def test_means_at_the_edge_are_the_limit_of_means_next_to_it(rewards, costs, chain):
    """Moved a little towards the middle, the bound moves a little."""
    at = upper_bound(Problem.bernoulli(rewards, costs), 10_000, gamma=0.5, chain=chain)
    near_by = Problem.bernoulli([r + 1e-10 * (0.5 - r) for r in rewards], [c + 1e-10 * (0.5 - c) for c in costs])
    assert at.regret == pytest.approx(upper_bound(near_by, 10_000, gamma=0.5, chain=chain).regret, rel=0.01)


def test_the_sharper_chain_counts_the_overdraft():
    """N = (B + 1)/μc_min rounds when the last pull may cost more than is left."""
    whole, broken = (
        upper_bound(Problem.bernoulli([0.8, 0.4], [0.5, 0.5]), budget, gamma=0.9, chain="sharp")
        for budget in (100.0, 100.0 + 1e-9)
    )
    q = math.exp(-((0.9 * 0.5 * 0.8 / 2.6) ** 2) / 2)

    def least(rounds):
        return min(pulls + 2 * q ** (pulls + 1) * rounds + 2 * q**pulls / (1 - q) for pulls in range(1, 3000))

    for bound, rounds in ((whole, 200), (broken, 202)):
        assert bound.arms[0].first_pulls + bound.arms[0].lucky_samples == pytest.approx(least(rounds), rel=1e-9)


def test_what_no_policy_exceeds():
    """Bernoulli: the worst arm's gap on every unit. Otherwise one unit more and 2ρ*; never more than can be earned."""
    problem = Problem.bernoulli([0.8, 0.4, 0.6], [0.5, 0.5, 0.5])
    assert upper_bound(problem, 1000).trivial == pytest.approx(800)
    assert upper_bound(problem, 1000.5).trivial == pytest.approx(0.8 * 1001.5 + 3.2)
    assert upper_bound(problem, 1.5).trivial == pytest.approx(1.6 * 2.5)


@pytest.mark.parametrize("chain", CHAINS)
def test_numbers_beyond_the_largest_are_infinite_and_no_errors(chain):
    plain, near = Problem.bernoulli([0.8, 0.4], [0.5, 0.5]), Problem.bernoulli([0.5, 0.5], [0.5, 0.5 + 1e-11])
    cheap_arms = Problem.bernoulli([0.5, 0.4], [1e-9, 1e-9])
    assert math.isfinite(upper_bound(plain, 1e308, gamma=0.5, chain=chain).regret)
    assert upper_bound(plain, 1e300, gamma=1e-155, chain=chain).regret == math.inf
    assert upper_bound(plain, 100, gamma=1 - 1e-16, chain=chain).regret > 1e30
    for problem in (near, cheap_arms):
        assert upper_bound(problem, 1e300, chain=chain).regret > 0.0
    always = Problem.bernoulli([1.0, 0.5], [0.9, 0.9])
    assert upper_bound(always, 100, gamma=1 - 1e-16, chain=chain).regret == math.inf


def test_gamma_zero_with_an_arm_that_never_pays():
    """ε(0) is the best arm's whole reward, and may be a last bit more."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        problem = Problem.bernoulli([rng.random(), 0.0], rng.random(2))
        for arm in upper_bound(problem, 100, gamma=0.0).arms:
            near_by = waiting(problem.reward_means[0], problem.cost_means[0], arm.epsilon * (1 - 1e-9)).total
            assert arm.waiting == pytest.approx(near_by, rel=1e-3, abs=1e-6), seed


def test_the_search_does_not_trust_the_rough_sums():
    """A best arm that almost always pays: there the rough remainder is far off, and so would be the γ it chooses."""
    problem = Problem.bernoulli([0.99999997, 0.52526799], [0.97837989, 0.53184472])
    regret = upper_bound(problem, 14_016_685).regret
    assert regret <= 1.03 * min(upper_bound(problem, 14_016_685, gamma=g).regret for g in (0.75, 0.8, 0.85, 0.9, 0.95))


def test_ties():
    """Equally good arms cost nothing; the others are measured against the most expensive of them."""
    alone = upper_bound(Problem.bernoulli([0.8, 0.4], [0.5, 0.5]), 1000)
    tied = upper_bound(Problem.bernoulli([0.8, 0.4, 0.64], [0.5, 0.5, 0.4]), 1000, gamma=alone.arms[0].gamma)
    assert [arm.arm for arm in tied.arms] == [1]
    assert tied.arms[0].waiting == pytest.approx(alone.arms[0].waiting, rel=1e-6)
    all_tied = upper_bound(Problem.bernoulli([0.8, 0.4], [0.8, 0.4]), 1000)
    assert (all_tied.arms, all_tied.regret, all_tied.trivial) == ((), 0.0, 0.0)
    assert upper_bound(Problem.bernoulli([0.0, 0.0], [0.8, 0.4]), 1000).regret == 0.0


@pytest.mark.parametrize("budget", [0.0, 0.5, -1.0, math.inf, math.nan])
def test_budgets_that_are_refused(budget):
    with pytest.raises(BadParameter, match="at least the largest cost"):
        upper_bound(Problem.bernoulli([0.8, 0.4], [0.5, 0.5]), budget)


def test_an_unknown_chain():
    with pytest.raises(BadParameter, match="paper or sharp"):
        upper_bound(Problem.bernoulli([0.8, 0.4], [0.5, 0.5]), 100, chain="best")


@pytest.mark.parametrize(
    ("name", "seeds"),
    [("uniform-bernoulli", range(6)), *deep(*((n, range(26)) for n in ("uniform-bernoulli", "uniform-multinomial")))],
)
def test_simulated_pulls_lie_below_the_bound_of_every_arm(name, seeds):
    """Random problems, 2 to 4 arms, 200 games each, the sharper chain (so the paper's as well).

    Mean pulls and four standard errors. Where the bound is closest it is some twenty times that.
    """
    closest = math.inf
    for seed in seeds:
        problem = family(name, 2 + seed % 3, seed, low=0.2)
        pulls = simulate(problem, parse_policy("bts"), [3000.0], runs=200, seed=seed).pulls[:, 0]
        most = pulls.mean(axis=0) + 4 * pulls.std(axis=0) / math.sqrt(len(pulls))
        for arm in upper_bound(problem, 3000.0, chain="sharp").arms:
            assert most[arm.arm] <= arm.pulls, (seed, arm)
            closest = min(closest, arm.pulls / most[arm.arm])
    assert closest < 30.0
