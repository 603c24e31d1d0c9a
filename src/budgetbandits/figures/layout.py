"""Figures apart from pyplot that notebooks show and that are written as PDF, SVG or PNG; their panels and legends."""

from __future__ import annotations

import inspect
import io
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text

from budgetbandits.errors import BadParameter
from budgetbandits.figures import svg
from budgetbandits.figures.style import SAVE_SETTINGS, FigureSpec, SeriesStyle, settings

FORMATS: dict[str, dict[str, str | None]] = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}, ".png": {}}
"""File formats, each with the metadata that is left out so that the same figure is the same file."""
DOTS_PER_INCH = 200
"""Resolution of a PNG."""


class Series(NamedTuple):
    """A policy as it is drawn: its number in the study, its name and its style."""

    number: int
    name: str
    style: SeriesStyle


class PaperFigure(Figure):
    """A Matplotlib figure that a notebook shows although pyplot does not manage it."""

    def __init__(self, spec: FigureSpec, height: float) -> None:
        layout = ConstrainedLayoutEngine(w_pad=0.04, h_pad=0.04, wspace=0.03, hspace=0.04)
        super().__init__(figsize=(spec.width, height), layout=layout)
        self._canvas_that_measures = FigureCanvasAgg(self)

    def size_of(self, artist: Artist) -> tuple[float, float]:
        """Width and height of an artist in inches."""
        extent = artist.get_window_extent(self._canvas_that_measures.get_renderer())  # type: ignore[no-untyped-call]
        return extent.width / self.dpi, extent.height / self.dpi

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        written = io.BytesIO()
        self.savefig(written, format="png", dpi=2 * svg.PIXELS_PER_INCH)
        width, height = self.get_size_inches() * svg.PIXELS_PER_INCH
        return written.getvalue(), {"width": round(width), "height": round(height)}


def chosen(figures: Mapping[str, Callable[..., Any]], figure: str, options: Mapping[str, Any]) -> Callable[..., Any]:
    """The function that draws the figure of this name; an error if it does not take these options."""
    if figure not in figures:
        raise BadParameter(f"unknown figure {figure!r:.40}; choose one of {', '.join(figures)}")
    takes = inspect.signature(figures[figure]).parameters
    for name, value in options.items():
        if name not in takes:
            names = ", ".join(name for name, of in takes.items() if of.kind is of.KEYWORD_ONLY and name != "ax")
            raise BadParameter(f"figure {figure!r} does not take {name}; it takes {names}")
        if name == "log" and value is not None and not isinstance(value, bool):
            raise BadParameter(f"log is {value!r:.40}; use True, False, or None to have the numbers decide")
    check_axes(options.get("ax"))
    return figures[figure]


def check_axes(ax: Any) -> None:
    """Refuse anything but Matplotlib axes."""
    if ax is not None and not isinstance(ax, Axes):
        raise BadParameter(f"ax is {ax!r:.40}; give axes of Matplotlib's, or leave it out")


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure as PDF, SVG or PNG, by the ending of its name. The same figure is the same file.

    The description of a PNG holds the titles of its panels, for those who cannot see it and for tests of pages.
    """
    path = Path(path)
    metadata = dict(FORMATS[check_format(path)])
    if path.suffix.lower() == ".png":
        metadata["Description"] = "; ".join(titles(figure))
    with matplotlib.rc_context(SAVE_SETTINGS):
        figure.savefig(path, dpi=DOTS_PER_INCH, metadata=metadata)
    return path


def titles(figure: Figure) -> list[str]:
    """The titles of the panels, each on one line."""
    return [text for axes in figure.axes if (text := " ".join(axes.get_title(loc="left").split()))]


def check_format(path: Path) -> str:
    """The ending of a file's name; an error if no figure can be written in that format."""
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise BadParameter(f"cannot write {path.name!r} as a figure; end its name in {', '.join(FORMATS)}")
    return kind


def panels(
    titles: Sequence[str], spec: FigureSpec, shape: float = 0.72, columns_max: int = 4
) -> tuple[PaperFigure, list[Axes]]:
    """A figure with a panel for each title, as many side by side as fit; ``shape`` is height divided by width."""
    columns = spec.columns(len(titles), columns_max)
    rows = math.ceil(len(titles) / columns)
    if columns == 1 and rows > 1:
        shape *= 0.8  # a stack of panels is to fit a page
    height = min(max(shape * spec.width / columns, 1.7), 4.4 if len(titles) == 1 else 3.2)
    figure = PaperFigure(spec, rows * height)
    axes = figure.subplots(rows, columns, squeeze=False)
    for place, axis in enumerate(axes.flat):
        if place < len(titles):
            if len(titles) > 1 or titles[0]:
                axis.set_title(titles[place])
        else:
            axis.remove()
    return figure, list(axes.flat[: len(titles)])


def line_panels(
    groups: Sequence[str], order: Sequence[Series], spec: FigureSpec, draw: Callable[[Axes, int, str], None],
    words: tuple[str, str], ax: Axes | None,
) -> PaperFigure | Axes:  # fmt: skip
    """A figure with a panel for each group and a legend in this order; ``words`` name the axes.

    ``draw`` draws a panel by its axes, place and name. ``ax`` takes a single group, and gets a legend of its own.
    """
    with matplotlib.rc_context(settings(spec)):
        if ax is not None:
            (group,), before = groups, len(ax.lines)
            draw(ax, 0, group)
            ax.set(xlabel=words[0], ylabel=words[1])
            named = [line for line in ax.lines[before:] if not str(line.get_label()).startswith("_")]
            ax.legend(handles=named, frameon=False)
            return ax
        figure, axes = panels(groups, spec)
        for place, group in enumerate(groups):
            draw(axes[place], place, group)
        name_axes(axes, *words)
        legend(figure, order, spec, at_side=len(groups) == 1)
        return finish(figure)


def name_axes(axes: Sequence[Axes], x_name: str, y_name: str = "") -> None:
    """Name the axes of panels: the x-axis where no panel is below, the y-axis where none is to the left."""
    cells = [panel.get_subplotspec() for panel in axes]
    for panel, cell_of_panel in zip(axes, cells, strict=True):
        assert cell_of_panel is not None
        others = [cell for cell in cells if cell is not None and cell.colspan.start == cell_of_panel.colspan.start]
        if cell_of_panel.rowspan.start == max(cell.rowspan.start for cell in others):
            panel.set_xlabel(x_name)
        if cell_of_panel.colspan.start == 0:
            panel.set_ylabel(y_name)


def shortened(names: Sequence[str], inches: float, spec: FigureSpec) -> list[str]:
    """The names in at most about this many inches: long ones lose their middle, and all stay different.

    >>> from budgetbandits.figures.style import figure_spec
    >>> shortened(["BTS", "a-policy-with-a-long-name width=0.25"], 1.2, figure_spec("paper"))
    ['BTS', 'a-policy-w…idth=0.25']
    >>> shortened([f"a-policy-of-mine width=0.{i} and-more=17" for i in (1, 2)], 1.2, figure_spec("paper"))
    ['a-poli…dth=0.1 and-m', 'a-poli…dth=0.2 and-m']
    """
    letters = max(int(inches * 72.0 / (0.57 * spec.font)), 15)  # a letter of DejaVu Sans is about so wide
    cut = [
        name if len(name) <= letters else f"{name[: letters // 2]}…{name[len(name) - (letters - 1) // 2 :]}"
        for name in names
    ]
    short = []
    for name, text in zip(names, cut, strict=True):
        alike = [other for other, its in zip(names, cut, strict=True) if its == text]
        # names that would be cut to the same text keep the part where they differ
        same = itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*alike, strict=False))
        start = max(sum(1 for _ in same) - 6, 0)
        differing = f"{name[: letters // 3]}…{name[start : start + letters - letters // 3 - 1]}"
        short.append(differing if len(alike) > 1 else text)
    return short


def key(series: Series, spec: FigureSpec, line: bool = True) -> Line2D:
    """The key of a policy in a legend."""
    style = series.style
    stroke: Any = style.line if line else "none"
    return Line2D([], [], color=spec.colour(style), linestyle=stroke, marker=style.marker, label=series.name)


def legend(
    figure: PaperFigure, series: Sequence[Series], spec: FigureSpec, at_side: bool = False, line: bool = True
) -> None:
    """Add a legend of the policies in this order: next to a single wide panel, or below in as many columns as fit."""
    if not spec.legend:
        return
    at_side = at_side and not spec.narrow
    names = shortened([policy.name for policy in series], 0.35 * spec.width if at_side else spec.width - 0.6, spec)
    keys = [key(policy._replace(name=name), spec, line) for policy, name in zip(series, names, strict=True)]
    length = 3.4 if line else 1.2  # of a key, in letters: long enough to tell line styles apart
    if at_side:
        legend_box = figure.legend(handles=keys, loc="outside right upper", handlelength=length, labelspacing=0.6)
    else:
        legend_box = _fitting(figure, keys, spec, length)
        grow(figure, legend_box)
    for policy, handle, text in zip(series, legend_box.legend_handles, legend_box.get_texts(), strict=True):
        assert handle is not None
        svg.tag(handle, "legend", policy.number)
        svg.tag(text, "legend", policy.number, part=1)


def _fitting(figure: PaperFigure, keys: Sequence[Line2D], spec: FigureSpec, length: float) -> Legend:
    """A legend with as many columns as fit."""
    for columns in range(min(len(keys), 6), 0, -1):
        legend_box = figure.legend(
            handles=keys, loc="outside lower center", ncols=columns, handlelength=length, columnspacing=1.4,
            labelspacing=0.4, borderaxespad=0.2,
        )  # fmt: skip
        width = figure.size_of(legend_box)[0]
        if columns == 1 or width <= 0.98 * spec.width:
            break
        legend_box.remove()
    return legend_box


def grow(figure: PaperFigure, legend_box: Legend) -> None:
    """Make the figure higher by its legend, so that the panels keep their height."""
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + figure.size_of(legend_box)[1])


def finish(figure: PaperFigure) -> PaperFigure:
    """Lay the figure out while its settings hold: artists that Matplotlib makes later have its user's settings."""
    engine = figure.get_layout_engine()
    assert engine is not None
    for _ in range(
        2
    ):  # panels of a fixed shape find their size in the first pass, and what stands around them its place
        engine.execute(figure)
    return figure


def note(axes: Axes, row: float, text: str, spec: FigureSpec) -> Text:
    """Write text to the right of a row."""
    return axes.annotate(
        text, (1.0, row), xycoords=("axes fraction", "data"), xytext=(4, 0), textcoords="offset points",
        va="center", ha="left", color=spec.colours["ink2"], annotation_clip=False,
    )  # fmt: skip
