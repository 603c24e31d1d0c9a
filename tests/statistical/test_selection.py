"""BTS chooses each arm with exactly the probability that it is the best under the posterior.

Every test here has a fixed seed and a false-alarm rate of 1e-6: a correct program would fail it with one seed in a
million. What would break them: a prior other than Beta(1, 1), a swap of reward and cost or of successes and failures,
a draw that is shared between rounds or arms, a stale score used after its posterior changed.
"""

from functools import cache

import numpy as np
import pytest
from scipy import interpolate, stats

from budgetbandits.allocation.choosers.beta_ratio import NUMBERS, SURE, BetaRatios, envelope, ratio_above, ratios_above
from budgetbandits.allocation.choosers.threshold import PROPOSALS_MAX, PROPOSALS_MIN, ThresholdChooser
from budgetbandits.allocation.choosers.window import DenseWindowChooser, SparseWindowChooser
from budgetbandits.policies.thompson import BudgetedThompson, Thompson
from comparing import chi_square
from deep import deep, mostly_deep
from quadrature import exceedances, selection_probabilities

FALSE_ALARM = 1e-6
POSTERIORS = {
    "fresh": ([[0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]),
    "uneven": ([[3, 10, 0, 40], [2, 12, 0, 60]], [[5, 6, 1, 50], [6, 4, 1, 30]]),
    "near tie": ([[90, 93], [150, 151]], [[210, 207], [150, 149]]),
    "below one": ([[-0.2, 3.5, -0.2, 1.2], [-0.2, 2.5, 0.3, 4.0]], [[-0.2, 2.2, 0.6, 3.0], [-0.2, 0.7, 2.5, -0.2]]),
    "one leader": ([[80, 3, 2, 1, 0], [20, 5, 6, 7, 1]], [[20, 9, 9, 9, 1], [80, 7, 5, 3, 0]]),
}


def posterior(name):
    policy = BudgetedThompson()
    successes, failures = (np.array(table, dtype=float) + 1.0 for table in POSTERIORS[name])
    state = policy.start(successes.shape[1])
    state.statistics = np.concatenate([successes, failures])
    return policy, state


def sparse_window(recent):
    return SparseWindowChooser(BudgetedThompson(), BetaRatios(), recent=recent)


def threshold(level):
    return ThresholdChooser(BudgetedThompson(), BetaRatios(), level)


def exact_chances(successes, failures, size=1):
    """The probability that each arm wins, by quadrature; of each group of ``size`` equal arms, that of one arm."""
    rows = np.column_stack([successes[0], failures[0], successes[1], failures[1]])[::size]
    return selection_probabilities(rows, size=size)


@cache
def probabilities(name):
    _, state = posterior(name)
    return exact_chances(*np.split(state.statistics, 2))


@pytest.mark.parametrize("name", mostly_deep(POSTERIORS, ("below one",)))
def test_a_million_draws_agree_with_quadrature(name):
    policy, state = posterior(name)
    exact = probabilities(name)
    rng = np.random.default_rng(20150725)
    counts = sum(np.bincount(policy.draw(state, rng, 10_000).argmax(axis=1), minlength=len(exact)) for _ in range(100))
    assert counts.sum() == 1_000_000
    assert chi_square(counts, exact) > FALSE_ALARM


def test_choose_agrees_with_quadrature():
    policy, state = posterior("uneven")
    rng = np.random.default_rng(1)
    counts = np.bincount([policy.choose(state, rng) for _ in range(25_000)], minlength=4)
    assert chi_square(counts, probabilities("uneven")) > FALSE_ALARM


@pytest.mark.parametrize("kind", [DenseWindowChooser, SparseWindowChooser])
@pytest.mark.parametrize("touched", [[3, 1], *deep([], [0], [0, 1, 2, 3])])
def test_drawing_ahead_has_the_same_law(touched, kind):
    """Each window some arms are told at once and get another posterior, so that most choices mix old and new draws."""
    policy, after = posterior("uneven")
    before = policy.start(4)
    rng = np.random.default_rng(2)
    counts = np.zeros(4, dtype=int)
    for _ in range(150):
        ahead = sparse_window([2.0] * 32) if kind is SparseWindowChooser else kind(policy)
        state = policy.start(4)
        state.statistics = after.statistics.copy()
        state.statistics[:, touched] = before.statistics[:, touched]
        ahead.choose(state, rng)
        state.statistics = after.statistics
        for arm in touched:
            ahead.learned(state, rng, arm)
        for _ in range(60):
            counts[ahead.choose(state, rng)] += 1
    assert chi_square(counts, probabilities("uneven")) > FALSE_ALARM


@pytest.mark.parametrize("level", [1.0, *deep(0.3, 2.5)])
def test_a_sparse_window_is_right_at_any_level(level):
    """Far below the winners, where every arm rises, and far above them, where almost none does."""
    _, state = posterior("one leader")
    rng = np.random.default_rng(4)
    counts = np.zeros(5, dtype=int)
    for _ in range(200):
        ahead = sparse_window([level] * 64)
        for _ in range(60):
            counts[ahead.choose(state, rng)] += 1
    assert chi_square(counts, probabilities("one leader")) > FALSE_ALARM


@pytest.mark.deep
def test_many_arms_by_exceedances():
    """300 arms in 6 groups of equals, long windows; the groups' frequencies against quadrature."""
    state = BudgetedThompson().start(300)
    rng = np.random.default_rng(5)
    state.statistics[:2] += np.repeat(rng.integers(0, 12, size=(2, 6)), 50, axis=1)
    state.statistics[2:] += np.repeat(rng.integers(0, 12, size=(2, 6)), 50, axis=1)
    exact = np.repeat(exact_chances(*np.split(state.statistics, 2), size=50), 50)
    ahead = sparse_window([])
    counts = np.bincount([ahead.choose(state, rng) for _ in range(40_000)], minlength=300)
    assert chi_square(counts.reshape(6, 50).sum(axis=1), exact.reshape(6, 50).sum(axis=1)) > FALSE_ALARM
    assert chi_square(counts, exact) > FALSE_ALARM


LEVELS = [0.3, 1.0, 2.5, None]


@pytest.mark.parametrize(
    ("name", "level"),
    mostly_deep(
        [(name, level) for name in POSTERIORS for level in LEVELS],
        [("near tie", 2.5), ("below one", None), ("fresh", 0.3), ("one leader", 1.0)],
    ),
)
def test_rising_arms_at_any_level(name, level, monkeypatch):
    """The level is held where every arm rises, in between, where almost none does, or where it likes to be."""
    _, state = posterior(name)
    rng = np.random.default_rng(8)
    chooser = threshold(level or 1.0)
    chooser.reset(state)
    if level is not None:
        monkeypatch.setattr(ThresholdChooser, "_move", lambda *_: None)
    arms = state.statistics.shape[1]
    counts = np.bincount([chooser.choose(state, rng) for _ in range(12_000)], minlength=arms)
    assert chi_square(counts, probabilities(name)) > FALSE_ALARM


@pytest.mark.deep
def test_many_rising_arms_that_are_told_and_retired():
    """300 arms in 6 groups of equals, each told something on the way; then a group retires."""
    state = BudgetedThompson().start(300)
    rng = np.random.default_rng(9)
    chooser = ThresholdChooser(BudgetedThompson(), BetaRatios())
    chooser.reset(state)
    chooser.choose(state, rng)
    for table in np.split(state.statistics, 2):
        table[:, :] += np.repeat(rng.integers(0, 12, size=(2, 6)), 50, axis=1)
    for arm in range(300):
        chooser.learned(state, rng, arm)
    exact = exact_chances(*np.split(state.statistics, 2), size=50) * 50
    counts = np.bincount([chooser.choose(state, rng) // 50 for _ in range(20_000)], minlength=6)
    assert chi_square(counts, exact) > FALSE_ALARM
    best = int(exact.argmax())
    state.active[best * 50 : best * 50 + 50] = False
    keep = np.repeat(np.arange(6) != best, 50)
    exact = exact_chances(*np.split(state.statistics[:, keep], 2), size=50) * 50
    counts = np.bincount([chooser.choose(state, rng) // 50 for _ in range(20_000)], minlength=6)
    assert counts[best] == 0
    assert chi_square(np.delete(counts, best), exact) > FALSE_ALARM
    state.active[:] = False
    assert chooser.choose(state, rng) is None


@pytest.mark.deep
def test_what_is_told_one_by_one_is_what_is_found_all_at_once():
    """Arms become likely and unlikely to rise; after each the rates are those of a fresh look."""
    state = BudgetedThompson().start(100)
    rng, chooser = np.random.default_rng(10), threshold(2.1)
    chooser.reset(state)
    crossed = 0
    for _ in range(600):
        arm = int(rng.integers(100))
        plain = arm in chooser._plain
        gain = rng.integers(0, 3, size=(2, 2))
        state.statistics[:, arm] = 1.0 + gain.ravel() * 800.0
        chooser.learned(state, rng, arm)
        crossed += plain != (arm in chooser._plain)
        fresh = threshold(2.1)
        fresh.reset(state)
        assert chooser._plain.tolist() == fresh._plain.tolist()
        assert chooser._rates == pytest.approx(fresh._rates, rel=1e-13)
    assert crossed > 100


@pytest.mark.parametrize("pulls", [0, 30, 300, 3000])
@pytest.mark.parametrize("begin", [1e-3, 1.0, 5.6, 1e6])
def test_the_level_settles_where_a_few_arms_propose(pulls, begin):
    """The level comes from far above or below and stays there: one that wanders costs a look at every arm."""
    state = BudgetedThompson().start(200)
    rng = np.random.default_rng(11)
    hits = np.floor(rng.uniform(0.2, 0.8, size=(2, 200)) * pulls)
    state.statistics += np.concatenate([hits, pulls - hits])
    chooser = threshold(begin)
    chooser.reset(state)
    chooser.choose(state, rng)
    level = chooser.level
    assert PROPOSALS_MIN <= chooser._proposals(state)[2] <= PROPOSALS_MAX
    for _ in range(50):
        chooser.choose(state, rng)
    assert chooser.level == level


@pytest.mark.parametrize(("whole", "number"), [(True, 10), *deep((True, 80), (False, 10))])
def test_the_envelope_bounds_the_tail_and_draws_it_exactly(whole, number):
    """The envelope holds for 80 random posteriors: P ≤ G, and the ratios drawn above the level are as
    many as P says (within 5 standard deviations) and have the law of the tail (Kolmogorov-Smirnov, 1e-7). Other priors
    and κ lead to parameters that are no whole numbers, and to some below 1: on ten of those."""
    rng = np.random.default_rng(6)
    rounds = 2_000

    for _ in range(number):
        successes, failures = np.floor(10 ** rng.uniform(0, 2.5, size=(2, 2, 1)))
        if not whole:
            successes, failures = 10 ** rng.uniform(-0.7, 1.5, size=(2, 2, 1))
        centre = (successes[0] / (successes[0] + failures[0]) / (successes[1] / (successes[1] + failures[1]))).item()
        level = centre * np.exp(rng.uniform(-0.3, 1.5))
        parameters = [p.item() for p in (successes[0], failures[0], successes[1], failures[1])]
        bound, slope, y = envelope(*parameters, level)
        assert (bound, slope, y) == pytest.approx(envelope(*parameters, level, NUMBERS), rel=1e-13)
        chance = exceedances(*parameters, np.array([level])).item()
        assert chance <= bound * (1 + 1e-7) + 1e-12
        _, _, many = ratios_above(successes, failures, level, rounds, rng)
        one = ratio_above(*parameters, level, rounds, rng)
        assert (one is None) == (bound > SURE)
        for ratios in (many, np.array([ratio for _, ratio in one or ()]) if one is not None else many):
            assert ratios.min(initial=level) >= level
            assert abs(len(ratios) - rounds * chance) <= 5 * np.sqrt(rounds * chance) + 1
            if len(ratios) > 20:
                grid = np.geomspace(level, ratios.max(), 200)
                law = interpolate.PchipInterpolator(grid, 1 - exceedances(*parameters, grid) / chance)
                assert stats.kstest(ratios, law).pvalue > 1e-7


def test_classical_thompson_sampling_is_the_case_of_cost_one():
    """A posterior that is certain of cost 1 ranks by θr/θc as by θr."""
    _, state = posterior("uneven")
    state.statistics[1], state.statistics[3] = 1e12, 1e-3
    exact = exact_chances(state.statistics[:2], np.maximum(state.statistics[2:], 1.0))
    rng = np.random.default_rng(3)
    counts = np.bincount(Thompson().draw(state, rng, 200_000).argmax(axis=1), minlength=4)
    assert chi_square(counts, exact) > FALSE_ALARM
