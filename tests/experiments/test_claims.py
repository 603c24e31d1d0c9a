"""Every verdict of every claim comes out of a study made for it: no verdict is out of reach, and none is free."""

from __future__ import annotations

import math
import re
from importlib.resources import files

import pytest

from budgetbandits.experiments.paper import findings, observations
from budgetbandits.experiments.paper.claims import (
    BORNE_OUT,
    DEPENDS,
    NOT_BORNE_OUT,
    PROVEN,
    SAYS_NOTHING,
    UNDECIDED,
    VERDICTS,
    Claim,
    ComparisonCounts,
    count_comparisons,
)
from budgetbandits.experiments.paper.findings import Bounds
from budgetbandits.experiments.paper.observations import Spreads
from made_up import BUDGETS, study

ALL = ComparisonCounts(holds=4)


@pytest.mark.parametrize(
    ("panels", "random", "verdict"),
    [
        (ALL, ComparisonCounts(holds=90, fails=10), BORNE_OUT),
        (ALL, ComparisonCounts(holds=89, fails=11), DEPENDS),
        (ComparisonCounts(holds=3, fails=1), ComparisonCounts(holds=100), DEPENDS),
        (ComparisonCounts(fails=4), ComparisonCounts(holds=50, fails=50), DEPENDS),
        (ComparisonCounts(fails=4), ComparisonCounts(holds=10, fails=90), NOT_BORNE_OUT),
        (ComparisonCounts(fails=4), ComparisonCounts(holds=11, fails=89), DEPENDS),
        (ALL, ComparisonCounts(holds=85, fails=5, undecided=10), UNDECIDED),  # 85 or 95 of 100
        (ALL, ComparisonCounts(holds=20, fails=60, undecided=20), DEPENDS),  # 20 or 40: it depends either way
        (ALL, ComparisonCounts(holds=95, undecided=5), BORNE_OUT),
        (ComparisonCounts(holds=3, undecided=1), ComparisonCounts(holds=100), UNDECIDED),
        (ComparisonCounts(fails=3, undecided=1), ComparisonCounts(fails=100), UNDECIDED),
        (ComparisonCounts(silent=60), ComparisonCounts(silent=120), SAYS_NOTHING),
        (ComparisonCounts(silent=60), ComparisonCounts(holds=5, silent=115), BORNE_OUT),
        (ComparisonCounts(holds=6, silent=54), ComparisonCounts(silent=120), BORNE_OUT),
        (ComparisonCounts(fails=6, silent=54), ComparisonCounts(silent=120), NOT_BORNE_OUT),
        (ComparisonCounts(holds=1, fails=5, silent=54), ComparisonCounts(silent=120), DEPENDS),
    ],
)
def test_verdicts(panels, random, verdict):
    assert Claim("", "", (), panels, random, "").verdict == verdict


def test_what_could_not_fail_does_not_count():
    found = count_comparisons([True, False, False, True], [False, True, False, False], [True, True, True, False])
    assert found == ComparisonCounts(holds=1, fails=1, undecided=1, silent=1)
    assert (found.could_fail, found.comparisons) == (3, 4)
    assert found.text() == "of the 3 comparisons that could fail, out of 4, 1 hold, 1 fail, 1 are undecided."
    assert ComparisonCounts(silent=60).text() == "none of 60 comparisons could fail."
    assert "75 hold (19 % [15 %, 23 %]), 325 fail" in ComparisonCounts(holds=75, fails=325).text()


def of(bts, others, wide=1.0):
    """A study in which BTS has one mean and every other policy another."""
    return lambda problems: study(lambda _g, _p, policy, _b: bts if policy == "bts" else others, wide, problems)


@pytest.mark.parametrize(
    ("panels", "random", "verdict"),
    [
        (of(10, 20), of(10, 20), BORNE_OUT),
        (of(20, 10), of(20, 10), NOT_BORNE_OUT),
        (of(10, 20), of(20, 10), DEPENDS),
        (of(10, 20), of(10, 20, wide=100.0), UNDECIDED),
        (of(10, 20, wide=100.0), of(10, 20), UNDECIDED),
        (of(10, 20, wide=100.0), of(20, 10), UNDECIDED),
    ],
)
def test_who_is_lowest(panels, random, verdict):
    found = observations.lowest(panels(1), random(3))
    assert found.verdict == verdict
    assert found.could_fail == 16


@pytest.mark.parametrize(
    ("panels", "random", "verdict"),
    [
        (of(10, 25), of(10, 25), BORNE_OUT),
        (of(10, 15), of(10, 15), NOT_BORNE_OUT),  # lower, and not by a factor of two
        (of(10, 25), of(10, 15), DEPENDS),
        (of(10, 25), of(10, 25, wide=100.0), UNDECIDED),
    ],
)
def test_who_is_much_better(panels, random, verdict):
    found = observations.much_better(panels(1), random(3))
    assert found.verdict == verdict
    assert found.could_fail == 16
    assert "KUBE 2.50" in found.measured[0] or verdict == NOT_BORNE_OUT


def test_one_rival_within_a_factor_of_two_is_enough():
    def mean(_group, _problem, policy, _budget):
        return {"bts": 10.0, "kube": 15.0}.get(policy, 90.0)

    assert observations.much_better(study(mean), study(mean, problems=2)).panels == ComparisonCounts(fails=4)


def test_the_winner_is_counted_only_where_it_is_sure():
    """On one problem of three KUBE is lowest by far, on one by a hair, on one BTS is."""

    def mean(_group, problem, policy, _budget):
        return {"bts": (50.0, 20.0, 10.0), "kube": (10.0, 19.999, 50.0)}.get(policy, (90.0, 90.0, 90.0))[problem]

    found = observations.lowest(of(10, 20)(1), study(mean, problems=3))
    assert found.random == ComparisonCounts(holds=4, fails=4, undecided=4)
    assert "sure on 8 of 12 (BTS 4, ε-first 0, PD-BwK 0, UCB-BV1 0, KUBE 4)" in found.measured[-1]


def arms(ten, hundred, wide=1.0):
    return lambda problems: study(lambda group, _p, _o, _b: (ten, hundred)[group % 2], wide, problems)


@pytest.mark.parametrize(
    ("panels", "random", "verdict"),
    [
        (arms(10, 20), arms(10, 20), BORNE_OUT),
        (arms(20, 10), arms(20, 10), NOT_BORNE_OUT),
        (arms(10, 20), arms(20, 10), DEPENDS),
        (arms(10, 20), arms(10, 20, wide=100.0), UNDECIDED),
    ],
)
def test_more_arms(panels, random, verdict):
    assert observations.more_arms(panels(1), random(2)).verdict == verdict


def test_one_policy_that_falls_is_enough():
    def mean(group, _problem, policy, _budget):
        return (10.0, 20.0)[(group + (policy == "kube")) % 2]

    found = observations.more_arms(study(mean), study(mean, problems=2))
    assert found.panels == ComparisonCounts(holds=8, fails=2)
    assert found.random == ComparisonCounts(fails=4)
    assert found.verdict == DEPENDS


def growth(shape, wide=0.01):
    return lambda problems: study(lambda _g, _p, _o, budget: 3.0 * shape(budget), wide, problems)


def test_logarithmic_growth_is_distinguished_from_that_of_a_root():
    def line(budget):
        return budget

    def runs_apart(_group, _problem, _policy, budget):
        return 1e6 if budget == BUDGETS[1] else 0.01

    logarithm, straight = growth(math.log), growth(line)
    for panels, random, verdict in (
        (logarithm, logarithm, BORNE_OUT),
        (straight, straight, NOT_BORNE_OUT),
        (logarithm, straight, DEPENDS),
        (logarithm, growth(math.log, runs_apart), UNDECIDED),
    ):
        assert observations.logarithmic(panels(1), random(2)).verdict == verdict


def spread(own, others, policy="bts"):
    """The standard deviation of one policy and of all others; a tenth of the means."""
    return lambda problems: Spreads.of(
        study(100.0, lambda _g, _p, each, _b: own if each == policy else others, problems)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("panels", "random", "verdict"),
    [
        (spread(1, 5), spread(1, 5), BORNE_OUT),
        (spread(5, 1), spread(5, 1), NOT_BORNE_OUT),
        (spread(1, 5), spread(5, 1), DEPENDS),
        (spread(1, 5), spread(1, 1.02), UNDECIDED),
    ],
)
def test_small_standard_deviation(panels, random, verdict):
    assert observations.small_spread(panels(1), random(2)).verdict == verdict


@pytest.mark.parametrize("claim", [observations.epsilon_first_scatters, observations.steadier_than_epsilon_first])
@pytest.mark.parametrize(
    ("panels", "random", "verdict"),
    [
        (5.0, 5.0, BORNE_OUT),
        (1.1, 1.1, NOT_BORNE_OUT),  # larger, but not much
        (5.0, 1.1, DEPENDS),
        (5.0, 2.02, UNDECIDED),
    ],
)
def test_much_larger_is_a_factor(claim, panels, random, verdict):
    first, second = (spread(factor, 1.0, "epsilon-first") for factor in (panels, random))
    assert claim(first(1), second(2)).verdict == verdict


def test_standard_deviations_are_of_the_regret_and_have_an_interval_each():
    results = spread(300.0, 100.0)(1).results
    table = results.table.with_columns(pseudo_regret=0.0)
    found = Spreads.of(type(results)(table, results.record))
    assert found.std[0].tolist() == pytest.approx([300.0, 100.0, 100.0, 100.0, 100.0])
    low, high = (int(end) for end in re.match(r"BTS 300 \[(\d+), (\d+)\], ε-first 100 \[", found.text(0)).groups())
    # the fourth moment of these runs is 1.32 times the squared variance: a standard error of 300 √(0.32/24)/2 = 17
    assert 300 - 4 * 17 < low < 300 - 17
    assert 300 + 17 < high < 300 + 4 * 17


def test_the_largest_of_the_others_is_the_yardstick():
    """ε-first is five times three of the others, and as large as the fourth."""
    wide = Spreads.of(study(100.0, lambda _g, _p, each, _b: 5.0 if each in ("epsilon-first", "kube") else 1.0))
    assert observations.epsilon_first_scatters(wide, wide).panels == ComparisonCounts(fails=4)
    assert observations.steadier_than_epsilon_first(wide, wide).panels == ComparisonCounts(holds=4)


def bounds(upper, trivial, problems=1):
    """The same bound on every problem of a study."""
    records = study(0.0, problems=problems).record["problems"]
    every = {"paper": (upper,) * len(BUDGETS), "sharp": (upper,) * len(BUDGETS)}
    return [
        Bounds(each["group"], each["name"], tuple(BUDGETS), every, (trivial,) * len(BUDGETS), 1.0) for each in records
    ]


@pytest.mark.parametrize("chain", ["paper", "sharp"])
@pytest.mark.parametrize(
    ("regret", "wide", "panels", "random", "verdict"),
    [
        (10.0, 1.0, (20.0, 30.0), (20.0, 30.0), BORNE_OUT),
        (25.0, 1.0, (20.0, 30.0), (20.0, 30.0), NOT_BORNE_OUT),
        (25.0, 1.0, (28.0, 30.0), (20.0, 30.0), DEPENDS),
        (20.0, 9.0, (20.5, 30.0), (20.5, 30.0), UNDECIDED),
        (10.0, 1.0, (31.0, 30.0), (30.0, 30.0), SAYS_NOTHING),  # a bound that is the trivial one says nothing either
        (10.0, 1.0, (31.0, 30.0), (20.0, 30.0), BORNE_OUT),
    ],
)
def test_theorem_one_counts_only_where_its_bound_says_something(chain, regret, wide, panels, random, verdict):
    studies = study(regret, wide), study(regret, wide, problems=2)
    found = findings.theorem_one(chain, studies, (bounds(*panels), bounds(*random, problems=2)))
    assert found.verdict == verdict
    assert found.comparisons == 12 + 24
    assert found.panels.could_fail == (12 if panels[0] < panels[1] else 0)
    assert found.random.could_fail == (24 if random[0] < random[1] else 0)
    assert f"below the trivial bound at {3 if panels[0] < panels[1] else 0} of 3 budgets" in found.measured[0]


@pytest.mark.parametrize(
    ("constants", "verdict", "panels"),
    [
        ([1.0] * 4, PROVEN, ComparisonCounts(silent=4)),
        ([1e9] * 4, NOT_BORNE_OUT, ComparisonCounts(fails=4)),
        ([1.0, 1.0, 1e9, 1.0], NOT_BORNE_OUT, ComparisonCounts(fails=1, silent=3)),
    ],
)
def test_remark_one(constants, verdict, panels, monkeypatch):
    """It is proven, so the constants are made up to see it fail; one failure is enough against a proof."""
    left = iter(constants)
    monkeypatch.setattr(findings, "bts_constant", lambda _: next(left))
    found = findings.remark_one(study(1.0))
    assert (found.verdict, found.panels) == (verdict, panels)


def test_remark_one_holds_as_it_stands():
    found = findings.remark_one(study(1.0))
    assert (found.verdict, found.panels, found.random) == (PROVEN, ComparisonCounts(silent=4), ComparisonCounts())


def test_every_verdict_has_its_style():
    """The page paints each verdict by its name."""
    page = files("budgetbandits.report").joinpath("templates/report.css").read_text()
    for verdict in VERDICTS:
        assert f".{verdict.replace(' ', '-')} .verdict" in page
