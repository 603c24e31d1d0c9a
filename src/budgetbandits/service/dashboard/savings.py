"""What a campaign saved against an even split of its money: both sides are of the same requests.

A request counts when both its cost and its reward are told. A failure counts with its cost and a reward of 0, for the
campaign and for the arms: an even split would meet each arm's failures as often as they have occurred, though policies
do not learn from them. Left out on both sides are costs without a reward, rewards without a cost, holds that expired
untold, and what is booked as overrun.

What is claimed is what the interval allows. Policies drop arms that had bad luck, and these keep their low estimates:
an even split looks worse than it is, and so the median is too high on average.

Rollups have the sums of costs and of rewards, not of the requests that have both. So where an arm has more of one, the
larger sum is taken in proportion, failures with the answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from budgetbandits.service.dashboard.arms import Arm
from budgetbandits.service.dashboard.beliefs import Told, Values, belief, chances_of_best, compare
from budgetbandits.service.ledger import to_units
from budgetbandits.service.stores.records import Campaign, Counts


def saved_by(arms: Sequence[Arm], totals: Mapping[int, Counts], row: Campaign, spent: int) -> dict[str, Any] | None:
    """None until every arm that can be chosen is known and there is a reward; and for a horizon, whose goal is not the
    best ratio."""
    choosable = [arm for arm in arms if arm.active]
    counts = [totals.get(arm.number) for arm in choosable]
    known = [each for each in counts if each is not None and _is_known(each)]
    bought = [_bought(each) for each in totals.values() if _is_known(each)]
    money, reward = sum(each[0] for each in bought), sum(each[1] for each in bought)
    paced = row.settings.get("horizon") is not None
    if paced or len(choosable) < 2 or len(known) < len(choosable) or not reward or not money:
        return None
    most, beliefs = row.settings["reward_max"], []
    for arm, each in zip(choosable, known, strict=True):
        beliefs.append(belief(_told(each, most, arm.scale), most, to_units(arm.scale)))
    made = compare(to_units(money), reward, beliefs, chances_of_best(beliefs))
    claim = "saved" if made.saved.low > 0.0 else "lost" if made.saved.high < 0.0 else None
    return asdict(made) | {
        "claim": claim,
        "best_arm": choosable[made.best_arm].name, "spent": to_units(money), "left_out": to_units(spent - money),
        "arms": len(choosable),
    }  # fmt: skip


def _is_known(counts: Counts) -> bool:
    """Whether costs and rewards of an arm are told, or it has done nothing but fail."""
    answered = counts.prices[0]
    return bool(counts.rewards_reported) if answered else bool(counts.failed and not counts.rewards_reported)


def _bought(counts: Counts) -> tuple[int, float]:
    """The money in micros of the requests of an arm that count, and their reward."""
    answered, charged = counts.prices[0], counts.cost - counts.overrun
    both = min(answered, counts.rewards_reported)
    money = charged if both == answered else round(charged * both / answered)
    return money, counts.reward if both == counts.rewards_reported else counts.reward * both / counts.rewards_reported


def _told(counts: Counts, most: float, price: int) -> Told:
    """What was told of an arm with its failures, as shares of the largest reward and price."""
    answered, charged = counts.prices[0], counts.cost - counts.overrun
    failed = counts.failed * counts.rewards_reported / answered if answered else counts.failed
    # no charge is above the cap, so that their squares add up to no more than this without the overruns
    squares = min(counts.cost_squared, float(charged) * price)
    return Told(
        Values(counts.rewards_reported + failed, counts.reward / most, counts.reward_squared / most**2),
        Values(counts.costs_reported, charged / price, squares / float(price) ** 2),
    )
