"""Templates and assets: what a page is put together from."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from budgetbandits.formatting.datetimes import duration, exact_duration, wait
from budgetbandits.formatting.numbers import in_full
from budgetbandits.service.dashboard import addresses, charts, numbers, price_chart, svg
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
        "money": numbers.money, "exact": numbers.exact, "count": numbers.count, "share": numbers.share, "duration": duration,
        "exact_duration": exact_duration, "wait": wait,
        "units": to_units, "short": numbers.short, "digits": numbers.digits_for, "significant": numbers.significant,
        "plain": numbers.plain, "size_class": numbers.size_class, "in_full": in_full,
    }  # fmt: skip
    names = {
        "asset_path": asset_path, "svg": svg, "charts": charts, "price": price_chart, "asset": lambda name: asset(name).decode(),
        "beat": BEAT, "address": addresses.address, "campaign_address": addresses.campaign_address,
    }  # fmt: skip
    return assets.environment(PACKAGE, filters, names)


def render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**values)


@cache
def warm() -> None:
    """Have ready what the first page needs and what takes long to import."""
    import scipy.special  # noqa: F401

    for name in ("_overview.html", "_campaign.html", "campaign.html", "overview.html"):
        environment().get_template(name)
