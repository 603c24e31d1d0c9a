"""Figures with Matplotlib from plain arrays, drawn for the width at which they are read. Extra ``lab``.

`style` chooses sizes, series styles and settings; `layout` makes the figure, its panels and legend, and saves it;
`axes` places ticks; `svg` writes a figure for a page. `regret`, `rankings`, `profiles`, `arms` and `posteriors` each
draw one kind of figure.

Read `style` and `layout` first. The functions know neither studies nor problems: `Results.plot`, `Outcome.plot`,
`Problem.plot` and `Allocation.plot` hand over the numbers. Nothing here changes Matplotlib's settings or uses pyplot.
"""

from __future__ import annotations

from importlib.util import find_spec

from budgetbandits.errors import MissingExtra, install

if find_spec("matplotlib") is None:
    raise MissingExtra(f"figures need Matplotlib; {install('lab')}")
