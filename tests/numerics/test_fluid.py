"""The price on money of many requests, against the exact solution of the program."""

import numpy as np
import pytest

from budgetbandits.numerics.fluid import best_mix, prices_at_rate


def spent_at(prices, draw, reward, cost, weight):
    """What requests cost on average at the two prices, by how often each holds."""
    spends = []
    for price in (prices.low[draw], prices.high[draw]):
        arm = (reward[draw] - price * cost[draw]).argmax(axis=1)
        spends.append(weight @ cost[draw, np.arange(len(arm)), arm])
    return prices.share[draw] * spends[0] + (1.0 - prices.share[draw]) * spends[1]


@pytest.mark.parametrize("alike", [False, True])
def test_the_two_prices_enclose_the_price_of_the_program(alike):
    rng = np.random.default_rng(1)
    reward, cost = rng.random((30, 1 if alike else 40, 4)), rng.random((30, 1 if alike else 40, 4)) ** 2 + 0.01
    reward, cost = (np.repeat(each, 40, axis=1) if alike else each for each in (reward, cost))
    weight = np.full(40, 1 / 40)
    for rate in (0.02, 0.1, 0.3, 0.9):
        prices = prices_at_rate(reward, cost, weight, rate)
        for draw in range(30):
            mix = best_mix(reward[draw].tolist(), cost[draw].tolist(), weight.tolist(), rate)
            slack = 1e-9 * mix.price
            assert prices.low[draw] - slack <= mix.price <= prices.high[draw] + slack
            assert prices.high[draw] <= 1.0041 * prices.low[draw] or mix.price == 0.0
            exact = mix.spend(cost[draw].tolist(), weight.tolist())
            if mix.price > 0.0 and exact <= rate * (1.0 + 1e-9):
                assert spent_at(prices, draw, reward, cost, weight) == pytest.approx(rate)


def test_money_that_is_left_over_has_no_price():
    reward, cost = np.array([[[0.2, 0.8]]]), np.array([[[0.1, 0.5]]])
    assert prices_at_rate(reward, cost, np.ones(1), 0.5) == (0.0, 0.0, 0.0)
    assert prices_at_rate(reward, cost, np.ones(1), 0.05) == (2.0, 2.0, 0.0)  # the best ratio
