"""Shares of decisions and of spend by arm over time, as the page of a campaign draws them."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from budgetbandits.service.dashboard.svg import ARM_COLOURS

What = Literal["decisions", "spend"]
OTHERS = -1
"""The arms that have no colour of their own, together."""
GROUPS = 48
"""Slots that shares are drawn in, at most ..."""
IN_GROUP = 8
"""... and how many decisions they have on average, at least: shares of fewer say nothing."""


@dataclass
class Slot:
    """What happened in a slot of time, by arm: decisions, and money spent."""

    begins: float
    decided: dict[int, int]
    spent: dict[int, float]


@dataclass(frozen=True)
class Shares:
    """Slots put together until they are few; those without decisions are left out."""

    seconds: int
    """How long each is."""
    at: list[float]
    """Where each is drawn: from edge to edge."""
    layers: dict[What, list[tuple[int, list[float]]]]
    """(arm, its share in each), the first arm first; all without a colour are `OTHERS`, which are last."""

    @classmethod
    def of(cls, slots: Sequence[Slot], slot: int, begins: float, ends: float, named: Container[int]) -> Shares:
        decided = sum(sum(each.decided.values()) for each in slots)
        most = min(max(decided // IN_GROUP, 3), GROUPS)
        seconds = slot * -(-max(1, round((ends - begins) / slot)) // most)
        groups = _grouped(slots, seconds)
        groups = groups * 2 if len(groups) == 1 else groups
        at = [min(max(each.begins + seconds / 2, begins), ends) for each in groups]
        at = [begins, *at[1:-1], ends] if at else []
        layers: dict[What, list[tuple[int, list[float]]]] = {
            "decisions": _layers([each.decided for each in groups], named),
            "spend": _layers([each.spent for each in groups], named),
        }  # fmt: skip
        return cls(seconds, at, layers)


def colours(slots: Sequence[Slot], arms: int) -> dict[int, int]:
    """Which arms have a colour of their own, and its place: those with the largest shares of decisions and spend.

    An arm among the first keeps the colour of its place in the order of creation; later ones take what is left.

    >>> colours([Slot(0.0, {0: 1, 7: 9}, {0: 1.0, 7: 9.0})], 8)
    {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 7: 5}
    """
    parts = [0.0] * arms
    for values in ([each.decided for each in slots], [each.spent for each in slots]):
        total = sum(max(value, 0.0) for by_arm in values for value in by_arm.values()) or 1.0
        for by_arm in values:
            for arm, value in by_arm.items():
                parts[arm] += max(value, 0.0) / total
    largest = sorted(sorted(range(arms), key=lambda arm: -parts[arm])[:ARM_COLOURS])
    free = iter(place for place in range(ARM_COLOURS) if place not in largest)
    return {arm: arm if arm < ARM_COLOURS else next(free) for arm in largest}


def _grouped(slots: Sequence[Slot], seconds: int) -> list[Slot]:
    made: dict[float, Slot] = {}
    for slot in slots:
        begins = slot.begins - slot.begins % seconds
        group = made.setdefault(begins, Slot(begins, {}, {}))
        for arm, number in slot.decided.items():
            group.decided[arm] = group.decided.get(arm, 0) + number
        for arm, amount in slot.spent.items():
            group.spent[arm] = group.spent.get(arm, 0.0) + amount
    return [made[begins] for begins in sorted(made) if any(made[begins].decided.values())]


def _layers(values: Sequence[Mapping[int, float]], named: Container[int]) -> list[tuple[int, list[float]]]:
    made: dict[int, list[float]] = {}
    for place, by_arm in enumerate(values):
        # feedback may take back more than a slot was charged
        total = sum(max(value, 0.0) for value in by_arm.values()) or 1.0
        for arm, value in by_arm.items():
            layer = made.setdefault(arm if arm in named else OTHERS, [0.0] * len(values))
            layer[place] += max(value, 0.0) / total
    return sorted(made.items(), key=lambda each: (each[0] == OTHERS, each[0]))
