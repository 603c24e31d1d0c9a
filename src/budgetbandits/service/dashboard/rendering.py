"""Templates and assets of the pages."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from starlette.responses import Response

from budgetbandits.formatting.datetimes import duration, exact_duration, wait
from budgetbandits.formatting.money import budget_decimals, exact_money, money
from budgetbandits.formatting.numbers import in_full, percentage, plain, significant, thousands, truncated
from budgetbandits.service.dashboard import query
from budgetbandits.service.dashboard.charts import inline, over_time
from budgetbandits.service.dashboard.sessions import secured
from budgetbandits.service.ledger import to_units
from budgetbandits.web import assets
from budgetbandits.web.streams import BEAT

if TYPE_CHECKING:
    import jinja2

PACKAGE = "budgetbandits.service.dashboard"
SHARED = {"live.js": assets.live_script, "icon.svg": assets.icon}
SCRIPT = "text/javascript; charset=utf-8"
TYPES = {"style.css": "text/css; charset=utf-8", "live.js": SCRIPT, "dashboard.js": SCRIPT, "icon.svg": "image/svg+xml"}


@cache
def asset(name: str) -> bytes:
    """A file that pages refer to."""
    if name in SHARED:
        return SHARED[name]().encode()
    text = assets.text(PACKAGE, "assets", name)
    return (assets.live_style_sheet() + text if name == "style.css" else text).encode()


@cache
def asset_path(name: str) -> str:
    return assets.asset_path(name, asset(name))


@cache
def environment() -> jinja2.Environment:
    filters = {
        "money": money, "exact": exact_money, "count": thousands, "share": percentage, "units": to_units,
        "digits": budget_decimals, "short": truncated, "significant": significant, "plain": plain, "in_full": in_full,
        "duration": duration, "exact_duration": exact_duration, "wait": wait, "size_class": size_class,
    }  # fmt: skip
    names = {
        "asset_path": asset_path, "asset": lambda name: asset(name).decode(), "inline_charts": inline,
        "charts": over_time, "beat": BEAT, "address": query.address, "campaign_address": query.campaign_address,
    }  # fmt: skip
    return assets.environment(PACKAGE, filters, names)


def size_class(text: str) -> Markup:
    """The class of a headline number: the longer it is, the smaller it is set, so that it stays on its line.

    >>> str(size_class("1,497.24")), str(size_class("369,937,528")), str(size_class("1,000,000,000,000"))
    ('', ' class="long"', ' class="longer"')
    """
    return Markup(' class="longer"' if len(text) > 15 else ' class="long"' if len(text) > 10 else "")


def render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**values)


@cache
def warm() -> None:
    """Have ready what the first page needs and what takes long to import."""
    import scipy.special  # noqa: F401

    for name in ("_overview.html", "_campaign.html", "campaign.html", "overview.html"):
        environment().get_template(name)


def problem_page(status: int, kind: str, detail: str) -> Response:
    """A page that says what is wrong, to a visitor who may not be signed in."""
    fields = {"status": status, "title": kind, "detail": detail}
    page = render("problem.html", session=None, live="", path="/", inline=False, problem=fields)
    return secured(Response(page, status, media_type="text/html"))
