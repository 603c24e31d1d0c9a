"""The three sentences at the head of a report: each number and each name in them is one of the tables'."""

from types import SimpleNamespace

import pytest

from budgetbandits.experiments.paper.claims import BORNE_OUT, DEPENDS, PROVEN, VERDICTS
from budgetbandits.formatting.numbers import estimate, interval
from budgetbandits.report import summary
from made_up import study

POLICIES = ["bts", "kube", "pd-bwk"]
ONE = ["one problem"]


def made(means, std=1.0, problems=1, groups=ONE, policies=POLICIES, **others):
    """A study in which policies have these means, whatever the budget, or a function of group, problem and policy."""
    mean = means if callable(means) else lambda _group, _problem, policy: means[policies.index(policy)]
    return study(lambda g, n, policy, _b: mean(g, n, policy), std, problems, policies, groups, **others)


def test_who_is_surely_the_best_and_by_how_much():
    results = made([10.0, 14.0, 30.0])
    first, second, third = summary.of_study(results)
    assert first == "At B = 5,000, BTS has the lowest mean regret, and that is sure against each of the 2 others."
    row = results.differences("kube", "bts").row(0, named=True)
    ahead, _ = estimate(row["difference"], (row["high"] - row["low"]) / 2)
    assert second == (
        f"Its regret of 10.00 ± 0.42 is below that of the next, KUBE, by {ahead} (95 %: "
        f"{interval(row['low'], row['high'])})."
    )
    assert third == (
        "Measured was the pseudo-regret of 3 policies on 1 problem at 3 budgets from 200 to 5,000, 24 runs of each; ± "
        "and intervals are 95 %."
    )


def test_what_is_not_sure_is_said_with_the_policies_it_is_not_sure_against():
    first, second, _ = summary.of_study(made([10.0, 10.2, 30.0]))
    assert first == "At B = 5,000, BTS has the lowest mean regret, but that is not sure: KUBE may be as low."
    assert "by 0.20 (95 %: −0.38 to 0.78)" in second
    first, _, _ = summary.of_study(made([10.0, 10.2, 10.1]))
    assert first.endswith("not sure: KUBE and PD-BwK may be as low.")


def test_the_order_of_the_policies_does_not_matter():
    """The interval of a pair is turned round where the second policy is the better one."""
    results = made([14.0, 10.0, 30.0])
    (lead,) = summary.leads(results)
    row = results.differences("bts", "kube").row(0, named=True)
    assert (lead.policy, lead.next) == ("kube", "bts")
    assert (lead.ahead, lead.low, lead.high) == pytest.approx((row["difference"], row["low"], row["high"]))
    (turned,) = summary.leads(made([10.0, 14.0, 30.0]))
    row = made([10.0, 14.0, 30.0]).differences("bts", "kube").row(0, named=True)
    assert (turned.ahead, turned.low, turned.high) == pytest.approx((-row["difference"], -row["high"], -row["low"]))


def test_a_group_of_problems_says_on_how_many_a_policy_is_the_lowest():
    """BTS is 5 below KUBE on eight problems and 1 above on two: surely, with a deviation of 0.1."""
    results = made(lambda _g, n, policy: {"bts": 10.0 + 6.0 * (n >= 8), "kube": 15.0, "pd-bwk": 40.0}[policy], 0.1, 10)
    first, _, third = summary.of_study(results)
    assert first == (
        "At B = 5,000, averaged over 10 problems, BTS has the lowest mean regret, and that is sure against each of the "
        "2 others; it is the lowest on 8 of them, surely on 8."
    )
    assert "on 10 problems" in third


def test_several_groups_are_counted_and_gone_through():
    results = made(
        lambda g, _n, policy: {"bts": 10.0, "kube": 9.0 if g == 1 else 12.0, "pd-bwk": 40.0}[policy],
        groups=["a", "b, with a comma", "c"],
    )
    first, second, _ = summary.of_study(results)
    assert first == "At B = 5,000, BTS has the lowest mean regret on 2 of 3 problems (surely) and KUBE on 1 (surely)."
    for lead in summary.leads(results):
        assert f"on “{lead.group}”" in second
        assert f"by {estimate(lead.ahead, (lead.high - lead.low) / 2)[0]} (95 %: " in second
    assert "on “b, with a comma” KUBE is below BTS by 1.00" in second


def test_one_that_leads_everywhere_is_said_to():
    both = summary.of_study(made([10.0, 10.1, 30.0], groups=["a", "b"]))[0]
    assert both == "At B = 5,000, BTS has the lowest mean regret on both problems (not surely)."
    first, second, _ = summary.of_study(made([10.0, 14.0, 30.0], groups=[f"group {n}" for n in range(6)]))
    assert "on all 6 problems (surely)" in first
    assert second.startswith("The lead over the next policy, as a share of its regret, is largest on “group 0”")


def test_a_policy_that_scatters_may_be_undecided_though_the_next_is_not():
    results = made(
        [10.0, 14.0, 20.0], lambda _g, _n, policy, _b: 60.0 if policy == "pd-bwk" else 1.0, groups=["a", "b"]
    )
    first, second, _ = summary.of_study(results)
    assert "on both problems (not surely)" in first
    assert "undecided against PD-BwK" in second


def test_a_policy_alone_has_nobody_to_be_compared_with():
    first, second, _ = summary.of_study(made([10.0], policies=["bts"]))
    assert first == "BTS has a mean regret of 10.00 ± 0.42 at B = 5,000."
    assert "nothing to compare" in second


def test_a_single_run_has_no_interval():
    results = made([10.0, 14.0, 30.0])
    alone = type(results)(results.table.filter(results.table["run"] == 0), results.record | {"runs": 1})
    first, second, third = summary.of_study(alone)
    assert "not sure: KUBE and PD-BwK may be as low" in first
    assert "without an interval" in second
    assert "±" not in second
    assert "1 run of each" in third


def test_the_paper_is_summed_up_by_its_verdicts():
    verdicts = [DEPENDS, DEPENDS, BORNE_OUT, PROVEN]
    calibrated = study(lambda g, _n, policy, _b: 10.0 if policy == "bts" or g == 3 else 20.0)
    ensemble = study(lambda _g, n, policy, _b: 10.0 if (policy == "bts") == (n < 2) else 20.0, problems=3)
    findings = SimpleNamespace(
        claims=[SimpleNamespace(verdict=verdict) for verdict in verdicts], calibrated=calibrated, ensemble=ensemble
    )
    first, second, third = summary.of_paper(findings)
    assert first.endswith("1 is borne out, 2 depend on the problem and 1 is proven.")
    assert second == (
        "BTS surely has the lowest mean regret on 3 of 4 panels, and surely not on 0; on 12 random problems it surely "
        "has it on 8, and surely not on 4."
    )
    assert "5 policies" in third
    assert set(summary.VERDICT_PHRASES) == set(VERDICTS)
