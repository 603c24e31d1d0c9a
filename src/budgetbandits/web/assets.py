"""Files and templates that all pages share: style sheets, the script of live pages, the icon, the Jinja environment."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from budgetbandits.web.palette import LIGHT, custom_properties

if TYPE_CHECKING:
    import jinja2

_PACKAGE = "budgetbandits.web"


@cache
def text(package: str, *path: str) -> str:
    """The content of a file in a package."""
    return resources.files(package).joinpath(*path).read_text(encoding="utf-8")


def style_sheet() -> str:
    """The style sheet of every page: the palette, type, tables and controls."""
    return custom_properties() + text(_PACKAGE, "base.css")


def live_style_sheet() -> str:
    """The style sheet of pages that stay up to date: with a navigation bar and states."""
    return style_sheet() + text(_PACKAGE, "live.css")


def live_script() -> str:
    """The script that keeps the element with the id "live" up to date."""
    return text(_PACKAGE, "live.js")


def icon() -> str:
    """The package's icon as SVG."""
    side = '<rect x="{}" y="{}" width="4" height="{}" rx="1" fill="{}"/>'.format
    bars = side(0.5, 7, 8.5, "#8fc3b8") + side(6, 0.5, 15, LIGHT["accent"]) + side(11.5, 4, 11.5, "#8fc3b8")
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">{bars}</svg>\n'


def asset_path(name: str, content: bytes) -> str:
    """The address of a file, with a digest of its content, so that browsers may cache it forever."""
    return f"/assets/{hashlib.sha256(content).hexdigest()[:12]}/{name}"


def environment(package: str, filters: Mapping[str, Any], names: Mapping[str, Any]) -> jinja2.Environment:
    """The templates of a package, with these filters and global names; unknown names are errors."""
    import jinja2  # slow to import, and a server that shows no page does not need it

    made = jinja2.Environment(
        loader=jinja2.PackageLoader(package), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    made.filters.update(filters)
    made.globals.update(names)
    return made
