"""The look of all pages: the palette, style sheets, the script of live pages, the icon, and templates.

Every colour of pages and figures is written here and nowhere else. Figures take `LIGHT` or `DARK`; pages get the same
colours as CSS custom properties.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from functools import cache, cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any

from budgetbandits.web.servers import root_path

if TYPE_CHECKING:
    import jinja2

_PACKAGE = "budgetbandits.web"

COLOURS = {
    "bg": ("#ffffff", "#0f1312"),
    "sunken": ("#f6f7f6", "#171c1a"),
    "track": ("#e9ecea", "#262d2a"),
    "hair": ("#ecefed", "#202624"),
    "line": ("#dfe3e0", "#2c3330"),
    "ink": ("#151917", "#e8ecea"),
    "ink2": ("#525a56", "#a8b1ad"),
    "ink3": ("#6b736f", "#88928d"),
    "accent": ("#0b7563", "#4cc2aa"),
    "tint": ("#e3f1ed", "#14332c"),
    "danger": ("#b3261e", "#ff9086"),
    "danger-bg": ("#fdf0ee", "#2c1715"),
    "warn": ("#8a5a00", "#e9b850"),
    "warn-bg": ("#fdf5e2", "#2a220f"),
    "series-1": ("#2a6fbb", "#6ba6ee"),
    "series-2": ("#cf7f0a", "#f3b556"),
    "series-3": ("#b8598f", "#dd8bbb"),
    "series-4": ("#389dd6", "#9ad8f8"),
    "series-5": ("#a83f08", "#e5743c"),
    "series-6": ("#3a434b", "#dfe4e8"),
    "others": ("#9aa39f", "#5d6763"),
}
"""Colours by purpose, for a light and for a dark page: page and sunken ground, empty bars, hairlines and lines, three
kinds of text, one accent and its tint, danger, warning, six series, and everything without a series of its own."""

LIGHT = {name: light for name, (light, _) in COLOURS.items()}
"""Colours of a light page, by name."""

DARK = {name: dark for name, (_, dark) in COLOURS.items()}
"""Colours of a dark page, by name."""

SERIES = tuple(name for name in COLOURS if name.startswith("series-"))
"""Names of the colours of series."""


def custom_properties() -> str:
    """The palette as CSS; printed pages are light."""
    light, dark = (" ".join(f"--{name}: {value};" for name, value in palette.items()) for palette in (LIGHT, DARK))
    return f":root {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"


@cache
def text(package: str, *path: str) -> str:
    """The content of a file in a package."""
    return resources.files(package).joinpath(*path).read_text(encoding="utf-8")


def style_sheet() -> str:
    """The style sheet of every page: the palette, type, tables and controls."""
    return custom_properties() + text(_PACKAGE, "base.css")


def icon() -> str:
    """The package's icon as SVG."""
    side = '<rect x="{}" y="{}" width="4" height="{}" rx="1" fill="{}"/>'.format
    bars = side(0.5, 7, 8.5, "#8fc3b8") + side(6, 0.5, 15, LIGHT["accent"]) + side(11.5, 4, 11.5, "#8fc3b8")
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">{bars}</svg>\n'


def environment(package: str, filters: Mapping[str, Any], names: Mapping[str, Any]) -> jinja2.Environment:
    """The templates of a package, with these filters and global names; unknown names are errors."""
    import jinja2  # slow to import, and a server that shows no page does not need it

    templates = jinja2.Environment(
        loader=jinja2.PackageLoader(package), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    templates.filters.update(filters)
    templates.globals.update(names)
    return templates


MEDIA_TYPES = {
    "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml",
}  # fmt: skip


class LivePages:
    """The assets and templates of the pages of one package, which stay up to date.

    Assets are the icon, `live.js`, the style sheet of all live pages with the package's own `assets/style.css` after
    it, and the package's ``scripts``. Templates get the functions `asset` and `asset_path` by name.
    """

    def __init__(
        self, package: str, scripts: Collection[str], filters: Mapping[str, Any], names: Mapping[str, Any]
    ) -> None:
        files = ("icon.svg", "live.js", "style.css", *scripts)
        self.media_types = {name: MEDIA_TYPES[name.rpartition(".")[2]] for name in files}
        """Media types of the assets, by name."""
        self._package, self._filters = package, filters
        self._digest = cache(lambda name: hashlib.sha256(self.asset(name).encode()).hexdigest()[:12])
        self._names = {**names, "asset": self.asset, "asset_path": self.asset_path}

    def asset(self, name: str) -> str:
        """The content of a file that pages refer to."""
        if name == "icon.svg":
            return icon()
        if name == "live.js":
            return text(_PACKAGE, name)
        own = text(self._package, "assets", name)
        return style_sheet() + text(_PACKAGE, "live.css") + own if name == "style.css" else own

    def asset_path(self, name: str) -> str:
        """The address of a file, with a digest of its content, so that browsers may cache it forever."""
        return f"{root_path.get()}/assets/{self._digest(name)}/{name}"

    @cached_property
    def environment(self) -> jinja2.Environment:
        """The templates of the package, read when they are first needed."""
        return environment(self._package, self._filters, self._names)

    def render(self, template: str, **values: Any) -> str:
        """A page from a template."""
        return self.environment.get_template(template).render(**values)
