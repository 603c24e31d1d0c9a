"""Tests of the engine.

Every statistical test has a fixed seed and the false-alarm rate ALARM = 1e-5 (after Bonferroni over the comparisons
inside it); with about sixty such tests a correct engine with fresh seeds would fail the suite once in 1,600 times.
"""

from __future__ import annotations

import functools
import os

import numpy as np
import pytest
from numba import njit
from scipy import stats

from budgetbandits import BudgetedThompson, Problem, simulate
from budgetbandits.errors import BadParameter
from budgetbandits.simulation.engines.runtime import binomials, draws
from budgetbandits.simulation.engines.runtime.binomials import binomial
from budgetbandits.simulation.engines.thompson import envelope
from budgetbandits.simulation.engines.thompson.blocks import open_window
from budgetbandits.simulation.engines.thompson.engine import FiniteLaws, Run, SampledLaws, Settings
from deep import deep, mostly_deep
from engine_runs import bernoulli, simulate_runs
from plain_loops import naive_runs, numpy_runs
from quadrature import exceedance, selection_probabilities

ALARM = 1e-5

DEEP = 8 if os.environ.get("BUDGETBANDITS_DEEP") else 1
"""`make deep` plays eight times as many games, for changes to the engine itself."""

pytestmark = [pytest.mark.deep] if DEEP > 1 else []
"""So all tests here are for `make deep`, too."""


def stream_of(seed: int) -> np.ndarray:
    return draws.new_stream(np.random.SeedSequence(seed).generate_state(4, np.uint64))


# ---------------------------------------------------------------- draws


@njit
def fill(draw, stream, out, *arguments):
    for place in range(out.size):
        out[place] = draw(stream, *arguments)


@njit
def binomial_of(stream, trials, chance):
    return binomial(stream, np.int64(trials), chance)


def sample(draw, *arguments: float, size: int = 400_000, seed: int = 1) -> np.ndarray:
    out, stream = np.empty(size), stream_of(seed)
    fill(draw, stream.ctypes.data, out, *map(float, arguments))
    return out


@pytest.mark.deep
@pytest.mark.parametrize(
    ("draw", "parameters", "law"),
    [
        (draws.uniform, (), stats.uniform),
        (draws.normal, (), stats.norm),
        (draws.exponential, (), stats.expon),
        *((draws.gamma, (shape,), stats.gamma) for shape in (0.3, 1, 2.5, 1e6)),
        *((draws.beta, pair, stats.beta) for pair in ((1, 1), (0.4, 3), (50, 7), (1e9, 3e9))),
    ],
)
def test_continuous_draws(draw, parameters, law):
    values = sample(draw, *parameters, size=DEEP * 125_000)
    # Kolmogorov's distance on every sixteenth value, which is short of it by 16 of the million at most.
    shares = np.arange(0, values.size, 16) / values.size
    distance = np.abs(law(*parameters).cdf(np.sort(values)[::16]) - shares).max()
    assert stats.kstwo.sf(distance, values.size) > ALARM
    if draw is draws.uniform:
        assert values.min() > 0.0
        assert values.max() < 1.0


@pytest.mark.deep
def test_normal_and_exponential_tails():
    # Far tails carry too little weight for a Kolmogorov-Smirnov test.
    normal = np.abs(sample(draws.normal, size=2_000_000, seed=5))
    exponential = sample(draws.exponential, size=2_000_000, seed=6)
    for values, law, points in (
        (normal, stats.halfnorm(), (3.3, 3.654, 3.9, 4.5)),
        (exponential, stats.expon(), (6.9, 7.697, 8.5, 11.0)),
    ):
        for point in points:
            expected = law.sf(point)
            assert stats.binomtest(int((values > point).sum()), values.size, expected).pvalue > ALARM / 8


def discrete_fit(values: np.ndarray, law, highest: int) -> float:
    """Chi-square p-value against a discrete law, with cells of at least twenty expected."""
    chances = np.append(law.pmf(np.arange(highest + 1)), law.sf(highest))
    ends, expected = [], [0.0]
    for value, chance in enumerate(chances.tolist()):
        expected[-1] += chance * values.size
        if expected[-1] >= 20:
            ends.append(value)
            expected.append(0.0)
    expected[-2:] = [sum(expected[-2:])]  # what is left over belongs to the last cell
    observed = np.bincount(np.searchsorted(ends[:-1], values), minlength=len(expected))
    return float(stats.chisquare(observed, np.array(expected) * values.size / sum(expected)).pvalue)


@pytest.mark.parametrize("chance", [0.9, 0.3, 0.02])
def test_geometric(chance):
    assert discrete_fit(sample(draws.geometric, chance), stats.geom(chance), 3000) > ALARM


def test_geometric_extremes():
    assert (sample(draws.geometric, 1.0, size=10) == 1).all()
    assert (sample(draws.geometric, 1e-320, size=10) == draws.LONGEST_WAIT).all()
    mean = sample(draws.geometric, 1e-12, size=100_000).mean()
    assert abs(mean * 1e-12 - 1.0) < 5 / np.sqrt(100_000)


@pytest.mark.parametrize(
    ("trials", "chance"),
    [(5, 0.3), (16, 0.5), (17, 0.01), (40, 0.2), (40, 0.9), (100, 0.3), (1000, 0.5), (1000, 0.011), (10_000, 0.97)],
)
def test_binomial(trials, chance):
    assert (
        discrete_fit(sample(binomial_of, trials, chance, size=DEEP * 250_000), stats.binom(trials, chance), trials)
        > ALARM
    )


@pytest.mark.parametrize(
    ("trials", "chance"),
    [(21, 0.5), (65, 0.16), (400, 0.03), (400, 0.5), (1023, 0.26), (1024, 0.01), (10_000, 0.11), (10_000_000, 0.3)],
)
def test_a_binomial_proposal_is_accepted_just_below_its_density(trials, chance, monkeypatch):
    """A hair below the ratio of densities and not a hair above it, also where the squeeze, which spares evaluating
    them, accepts at once; too small a part of proposals hangs on that for any sample to show it."""
    deviation = np.sqrt(trials * chance * (1.0 - chance))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * chance
    alpha = (2.83 + 5.1 / b) * deviation
    u = np.linspace(-0.4999, 0.4999, 301)
    us = 0.5 - np.abs(u)
    k = np.floor((2.0 * a / us + b) * u + trials * chance + 0.5)
    law, mode = stats.binom(trials, chance), np.floor((trials + 1) * chance)
    accepted = np.exp(law.logpmf(k) - law.logpmf(mode)) * (a / us**2 + b) / alpha
    fed = iter(())
    monkeypatch.setattr(binomials, "uniform", lambda _: next(fed))
    for at, proposal, limit in zip(u, k, accepted, strict=True):
        for v, kept in ((limit * (1.0 - 1e-6), True), (limit * (1.0 + 1e-6), False)):
            if 0.0 < v < 1.0:
                sentinel = (1e-300, 0.5)
                fed = iter((v, at + 0.5, *sentinel))
                found = binomials.binomial_by_rejection.py_func(None, trials, chance)
                assert found == (proposal if kept else mode)
                assert len(list(fed)) == (2 if kept else 0)
    assert (accepted < 1.0).all()


@pytest.mark.deep
@pytest.mark.parametrize("trials", [1 << 31, 1 << 44, 1 << 46, 1 << 54, 1 << 61])
@pytest.mark.parametrize("chance", [0.5, 0.07, 1e-12])
def test_binomial_with_huge_counts(trials, chance):
    values = sample(binomial_of, trials, chance, size=200_000)
    if trials * chance < 1e6:
        law = stats.poisson(trials * chance)
        scaled = (values - law.mean()) / law.std()
        if law.mean() > 1e-3:
            assert discrete_fit(values, law, int(law.mean() + 12 * law.std() + 12)) > ALARM / 15
    else:
        deviation = np.sqrt(trials * chance * (1 - chance))
        scaled = (values - trials * chance) / deviation
        assert stats.kstest(scaled, "norm").pvalue > ALARM / 3
    assert abs(scaled.mean()) * np.sqrt(values.size) < stats.norm.isf(ALARM / 15) or trials * chance < 0.1


def test_binomial_extremes():
    assert (sample(binomial_of, 1e15, 0.0, size=10) == 0).all()
    assert (sample(binomial_of, 1e15, 1.0, size=10) == 1e15).all()
    assert (sample(binomial_of, 0, 0.5, size=10) == 0).all()


# ---------------------------------------------------------------- envelopes


def random_posteriors(number: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    counts = np.exp(generator.uniform(0, np.log(3000), (number, 4))).astype(np.int64)
    counts[generator.random((number, 4)) < 0.2] = 1
    return counts


@njit
def accepted_share(stream, a, b, c, d, level, classical, trials):
    tangent = envelope.tangent(a, b, c, d, level, classical)
    accepted = 0
    for _ in range(trials):
        ratio = level * np.exp(draws.exponential(stream) / tangent[2])
        accepted += envelope.accepts(stream, (a, b, c, d), tangent, ratio)
    return accepted


@pytest.mark.deep
@pytest.mark.parametrize("classical", [False, True])
def test_bound_is_above_the_probability_and_acceptance_is_their_quotient(classical):
    generator = np.random.default_rng(7)
    stream = stream_of(8)
    used, tried, kinds, number = 0, 0, set(), 60 if DEEP == 1 else 150
    for a, b, c, d in random_posteriors(number, 9).astype(float):
        mean = a / (a + b) if classical else a / (a + b) * (c + d) / c
        spread = np.sqrt(b / (a * (a + b + 1)) + (0 if classical else d / (c * (c + d + 1))))
        level = float(mean * np.exp(spread * generator.uniform(0, 5)))
        kind, log_bound, *_ = envelope.tangent(a, b, c, d, level, classical)
        if kind == envelope.NO_TANGENT or log_bound > 2.0:  # a bound of e² says nothing
            continue
        used += 1
        kinds.add(int(kind))
        chance = exceedance(a, b, c, d, level, classical)
        assert chance <= np.exp(min(log_bound, 700.0)) * (1 + 1e-6) + 1e-13, (a, b, c, d, level)
        if chance > 1e-7:
            tried += 1
            accepted = accepted_share(stream.ctypes.data, a, b, c, d, level, classical, 40_000)
            found = stats.binomtest(int(accepted), 40_000, min(1.0, chance / np.exp(log_bound)))
            assert found.pvalue > ALARM / 400, (a, b, c, d, level, found)
    assert used > number / 3
    assert tried > number / 6
    assert kinds == ({3} if classical else {1, 2})


@pytest.mark.deep
@pytest.mark.parametrize("classical", [False, True])
def test_shortfall_bound_and_its_monotonicity(classical):
    generator = np.random.default_rng(17)
    for a, b, c, d in random_posteriors(100, 19).astype(float):
        mean = a / (a + b) if classical else a / (a + b) * (c + d) / c
        level = float(mean * np.exp(-generator.uniform(0, 1.5)))
        tilt = envelope.shortfall_tilt(a, b, c, d, level, classical)
        if tilt <= 0:
            continue
        bound = envelope.log_shortfall(a, b, c, d, level, tilt, classical)
        below = 1.0 - exceedance(a, b, c, d, level, classical)
        assert below <= np.exp(bound) * (1 + 1e-6) + 1e-9
        for change, direction in (((0, 1, 0, 0), 1), ((0, 0, 1, 0), 1), ((1, 0, 0, 0), -1), ((0, 0, 0, 1), -1)):
            moved = envelope.log_shortfall(*(np.array([a, b, c, d]) + change), level, tilt, classical)
            assert direction * (moved - bound) >= -1e-9


def test_bounds_are_tight_where_costs_are_always_one():
    # The density of the log cost is a straight line there: its tangent goes on beyond a cost of 1, where nothing is.
    for a, b, level in ((1, 50, 0.2), (20, 60, 0.45), (300, 200, 0.66), (2, 900, 0.01)):
        trials = float(a + b - 2)
        _kind, log_bound, *_ = envelope.tangent(float(a), float(b), trials + 1.0, 1.0, level, False)
        assert 0.0 <= log_bound - np.log(exceedance(a, b, trials + 1.0, 1.0, level)) < 0.7


def test_bounds_at_counts_of_a_billion():
    # P is known here from the normal limit to a few percent; the loss of a digit would show as garbage.
    scale = 1e9
    a, b, c, d = 0.4 * scale, 0.6 * scale, 0.5 * scale, 0.5 * scale
    spread = np.sqrt(b / (a * scale) + d / (c * scale))
    for deviations in (2.0, 4.0, 6.0):
        _kind, log_bound, *_ = envelope.tangent(a, b, c, d, 0.8 * np.exp(deviations * spread), False)
        chance = stats.norm.sf(deviations)
        assert 1.0 <= np.exp(log_bound) / chance < 1.6
        level = 0.8 * np.exp(-deviations * spread)
        tilt = envelope.shortfall_tilt(a, b, c, d, level, False)
        assert 1.0 <= np.exp(envelope.log_shortfall(a, b, c, d, level, tilt, False)) / chance < 25.0


def test_extreme_bounds_stay_finite():
    for counts in ((1, 10**15, 10**15, 1), (10**15, 1, 1, 10**15), (1, 1, 10**12, 1), (1, 1, 1, 1)):
        for level in (1e-6, 0.5, 1.0, 3.0, 1e9):
            kind, log_bound, slope, _x, _y = envelope.tangent(*map(float, counts), level, False)
            assert kind == 0 or (slope > 0 and np.isfinite(log_bound))


# ---------------------------------------------------------------- one round at frozen counts

CONTEST = np.array([[30, 70, 40, 60], [28, 60, 45, 55], [8, 20, 9, 18], [3, 4, 5, 2], [1, 6, 2, 5], [2, 1, 3, 1]])
LEADING = np.array([[300, 200, 150, 350], [30, 40, 30, 40], [12, 14, 13, 12], [3, 7, 4, 5], [2, 9, 3, 3], [5, 1, 5, 2]])
WITH_POOL = np.array([[30, 10, 5, 40], [1, 1, 1, 1], [2, 5, 2, 3], [1, 1, 1, 1], [1, 1, 1, 1], [4, 2, 1, 3]])
REWARDS = np.array([[300, 200, 1, 1], [24, 30, 1, 1], [9, 12, 1, 1], [3, 5, 1, 1], [8, 11, 1, 1], [4, 6, 1, 1]])

# Costs that are always 1.
CERTAIN = np.array([[300, 200, 499, 1], [24, 30, 53, 1], [9, 12, 20, 1], [3, 5, 7, 1], [8, 11, 18, 1], [4, 6, 9, 1]])
CERTAIN_PAIR = np.array([[150_000, 50_000, 199_999, 1], [299_400, 100_600, 399_999, 1], [70, 40, 109, 1]])

# Two hot arms that are sketched, and two cold ones that are about as good.
TIE = np.array([[15000, 5000, 7000, 13000], [29600, 10400, 13800, 26200], [260, 100, 142, 248], [30, 30, 20, 32]])

# Two hot arms with so many pulls that they are pulled in stretches, and a cold one whose alarms break these.
PAIR = np.array([[150_000, 50_000, 70_000, 130_000], [296_000, 104_000, 138_000, 262_000], [155, 45, 97, 103]])
UNEVEN_PAIR = np.array([PAIR[0], [1_480_000, 520_000, 687_000, 1_313_000], PAIR[2]])
REWARD_PAIR = np.array([[150_000, 50_000, 1, 1], [299_400, 100_600, 1, 1], [70, 40, 1, 1]])
# The same with a cold arm that wins often enough to show a bias of its alarms.
BROKEN_PAIR = np.array([[100_000] * 4, [100_000, 100_300, 100_000, 100_000], [20, 40, 30, 30]])

FROZEN = {
    # name: (posterior, classical, settings, counters that must be large)
    "all_hot": (CONTEST, False, {"level": 1.0, "hot_above": 1e-12, "blocks": False}, ["hot_draws"]),
    "rings": (CONTEST, False, {"level": 1.1, "blocks": False}, ["rings", "accepted", "fallbacks"]),
    "rings_only": (CONTEST, False, {"level": 1.6, "hot_above": 0.999, "blocks": False}, ["rings", "fallbacks"]),
    "mostly_fallback": (CONTEST, False, {"level": 4.0, "hot_above": 0.999, "blocks": False}, ["fallbacks"]),
    "blocks": (LEADING, False, {"level": 1.7}, ["block_rings", "duels", "leader_spared"]),
    "blocks_low_level": (LEADING, False, {"level": 1.45, "hot_above": 0.999}, ["block_rings", "leader_spared"]),
    "blocks_coin_only": (LEADING, False, {"level": 1.6, "direct_above": 0.999}, ["duels", "leader_spared"]),
    "blocks_never_coin": (LEADING, False, {"level": 1.7, "direct_above": 1e-30}, ["duels"]),
    "leader_below_level": (
        LEADING, False, {"level": 1.93, "largest_dip": 1.1, "hot_above": 0.75}, ["dips", "dips_below", "fallbacks", "duels"],
    ),
    "leader_coin_below_level": (
        LEADING, False, {"level": 1.85, "largest_dip": 1.1, "direct_above": 0.999, "hot_above": 0.75}, ["dips", "dips_below"],
    ),
    "sketches": (TIE, False, {"level": 2.1}, ["sketched", "rings", "accepted"]),
    "sketches_below_level": (TIE, False, {"level": 2.14, "hot_above": 0.6}, ["sketched", "rings", "fallbacks"]),
    "near_ties": (PAIR, False, {"level": 2.05}, ["stretched", "looks"]),
    "uneven_near_ties": (UNEVEN_PAIR, False, {"level": 2.05}, ["stretched", "looks"]),
    "classical_near_ties": (REWARD_PAIR, True, {"level": 0.735}, ["stretched", "looks"]),
    # Forced re-planning: every alarm is set anew again and again, which must not depend on when it would have rung.
    "restless_near_ties": (BROKEN_PAIR, False, {"level": 0.962, "restless": 400.0}, ["stretched", "looks", "plans"]),
    "restless_uneven_near_ties": (UNEVEN_PAIR, False, {"level": 2.05, "restless": 800.0}, ["stretched", "looks", "plans"]),
    "restless_rings": (CONTEST, False, {"level": 1.1, "blocks": False, "restless": 2000.0}, ["rings", "plans"]),
    "restless_sketches": (TIE, False, {"level": 2.1, "restless": 300.0}, ["sketched", "rings", "plans"]),
    "restless_blocks": (LEADING, False, {"level": 1.7, "restless": 600.0}, ["block_rings", "duels", "plans"]),
    "restless_dips": (
        LEADING, False, {"level": 1.93, "largest_dip": 1.1, "hot_above": 0.75, "restless": 3000.0}, ["dips_below", "duels", "plans"],
    ),
    "certain_costs": (CERTAIN, False, {"level": 0.64, "blocks": False}, ["rings", "accepted"]),
    "certain_costs_in_blocks": (CERTAIN, False, {"level": 0.56, "hot_above": 0.999}, ["block_rings", "duels"]),
    "certain_costs_in_near_ties": (CERTAIN_PAIR, False, {"level": 0.735}, ["stretched", "looks"]),
    "pool": (WITH_POOL, False, {"level": 8.0}, ["hot_draws", "rings", "fallbacks"]),
    "classical_rings": (REWARDS, True, {"level": 0.62, "blocks": False}, ["rings", "accepted"]),
    "classical_fallback": (REWARDS, True, {"level": 0.8, "blocks": False, "hot_above": 0.999}, ["rings", "fallbacks"]),
    "classical_blocks": (REWARDS, True, {"level": 0.55, "hot_above": 0.999}, ["block_rings", "duels"]),
    "classical_below": (REWARDS, True, {"level": 0.595, "largest_dip": 1.1, "hot_above": 0.9}, ["dips_below", "fallbacks"]),
}  # fmt: skip


LONGER = {"blocks_coin_only": 30_000_000, "restless_near_ties": 10_000_000}
"""Rounds of `make deep` where a branch is rare or a bias was small."""


TEMPERED = {"rings": 1.5, "leader_below_level": 0.6}
"""Cases that are played once more with trials that weigh so much, at whose parameters each branch is still taken."""


@functools.cache
def probabilities(counts: bytes, classical: bool, kappa: float) -> np.ndarray:
    """Quadrature takes seconds, and several cases share a posterior."""
    trials = np.frombuffer(counts, dtype=np.int64).reshape(-1, 4) - 1
    return selection_probabilities(1.0 + kappa * trials, classical)


EACH_BRANCH = (
    "rings", "mostly_fallback", "blocks", "leader_below_level", "sketches", "near_ties", "restless_near_ties",
    "certain_costs_in_blocks", "pool", "classical_below",
)  # fmt: skip
"""The cases of `make test`: each branch of a round is taken in one of them."""


@pytest.mark.parametrize(
    ("name", "kappa"),
    [*mostly_deep([(name, 1.0) for name in FROZEN], [(name, 1.0) for name in EACH_BRANCH]), *deep(*TEMPERED.items())],
    ids=[*FROZEN, *(f"{name}, tempered" for name in TEMPERED)],
)
def test_frozen_round(name, kappa):
    posterior, classical, settings, needed = FROZEN[name]
    rounds = 1_000_000 if DEEP == 1 else LONGER.get(name, 6_000_000)
    arms = len(posterior)
    laws = bernoulli(np.zeros(arms), np.ones(arms))
    results = simulate_runs(
        laws, [rounds], 1, 11, classical=classical, posterior=posterior, frozen=True,
        settings=Settings(planning=False, **settings), kappa=kappa,
    )  # fmt: skip
    for counter in needed:
        assert results.counters[counter][0] > 5_000, (counter, results.counters[counter][0])
    observed = results.pulls[0, 0]
    assert observed.sum() == rounds
    expected = rounds * probabilities(posterior.tobytes(), classical, kappa)
    assert expected.min() > 20
    assert stats.chisquare(observed, expected).pvalue > ALARM, (observed - expected) / np.sqrt(expected)


@njit
def window_of(games, level, window):
    """(pulls, tilt, bound): what the first arm's window promises."""
    game = games[0]
    game.leader, game.level, game.window = 0, level, window
    open_window(game)
    return game.window_left, game.tilt, game.log_ceiling


@pytest.mark.deep
@pytest.mark.parametrize("kappa", [0.3, 1.0, 2.5])
def test_a_window_bounds_the_leader_whatever_its_pulls_bring(kappa):
    generator = np.random.default_rng(23)
    for counts in random_posteriors(60, 29):
        run = Run(bernoulli([0.5], [0.5]), np.array([9.0]), False, Settings(), counts[None], kappa=kappa)
        run.clear(np.arange(8, dtype=np.uint64))
        a, b, c, d = 1.0 + kappa * (counts - 1.0)
        level = float(a / (a + b) * (c + d) / c * np.exp(-generator.uniform(0, 1.5)))
        pulls, tilt, bound = window_of(run.game, level, np.int64(generator.integers(1, 40)))
        if tilt == 0.0:
            continue
        for _ in range(20):
            played = generator.integers(0, pulls + 1)
            won, paid = generator.integers(0, played + 1, 2) * generator.integers(0, 2, 2)
            paid = played - paid  # nothing won and everything paid, the worst, in a quarter of the draws
            after = (a + kappa * won, b + kappa * (played - won), c + kappa * paid, d + kappa * (played - paid))
            assert envelope.log_shortfall(*after, level, tilt, False) <= bound + 1e-9


# ---------------------------------------------------------------- whole games against the plain loop


def compare(first, second) -> None:
    """Means and distributions of pulls, rounds, reward and spend at every budget; Bonferroni over all of them."""
    lines = []
    for place in range(first.budgets.size):
        for arm in range(first.pulls.shape[2]):
            lines.append((first.pulls[:, place, arm], second.pulls[:, place, arm], f"pulls of {arm} at {place}"))
        for name in ("rounds", "reward", "spend"):
            lines.append((getattr(first, name)[:, place], getattr(second, name)[:, place], f"{name} at {place}"))
    rate = ALARM / (2 * len(lines))
    for mine, theirs, label in lines:
        mine, theirs = mine.astype(float), theirs.astype(float)
        spread = np.sqrt(mine.var() / mine.size + theirs.var() / theirs.size)
        if spread == 0:
            assert mine.mean() == theirs.mean(), label
            continue
        assert abs(mine.mean() - theirs.mean()) / spread < stats.norm.isf(rate / 2), (
            label, mine.mean(), theirs.mean(), spread,
        )  # fmt: skip
        assert stats.ks_2samp(mine, theirs, method="asymp").pvalue > rate, label


def lattice_laws(arms: int, seed: int) -> FiniteLaws:
    generator = np.random.default_rng(seed)
    support = np.arange(5)
    return FiniteLaws(
        np.tile(support / 4, (arms, 1)),
        generator.dirichlet(np.ones(5), arms),
        np.tile(support, (arms, 1)),
        generator.dirichlet(np.ones(5), arms),
        step=0.25,
    )


# n games of the engine and m of the plain loop tell as much as nm/(n + m) games against a known law: here 1,667 or 1,000,
# and eight times as many in `make deep`. They are shared out by how long a game of each takes.
BALANCED, FEWER, BY_ENGINE = (3_000, 3_750), (1_800, 2_250), (5_000, 2_500)
GAMES = {
    # name: (laws, budgets, runs of the engine, runs of the plain loop, classical)
    "near_tie": (bernoulli([0.5, 0.51], [0.5, 0.5]), [20, 200, 1000], *BALANCED, False),
    "clear_winner": (bernoulli([0.9, 0.5, 0.3], [0.4, 0.5, 0.6]), [10, 100, 500], *BY_ENGINE, False),
    "ten_arms": (bernoulli(np.linspace(0.2, 0.9, 10), np.linspace(0.9, 0.5, 10)), [1, 30, 300], *BALANCED, False),
    "certain_costs": (bernoulli([0.6, 0.55, 0.3, 0.2], [1.0] * 4), [10, 100, 500], *BALANCED, False),
    "lattice_fifty": (lattice_laws(50, 3), [1, 7.3, 30, 60.1], 3_000, 1_500, False),
    "lattice_two": (lattice_laws(2, 4), [0.25, 1.1, 50, 200.6], *BALANCED, False),
    "tiny_cost": (bernoulli([0.5, 0.5, 0.9], [0.02, 0.5, 0.9]), [3, 20], *FEWER, False),
    "all_equal": (bernoulli([0.5] * 6, [0.5] * 6), [20, 200], *BALANCED, False),
    "edges": (bernoulli([0.0, 1.0, 0.5, 1.0], [1.0, 1.0, 0.3, 0.6]), [5, 100.5], *BALANCED, False),
    "classical": (bernoulli([0.5, 0.6, 0.7], [0.2, 0.5, 0.9]), [10, 100, 300], *BALANCED, True),
    "classical_lattice": (lattice_laws(8, 6), [10.1, 100], *FEWER, True),
}


@pytest.mark.deep  # in `make test`, test_agreement plays whole games
@pytest.mark.parametrize("name", GAMES)
def test_games(name):
    laws, budgets, runs, naive, classical = GAMES[name]
    engine = simulate_runs(laws, budgets, DEEP * runs, 21, classical=classical)
    compare(engine, naive_runs(laws, budgets, DEEP * naive, 22, classical))
    if name in ("near_tie", "clear_winner", "tiny_cost", "classical", "lattice_two"):
        assert engine.counters["block_rings"].sum() > 100


@pytest.mark.deep
def test_blocks_that_would_pass_a_budget():
    # No caution: the number of costs in a stretch often exceeds the room and the stretch is walked pull by pull.
    laws = bernoulli([0.9, 0.1], [0.3, 0.9])
    budgets = [70, 100, 300, 700]
    engine = simulate_runs(laws, budgets, DEEP * 4_000, 31, settings=Settings(caution=-2.0))
    compare(engine, naive_runs(laws, budgets, DEEP * 3_000, 32))


@pytest.mark.deep
@pytest.mark.parametrize("caution", [6.0, 0.3])
def test_rounds_of_one_arm_are_negative_binomial(caution):
    # Without caution half of the stretches hold too many costs and are walked pull by pull.
    settings = Settings(planning=False, level=0.001, caution=caution)
    budgets = [150, 400, 400.5, 1000]
    results = simulate_runs(
        bernoulli([0.5], [0.3]), budgets, 10_000, 33, settings=settings,
        posterior=np.array([[50, 50, 30, 70]]),
    )  # fmt: skip
    assert results.counters["settlements"].mean() < 100
    for place, costs in enumerate((150, 400, 401, 1000)):
        free = results.rounds[:, place] - costs
        law = stats.nbinom(costs, 0.3)
        assert discrete_fit(free, law, int(law.mean() + 9 * law.std())) > ALARM / 8
        counted = results.rounds[:, place] - (place == 2)
        scaled = (results.reward[:, place] - 0.5 * counted) / np.sqrt(0.25 * counted)
        assert abs(scaled.mean()) * 100 < stats.norm.isf(ALARM / 8)
        assert abs((scaled**2).mean() - 1) * 100 / np.sqrt(2) < stats.norm.isf(ALARM / 8)


@pytest.mark.deep
@pytest.mark.parametrize("lattice", [False, True])
def test_buffered_outcomes(lattice):
    laws = lattice_laws(4, 8) if lattice else bernoulli([0.8, 0.5, 0.3], [0.5, 0.5, 0.6])

    up_to = np.cumsum([laws.reward_chances, laws.cost_chances], axis=2)[..., :-1]

    def sampler(arm: int, count: int, generator: np.random.Generator) -> np.ndarray:
        values = (laws.reward_values[arm], laws.cost_steps[arm] * laws.step)
        uniforms = generator.random((2, count))
        return np.stack([values[row][np.searchsorted(up_to[row, arm], uniforms[row])] for row in (0, 1)], axis=1)

    budgets = [5, 40.1, 100]
    engine = simulate_runs(SampledLaws(laws.arms, sampler), budgets, DEEP * 1_500, 41)
    compare(engine, naive_runs(laws, budgets, DEEP * 3_000, 42))


@pytest.mark.deep
def test_plain_loop_against_numpy():
    rewards, costs = np.array([0.8, 0.5, 0.3]), np.array([0.5, 0.5, 0.6])
    for classical in (False, True):
        plain = naive_runs(bernoulli(rewards, costs), [30], DEEP * 4_000, 51, classical)
        pulls, rounds = numpy_runs(rewards, costs, 30, DEEP * 500, np.random.default_rng(52), classical)
        for arm in range(3):
            assert stats.ks_2samp(plain.pulls[:, 0, arm], pulls[:, arm], method="asymp").pvalue > ALARM / 8
        assert stats.ks_2samp(plain.rounds[:, 0], rounds, method="asymp").pvalue > ALARM / 8


# ---------------------------------------------------------------- rules, edges, reproducibility


def test_a_smaller_budget_alone_gives_the_same_law_and_accounts_add_up():
    laws = lattice_laws(5, 12)
    budgets = [0.1, 0.25, 3.1, 10, 10, 100.3]
    results = simulate_runs(laws, budgets, 2_000, 61)
    assert (results.pulls.sum(axis=2) == results.rounds).all()
    assert (results.spend <= np.array(budgets) + 1e-9).all()
    assert (results.spend > np.array(budgets) - 1.0 - 1e-9).all()
    assert (results.spend[:, 0] == 0).all()
    assert (results.pulls[:, 3] == results.pulls[:, 4]).all()
    alone = simulate_runs(laws, [3.1], 2_000, 62)
    assert stats.ks_2samp(alone.rounds[:, 0], results.rounds[:, 2], method="asymp").pvalue > ALARM


def test_whole_and_broken_budgets_of_bernoulli_arms():
    results = simulate_runs(bernoulli([1.0, 1.0], [0.5, 0.5]), [3.0, 3.5], DEEP * 4_000, 63)
    # Reward 1 a pull: at 3 the last pull counts; at 3.5 the game goes on to the fourth cost, which does not count.
    assert (results.reward[:, 0] == results.rounds[:, 0]).all()
    assert (results.reward[:, 1] == results.rounds[:, 1] - 1).all()
    assert (results.spend == 3.0).all()
    extra = results.rounds[:, 1] - results.rounds[:, 0]
    assert discrete_fit(extra, stats.geom(0.5), 40) > ALARM


def test_workers_and_order_do_not_matter():
    laws = bernoulli(np.linspace(0.1, 0.9, 5), np.linspace(0.9, 0.2, 5))
    one = simulate_runs(laws, [10, 300], 40, 71)
    two = simulate_runs(laws, [300, 10], 40, 71, workers=3)
    assert (one.pulls == two.pulls[:, ::-1]).all()
    assert (one.reward == two.reward[:, ::-1]).all()


def two_values(arm: int, count: int, generator: np.random.Generator) -> np.ndarray:
    return np.stack([generator.random(count), generator.integers(1, 3, count) / 2.0], axis=1)


@pytest.mark.parametrize(
    "laws", [bernoulli([0.5, 0.51], [0.5, 0.5]), lattice_laws(70, 3), SampledLaws(40, two_values)],
    ids=["near tie", "many arms", "sampled"],
)  # fmt: skip
def test_a_record_that_has_been_played_plays_as_a_new_one(laws):
    together = simulate_runs(laws, [10, 2000], 3, [5, 6, 7])
    for place, seed in enumerate([5, 6, 7]):
        alone = simulate_runs(laws, [10, 2000], 1, [seed])
        for name in ("pulls", "reward", "spend", "rounds"):
            assert np.array_equal(getattr(together, name)[place], getattr(alone, name)[0]), name
        for name, counted in together.counters.items():
            assert counted[place] == alone.counters[name][0], name


def test_a_million_arms():
    laws = bernoulli(*np.random.default_rng(81).uniform(0.1, 1, (2, 1_000_000)))
    results = simulate_runs(laws, [2_000], 1, 82)
    assert results.pulls.sum() == results.rounds.sum()


def test_huge_budgets_and_counts():
    results = simulate_runs(bernoulli([0.9, 0.2], [0.001, 0.9]), [1, 10**9, 10**13, 2**49], 2, 83)
    assert (results.spend == [1, 10**9, 10**13, 2**49]).all()
    assert (results.rounds[:, -1] > 2**58).all()
    # The relative deviation of the rounds is 1 / sqrt(2^49) = 4e-8.
    assert (np.abs(results.rounds[:, -1] * 0.001 / 2**49 - 1) < 4e-7).all()


def test_one_arm():
    results = simulate_runs(bernoulli([0.5], [0.5]), [1, 1000.5], 200, 86)
    assert (results.pulls[:, :, 0] == results.rounds).all()


@pytest.mark.parametrize("classical", [False, True])
def test_certain_means(classical):
    results = simulate_runs(bernoulli([1.0, 0.0, 1.0], [1.0, 1.0, 1.0]), [100_000], 5, 84, classical=classical)
    assert (results.rounds == 100_000).all()
    assert (results.pulls[:, 0, 1] < 1000).all()
    nothing = simulate_runs(bernoulli([0.0, 0.0], [1.0, 1.0]), [20_000], 3, 85, classical=classical)
    assert (nothing.reward == 0).all()


def test_a_game_too_long_to_count_is_refused():
    problem = Problem.bernoulli([0.9, 0.2], [0.001, 0.9])
    with pytest.raises(BadParameter, match="2\\^60 rounds"):
        simulate(problem, BudgetedThompson(), [2.0**56], runs=1)
