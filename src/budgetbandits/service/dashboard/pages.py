"""Templates and assets: what a page is put together from."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from budgetbandits import web
from budgetbandits.formatting.datetimes import duration, exact_duration, wait
from budgetbandits.formatting.numbers import in_full
from budgetbandits.service.dashboard import addresses, charts, numbers, price_chart, svg
from budgetbandits.service.ledger import to_units

if TYPE_CHECKING:
    import jinja2

FOLDER = resources.files("budgetbandits.service.dashboard")
SHARED = {"live.js": web.live_script, "icon.svg": web.icon}
SCRIPT = "text/javascript; charset=utf-8"
TYPES = {"style.css": "text/css; charset=utf-8", "live.js": SCRIPT, "dashboard.js": SCRIPT, "icon.svg": "image/svg+xml"}


@cache
def asset(name: str) -> bytes:
    """A file that pages refer to."""
    if name in SHARED:
        return SHARED[name]().encode()
    text = (FOLDER / "assets" / name).read_text(encoding="utf-8")
    return (web.live_style_sheet() + text if name == "style.css" else text).encode()


@cache
def asset_path(name: str) -> str:
    return web.asset_path(name, asset(name))


@cache
def environment() -> jinja2.Environment:
    import jinja2  # a server that shows no page need not wait for it

    made = jinja2.Environment(
        loader=jinja2.PackageLoader("budgetbandits.service.dashboard"), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    made.globals.update(
        asset_path=asset_path, svg=svg, charts=charts, price=price_chart, asset=lambda name: asset(name).decode(),
        beat=web.BEAT, address=addresses.address, campaign_address=addresses.campaign_address,
    )  # fmt: skip
    made.filters.update(
        money=numbers.money, exact=numbers.exact, count=numbers.count, share=numbers.share, duration=duration,
        exact_duration=exact_duration, wait=wait,
        units=to_units, short=numbers.short, digits=numbers.digits_for, significant=numbers.significant,
        plain=numbers.plain, size_class=numbers.size_class, in_full=in_full,
    )  # fmt: skip
    return made


def render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**values)


@cache
def warm() -> None:
    """Have ready what the first page needs and what takes long to import."""
    import scipy.special  # noqa: F401

    for name in ("_overview.html", "_campaign.html", "campaign.html", "overview.html"):
        environment().get_template(name)
