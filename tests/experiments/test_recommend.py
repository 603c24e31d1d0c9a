"""Recommendations from made-up leaderboards, whose answers are known."""

from __future__ import annotations

import tomllib

import pytest

from budgetbandits import Problem, family
from budgetbandits.errors import BadParameter
from budgetbandits.experiments.experiment_file import SUITE, shipped_text
from budgetbandits.experiments.leaderboard import shipped_summary
from budgetbandits.experiments.recommend import Case, laws_of, nearest, recommend
from budgetbandits.policies import provenance


def row(policy, mean, apart, *, best=False, competes=True, q99=10.0):
    return {
        "policy": policy, "competes": competes, "best": best, "mean": mean, "low": mean - 1, "high": mean + 1,
        "behind": 0.0, "behind_low": 0.0, "behind_high": 0.0, "apart": apart, "median": mean, "q90": mean,
        "q99": q99, "q99_low": q99 - 1, "q99_high": q99 + 1, "largest": 2 * q99,
    }  # fmt: skip


def setting(name, arms, money, laws, rows, problems=500):
    at = {"budget": money, "money": money, "standings": rows}
    return {
        "name": name, "title": name, "arms": arms, "laws": laws, "problems": problems, "runs": 1, "budgets": [at],
    }  # fmt: skip


ROWS = [
    row("kube-fractional", 4.0, True, competes=False),
    row("omega-ucb", 5.0, False, best=True, q99=90.0),
    row("imed-ratio", 5.5, False, q99=20.0),
    row("bts", 9.0, True, q99=15.0),
]
SUMMARY = {
    "settings": [
        setting("small", 10, 100.0, "bernoulli", ROWS),
        setting("large", 100, 10_000.0, "bernoulli", [row("bts", 1.0, True, best=True), row("omega-ucb", 9.0, True)]),
        setting("beta", 10, 100.0, "beta", [row("imed-ratio", 1.0, True, best=True), row("bts", 9.0, True)]),
    ],
    "policies": {
        name: {"needs": ["budget", "costs"] if name == "kube-fractional" else [], "proven": "O(ln B)"}
        for name in ("kube-fractional", "omega-ucb", "imed-ratio", "bts")
    },
}


def test_the_lowest_mean_the_policies_not_surely_behind_it_and_the_shortest_tail():
    found = recommend(SUMMARY, Case(10, 120.0, "bernoulli"))
    assert found["policy"] == "omega-ucb"
    assert found["alternatives"] == ["imed-ratio"]  # bts is surely behind; kube-fractional must know the costs
    assert found["tail"] == "imed-ratio"
    assert found["settings"][0]["name"] == "small"
    assert [each["best"] for each in found["settings"]] == ["omega-ucb", "imed-ratio", "bts"]
    assert "do not agree" in found["warnings"][0]


def test_known_costs_admit_policies_that_need_them():
    found = recommend(SUMMARY, Case(10, 120.0, "bernoulli", knows=frozenset({"budget", "costs"})))
    assert found["policy"] == "kube-fractional"
    # distinguished by intervals that do not overlap: omega-ucb's [4, 6] and kube-fractional's [3, 5] do
    assert found["alternatives"] == ["omega-ucb", "imed-ratio"]


@pytest.mark.parametrize(
    ("case", "name"),
    [
        (Case(12, 90.0, "bernoulli"), "small"),
        (Case(80, 9_000.0, "bernoulli"), "large"),
        (Case(12, 90.0, "beta"), "beta"),
        (Case(1_000, 100_000.0, "unknown"), "large"),
    ],
)
def test_the_nearest_setting(case, name):
    assert nearest(SUMMARY, case)[0][0]["name"] == name


def test_a_single_problem_says_less_of_others_than_many_do():
    """As much less as e^½ times the money would be away: of the two, the one problem is nearest only within that."""
    one, many = setting("one", 10, 100.0, "bernoulli", ROWS, problems=1), setting("many", 10, 160.0, "bernoulli", ROWS)
    for budget, name in ((100.0, "many"), (98.0, "many"), (60.0, "many")):
        assert nearest(SUMMARY | {"settings": [one, many]}, Case(10, budget, "bernoulli"))[0][0]["name"] == name
    farther = setting("many", 10, 170.0, "bernoulli", ROWS)
    assert nearest(SUMMARY | {"settings": [one, farther]}, Case(10, 100.0, "bernoulli"))[0][0]["name"] == "one"


def test_what_is_far_from_every_setting_is_said():
    said = " ".join(recommend(SUMMARY, Case(1_000, 1e7, "lattice"))["warnings"])
    assert "simulate a problem like yours" in said
    assert "has 100 arms, not 1000" in said
    assert "no setting near by has lattice laws" in said


PACED = {
    "settings": [
        setting("short", 10, 100.0, "bernoulli", [row("bts-paced", 1.0, True, best=True), row("bts", 9.0, True)])
        | {"horizon": 1_000},
        setting("long", 10, 1_000.0, "bernoulli", [row("primal-dual-bwk", 1.0, True, best=True)]) | {"horizon": 10_000},
        setting("endless", 10, 100.0, "bernoulli", ROWS) | {"horizon": None},
    ],
    "policies": SUMMARY["policies"]
    | {name: {"needs": ["budget", "horizon"], "proven": "nothing"} for name in ("bts-paced", "primal-dual-bwk")},
}


def test_a_budget_that_must_last_is_looked_up_among_those_that_must():
    found = recommend(PACED, Case(10, 120.0, "bernoulli", horizon=1_200))
    assert found["policy"] == "bts-paced"  # a case with a horizon knows it
    assert [each["name"] for each in found["settings"]] == ["short", "long"]
    assert found["settings"][0]["requests"] == 1_000
    assert found["warnings"] == ["the settings most like yours do not agree on the best policy"]
    assert recommend(PACED, Case(10, 2_000.0, "bernoulli", horizon=20_000))["policy"] == "primal-dual-bwk"
    assert recommend(PACED, Case(10, 120.0, "bernoulli"))["settings"][0]["name"] == "endless"


def test_what_is_proven_depends_on_the_parameters():
    """Whatever a leaderboard wrote down of it; nothing is proven of a policy that forgets."""
    forgets = "bts-paced:forget=0.002"
    about = {"needs": ["budget", "horizon"], "proven": "O(√T)"}
    short = setting("short", 10, 100.0, "bernoulli", [row(forgets, 1.0, True, best=True)]) | {"horizon": 1_000}
    summary = {"settings": [short], "policies": {forgets: about}}
    assert recommend(summary, Case(10, 120.0, "bernoulli", horizon=1_200))["proven"] == "nothing"
    assert "O(√T)" in recommend(PACED, Case(10, 120.0, "bernoulli", horizon=1_200))["proven"]
    shipped = shipped_summary(paced=True)["policies"]
    assert {name: each["proven"] for name, each in shipped.items()} == {
        name: provenance(name).proven for name in shipped
    }


def test_what_is_far_from_every_setting_with_a_horizon_is_said():
    said = " ".join(recommend(PACED, Case(10, 500_000.0, "bernoulli", horizon=1_000_000))["warnings"])
    assert "a budget of 0.1 for each request, not 0.5" in said
    assert "has 10,000 requests, not 1,000,000" in said
    assert "bandit without prices" in " ".join(recommend(PACED, Case(10, 100.0, horizon=50))["warnings"])


def test_a_leaderboard_without_such_settings_is_refused():
    with pytest.raises(BadParameter, match="no setting of this leaderboard has a horizon"):
        recommend(SUMMARY, Case(10, 100.0, horizon=1_000))
    paced = PACED | {"settings": PACED["settings"][:2]}
    with pytest.raises(BadParameter, match="every setting of this leaderboard has a horizon"):
        recommend(paced, Case(10, 100.0))


def test_the_data_that_ship_for_budgets_that_must_last():
    summary = shipped_summary(paced=True)
    assert all(setting["horizon"] for setting in summary["settings"])
    found = recommend(summary, Case(10, 1_000.0, "bernoulli", horizon=5_000))
    assert found["settings"][0]["name"] == "two-resources-10"
    assert found["policy"].startswith("bts-paced")


def test_the_data_that_ship_are_of_the_suite_that_ships():
    summary = shipped_summary()
    names = [entry["name"] for entry in tomllib.loads(shipped_text(SUITE))["settings"]]
    assert {setting["name"] for setting in summary["settings"]} <= set(names)
    for setting in summary["settings"]:
        for at in setting["budgets"]:
            assert all(row["low"] <= row["mean"] <= row["high"] for row in at["standings"])
            assert sum(row["best"] for row in at["standings"]) == 1
    assert recommend(summary, Case(10, 1_000.0, "bernoulli"))["settings"][0]["arms"] == 10


def test_the_laws_of_a_problem():
    assert laws_of(family("heyden-beta", 3, 0)) == "beta"
    assert laws_of(family("heyden-lattice", 3, 0)) == "lattice"
    assert laws_of(family("unit-costs", 3, 0)) == "bernoulli"
    assert laws_of(family("correlated", 3, 0)) == "unknown"
    mixed = family("heyden-beta", 2, 0).arms[0], family("heyden-lattice", 2, 0).arms[1]
    assert laws_of(Problem(mixed)) == "unknown"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arms": 1}, "from 2 upwards"), ({"budget": 0.0}, "positive number"), ({"laws": "normal"}, "choose one of"),
        ({"horizon": 0}, "largest number of pulls"), ({"knows": frozenset({"price"})}, "choose from budget"),
    ],
)  # fmt: skip
def test_bad_questions_are_refused(changes, message):
    with pytest.raises(BadParameter, match=message):
        Case(**{"arms": 10, "budget": 100.0, **changes})
