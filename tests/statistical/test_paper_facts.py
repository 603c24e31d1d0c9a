"""The five facts that the paper's appendix builds on, as properties.

F(n, p, r) is the distribution function of the binomial law with n trials at a real number r; it steps at whole numbers.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import special, stats

probability = st.floats(0.001, 0.999)
trials = st.integers(1, 400)
gap = st.floats(0.001, 1.0)
ROUNDING = 1e-9


def F(n, p, r):  # noqa: N802 - the paper's symbol
    return stats.binom.cdf(math.floor(r), n, p)


@given(n=trials, mu=probability, a=st.floats(0.0, 50.0))
def test_fact_1_for_independent_trials(n, mu, a):
    bound = math.exp(-2 * a * a / n) + ROUNDING
    assert stats.binom.sf(math.ceil(n * mu + a - ROUNDING) - 1, n, mu) <= bound
    assert F(n, mu, n * mu - a + ROUNDING) <= bound


@given(n=st.integers(1, 9), mu=probability, a=st.floats(0.0, 5.0))
def test_fact_1_needs_only_the_conditional_means(n, mu, a):
    """Dependent variables with conditional mean μ, enumerated: a trial while ahead of it, the bare mean behind."""
    above = below = 0.0
    for flips in itertools.product((0.0, 1.0), repeat=n):
        total, chance = 0.0, 1.0
        for t, flip in enumerate(flips):
            if t == 0 or total >= t * mu:
                total += flip
                chance *= mu if flip else 1 - mu
            else:
                total += mu
                chance *= 0.5
        above += chance * (total >= n * mu + a)
        below += chance * (total <= n * mu - a)
    bound = math.exp(-2 * a * a / n) + ROUNDING
    assert above <= bound
    assert below <= bound


@given(alpha=st.integers(1, 300), beta=st.integers(1, 300), y=st.floats(0.0, 1.0))
def test_fact_2_beta_and_binomial_tails(alpha, beta, y):
    """The text takes α and β to be positive whole numbers; the identity needs that."""
    assert special.betainc(alpha, beta, y) == pytest.approx(1 - F(alpha + beta - 1, y, alpha - 1), abs=1e-11)


@given(n=trials, p=probability, r=st.integers(-1, 400))
def test_fact_3_one_more_trial(n, p, r):
    assume(r <= n + 1)
    split = (1 - p) * F(n, p, r) + p * F(n, p, r - 1)
    assert F(n + 1, p, r) == pytest.approx(split, abs=1e-11)
    assert F(n + 1, p, r) <= F(n, p, r) + ROUNDING


@given(n=trials, p=st.floats(0.0, 1.0), delta=gap)
def test_fact_4_binomial_tails(n, p, delta):
    bound = math.exp(-2 * n * delta**2) + ROUNDING
    assert F(n, p, n * p - n * delta) <= bound
    assert 1 - F(n, p, n * p + n * delta) <= bound


@given(n=trials, p=st.floats(0.0, 1.0), delta=gap)
def test_fact_4_with_one_more_trial(n, p, delta):
    assume(n > 1 / delta)
    assert 1 - F(n + 1, p, n * p + n * delta) <= math.exp(4 * delta - 2 * n * delta**2) + ROUNDING


LOWER, UPPER = 0.6, 1.0
"""The constants that the Θ of Fact 5 hides; on a fine grid the ratio runs from 0.664 to 1."""


@given(j=st.integers(0, 500), y=probability, share=st.floats(0.0, 1.0))
def test_fact_5_lower_tail(j, y, share):
    """Slip in the text: y = 0 and y = 1 are not excluded, and there the expression is 0/0 at s = y(j + 1)."""
    n = j + 1
    edge = y * n - math.sqrt(n * y * (1 - y))
    assume(edge >= 0)
    s = math.floor(share * edge)
    log_term = math.log(y * (n - s) / (y * n - s)) + stats.binom.logpmf(s, n, y)
    log_tail = special.logsumexp(stats.binom.logpmf(np.arange(s + 1), n, y))
    assert math.log(LOWER) <= log_tail - log_term <= math.log(UPPER) + 1e-7


@given(j=st.integers(0, 500), y=probability, share=st.floats(0.0, 1.0))
def test_fact_5_upper_tail_is_its_mirror_image(j, y, share):
    n = j + 1
    edge = (1 - y) * n - math.sqrt(n * y * (1 - y))
    assume(edge >= 0)
    s = j - math.floor(share * edge)  # so that j − s is at most the edge
    log_term = math.log((1 - y) * (s + 1) / ((1 - y) * n - j + s)) + stats.binom.logpmf(j - s, n, 1 - y)
    log_tail = special.logsumexp(stats.binom.logpmf(np.arange(s + 1, n + 1), n, y))
    assert math.log(LOWER) <= log_tail - log_term <= math.log(UPPER) + 1e-7


@given(j=st.integers(0, 500), y=probability, s=st.integers(0, 500))
def test_fact_5_near_the_mean_the_tail_is_constant(j, y, s):
    """The Θ(1) hides 0.15, just below Φ(−1) = 0.1587, what the normal law leaves one deviation under the mean."""
    n = j + 1
    assume(s <= n)
    if s >= y * n - math.sqrt(n * y * (1 - y)):
        assert F(n, y, s) >= 0.15
    if s <= j and j - s >= (1 - y) * n - math.sqrt(n * y * (1 - y)):
        assert 1 - F(n, y, s) >= 0.15
