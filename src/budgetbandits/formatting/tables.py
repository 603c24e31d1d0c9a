"""Small tables as HTML for notebooks, as Markdown and as LaTeX: one `Table`, three ways to write it; and CSV cells.

>>> rows = [("bts", EstimateCell("41.2", "0.8", best=True)), ("kube", EstimateCell("97.0", "1.1"))]
>>> table = Table(("policy", "regret"), rows)
>>> print(table.to_markdown())
| policy |         regret |
|:-------|---------------:|
| bts    | **41.2** ± 0.8 |
| kube   |     97.0 ± 1.1 |
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MOST_ROWS = 10
"""Most arms that a table shows."""

# no colours of our own: a notebook's text colour, and greys that show on light and on dark ground
STYLE = """<style>
.budgetbandits { display: inline-block; max-width: 100%; overflow-x: auto; line-height: 18px; text-align: left; }
.budgetbandits table { border-collapse: collapse; border: 0; margin: 0 !important; font-size: 13px !important;
  font-variant-numeric: tabular-nums; color: inherit; }
.budgetbandits .title { font-size: 13px; padding: 0 0 6px; }
.budgetbandits tr { background: transparent !important; }
.budgetbandits th, .budgetbandits td { text-align: right !important; padding: 4px 0 4px 24px !important; border: 0;
  white-space: nowrap; font-weight: 400; vertical-align: baseline; }
.budgetbandits th:first-child, .budgetbandits td:first-child { padding-left: 0 !important; }
.budgetbandits .name { text-align: left !important; }
.budgetbandits thead th { font-weight: 600; border-bottom: 1px solid rgb(128 128 128 / 50%) !important; }
.budgetbandits tbody td { border-bottom: 1px solid rgb(128 128 128 / 20%) !important; }
.budgetbandits .second { opacity: .68; }
.budgetbandits p { margin: 6px 0 0 !important; font-size: 12.5px !important; opacity: .75; }
</style>"""

_GREEK = ("alpha", "beta", "gamma", "delta", "epsilon", "kappa", "lambda", "mu", "nu", "rho", "sigma", "tau", "omega")
_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "–": "--", "−": "$-$", "±": r"$\pm$", "∞": r"$\infty$", "…": r"\ldots{}", "Δ": r"$\Delta$",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    **{letter: rf"$\{name}$" for letter, name in zip("αβγδεκλμνρστω", _GREEK, strict=True)},
}  # fmt: skip


@dataclass(frozen=True)
class EstimateCell:
    """An estimate as text: its value, its error, and whether it is significantly the best of its column."""

    value: str
    error: str = ""
    best: bool = False


Cell = str | EstimateCell


@dataclass(frozen=True)
class Table:
    """A table with columns of names, then columns of numbers, and a ``note`` below it."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    note: str = ""
    names: int = 1
    """Number of columns from the left that hold names, which are aligned left; numbers are aligned right."""

    def to_html(self) -> str:
        """The table as HTML for a light or dark notebook; names are escaped."""
        head = "".join(f"<th{self._kind(place)}>{_html(name)}</th>" for place, name in enumerate(self.columns))
        body = "".join(
            "<tr>" + "".join(f"<td{self._kind(place)}>{_html(cell)}</td>" for place, cell in enumerate(row)) + "</tr>\n"
            for row in self.rows
        )
        title = f'<div class="title">{_html(self.title)}</div>' if self.title else ""
        table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>" if self.columns else ""
        note = f"<p>{_html(self.note)}</p>" if self.note else ""
        return f'{STYLE}\n<div class="budgetbandits">{title}{table}{note}</div>'

    def _kind(self, place: int) -> str:
        return ' class="name"' if place < self.names else ""

    def to_markdown(self) -> str:
        """The table as Markdown for GitHub and Jupyter."""
        cells = [[_markdown(cell) for cell in row] for row in (self.columns, *self.rows)]
        widths = [max(3, *(len(row[place]) for row in cells)) for place in range(len(self.columns))]
        rows = [self._padded(row, widths) for row in cells]
        dashes = ["-" * (width + 1) for width in widths]
        rule = "|".join(f":{line}" if place < self.names else f"{line}:" for place, line in enumerate(dashes))
        note = f"\n\n{_markdown(self.note)}" if self.note else ""
        return "\n".join([rows[0], f"|{rule}|", *rows[1:]]) + note

    def _padded(self, row: Sequence[str], widths: Sequence[int]) -> str:
        sides: list[Callable[[str, int], str]] = [str.ljust if i < self.names else str.rjust for i in range(len(row))]
        return "| " + " | ".join(side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)) + " |"

    def to_latex(self) -> str:
        r"""The table as a LaTeX ``tabular`` with the rules of the package booktabs, without a caption.

        >>> print(Table(("policy", "regret"), [("a_b", EstimateCell("1,019.9", "0.8"))]).to_latex().splitlines()[4])
        a\_b & $1{,}019.9 \pm 0.8$ \\
        """
        rows = [" & ".join(_latex(cell) for cell in row) + r" \\" for row in (self.columns, *self.rows)]
        kinds = "l" * self.names + "r" * (len(self.columns) - self.names)
        note = [f"% {' '.join(self.note.split())}"] if self.note else []
        lines = [f"\\begin{{tabular}}{{{kinds}}}", r"\toprule", rows[0], r"\midrule", *rows[1:], r"\bottomrule"]
        return "\n".join([*lines, r"\end{tabular}", *note])


def estimate(mean: float, error: float | None = None, best: bool = False) -> EstimateCell:
    """A mean and its error, to two digits of the error; without one, to four digits of the mean or its whole part.

    >>> estimate(43.1234, 0.8), estimate(4630.4, 123.0), estimate(0.5)
    (EstimateCell(value='43.12', error='0.80', best=False), EstimateCell(value='4,630', error='123', best=False), \
EstimateCell(value='0.5', error='', best=False))
    """
    if math.isnan(mean):
        return EstimateCell("–")
    has_error = error is not None and math.isfinite(error)
    if not has_error or not error:
        text = f"{mean:,.0f}" if abs(mean) >= 1000 else f"{mean:.4g}"
        return EstimateCell(text, "0" if has_error else "", best)
    digits = max(0, 1 - math.floor(math.log10(error)))
    return EstimateCell(f"{mean:,.{digits}f}", f"{error:,.{digits}f}", best)


def column(values: Sequence[float]) -> list[str]:
    """Numbers with as many decimals as the smallest of them needs, from three to six; "–" for NaN.

    >>> column([0.5, 12.25, math.nan]), column([0.5, 0.00123])
    (['0.500', '12.250', '–'], ['0.5000', '0.0012'])
    """
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    digits = min(6, max(3, 1 - math.floor(math.log10(min(sizes))))) if sizes else 3
    return ["–" if math.isnan(value) else f"{value:,.{digits}f}" for value in values]


def left_out(rows: int) -> str:
    """The note under a table of this many rows that shows MOST_ROWS at most.

    >>> left_out(10), left_out(1000)
    ('', 'and 990 more')
    """
    return f"and {rows - MOST_ROWS:,} more" if rows > MOST_ROWS else ""


def _html(cell: Cell) -> str:
    if isinstance(cell, str):
        return html.escape(cell)
    value = f"<b>{html.escape(cell.value)}</b>" if cell.best else html.escape(cell.value)
    return value + (f' <span class="second">± {html.escape(cell.error)}</span>' if cell.error else "")


def _markdown(cell: Cell) -> str:
    if isinstance(cell, str):
        return re.sub(r"([\\`*_\[\]<>|&~$])", r"\\\1", " ".join(cell.split()))
    value = f"**{cell.value}**" if cell.best else cell.value
    return value + (f" ± {cell.error}" if cell.error else "")


def _latex(cell: Cell) -> str:
    if isinstance(cell, str):
        return "".join(_LATEX.get(letter, letter) for letter in " ".join(cell.split()))
    if cell.value == "–":
        return "--"
    value = cell.value.replace(",", "{,}")
    value = f"\\mathbf{{{value}}}" if cell.best else value
    return f"${value}" + (f" \\pm {cell.error.replace(',', '{,}')}" if cell.error else "") + "$"


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
"""First characters of a CSV cell that a spreadsheet would take for a formula."""


def csv_cell(text: str) -> str:
    """A cell that no spreadsheet takes for a formula: with a ' before it, since names and keys come from anywhere.

    A text that begins with ' itself gets one, too, or the two would look the same.

    >>> csv_cell("-50% off"), csv_cell("'n sync"), csv_cell("search")
    ("'-50% off", "''n sync", 'search')
    """
    return f"'{text}" if text.startswith((*FORMULA_STARTS, "'")) else text


def csv_text(cell: str) -> str:
    """The text from which `csv_cell` made this cell. A ' before anything else is the text's own.

    >>> csv_text("'-50% off"), csv_text("''n sync"), csv_text("'tis")
    ('-50% off', "'n sync", "'tis")
    """
    return cell[1:] if cell.startswith("'") and cell[1:].startswith((*FORMULA_STARTS, "'")) else cell
