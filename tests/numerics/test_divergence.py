"""How far an arm is from a ratio: the closed form against numerical minimisation, and its inverse."""

import itertools

import numpy as np
import pytest

from budgetbandits.numerics.divergence import (
    divergence_at_gap,
    largest_ratio,
    ratio_divergence,
    relative_entropy,
    tilt_at_gap,
)


def minimised(reward, cost, ratio):
    """min over x of kl(r, ρx) + kl(c, x) by bisecting the derivative's sign, which changes once."""
    r, c, rho = (np.asarray(value, dtype=float) for value in (reward, cost, ratio))
    low, high = r / rho, np.minimum(c, 1 / rho)
    with np.errstate(all="ignore"):
        for _ in range(110):
            x = (low + high) / 2
            rising = (rho * x - r) * (1 - x) + (x - c) * (1 - rho * x) > 0
            low, high = np.where(rising, low, x), np.where(rising, x, high)
        ends = np.stack([low, high, (low + high) / 2])
        return np.min(plain_entropy(r, np.minimum(rho * ends, 1)) + plain_entropy(c, ends), axis=0)


def plain_entropy(p, q):
    near = np.where(p > 0, p * np.log(p / q), 0)
    far = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0)
    return near + far


def states(seed, count):
    """Means inside, at and very near the ends; ratios from just above the arm's own to huge ones."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 6, (2, count))
    inside, tiny = rng.random((2, count)), 10.0 ** rng.uniform(-8, 0, (2, count))
    reward, cost = np.select(
        [kind == 0, kind == 1, kind == 2, kind == 3], [0.0 * inside, 0 * inside + 1, tiny, 1 - tiny], inside
    )
    cost = np.where(cost == 0.0, 0.5, cost)
    own = reward / cost
    ratio = np.where(
        rng.random(count) < 0.5, own + 10.0 ** rng.uniform(-2, 1, count), own + 10.0 ** rng.uniform(0, 8, count)
    )
    return reward, cost, ratio


def test_the_closed_form_is_the_minimum_on_ten_thousand_states():
    reward, cost, ratio = states(0, 10_000)
    expected = minimised(reward, cost, ratio)
    assert ratio_divergence(reward, cost, ratio) == pytest.approx(expected, rel=1e-9, abs=1e-13)
    accurate = divergence_at_gap(reward, cost, ratio, ratio * cost - reward)
    assert accurate == pytest.approx(expected, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("ratio", [1e-12, 1e-3, 0.5, 1.0, 2.0 - 1e-12, 2.0, 1e3, 1e12, 1e200])
def test_corners(ratio):
    """Nothing raises; no more than at the two ends of the line, and 0 where the arm's ratio is as good."""
    for reward, cost in itertools.product([0.0, 1e-12, 0.5, 1 - 1e-12, 1.0], [1e-12, 0.5, 1 - 1e-12, 1.0]):
        divergence = float(ratio_divergence(reward, cost, ratio))
        if reward >= ratio * cost:
            assert divergence == pytest.approx(0.0, abs=1e-15), (reward, cost)
            continue
        at_reward = relative_entropy(cost, reward / ratio)
        at_cost = relative_entropy(reward, ratio * cost)
        assert 0.0 <= divergence <= min(at_reward, at_cost) * (1 + 1e-12) + 1e-15, (reward, cost)
        assert divergence == pytest.approx(float(minimised(reward, cost, ratio)), rel=1e-9, abs=1e-13), (reward, cost)


def test_where_nothing_can_be_ruled_out_or_everything_is():
    assert ratio_divergence(0.3, 0.0, 5.0) == 0.0  # no cost so far: any ratio is possible
    assert ratio_divergence(0.3, 0.0, np.inf) == 0.0
    assert ratio_divergence(0.3, 0.2, np.inf) == np.inf
    assert ratio_divergence(0.0, 0.2, 0.0) == 0.0
    # costs of 1: c′ = (1 + r)/(2ρ), and r′ = (1 + r)/2 whatever ρ
    assert ratio_divergence(0.3, 1.0, 4.0) == pytest.approx(relative_entropy(0.3, 0.65) - np.log(0.65 / 4.0))


def test_it_rises_with_the_ratio_and_its_slope_is_the_tilt():
    """The derivative by ln ρ is s = (r′ − r)/(1 − r′), which the Newton steps of the inverse rely on."""
    reward, cost, ratio = states(1, 2_000)
    inside = (reward > 1e-3) & (reward < 0.999) & (cost > 1e-3) & (cost < 0.999) & (ratio < 1e3)
    reward, cost, ratio = reward[inside], cost[inside], ratio[inside]
    step = 1e-5
    up, down = (ratio_divergence(reward, cost, ratio * np.exp(sign * step)) for sign in (1, -1))
    tilt = tilt_at_gap(reward, cost, ratio, ratio * cost - reward)
    assert (up >= down).all()
    assert (up - down) / (2 * step) == pytest.approx(tilt, rel=1e-3, abs=1e-6)


def test_the_inverse_is_the_inverse():
    rng = np.random.default_rng(2)
    reward, cost, _ = states(3, 20_000)
    level = 10.0 ** rng.uniform(-7, 2, 20_000)
    largest = largest_ratio(reward, cost, level)
    inside = (cost > 1e-4) & (largest < 1e250)
    assert inside.sum() > 10_000
    assert ratio_divergence(reward, cost, largest)[inside] == pytest.approx(level[inside], rel=1e-9, abs=1e-14)


def test_the_inverse_of_an_arm_does_not_depend_on_the_others():
    reward, cost, _ = states(4, 300)
    level = 10.0 ** np.random.default_rng(5).uniform(-7, 2, 300)
    alone = [float(largest_ratio(*state)) for state in zip(reward, cost, level, strict=True)]
    assert largest_ratio(reward, cost, level) == pytest.approx(alone, rel=1e-14)


def test_the_inverse_at_the_ends():
    assert largest_ratio(0.3, 0.0, 0.1) == np.inf
    assert largest_ratio(0.3, 0.5, 0.0) == 0.6
    assert largest_ratio(0.0, 0.5, 0.0) == 0.0
    # r̄ = 1 and c̄ = 1: only the cost can be better, −ln c = level
    assert largest_ratio(1.0, 1.0, 0.7) == pytest.approx(np.exp(0.7))
