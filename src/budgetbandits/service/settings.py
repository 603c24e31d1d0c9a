"""What the row of a campaign keeps of its terms: money in micros, and what follows from its arms and its policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from budgetbandits.errors import BadParameter, BadState
from budgetbandits.formatting.money import shown
from budgetbandits.formatting.numbers import written
from budgetbandits.policies import parse_policy
from budgetbandits.policies.base import Policy, RequestPolicy
from budgetbandits.policies.sampling import SamplingPolicy
from budgetbandits.service import ledger
from budgetbandits.service.ledger import Limits, to_micros, to_units
from budgetbandits.service.stores.records import Campaign, CampaignSummary
from budgetbandits.terms import CHANGEABLE, TERMS, Terms

FOLLOWS = ("cost_max", "known", "chooser", "own_scales", "policy_version")
"""What follows from a campaign's arms and policy:

cost_max        the largest cap, in micros
known           what the policy knows beforehand
chooser         how it chooses
own_scales      whether an arm's costs are learned as shares of its own cap
policy_version  `POLICY_VERSION`
"""

POLICY_VERSION = 1
"""Which version of the policies a new campaign plays. An audit repeats every choice, so a release that changes how a
policy chooses must keep the version before it for the campaigns that were created with it."""


def settings_of(terms: Terms, policy: Policy, follows: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a new campaign: its terms, and what follows; a limit that there is not has no entry."""
    _check_policy(terms, policy)
    cost_max = follows["cost_max"]
    always: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for term in TERMS.values():
        value = getattr(terms, term.name)
        if term.kind == "money" and value is not None:
            value = to_micros(value, term.name)
        elif isinstance(value, int):
            value = float(value)
        if not term.optional:
            always[term.name] = value
        elif value is not None:
            limits[term.name] = value
    if limits.get("daily_cap", cost_max) < cost_max:
        cap, most = shown([to_units(limits["daily_cap"]), to_units(cost_max)])
        raise BadParameter(f"daily_cap is {cap}, and the dearest arm may cost {most}; raise it")
    if limits.get("lease", cost_max) < cost_max:
        lease, most = shown([to_units(limits["lease"]), to_units(cost_max)])
        raise BadParameter(f"lease is {lease}, and the dearest arm may cost {most}; raise it, or leave it out")
    if "lease" in limits and limits.keys() & {"daily_cap", "pace_seconds"}:
        raise BadParameter("a lease cannot keep a daily_cap or pace_seconds; leave it out, or leave these out")
    return always | {name: follows[name] for name in FOLLOWS if follows.get(name)} | limits


def _check_policy(terms: Terms, policy: Policy) -> None:
    """Refuse terms that the policy would make nothing of."""
    if terms.horizon is not None and "horizon" not in policy.needs:
        raise BadParameter(f"{policy.name} does not plan for a number of requests; leave horizon out, or use bts-paced")
    if terms.horizon is not None and terms.horizon < 1.0:
        raise BadParameter(f"horizon is {written(terms.horizon)}; give how many requests the budget is for, 1 or more")
    if terms.propensity_draws is None:
        return
    if terms.propensity_draws != int(terms.propensity_draws):
        raise BadParameter(f"propensity_draws is {written(terms.propensity_draws)}; use a whole number such as 100")
    if not isinstance(policy, SamplingPolicy | RequestPolicy):
        raise BadParameter(f"{policy.name} does not draw at random; leave propensity_draws out, or use bts")


EARLIER = "earlier"
"""The entry of a campaign's settings that has the settings before each change of its terms, the first ones first."""


def changed_settings(row: Campaign, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with other terms, of those that can be changed; None takes a limit away."""
    fixed = [name for name in changes if name not in CHANGEABLE]
    if fixed:
        raise BadParameter(
            f"{fixed[0]!r:.40} cannot be changed, only {', '.join(CHANGEABLE)}; create a new campaign with it"
        )
    before = terms_of(row)
    # what stays is kept, also if the bounds have changed since
    terms = replace(before, **changes).checked(changes)
    if terms == before:
        raise BadParameter("these are the terms already; name one to change, with another value")
    return settings_of(terms, parse_policy(row.policy), row.settings) | {EARLIER: versions(row)}


def versions(row: Campaign) -> list[dict[str, Any]]:
    """The settings as they were from the beginning and after each change of terms, the present ones last."""
    present = {name: value for name, value in row.settings.items() if name != EARLIER}
    return [*row.settings.get(EARLIER, ()), present]


def terms_of(row: Campaign) -> Terms:
    """The terms of a campaign; BadState if nobody can have agreed to them."""
    given: dict[str, Any] = {}
    for term in TERMS.values():
        if term.name in row.settings:
            value = row.settings[term.name]
            given[term.name] = to_units(value) if term.kind == "money" else value
    try:
        return Terms(**given).checked()
    except BadParameter as error:
        raise BadState(
            f"the terms of campaign {row.name!r:.60} are damaged ({error}); restore an undamaged copy"
        ) from None


def limits_of(row: Campaign | CampaignSummary) -> Limits:
    """How fast a campaign may spend."""
    daily_cap, pace_seconds = row.settings.get("daily_cap"), row.settings.get("pace_seconds")
    if daily_cap is None and pace_seconds is None:
        return ledger.NO_LIMITS
    return Limits(daily_cap, pace_seconds, row.created_at, row.settings["cost_max"])


def cost_scale(settings: Mapping[str, Any], cap: int) -> int:
    """The cost that is 1 to a campaign's policy, for an arm with this cap: the cap, or the largest of all arms."""
    return cap if settings.get("own_scales") else int(settings["cost_max"])
