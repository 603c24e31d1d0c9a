"""The findings of a study in three sentences: the best policy and how certain that is, its lead, what was measured."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import polars as pl

from budgetbandits.experiments.paper.claims import (
    BORNE_OUT,
    DEPENDS,
    NOT_BORNE_OUT,
    PROVEN,
    SAYS_NOTHING,
    UNDECIDED,
    VERDICTS,
)
from budgetbandits.experiments.paper.findings import Findings
from budgetbandits.experiments.paper.observations import bts_against_others
from budgetbandits.experiments.results import BTS, Results
from budgetbandits.formatting.numbers import count, estimate, exact, interval, listed
from budgetbandits.policies import label
from budgetbandits.report.tables import regrets

GROUPS_NAMED_MAX = 4
"""Most groups that a sentence lists one by one."""


@dataclass(frozen=True)
class Lead:
    """The policy with the lowest mean regret in a group, and its lead over the next one with a 95 % interval."""

    group: str
    problems: int
    policy: str
    mean: float
    half: float
    undecided: tuple[str, ...]
    next: str
    ahead: float
    low: float
    high: float


def leads(results: Results) -> list[Lead]:
    """The leads in all groups at the largest budget. Intervals are those of pairs, as in `Results.compare`."""
    rows = regrets(results).filter(pl.col("budget") == results.largest())
    pairs = {(row["group"], row["first"], row["second"]): row for row in results.compare().rows(named=True)}
    leads_found = []
    for best in results.best_of_groups().rows(named=True):
        group, policy = best["group"], best["policy"]
        of_group = rows.filter(pl.col("group") == group)
        own = of_group.row(by_predicate=pl.col("policy") == policy, named=True)
        rival = of_group.filter(pl.col("policy") != policy).sort("mean")["policy"][0]
        if (group, policy, rival) in pairs:
            pair = pairs[group, policy, rival]
            ahead, low, high = -pair["difference"], -pair["high"], -pair["low"]
        else:
            pair = pairs[group, rival, policy]
            ahead, low, high = pair["difference"], pair["low"], pair["high"]
        leads_found.append(
            Lead(
                group, own["problems"], policy, own["mean"], own["half"], tuple(best["undecided"]), rival, ahead, low,
                high,
            )
        )  # fmt: skip
    return leads_found


def of_study(results: Results) -> list[str]:
    """The three sentences at the head of a study's report."""
    budget = f"B = {exact(results.largest())}"
    if len(results.policies) == 1:
        return [_alone(results, budget), "It was played alone: there is nothing to compare it with.", measured(results)]
    leading = leads(results)
    if len(leading) == 1:
        return [_best(results, leading[0], budget), _ahead(leading[0]), measured(results)]
    return [_best_of_several(leading, budget), _ahead_of_several(leading), measured(results)]


def _alone(results: Results, budget: str) -> str:
    means = [
        f"{estimated(row['mean'], row['half'])}" + (f" on {row['group']}" if len(results.groups) > 1 else "")
        for row in regrets(results).filter(pl.col("budget") == results.largest()).rows(named=True)
    ]
    return f"{label(results.policies[0])} has a mean regret of {listed(means[:GROUPS_NAMED_MAX])} at {budget}."


def _best(results: Results, lead: Lead, budget: str) -> str:
    over = f"averaged over {count(lead.problems, 'problem')}, " if lead.problems > 1 else ""
    sentence = f"At {budget}, {over}{label(lead.policy)} has the lowest mean regret"
    if not lead.undecided:
        rivals = len(results.policies) - 1
        sentence += (
            f", and that is sure against {'each of the ' + str(rivals) + ' others' if rivals > 1 else 'the other'}"
        )
    else:
        sentence += f", but that is not sure: {_names(lead.undecided)} may be as low"
    if lead.problems > 1:
        row = results.winners().row(by_predicate=pl.col("policy") == lead.policy, named=True)
        sentence += f"; it is the lowest on {row['problems']} of them, surely on {row['sure']}"
    return sentence + "."


def _names(policies: tuple[str, ...]) -> str:
    """The names of up to three policies, or the number of more."""
    if len(policies) <= 3:
        return listed([label(policy) for policy in policies])
    return f"{label(policies[0])} and {len(policies) - 1} others"


def _ahead(lead: Lead) -> str:
    return (
        f"Its regret of {estimated(lead.mean, lead.half)} is below that of the next, {label(lead.next)}, by "
        f"{_by(lead)}."
    )


def _best_of_several(leading: list[Lead], budget: str) -> str:
    groups = "groups of problems" if any(lead.problems > 1 for lead in leading) else "problems"
    firsts = Counter(lead.policy for lead in leading).most_common()
    sure = Counter(lead.policy for lead in leading if not lead.undecided)
    parts = []
    for place, (policy, first) in enumerate(firsts):
        every = "both" if len(leading) == 2 else f"all {len(leading)}"
        among = f"{every} {groups}" if first == len(leading) else str(first)
        if place == 0 and first < len(leading):
            among = f"{first} of {len(leading)} {groups}"
        has = " has the lowest mean regret" if place == 0 else ""
        parts.append(f"{label(policy)}{has} on {among} ({_surely(sure[policy], first)})")
    return f"At {budget}, {listed(parts)}."


def _surely(sure: int, total: int) -> str:
    return "surely" if sure == total else f"surely on {sure}" if sure else "not surely"


def _ahead_of_several(leading: list[Lead]) -> str:
    if len(leading) <= GROUPS_NAMED_MAX:
        return f"The lead over the next policy: {'; '.join(map(_led, leading))}."
    share = [lead.ahead / (lead.mean + lead.ahead) if lead.mean + lead.ahead > 0.0 else 0.0 for lead in leading]
    least, most = (leading[share.index(pick(share))] for pick in (min, max))
    return (
        f"The lead over the next policy, as a share of its regret, is largest {_led(most)} and smallest {_led(least)}."
    )


def _led(lead: Lead) -> str:
    sentence = f"on “{lead.group}” {label(lead.policy)} is below {label(lead.next)} by {_by(lead)}"
    if lead.low > 0.0 and lead.undecided:  # others have a higher mean than the next, but scatter more
        sentence += f", undecided against {_names(lead.undecided)}"
    return sentence


def _by(lead: Lead) -> str:
    value, _ = estimate(lead.ahead, (lead.high - lead.low) / 2)
    if lead.high == float("inf"):
        return f"{value}, with a single run and so without an interval"
    return f"{value} (95 %: {interval(lead.low, lead.high)})"


def estimated(mean: float, half: float | None) -> str:
    """A mean in words, with half of its 95 % interval if there is one."""
    value, plus = estimate(mean, half)
    return value if plus == "–" else f"{value} ± {plus}"


def measured(results: Results) -> str:
    """A sentence on what was measured: policies, problems, runs and budgets."""
    budgets = results.budgets
    where = count(len(results.record["problems"]), "problem")
    at = (
        f"at {len(budgets)} budgets from {exact(min(budgets))} to {exact(max(budgets))}"
        if len(budgets) > 1
        else f"at the budget {exact(budgets[0])}"
    )
    return (
        f"Measured was the pseudo-regret of {count(len(results.policies), 'policy')} on {where} {at}, "
        f"{count(results.record['runs'], 'run')} of each; ± and intervals are 95 %."
    )


VERDICT_PHRASES = {
    BORNE_OUT: ("is borne out", "are borne out"),
    NOT_BORNE_OUT: ("is not borne out", "are not borne out"),
    DEPENDS: ("depends on the problem", "depend on the problem"),
    UNDECIDED: ("is undecided", "are undecided"),
    SAYS_NOTHING: ("says nothing here", "say nothing here"),
    PROVEN: ("is proven", "are proven"),
}
"""Phrases for a verdict on one claim, and on several."""


def of_paper(findings: Findings) -> list[str]:
    """The three sentences at the head of the paper's report."""
    verdicts = Counter(claim.verdict for claim in findings.claims)
    parts = [
        f"{number} {VERDICT_PHRASES[verdict][number > 1]}" for verdict in VERDICTS if (number := verdicts[verdict])
    ]
    calibrated, ensemble = findings.calibrated, findings.ensemble
    panels, others = (tuple(int(part.sum()) for part in bts_against_others(of)) for of in (calibrated, ensemble))
    problems = len(ensemble.record["problems"])
    return [
        f"Of {len(findings.claims)} things that the paper says about its simulations and bounds, {listed(parts)}.",
        f"{label(BTS)} surely has the lowest mean regret on {panels[0]} of {len(calibrated.groups)} panels, and surely "
        f"not on {panels[1]}; on {count(problems, 'random problem')} it surely has it on {others[0]}, and surely not "
        f"on {others[1]}.",
        f"Measured was the pseudo-regret of {count(len(calibrated.policies), 'policy')}, on the panels over "
        f"{count(calibrated.record['runs'], 'run')} up to B = {exact(calibrated.largest())}, on the random problems "
        f"over {count(ensemble.record['runs'], 'run')} up to B = {exact(ensemble.largest())}; ± and intervals are "
        "95 %.",
    ]
