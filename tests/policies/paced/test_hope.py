"""Means that are hoped for in the place of drawn ones: against values worked out by other means."""

import math

import numpy as np
import pytest
from scipy import optimize

from budgetbandits import parse_policy
from budgetbandits.errors import BadParameter
from budgetbandits.numerics.fluid import best_mix
from budgetbandits.policies import provenance
from budgetbandits.policies.base import NO_REQUEST_INFO, Knowledge
from budgetbandits.policies.paced.policy import PacedThompson
from budgetbandits.policies.paced.statistics import COST, COST_SQUARED, COUNT, PAID, REWARD, REWARD_SQUARED
from budgetbandits.theory.stopping import boundary_series

POLICY = PacedThompson(hope=2.0)


def after(rewards, costs, pulls=(10, 10), budget=40.0, horizon=100.0):
    """A state with these numbers of outcomes 1, and all others 0."""
    state = POLICY.start(2, Knowledge(budget=budget, horizon=horizon))
    state.pulls[:] = state.sums[COUNT, 0] = pulls
    state.answered = [sum(pulls)]
    state.sums[REWARD, 0] = state.sums[REWARD_SQUARED, 0] = rewards
    state.sums[COST, 0] = state.sums[COST_SQUARED, 0] = state.sums[PAID, 0] = costs
    return state


def hoped(state):
    drawn = POLICY.draw(state, NO_REQUEST_INFO, np.random.default_rng(0))
    return drawn.reward[0], drawn.cost[0]


def farthest(mean, level, end):
    """The mean between this one and the end whose divergence is the level, by Brent's method."""

    def excess(other):
        return mean * math.log(mean / other) + (1 - mean) * math.log((1 - mean) / (1 - other)) - level

    return optimize.brentq(excess, mean, abs(end - 1e-12), xtol=1e-13)


@pytest.mark.parametrize(
    ("horizon", "price", "left"), [(100.0, 0.8, (80.0, 33 * 12 / 7)), (math.inf, 2.0, (33 * 12 / 2, 33 * 12 / 7))]
)
def test_the_means_of_a_state_worked_out_by_hand(horizon, price, left):
    """Rewards 4/12 and 8/12, costs 2/12 and 7/12, 33 of money left. For 80 requests the second arm's extra reward is
    0.8 of its extra cost; without a horizon the price is the best ratio."""
    state, series = after(rewards=(3, 7), costs=(1, 6), horizon=horizon), boundary_series(100.0)
    rewards, costs = hoped(state)
    for arm, (r, c) in enumerate([(4 / 12, 2 / 12), (8 / 12, 7 / 12)]):
        variance = (state.sums[COST, 0, arm] + 0.625) / 12 - c * c  # of the outcomes, and of 1/4 and 3/4
        u, v = r * (1 - r) / 12, price**2 * variance / 12
        total = 12 + left[arm]
        evidence = 2.0 * (series(math.sqrt(math.log(total / 12))) ** 2 * left[arm] / total) / 2
        assert rewards[arm] == pytest.approx(farthest(r, evidence * u / (u + v) / 12, 1.0), abs=2e-5)
        weight = 12 * c * (1 - c) / variance
        assert costs[arm] == pytest.approx(farthest(c, evidence * v / (u + v) / weight, 0.0), abs=2e-5)


def test_hope_fades_as_requests_and_money_run_out():
    """The same outcomes with 1,000, 100 and 1 requests to come, and as much money for each; then with no money."""
    plenty, fewer, last = (
        hoped(after((3, 7), (1, 6), budget=7 + 0.4 * left, horizon=20 + left))[0] for left in (1000.0, 100.0, 1.0)
    )
    assert (plenty > fewer + 0.02).all()
    assert (fewer > last + 0.02).all()
    rewards, costs = hoped(after((3, 7), (1, 6), budget=7.0))
    assert rewards == pytest.approx([4 / 12, 8 / 12], abs=1e-9)
    assert costs == pytest.approx([2 / 12, 7 / 12], abs=1e-9)


def test_only_the_lot_between_two_arms_is_random():
    """Binomial, five standard errors: a false alarm of 6e-7 for each of two."""
    state = after((3, 7), (1, 6))
    rewards, costs = hoped(state)
    mix = best_mix([rewards.tolist()], [costs.tolist()], [1.0], state.rate)
    assert 0.1 < mix.share < 0.9
    many = POLICY.choices(state, np.random.default_rng(1), 4000)
    rng = np.random.default_rng(2)
    single = [POLICY.choose(state, rng) for _ in range(1000)]
    for chosen in (many, np.array(single)):
        error = math.sqrt(mix.share * (1 - mix.share) / len(chosen))
        assert abs((chosen == mix.upgrade).mean() - mix.share) < 5 * error


@pytest.mark.parametrize("hope", ["-1", "nan", "1001"])
def test_what_is_no_hope(hope):
    with pytest.raises(BadParameter, match="use 0 to draw means, or up to 1000"):
        parse_policy(f"bts-paced:hope={hope}")


def test_nothing_is_proven_of_it():
    assert provenance("bts-paced").proven != provenance("bts-paced:hope=2").proven
