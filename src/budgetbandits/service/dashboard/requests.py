"""Requests of a campaign that looks at them: how many are answered of those expected, and what each segment brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from budgetbandits.policies.paced_sums import COUNT, PAID, REWARD
from budgetbandits.service.ledger import to_units
from budgetbandits.service.stores.records import ArmRow, Campaign

SHOWN = 12
"""Segments, those with the most requests."""


@dataclass(frozen=True)
class SegmentLine:
    """One segment: requests answered in full, means of what they brought and cost, and who answered most of them."""

    name: str
    answered: int
    reward: float
    cost: float
    arm: int
    arm_share: float


@dataclass(frozen=True)
class Requests:
    """``horizon`` is how many are expected in all, if that was said, and ``failed`` how many of them had no answer;
    ``each`` is what one that was answered has cost so far, and ``to_come`` what is left for each still to come."""

    answered: int
    failed: int
    horizon: float | None
    each: float | None
    to_come: float | None
    segments: list[SegmentLine]
    not_shown: int

    def as_json(self, names: Sequence[str]) -> dict[str, Any]:
        return {
            "answered": self.answered, "failed": self.failed, "horizon": self.horizon, "cost_each": self.each,
            "left_each": self.to_come,
            "segments": [
                {"name": line.name, "answered": line.answered, "mean_reward": line.reward, "mean_cost": line.cost,
                 "most_by": names[line.arm], "most_share": line.arm_share}
                for line in self.segments
            ],
        }  # fmt: skip


def requests_of(row: Campaign, arms: Sequence[ArmRow], answered: int, spent: int) -> Requests | None:
    """None for a campaign that has neither a horizon nor segments."""
    horizon, named = row.settings.get("horizon"), row.learned.get("segments", [])
    if horizon is None and not named:
        return None
    lines = [line for number, name in enumerate(named) if (line := _line(row, arms, number, name)) is not None]
    lines.sort(key=lambda line: -line.answered)
    failed, to_come = failed_of(row, arms), None
    gone = answered + failed
    if horizon is not None and horizon > gone:
        to_come = to_units(row.account.budget - spent) / (horizon - gone)
    each = to_units(spent) / answered if answered else None
    return Requests(answered, failed, horizon, each, to_come, lines[:SHOWN], len(lines[SHOWN:]))


def failed_of(row: Campaign, arms: Sequence[ArmRow]) -> int:
    """How many requests have failed; by rules before 3 these are not of the horizon."""
    if row.settings.get("rules", 0) < 3:
        return 0
    return sum(int(arm.learned["rest"]["failures"]) for arm in arms if "rest" in arm.learned)


def _line(row: Campaign, arms: Sequence[ArmRow], number: int, name: str | None) -> SegmentLine | None:
    """None if nothing was told of it yet."""
    counts = [_sum(arm, COUNT, number) for arm in arms]
    answered = sum(counts)
    if not answered:
        return None
    reward = sum(_sum(arm, REWARD, number) for arm in arms) * row.settings["reward_max"]
    own = row.settings.get("own_scales")
    cost = sum(_sum(arm, PAID, number) * (arm.cost_cap if own else row.settings["cost_max"]) for arm in arms)
    most = max(range(len(arms)), key=counts.__getitem__)
    return SegmentLine(
        "without a segment" if name is None else name, round(answered), reward / answered,
        to_units(1) * cost / answered, arms[most].number, counts[most] / answered,
    )  # fmt: skip


def _sum(arm: ArmRow, what: int, segment: int) -> float:
    sums = arm.learned.get("sums", ())
    return float(sums[what][segment]) if len(sums) > what and len(sums[what]) > segment else 0.0
