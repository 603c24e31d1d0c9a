"""Laws know their means exactly and sample what they say; checks at 5 standard errors, fixed seeds."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgetbandits.errors import ProblemError
from budgetbandits.problems.distributions import (
    Bernoulli,
    Beta,
    Copula,
    Fixed,
    Independent,
    JointTable,
    Lattice,
    parse_joint,
    parse_law,
)

LAWS = [
    Bernoulli(0.31),
    Bernoulli(0.0),
    Bernoulli(1.0),
    Lattice([0, 0.25, 0.5, 0.75, 1], [1, 2, 1, 0, 1]),
    Lattice([1, 0.1], [0.3, 0.7]),
    Beta(0.5, 3.0),
    Beta(20, 5),
    Fixed(0.7),
]
JOINT = [
    Independent(Bernoulli(0.4), Beta(2, 3)),
    JointTable([[1, 1, 3], [0, 0.5, 1], [0.2, 0.5, 1]]),
    Copula(Bernoulli(0.4), Lattice([0, 0.5, 1], [1, 1, 2]), 0.7),
    Copula(Beta(2, 3), Lattice([0, 0.5, 1], [1, 1, 2]), -0.5),
    Copula(Lattice([0, 0.3, 1], [1, 1, 1]), Bernoulli(0.6), 1.0),
    Copula(Beta(2, 3), Beta(3, 2), 0.9),
]


def agree(values, mean):
    return abs(values.mean() - mean) <= 5 * values.std() / np.sqrt(len(values)) + 1e-12


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_samples_have_the_mean_the_law_states(law):
    values = law.sample(np.random.default_rng(0), 100_000)
    assert values.min() >= 0
    assert values.max() <= 1
    assert agree(values, law.expectation)
    assert agree(law.quantile(np.random.default_rng(1).random(100_000)), law.expectation)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_law_survives_its_table(law):
    assert parse_law(json.loads(json.dumps(law.to_table()))) == law


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_atoms_have_the_frequencies_they_state(law):
    if law.atoms() is None:
        return
    support, probability = law.atoms()
    seen = (law.sample(np.random.default_rng(2), 100_000)[:, None] == support).mean(axis=0)
    assert np.all(np.abs(seen - probability) <= 5 * np.sqrt(probability * (1 - probability) / 100_000) + 1e-12)


@pytest.mark.parametrize("law", JOINT, ids=str)
def test_joint_samples_have_both_means(law):
    rewards, costs = law.sample(np.random.default_rng(3), 100_000)
    assert agree(rewards, law.reward_mean)
    assert agree(costs, law.cost_mean)


@pytest.mark.parametrize("law", JOINT, ids=str)
def test_the_reward_expected_at_each_cost(law):
    """The expected rewards agree with 10⁵ samples and with the mean: Σ P(cost) E[reward | cost] = E[reward]."""
    atoms = law.cost_atoms()
    if atoms is None:
        assert isinstance(law, Copula | Independent)
        return
    levels, probability, reward = atoms
    assert probability @ reward == pytest.approx(law.reward_mean, abs=1e-6)
    rewards, costs = law.sample(np.random.default_rng(4), 100_000)
    for level, expected in zip(levels, reward, strict=True):
        assert abs(rewards[costs == level].mean() - expected) <= (
            5 * rewards[costs == level].std() / np.sqrt((costs == level).sum()) + 1e-6
        )


def test_a_copula_correlates():
    for correlation in (-0.8, 0.0, 0.8):
        rewards, costs = Copula(Beta(2, 2), Beta(2, 2), correlation).sample(np.random.default_rng(5), 100_000)
        assert np.corrcoef(rewards, costs)[0, 1] == pytest.approx(correlation, abs=0.04)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=6).filter(lambda w: sum(w) > 1e-3))
def test_weights_of_any_total_are_normalised_once(weights):
    law = Lattice([i / 10 for i in range(len(weights))], weights)
    assert sum(law.weights) == pytest.approx(1.0)
    assert parse_law(law.to_table()) == law


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"law": "bernoulli", "mean": 1.2}, "outside"),
        ({"law": "bernoulli", "mean": float("nan")}, "not a number"),
        ({"law": "bernoulli", "mean": "high"}, "not a number"),
        ({"law": "bernoulli", "mean": True}, "not a number"),
        ({"law": "bernoulli"}, "mean is missing"),
        ({"law": "bernoulli", "maen": 0.5}, "unknown key 'maen'"),
        ({"law": "gauss", "mean": 0.5}, "choose one of bernoulli"),
        ({"mean": 0.5}, "unknown law None"),
        (0.5, "not a law"),
        ({"law": "lattice", "support": [], "weights": []}, "list of values"),
        ({"law": "lattice", "support": 0.5, "weights": [1]}, "list of values"),
        ({"law": "lattice", "support": [0, 1.5], "weights": [1, 1]}, "support value 2"),
        ({"law": "lattice", "support": [0, 0], "weights": [1, 1]}, "twice"),
        ({"law": "lattice", "support": [0, 1], "weights": [1]}, "1 weights for 2 values"),
        ({"law": "lattice", "support": [0, 1], "weights": [0, 0]}, "sum to 0"),
        ({"law": "lattice", "support": [0, 1], "weights": [-1, 2]}, "weight 1"),
        ({"law": "lattice", "support": [0, 1], "weights": [1e308, 1e308]}, "weight 1"),
        ({"law": "lattice", "support": [0, 1], "weights": "11"}, "list"),
        ({"law": "beta", "a": 0, "b": 1}, "positive"),
        ({"law": "beta", "a": 1, "b": float("inf")}, "outside"),
        ({"law": "fixed", "value": -0.1}, "outside"),
    ],
)
def test_bad_laws_are_refused(table, words):
    with pytest.raises(ProblemError, match=words):
        parse_law(table)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"law": "table", "outcomes": []}, "list of"),
        ({"law": "table", "outcomes": [[1, 1]]}, "outcome 1"),
        ({"law": "table", "outcomes": [[1, 2, 1]]}, "cost of outcome 1"),
        ({"law": "table", "outcomes": [[1, 1, 0]]}, "sum to 0"),
        (
            {"law": "copula", "reward": {"law": "fixed", "value": 2}, "cost": {"law": "fixed", "value": 1}},
            "correlation",
        ),
        (
            {
                "law": "copula",
                "reward": {"law": "fixed", "value": 2},
                "cost": {"law": "fixed", "value": 1},
                "correlation": 0.5,
            },
            "reward: value is 2",
        ),
        (
            {
                "law": "copula",
                "reward": {"law": "fixed", "value": 1},
                "cost": {"law": "fixed", "value": 1},
                "correlation": 1.5,
            },
            "correlation is 1.5",
        ),
    ],
)
def test_bad_joint_laws_are_refused(table, words):
    with pytest.raises(ProblemError, match=words):
        parse_joint(table)
