"""The arms on the page of a campaign: those that are compared, and the others."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from budgetbandits.formatting.datetimes import HOUR
from budgetbandits.service.campaign_cooldowns import Rest
from budgetbandits.service.dashboard.beliefs import MOST_ARMS, Belief, Told, Values, belief, chances_of_best
from budgetbandits.service.dashboard.worth import Worth, chances_of_most, worth_of
from budgetbandits.service.ledger import to_units
from budgetbandits.service.rollups import History, by_arm
from budgetbandits.service.settings import cost_scale
from budgetbandits.service.stores.records import ArmRow, Campaign, Counts


@dataclass
class Arm:
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
    told: int
    """Costs and rewards that are known."""
    belief: Belief
    hour_ago: Belief | None
    """None if nothing had been told of it by then."""
    chance: float | None
    """Of being the best; None if it is retired, or nothing was told of it."""
    failures: int = 0
    rests_until: float | None = None
    """None if it does not rest after a failure now."""
    worth: Worth | None = None
    """Of a request that it answers, if the budget is for so many requests ..."""
    worth_hour_ago: Worth | None = None
    """... and by what had been told an hour ago, at the price of now."""
    learned_as: float | None = None
    """What its mean price counts as to the policy, which learns no price above that; None if it is not above."""

    @property
    def chance_order(self) -> tuple[bool, bool, float, float]:
        """The likely best first, then those of which nothing is known, retired arms last."""
        return not self.active, self.chance is None, -(self.chance or 0.0), -self.belief.ratio.median


def by_worth(arms: Sequence[Arm], price: float | None) -> None:
    """Compare arms by what a request is worth with each, at this price on money; if it is not known, not at all."""
    for arm in arms:
        arm.chance = None
        if price is not None and arm.told:
            arm.worth = worth_of(arm.belief, price)
            arm.worth_hour_ago = None if arm.hour_ago is None else worth_of(arm.hour_ago, price)
    if price is not None:
        choosable = [arm for arm in arms if arm.active]
        chances = chances_of_most([worth_of(arm.belief, price) for arm in choosable])
        for arm, chance in zip(choosable, chances, strict=True):
            arm.chance = chance if arm.told else None


@dataclass(frozen=True)
class OtherArm:
    """An arm that is not compared with the others."""

    name: str
    cap: float
    active: bool
    pulls: int
    spent: float


def _told(counts: Counts, less: Counts | None, most: float, price: int) -> Told:
    """What was told of an arm, less what was told in the last hour, as shares of the largest reward and price."""
    less = less or Counts(0, 0)
    (count, cost, squares), (fewer, cheaper, smaller) = counts.prices, less.prices
    return Told(
        Values(counts.rewards_reported - less.rewards_reported, max(counts.reward - less.reward, 0.0) / most,
               max(counts.reward_squared - less.reward_squared, 0.0) / most**2),
        Values(count - fewer, (cost - cheaper) / price, max(squares - smaller, 0.0) / float(price) ** 2),
    )  # fmt: skip


def compared_arms(
    rows: Sequence[ArmRow], totals: dict[int, Counts], history: History, row: Campaign, now: float
) -> tuple[list[Arm], int]:
    """All arms in their order, and how many that could be chosen are not among those compared."""
    last_hour = by_arm(history.by(60, now - HOUR))
    most = row.settings["reward_max"]
    active = sorted(
        (each for each in rows if each.active), key=lambda arm: -totals.get(arm.number, Counts(0, 0)).costs_reported
    )
    shown = {each.number for each in active[:MOST_ARMS]}
    shown |= {each.number for each in rows[: 2 * MOST_ARMS] if not each.active}
    arms = []
    for each in rows:
        if each.number in shown:
            counts = totals.get(each.number) or Counts(0, each.number)
            price = cost_scale(row.settings, each.cost_cap)
            scales = most, to_units(price)
            now_told = _told(counts, None, most, price)
            then_told = _told(counts, last_hour.get(each.number), most, price)
            arms.append(Arm(
                each.number, each.name, to_units(each.cost_cap), price, each.active, counts.decided,
                to_units(counts.spent), to_units(counts.cost), counts.reward, int(each.learned["pulls"]),
                counts.prices[0] + counts.rewards_reported, belief(now_told, *scales),
                belief(then_told, *scales) if then_told.cost.count or then_told.reward.count else None, None,
                *_rest(each, now), learned_as=to_units(price) if now_told.cost.mean > 1.0 else None,
            ))  # fmt: skip
    choosable = [arm for arm in arms if arm.active]
    for arm, chance in zip(choosable, chances_of_best([arm.belief for arm in choosable]), strict=True):
        arm.chance = chance if arm.told else None  # what nobody has told anything of has no chance to speak of
    return arms, len(active) - len(choosable)


def other_arms(rows: Sequence[ArmRow], shown: Container[int], totals: dict[int, Counts]) -> list[OtherArm]:
    """The others, those with the most spend first."""
    others = [
        OtherArm(each.name, to_units(each.cost_cap), each.active, int(each.learned["pulls"]),
                 to_units(totals[each.number].spent) if each.number in totals else 0.0)
        for each in rows if each.number not in shown
    ]  # fmt: skip
    return sorted(others, key=lambda arm: -arm.spent)


def _rest(arm: ArmRow, now: float) -> tuple[int, float | None]:
    rest = Rest.of(arm.learned, now)
    return rest.failures, rest.until
