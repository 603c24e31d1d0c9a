"""The arms on a campaign's page: those that are compared, the others, and what choosing among them has saved.

Savings compare the campaign with an even split of its money, on the same requests. A request counts when both its cost
and its reward are reported. A failure counts with its cost and a reward of 0, for the campaign and for the arms: an
even split would meet each arm's failures as often as they occurred, though policies do not learn from them. Left out on
both sides are costs without a reward, rewards without a cost, expired holds without feedback, and overruns.

A saving is claimed only if its interval excludes zero. Policies drop arms that had bad luck, and these keep their low
estimates: an even split looks worse than it is, so the median is too high on average. Rollups have the sums of costs
and of rewards, not of the requests that have both; where an arm has more of one, the larger sum is taken in proportion.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from budgetbandits.formatting.datetimes import HOUR
from budgetbandits.service.dashboard.beliefs import (
    ARMS_COMPARED_MAX,
    ArmFeedback,
    Belief,
    ValueSums,
    Worth,
    belief,
    chances_of_best,
    chances_of_most,
    compare,
    worth_of,
)
from budgetbandits.service.ledger import to_units
from budgetbandits.service.rollups import History, by_arm
from budgetbandits.service.session_rows import ArmStatus
from budgetbandits.service.stores.records import ArmRow, Campaign, Counts


@dataclass
class ArmView:
    """One arm: what it cost and brought, and what that says of it."""

    number: int
    name: str
    cap: float
    scale: int
    """The cost that is 1 to the policy, in micros: the arm's cap, or the largest of all."""
    active: bool
    decided: int
    spent: float
    cost: float
    reward: float
    pulls: int
    rewarded: bool
    """Whether any of its rewards is known."""
    priced: bool
    """Whether any of its prices is known."""
    belief: Belief
    hour_ago: Belief | None
    """None if it had no feedback by then."""
    chance: float | None
    """Probability of being the best; None if it is retired or has no feedback."""
    failures: int = 0
    cooldown_until: float | None = None
    """None if it does not cool down after a failure now."""
    worth: Worth | None = None
    """Worth of a request that it answers, if the budget is for a number of requests."""
    worth_hour_ago: Worth | None = None
    """Worth of such a request by the feedback of an hour ago, at the present price."""
    learned_as: float | None = None
    """Mean price that the policy uses after clipping at the cap; None if it is not clipped."""
    requests_used: int = 0
    planned: float | None = None
    """Its share of the requests to come, if the budget is for a number of them and that can be planned."""

    @property
    def reported(self) -> bool:
        """Whether both are known: without either there is nothing to compare."""
        return self.rewarded and self.priced

    @property
    def chance_order(self) -> tuple[bool, bool, float, float]:
        """The likely best first, then those of which nothing is known, retired arms last."""
        return not self.active, self.chance is None, -(self.chance or 0.0), -self.belief.ratio.median


def sorted_arms(arms: Sequence[ArmView], order: str) -> list[ArmView]:
    """The arms by one of `query.ARM_ORDERS`: names and prices upwards, else the largest first; reversed if the order
    begins with -. Unknown values come last, and retired arms after them."""
    name, turned = order.removeprefix("-"), order.startswith("-")
    if name == "chance" and not turned:
        return sorted(arms, key=lambda arm: arm.chance_order)

    def value(arm: ArmView) -> float | None:
        if name in ("reward", "price"):
            has_value = arm.rewarded if name == "reward" else arm.priced
            return getattr(arm.belief, name).median if has_value else None
        if name == "ratio":
            worth = None if arm.worth is None else arm.worth.worth.median
            return worth if worth is not None or not arm.reported else arm.belief.ratio.median
        return {"chance": arm.chance, "share": arm.spent, "pulls": arm.pulls}[name]

    if name == "name":
        ordered = sorted(arms, key=lambda arm: arm.name.casefold(), reverse=turned)
        return sorted(ordered, key=lambda arm: not arm.active)
    way = 1.0 if (name == "price") != turned else -1.0
    return sorted(arms, key=lambda arm: (not arm.active, value(arm) is None, way * (value(arm) or 0.0)))


def by_worth(arms: Sequence[ArmView], price: float | None) -> None:
    """Compare arms by what a request is worth with each, at this price on money; if it is not known, not at all."""
    for arm in arms:
        arm.chance = None
        if price is not None and arm.reported:
            arm.worth = worth_of(arm.belief, price)
            arm.worth_hour_ago = None if arm.hour_ago is None else worth_of(arm.hour_ago, price)
    if price is not None:
        choosable = [arm for arm in arms if arm.active]
        chances = chances_of_most([worth_of(arm.belief, price) for arm in choosable])
        for arm, chance in zip(choosable, chances, strict=True):
            arm.chance = chance if arm.reported else None


@dataclass(frozen=True)
class OtherArm:
    """An arm that is not compared with the others."""

    name: str
    cap: float
    active: bool
    pulls: int
    spent: float


def _feedback(counts: Counts, last_hour: Counts | None, reward_max: float, price: int) -> ArmFeedback:
    """The feedback on an arm, without that of the last hour, as shares of the largest reward and price."""
    less = last_hour or Counts(0, 0)
    (count, cost, squares), (fewer, cheaper, smaller) = counts.prices, less.prices
    return ArmFeedback(
        ValueSums(counts.rewards_reported - less.rewards_reported, max(counts.reward - less.reward, 0.0) / reward_max,
               max(counts.reward_squared - less.reward_squared, 0.0) / reward_max**2),
        ValueSums(count - fewer, (cost - cheaper) / price, max(squares - smaller, 0.0) / float(price) ** 2),
    )  # fmt: skip


def compared_arms(
    rows: Sequence[ArmRow], totals: dict[int, Counts], history: History, row: Campaign, now: float
) -> tuple[list[ArmView], int]:
    """All arms in their order, and how many that could be chosen are not among those compared."""
    last_hour = by_arm(history.by(60, now - HOUR))
    most = row.settings.terms.reward_max
    active = sorted(
        (row for row in rows if row.active), key=lambda arm: -totals.get(arm.number, Counts(0, 0)).costs_reported
    )
    shown = {row.number for row in active[:ARMS_COMPARED_MAX]}
    shown |= {row.number for row in rows[: 2 * ARMS_COMPARED_MAX] if not row.active}
    arms = []
    for arm_row in rows:
        if arm_row.number in shown:
            counts = totals.get(arm_row.number) or Counts(0, arm_row.number)
            price = row.settings.cost_scale(arm_row.cost_cap)
            scales = most, to_units(price)
            now_told = _feedback(counts, None, most, price)
            then_told = _feedback(counts, last_hour.get(arm_row.number), most, price)
            arms.append(ArmView(
                arm_row.number, arm_row.name, to_units(arm_row.cost_cap), price, arm_row.active, counts.decided,
                to_units(counts.spent), to_units(counts.cost), counts.reward, int(arm_row.learned["pulls"]),
                counts.rewards_reported > 0, counts.prices[0] > 0, belief(now_told, *scales),
                belief(then_told, *scales) if then_told.cost.count or then_told.reward.count else None, None,
                *_cooldown(arm_row, now), learned_as=to_units(price) if now_told.cost.mean > 1.0 else None,
                requests_used=counts.requests_used,
            ))  # fmt: skip
    choosable = [arm for arm in arms if arm.active]
    for arm, chance in zip(choosable, chances_of_best([arm.belief for arm in choosable]), strict=True):
        arm.chance = chance if arm.reported else None  # without feedback there is no estimate to compare
    return arms, len(active) - len(choosable)


def other_arms(rows: Sequence[ArmRow], shown: Container[int], totals: dict[int, Counts]) -> list[OtherArm]:
    """The others, those with the most spend first."""
    others = [
        OtherArm(row.name, to_units(row.cost_cap), row.active, int(row.learned["pulls"]),
                 to_units(totals[row.number].spent) if row.number in totals else 0.0)
        for row in rows if row.number not in shown
    ]  # fmt: skip
    return sorted(others, key=lambda arm: -arm.spent)


def _cooldown(arm: ArmRow, now: float) -> tuple[int, float | None]:
    status = ArmStatus.from_row(arm.learned, now)
    return status.failures, status.until


def saved_by(arms: Sequence[ArmView], totals: Mapping[int, Counts], row: Campaign, spent: int) -> dict[str, Any] | None:
    """None until every arm that can be chosen is known and there is a reward; and for a horizon, whose goal is not the
    best ratio."""
    choosable = [arm for arm in arms if arm.active]
    counts = [totals.get(arm.number) for arm in choosable]
    compared = [count for count in counts if count is not None and _is_known(count)]
    bought = [_bought(total) for total in totals.values() if _is_known(total)]
    money, reward = sum(pair[0] for pair in bought), sum(pair[1] for pair in bought)
    paced = row.settings.terms.horizon is not None
    if paced or len(choosable) < 2 or len(compared) < len(choosable) or not reward or not money:
        return None
    most, beliefs = row.settings.terms.reward_max, []
    for arm, counted in zip(choosable, compared, strict=True):
        beliefs.append(belief(_feedback_with_failures(counted, most, arm.scale), most, to_units(arm.scale)))
    comparison = compare(to_units(money), reward, beliefs, chances_of_best(beliefs))
    claim = "saved" if comparison.saved.low > 0.0 else "lost" if comparison.saved.high < 0.0 else None
    return asdict(comparison) | {
        "claim": claim,
        "best_arm": choosable[comparison.best_arm].name, "spent": to_units(money), "left_out": to_units(spent - money),
        "arms": len(choosable),
    }  # fmt: skip


def _is_known(counts: Counts) -> bool:
    """Whether costs and rewards of an arm are reported, or it has only failed."""
    answered = counts.prices[0]
    return bool(counts.rewards_reported) if answered else bool(counts.failed and not counts.rewards_reported)


def _bought(counts: Counts) -> tuple[int, float]:
    """The money in micros of the requests of an arm that count, and their reward."""
    answered, charged = counts.prices[0], counts.cost - counts.overrun
    both = min(answered, counts.rewards_reported)
    money = charged if both == answered else round(charged * both / answered)
    return money, counts.reward if both == counts.rewards_reported else counts.reward * both / counts.rewards_reported


def _feedback_with_failures(counts: Counts, reward_max: float, price: int) -> ArmFeedback:
    """The feedback on an arm with its failures, as shares of the largest reward and price."""
    answered, charged = counts.prices[0], counts.cost - counts.overrun
    failed = counts.failed * counts.rewards_reported / answered if answered else counts.failed
    # no charge is above the cap, so that their squares add up to no more than this without the overruns
    squares = min(counts.cost_squared, float(charged) * price)
    return ArmFeedback(
        ValueSums(counts.rewards_reported + failed, counts.reward / reward_max, counts.reward_squared / reward_max**2),
        ValueSums(counts.costs_reported, charged / price, squares / float(price) ** 2),
    )
