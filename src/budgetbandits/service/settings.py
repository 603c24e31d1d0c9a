"""What the row of a campaign keeps of its terms: money in micros, and what follows from its arms and its policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from budgetbandits.amounts import shown
from budgetbandits.errors import BadParameter, BadState
from budgetbandits.policies import parse_policy
from budgetbandits.policies.base import Policy, RequestPolicy
from budgetbandits.policies.sampling import SamplingPolicy
from budgetbandits.service import ledger
from budgetbandits.service.ledger import Limits, to_micros, to_units
from budgetbandits.service.stores.glance_sql import Glance
from budgetbandits.service.stores.records import Campaign
from budgetbandits.terms import CHANGEABLE, Terms
from budgetbandits.words import written

FOLLOWS = ("cost_max", "known", "chooser", "own_scales", "rules")
"""What follows from a campaign's arms and policy, and from the rules that there were when it was created:

cost_max    the largest cap, in micros
known       what the policy knows beforehand
chooser     how it chooses
own_scales  whether an arm's costs are learned as shares of its own cap
rules       `RULES`; campaigns from before there were these rules have no such entry
"""

RULES = 6
"""Which rules a new campaign follows; older ones go on by their own, so that every audit repeats what was decided.

2  arms rest that neither bring nor cost anything, and where a level is for many arms, a choice among less than half of
   them draws these alone
3  failures of decisions that were under way together count once for a rest; requests that failed are gone of the
   horizon; what could not be chosen is written down with each decision; `bts-paced` learns prices that are far above
   their estimates, and no segment is surer of what others know than 20 outcomes make it
4  a request is gone of the horizon when its money is: once its cost is told, or it is charged because nobody told;
   what happens under a lease is heard at its next decision, not when it is merged; `bts-paced` plans for coming
   requests with all arms that these may have, and its first guess at an arm's cost follows the costs that were seen;
   the prices of `primal-dual-bwk` rise when an outcome is told
5  `bts-paced` weighs segments by the requests that were answered, takes a segment for different where its other arms
   are, and finds the price on money for prices that vary from request to request
6  with segments, `bts-paced` leaves out trials of cheaper arms and last upgrades that are not worth their price
"""


def settings_of(terms: Terms, policy: Policy, follows: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a new campaign: its terms, and what follows; a limit that there is not has no entry."""
    _check_policy(terms, policy)
    cost_max = follows["cost_max"]
    always: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for term in fields(Terms):
        value = getattr(terms, term.name)
        if term.metadata["money"] and value is not None:
            value = to_micros(value, term.name)
        elif isinstance(value, int):
            value = float(value)
        if term.default is not None:
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
    # what stays is kept, also if it is from before there were bounds
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
    for term in fields(Terms):
        if term.name in row.settings:
            value = row.settings[term.name]
            given[term.name] = to_units(value) if term.metadata["money"] else value
    try:
        return Terms(**given).checked()
    except BadParameter as error:
        raise BadState(
            f"the terms of campaign {row.name!r:.60} are damaged ({error}); restore an undamaged copy"
        ) from None


def limits_of(row: Campaign | Glance) -> Limits:
    """How fast a campaign may spend."""
    daily_cap, pace_seconds = row.settings.get("daily_cap"), row.settings.get("pace_seconds")
    if daily_cap is None and pace_seconds is None:
        return ledger.NO_LIMITS
    return Limits(daily_cap, pace_seconds, row.created_at, row.settings["cost_max"])


def cost_scale(settings: Mapping[str, Any], cap: int) -> int:
    """The cost that is 1 to a campaign's policy, for an arm with this cap: the cap, or the largest of all arms."""
    return cap if settings.get("own_scales") else int(settings["cost_max"])
