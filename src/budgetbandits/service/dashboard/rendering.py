"""Templates, assets and responses of the pages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

from markupsafe import Markup
from starlette.responses import Response

from budgetbandits.formatting.datetimes import duration, known_zones, wait
from budgetbandits.formatting.money import budget_decimals, exact_money, money
from budgetbandits.formatting.numbers import in_full, percentage, plain, significant, thousands, truncated
from budgetbandits.service.dashboard import query
from budgetbandits.service.dashboard.arms_table import ArmsTable
from budgetbandits.service.dashboard.charts import cell_charts, pointer, time_charts
from budgetbandits.service.ledger import to_units
from budgetbandits.service.standing import Standing
from budgetbandits.service.stores.records import Rank
from budgetbandits.terms import TERMS, Terms
from budgetbandits.web.assets import LivePages
from budgetbandits.web.servers import BEAT

SECURITY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every response."""


def size_class(text: str) -> Markup:
    """The class of a headline number: the longer it is, the smaller it is set, so that it stays on its line.

    >>> str(size_class("1,497.24")), str(size_class("369,937,528")), str(size_class("1,000,000,000,000"))
    ('', ' class="long"', ' class="longer"')
    """
    return Markup(' class="longer"' if len(text) > 15 else ' class="long"' if len(text) > 10 else "")


def signed(value: float, end: float, unit: str = "") -> str:
    """A change with its sign, to two digits of the largest that is shown next to it; shares are in per cent.

    >>> signed(0.0312, 0.16), signed(-2.0, 25.0), signed(-0.001, 0.16), signed(0.626, 0.83, " %")
    ('+0.03', '−2', '0.00', '+63 %')
    """
    value, end = (100.0 * value, 100.0 * end) if unit else (value, end)
    text = f"{value:+,.{max(0, 1 - math.floor(math.log10(max(end, 1e-300))))}f}"
    return (text.replace("-", "−") if text.strip("+-0.,") else text[1:]) + unit


def terms_in_short(terms: Terms, digits: int, *names: str) -> list[str]:
    """The terms that a campaign has, with at least this many decimals of money: those with a short form, or the named.

    >>> terms_in_short(Terms(daily_cap=5.0, pace_seconds=7200.0), 2)
    ['daily cap 5.00', 'paced over 2 h']
    """
    return [
        term.short.format(term.text(value, lambda amount: exact_money(amount, digits)))
        for term in TERMS.values()
        if (term.name in names if names else term.short) and (value := getattr(terms, term.name)) is not None
    ]


_SIGNS = {
    Rank.FROZEN: "diamond", Rank.EXHAUSTED: "ring", Rank.RUNNING: "dot", Rank.PAUSED: "bars", Rank.SPENT: "ring",
    Rank.CLOSED: "ring",
}  # fmt: skip


def sign(standing: Standing) -> str:
    """The shape that is drawn next to the word, so that colour is not all that tells alarms apart."""
    return _SIGNS.get(standing.rank, "triangle")


PAGES = LivePages(
    "budgetbandits.service.dashboard", ("dashboard.js",),
    {"money": money, "exact": exact_money, "count": thousands, "share": percentage, "units": to_units,
     "digits": budget_decimals, "short": truncated, "significant": significant, "plain": plain, "in_full": in_full,
     "signed": signed, "duration": duration, "wait": wait, "size_class": size_class,
     "terms": terms_in_short, "sign": sign},
    {"arms_table": ArmsTable, "cell_charts": cell_charts, "time_charts": time_charts, "pointer": pointer, "beat": BEAT,
     "address": query.address, "campaign_address": query.campaign_address, "cookie_path": query.cookie_path,
     "currencies_shown": 8, "tags_shown": 24, "when_expired": TERMS["on_expire"].text},
)  # fmt: skip
render = PAGES.render


@cache
def warm() -> None:
    """Have ready what the first page needs and what takes long to import."""
    import scipy.special  # noqa: F401

    known_zones()
    for name in ("_overview.html", "_campaign.html", "campaign.html", "overview.html"):
        PAGES.environment.get_template(name)


def secured(response: Response) -> Response:
    """The response with the headers of security."""
    for name, value in SECURITY.items():
        response.headers.setdefault(name, value)
    return response


def html_response(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response with a page."""
    return secured(Response(text, status, headers, media_type="text/html"))


def problem_page(status: int, kind: str, detail: str) -> Response:
    """A page that says what is wrong, to a visitor who may not be signed in."""
    fields = {"status": status, "title": kind, "detail": detail}
    return html_response(
        render("problem.html", session=None, live="", path=query.address(), inline=False, problem=fields), status
    )
