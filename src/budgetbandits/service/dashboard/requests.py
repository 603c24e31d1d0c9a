"""The requests of a campaign with a horizon or segments: answered against expected, and the results of each segment."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from budgetbandits.policies.paced.statistics import COUNT, PAID, REWARD
from budgetbandits.service.campaigns import answered_of
from budgetbandits.service.ledger import to_units
from budgetbandits.service.own_policies import policy_of
from budgetbandits.service.projection import MedianInterval, lasts_for
from budgetbandits.service.segment_sums import SUMS_ENTRY, SegmentSums
from budgetbandits.service.stores.records import ArmRow, Campaign, Counts

SEGMENTS_SHOWN = 12
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
    """``horizon`` is how many are expected in all, if that was said, ``failed`` how many of them had no answer, and
    ``used`` how many have used their money, with or without a reward; ``per_request`` is what one of these has cost,
    and ``to_come`` what is left for each still to come."""

    answered: int
    failed: int
    used: int
    horizon: float | None
    per_request: float | None
    to_come: float | None
    segments: list[SegmentLine]
    not_shown: int
    stops: bool
    """Whether the policy makes no decision beyond the horizon."""
    lasts: MedianInterval | None
    """Number of requests for which the money lasts in all, at the mean cost so far."""
    left_over: float | None
    """Money that is left when all expected requests have come, if they do."""

    @property
    def beyond(self) -> bool:
        """Whether more have come than were expected."""
        return self.horizon is not None and self.used > self.horizon

    def as_json(self, names: Sequence[str]) -> dict[str, Any]:
        """The view as JSON."""
        return {
            "answered": self.answered, "failed": self.failed, "used": self.used, "horizon": self.horizon,
            "cost_each": self.per_request, "left_each": self.to_come,
            "money_lasts_for": None if self.lasts is None else asdict(self.lasts), "left_over": self.left_over,
            "segments": [
                {"name": line.name, "answered": line.answered, "mean_reward": line.reward, "mean_cost": line.cost,
                 "most_by": names[line.arm], "most_share": line.arm_share}
                for line in self.segments
            ],
        }  # fmt: skip


def requests_of(row: Campaign, arms: Sequence[ArmRow], totals: Collection[Counts]) -> Requests | None:
    """The requests of a campaign, with the totals of each arm; None for one that has neither a horizon nor segments."""
    horizon, named = row.settings.terms.horizon, row.learned.get("segments", [])
    if horizon is None and not named:
        return None
    lines = [line for number, name in enumerate(named) if (line := _line(row, arms, number, name)) is not None]
    lines.sort(key=lambda line: -line.answered)
    spent, used, failed = (
        sum(getattr(total, name) for total in totals) for name in ("spent", "requests_used", "failed")
    )
    to_come = None
    if horizon is not None and horizon > used:
        to_come = to_units(row.account.budget - spent) / max(horizon - used, 1.0)  # as the policy counts the last one
    per_request = to_units(spent) / used if used else None
    left, lasts, left_over = row.account.budget - spent, None, None
    if horizon is not None:
        lasts = lasts_for(used, spent, sum(counts.cost_squared for counts in totals), left)
        if per_request is not None:
            left_over = max(to_units(left) - per_request * max(horizon - used, 0.0), 0.0)
    return Requests(answered_of(arms), failed, used, horizon, per_request, to_come, lines[:SEGMENTS_SHOWN],
                    len(lines[SEGMENTS_SHOWN:]), stops_at_horizon(row), lasts, left_over)  # fmt: skip


def stops_at_horizon(row: Campaign) -> bool:
    """Whether a policy that plans with a horizon makes no decision beyond it; `bts-paced` and `bts-linear` go on."""
    return not policy_of(row).looks_at_requests


def _line(row: Campaign, arms: Sequence[ArmRow], number: int, name: str | None) -> SegmentLine | None:
    """None without feedback."""
    kept = SegmentSums.kept_for(policy_of(row), 0) is not None
    sums = [_reported(arm, number) if kept else _learned(row, arm, number) for arm in arms]
    answered, reward, cost = (sum(column) for column in zip(*sums, strict=True))
    if not answered:
        return None
    most = max(range(len(arms)), key=lambda place: sums[place][0])
    return SegmentLine(
        "without a segment" if name is None else name, round(answered), reward / answered,
        to_units(1) * cost / answered, arms[most].number, sums[most][0] / answered,
    )  # fmt: skip


def _reported(arm: ArmRow, segment: int) -> tuple[float, float, float]:
    """How many requests of a segment an arm has answered, what they brought, and what they cost in micros."""
    sums = arm.learned.get(SUMS_ENTRY, ())
    return tuple(sums[segment]) if len(sums) > segment else (0, 0.0, 0)


def _learned(row: Campaign, arm: ArmRow, segment: int) -> tuple[float, float, float]:
    """The same from the sums of the policy."""
    sums = arm.learned.get("sums", ())
    if len(sums) <= COUNT or len(sums[COUNT]) <= segment:
        return 0.0, 0.0, 0.0
    count, reward, cost = (float(sums[place][segment]) for place in (COUNT, REWARD, PAID))
    return count, reward * row.settings.terms.reward_max, cost * row.settings.cost_scale(arm.cost_cap)
