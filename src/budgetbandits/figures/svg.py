"""Figures as SVG for a page, which can hide policies, show points on hovering and change the colours.

The convention, for style sheets and scripts:

* Every id begins with the figure's ``prefix``, so that a page may hold several figures.
* What belongs to a policy is a ``<g>`` with the classes ``policy-N`` and its role, ``data-policy="N"`` and, inside a
  panel, ``data-panel``. N counts from 0 in the order of the study, whatever a figure sorts by. Roles are ``line`` (with
  its markers), ``band`` (the interval of a mean), ``bars`` (deviations), ``fill`` (an area or a bar), ``legend`` (key
  and name in the legend) and ``name`` (a name or number next to the data). Its id is
  ``PREFIX-panel-P-policy-N-ROLE``, without the panel in a legend, and with a number behind it where there are several.
  So ``.policy-3 { display: none }`` hides a policy everywhere.
* A point is a ``<use>`` with the classes ``policy-N`` and ``point``, the id ``PREFIX-panel-P-point-N-I`` (I counts the
  budgets, or whatever the line goes over), ``data-x``, ``data-y`` and, where there is an interval, ``data-low`` and
  ``data-high``. Its ``<title>`` says the same in words: a browser shows it on hovering, without a script.
* Colours are custom properties with the colour as drawn behind them: ``var(--series-1, COLOUR)``. The names are those
  of `web.assets`, which declares them for light and dark pages. Text has the family ``var(--figure-font, ...)``.
* Width and height are in pixels, 96 to an inch: shown at that size, text has the size it was drawn for.

The same figure gives the same text, byte for byte.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree import ElementTree

import matplotlib
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from budgetbandits.figures.style import SAVE_SETTINGS
from budgetbandits.web.assets import DARK, LIGHT

PIXELS_PER_INCH = 96
"""Size of a figure on a page."""

ROLES = ("line", "band", "bars", "fill", "legend", "name")
"""Roles of the artists of a policy."""


class Point(NamedTuple):
    """A point of a line: its numbers and a sentence about it. The ends of a missing interval are None."""

    x: float
    y: float
    low: float | None
    high: float | None
    text: str


def tag(
    artist: Artist, role: str, policy: int, panel: int | None = None, part: int = 0, points: Sequence[Point] = ()
) -> None:
    """Mark an artist with its policy and its role; ``points`` describe its markers, in order.

    ``part`` tells artists of the same policy, role and panel apart.
    """
    if role not in ROLES:
        raise ValueError(f"role is {role!r}; there is {', '.join(ROLES)}")
    place = "" if panel is None else f"panel-{panel}-"
    artist.set_gid(f"{place}policy-{policy}-{role}" + (f"-{part}" if part else ""))
    artist.__dict__["_points"] = tuple(points)


def to_svg(figure: Figure, prefix: str = "figure", label: str = "") -> str:
    """The figure as one ``<svg>`` element of a page; ``label`` describes it for those who cannot see it."""
    written = io.StringIO()
    with matplotlib.rc_context(SAVE_SETTINGS):
        figure.savefig(written, format="svg", metadata={"Date": None})
    text = written.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>", "", text, flags=re.DOTALL)
    text = text[text.index("<svg") :].replace("xlink:href", "href")
    text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text)
    root = ElementTree.fromstring(text)
    points = {str(artist.get_gid()): artist.__dict__["_points"] for artist in figure.findobj(_is_tagged)}
    for element in root.iter():
        _name(element, points)
    for element in root.iter():
        _restyle(element, prefix)
    width, height = figure.get_size_inches()
    root.attrib.clear()
    root.attrib |= {
        "xmlns": "http://www.w3.org/2000/svg",
        "id": prefix,
        "class": "figure",
        "role": "img",
        "aria-label": label or prefix,
        "width": f"{width * PIXELS_PER_INCH:.0f}",
        "height": f"{height * PIXELS_PER_INCH:.0f}",
        "viewBox": f"0 0 {width * 72:g} {height * 72:g}",
        "style": "stroke-linejoin: round; stroke-linecap: butt",
    }
    return re.sub(r"\s*\n\s*", "\n", ElementTree.tostring(root, encoding="unicode"))


def _is_tagged(artist: Artist) -> bool:
    return "_points" in artist.__dict__


# the id that `tag` gives to an artist
GID = re.compile(rf"(?:panel-(\d+)-)?policy-(\d+)-({'|'.join(ROLES)})(?:-\d+)?$")


def _name(element: ElementTree.Element, points: dict[str, Sequence[Point]]) -> None:
    """Give the artists of policies and their points their classes and data."""
    match = GID.match(element.get("id", ""))
    if not match:
        return
    panel, policy, role = match.groups("")
    element.attrib |= {"class": f"policy-{policy} {role}", "data-policy": policy}
    if panel:
        element.set("data-panel", panel)
    uses = list(element.iter("use"))
    of = points.get(element.get("id", ""), ())
    for number, (use, point) in enumerate(zip(uses, of, strict=len(of) > 0)):
        use.attrib |= {
            "id": f"panel-{panel}-point-{policy}-{number}",
            "class": f"policy-{policy} point",
            "data-policy": policy,
            "data-panel": panel,
            "data-x": f"{point.x:.6g}",
            "data-y": f"{point.y:.6g}",
        }
        if point.low is not None and point.high is not None:
            use.attrib |= {"data-low": f"{point.low:.6g}", "data-high": f"{point.high:.6g}"}
        ElementTree.SubElement(use, "title").text = point.text


# names of colours by value, and the font family of a text
TOKENS = {value: name for of in (DARK, LIGHT) for name, value in of.items()}
FAMILY = re.compile(r"(font-family: |font: [^;']*px )([^;]*)")


def _restyle(element: ElementTree.Element, prefix: str) -> None:
    """Give ids the prefix, and turn colours and the font family into custom properties."""
    for key, value in element.attrib.items():
        if key == "id":
            element.set(key, f"{prefix}-{value}")
        elif key == "href":
            element.set(key, f"#{prefix}-{value.removeprefix('#')}")
        elif "url(#" in value:
            element.set(key, value.replace("url(#", f"url(#{prefix}-"))
    style = element.get("style")
    if style:
        style = re.sub(r"#[0-9a-f]{6}\b", lambda hit: _variable(hit[0]), style)
        element.set("style", FAMILY.sub(r"\1var(--figure-font, \2)", style))


def _variable(colour: str) -> str:
    return f"var(--{TOKENS[colour]}, {colour})" if colour in TOKENS else colour
