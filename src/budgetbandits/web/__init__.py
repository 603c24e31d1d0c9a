"""The look that the pages of the package share: colours, type, tables and controls, and how a page stays up to date.

It needs nothing but the standard library, so that the service can use it without the laboratory.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources

BEAT = 10.0
"""Seconds within which a page that listens hears something, or else it says that it is not live (`live.js`)."""
STREAM = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",
}
"""Headers of what a page listens to. nginx and others hold back what comes slowly unless the last says not to, and
compress what may be transformed, which holds it back as well."""


def style_sheet() -> str:
    """For every page."""
    return _text("base.css")


def live_style_sheet() -> str:
    """For pages that stay up to date, with a bar of their own and states."""
    return style_sheet() + _text("live.css")


def live_script() -> str:
    """What keeps the part of a page with the id "live" up to date."""
    return _text("live.js")


def icon() -> str:
    """The package's sign, as SVG."""
    return _text("icon.svg")


def asset_path(name: str, content: bytes) -> str:
    """Where a page finds a file: with a digest of what it holds, so that browsers may keep it."""
    return f"/assets/{hashlib.sha256(content).hexdigest()[:12]}/{name}"


@cache
def _text(name: str) -> str:
    return (resources.files("budgetbandits.web") / name).read_text(encoding="utf-8")
