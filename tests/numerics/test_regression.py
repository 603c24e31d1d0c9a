"""The regressions of several arms, against exact rational arithmetic, and their draws against their covariance."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from budgetbandits.numerics.regression import LEVEL_WEIGHT, inverse_factors, regressions

FALSE_ALARM = 1e-6
"""Probability that one statistical test fails although the code is right."""


def sums_of(rows, outcomes, arm, arms):
    """The sums that `regressions` takes, for rows (request, column) and outcomes (kind, request)."""
    columns, kinds = rows.shape[1], len(outcomes)
    products, responses, squares = (
        np.zeros(s) for s in ((arms, columns, columns), (kinds, arms, columns), (kinds, arms))
    )
    for number in range(arms):
        mine = arm == number
        products[number] = rows[mine].T @ rows[mine]
        responses[:, number] = outcomes[:, mine] @ rows[mine]
        squares[:, number] = (outcomes[:, mine] ** 2).sum(axis=1)
    return products, responses, squares


def example(seed=1, arms=3, columns=3, requests=40):
    rng = np.random.default_rng(seed)
    rows = np.column_stack([np.ones(requests), rng.standard_normal((requests, columns - 1))])
    arm = rng.integers(arms - 1, size=requests)  # the last arm has no outcome
    outcomes = rng.random((2, requests)) + 0.3 * rows[:, 1]
    return rows, outcomes, arm, rng.random((2, arms))


def exact_posterior(rows, outcomes, arm, level, noise, weights, shared_share):
    """Mean and covariance of all coefficients (arm by arm) and of the shared slopes, by exact elimination."""
    arms, columns = len(noise), rows.shape[1]
    size, slopes = arms * columns + columns - 1, range(columns - 1)
    precision = [[Fraction(0)] * size for _ in range(size)]
    told = [Fraction(0)] * size
    sure = [1 / Fraction(float(n)) for n in noise]
    pulling = [Fraction(float(weight)) * number for weight, number in zip(weights, sure, strict=True)]

    def add(entries, target, strength):
        """One more normal observation: the sum of coefficients times unknowns is the target, with this precision."""
        for i, first in entries:
            told[i] += strength * first * target
            for j, second in entries:
                precision[i][j] += strength * first * second

    for row, outcome, number in zip(rows.tolist(), outcomes.tolist(), arm.tolist(), strict=True):
        add([(number * columns + c, Fraction(value)) for c, value in enumerate(row)], Fraction(outcome), sure[number])
    for number in range(arms):
        add([(number * columns, Fraction(1))], Fraction(float(level[number])), Fraction(LEVEL_WEIGHT) * sure[number])
        for s in slopes:
            own, common = number * columns + 1 + s, arms * columns + s
            add([(own, Fraction(1)), (common, Fraction(-1))], Fraction(0), pulling[number])
    for s in slopes:
        add([(arms * columns + s, Fraction(1))], Fraction(0), Fraction(shared_share) * sum(pulling) / arms)
    return solved(precision, told)


def solved(matrix, right):
    """The solution, and the inverse, of rational equations."""
    size = len(right)
    table = [
        row[:] + [r] + [Fraction(int(i == j)) for j in range(size)]
        for i, (row, r) in enumerate(zip(matrix, right, strict=True))
    ]
    for i in range(size):
        pivot = table[i][i]
        table[i] = [value / pivot for value in table[i]]
        for j in range(size):
            if j != i and table[j][i]:
                factor = table[j][i]
                table[j] = [value - factor * own for value, own in zip(table[j], table[i], strict=True)]
    return np.array([float(row[size]) for row in table]), np.array(
        [[float(v) for v in row[size + 1 :]] for row in table]
    )


WEIGHTS = np.array([[7.0, 7.0, 7.0], [2.0, 90.0, 7.0]])
"""κ of each kind and arm."""


@pytest.mark.parametrize("kind", [0, 1])
def test_the_posterior_is_that_of_exact_arithmetic(kind):
    rows, outcomes, arm, level = example()
    posterior = regressions(*sums_of(rows, outcomes, arm, 3), level, 0.5, WEIGHTS, 0.375)
    mean, covariance = exact_posterior(
        rows, outcomes[kind], arm, level[kind], posterior.noise[kind], WEIGHTS[kind], 0.375
    )
    columns = rows.shape[1]
    assert posterior.means[kind].ravel() == pytest.approx(mean[: 3 * columns], rel=1e-11, abs=1e-13)
    assert posterior.shared[kind] == pytest.approx(mean[3 * columns :], rel=1e-11, abs=1e-13)
    row = np.array([1.0, -2.0, 0.7])
    for number in range(3):
        own = slice(number * columns, (number + 1) * columns)
        assert posterior.variance(row)[kind, number] == pytest.approx(row @ covariance[own, own] @ row, rel=1e-11)


def test_the_noise_is_what_a_regression_of_the_arm_alone_leaves_over():
    rows, outcomes, arm, level = example(requests=60)
    posterior = regressions(*sums_of(rows, outcomes, arm, 3), level, 0.5, 7.0, 3.0 / 7.0)
    for number in range(3):
        mine = arm == number
        extra = np.vstack([rows[mine], *[np.sqrt([LEVEL_WEIGHT, 7.0, 7.0])[i] * np.eye(3)[i] for i in range(3)]])
        target = np.append(outcomes[0, mine], [math.sqrt(LEVEL_WEIGHT) * level[0, number], 0.0, 0.0])
        _, left, *_ = np.linalg.lstsq(extra, target)
        expected = (left.sum() + LEVEL_WEIGHT * 0.25) / (mine.sum() + LEVEL_WEIGHT)
        assert posterior.noise[0, number] == pytest.approx(expected, rel=1e-10)


def test_draws_have_the_mean_and_the_covariance_of_the_posterior():
    """All coefficients of all arms of a kind together: whitened, their squares add up to a chi-square variable."""
    rows, outcomes, arm, level = example(seed=2)
    posterior = regressions(*sums_of(rows, outcomes, arm, 3), level, 0.5, WEIGHTS, 0.375)
    draws = 4000
    drawn = posterior.draw(np.random.default_rng(3), draws)
    for kind in range(2):
        noise = posterior.noise[kind]
        mean, covariance = exact_posterior(rows, outcomes[kind], arm, level[kind], noise, WEIGHTS[kind], 0.375)
        factor = np.linalg.cholesky(covariance[:9, :9])
        white = np.linalg.solve(factor, (drawn[:, kind].reshape(draws, 9) - mean[:9]).T)
        for squares, freedom in ((white**2, draws), (white.sum(axis=1, keepdims=True) ** 2 / draws, 1)):
            p = stats.chi2.sf(squares.sum(axis=1), freedom)
            assert (np.minimum(p, 1.0 - p) > FALSE_ALARM / 72).all()  # 9 coefficients, 2 kinds, 2 tests, 2 sides
        apart = white @ white.T / draws - np.eye(9)
        assert np.abs(apart[~np.eye(9, dtype=bool)]).max() < stats.norm.isf(FALSE_ALARM / 288) / math.sqrt(draws)


def test_a_million_outcomes_lose_no_digits():
    """Sums are added up one by one, as a policy does; math.fsum has them exactly."""
    rng = np.random.default_rng(5)
    rows = np.column_stack([np.ones(1_000_000), rng.standard_normal(1_000_000), rng.random(1_000_000)])
    outcome = 0.3 + rows[:, 1:] @ [0.2, -0.4] + 0.1 * rng.standard_normal(1_000_000)
    everything = np.column_stack([rows, outcome])
    exact, added = np.zeros((4, 4)), np.zeros((4, 4))
    for i in range(4):
        for j in range(i, 4):
            values = everything[:, i] * everything[:, j]
            exact[i, j] = exact[j, i] = math.fsum(values)
            added[i, j] = added[j, i] = np.cumsum(values)[-1]
    means = [
        regressions(
            sums[None, :3, :3],
            sums[None, None, :3, 3],
            sums[None, None, 3, 3],
            np.full((1, 1), 0.5),
            0.5,
            9.0,
            1.0 / 3.0,
        ).means
        for sums in (exact, added)
    ]
    assert means[1] == pytest.approx(means[0], rel=1e-11)


def test_arms_that_are_alike_teach_an_arm_without_outcomes():
    rng = np.random.default_rng(7)
    rows = np.column_stack([np.ones(900), rng.standard_normal((900, 2))])
    outcomes = (0.5 + rows[:, 1] * 0.3 + 0.05 * rng.standard_normal(900))[None]
    posterior = regressions(*sums_of(rows, outcomes, np.arange(900) % 3, 4), np.full((1, 4), 0.5), 0.5, 4.0, 0.5)
    # three arms say as much of the shared slopes as 3 · 4 outcomes, against 2 · ¾ that there are none: the noise of the
    # fourth arm is large
    assert posterior.means[0, 3, 1:] == pytest.approx([0.3 * 12.0 / 13.5, 0.0], abs=0.01)


def test_without_columns_but_the_level_nothing_is_shared(capfd):
    posterior = regressions(
        np.full((2, 1, 1), 8.0), np.full((1, 2, 1), 6.0), np.full((1, 2), 5.0), np.full((1, 2), 0.5), 0.5, 4.0, 0.5
    )
    assert posterior.means == pytest.approx(np.full((1, 2, 1), 0.7))
    assert posterior.draw(np.random.default_rng(1), 5).shape == (5, 1, 2, 1)
    assert capfd.readouterr() == ("", "")  # LAPACK complains where it is given nothing


def test_inverse_factors_undo_their_matrix():
    matrix = np.array([[[4.0, 2.0], [2.0, 5.0]]])
    factor = inverse_factors(matrix)[0]
    assert factor @ matrix[0] @ factor.T == pytest.approx(np.eye(2))
    assert factor[0, 1] == 0.0
