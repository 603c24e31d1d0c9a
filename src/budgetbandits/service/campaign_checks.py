"""Which campaigns can be created, and how one can be changed: checked before a change, and by forms that offer one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from budgetbandits.allocation.choosers import best_kind
from budgetbandits.allocation.session import arm_number, checked_features
from budgetbandits.errors import (
    BadFeature,
    BadParameter,
    Conflict,
    CostOutOfRange,
    NoArmLeft,
    RewardOutOfRange,
    TooManySegments,
)
from budgetbandits.formatting.datetimes import utc_minute
from budgetbandits.formatting.money import same_decimals
from budgetbandits.policies import Policy
from budgetbandits.service import campaign_session
from budgetbandits.service.campaign_session import CampaignSession
from budgetbandits.service.ledger import Account, set_budget, to_micros, to_units
from budgetbandits.service.names import checked_campaign_name, checked_name, is_id, new_campaign_id, normal
from budgetbandits.service.own_policies import code_of, offered_policy, policy_of
from budgetbandits.service.session_rows import campaign_row
from budgetbandits.service.stores.records import Campaign, CampaignSettings
from budgetbandits.service.work import check_work
from budgetbandits.terms import CHANGEABLE, CHANGEABLE_FACTS, TERMS, Terms
from budgetbandits.validation import number, whole

ARM_EVENTS = ("arm added", "arm retired", "arm brought back")
"""The events after which there are other arms to choose from."""

ROUNDING = 1e-9
"""Relative rounding error of a sum of floating-point numbers."""

POLICY_VERSION = 1
"""Which version of the policies a new campaign plays. An audit repeats every choice, so a release that changes how a
policy chooses must keep the version before it for the campaigns that were created with it."""


ArmHistory = Sequence[float]
"""Past outcomes of an arm: their number, total reward and total cost."""


class PlannedCampaign(NamedTuple):
    """A campaign that nobody has written down yet.

    history  the past outcomes that it begins with, by the numbers of the arms as text, costs in micros
    """

    session: CampaignSession
    campaign: Campaign
    history: dict[str, tuple[int, float, int]]


def check_new_campaign(
    name: str,
    policy: str | None,
    budget: float,
    arms: Mapping[str, float],
    known: Mapping[str, Any] | None = None,
    **terms: Any,
) -> Campaign:
    """The campaign that `Campaigns.create` would create, or its refusal, but for a name that is taken and a shared
    budget that cannot be joined."""
    return planned_campaign(name, policy, budget, arms, known or {}, Terms(**terms).checked()).campaign


def planned_campaign(
    name: str,
    policy: str | None,
    budget: float,
    arms: Mapping[str, float],
    known: Mapping[str, Any],
    terms: Terms,
    history: Mapping[str, ArmHistory] | None = None,
) -> PlannedCampaign:
    """A campaign that nobody has written down yet, if there can be one like this."""
    name = _checked_own_name(name)
    if len(arms) < 2:
        raise BadParameter(f"a campaign needs at least two arms to choose from, and has {len(arms)}")
    arms = _arm_caps(arms)
    caps = [checked_cap(arm, cap) for arm, cap in arms.items()]
    amount = to_micros(budget, "budget")
    if amount < min(caps):
        least, offered = same_decimals([to_units(min(caps)), budget])
        raise BadParameter(f"budget is {offered}, and the cheapest pull may cost {least}; raise it")
    rule = offered_policy(default_policy(terms) if policy is None else policy)
    features = checked_features(rule, [checked_name("a feature's name", feature) for feature in terms.features or ()])
    if features and len(arms) * (1 + len(features)) > campaign_session.CELLS_MAX:
        raise BadFeature(
            f"there are {len(arms):,} arms and {len(features)} features; arms times segments and features are "
            f"{campaign_session.CELLS_MAX:,} at most: name fewer features, or have fewer arms"
        )
    terms = replace(terms, features=features or None)
    if terms.period is not None and terms.period_budget is None:
        terms = replace(terms, period_budget=budget)
    _check_fallback(terms, list(arms))
    scaled = _scaled(known, list(arms), amount, max(caps))
    if features:
        scaled["features"] = len(features)
    settings = CampaignSettings(booked_terms(terms), max(caps), "plain", scaled, False, POLICY_VERSION, code_of(rule))
    settings = checked_settings(_with_scales(settings, rule, caps), rule)
    check_work(rule, settings.terms, len(arms))
    session = CampaignSession.new(rule, list(arms), caps, settings)
    past = _checked_history(history or {}, list(arms), caps, terms.reward_max)
    session.add_history(past)
    row = campaign_row(session, Campaign(new_campaign_id(), name, rule.spec, Account(amount), 0.0, settings))
    return PlannedCampaign(session, row, past)


def planned_clone(
    row: Campaign, session: CampaignSession, name: str, budget: float | None, learned: bool
) -> PlannedCampaign:
    """A campaign like this one, with what it has learned of its active arms or with nothing."""
    settings, terms, scale = row.settings, row.settings.terms, to_units(row.settings.cost_max)
    active = [arm for arm in range(len(session.names)) if session.state.active[arm]]
    arms = {session.names[arm]: to_units(int(session.caps[arm])) for arm in active}
    knowledge: dict[str, Any] = {}
    if "cost_floor" in settings.known:
        knowledge["cost_floor"] = settings.known["cost_floor"] * scale
    if "costs" in settings.known:
        knowledge["costs"] = {session.names[arm]: settings.known["costs"][arm] * scale for arm in active}
    if budget is None:
        budget = to_units(row.account.budget) if terms.period_budget is None else terms.period_budget
    history = {session.names[arm]: session.history(arm) for arm in active} if learned else {}
    return planned_campaign(name, row.policy, budget, arms, knowledge, terms, history)


def _checked_own_name(name: Any) -> str:
    """A name for a campaign, which passes for no campaign's id."""
    kept = checked_campaign_name("name", name)
    if is_id(kept):
        raise BadParameter(f"name {kept!r} looks like an id; use one that is not c and 11 hexadecimal digits")
    return kept


def _checked_history(
    history: Mapping[str, ArmHistory], names: Sequence[str], caps: Sequence[int], reward_max: float
) -> dict[str, tuple[int, float, int]]:
    """Past outcomes by the numbers of the arms, with costs in micros."""
    past: dict[str, tuple[int, float, int]] = {}
    for name, outcomes in history.items():
        arm, of = arm_number(names, normal(name)), f"the history of {name!r:.60}"
        try:
            pulls, reward, cost = outcomes
        except (TypeError, ValueError):
            raise BadParameter(f"{of} is {outcomes!r:.60}; give how many pulls, total reward, total cost") from None
        count = whole(f"{of}: pulls", pulls)
        amount, rewards = to_micros(cost, f"{of}: the total cost"), number(reward)
        if not 0.0 <= rewards <= count * reward_max * (1.0 + ROUNDING):
            raise RewardOutOfRange(
                f"{of}: a total reward of {rewards:g} in {count:,} pulls; each has 0 to {reward_max:g}"
            )
        if amount > count * caps[arm] * (1.0 + ROUNDING):
            raise CostOutOfRange(f"{of}: a total cost of {cost:g} in {count:,} pulls is above the cap; raise the cap")
        if count:
            past[str(arm)] = (count, rewards, amount)
    return past


def default_policy(terms: Terms) -> str:
    """The policy of a campaign that names none."""
    if terms.features is not None:
        return "bts-linear"
    return "bts" if terms.horizon is None else "bts-paced"


def _arm_caps(arms: Mapping[str, float]) -> dict[str, float]:
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
    """The known quantities of a policy, in units of the largest cost."""
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


TAGS_MAX = 16
"""Most tags of a campaign."""


def booked_terms(terms: Terms) -> Terms:
    """The terms as they are kept: money rounded to micros, as it is booked, and every number a float."""
    booked: dict[str, Any] = {}
    for term in TERMS.values():
        value = getattr(terms, term.name)
        if term.kind == "money" and value is not None:
            booked[term.name] = to_units(to_micros(value, term.name))
        elif isinstance(value, int):
            booked[term.name] = float(value)
    if terms.shared_budget is not None:
        booked["shared_budget"] = normal(terms.shared_budget)
    if terms.tags is not None:
        booked["tags"] = _checked_tags(terms.tags)
    return replace(terms, **booked)


def _checked_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """The tags of a campaign as they are kept: each once, in the order of the alphabet."""
    if len(tags) > TAGS_MAX:
        raise BadParameter(f"there are {len(tags)} tags; give {TAGS_MAX} at most")
    for tag in tags:
        if "," in tag:
            raise BadParameter(f"a tag is {tag!r:.60}; use one without a comma, which forms put between them")
    return tuple(sorted({checked_name("a tag", tag) for tag in tags}))


def checked_settings(settings: CampaignSettings, policy: Policy) -> CampaignSettings:
    """These settings, if a campaign with this policy can have them."""
    terms, cost_max = settings.terms, settings.cost_max
    _check_policy(terms, policy)
    for name, limit, remedy in (("daily_cap", settings.daily_cap, ""), ("lease", settings.lease, ", or leave it out")):
        if limit is not None and limit < cost_max:
            given, most = same_decimals([to_units(limit), to_units(cost_max)])
            raise BadParameter(f"{name} is {given}, and the most expensive arm may cost {most}; raise it{remedy}")
    if terms.on_limit != "refuse" and terms.daily_cap is None and terms.pace_seconds is None:
        raise BadParameter("on_limit is for a daily_cap or pace_seconds; set one, or let on_limit be refuse")
    if terms.time_zone is not None and terms.daily_cap is None and terms.period is None:
        raise BadParameter("time_zone is for days and periods; set a daily_cap or a period, or leave time_zone out")
    if terms.period is None and (terms.period_budget is not None or terms.unspent != "lapse"):
        raise BadParameter(
            "period_budget and unspent are for a budget that is renewed; set a period, or leave them out"
        )
    if terms.period is not None and (terms.pace_seconds is not None or terms.lease is not None):
        raise BadParameter("a budget that is renewed has no pace_seconds and no lease; leave these out, or the period")
    if terms.period is not None and terms.period_budget is None:
        raise BadParameter("period_budget is missing; say what each period gets")
    if terms.lease is not None and (terms.daily_cap is not None or terms.pace_seconds is not None):
        raise BadParameter("a lease cannot keep a daily_cap or pace_seconds; leave it out, or leave these out")
    return settings


def _check_policy(terms: Terms, policy: Policy) -> None:
    """Refuse terms that the policy would make nothing of."""
    if terms.horizon is not None and "horizon" not in policy.needs:
        raise BadParameter(f"{policy.name} does not plan for a number of requests; leave horizon out, or use bts-paced")
    if terms.propensity_draws is not None and not policy.random_choices:
        raise BadParameter(f"{policy.name} does not draw at random; leave propensity_draws out, or use bts")


def _check_fallback(terms: Terms, names: Sequence[str]) -> None:
    """Refuse to let an arm answer that is none."""
    if terms.on_limit not in ("refuse", "cheapest"):
        arm_number(names, terms.on_limit)


def changed_campaign(
    row: Campaign, changes: Mapping[str, Any], names: Sequence[str] = (), caps: Sequence[int] = ()
) -> Campaign:
    """The campaign with other terms, of those that can be changed, another name, policy or budget, or other caps; None
    takes a limit away. ``names`` and ``caps`` are those of its arms. What has changed is in its settings."""
    able = (*CHANGEABLE, *CHANGEABLE_FACTS)
    fixed = [name for name in changes if name not in able]
    if fixed:
        raise BadParameter(f"{fixed[0]!r:.40} cannot be changed, only {', '.join(able)}; create a new campaign with it")
    before, policy = row.settings, policy_of(row)
    given = {name: value for name, value in changes.items() if name in CHANGEABLE}
    terms = booked_terms(replace(before.terms, **given).checked(given))
    change: dict[str, Any] = {
        name: [_as_json(getattr(terms_at, name)) for terms_at in (before.terms, terms)]
        for name in CHANGEABLE if getattr(before.terms, name) != getattr(terms, name)
    }  # fmt: skip
    if "on_limit" in change:
        _check_fallback(terms, names)
    after = row
    if "name" in changes:
        after = replace(after, name=_checked_own_name(changes["name"]))
    if "policy" in changes:
        policy = offered_policy(changes["policy"])
        checked_features(policy, terms.features or ())
        after = replace(after, policy=policy.spec)
    change |= {
        name: [getattr(row, name), getattr(after, name)]
        for name in ("name", "policy") if getattr(row, name) != getattr(after, name)
    }  # fmt: skip
    if "budget" in changes:
        after = replace(after, account=set_budget(row.account, to_micros(changes["budget"], "budget")))
        if after.account != row.account:
            change["budget"] = [row.account.budget, after.account.budget]
    new_caps = _changed_caps(changes.get("caps") or {}, names, caps)
    if new_caps:
        change["caps"] = {str(arm): [caps[arm], cap] for arm, cap in new_caps.items()}
    if not change:
        raise BadParameter("these are the terms already; name one to change, with another value")
    if "propensity_draws" in change or "policy" in change:
        check_work(policy, terms, len(names), len(row.learned.get("segments", ())))
    settings = replace(before, terms=terms, policy_code=code_of(policy), earlier=before.versions, change=change)
    if "caps" in change or "policy" in change:
        settings = _with_scales(settings, policy, [new_caps.get(arm, cap) for arm, cap in enumerate(caps)])
    return replace(after, settings=checked_settings(settings, policy))


def _as_json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def with_larger_cap(row: Campaign, cap: int, caps: Sequence[int]) -> Campaign:
    """The campaign when it may have an arm with a cap above all others'."""
    before, change = row.settings, {"cost_max": [row.settings.cost_max, cap]}
    settings = replace(before, earlier=before.versions, change=change)
    policy = policy_of(row)
    return replace(row, settings=checked_settings(_with_scales(settings, policy, [*caps, cap]), policy))


def _changed_caps(given: Mapping[str, float], names: Sequence[str], caps: Sequence[int]) -> dict[int, int]:
    """The caps that are others than now, in micros, by the numbers of the arms."""
    new = {arm_number(names, normal(name)): checked_cap(name, cap) for name, cap in given.items()}
    return {arm: cap for arm, cap in sorted(new.items()) if cap != caps[arm]}


def _with_scales(settings: CampaignSettings, policy: Policy, caps: Sequence[int]) -> CampaignSettings:
    """The settings of a campaign whose arms have these caps; what its policy knows beforehand is in units of the
    largest."""
    chooser = best_kind(policy, len(caps), repeatable=True)
    # other choosers compare the arms' scores as they are drawn
    own_scales = policy.own_scales and chooser == "plain" and min(caps) < max(caps)
    unit, knowledge = settings.cost_max / max(caps), dict(settings.known)
    for name in ("budget", "cost_floor"):
        if name in knowledge:
            knowledge[name] *= unit
    if "costs" in knowledge:
        knowledge["costs"] = [cost * unit for cost in knowledge["costs"]]
    return replace(settings, cost_max=max(caps), chooser=chooser, known=knowledge, own_scales=own_scales)


def check_not_closed(row: Campaign) -> None:
    """Raise an error if the campaign is closed."""
    if row.account.status == "closed":
        raise Conflict(f"campaign {row.name!r} is closed for good; create a new one")


def spent_since_refused(row: Campaign) -> Conflict:
    """Why a campaign cannot be changed like this: it waits for what was spent since the copy that it was restored from,
    or it does not and an amount was given."""
    if row.settings.restored_from is None:
        return Conflict(
            f"{row.name!r:.60} does not wait for what was spent since a copy: that is booked already, as its events "
            "show, or it was never restored; resume it without an amount"
        )
    return Conflict(
        f"{row.name!r:.60} was restored from a copy that ends at {utc_minute(row.settings.restored_from)}; say what it "
        "has spent since when you resume it, 0 if nothing: on its page, with --spent-since AMOUNT and the same --store "
        "or --url, or as spent_since in the API"
    )


def check_new_arm(row: Campaign, names: Sequence[str], name: str, cap: int) -> None:
    """Refuse an arm of this name and cap, in micros."""
    if name in names:
        raise Conflict(f"there is an arm {name!r:.60} already; give this one another name")
    if "costs" in row.settings.known:
        raise BadParameter(f"{row.policy} knows all costs beforehand; create a new campaign with the new arm")
    if cap > row.settings.cost_max:
        with_larger_cap(row, cap, [row.settings.cost_max])  # an error if it is above another limit
    number, segments, most = len(names) + 1, len(row.learned.get("segments", ())), campaign_session.CELLS_MAX
    features = len(row.settings.terms.features or ())
    if number * (segments + features) > most:
        raise TooManySegments(
            f"arm {name!r:.60} would be number {number:,}, with {segments} segments and {features} features; arms "
            f"times both are {most:,} at most: create a new campaign that names fewer kinds"
        )
    check_work(policy_of(row), row.settings.terms, number, segments)


def arm_to_retire(names: Sequence[str], active: Sequence[bool], name: str) -> int:
    """The place of an arm that can be retired."""
    arm = arm_number(names, name)
    if not active[arm]:
        raise Conflict(f"arm {name!r:.60} is retired already; there is nothing to retire")
    if sum(active) == 1:
        raise NoArmLeft(f"{name!r:.60} is the last arm; add another before retiring it")
    return arm


def arm_to_bring_back(names: Sequence[str], active: Sequence[bool], name: str) -> int:
    """The place of an arm that is retired."""
    arm = arm_number(names, name)
    if active[arm]:
        raise Conflict(f"arm {name!r:.60} is not retired; there is nothing to bring back")
    return arm
