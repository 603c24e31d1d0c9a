"""Exact Gittins indices and Bayes-optimal games: by hand, and by plain recursion over histories."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from budgetbandits.numerics.divergence import relative_entropy
from budgetbandits.numerics.stopping import allowed_evidence
from budgetbandits.plugins import run_file
from budgetbandits.policies import Knowledge, parse_policy
from quadrature import exceedances

pytestmark = pytest.mark.deep  # what the benchmark compiles takes longer than all other tests of benchmarks

bayes = run_file(Path(__file__).parents[2] / "benchmarks/bayes_optimal.py")


# --- indices ---------------------------------------------------------------------------------------------------------


def test_exact_indices_come_to_the_boundary_as_pulls_grow():
    """With few pulls the steps of a walk are coarse, and the exact index ends a trial earlier."""
    horizon = 400
    shares = []
    for count in (1, 5, 30, 200):
        index = bayes.exact_index(count, count, horizon)
        evidence = 2 * count * float(relative_entropy(0.5, index))
        shares.append(evidence / float(allowed_evidence(2 * count / (2 * count + horizon))))
    assert shares == sorted(shares)
    assert 0.4 < shares[0] < 0.55  # 0.480
    assert 0.9 < shares[-1] < 1.0  # 0.920


def test_exact_indices_worked_by_hand():
    assert bayes.exact_index(3, 1, 1) == pytest.approx(3 / 4, abs=1e-8)  # no pull follows: the mean
    assert bayes.exact_index(1, 1, 2) == pytest.approx(5 / 9, abs=1e-8)  # ½ − λ + ½(⅔ − λ) = 0
    # ½ − λ + ½(⅔ − λ + ⅔(¾ − λ)) = 0: after a failure it stops, after a success and a failure too
    assert bayes.exact_index(1, 1, 3) == pytest.approx(13 / 22, abs=1e-8)


ARMS = (0, 0), (1, 0), (0, 1), (1, 1), (0, 3), (3, 0), (5, 5), (1, 9), (9, 1), (0, 9), (20, 20), (4, 36), (36, 4)


@pytest.mark.parametrize(("good", "bad"), ARMS)
@pytest.mark.parametrize("longest", [60, 300])
def test_the_boundary_is_too_high_for_few_pulls_and_the_shift_of_a_walk_makes_up_for_it(good, bad, longest):
    exact, plain, wide, shifted = (
        np.array([function(good + 1, bad + 1, horizon, *rule) for horizon in (1, 2, 5, 20, longest)])
        for function, *rule in (
            (bayes.exact_index,),
            (bayes.closed_index, 1.0),
            (bayes.closed_index, 1.25),
            (bayes.closed_index, 1.0, bayes.STEP_SHIFT),
        )
    )
    for index in (exact, plain, wide, shifted):
        assert (np.diff(index) > 0.0).all()  # more pulls left, more to gain from a trial
    assert (wide > plain).all()
    assert (plain > exact).all()
    assert (plain / exact < 1.31).all()
    if good == bad >= 5:  # by a share of what one pull does to the mean: 0.58 for normal outcomes, ½ for a fair coin
        share = (plain - exact) * (good + bad + 2) / np.sqrt(exact * (1.0 - exact))
        assert ((share > 0.48) & (share < 0.68)).all()
    assert ((shifted / exact > 0.99) & (shifted / exact < 1.041)).all()


# --- games -----------------------------------------------------------------------------------------------------------


def by_recursion(budget, pulls, choose):
    """The same value as `game_value`, in fractions, state by state from the first; ``choose`` None for the best."""

    @cache
    def value(first, second):
        left = budget - first[2] - second[2]
        if left == 0:
            return Fraction(0)
        if first[0] + second[0] == pulls:
            return left * max(Fraction(s + 1, c + 1) for _, s, c in (first, second))
        worth = [pulled(first, lambda arm: value(arm, second)), pulled(second, lambda arm: value(first, arm))]
        if choose is None:
            return max(worth)
        share = choose(first, second)
        return share * worth[0] + (1 - share) * worth[1]

    def pulled(arm, later):
        n, s, c = arm
        good, paid = Fraction(s + 1, n + 2), Fraction(c + 2, n + 3)
        return good + sum(
            (good if hit else 1 - good) * (paid if cost else 1 - paid) * later((n + 1, s + hit, c + cost))
            for hit in (0, 1)
            for cost in (0, 1)
        )

    return float(value((0, 0, 0), (0, 0, 0)))


class FirstOrLast:
    """In the place of a generator: draws the first of several equals, or the last."""

    def __init__(self, place):
        self.place = place

    def integers(self, count):
        return range(count)[self.place]


def as_it_plays(policy, budget):
    """The chance of the first arm, from a state that the policy has learned by itself."""

    def choose(first, second):
        rng = np.random.default_rng(5)
        state = policy.start(2, Knowledge(budget=float(budget)))
        for arm, (n, s, c) in enumerate((first, second)):
            for pull in range(n):
                policy.observe(state, arm, float(pull < s), float(pull < c), rng)
        # of two that tie, one and the other; the first choice may be one of those without which no index is looked at
        chosen = {policy.choose(state, FirstOrLast(place)) for place in (0, 0, -1)}
        return Fraction(1, 2) if len(chosen) == 2 else Fraction(int(chosen == {0}))

    return choose


def test_a_game_with_one_pull_and_one_coin_worked_by_hand():
    # E[r] + E[1 − c] · E[r/c | what was seen]: after a success that cost nothing the arm is worth 2, otherwise the
    # other is worth 1, and both means are ½ and ⅔
    assert bayes.game_value(1, 1, None) == pytest.approx(1 / 2 + 1 / 3 * (1 / 2 * 2 + 1 / 2 * 1))
    # money for one payment and nothing to learn that would change the arm: one arm for ever, E[r] E[1/c] = ½ · 2
    assert bayes.game_value(1, 12, None) == pytest.approx(1.0)
    assert bayes.game_value(1, 12, bayes.greedy) == pytest.approx(1.0)


@pytest.mark.parametrize(("budget", "pulls"), [(1, 3), (2, 2), (2, 6), (3, 7), (4, 5)])
def test_the_optimum_is_that_of_a_plain_recursion(budget, pulls):
    assert bayes.game_value(budget, pulls, None) == pytest.approx(by_recursion(budget, pulls, None), rel=1e-12)


@pytest.mark.parametrize("spec", ["gittins-ratio", "omega-star-ucb", "gittins-ratio:width=0.5"])
def test_a_policy_is_valued_as_it_plays(spec):
    policy = parse_policy(spec)
    found = bayes.game_value(3, 4, bayes.share_of(policy, 3, 4))
    assert found == pytest.approx(by_recursion(3, 4, as_it_plays(policy, 3)), rel=1e-9)
    assert found == pytest.approx(bayes.game_value(3, 4, lambda *at: bayes.share_of_scores(policy, *at)), rel=1e-12)


class Coupled(type(parse_policy("gittins-ratio"))):
    """An index that looks at the other arm as well: twice as wide while that has no success."""

    name = "coupled"

    def extras(self, state):
        return (*self.prior_extras(state), np.where(state.reward[::-1] > 0.0, self.width, 2.0 * self.width))


def test_an_index_that_looks_at_other_arms_is_not_tabulated():
    policy = Coupled()
    found = bayes.game_value(3, 4, bayes.share_of(policy, 3, 4))
    assert found == pytest.approx(by_recursion(3, 4, as_it_plays(policy, 3)), rel=1e-9)
    assert found != pytest.approx(bayes.game_value(3, 4, bayes.share_of(parse_policy("gittins-ratio"), 3, 4)), rel=1e-6)


def test_the_laws_of_ratios_and_the_choices_of_bts():
    mass, below = bayes.ratio_laws(9, 6, ((1.0, 1.0), (1.0, 1.0)))
    level = np.exp(bayes.CELL * (np.arange(2 * bayes.CELLS) - bayes.CELLS))
    for n, s, c in [(0, 0, 0), (1, 0, 1), (4, 4, 0), (9, 2, 5)]:
        assert mass[n, s, c].sum() == pytest.approx(1.0, abs=1e-5)
        exact = 1.0 - exceedances(s + 1.0, n - s + 1.0, c + 1.0, n - c + 1.0, level[200:440])
        assert below[n, s, c][200:440] == pytest.approx(exact, abs=2e-3)
    # θ/θ′ ~ U/U′ against itself, and against a law that is surely larger in one coordinate
    states = np.array([[2, 1, 1, 2, 1, 1], [0, 0, 0, 1, 1, 0], [1, 1, 0, 0, 0, 0]], dtype=np.int16)
    share = bayes.share_of_draws(states, mass, below)
    assert share[0] == pytest.approx(0.5, abs=1e-5)
    assert share[1] + share[2] == pytest.approx(1.0, abs=1e-5)
    rng = np.random.default_rng(11)
    many = 250_000
    draws = rng.random(many) / rng.random(many) > rng.beta(2, 1, many) / rng.beta(1, 2, many)
    assert share[1] == pytest.approx(draws.mean(), abs=0.005)  # five standard errors: 1e-6 by chance


def test_who_knows_the_means_earns_more_by_forty_by_twenty_seven():
    start = bayes.states_after(0, 1)
    excess = bayes.excess_of(start, *bayes.ratio_laws(0, 1))
    assert 1.0 + excess[0] == pytest.approx(bayes.ORACLE, abs=2e-3)
    best, bound = bayes.game_value(3, 6, None), bayes.game_value(3, 6, None, bound=True)
    assert best < bayes.game_value(3, 12, None) < bayes.game_value(3, 12, None, bound=True) < bound < 3 * bayes.ORACLE


def test_the_shift_leaves_a_tenth_of_what_gittins_ratio_is_above_the_optimum():
    budget, pulls = 5, 24
    best = bayes.game_value(budget, pulls, None)
    kinds = parse_policy("gittins-ratio:width=1,lead=1000"), bayes.ShiftedGittinsRatio(width=1.0, lead=1e3)
    plain, shifted = (best - bayes.game_value(budget, pulls, bayes.share_of(kind, budget, pulls)) for kind in kinds)
    bts = best - bayes.game_value(budget, pulls, bayes.share_of(parse_policy("bts"), budget, pulls))
    assert 0.0 < shifted < plain / 8
    assert 15 * plain < bts
