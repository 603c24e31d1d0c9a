"""E[1/p] − 1 against exact fractions and against play, and the bound on the remainder against the terms themselves."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import special, stats

from budgetbandits.errors import BadParameter
from budgetbandits.theory.waiting import excess, excess_bound, waiting
from deep import deep

probability = st.floats(0.01, 0.99)


def by_fractions(mean, threshold, k):
    """The sum of the paper's appendix, term by term, in exact arithmetic."""
    total, up_to, n = Fraction(0), Fraction(0), k + 1
    for s in range(k + 1):
        up_to += math.comb(n, s) * threshold**s * (1 - threshold) ** (n - s)
        total += math.comb(k, s) * mean**s * (1 - mean) ** (k - s) / up_to
    return total - 1


@pytest.mark.parametrize(
    ("mean", "threshold"), [("0.5", "0.4"), ("0.9", "0.85"), ("0.05", "0.001"), ("0.999", "0.2"), ("1", "0.7")]
)
@pytest.mark.parametrize("k", [0, 1, 2, 7, 40, 70])
def test_the_terms_are_exact(mean, threshold, k):
    exact = float(by_fractions(Fraction(mean), Fraction(threshold), k))
    assert excess(float(mean), float(threshold), k + 1)[k] == pytest.approx(exact, rel=1e-11)


def test_probabilities_that_underflow():
    """0.01²⁰¹ and 0.001²⁰⁰ are far below the terms, and both are needed to get the terms of small s right."""
    exact = float(by_fractions(Fraction(999, 1000), Fraction(99, 100), 200))
    assert 0.01**201 == 0.001**200 == 0.0
    assert excess(0.999, 0.99, 201)[200] == pytest.approx(exact, rel=1e-11)


@given(n=st.integers(1, 300), y=probability, place=st.floats(0, 1))
def test_the_discrete_mills_ratio(n, y, place):
    """P(X = s)/P(X ≤ s) ≤ (a + √(a² + 4ny(1−y)))/(2(n−s)y) with a = ny − s − (1 − y): what the remainder rests on."""
    s = min(int(place * n), n - 1)
    up_to = stats.binom.cdf(s, n, y)
    assume(up_to > 1e-280)
    a = n * y - s - (1 - y)
    bound = (a + math.sqrt(a * a + 4 * n * y * (1 - y))) / (2 * (n - s) * y)
    assert stats.binom.pmf(s, n, y) / up_to <= bound * (1 + 1e-9)


@given(mean=probability, share=st.floats(0.001, 0.999), start=st.integers(0, 400), length=st.integers(1, 60))
@settings(deadline=None)
def test_the_bound_holds_for_every_term_of_a_block(mean, share, start, length):
    threshold = mean * share
    terms = excess(mean, threshold, start + length)[start:]
    bound = excess_bound(mean, mean - threshold, np.array([float(start)]), np.array([start + length - 1.0]))
    assert (terms <= bound * (1 + 1e-9)).all()


def test_the_bound_is_no_wild_guess():
    """The bound is within a factor of 25 where the remainder begins, for thresholds that are neither close nor far."""
    for mean, threshold in [(0.5, 0.4), (0.5, 0.49), (0.9, 0.85), (0.2, 0.1), (0.05, 0.04), (0.9, 0.899)]:
        start = np.array([512.0])
        assert excess_bound(mean, mean - threshold, start, start) < 25 * excess(mean, threshold, 513)[-1:]


def as_written_down(mean, y, k):
    """docs/explanation/theory.md, "The remainder", as a loop."""
    n, v = k + 1, y * (1 - y)
    ratio = mean * (1 - y) / (y * (1 - mean))
    exponent = math.exp(-k * (y * math.log(y / mean) + (1 - y) * math.log((1 - y) / (1 - mean))))
    below = sum(ratio**-j * (j + y + math.sqrt(n * v)) for j in range(math.ceil(n * y)))
    rate = (math.sqrt(mean * (1 - y)) - math.sqrt(y * (1 - mean))) ** 2
    return ratio**y * exponent / (n * v) * below, 2 * ((1 - y) / math.sqrt(ratio) + y) * (1 - rate) ** k


@pytest.mark.parametrize(("mean", "y"), [(0.5, 0.4), (0.9, 0.899), (0.2, 0.1), (0.97, 0.9), (0.5, 0.4999)])
@pytest.mark.parametrize("k", [64, 300, 2000])
def test_the_bound_is_the_documents(mean, y, k):
    """Not less than the document's sum, and little more: its sum over j is bounded by two closed forms."""
    at = np.array([float(k)])
    (bound,) = excess_bound(mean, mean - y, at, at)
    below, above = as_written_down(mean, y, k)
    assert below + above <= bound * (1 + 1e-9)
    assert bound <= 2.2 * below + above * (1 + 1e-9)


@given(mean=probability, share=st.floats(0.001, 0.999), start=st.integers(64, 10**6), length=st.integers(1, 10**5))
def test_a_blocks_bound_is_above_the_bounds_of_all_its_terms(mean, share, start, length):
    distance = mean * (1 - share)
    inside = np.unique(np.linspace(start, start + length - 1, 50).astype(int)).astype(float)
    block = excess_bound(mean, distance, np.array([float(start)]), np.array([start + length - 1.0]))
    assert (excess_bound(mean, distance, inside, inside) <= block * (1 + 1e-9)).all()


@pytest.mark.parametrize("epsilon", [0.1, 1e-3, *deep(1e-4, 1e-6)])
def test_a_best_arm_that_always_pays(epsilon):
    """a_k = y^(k+1)/(1 − y^(k+1)) to the very end: half a thousand terms and the bound against the whole series."""
    powers = np.exp(np.arange(1, int(40 / epsilon)) * math.log1p(-epsilon))
    series = float((powers / (1 - powers)).sum())
    assert series <= waiting(1.0, 1.0, epsilon).total * (1 + 1e-9)
    assert waiting(1.0, 1.0, epsilon).total < 1.02 * series


@pytest.mark.parametrize("means", [(0.6, 0.5), (0.95, 0.9), (0.3, 0.1), (1.0, 0.4)])
@pytest.mark.parametrize("epsilon", [0.05, *deep(0.2)])
def test_the_remainder_covers_what_is_left_out(means, epsilon):
    """Half a thousand terms and the bound, against two thousand terms."""
    reward = excess(means[0], means[0] - epsilon, 2048)
    cost = excess(1 - means[1], 1 - means[1] - epsilon, 2048) if means[1] + epsilon < 1 else np.zeros(2048)
    summed = float((reward + cost + reward * cost).sum())
    for exact_pulls in (64, 512):
        wait = waiting(*means, epsilon, exact_pulls)
        assert summed <= wait.total * (1 + 1e-12)
        assert wait.total - wait.remainder <= summed * (1 + 1e-12)
    assert wait.total < 1.5 * summed


def test_it_falls_with_epsilon_to_the_very_end():
    values = [waiting(0.6, 0.5, epsilon).total for epsilon in (1e-12, 1e-6, 1e-3, 0.1, 0.3, 0.499, 0.5, 0.599, 0.6)]
    assert all(later < earlier for earlier, later in pairwise(values))
    assert math.isfinite(values[0])
    assert values[-1] == 0.0  # z ≥ 1 and y = 0: the best arm looks good always
    assert waiting(0.6, 0.5, 0.0).total == math.inf


def test_a_cost_that_cannot_look_too_high_adds_nothing():
    """z = μc + ε ≥ 1: what is left is the sum over rewards alone, as in the classical analysis."""
    alone = excess(0.6, 0.4, 2000).sum()
    assert waiting(0.6, 0.8, 0.2).total == pytest.approx(alone, rel=1e-4)
    assert waiting(0.6, 1.0, 0.2) == waiting(0.6, 0.8 + 1e-9, 0.2)


def test_gaps_too_small_for_a_number():
    assert waiting(1.0, 1.0, 1e-17).total == waiting(0.6, 0.5, 1e-120).total == math.inf
    assert waiting(0.6, 0.5, 0.6 * (1 + 1e-15)).total == 0.0


@pytest.mark.parametrize("epsilon", [-0.1, 0.7, math.nan])
def test_an_epsilon_beyond_the_mean(epsilon):
    with pytest.raises(BadParameter, match=r"from 0 to 0\.6, the mean reward"):
        waiting(0.6, 0.5, epsilon)


def test_agrawal_and_goyals_lemma():
    """Their bound 1 + 3/Δ' on E[1/p] for k < 8/Δ', Δ' = μ − y: ours is the quantity they bound, and lies below."""
    for mean, threshold in [(0.9, 0.8), (0.5, 0.45), (0.3, 0.25), (0.7, 0.1)]:
        distance = mean - threshold
        assert (excess(mean, threshold, math.ceil(8 / distance)) <= 3 / distance).all()


def test_waiting_bounds_what_happens_in_play():
    """The best arm against a rival that always looks like the ratio (μr − ε)/(μc + ε): pulls of the rival, 4,000 games.

    Their mean is Σ_k (E[1/p] − 1) itself, p the chance that both samples together beat the rival. They can do so
    without either being good, so the bound lies above; by less than eight times here. Standard error: 3 % of the mean.
    """
    rng = np.random.default_rng(5)
    games, reward, cost, epsilon = 4000, 0.8, 0.5, 0.2
    wins, paid, pulls, rival = (np.zeros(games) for _ in range(4))
    for _ in range(400):
        theta = rng.beta(wins + 1, pulls - wins + 1) / rng.beta(paid + 1, pulls - paid + 1)
        beats = theta > (reward - epsilon) / (cost + epsilon)
        rival += ~beats
        wins += beats & (rng.random(games) < reward)
        paid += beats & (rng.random(games) < cost)
        pulls += beats
    error = rival.std() / math.sqrt(games)
    assert rival.mean() + 5 * error < waiting(reward, cost, epsilon).total < 8 * rival.mean()


def test_fact_two_ties_beta_and_binomial_as_used_here():
    assert special.betaincc(3 + 1, 7 - 3 + 1, 0.4) == pytest.approx(stats.binom.cdf(3, 8, 0.4))
