"""The table of arms on a campaign's page: what its columns are called, what is in each, and how it can be sorted.

A column is declared once. The template goes through columns and arms, and knows neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from markupsafe import Markup

from budgetbandits.formatting.datetimes import Times
from budgetbandits.formatting.money import budget_decimals, exact_money
from budgetbandits.formatting.numbers import percentage, significant, thousands
from budgetbandits.service.dashboard.arms import ArmView, OtherArm
from budgetbandits.service.dashboard.beliefs import Belief, Worth
from budgetbandits.service.dashboard.charts.cell_charts import axis_end, density, density_axis, share_bar, shared_axis
from budgetbandits.service.dashboard.query import campaign_address
from budgetbandits.service.ledger import to_units
from budgetbandits.service.projection import MedianInterval

if TYPE_CHECKING:
    from budgetbandits.service.dashboard.campaign import CampaignView

UPWARDS = ("name", "price")
"""The orders that begin with the least; others begin with the largest."""

MEAN_SIZE, RATIO_SIZE = (104, 30), (260, 40)
"""Pixels of the drawing of a reward or a price, and of a ratio or a worth."""

NONE_YET = Markup('<span class="zero">–</span>')
"""Cell without a value."""


NO_AXIS = Markup()
"""Cell without an axis."""


@dataclass(frozen=True)
class Column:
    """A column of the table.

    title    the words at its head
    cell     the cell of an arm
    order    the name of the order by it in an address, one of `query.ARM_ORDERS`; empty if there is none
    word     what the list of orders calls it
    classes  the classes of its head
    axis     the axis at its head
    """

    title: str
    cell: Callable[[ArmView], Markup]
    order: str = ""
    word: str = ""
    classes: str = ""
    axis: Markup = NO_AXIS


class ArmsTable:
    """The arms of a page as a table.

    caption  what is to be known to read it
    columns  its columns, from left to right
    arms     its arms in the order that the page is asked for
    """

    def __init__(self, view: CampaignView, times: Times, admin: bool, inline: bool) -> None:
        self._view, self._times, self._inline = view, times, inline
        self._changes = admin and view.row.account.status != "closed"
        self._digits = budget_decimals(to_units(view.row.account.budget))
        self._by_requests = view.by_requests
        self.arms: Sequence[ArmView] = view.sorted_arms
        self.caption = " ".join(self._sentences())
        self.columns: Sequence[Column] = list(self._columns())

    def _sentences(self) -> Iterator[str]:
        view, arms = self._view, self._view.arms
        if any(arm.hour_ago for arm in arms):
            yield "Dashed: an hour ago."
        yield "Heights are scaled to each arm."
        if not self._by_requests:
            yield "Ratios are as if an arm's reward and price did not depend on each other."
        elif view.prices:
            yield (
                "A request is worth its reward less its price times the price on money, "
                f"{significant(view.prices[-1][1])} now: a budget for a number of requests is spent by this measure."
            )
            if any(arm.planned for arm in arms):
                yield (
                    "Planned is who would answer the requests to come at these means and the money that is left, all "
                    "segments together."
                )
        else:
            yield "The worth of a request is shown once a reward and a cost are reported."
        active = [arm for arm in arms if arm.active]
        if any(arm.chance for arm in arms) and not all(arm.reported for arm in active):
            yield "What chances lack of 100 % is that of arms without feedback."
        if view.not_compared:
            yield f"The {len(active)} with the most feedback; {thousands(view.not_compared)} more are not compared."

    def _columns(self) -> Iterator[Column]:
        arms = self._view.arms
        yield Column("Arm", self._name, "name", "Name")
        yield Column("Share of spend", self._share, "share", "Spend", "text")
        if self._by_requests:
            yield Column("Share of requests", self._requests)
        yield Column("Pulls", self._pulls, "pulls", "Pulls")
        rewards = [(arm.belief, arm.pulls) for arm in arms if arm.rewarded]
        prices = [(arm.belief, arm.pulls) for arm in arms if arm.priced]
        for name, title, values in (("reward", "Reward", rewards), ("price", "Price", prices)):
            ends = shared_axis(name, values)
            cell = partial(self._mean, name=name, title=title, ends=ends)
            yield Column(title, cell, name, title, "text mean-head", _ends(ends) if values else NO_AXIS)
        if self._by_requests:
            worths = [(arm.worth, arm.pulls) for arm in arms if arm.worth]
            ends = shared_axis("worth", worths)
            best = max((arm.worth.worth.median for arm in arms if arm.active and arm.worth), default=None)
            axis, title, word = _ends(ends) if worths else NO_AXIS, "Worth of a request", "Worth"
            chance = "Chance of being worth most"
        else:
            ratios = [(arm.belief, arm.pulls) for arm in arms if arm.reported]
            ends = 0.0, axis_end(ratios)
            best = max((arm.belief.ratio.median for arm in arms if arm.active and arm.reported), default=None)
            axis, title, word = density_axis(ends[1], RATIO_SIZE[0]) if ratios else NO_AXIS, "Reward per unit", "Ratio"
            chance = "Chance of being best"
        head = f"{title if self._by_requests else 'Reward per unit of money'}, 95 % interval"
        drawing = partial(self._density, ends=ends, best=best)
        yield Column(head, drawing, "ratio", word, "text ratio-head", axis)
        yield Column("Median", partial(self._median, title=title))
        yield Column(chance, partial(self._chance, title=chance), "chance", "Chance")

    # --- heads ---------------------------------------------------------------------------------------------------

    @property
    def orders(self) -> list[Column]:
        """The columns that the table can be sorted by, the usual one first."""
        return sorted((column for column in self.columns if column.order), key=lambda column: column.order != "chance")

    def sorted_by(self, column: Column) -> bool:
        """Whether the table is sorted by this column, either way around."""
        return bool(column.order) and self._view.query.sort.lstrip("-") == column.order

    def address(self, order: str) -> str:
        """The page with its arms in this order."""
        return f"{campaign_address(self._view.row.name)}{self._view.query.query(sort=order)}#arms"

    def head(self, column: Column) -> Markup:
        """The head of a column: a link that sorts by it, where there is one."""
        classes = Markup(' class="{}"').format(column.classes) if column.classes else ""
        if not column.order:
            return Markup('<th scope="col"{}>{}</th>').format(classes, column.title)
        now, turned = self.sorted_by(column), self._view.query.sort.startswith("-")
        sort, arrow = Markup(""), Markup("")
        if now:
            way, sign = ("ascending", "↑") if (column.order in UPWARDS) != turned else ("descending", "↓")
            sort = Markup(' aria-sort="{}"').format(way)
            arrow = Markup('<span class="way" aria-hidden="true">{}</span>').format(sign)
        title: str | Markup = column.title
        if not self._inline:
            address = self.address(("-" if now and not turned else "") + column.order)
            title = Markup('<a class="sort" href="{}">{}{}</a>').format(address, title, arrow)
        return Markup('<th scope="col"{}{}>{}{}</th>').format(classes, sort, title, column.axis)

    # --- cells ---------------------------------------------------------------------------------------------------

    def _name(self, arm: ArmView) -> Markup:
        cap = f"{'cap' if arm.active else 'retired · cap'} {exact_money(arm.cap, self._digits)}"
        failures, cooling = Markup(""), ""
        if arm.failures:
            words = f"{thousands(arm.failures)} failure{'' if arm.failures == 1 else 's'}"
            failures = Markup(' · <span class="danger-text">{}</span>').format(words)
        if arm.cooldown_until:
            cooling = f", cools down until {self._times.clock(arm.cooldown_until)}"
        return Markup(
            '<th scope="row"><span class="swatch-name"><i class="swatch {}"></i><span class="name">{}</span></span>'
            '<span class="caption">{}{}{}{}</span></th>'
        ).format(self._view.colour(arm.number), arm.name, cap, failures, cooling, self.changes(arm))

    def changes(self, arm: ArmView | OtherArm) -> Markup:
        """The links by which who may changes an arm."""
        links, campaign = Markup(""), self._view.row.name
        if self._changes:
            links += _change(campaign_address(campaign, "change-cap", arm=arm.name), "Change cap", f" of {arm.name}")
        if self._changes and (not arm.active or self._view.glance.arms > 1):
            way, word = ("retire-arm", "Retire") if arm.active else ("bring-back-arm", "Bring back")
            links += _change(campaign_address(campaign, way, arm=arm.name), word, f" {arm.name}")
        return links

    def _share(self, arm: ArmView) -> Markup:
        if not (arm.spent or arm.decided):
            return _cell("text share-cell zero", "–", "Share of spend")
        part = arm.spent / self._view.spent_by_arms if self._view.spent_by_arms else 0.0
        text = Markup("{}<span>{}</span>").format(share_bar(part, self._view.colour(arm.number)), percentage(part))
        return _cell("text share-cell", text, "Share of spend")

    def _requests(self, arm: ArmView) -> Markup:
        used = self._view.requests.used if self._view.requests else 0
        part = percentage(arm.requests_used / used) if arm.requests_used else NONE_YET
        plan = Markup("")
        if arm.planned is not None:
            plan = Markup('<span class="caption">plan {}</span>').format(percentage(arm.planned))
        return _cell("requests-cell", Markup("{}{}").format(part, plan), "Share of requests")

    def _pulls(self, arm: ArmView) -> Markup:
        return _cell("pulls-cell", thousands(arm.pulls) if arm.pulls else NONE_YET, "Pulls")

    def _mean(self, arm: ArmView, name: str, title: str, ends: tuple[float, float]) -> Markup:
        if not (arm.rewarded if name == "reward" else arm.priced):
            return _cell("text zero", "–", title)
        mean: MedianInterval = getattr(arm.belief, name)
        text = Markup('{}{} <span class="pm">± {}</span>').format(
            density(name, arm.belief, arm.hour_ago, ends, MEAN_SIZE, self._view.colour(arm.number)),
            significant(mean.median), significant((mean.high - mean.low) / 2, 2),
        )  # fmt: skip
        if name == "price" and arm.learned_as is not None:
            text += Markup('<span class="caption danger-text">above the cap; {} learns {} at most</span>').format(
                self._view.row.policy, exact_money(arm.learned_as, self._digits)
            )
        return _cell("text mean-cell", text, title)

    def _estimate(self, arm: ArmView) -> tuple[str, Belief | Worth | None, Belief | Worth | None]:
        """The quantity that arms are compared by: its name, its value now, and its value an hour ago."""
        if self._by_requests:
            return "worth", arm.worth, arm.worth_hour_ago
        return "ratio", arm.belief, arm.hour_ago

    def _density(self, arm: ArmView, ends: tuple[float, float], best: float | None) -> Markup:
        name, now, before = self._estimate(arm)
        if not arm.reported:
            lacks = "no reward yet" if arm.priced else "no price yet" if arm.rewarded else "no feedback yet"
            return _cell("text density-cell", Markup('<span class="zero">{}</span>').format(lacks))
        if now is None:
            return _cell("text density-cell zero", "not known yet")
        colour = self._view.colour(arm.number)
        return _cell("text density-cell", density(name, now, before, ends, RATIO_SIZE, colour, best))

    def _median(self, arm: ArmView, title: str) -> Markup:
        name, now, _ = self._estimate(arm)
        if not arm.reported or now is None:
            return _cell("ratio-cell zero", "–", title)
        estimate: MedianInterval = getattr(now, name)
        text = Markup('<strong>{}</strong><span class="caption">{} {} {}</span>').format(
            significant(estimate.median), significant(estimate.low), "to" if self._by_requests else "–",
            significant(estimate.high),
        )  # fmt: skip
        return _cell("ratio-cell", text, title)

    def _chance(self, arm: ArmView, title: str) -> Markup:
        if arm.chance is not None:
            return _cell("chance-cell", percentage(arm.chance), title)
        return _cell("chance-cell", NONE_YET if arm.active else Markup('<span class="zero">retired</span>'), title)


def _cell(classes: str, content: str | Markup, label: str = "") -> Markup:
    """A cell of these classes; its label takes the place of the head on narrow screens."""
    named = Markup(' data-label="{}"').format(label) if label else ""
    return Markup('<td class="{}"{}>{}</td>').format(classes, named, content)


def _ends(ends: tuple[float, float]) -> Markup:
    """The ends of an axis that all drawings of a column share."""
    low, high = (significant(end, 2) for end in ends)
    return Markup('<span class="ends caption"><span>{}</span><span>{}</span></span>').format(low, high)


def _change(address: str, word: str, unseen: str) -> Markup:
    """A link to a form; what it is of is said to those who do not see the table."""
    text = Markup('<span class="act"> · <a href="{}">{}<span class="unseen">{}</span></a></span>')
    return text.format(address, word, unseen)
