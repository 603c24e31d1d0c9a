"""The palette of pages and figures: every colour is written here and nowhere else.

Figures take `LIGHT` or `DARK`; pages get the same colours as CSS custom properties (`custom_properties`).
"""

from __future__ import annotations

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
"""By purpose, for a light and for a dark page: page and sunken ground, empty bars, hairlines and lines, three kinds of
text, one accent and its tint, danger, warning, six series, and everything without a series of its own."""

LIGHT = {name: light for name, (light, _) in COLOURS.items()}
DARK = {name: dark for name, (_, dark) in COLOURS.items()}
SERIES = tuple(name for name in COLOURS if name.startswith("series-"))


def custom_properties() -> str:
    """The palette as CSS; printed pages are light."""
    light, dark = (" ".join(f"--{name}: {value};" for name, value in each.items()) for each in (LIGHT, DARK))
    return f":root {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
