"""What pages say of arms, against exact values and simulations with fixed seeds."""

import numpy as np
import pytest
from scipy import integrate, stats

from budgetbandits.numerics.posteriors import BetaPosterior
from budgetbandits.service.dashboard.beliefs import (
    ArmFeedback,
    ValueSums,
    belief,
    beta_density,
    chances_of_best,
    compare,
    density,
)


def trials(successes, failures):
    return ValueSums(successes + failures, float(successes), float(successes))


def told(reward, cost):
    return belief(ArmFeedback(trials(*reward), trials(*cost)), 1.0, 1.0)


def test_trials_give_thompson_samplings_posterior():
    assert trials(7, 3).beta() == pytest.approx((8.0, 4.0), rel=0.1)  # the variance has one trial mixed in
    assert ValueSums().beta() == (1.0, 1.0)
    assert trials(5, 0).beta() == (6.0, 1.0)


@pytest.mark.parametrize(("count", "least", "widest"), [(50, 0.93, 1.5), (2000, 0.92, 1.05)])
def test_an_interval_holds_the_mean_of_values_that_vary_little(count, least, widest):
    """Of 400 samples, at least so many hold the true mean: fails by chance with probability below 0.006 if 95 % do.
    They are not much wider than need be, and get there with more values."""
    rng, inside, width = np.random.default_rng(4), 0, []
    for _ in range(400):
        prices = rng.beta(8.0, 32.0, count)
        law = BetaPosterior(*ValueSums(count, prices.sum(), (prices**2).sum()).beta())
        low, high = law.quantile(np.array([0.025, 0.975]))
        inside += low <= 0.2 <= high
        width.append(high - low)
    assert inside / 400 >= least
    assert 0.95 <= np.mean(width) / (2 * 1.96 * np.sqrt(0.2 * 0.8 / 41 / count)) <= widest


def test_prices_have_their_laws_interval_in_the_users_units():
    made, law = belief(ArmFeedback(cost=trials(7, 3)), 2.0, 5.0).price, BetaPosterior(*trials(7, 3).beta())
    assert [made.low, made.median, made.high] == pytest.approx(5.0 * law.quantile(np.array([0.025, 0.5, 0.975])))


def test_a_mean_price_above_the_largest_is_as_it_was_told():
    costs = np.random.default_rng(3).normal(1.5, 0.1, 4000)
    made = belief(ArmFeedback(trials(60, 40), ValueSums(4000, costs.sum(), (costs**2).sum())), 1.0, 2.0)
    assert made.price.median == pytest.approx(2.0 * costs.mean(), rel=0.001)
    assert made.price.high - made.price.low == pytest.approx(2.0 * 2 * 1.96 * 0.1 / np.sqrt(4000), rel=0.1)
    assert made.ratio.median == pytest.approx(0.6 / (2.0 * costs.mean()), rel=0.02)


def exact_ratio_cdf(x, reward, cost):
    price = stats.beta(1 + cost[0], 1 + cost[1])
    return integrate.quad(lambda c: stats.beta.cdf(x * c, 1 + reward[0], 1 + reward[1]) * price.pdf(c), 0, 1)[0]


def test_the_ratio_is_that_of_two_independent_means():
    made = belief(ArmFeedback(trials(60, 40), trials(20, 80)), 1.0, 1.0).ratio
    shapes = (trials(60, 40).beta(), trials(20, 80).beta())
    reward, cost = ((a - 1, b - 1) for a, b in shapes)
    for value, share in ((made.low, 0.025), (made.median, 0.5), (made.high, 0.975)):
        assert exact_ratio_cdf(value, reward, cost) == pytest.approx(share, abs=1e-4)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (8.0, 4.0), (1.0, 6.0), (900.0, 40.0)])
def test_the_density_of_a_mean_is_its_betas(a, b):
    """In height against the exact density, and in where it begins and ends."""
    where, high = beta_density(a, b, 2.0)
    law = stats.beta(a, b, scale=2.0)
    assert (where[0], where[-1]) == pytest.approx((law.ppf(0.001), law.ppf(0.999)))
    assert high == pytest.approx(law.pdf(where) / law.pdf(where).max())


def test_the_curves_of_a_belief_are_those_of_its_estimates():
    made = belief(ArmFeedback(trials(60, 40), trials(20, 80)), 5.0, 3.0)
    for what in ("reward", "price", "ratio"):
        where, high = made.curve(what, (0.0, np.inf))
        middle = getattr(made, what)
        assert where[0] < middle.low < where[high.argmax()] < middle.high < where[-1]


def drawn_chances(arms, count):
    """How often each arm is the best of so many draws of all."""
    rng, best, which = np.random.default_rng(8), np.zeros(count), np.zeros(count, int)
    for number, arm in enumerate(arms):
        (a, b, _), (c, d, _) = arm.betas
        ratio = rng.beta(a, b, count) / rng.beta(c, d, count)
        which[ratio > best] = number
        best = np.maximum(best, ratio)
    return np.bincount(which, minlength=len(arms)) / count


@pytest.mark.parametrize(
    "arms",
    [
        [told((30, 20), (10, 40)), told((28, 22), (12, 38)), told((5, 45), (25, 25))],
        [told((500, 500), (500, 500)), told((0, 0), (0, 0)), told((1, 2), (1, 2))],
        [told((1, 2), (1, 2))] * 18 + [told((320, 80), (100, 300)), told((328, 72), (100, 300))],
        [told((1, 1), (1, 1))] * 58 + [told((yes, 100_000 - yes), (20_000, 80_000)) for yes in (90_000, 90_100)],
    ],
    ids=["three", "one unknown", "eighteen little known", "fifty-eight little known"],
)
def test_chances_of_being_best(arms):
    """Against 50,000 draws: their standard error is 0.0022 at most and the table of ratios is good for 0.003, so that a
    right chance is off by more with probability below 0.001. The little-known arms together are not, either."""
    chances, expected = chances_of_best(arms), drawn_chances(arms, 50_000)
    assert chances == pytest.approx(expected, abs=0.0105)
    little = [number for number, arm in enumerate(arms) if arm.betas[0][0] < 4.0]
    assert sum(chances[each] for each in little) == pytest.approx(expected[little].sum(), abs=0.0105)
    assert sum(chances) == pytest.approx(1.0)


@pytest.mark.parametrize("count", [1, 30, 250])
def test_chances_of_two_kinds_of_arms_are_those_of_quadrature(count):
    """So many of each, all of one kind alike: two integrals that the exact distribution functions give."""
    known, little = told((60, 40), (40, 60)), told((3, 4), (3, 2))
    grid = np.exp(np.linspace(-6.0, 12.0, 3000))
    one, other = known.law.cdf(grid), little.law.cdf(grid)
    exact = np.trapezoid(other**count, one**count)  # that one of the known is the largest
    chances = chances_of_best([known] * count + [little] * count)
    assert sum(chances[:count]) == pytest.approx(exact, abs=0.004)
    assert chances == pytest.approx([exact / count] * count + [(1.0 - exact) / count] * count, abs=0.004)


def test_chances_of_few():
    assert chances_of_best([told((60, 40), (40, 60))] * 4) == pytest.approx([0.25] * 4)
    assert chances_of_best([told((1, 2), (2, 1))]) == pytest.approx([1.0])
    assert chances_of_best([]) == []


def test_comparisons_are_in_money_and_rewards():
    good, bad = told((900, 100), (300, 700)), told((100, 900), (300, 700))
    made = compare(100.0, 250.0, [good, bad], [1.0, 0.0])
    assert made.best.median == pytest.approx(300.0, rel=0.02)
    assert made.even.median == pytest.approx(100 * (3 + 1 / 3) / 2, rel=0.02)
    assert made.saved.median == pytest.approx(250 / (made.even.median / 100) - 100, rel=0.02)
    assert made.even.low < made.even.median < made.even.high
    assert compare(100.0, 250.0, [good, bad], [1.0, 0.0]) == made


def test_an_even_split_among_many_little_known_arms_has_their_tails():
    """The upper end of the mean of 40 such ratios, whose prices may be next to nothing, against 40,000 draws: within a
    quarter, where cutting off the last 1,024th of each takes a third away."""
    arms = [told((1, 1), (0, 2))] * 40
    made = compare(1.0, 1.0, arms, [1.0] * 40)
    rng = np.random.default_rng(2)
    (a, b, _), (c, d, _) = arms[0].betas
    drawn = (rng.beta(a, b, (40, 40_000)) / rng.beta(c, d, (40, 40_000))).mean(axis=0)
    assert made.even.high == pytest.approx(np.quantile(drawn, 0.975), rel=0.25)


def test_a_density_is_drawn_where_its_values_are():
    where, high = density(told((50, 50), (50, 50)).ratios, (0.0, np.inf))
    assert where[np.argmax(high)] == pytest.approx(1.0, abs=0.1)
    assert high.max() == 1.0
    assert len(density(np.ones(9), (0.0, np.inf))[0]) == 3


def test_the_density_of_an_arm_that_is_hardly_known_is_drawn_on_the_axis_of_the_others():
    """Of a ratio that may well be 30, what is seen from 0 to 3 against 400,000 draws in 12 parts: none is off by more
    than a hundredth of all, of which each has about a twelfth. The draws' own noise is below a thousandth."""
    where, high = told((1, 0), (0, 1)).curve("ratio", (0.0, 3.0))
    assert len(where) == 49
    assert 0.0 < where[0] < where[-1] < 3.0
    rng = np.random.default_rng(3)
    drawn = rng.beta(2.0, 1.0, 400_000) / rng.beta(1.0, 2.0, 400_000)
    counts, edges = np.histogram(drawn, 12, (0.3, 3.0))
    curve = np.interp((edges[1:] + edges[:-1]) / 2, where, high)
    assert curve / curve.sum() == pytest.approx(counts / counts.sum(), abs=0.01)
