"""The price on money of many requests, against the exact solution of the program."""

import numpy as np
import pytest

from budgetbandits.numerics.fluid import best_mix, price_curve


def spent_at(prices, draw, reward, cost, weight):
    """Mean cost of a request, with the two prices weighted by how often each holds."""
    spends = []
    for price in (prices.low[draw], prices.high[draw]):
        arm = (reward[draw] - price * cost[draw]).argmax(axis=1)
        spends.append(weight @ cost[draw, np.arange(len(arm)), arm])
    return prices.share[draw] * spends[0] + (1.0 - prices.share[draw]) * spends[1]


@pytest.mark.parametrize("alike", [False, True])
def test_the_two_prices_enclose_the_price_of_the_program(alike):
    rng = np.random.default_rng(1)
    reward, cost = rng.random((30, 1 if alike else 40, 4)), rng.random((30, 1 if alike else 40, 4)) ** 2 + 0.01
    reward, cost = (np.repeat(means, 40, axis=1) if alike else means for means in (reward, cost))
    weight = np.full(40, 1 / 40)
    curve = price_curve(reward, cost, weight)
    for rate in (0.02, 0.1, 0.3, 0.9):
        prices = curve.bracket(rate)
        for draw in range(30):
            mix = best_mix(reward[draw].tolist(), cost[draw].tolist(), weight.tolist(), rate)
            assert curve.price(rate)[draw] == pytest.approx(mix.price, rel=1e-9)
            slack = 1e-9 * mix.price
            assert prices.low[draw] - slack <= mix.price <= prices.high[draw] + slack
            assert prices.high[draw] <= 1.0041 * prices.low[draw] or mix.price == 0.0
            exact = mix.spend(cost[draw].tolist(), weight.tolist())
            if mix.price > 0.0 and exact <= rate * (1.0 + 1e-9):
                assert spent_at(prices, draw, reward, cost, weight) == pytest.approx(rate)


def test_money_that_is_left_over_has_no_price():
    curve = price_curve(np.array([[[0.2, 0.8]]]), np.array([[[0.1, 0.5]]]), np.ones(1))
    assert curve.bracket(0.5) == (0.0, 0.0, 0.0)
    assert curve.bracket(0.05) == (2.0, 2.0, 0.0)  # the best ratio


def test_each_draw_may_have_a_rate_of_its_own():
    rng = np.random.default_rng(2)
    reward, cost, weight = rng.random((3, 20, 4)), rng.random((3, 20, 4)), np.full(20, 0.05)
    curve, rates = price_curve(reward, cost, weight), np.array([0.1, 0.3, 0.9])
    assert curve.price(rates).tolist() == [curve.price(rate)[draw] for draw, rate in enumerate(rates)]


@pytest.mark.parametrize("arms", [1, 2])
def test_arms_that_are_equal_in_all_count_once(arms):
    """Nothing is gained by a second one."""
    reward, cost = np.full((1, 5, arms), 0.6), np.full((1, 5, arms), 0.3)
    curve = price_curve(reward, cost, np.full(5, 0.2))
    assert curve.ratio == pytest.approx(2.0)
    assert curve.least == pytest.approx(0.3)
    assert curve.price(0.31) == 0.0
    assert curve.price(0.2) == curve.ratio


def test_of_the_cheapest_arms_the_better_one_comes_first():
    """The exact solution is the same, with many ties."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        reward, cost = rng.random((1, 4, 3)), rng.integers(1, 3, (1, 4, 3)) / 2.0
        curve = price_curve(reward, cost, np.full(4, 0.25))
        for rate in (0.2, 0.55, 0.8, 1.2):
            price = best_mix(reward[0].tolist(), cost[0].tolist(), [0.25] * 4, rate).price
            assert curve.price(rate)[0] == pytest.approx(price, rel=1e-9)
