"""Policies with the money left in the place of time: by hand, and played by the compiled engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from budgetbandits import plugins, simulate
from budgetbandits.numerics.divergence import ratio_divergence
from budgetbandits.policies import parse_policy
from budgetbandits.policies.base import Knowledge
from budgetbandits.policies.omega_ucb import wilson_lower, wilson_upper
from budgetbandits.problems.families import family

FILE = Path(__file__).parents[2] / "benchmarks/horizon_policies.py"
POLICIES = ("OmegaStarHorizon", "KLUCBSCHorizon", "IMEDMossHorizon", "GittinsRatioWhole")
OUTCOMES = ((1.0, 1.0), (0.0, 0.0), (1.0, 1.0), (0.0, 0.0))
"""Of arm 0: n = 4, r̄ = c̄ = 1/2. With 66 at the start 64 are left, a step of the money, and N = 4 + 64/(1/2) = 132."""


def scores(name):
    return scores_of(plugins.find_policy(f"{FILE}:{name}"), 66.0)


def scores_of(policy, budget):
    state, rng = policy.start(2, Knowledge(budget=budget)), np.random.default_rng(1)
    for reward, cost in OUTCOMES:
        policy.observe(state, 0, reward, cost, rng)
    policy.observe(state, 1, 1.0, 0.0, rng)
    return policy.scores(state)


def test_the_rules_by_hand():
    ratio, free = scores("OmegaStarHorizon")
    square = 2.0 * 0.25 * np.log(132.0)
    assert ratio == pytest.approx(wilson_upper(0.5, 4.0, square) / wilson_lower(0.5, 4.0, square), rel=1e-12)
    assert free == np.inf  # it has cost nothing

    ratio, free = scores("KLUCBSCHorizon")
    assert 4.0 * ratio_divergence(0.5, 0.5, ratio) == pytest.approx(np.log(132.0 / 4.0), rel=1e-6)
    assert free == np.inf

    ratio, free = scores("IMEDMossHorizon")  # n = 4 is above K = 2
    assert 2.0 * 4.0 * ratio_divergence(0.5, 0.5, ratio) == pytest.approx(np.log(132.0 / 4.0), rel=1e-6)
    assert free == np.inf


def test_the_whole_budget_stands_for_the_money_left():
    whole, left = plugins.find_policy(f"{FILE}:GittinsRatioWhole"), parse_policy("gittins-ratio")
    assert scores_of(whole, 64.0)[0] == pytest.approx(scores_of(left, 66.0)[0], rel=1e-6)  # of which 64 are left


def test_imed_moss_counts_fewer_pulls_than_arms_as_many():
    policy = plugins.find_policy(f"{FILE}:IMEDMossHorizon:kappa=1")
    state, rng = policy.start(10, Knowledge(budget=66.0)), np.random.default_rng(1)
    for reward, cost in OUTCOMES:
        policy.observe(state, 0, reward, cost, rng)
    assert 4.0 * ratio_divergence(0.5, 0.5, policy.scores(state)[0]) == pytest.approx(np.log(132.0 / 10.0), rel=1e-6)


@pytest.mark.parametrize("name", POLICIES)
def test_the_compiled_engine_plays_them(name):
    problem = family("near-ties", arms=3, seed=5)
    played = simulate(problem, f"{FILE}:{name}", [200.0], runs=2, seed=1)
    assert played.engine == "index bounds"
    assert played.pseudo_regret.min() >= 0.0
