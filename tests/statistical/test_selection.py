"""BTS chooses each arm with exactly the probability that it is the best under the posterior.

Every test here has a fixed seed and a false-alarm rate of 1e-6: a correct program would fail it with one seed in a
million. What would break them: a prior other than Beta(1, 1), a swap of reward and cost or of successes and failures,
a draw that is shared between rounds or arms, a stale score used after its posterior changed.
"""

import numpy as np
import pytest

from budgetbandits.policies.sampling import DrawnAhead
from budgetbandits.policies.thompson import BudgetedThompson, Thompson
from exact import argmax_probabilities, chi_square

FALSE_ALARM = 1e-6
POSTERIORS = {
    "fresh": ([[0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]),
    "uneven": ([[3, 10, 0, 40], [2, 12, 0, 60]], [[5, 6, 1, 50], [6, 4, 1, 30]]),
    "near tie": ([[300, 310], [500, 505]], [[700, 690], [500, 495]]),
    "one leader": ([[80, 3, 2, 1, 0], [20, 5, 6, 7, 1]], [[20, 9, 9, 9, 1], [80, 7, 5, 3, 0]]),
}


def posterior(name):
    policy = BudgetedThompson()
    successes, failures = (np.array(table, dtype=float) + 1.0 for table in POSTERIORS[name])
    state = policy.start(successes.shape[1], {})
    state.successes, state.failures = successes, failures
    return policy, state


@pytest.mark.parametrize("name", POSTERIORS)
def test_a_million_draws_agree_with_quadrature(name):
    policy, state = posterior(name)
    exact = argmax_probabilities(state.successes, state.failures)
    assert exact.sum() == pytest.approx(1.0, abs=1e-6)
    rng = np.random.default_rng(20150725)
    counts = sum(np.bincount(policy.draw(state, rng, 10_000).argmax(axis=1), minlength=len(exact)) for _ in range(100))
    assert counts.sum() == 1_000_000
    assert chi_square(counts, exact) > FALSE_ALARM


def test_choose_agrees_with_quadrature():
    policy, state = posterior("uneven")
    rng = np.random.default_rng(1)
    counts = np.bincount([policy.choose(state, rng) for _ in range(50_000)], minlength=4)
    assert chi_square(counts, argmax_probabilities(state.successes, state.failures)) > FALSE_ALARM


@pytest.mark.parametrize("touched", [[], [0], [3, 1], [0, 1, 2, 3]])
def test_drawing_ahead_has_the_same_law(touched):
    """Each window some arms are told at once and get another posterior, so that most choices mix old and new draws."""
    policy, after = posterior("uneven")
    before = policy.start(4, {})
    rng = np.random.default_rng(2)
    counts = np.zeros(4, dtype=int)
    for _ in range(1_500):
        ahead = DrawnAhead()
        state = policy.start(4, {})
        state.successes, state.failures = after.successes.copy(), after.failures.copy()
        state.successes[:, touched], state.failures[:, touched] = (
            before.successes[:, touched],
            before.failures[:, touched],
        )
        ahead.choose(policy, state, rng)
        state.successes, state.failures = after.successes, after.failures
        for arm in touched:
            ahead.told(arm)
        for _ in range(60):
            counts[ahead.choose(policy, state, rng)] += 1
    assert chi_square(counts, argmax_probabilities(after.successes, after.failures)) > FALSE_ALARM


def test_classical_thompson_sampling_is_the_case_of_cost_one():
    """With a posterior that is sure of cost 1, θr/θc ranks as θr does."""
    _, state = posterior("uneven")
    state.successes[1], state.failures[1] = 1e12, 1e-3
    exact = argmax_probabilities(state.successes, np.maximum(state.failures, 1.0))
    rng = np.random.default_rng(3)
    counts = np.bincount(Thompson().draw(state, rng, 200_000).argmax(axis=1), minlength=4)
    assert chi_square(counts, exact) > FALSE_ALARM
