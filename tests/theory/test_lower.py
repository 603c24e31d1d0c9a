"""Lower bounds, for Bernoulli outcomes and for any law, against quadrature and limits."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from budgetbandits import Problem, family
from budgetbandits.errors import NotIndependent, ProblemError
from budgetbandits.numerics.divergence import empirical_divergence, relative_entropy
from budgetbandits.problems.distributions import Bernoulli, Beta, Copula, Fixed, Independent, JointTable, Lattice
from budgetbandits.problems.problem import Arm
from budgetbandits.theory import any_law_constant, any_law_distances, distances, lower_constant
from budgetbandits.theory.lower import outcomes

mean = st.floats(0.001, 0.999999) | st.just(1.0)  # closer to 1 the plain formulas below lose their digits first


def plain_kl(p, q):
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


@given(p=st.floats(0.001, 0.999), q=st.floats(0.001, 0.999))
def test_relative_entropy(p, q):
    assert relative_entropy(p, q) == pytest.approx(plain_kl(p, q), rel=1e-9, abs=1e-12)


def test_relative_entropy_at_the_edges():
    assert relative_entropy(0.0, 0.25) == pytest.approx(-math.log(0.75))
    assert relative_entropy(1.0, 0.25) == pytest.approx(-math.log(0.25))
    assert relative_entropy(0.0, 0.0) == relative_entropy(1.0, 1.0) == relative_entropy(0.3, 0.3) == 0.0
    assert relative_entropy(0.5, 1.0) == relative_entropy(0.5, 0.0) == relative_entropy(1.0, 1.5) == math.inf


@pytest.mark.parametrize("step", [1e-3, 1e-6, 1e-9])
def test_relative_entropy_of_almost_equal_laws(step):
    """d²/(2p(1−p)) and the next order, where the plain formula has lost its digits."""
    p, q = 0.3, 0.3 + step
    d = q - p
    series = d * d / (2 * p * (1 - p)) * (1 - 2 * d * (1 - 2 * p) / (3 * p * (1 - p)))
    assert relative_entropy(p, q) == pytest.approx(series, rel=max(20 * step**2, 1e-12))


@given(reward=mean, cost=mean, best_reward=mean, best_cost=mean)
def test_the_root_is_the_minimum(reward, cost, best_reward, best_cost):
    ratio = best_reward / best_cost
    assume(ratio > 1.001 * reward / cost)
    distance = distances(Problem.bernoulli([best_reward, reward], [best_cost, cost]))[1]
    low, high = reward / ratio, min(cost, 1 / ratio)

    def total(c):
        return relative_entropy(reward, min(ratio * c, 1.0)) + relative_entropy(cost, c)

    inner = minimize_scalar(total, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).fun
    least = min(inner, total(low), total(high))  # the method stays a little away from the ends
    assert distance == pytest.approx(least, rel=1e-6)
    assert distance <= least * (1 + 1e-9)


@given(reward=mean, cost=mean, best_reward=mean, best_cost=mean, x=st.floats(0, 1), y=st.floats(0, 1))
def test_no_law_that_would_be_best_is_nearer(reward, cost, best_reward, best_cost, x, y):
    """Laws off the line r = ρ*c count as well, which the minimisation does not look at."""
    ratio = best_reward / best_cost
    assume(ratio > 1.001 * reward / cost)
    c = x * min(1.0, 1.0 / ratio)
    r = ratio * c + y * max(1.0 - ratio * c, 0.0)
    distance = distances(Problem.bernoulli([best_reward, reward], [best_cost, cost]))[1]
    assert distance <= relative_entropy(reward, r) + relative_entropy(cost, c) + 1e-12


@given(best=st.floats(0.05, 1 - 1e-9), share=st.floats(0.01, 0.99))
def test_known_costs_of_one_are_lai_and_robbins(best, share):
    problem = Problem.bernoulli([best, best * share], [1.0, 1.0])
    expected = (best - best * share) / relative_entropy(best * share, best)
    assert lower_constant(problem, known_costs=True) == pytest.approx(expected)


def test_costs_of_one_that_must_be_learned():
    """An arm that has cost 1 so far may be cheaper: c = min(1, (1 + μr)/(2ρ*)) instead of 1, so it takes more pulls."""
    problem = Problem.bernoulli([0.9, 0.3], [1.0, 1.0])
    cheaper = 1.3 / 1.8
    assert distances(problem)[1] == pytest.approx(plain_kl(0.3, 0.9 * cheaper) - math.log(cheaper))
    assert lower_constant(problem) > 1.5 * lower_constant(problem, known_costs=True)
    close = Problem.bernoulli([0.6, 0.5], [1.0, 1.0])  # (1 + μr)/(2ρ*) > 1: learning the costs is free
    assert lower_constant(close) == pytest.approx(lower_constant(close, known_costs=True))


def test_an_arm_too_expensive_to_be_the_best_needs_no_pulls_when_costs_are_known():
    """ρ* = 5 and a cost of ½: even a reward of 1 at every pull would not do."""
    problem = Problem.bernoulli([0.5, 0.9], [0.1, 0.5])
    assert lower_constant(problem, known_costs=True) == 0.0
    assert lower_constant(problem) > 0.0


@pytest.mark.parametrize(
    ("best", "other", "distance"),
    [
        ((1, 1), (1 - 1e-8, 1), 1e-8 * math.log(2)),  # c = min(1, (1 + μr)/2) with the costs to be learned
        ((1, 0.5), (1 - 1e-16, 1), math.log(2)),
        ((1, 0.5), (1, 1), math.log(2)),
        ((0.5, 0.5), (0, 0.5), 0.4315231086776713),
        ((1, 0.1), (1, 0.2), 0.04440300758688234),
    ],
)
def test_means_at_the_edge(best, other, distance):
    result = distances(Problem.bernoulli([best[0], other[0]], [best[1], other[1]]))[1]
    assert result == pytest.approx(distance, rel=1e-6)


def test_every_corner_has_a_distance():
    """Means at, next to and near 0 and 1, all ways: nothing raises, nothing is infinite or below 0."""
    near = [0.0, 1e-12, 1e-6, 0.5, 1 - 1e-6, 1 - 1e-12, 1 - 1e-16, 1.0]
    for rewards in itertools.product(near, repeat=2):
        for costs in itertools.product(near[1:], repeat=2):
            assert 0.0 <= lower_constant(Problem.bernoulli(rewards, costs)) < math.inf


def test_known_costs_and_a_best_arm_that_always_pays():
    """No reward would do: nothing to learn, whatever (1/c)·c rounds to."""
    for cost in np.arange(1, 100) / 100:
        assert lower_constant(Problem.bernoulli([1.0, 0.5], [cost, cost]), known_costs=True) == 0.0, cost


def test_ties_ask_for_nothing():
    assert lower_constant(Problem.bernoulli([0.8, 0.4], [0.8, 0.4])) == 0.0
    assert lower_constant(Problem.bernoulli([0.0, 0.0], [0.8, 0.4])) == 0.0


def test_near_a_tie_the_distance_is_a_square():
    """d ≈ (ρ*−ρᵢ)² μc²/(2(μr(1−μr) + ρ²μc(1−μc))): two normal laws, the usual limit."""
    reward, cost, ratio = 0.3, 0.6, 0.5
    for gap in (1e-3, 1e-5):
        problem = Problem.bernoulli([(ratio + gap) * cost, reward], [cost, cost])
        variance = reward * (1 - reward) + ratio**2 * cost * (1 - cost)
        limit = (gap * cost) ** 2 / (2 * variance)
        assert distances(problem)[1] == pytest.approx(limit, rel=20 * gap)


def test_thousands_of_problems_have_a_bound():
    constants = [lower_constant(family("uniform-bernoulli", 10, seed, low=0.001)) for seed in range(1000)]
    assert np.isfinite(constants).all()
    assert min(constants) > 0.0


def random_law(rng, atoms=6):
    return rng.dirichlet(np.ones(atoms)), rng.random(atoms), 0.05 + 0.95 * rng.random(atoms)


@pytest.mark.parametrize("seed", range(30))
def test_the_distance_is_the_maximum_and_is_attained(seed):
    """The grid never exceeds it, and the tilted law has ratio ρ and just this relative entropy."""
    rng = np.random.default_rng(seed)
    weights, rewards, costs = random_law(rng)
    own = rewards @ weights / (costs @ weights)
    ratio = own * (1.0 + 10.0 ** rng.uniform(-2, 1))
    divergence = float(empirical_divergence(weights, rewards, costs, ratio))
    excess = rewards - ratio * costs
    grid = np.linspace(0.0, 1.0, 20_001)
    values = weights @ np.log1p(-np.outer(excess, grid))
    assert values.max() <= divergence + 1e-12
    assert values.max() == pytest.approx(divergence, rel=1e-4)
    tilted = weights / (1.0 - grid[values.argmax()] * excess)
    rest = 1.0 - tilted.sum()  # stands at (1, 0)
    assert rest > -1e-3
    assert tilted @ excess + rest == pytest.approx(0.0, abs=2e-3 * ratio)
    assert weights @ np.log(weights / tilted) == pytest.approx(divergence, rel=1e-3, abs=1e-6)


def test_no_law_with_the_ratio_is_nearer():
    rng = np.random.default_rng(1)
    for _ in range(300):
        weights, rewards, costs = random_law(rng)
        other = rng.dirichlet(np.ones(6))
        ratio = rewards @ other / (costs @ other)
        if ratio > rewards @ weights / (costs @ weights):
            entropy = weights @ np.log(weights / other)
            assert empirical_divergence(weights, rewards, costs, ratio) <= entropy + 1e-12


def test_not_knowing_the_laws_costs_something():
    for seed in range(20):
        problem = family("uniform-bernoulli", 5, seed, low=0.1)
        assert any_law_constant(problem) >= lower_constant(problem) * (1 - 1e-9)


def test_correlated_arms_have_a_constant():
    tied = Problem(
        tuple(Arm(f"arm-{i}", Copula(Bernoulli(mean), Bernoulli(0.5), 0.9)) for i, mean in enumerate((0.6, 0.3)))
    )
    with pytest.raises(NotIndependent):
        lower_constant(tied)
    free = Problem.bernoulli([0.6, 0.3], [0.5, 0.5])
    assert 0.0 < any_law_constant(tied) < any_law_constant(free)
    assert any_law_distances(tied)[0] == np.inf


def test_outcomes_of_finite_laws():
    for law in (
        JointTable([[1, 1, 0.5], [0, 0.5, 0.5]]),
        Independent(Lattice([0.1, 0.7], [1, 2]), Fixed(0.3)),
        Independent(Bernoulli(0.3), Lattice([0.2, 0.4], [1, 1])),
        Copula(Bernoulli(0.3), Lattice([0.2, 0.4, 1.0], [1, 1, 2]), -0.7),
    ):
        rewards, costs, weights = outcomes(law, "arm")
        assert weights.sum() == pytest.approx(1.0)
        assert rewards @ weights == pytest.approx(law.reward_mean)
        assert costs @ weights == pytest.approx(law.cost_mean)
    for law in (Independent(Beta(1, 1), Fixed(0.3)), Copula(Beta(1, 1), Bernoulli(0.5), 0.5)):
        with pytest.raises(ProblemError, match=r"infinitely many outcomes.*needs a table"):
            outcomes(law, "arm")
