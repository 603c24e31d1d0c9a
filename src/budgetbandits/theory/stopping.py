"""When to stop trying: the free boundary of a Brownian motion whose drift has a flat prior.

Try one uncertain arm against a known one, N times at most. After n of them the trial is worth going on with as long as
the arm's mean is no more than h(n/N) of its standard errors below the known one. In the limit of many trials that is a
stopping problem for Brownian motion (Chernoff and Ray 1965), and h is the same for every law. With s = N/n and the
boundary b(s) = √s h(1/s) the value of going on is zero exactly on it, which is the integral equation

    0 = ∫₁ˢ u⁻² E[Y; Y > −b(u)] du,   Y ~ N(−b(s), s − u),   for every s > 1.

Near s = 1 the boundary is c √(s − 1) with c = 0.63883322, so the unknown is c(w) = b(s)/√(s − 1) as a function of
w = √(ln s), which is smooth down to w = 0. It is a Chebyshev series that Newton's method finds, from small s to
large; about ten digits are right. `numerics.stopping` holds a polynomial of the result for policies to use.

Chernoff, Ray: A One-Sided Boundary for a Sequential Decision Problem. Annals of Mathematical Statistics 36, 1965.
Lai: Adaptive Treatment Allocation and the Multi-Armed Bandit Problem. Annals of Statistics 15, 1987.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import Chebyshev, chebyshev, legendre
from scipy.optimize import fsolve
from scipy.special import ndtr

from budgetbandits.errors import BadParameter
from budgetbandits.numerics.arrays import Array

FIRST_RANGE, RANGE_FACTOR = 2.0, 100.0
"""The range of s of the first series, which starts from a constant c. Each later series starts from the one before and
covers the square of its range, or this many times its range if that is less."""
SERIES_TERMS, QUADRATURE_NODES = 40, 300
"""Terms of each Chebyshev series, and nodes of the quadrature of the integral equation."""


def boundary_series(largest: float = 1e16) -> Chebyshev:
    """c(w) for 0 ≤ w ≤ √(ln largest), so that h(t) = c(√(ln 1/t)) √(1 − t) down to t = 1/largest.

    >>> series = boundary_series(100.0)
    >>> f"{series(0.0):.8f} {series(np.log(2.0) ** 0.5) * 0.5 ** 0.5:.7f}"  # c, and h(1/2)
    '0.63883322 0.5770622'
    """
    reach = min(FIRST_RANGE, largest)
    series = Chebyshev([0.64], domain=[0.0, 0.1])
    while True:
        series = _solved(reach, series)
        if reach >= largest:
            return series
        reach = min(reach * min(reach, RANGE_FACTOR), largest)


def _solved(reach: float, start: Chebyshev) -> Chebyshev:
    """The series up to s = ``reach``; ``start`` is a shorter one, continued along its tangent."""
    width = np.sqrt(np.log(reach))
    spots = chebyshev.chebpts1(SERIES_TERMS)
    nodes, weights = legendre.leggauss(QUADRATURE_NODES)
    # ln u = (ln s) sin²θ takes the square-root singularities away at both ends
    angle = (nodes + 1.0) * np.pi / 4.0
    log_s = ((spots + 1.0) / 2.0 * width)[:, None] ** 2
    log_u = log_s * np.sin(angle) ** 2
    step = log_s * np.sin(2.0 * angle) * weights * np.pi / 4.0 / np.exp(log_u)
    spread = np.sqrt(-np.exp(log_s) * np.expm1(log_u - log_s))
    root_s, root_u = np.sqrt(np.expm1(log_s)), np.sqrt(np.expm1(log_u))
    # the unknowns are the values of c at the spots, all of a size, and not the coefficients
    fit = np.linalg.inv(chebyshev.chebvander(spots, SERIES_TERMS - 1))
    values_at_u = chebyshev.chebvander(2.0 * np.sqrt(log_u) / width - 1.0, SERIES_TERMS - 1) @ fit

    def excess(values: Array) -> Array:
        boundary, earlier = root_s * values[:, None], root_u * (values_at_u @ values)
        gap = (earlier - boundary) / spread
        gain = (spread * np.exp(-gap * gap / 2.0) / np.sqrt(2.0 * np.pi) - boundary * ndtr(gap)) * step
        return np.asarray(gain.sum(axis=1) / np.abs(gain).sum(axis=1))

    end = float(start.domain[1])
    w = (spots + 1.0) / 2.0 * width
    guess = start(np.minimum(w, end)) + start.deriv()(end) * np.maximum(w - end, 0.0)
    values = fsolve(excess, guess, xtol=1e-13)
    if np.abs(excess(values)).max() > 1e-9:
        raise BadParameter(f"the boundary is not found up to {reach:g}; use a smaller range")
    return Chebyshev(fit @ values, domain=[0.0, float(width)])
