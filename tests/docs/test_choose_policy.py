"""The page on choosing a policy says what the code takes and what the leaderboard measured."""

import re
from pathlib import Path

import pytest

from budgetbandits import Allocation, parse_policy
from budgetbandits.allocation.allocation import default_policy
from budgetbandits.experiments.leaderboard import shipped_summary
from budgetbandits.policies import provenance

PAGE = (Path(__file__).parents[2] / "docs/howto/choose_policy.md").read_text()
CHART = re.search(r"^```\{mermaid\}.*?\n:alt: (?P<alt>.*?)\n\n(?P<chart>.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
LEAVES = [leaf.replace("<br/>", "") for leaf in re.findall(r"\w\[([^]]+)\]", CHART["chart"])]


def section(title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]


def rows(title):
    """The cells of a section's table, without its head."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def spec(text):
    return parse_policy(text).spec


def taken_by_default():
    """What is given, and the policy that the table says is taken then."""
    return [(given, re.match(r"`([^`]+)`:", taken)[1]) for given, taken in rows("What is taken if you name none")]


def test_every_policy_of_the_chart_exists():
    assert len(LEAVES) == 4
    assert [spec(leaf).partition(":")[0] for leaf in LEAVES] == [leaf.partition(":")[0] for leaf in LEAVES]


def test_the_words_for_the_chart_name_its_policies():
    for leaf in LEAVES:
        assert f", take {leaf}." in CHART["alt"], leaf


def test_every_question_of_the_chart_has_two_answers_and_every_answer_an_end():
    arrows = re.findall(r"(\w+)(?:\([^)]*\))? -->\|(yes|no)\| (\w+)", CHART["chart"])
    asked = {start for start, _, _ in arrows}
    for question in asked:
        assert sorted(answer for start, answer, _ in arrows if start == question) == ["no", "yes"], question
    ends = {end for _, _, end in arrows} - asked
    assert ends == set(re.findall(r"(\w+)\[", CHART["chart"]))


GIVEN = {
    "`features=[…]`": {"features": ["length"]},
    "`horizon=…`": {"horizon": 1_000},
    "`cost_max={…}` by arm": {"cost_max": {"search": 1.0, "mail": 0.1}},
    "none of these": {},
}


def test_the_defaults_are_those_of_the_code():
    assert [given for given, _ in taken_by_default()] == list(GIVEN)
    for given, taken in taken_by_default():
        spend = Allocation(arms=["search", "mail"], budget=10.0, **GIVEN[given])
        assert spend.policy.spec == spec(taken), given


def test_the_first_row_that_fits_decides():
    for place, (_, taken) in enumerate(taken_by_default()):
        all_of_these = {"cost_max": 1.0, "horizon": None, "features": ()}
        for given in list(GIVEN)[place:]:
            all_of_these |= GIVEN[given]
        assert default_policy(**all_of_these) == taken


def test_every_default_is_in_the_chart():
    assert {taken for _, taken in taken_by_default()} <= set(LEAVES)


def test_every_policy_that_is_named_in_the_reasons_exists():
    named = re.findall(r"`((?:bts|gittins)[^`]*)`", section("The chart"))
    assert "bts-paced:forget=0" in named
    assert all(map(spec, named))


def test_the_policies_for_other_wishes_exist_and_are_as_it_says():
    table = {wish: re.findall(r"`([^`]+)`", taken) for wish, taken in rows("If something else counts")}
    assert all(spec(name) for names in table.values() for name in names)
    (bound,) = table["a proof that the lower bound is attained"]
    assert provenance(bound).proven.startswith("attains the lower bound")
    (any_problem,) = table["a bound for every problem with a horizon"]
    assert provenance(any_problem).proven.endswith("any problem")
    assert "horizon" in parse_policy(any_problem).needs
    (many,) = table["a thousand arms and money for nine pulls of each"]
    assert best("A thousand arms") == many


# --- the leaderboard's numbers ------------------------------------------------------------------------------------

REASONS = " ".join(section("The chart").split())


def standings(title):
    (setting,) = (each for each in shipped_summary()["settings"] if each["title"] == title)
    return {row["policy"]: row for row in setting["budgets"][-1]["standings"]}


def best(title):
    """The policy that competes and is surely ahead of every other that does."""
    found = [row for row in standings(title).values() if row["competes"]]
    assert all(row["apart"] for row in found if not row["best"])
    return next(row["policy"] for row in found if row["best"])


@pytest.mark.parametrize("policy", ["gittins-ratio", "gittins-ratio:lead=1000", "bts"])
def test_the_numbers_over_all_settings(policy):
    times = {row["policy"]: row["times"] for row in shipped_summary()["overall"]}[spec(policy)]
    assert re.search(rf"{times:.2f} times (?:that of each setting's best policy )?for `{policy}`", REASONS)


def test_the_numbers_with_a_horizon():
    times = {row["policy"]: row["times"] for row in shipped_summary(paced=True)["overall"]}
    assert f"`bts-paced` is {times['bts-paced']:.2f} times that of each setting's best policy" in REASONS
    assert f"That of `bts`, which goes for the best ratio, is {times['bts']:.2f} times." in REASONS


@pytest.mark.parametrize("title", ["Every pull costs 1", "A thousand arms"])
def test_plain_gittins_ratio_is_ahead_where_the_chart_takes_it(title):
    found = standings(title)
    assert found["gittins-ratio"]["mean"] < found[spec("gittins-ratio:lead=1000")]["mean"]


def test_the_numbers_where_every_pull_costs_one():
    found = standings("Every pull costs 1")
    means = [found[spec(policy)]["mean"] for policy in ("gittins-ratio", "gittins-ratio:lead=1000")]
    assert "its mean regret is {:.1f}, and {:.1f} with `lead=1000`".format(*means) in REASONS
