"""The lower bound for any law: its distance against a grid, against the law that attains it, and against `lower`."""

import numpy as np
import pytest

from budgetbandits import Problem, family
from budgetbandits.errors import NotIndependent, ProblemError
from budgetbandits.numerics.divergence import empirical_divergence
from budgetbandits.problems.distributions import Bernoulli, Beta, Copula, Fixed, Independent, JointTable, Lattice
from budgetbandits.problems.problem import Arm
from budgetbandits.theory import any_law_constant, any_law_distances, lower_constant
from budgetbandits.theory.lower import outcomes


def random_law(rng, atoms=6):
    weights = rng.dirichlet(np.ones(atoms))
    return weights, rng.random(atoms), 0.05 + 0.95 * rng.random(atoms)


@pytest.mark.parametrize("seed", range(30))
def test_the_distance_is_the_maximum_and_is_attained(seed):
    """The grid never exceeds it, and the tilted law has ratio ρ and just this relative entropy."""
    rng = np.random.default_rng(seed)
    weights, rewards, costs = random_law(rng)
    own = rewards @ weights / (costs @ weights)
    ratio = own * (1.0 + 10.0 ** rng.uniform(-2, 1))
    found = float(empirical_divergence(weights, rewards, costs, ratio))
    excess = rewards - ratio * costs
    grid = np.linspace(0.0, 1.0, 20_001)
    values = weights @ np.log1p(-np.outer(excess, grid))
    assert values.max() <= found + 1e-12
    assert values.max() == pytest.approx(found, rel=1e-4)
    tilted = weights / (1.0 - grid[values.argmax()] * excess)
    rest = 1.0 - tilted.sum()  # stands at (1, 0)
    assert rest > -1e-3
    assert tilted @ excess + rest == pytest.approx(0.0, abs=2e-3 * ratio)
    assert weights @ np.log(weights / tilted) == pytest.approx(found, rel=1e-3, abs=1e-6)


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
