"""Output of all commands: one kind of table, of progress bar and of JSON."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from budgetbandits.errors import BadParameter
from budgetbandits.formatting.tables import csv_cell

if TYPE_CHECKING:  # experiments take a second to import
    from budgetbandits.experiments.runner import ProgressCallback

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document; errors go to stderr as JSON.")]


def print_json(document: Any, file: TextIO | None = None) -> None:
    """One document on one line. JSON has neither NaN nor infinity: null."""
    print(json.dumps(_finite(document), allow_nan=False, ensure_ascii=False), file=file or sys.stdout)


def _finite(value: Any) -> Any:
    """The value with None instead of infinite numbers and NaN.

    >>> _finite({"mean": 1.5, "interval": (-math.inf, math.nan)})
    {'mean': 1.5, 'interval': [None, None]}
    """
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def terminal(**options: Any) -> Console:
    """The screen; numbers in a text have no colours of their own."""
    return Console(highlight=False, **options)


def plain_table(*texts: str, numbers: Iterable[str] = (), **options: Any) -> Table:
    """A table with a line under its head and no frame: columns of texts, which are folded, and then of numbers, which
    are neither folded nor cut off."""
    left: Any = {"title_justify": "left", "caption_justify": "left"}
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, **left, **options)
    for title in texts:
        table.add_column(title, overflow="fold")
    for title in numbers:
        table.add_column(title, justify="right", no_wrap=True)
    return table


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Where to write a file that gets its name when the block has ended: all of it or nothing."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        raise BadParameter(f"cannot write {str(path)!r}: {error.strerror or error}; choose another place") from None
    finally:
        partial.unlink(missing_ok=True)


def write_csv(path: Path, names: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """A table as a file; no text in it is a formula."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([csv_cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)


def show_slower(lines: Sequence[str]) -> None:
    """Say where no faster engine played, and why."""
    for line in lines:
        terminal().print(line, markup=False, style="dim")


def fits(table: Table, console: Console) -> bool:
    """Whether no cell of the table would be cut off on this screen."""
    return Measurement.get(console, console.options.update(width=10_000), table).minimum <= console.width


def filled(parts: Sequence[str], width: int, between: str = "  ") -> Iterator[str]:
    """Lines of this width at most, each with as many of the parts as fit; none is broken in two.

    >>> list(filled(["budget 5.00", "spent 1.25", "held 0.00"], width=25))
    ['budget 5.00  spent 1.25', 'held 0.00']
    """
    line = ""
    for part in parts:
        if line and len(line) + len(between) + len(part) > width:
            yield line
            line = ""
        line = f"{line}{between}{part}" if line else part
    yield line


def local_time(moment: float) -> str:
    """A moment in the local zone, to the minute."""
    return datetime.fromtimestamp(moment).astimezone().strftime("%Y-%m-%d %H:%M")


def progress_bar(console: Console, **options: Any) -> Progress:
    """A bar with the present step, runs done, runs per second (the task's field ``rate``), time elapsed and left."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs {task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, transient=True, **options)


@contextlib.contextmanager
def run_bar(quiet: bool) -> Iterator[ProgressCallback]:
    """Progress on stderr: a bar on a terminal; elsewhere a line now and then, or nothing for programs."""
    console = terminal(stderr=True)
    with progress_bar(console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None, rate="")

        def tell(doing: str, finished: int, total: int) -> None:
            if progress.tasks[0].total != total:  # the next study; runs before it say nothing about speed
                progress.reset(task, total=total, completed=finished)
            speed = progress.tasks[0].speed
            progress.update(task, description=doing, completed=finished, rate=f"{speed:,.0f}/s" if speed else "")

        yield tell if console.is_terminal or quiet else _lines()


def _lines() -> ProgressCallback:
    state: dict[str, object] = {}

    def tell(doing: str, finished: int, total: int) -> None:
        tenth = (doing, total, 10 * finished // total)
        if state.get("last") != tenth:
            state["last"] = tenth
            print(f"{doing}: {finished:,} of {total:,} runs", file=sys.stderr, flush=True)

    return tell


@contextlib.contextmanager
def share_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal; call the result with how much of how much is done."""
    console = terminal(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(escape(title), total=None)
        yield lambda finished, total: bar.update(task, completed=finished, total=total)


class StageTimes:
    """Time spent in each stage of a long command.

    >>> times = StageTimes("starting")
    >>> times.enter("compiling")
    >>> times.line().split(":")[1]
    ' starting 0, compiling 0'
    """

    def __init__(self, stage: str) -> None:
        self._seconds = {stage: 0.0}
        self._stage = stage
        self._since = time.perf_counter()

    def enter(self, stage: str) -> None:
        """Begin a stage, or continue one that was left."""
        now = time.perf_counter()
        self._seconds[self._stage] += now - self._since
        self._seconds.setdefault(stage, 0.0)
        self._stage, self._since = stage, now

    def seconds(self) -> dict[str, float]:
        """The seconds of every stage so far, in the order in which they came."""
        self.enter(self._stage)
        return dict(self._seconds)

    def line(self) -> str:
        """The same as a line of text."""
        seconds = self.seconds()
        stages = ", ".join(f"{stage} {spent:.0f}" for stage, spent in seconds.items())
        return f"{sum(seconds.values()):.0f} seconds: {stages}"
