"""The figures of paced.py and drift.py, in the look of all figures of the package.

    python benchmarks/paced_figures.py docs/measurements/pacing.md docs/figures/paced-growth.png

draws the growth of regret again from the table that paced.py has printed, without playing a game.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray

from budgetbandits.figures import axes as scales
from budgetbandits.figures.layout import PaperFigure, Series, finish, legend, name_axes, panels, save
from budgetbandits.figures.style import figure_spec, series_styles, settings
from budgetbandits.policies import label

Array = NDArray[np.float64]
Spread = tuple[Array, Array]
"""Means at each horizon, and half of their 95 % intervals."""

NUMBER = re.compile(r"([\d.]+) ± ([\d.]+)")
CUT = (-0.5, 1.75)
"""Range of the axis for shares of a gain, which fall far below it where money has run out."""


def _series(policies: Sequence[str]) -> list[Series]:
    together = zip(policies, series_styles(policies), strict=True)
    return [Series(place, label(policy), style) for place, (policy, style) in enumerate(together)]


def growth(measured: Mapping[str, Mapping[str, Spread]], horizons: Sequence[int]) -> PaperFigure:
    """A panel for each setting: the regret of each policy against requests, with its intervals. The dotted line grows
    like √T from where the first policy is."""
    page = figure_spec()
    policies = list(next(iter(measured.values())))
    series = _series(policies)
    spreads = [spread for tables in measured.values() for spread in tables.values()]
    low = min(float((means - halves).min()) for means, halves in spreads) / 1.5
    high = max(float((means + halves).max()) for means, halves in spreads) * 1.5
    with matplotlib.rc_context(settings(page)):
        picture = PaperFigure(page, 4.6)
        axes_list = list(picture.subplots(2, len(measured) // 2).flat)  # tight budgets above loose ones
        for place, (axes, (title, tables)) in enumerate(zip(axes_list, measured.items(), strict=True)):
            axes.set_title(title)
            guide = tables[policies[0]][0][0] * np.sqrt(np.array(horizons) / horizons[0])
            axes.plot(horizons, guide, color=page.colours["ink3"], lw=0.8, ls=(0, (2, 2)))
            if place == 0:
                words = {"xytext": (-1, -9), "textcoords": "offset points", "ha": "right", "va": "top"}
                axes.annotate("∝ √T", (horizons[-1], guide[-1]), color=page.colours["ink2"], **words)
            for line, policy in zip(series, policies, strict=True):
                means, halves = tables[policy]
                style, colour = line.style, page.colour(line.style)
                axes.errorbar(horizons, means, halves, color=colour, ls=style.line, marker=style.marker, elinewidth=0.8)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set(xlim=(horizons[0] / 1.5, horizons[-1] * 1.5), ylim=(low, high))
            scales.logarithmic(axes.xaxis, horizons[0], horizons[-1], 4)
            scales.logarithmic(axes.yaxis, low, high, 4)
        name_axes(axes_list, "requests T", "regret")
        legend(picture, series, page)
        return finish(picture)


def drift(curves: Mapping[str, Mapping[str, Array]], window: int) -> PaperFigure:
    """A panel for each thing that happens: the share of the gain in each window after it."""
    page = figure_spec()
    policies = list(next(iter(curves.values())))
    series = _series(policies)
    with matplotlib.rc_context(settings(page)):
        picture, axes_list = panels(list(curves), page)
        for axes, lines in zip(axes_list, curves.values(), strict=True):
            axes.axhline(0.9, color=page.colours["ink3"], lw=0.8, ls=(0, (2, 2)))
            for line, policy in zip(series, policies, strict=True):
                requests = window * (np.arange(len(lines[policy])) + 0.5)
                colour, style = page.colour(line.style), line.style
                axes.plot(requests, lines[policy], color=colour, ls=style.line, marker=style.marker, markevery=(3, 8))
            axes.set(xlim=(0, window * len(lines[policy])), ylim=CUT)
            scales.straight(axes.xaxis, 4)
            scales.straight(axes.yaxis, 6)
        name_axes(axes_list, "requests after the change", "share of the gain")
        legend(picture, series, page)
        return finish(picture)


def printed(text: str) -> tuple[dict[str, dict[str, Spread]], list[int]]:
    """The table of paced.py, read back from a page that has it."""
    lines = text[text.index("| arms, budget | policy |") :].splitlines()
    horizons = [int(text.replace(",", "")) for text in re.findall(r"T = ([\d,]+)", lines[0])]
    measured: dict[str, dict[str, Spread]] = {}
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        setting, policy, *cells = (cell.strip() for cell in line.strip().strip("|").split("|"))
        if setting:
            arms, _, budget = setting.partition(", ")
            title = f"{arms} arms, {budget} budget"
        if policy != "difference":
            pairs = [NUMBER.fullmatch(cell) for cell in cells[: len(horizons)]]
            means, halves = np.array([[float(number) for number in pair.groups()] for pair in pairs if pair]).T
            measured.setdefault(title, {})[policy.strip("`")] = means, halves
    return measured, horizons


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("figure", type=Path)
    asked = parser.parse_args()
    save(growth(*printed(asked.page.read_text(encoding="utf-8"))), asked.figure)


if __name__ == "__main__":
    main()
