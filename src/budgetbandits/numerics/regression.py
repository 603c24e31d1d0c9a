"""Bayesian linear regression of several arms that have a part in common.

An outcome of arm a with the row z = (1, x) of standardised features is

    y = z · β_a + noise of variance σ_a²,     β_a = (level, slopes),

and the slopes are those that all arms share, and what sets the arm apart:

    slopes of a ~ N(w, σ_a²/κ),     w ~ N(0, s²/κ₀),     level of a ~ N(m_a, σ_a²/ν).

So κ is how many outcomes weigh as much as the guess that an arm is like the others, κ₀ the same for the guess that a
feature has no effect, and ν for the level. s² is the harmonic mean of the σ_a². With D = diag(ν, κ, …, κ), and A, b the
sums of z zᵀ and of z y of an arm, the matrix G = A + D = L Lᵀ gives everything. Given w,

    β_a ~ N(G⁻¹ (b + D (m_a, w)),  σ_a² G⁻¹),

and the outcomes of an arm say of w, once its slopes are integrated out,

    precision  (κ I − κ² (G⁻¹)_xx) / σ_a²,     precision × mean  κ (G⁻¹ (b + D (m_a, 0)))_x / σ_a².

Given the variances that is the exact posterior of all slopes of all arms together, at the cost of one Cholesky
factor for each arm; several kinds of outcomes of the same rows share it. An arm's factor changes with its own outcomes
only, so that one outcome takes two new factors: the arm's (`arm_posteriors`), and the shared slopes' (`joined`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from budgetbandits.numerics.arrays import Array

EVERY_ARM = slice(None)
"""Index of all arms."""


@dataclass(frozen=True)
class Regressions:
    """The posterior of the regressions of all arms, for each kind of outcome.

    factor         L⁻¹, as (kind, arm, row, column)
    means          the mean coefficients, as (kind, arm, column)
    follow         how the coefficients follow the shared slopes: κ (G⁻¹)_x, as (kind, arm, column, slope)
    shared         the mean of the shared slopes, as (kind, slope)
    shared_factor  M⁻¹ of their precision M Mᵀ, as (kind, row, slope)
    noise          σ², as (kind, arm)
    """

    factor: Array
    means: Array
    follow: Array
    shared: Array
    shared_factor: Array
    noise: Array

    def draw(self, rng: np.random.Generator, draws: int, slope_width: float = 1.0) -> Array:
        """Draws of the coefficients of all arms together, as (draw, kind, arm, column).

        Slopes are ``slope_width`` times as far from their means as the posterior has them.
        """
        kinds, arms, columns = self.means.shape
        common = rng.standard_normal((draws, kinds, 1, columns - 1)) @ self.shared_factor
        drawn = rng.standard_normal((draws, kinds, arms, 1, columns)) @ self.factor
        drawn *= np.sqrt(self.noise)[..., None, None]
        drawn = drawn[..., 0, :] + _following(self.follow, common[:, :, 0])
        drawn[..., 1:] *= slope_width
        drawn += self.means
        return np.asarray(drawn)

    def variance(self, row: Array, arms: slice = EVERY_ARM) -> Array:
        """The variance of the mean outcome of arms for a request with this row, as (kind, arm)."""
        common = (row @ self.follow[:, arms]) @ self.shared_factor.transpose(0, 2, 1)
        return np.asarray(self.noise[:, arms] * self.leverage(row, arms) + np.square(common).sum(axis=2))

    def leverage(self, row: Array, arms: slice = EVERY_ARM) -> Array:
        """zᵀ G⁻¹ z of this row, as (kind, arm)."""
        return np.asarray(np.square(self.factor[:, arms] @ row).sum(axis=2))


class ArmPosteriors(NamedTuple):
    """The regression of each arm on its own outcomes; that of an arm changes with its own sums only.

    factor       L⁻¹, as (kind, arm, row, column)
    follow       how the coefficients follow the shared slopes: κ (G⁻¹)_x, as (kind, arm, column, slope)
    own_slopes   κ² (G⁻¹)_xx, row by row, as (kind, arm, slope and slope)
    alone        the mean coefficients if the shared slopes were 0, as (kind, arm, column)
    noise        σ², as (kind, arm)
    weight       κ, as (kind, arm)
    """

    factor: Array
    follow: Array
    own_slopes: Array
    alone: Array
    noise: Array
    weight: Array


def arm_posteriors(
    products: Array, responses: Array, squares: Array, level: Array, first: float, arm_weight: Array | float
) -> ArmPosteriors:
    """The regression of each arm on its own outcomes, from their sums.

    These are the sums of z zᵀ, of z y and of y² as (arm, column, column), (kind, arm, column) and (kind, arm); the
    first column is that of the level. ``level`` is the mean m of each level as (kind, arm), worth two outcomes that are
    ``first`` apart from it, and ``arm_weight`` is κ, of each kind and arm or of all. The noise of an arm is the mean
    square of what the arm's own regression leaves over, these two outcomes included.
    """
    kinds, arms, columns = responses.shape
    weight = np.broadcast_to(arm_weight, (kinds, arms))
    precision = np.broadcast_to(products, (kinds, *products.shape)).copy()
    diagonal = precision.reshape(kinds, arms, -1)[..., :: columns + 1]
    diagonal[..., 0] += LEVEL_WEIGHT
    diagonal[..., 1:] += weight[..., None]
    factor = inverse_factors(precision)
    inverse = factor.swapaxes(2, 3) @ factor
    sums = responses.copy()
    sums[..., 0] += LEVEL_WEIGHT * level
    alone = (sums[:, :, None] @ inverse)[:, :, 0]  # which is symmetric
    left = squares + LEVEL_WEIGHT * (level * level + first * first) - (sums * alone).sum(axis=2)
    least = SMALLEST_SHARE * (squares + LEVEL_WEIGHT * first * first)
    noise = np.maximum(left, least) / (products[:, 0, 0] + LEVEL_WEIGHT)
    follow = weight[..., None, None] * inverse[..., 1:]
    own_slopes = (weight[..., None, None] * follow[:, :, 1:]).reshape(kinds, arms, -1)
    return ArmPosteriors(factor, follow, own_slopes, alone, noise, weight)


def joined(own: ArmPosteriors, shared_share: float) -> Regressions:
    """The posterior of all arms together; ``shared_share`` is κ₀/κ."""
    kinds, _, _, slopes = own.follow.shape
    sure = 1.0 / own.noise
    pulling = own.weight * sure
    common = -(sure[:, None] @ own.own_slopes)[:, 0]
    common[:, :: slopes + 1] += pulling.sum(axis=1, keepdims=True) + shared_share * pulling.mean(axis=1, keepdims=True)
    shared_factor = inverse_factors(common.reshape(kinds, slopes, slopes))
    pull = (pulling[:, None] @ own.alone[:, :, 1:])[:, 0, :, None]
    shared = (shared_factor.transpose(0, 2, 1) @ (shared_factor @ pull))[..., 0]
    means = own.alone + _following(own.follow, shared)
    return Regressions(own.factor, means, own.follow, shared, shared_factor, own.noise)


def regressions(
    products: Array, responses: Array, squares: Array, level: Array, first: float, arm_weight: Array | float,
    shared_share: float,
) -> Regressions:  # fmt: skip
    """The posterior of all arms together, from the sums that `arm_posteriors` takes."""
    return joined(arm_posteriors(products, responses, squares, level, first, arm_weight), shared_share)


def inverse_factors(matrices: Array) -> Array:
    """The inverse factors L⁻¹ of positive definite matrices L Lᵀ; products with L⁻¹ are as exact as solving with L."""
    from scipy.linalg.lapack import dpotrf, dtrtri  # takes long to import, and only regressions need it

    factors = matrices.copy()
    if factors.size == 0:  # which LAPACK complains about on the terminal
        return factors
    for factor in factors.reshape(-1, *matrices.shape[-2:]).swapaxes(-2, -1):  # LAPACK's order: nothing is copied
        _, failed = dpotrf(factor, lower=0, clean=1, overwrite_a=1)
        if failed:
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        dtrtri(factor, lower=0, overwrite_c=1)
    return factors


def _following(follow: Array, shared: Array) -> Array:
    """The part of the coefficients that comes from the shared slopes, as (…, kind, arm, column)."""
    return np.asarray((follow @ shared[..., None, :, None])[..., 0])


LEVEL_WEIGHT = 2.0
"""Number of outcomes that the prior of a level counts as."""

SMALLEST_SHARE = 1e-9
"""Smallest share of the sum of squares that counts as noise: outcomes may follow their features exactly."""
