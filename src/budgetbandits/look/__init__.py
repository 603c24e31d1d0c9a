"""The look that every page of the package shares: colours, type, tables and controls as one style sheet.

It needs nothing but the standard library, so that the service can use it without the laboratory.
"""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def style_sheet() -> str:
    """The text of base.css, to be put into a page."""
    return (resources.files("budgetbandits.look") / "base.css").read_text(encoding="utf-8")
