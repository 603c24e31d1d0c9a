"""Two hot arms, many rounds at a time: chances, how far they can move, and the law of a stretch.

Seeds are fixed; every statistical test alarms falsely at most once in a million times.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numba import njit
from scipy import special, stats

from budgetbandits.simulation.engines.runtime.draws import new_stream
from budgetbandits.simulation.engines.thompson import near_tie_chances, near_ties
from budgetbandits.simulation.engines.thompson.engine import FiniteLaws, Settings
from budgetbandits.simulation.engines.thompson.state import ThompsonRecord
from engine_runs import bernoulli, simulate_runs
from quadrature import selection_probabilities

pytestmark = pytest.mark.deep

ALARM = 1e-6


def game_of(counts: np.ndarray, classical: bool, **fields: float) -> np.ndarray:
    """A game of two arms with these counts, which the caller keeps alive."""
    game = np.zeros(1, ThompsonRecord.layout)
    game["posterior_at"] = counts.ctypes.data
    game["classical"] = classical
    game["kappa"] = 1.0
    for name, value in fields.items():
        game[name] = value
    return game


def of_counts(function):
    """A function of a game, called with the counts of two arms instead."""

    @njit
    def call(games, *arguments):
        return function(games[0], *arguments)

    return lambda counts, classical, *arguments, **fields: call(game_of(counts, classical, **fields), *arguments)


of_chance, of_chance_in_full, of_window, of_outlook, of_pulls = map(
    of_counts,
    (
        *(near_tie_chances.chance_to_win, near_tie_chances.chance_in_full, near_tie_chances.pulls_above),
        *(near_tie_chances.look_ahead, near_tie_chances.pulls_near),
    ),
)


def chance_to_win(counts, classical):
    return of_chance(counts, classical, 0, 1)


def chance_in_full(counts, classical):
    return of_chance_in_full(counts, classical, 0, 1)


def window(counts, level, classical):
    return of_window(counts, classical, 0, 1, level, near_ties_from=1000.0)


@njit
def looks(games, low, high, size):
    """How often the first arm wins a round that is looked at."""
    wins = 0
    for _ in range(size):
        near_ties.look_at_the_tie(games[0], 0, 1, low, high)
        wins += games[0].pending_slot == 0
    return wins


def stream_of(seed: int) -> np.ndarray:
    return new_stream(np.random.SeedSequence(seed).generate_state(4, np.uint64))


KINDS = ("ratios", "rewards", "certain_costs", "few_failures")
"""Of near ties: both counted, Thompson sampling on rewards alone, costs that are always 1, means close to 1."""


def near_ties_of(number: int, smallest: float, largest: float, seed: int, kind: str = "ratios") -> list[np.ndarray]:
    """Counts of two arms whose ratios are a few deviations apart, unevenly often pulled."""
    generator = np.random.default_rng(seed)
    found = []
    while len(found) < number:
        between = (0.95, 0.995) if kind == "few_failures" else (0.05, 0.95)
        reward, cost = generator.uniform(*between, 2), generator.uniform(*between, 2)
        if kind in ("rewards", "certain_costs"):
            reward[1] = reward[0]
        cost[1] = cost[0] * reward[1] / reward[0]
        if not 0.03 < cost[1] < 0.997:
            continue
        shares = np.stack([reward, 1.0 - reward, cost, 1.0 - cost], axis=1)
        least = np.exp(generator.uniform(np.log(smallest), np.log(largest), 2))
        counts = shares * (least / shares.min(axis=1))[:, None]
        # off the tie by up to three deviations of the arm that is known less well
        counts[:, 0 if kind in ("rewards", "certain_costs") else 2] *= np.exp(
            generator.uniform(-1.5, 1.5, 2) / np.sqrt(counts.min())
        )
        if kind == "certain_costs":
            counts[:, 2:] = np.stack([counts[:, 0] + counts[:, 1], np.ones(2)], axis=1)
        found.append(np.rint(counts).astype(np.int64))
    return found


# ---------------------------------------------------------------- the chance


def test_the_quick_chance_is_within_its_error():
    used = []
    for kind in KINDS:
        classical = kind == "rewards"
        for counts in near_ties_of(200, 1_000, 1e8, 1, kind):
            quick, _, _, skewness, fourth = chance_to_win(counts, classical)
            used.append(
                abs(quick - chance_in_full(counts, classical)) / near_tie_chances.largest_error(skewness, fourth)
            )
    assert max(used) <= 1.0
    assert max(used) > 0.2  # the bound is not idle


def test_the_chance_in_full_for_rewards_alone_is_a_finite_sum():
    # P(θ₁ > θ₂) for whole parameters, by repeated partial integration
    for counts in near_ties_of(30, 1_000, 30_000, 2, "rewards"):
        (a, b, _, _), (c, d, _, _) = counts.tolist()
        j = np.arange(a)
        terms = special.betaln(c + j, b + d) - np.log(b + j) - special.betaln(1 + j, b) - special.betaln(c, d)
        exact = np.exp(terms).sum()
        assert chance_in_full(counts, True) == pytest.approx(exact, abs=3e-9)  # betaln's own error, times 1e4 terms


def test_the_chance_in_full_against_quadrature():
    for counts in near_ties_of(6, 1_000, 5_000, 3) + near_ties_of(2, 1_000, 5_000, 3, "certain_costs"):
        exact = selection_probabilities(counts)[0]
        assert chance_in_full(counts, False) == pytest.approx(exact, abs=2e-7)


# ---------------------------------------------------------------- how far it can move


def after(counts: np.ndarray, corner: tuple[int, ...], pulls: tuple[int, int]) -> np.ndarray:
    """Every pull of an arm has brought the same: the corners are the worst that can happen."""
    moved = counts.copy()
    for arm in range(2):
        moved[arm, 0 if corner[2 * arm] else 1] += pulls[arm]
        moved[arm, 2 if corner[2 * arm + 1] else 3] += pulls[arm]
    return moved


@pytest.mark.parametrize("kind", KINDS)
def test_no_pulls_move_the_chance_farther_than_its_reach(kind):
    # Between any two moments of the window: from its start, from the middle and from close to its end on.
    generator = np.random.default_rng(4)
    used = []
    classical = kind == "rewards"
    for counts in near_ties_of(60, 3_000, 1e7, 5, kind):
        window = tuple(int(of_pulls(counts, classical, slot)) for slot in (0, 1))
        _, _, move_1, move_2, bend, skewest, error = of_outlook(counts, classical, 0, 1, *window)
        if min(window) < 2 or not np.isfinite(error):
            continue
        for before, share in itertools.product((0.0, 0.5, 0.95), (0.05, 0.3, 1.0)):
            gone = tuple(int(pulls * before) for pulls in window)
            start = after(counts, tuple(generator.integers(0, 2, 4)), gone)
            left = window[0] - gone[0], window[1] - gone[1]
            pulls = max(1, int(left[0] * share)), max(1, int(left[1] * share * generator.random()))
            quick, z, *_ = chance_to_win(start, classical)
            per_1, per_2 = near_tie_chances.reach(z, pulls[0], pulls[1], move_1, move_2, bend, skewest)
            reach = error + per_1 * pulls[0] + per_2 * pulls[1]
            for corner in itertools.product((0, 1), repeat=4):
                moved = after(start, corner, pulls)
                used.append(abs(chance_in_full(moved, classical) - quick) / reach)
                # and a state in between
                used.append(abs(chance_in_full((start + moved) // 2, classical) - quick) / reach)
    assert len(used) > 5_000
    assert max(used) <= 1.0
    assert max(used) > 0.9


def test_both_below_the_level_is_out_of_the_question():
    counts = np.array([[150_000, 50_000, 70_000, 130_000], [29_600, 10_400, 13_800, 26_200]])
    ratio = counts[:, 0] / counts[:, :2].sum(axis=1) * counts[:, 2:].sum(axis=1) / counts[:, 2]
    assert window(counts, ratio.min() * 0.99, False) == (0, 0)
    first, second = window(counts, ratio.min() * 0.93, False)
    assert first > 0
    assert second > 0
    for corner in itertools.product((0, 1), repeat=4):
        moved = after(counts, corner, (first, second))
        mean = np.log(moved[:, 0] / moved[:, :2].sum(axis=1) * moved[:, 2:].sum(axis=1) / moved[:, 2])
        spread = np.sqrt((1 / moved[:, [0, 2]] - 1 / (moved[:, [0, 2]] + moved[:, [1, 3]])).sum(axis=1))
        # the normal law, which is close enough so far out
        assert stats.norm.logcdf((np.log(ratio.min() * 0.93) - mean) / spread).sum() < near_tie_chances.LOG_NEVER


# ---------------------------------------------------------------- looks and stretches


@pytest.mark.parametrize("classical", [False, True])
def test_a_round_that_is_looked_at_has_the_chance_of_that_moment(classical):
    counts = np.array([[4_000, 6_000, 3_000, 7_000], [4_100, 5_900, 3_020, 6_980]])
    exact = chance_in_full(counts, classical)
    low, high = exact - 0.07, exact + 0.03
    stream = stream_of(6)
    wins = looks(game_of(counts, classical, stream_at=stream.ctypes.data, error=1e-4), low, high, 1_000_000)
    assert stats.binomtest(int(wins), 1_000_000, (exact - low) / (high - low)).pvalue > ALARM


@njit
def stretches(play, size, *arguments):
    out = np.empty((size, 4))
    for place in range(size):
        out[place, 0], out[place, 1], out[place, 2], out[place, 3] = play(*arguments)
    return out


def winners(outcomes: np.ndarray, chance: float, generator: np.random.Generator) -> tuple[int, int]:
    """(wins of the first arm, rounds) when its chance has not moved at all: a look is won below the chance."""
    won, lost, low, high = outcomes.T
    looked = high > low
    coins = low + (high - low) * generator.random(low.size)
    return int(won.sum() + (looked & (coins < chance)).sum()), int(won.sum() + lost.sum() + looked.sum())


@pytest.mark.parametrize("kind", ["even", "uneven"])
def test_stretches_leave_room_for_what_can_have_moved(kind):
    stream = stream_of(7).ctypes.data
    chance, error, per_1, per_2, rounds = (
        (0.4, 1e-4, 3e-4, 3e-4, 60) if kind == "even" else (0.05, 1e-4, 4e-4, 3e-6, 300)
    )
    if kind == "even":
        played = stretches(near_ties.play_even, 200_000, stream, chance, error, per_1, rounds, rounds)
    else:
        played = stretches(near_ties.play_uneven, 200_000, stream, chance, error, per_1, per_2, 12, rounds, rounds)
    won, lost, low, high = played.T
    assert (won + lost <= rounds).all()
    looked = high > low
    assert 0.2 < looked.mean() < 0.95
    moved = error + per_1 * won[looked] + per_2 * lost[looked]
    assert (low[looked] <= chance - moved + 1e-12).all()
    assert (high[looked] >= chance + moved - 1e-12).all()
    assert (low[looked] >= 0.0).all()
    assert (high[looked] <= 1.0).all()
    # Wald: with a chance that stays what it is, the wins in so many stopped rounds have mean chance * rounds.
    wins, rounds_played = winners(played, chance, np.random.default_rng(8))
    assert abs(wins - chance * rounds_played) < stats.norm.isf(ALARM / 2) * np.sqrt(
        rounds_played * chance * (1 - chance)
    )


# ---------------------------------------------------------------- whole games

STARTS = {
    # about even, and one arm that is pulled in one round of twenty
    "even": [[12_000, 3_000, 6_000, 9_000], [24_000, 6_000, 11_950, 18_050]],
    "uneven": [[11_900, 3_000, 6_000, 8_900], [240_000, 60_000, 118_900, 181_100]],
}


@pytest.mark.parametrize(("start", "law"), [("even", "bernoulli"), ("uneven", "bernoulli"), ("even", "lattice")])
def test_games_with_stretches_have_the_law_of_games_without(start, law):
    rewards, costs = np.array([0.8, 0.8]), np.array([0.4, 0.4])
    if law == "bernoulli":
        laws = bernoulli(rewards, costs)
    else:
        halves = np.tile([0.0, 0.5, 1.0], (2, 1))
        laws = FiniteLaws(
            halves, np.array([[0.1, 0.2, 0.7]] * 2), (2 * halves).astype(np.int64),
            np.array([[0.4, 0.4, 0.2]] * 2), 0.5,
        )  # fmt: skip
    runs, budgets = 1_000, [2_000.0, 6_000.0]
    played = [
        simulate_runs(
            laws,
            budgets,
            runs,
            seed,
            posterior=np.array(STARTS[start]),
            settings=Settings(level=1.6, planning=False, near_ties_from=smallest),
        )
        for seed, smallest in ((9, 1_000.0), (10, np.inf))
    ]
    with_stretches, without = played
    assert with_stretches.counters["stretched"].mean() > 0.8 * with_stretches.rounds[:, -1].mean()
    assert with_stretches.counters["looks"].mean() > 100
    assert without.counters["stretched"].sum() == 0
    rate = ALARM / 16
    for place in range(2):
        for name in ("pulls", "rounds", "reward", "spend"):
            mine, theirs = (getattr(each, name)[:, place].astype(float) for each in played)
            if name == "pulls":
                mine, theirs = mine[:, 0], theirs[:, 0]
            if name == "spend":
                assert mine.mean() == pytest.approx(theirs.mean(), abs=1.0)
                continue
            spread = np.sqrt((mine.var() + theirs.var()) / runs)
            assert abs(mine.mean() - theirs.mean()) < stats.norm.isf(rate / 2) * spread, (name, place)
            assert stats.ks_2samp(mine, theirs, method="asymp").pvalue > rate, (name, place)
