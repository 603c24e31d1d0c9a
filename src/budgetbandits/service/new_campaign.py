"""A campaign before there is one: what was asked for, checked and put into the units of the books."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from budgetbandits.allocation.choosers import best_kind
from budgetbandits.errors import BadParameter
from budgetbandits.formatting.money import shown
from budgetbandits.policies import POLICIES, POLICY_REGISTRY, Policy, parse_policy
from budgetbandits.service.campaign_learner import CampaignLearner
from budgetbandits.service.ledger import Account, to_micros, to_units
from budgetbandits.service.names import checked_campaign_name, checked_name, is_id, normal
from budgetbandits.service.settings import POLICY_VERSION, settings_of
from budgetbandits.service.stores.records import Campaign
from budgetbandits.terms import Terms


def check(
    name: str,
    policy: str,
    budget: float,
    arms: Mapping[str, float],
    known: Mapping[str, Any] | None = None,
    **terms: Any,
) -> None:
    """Refuse what `Campaigns.create` would refuse, but for a name that is taken."""
    planned_campaign(name, policy, budget, arms, known or {}, Terms(**terms).checked())


def planned_campaign(
    name: str, policy: str, budget: float, arms: Mapping[str, float], known: Mapping[str, Any], terms: Terms
) -> tuple[CampaignLearner, Campaign]:
    """A campaign that nobody has written down yet, if there can be one like this."""
    name = checked_campaign_name("name", name)
    if is_id(name):
        raise BadParameter(f"name {name!r} looks like an id; use a name that is not 32 hexadecimal digits")
    if len(arms) < 2:
        raise BadParameter(f"{len(arms)} arms; there is nothing to choose with fewer than two")
    arms = _arms(arms)
    caps = [checked_cap(arm, cap) for arm, cap in arms.items()]
    amount = to_micros(budget, "budget")
    if amount < min(caps):
        least, offered = shown([to_units(min(caps)), budget])
        raise BadParameter(f"budget is {offered}, and the cheapest pull may cost {least}; raise it")
    rule = _own_policy(policy)
    scaled = _scaled(known, list(arms), amount, max(caps))
    chooser = best_kind(rule, len(arms), repeatable=True)
    follows = {
        "cost_max": max(caps), "known": scaled, "chooser": chooser, "policy_version": POLICY_VERSION,
        # other choosers compare the arms' scores as they are drawn
        "own_scales": rule.own_scales and chooser == "plain" and min(caps) < max(caps),
    }  # fmt: skip
    settings = settings_of(terms, rule, follows)
    learner = CampaignLearner.new(rule, list(arms), caps, settings)
    return learner, learner.of_campaign(Campaign(uuid.uuid4().hex, name, rule.spec, Account(amount), 0.0, settings))


def _own_policy(text: str) -> Policy:
    name = text.partition(":")[0].strip()
    if name not in POLICIES and (name in POLICY_REGISTRY or ".py" in name):
        raise BadParameter(
            f"{name[:60]!r} comes from outside the package; the service plays the package's own policies, "
            f"because every server and every audit must have the same code: choose one of {', '.join(POLICIES)}"
        )
    return parse_policy(text)


def _arms(arms: Mapping[str, float]) -> dict[str, float]:
    """The arms by their names as they are kept."""
    named = {checked_name("an arm's name", arm): cap for arm, cap in arms.items()}
    if len(named) < len(arms):
        raise BadParameter("two arms have the same name, written in two ways; give every arm a name of its own")
    return named


def checked_cap(arm: str, cap: float) -> int:
    """A cost cap in micros."""
    micros = to_micros(cap, f"the cost cap of {arm!r:.40}")
    if micros == 0:
        raise BadParameter(f"the cost cap of {arm!r:.40} is 0; give the most that a pull of it can cost")
    return micros


def _scaled(known: Mapping[str, Any], arms: list[str], budget: int, cost_max: int) -> dict[str, Any]:
    """What a policy may know, in units of the largest cost."""
    unknown = set(known) - {"cost_floor", "costs"}
    if unknown:
        raise BadParameter(f"known has {sorted(unknown)[0]!r}; it may have cost_floor and costs")
    scaled: dict[str, Any] = {"budget": budget / cost_max}
    if "cost_floor" in known:
        scaled["cost_floor"] = to_micros(known["cost_floor"], "cost_floor") / cost_max
    if "costs" in known:
        costs = {normal(arm): cost for arm, cost in known["costs"].items()}
        missing = [arm for arm in arms if arm not in costs]
        if missing:
            raise BadParameter(f"costs has no entry for arm {missing[0]!r}; give every arm one")
        scaled["costs"] = [to_micros(costs[arm], f"the cost of {arm!r:.40}") / cost_max for arm in arms]
    return scaled
