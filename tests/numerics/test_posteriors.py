"""Posteriors of means and ratios against quadrature of their densities."""

import numpy as np
import pytest
from scipy import stats

from budgetbandits import parse_policy
from budgetbandits.numerics.posteriors import BetaPosterior, JointRatioPosterior, RatioPosterior, RestrictedNormal
from budgetbandits.policies.base import Knowledge
from budgetbandits.policies.posteriors import posterior

LEVELS = np.array([0.001, 0.025, 0.5, 0.975, 0.995])


def quadrature(below, law):
    """E[below(X)] for X of this law, by the midpoint rule over its quantiles."""
    return below(law.ppf((np.arange(20_000) + 0.5) / 20_000)).mean()


BETAS = [((1, 1), (1, 1)), ((1000, 1000), (1, 1)), ((1, 1), (1000, 1000)), ((13, 29), (31, 11)), ((2, 1), (1, 100)),
         ((3e5, 1e5), (3, 4)), ((1e6, 1e6), (1e6, 2e6)), ((1, 50), (50, 1))]  # fmt: skip


@pytest.mark.parametrize(("reward", "cost"), BETAS)
def test_a_ratio_of_betas_has_its_quantiles(reward, cost):
    ratio = RatioPosterior(BetaPosterior(*map(float, reward)), BetaPosterior(*map(float, cost)))
    first, second = stats.beta(*reward), stats.beta(*cost)
    for z, level in zip(ratio.quantile(LEVELS), LEVELS, strict=True):
        # over the reward if it is the narrower one: a step would be integrated otherwise
        if reward[0] > cost[0]:
            exact = quadrature(lambda r, z=z: second.sf(r / z), first)
        else:
            exact = quadrature(lambda c, z=z: first.cdf(z * c), second)
        assert exact == pytest.approx(level, abs=3e-4)


@pytest.mark.parametrize("sigma", [0.5, 0.1, 0.01])
def test_a_ratio_of_restricted_normals_has_its_quantiles(sigma):
    centres = 0.3, 0.6
    ratio = RatioPosterior(*(RestrictedNormal(centre, sigma) for centre in centres))
    first, second = (stats.truncnorm(-c / sigma, (1 - c) / sigma, c, sigma) for c in centres)
    assert ratio.first.mean == pytest.approx(first.mean())
    for z, level in zip(ratio.quantile(LEVELS), LEVELS, strict=True):
        assert quadrature(lambda c, z=z: first.cdf(z * c), second) == pytest.approx(level, abs=3e-4)


JOINT = [(0.5, 0.5, 0.5), (3, 1, 1), (30, 20, 50), (500, 0.5, 500), (500, 500, 0.5), (500, 0.5, 0.5)]


@pytest.mark.parametrize("weights", JOINT)
def test_a_joint_ratio_has_its_quantiles(weights):
    """(B + P) ≤ z(B + C) for gamma variates: given B + P + C = 1 and B, whether P ≤ what is left times a share."""
    both, paid, charged = weights
    ratio = JointRatioPosterior.from_weights(both, paid, charged)
    share, split = stats.beta(both, paid + charged), stats.beta(paid, charged)
    for z, level in zip(ratio.quantile(LEVELS), LEVELS, strict=True):
        # P = (1 − B)·split, C = (1 − B)(1 − split)
        exact = quadrature(lambda b, z=z: split.cdf((z - b) / ((1.0 + z) * np.maximum(1.0 - b, 1e-16))), share)
        assert exact == pytest.approx(level, abs=5e-4)


def test_a_joint_ratio_without_common_pulls_is_that_of_the_odds():
    ratio = JointRatioPosterior.from_weights(1e-9, 5.0, 7.0)  # P/C, which is beta-prime
    assert ratio.quantile(LEVELS) == pytest.approx(stats.betaprime.ppf(LEVELS, 5.0, 7.0), rel=1e-3)


def test_equally_likely_values_are_quantiles():
    ratio = RatioPosterior(BetaPosterior(8.0, 4.0), BetaPosterior(5.0, 9.0))
    levels = (np.arange(200) + 0.5) / 200
    assert ratio.cdf(ratio.spread(200)) == pytest.approx(levels, abs=3e-3)
    assert (np.diff(ratio.spread(200)) > 0).all()


@pytest.mark.parametrize(
    "spec", ["bts", "bts:prior_reward=2/3,kappa=2", "bts-gaussian", "bts-gaussian:sigma=0.1", "bts-joint"]
)
def test_the_posterior_is_the_one_that_the_policy_draws_from(spec):
    """5,000 draws: their distribution function is at most 0.0276 away in 999 cases of 1,000 (Kolmogorov)."""
    policy, rng = parse_policy(spec), np.random.default_rng(1)
    state = policy.start(2)
    for reward, cost in ((1.0, 0.5), (0.2, 0.3), (1.0, 1.0), (0.0, 0.4), (0.7, 0.9)):
        policy.observe(state, 1, reward, cost, rng)
    kept = policy.kept_posterior(state, 1)
    drawn = policy.draw(state, rng, 5_000)[:, 1]
    assert stats.kstest(drawn, lambda z: kept.ratio.cdf(np.asarray(z))).statistic < 0.0276


def test_sums_make_posteriors_of_uniform_priors():
    policy, rng = parse_policy("kube"), np.random.default_rng(1)
    state = policy.start(2, Knowledge(budget=10.0))
    policy.observe(state, 0, 0.75, 0.25, rng)
    assert policy.kept_posterior(state, 0) is None
    of = posterior(policy, state, 0)
    assert (of.reward, of.cost) == (BetaPosterior(1.75, 1.25), BetaPosterior(1.25, 1.75))
