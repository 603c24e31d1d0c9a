"""Shares of decisions and of spend by arm over time, as the page of a campaign draws them."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from budgetbandits.service.dashboard.charts.cell_charts import ARM_COLOURS

ShareKind = Literal["decisions", "spend"]
OTHER_ARMS = -1
"""The arms that have no colour of their own, together."""
GROUPS_MAX = 48
"""Most slots in which shares are drawn."""
GROUP_DECISIONS_MIN = 8
"""Fewest decisions of a slot on average: shares of fewer say nothing."""


@dataclass
class Slot:
    """A slot of time: decisions and spending by arm."""

    begins: float
    decided: dict[int, int]
    spent: dict[int, float]


Layer = tuple[int, list[float]]
"""An arm, and its share at each point."""


@dataclass(frozen=True)
class Stretch:
    """A time in which there was something to share in every slot."""

    timestamps: list[float]
    """Times of the values: both edges, and the middles of the slots between."""
    layers: list[Layer]
    """Layers of the arms, the first arm first; arms without a colour are `OTHER_ARMS`, the last layer."""


@dataclass(frozen=True)
class Shares:
    """Slots put together until they are few. Between two stretches there was nothing to share."""

    seconds: int
    """How long each slot is."""
    stretches: dict[ShareKind, list[Stretch]]
    whole: dict[ShareKind, list[tuple[int, float]]]
    """(arm, its share of all that is shown)."""

    @classmethod
    def of(cls, slots: Sequence[Slot], slot: int, begins: float, ends: float, named: Container[int]) -> Shares:
        """The shares of arms in these slots."""
        decided = sum(sum(slot.decided.values()) for slot in slots)
        most = min(max(decided // GROUP_DECISIONS_MIN, 3), GROUPS_MAX)
        seconds = slot * -(-max(1, round((ends - begins) / slot)) // most)
        groups = _grouped(slots, seconds)
        values: dict[ShareKind, list[tuple[float, Mapping[int, float]]]] = {
            "decisions": [(group.begins, group.decided) for group in groups],
            "spend": [(group.begins, group.spent) for group in groups],
        }
        span = seconds, begins, max(ends, begins)
        return cls(
            seconds,
            {kind: _stretches(given, span, named) for kind, given in values.items()},
            {kind: _whole([amounts for _, amounts in given], named) for kind, given in values.items()},
        )


def colours(slots: Sequence[Slot], arms: int) -> dict[int, int]:
    """Which arms have a colour of their own, and its place: those with the largest shares of decisions and spend.

    An arm among the first keeps the colour of its place in the order of creation; later ones take what is left.

    >>> colours([Slot(0.0, {0: 1, 7: 9}, {0: 1.0, 7: 9.0})], 8)
    {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 7: 5}
    """
    parts = [0.0] * arms
    for values in ([slot.decided for slot in slots], [slot.spent for slot in slots]):
        total = sum(max(value, 0.0) for amounts in values for value in amounts.values()) or 1.0
        for amounts in values:
            for arm, value in amounts.items():
                parts[arm] += max(value, 0.0) / total
    largest = sorted(sorted(range(arms), key=lambda arm: -parts[arm])[:ARM_COLOURS])
    free = iter(place for place in range(ARM_COLOURS) if place not in largest)
    return {arm: arm if arm < ARM_COLOURS else next(free) for arm in largest}


def _grouped(slots: Sequence[Slot], seconds: int) -> list[Slot]:
    result: dict[float, Slot] = {}
    for slot in slots:
        begins = slot.begins - slot.begins % seconds
        group = result.setdefault(begins, Slot(begins, {}, {}))
        for arm, number in slot.decided.items():
            group.decided[arm] = group.decided.get(arm, 0) + number
        for arm, amount in slot.spent.items():
            group.spent[arm] = group.spent.get(arm, 0.0) + amount
    return [result[begins] for begins in sorted(result)]


def _stretches(
    given: Sequence[tuple[float, Mapping[int, float]]], span: tuple[int, float, float], named: Container[int]
) -> list[Stretch]:
    """Slots one after the other, each with its beginning, as stretches without a gap."""
    seconds, begins, ends = span
    result: list[list[tuple[float, Mapping[int, float]]]] = []
    for at, amounts in given:
        if not any(value > 0.0 for value in amounts.values()):
            continue
        if not result or at > result[-1][-1][0] + seconds:
            result.append([])
        result[-1].append((at, amounts))
    stretches = []
    for stretch in result:
        middles = [at + seconds / 2 for at, _ in stretch]
        edges = [stretch[0][0], *middles, stretch[-1][0] + seconds]
        values = [amounts for _, amounts in stretch]
        layers = _layers([values[0], *values, values[-1]], named)
        stretches.append(Stretch([min(max(at, begins), ends) for at in edges], layers))
    return stretches


def _whole(values: Sequence[Mapping[int, float]], named: Container[int]) -> list[tuple[int, float]]:
    total: dict[int, float] = {}
    for amounts in values:
        for arm, value in amounts.items():
            total[arm] = total.get(arm, 0.0) + value
    return [(arm, part) for arm, [part] in _layers([total], named)]


def _layers(values: Sequence[Mapping[int, float]], named: Container[int]) -> list[Layer]:
    result: dict[int, list[float]] = {}
    for place, amounts in enumerate(values):
        # feedback may take back more than a slot was charged
        total = sum(max(value, 0.0) for value in amounts.values()) or 1.0
        for arm, value in amounts.items():
            layer = result.setdefault(arm if arm in named else OTHER_ARMS, [0.0] * len(values))
            layer[place] += max(value, 0.0) / total
    return sorted(result.items(), key=lambda layer: (layer[0] == OTHER_ARMS, layer[0]))
