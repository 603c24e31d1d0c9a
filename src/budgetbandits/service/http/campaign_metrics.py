"""Series of each campaign for Prometheus: its money, its standing, its projected end, as the store has them now.

Bounded: closed campaigns have no series, `CampaignSeries` says how many campaigns have some and which, and amounts that
are 0 for nearly every campaign are left out while they are. A scrape reads some campaigns at a time and rests in
between, so that decisions, which wait for the same lock of Python's, wait for some campaigns and not for all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from budgetbandits.errors import BadParameter
from budgetbandits.service.campaigns import damaged_campaigns
from budgetbandits.service.ledger import to_units
from budgetbandits.service.projection import RunsOut
from budgetbandits.service.standing import Outlook, outlooks
from budgetbandits.service.stores.contract import Store, Transaction
from budgetbandits.service.stores.records import Rank
from budgetbandits.service.stores.sql.dashboard import CampaignPage

CAMPAIGNS_MAX = 1000
"""How many campaigns have series, if nothing else is said: the most urgent ones."""
CAMPAIGNS_AT_ONCE = 20
"""Campaigns that are read without a pause."""
REST_SHARE = 3.0
"""Length of the pause, as a multiple of the time for which the processor was busy with these campaigns."""
PROJECTION_SECONDS = 60.0
"""How often the end of a campaign's money is projected again."""
DAMAGE_SECONDS = 60.0
"""How often it is looked for damage, which takes reading all that campaigns have learned."""

Value = Callable[[Outlook], float | None]


def _amount(name: str, rare: bool = False) -> Value:
    """A kind of money; a rare one only where there is any."""

    def value(outlook: Outlook) -> float | None:
        micros = getattr(outlook.glance.account, name)
        return None if rare and not micros else to_units(micros)

    return value


SERIES: dict[str, tuple[str, str, Value]] = {
    "budget": ("budget", "What may be spent in all.", _amount("budget")),
    "spent": ("spent", "Spent, without what leases have not merged yet.", _amount("spent")),
    "held": ("held", "Held for decisions whose cost is not reported yet.", _amount("held")),
    "leased": ("leased", "Reserved by servers that decide by themselves; no series if 0.", _amount("leased", True)),
    "left": (
        "left", "What new decisions can have: of its own budget, or of a shared one that has less.",
        lambda outlook: to_units(outlook.glance.left),
    ),
    "overrun": ("overrun", "Costs beyond caps or the money there was; no series if 0.", _amount("overrun", True)),
    "arms_down": (
        "arms_down", "Arms that are not asked because they failed too often in a row; no series if 0.",
        lambda outlook: len(outlook.glance.arms_down) or None,
    ),
    "standing": ("standing", "1, labelled with the standing that the campaign has now.", lambda outlook: 1.0),
    "projected_end": (
        "projected_end_timestamp_seconds", "When the money is likely to end; no series if that is not known.",
        lambda outlook: None if outlook.runs_out is None else outlook.runs_out.median,
    ),
    "behind_plan": (
        "behind_plan_ratio", "What was spent less than planned, as a share of the budget; no series without a plan.",
        lambda outlook: None if outlook.pace is None else outlook.pace.share,
    ),
    "spent_24_hours": (
        "spent_24_hours", "Spent in the last 24 hours.", lambda outlook: to_units(outlook.spent_24_hours),
    ),
    "reward_24_hours": ("reward_24_hours", "Rewards reported in the last 24 hours.", lambda outlook: outlook.reward),
}  # fmt: skip
"""Metrics by the name that a setting may list: the metric after ``budgetbandits_campaign_``, its help and its value."""


SHARED_SERIES = {
    "budget": "What the campaigns of a shared budget may spend together.",
    "spent": "Spent by them.",
    "left": "Neither spent, held nor leased by any of them.",
}
"""The amounts of a shared budget that have series."""


@dataclass(frozen=True)
class CampaignSeries:
    """Which series a campaign has, and how many campaigns have any."""

    names: tuple[str, ...] = tuple(SERIES)
    campaigns_max: int = CAMPAIGNS_MAX

    @classmethod
    def parse(cls, text: str | None, campaigns_max: int = CAMPAIGNS_MAX) -> CampaignSeries:
        """The series of names separated by commas; None is all of them, and "none" none.

        >>> CampaignSeries.parse("left, standing").names
        ('left', 'standing')
        """
        if text is None or text.strip() == "none":
            return cls(() if text else tuple(SERIES), campaigns_max)
        names = tuple(name.strip() for name in text.split(","))
        wrong = [name for name in names if name not in SERIES]
        if wrong or len(set(names)) < len(names):
            what = f"there is no series {wrong[0]!r:.40}" if wrong else f"{text!r:.60} has a name twice"
            raise BadParameter(f"{what}; list some of {', '.join(SERIES)}, separated by commas, or none")
        return cls(names, campaigns_max)


class CampaignMetrics:
    """The page of one server's campaigns, in Prometheus's text format."""

    def __init__(self, store: Store, series: CampaignSeries) -> None:
        self._store, self._series = store, series
        self._turn = threading.Lock()
        self._made = (float("-inf"), b"")
        """When the latest page was begun, and the page."""
        self._damaged = (float("-inf"), 0)
        self._projected: dict[str, tuple[float, RunsOut | None]] = {}

    def page(self) -> bytes:
        """Made once for all who wait for it at the same time."""
        asked = time.monotonic()
        with self._turn:
            if self._made[0] < asked:
                begun = time.monotonic()
                self._made = begun, "".join(self._lines()).encode()
            return self._made[1]

    def _lines(self) -> Iterator[str]:
        listed = self._store.read(self._listed)
        lines: dict[str, list[str]] = {name: [] for name in self._series.names}
        lag = 0.0
        for outlook in self._outlooks(listed.ids if self._series.names else []):
            if outlook.glance.rolled_up_until is not None:
                lag = max(lag, outlook.now - outlook.glance.rolled_up_until)
            if outlook.standing.rank == Rank.CLOSED:
                continue
            label = f'campaign="{_escaped(outlook.glance.name)}"'
            for name, part in lines.items():
                value = SERIES[name][2](outlook)
                if value is not None:
                    more = f',standing="{outlook.name}"' if name == "standing" else ""
                    part.append(f"budgetbandits_campaign_{SERIES[name][0]}{{{label}{more}}} {float(value)!r}\n")
        for name, part in lines.items():
            yield from _family(f"campaign_{SERIES[name][0]}", SERIES[name][1], part)
        yield from self._shared_budgets()
        yield from self._sums(listed, lag)

    def _listed(self, tx: Transaction) -> CampaignPage:
        most = self._series.campaigns_max
        return tx.pages().campaign_list().listed(tx.now(), "", "all", "alarm", most, 0)

    def _outlooks(self, ids: list[str]) -> Iterator[Outlook]:
        kept, self._projected = self._projected, {}
        for first in range(0, len(ids), CAMPAIGNS_AT_ONCE):
            begun, busy = time.monotonic(), time.thread_time()
            part, oldest = ids[first : first + CAMPAIGNS_AT_ONCE], begun - PROJECTION_SECONDS
            cached = {id: kept[id] for id in part if id in kept and kept[id][0] > oldest}
            projected = {id: end for id, (_, end) in cached.items()}
            for outlook in self._store.read(partial(outlooks, campaigns=part, projected=projected)):
                id = outlook.glance.id
                self._projected[id] = cached.get(id, (begun, outlook.runs_out))
                yield outlook
            time.sleep(REST_SHARE * (time.thread_time() - busy))

    def _shared_budgets(self) -> Iterator[str]:
        """The money of budgets over several campaigns, of as many as campaigns may have series."""
        most = self._series.campaigns_max if self._series.names else 0
        rows = self._store.read(lambda tx: tx.shared_budgets().all(most)) if most else []
        for name, text in SHARED_SERIES.items():
            lines = [
                f'budgetbandits_shared_budget_{name}{{shared_budget="{_escaped(row.name)}"}} '
                f"{to_units(getattr(row.account, name))!r}\n"
                for row in rows
            ]
            yield from _family(f"shared_budget_{name}", text, lines)

    def _sums(self, listed: CampaignPage, lag: float) -> Iterator[str]:
        """The sums over all campaigns: few series, however many campaigns there are."""
        counts = {rank: listed.counts.get(rank, 0) for rank in Rank}
        part = [f'budgetbandits_campaigns{{rank="{rank.name.lower()}"}} {count}.0\n' for rank, count in counts.items()]
        yield from _family("campaigns", "Campaigns by how urgent they are on the page.", part)
        running = sum(counts.values()) - counts[Rank.CLOSED]
        left_out = max(0, running - self._series.campaigns_max) if self._series.names else running
        for name, text, value in (
            ("campaigns_left_out", "Campaigns that are not closed and have no series.", left_out),
            ("damaged_campaigns", "Campaigns whose rows cannot be read.", self._damage()),
            ("rollup_lag_seconds", "Age of the oldest event that pages and standings do not know of yet.", lag),
        ):
            yield from _family(name, text, [f"budgetbandits_{name} {float(value)!r}\n"])

    def _damage(self) -> int:
        now = time.monotonic()
        if now - self._damaged[0] > DAMAGE_SECONDS:
            self._damaged = now, len(damaged_campaigns(self._store))
        return self._damaged[1]


def _family(name: str, text: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"# HELP budgetbandits_{name} {text}\n# TYPE budgetbandits_{name} gauge\n"
    yield from lines


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
