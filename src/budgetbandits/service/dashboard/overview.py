"""The overview page: all campaigns as plain data, and the same as JSON."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from budgetbandits.formatting.datetimes import HOUR
from budgetbandits.service.dashboard.query import ListQuery
from budgetbandits.service.ledger import to_units
from budgetbandits.service.projection import RunsOut, lasts_for
from budgetbandits.service.standing import Pace, Standing, outlooks
from budgetbandits.service.stores.contract import Transaction
from budgetbandits.service.stores.records import CampaignSummary
from budgetbandits.terms import MONEY

CAMPAIGNS_PER_PAGE = 100
"""Campaigns on a page."""

SPARK_HOURS = 24
"""Hours in the small picture of spending."""

DECISION_DIGITS = re.compile(r"[0-9a-f]{8,32}")
"""Pattern of the beginning of a decision's id."""

DECISIONS_FOUND_MAX = 5
"""Most decisions that a search in the list shows."""


@dataclass
class CampaignLine:
    """One campaign of the list."""

    glance: CampaignSummary
    standing: Standing
    pace: Pace | None
    hours: list[float]
    """Spent in each of the last 24 hours, the latest last; as of a few seconds ago."""
    runs_out: RunsOut | None
    lasts: float | None
    """Number of requests for which the money lasts, if it is for a number of them."""


@dataclass(frozen=True)
class CurrencySums:
    """The money of all campaigns in one currency, in its unit."""

    currency: str | None
    campaigns: int
    budget: float
    spent: float
    held: float
    leased: float
    overrun: float
    left: float
    """Money for new decisions: of a member of a shared budget, at most what that has left."""
    spent_with_leases: float

    @property
    def open(self) -> float:
        """Held, and leased without what leases have spent."""
        return self.held + self.leased - (self.spent_with_leases - self.spent)


@dataclass
class Overview:
    """A page of the list, and sums over all campaigns that the key may see."""

    now: float
    query: ListQuery
    lines: list[CampaignLine]
    matching: int
    """Campaigns in all that were asked for."""
    counts: Counter[str]
    """Numbers of campaigns whose name fits, by group and "all"."""
    sums: list[CurrencySums]
    """Sums by currency: amounts in different ones are not added up."""
    decisions: list[tuple[str, str]]
    """(campaign, id) of decisions whose ids begin with the text that was typed."""
    tags: list[str]
    """All that campaigns have."""

    @property
    def campaigns(self) -> int:
        """The number of campaigns."""
        return sum(entry.campaigns for entry in self.sums)

    @property
    def pages(self) -> int:
        """The number of pages of the list."""
        return max(1, -(-self.matching // CAMPAIGNS_PER_PAGE))

    def as_json(self) -> dict[str, Any]:
        """The view as JSON."""
        return {
            "at": self.now, "found": self.matching, "page": self.query.page, "pages": self.pages,
            "groups": dict(self.counts), "sums": [asdict(entry) for entry in self.sums],
            "decisions": [{"campaign": name, "id": id} for name, id in self.decisions],
            "campaigns": [
                {"id": line.glance.id, "name": line.glance.name, "policy": line.glance.policy,
                 "status": line.glance.account.status, "currency": line.glance.settings.terms.currency,
                 "tags": list(line.glance.settings.terms.tags or ()),
                 "standing": {"word": line.standing.word, "cause": line.standing.cause, "group": line.standing.group},
                 **{name: to_units(getattr(line.glance.account, name)) for name in MONEY},
                 "spent_with_leases": to_units(line.glance.spent),
                 "pace_behind_share": None if line.pace is None else line.pace.share,
                 "runs_out": None if line.runs_out is None else line.runs_out.median, "money_lasts_for": line.lasts,
                 "spent_by_hour": line.hours}
                for line in self.lines
            ],
        }  # fmt: skip


def overview(tx: Transaction, query: ListQuery, only: str | None) -> Overview:
    """Read it, in one transaction; ``only`` the campaign of this id, for a key that is for one."""
    now, pages = tx.now(), tx.pages()
    lists = pages.campaign_list(only)
    listed = lists.listed(
        now, query.text, query.group, query.order, CAMPAIGNS_PER_PAGE, (query.page - 1) * CAMPAIGNS_PER_PAGE,
        query.tag,
    )  # fmt: skip
    counts: Counter[str] = Counter()
    for rank, count in listed.counts.items():
        counts[rank.group] += count
    counts["all"] = sum(listed.counts.values())
    hour, each_one = now - now % HOUR, outlooks(tx, listed.ids)
    squares = tx.rollups().cost_squares(
        [outlook.glance.id for outlook in each_one if outlook.glance.settings.terms.horizon]
    )
    lines = [
        CampaignLine(outlook.glance, outlook.standing, outlook.pace, _hours(outlook.spent_by_hour, hour),
                     outlook.runs_out, _lasts(outlook.glance, squares.get(outlook.glance.id, 0.0)))
        for outlook in each_one
    ]  # fmt: skip
    sums = [
        CurrencySums(
            entry.currency, entry.campaigns, **{name: to_units(amount) for name, amount in entry.money.items()}
        )
        for entry in lists.sums()
    ]
    return Overview(
        now, query, lines, counts[query.group], counts, sums, _decisions(tx, query.text, only), lists.tags()
    )


def _decisions(tx: Transaction, text: str, only: str | None) -> list[tuple[str, str]]:
    """Decisions of any campaign whose ids begin with a text of at least eight hexadecimal digits, by their index."""
    if not DECISION_DIGITS.fullmatch(text):
        return []
    pages = tx.pages()
    result = pages.search().with_prefix(text, DECISIONS_FOUND_MAX, only)
    names = pages.names(sorted({decision.campaign for decision in result}))
    return [(names[decision.campaign], decision.id) for decision in result if decision.campaign in names]


def _lasts(glance: CampaignSummary, squares: float) -> float | None:
    account = glance.account
    if glance.settings.terms.horizon is None:
        return None
    lasts = lasts_for(account.requests_used, account.spent, squares, account.budget - account.spent)
    return None if lasts is None else lasts.median


def _hours(spent: dict[int, int], hour: float) -> list[float]:
    """The spending in each of the last hours, this one last."""
    return [to_units(spent.get(int(hour - HOUR * back), 0)) for back in reversed(range(SPARK_HOURS))]
