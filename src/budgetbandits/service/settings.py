"""Checks of a campaign's settings (`stores.records.CampaignSettings`): new ones, and changed terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from budgetbandits.errors import BadParameter
from budgetbandits.formatting.money import same_decimals
from budgetbandits.formatting.numbers import written
from budgetbandits.policies import parse_policy
from budgetbandits.policies.base import Policy, RequestPolicy
from budgetbandits.policies.sampling import SamplingPolicy
from budgetbandits.service.ledger import to_micros, to_units
from budgetbandits.service.stores.records import Campaign, CampaignSettings
from budgetbandits.terms import CHANGEABLE, TERMS, Terms

POLICY_VERSION = 1
"""Which version of the policies a new campaign plays. An audit repeats every choice, so a release that changes how a
policy chooses must keep the version before it for the campaigns that were created with it."""


def booked_terms(terms: Terms) -> Terms:
    """The terms as they are kept: money rounded to micros, as it is booked, and every number a float."""
    booked: dict[str, Any] = {}
    for term in TERMS.values():
        value = getattr(terms, term.name)
        if term.kind == "money" and value is not None:
            booked[term.name] = to_units(to_micros(value, term.name))
        elif isinstance(value, int):
            booked[term.name] = float(value)
    return replace(terms, **booked)


def checked_settings(settings: CampaignSettings, policy: Policy) -> CampaignSettings:
    """These settings, if a campaign with this policy can have them."""
    terms, cost_max = settings.terms, settings.cost_max
    _check_policy(terms, policy)
    for name, limit, remedy in (("daily_cap", settings.daily_cap, ""), ("lease", settings.lease, ", or leave it out")):
        if limit is not None and limit < cost_max:
            given, most = same_decimals([to_units(limit), to_units(cost_max)])
            raise BadParameter(f"{name} is {given}, and the most expensive arm may cost {most}; raise it{remedy}")
    if terms.lease is not None and (terms.daily_cap is not None or terms.pace_seconds is not None):
        raise BadParameter("a lease cannot keep a daily_cap or pace_seconds; leave it out, or leave these out")
    return settings


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


def changed_settings(row: Campaign, changes: Mapping[str, Any]) -> CampaignSettings:
    """The settings with other terms, of those that can be changed; None takes a limit away."""
    fixed = [name for name in changes if name not in CHANGEABLE]
    if fixed:
        raise BadParameter(
            f"{fixed[0]!r:.40} cannot be changed, only {', '.join(CHANGEABLE)}; create a new campaign with it"
        )
    before = row.settings
    terms = booked_terms(replace(before.terms, **changes).checked(changes))
    if terms == before.terms:
        raise BadParameter("these are the terms already; name one to change, with another value")
    return checked_settings(replace(before, terms=terms, earlier=before.versions), parse_policy(row.policy))
