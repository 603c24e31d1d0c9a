"""Output of all commands: one kind of table, of progress bar and of JSON."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, TextIO

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document; errors go to stderr as JSON.")]


def print_json(document: Any, file: TextIO | None = None) -> None:
    """One document on one line. JSON has neither NaN nor infinity: null."""
    print(json.dumps(_finite(document), allow_nan=False, ensure_ascii=False), file=file or sys.stdout)


def _finite(value: Any) -> Any:
    """
    >>> _finite({"mean": 1.5, "interval": (-math.inf, math.nan)})
    {'mean': 1.5, 'interval': [None, None]}
    """
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plain_table(**options: Any) -> Table:
    """A table with a line under its head and no frame."""
    return Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, **options)


def show_slower(lines: Sequence[str]) -> None:
    """Say where no faster engine played, and why."""
    for line in lines:
        Console().print(line, highlight=False, markup=False, style="dim")


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
def share_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal; call the result with how much of how much is done."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(escape(title), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


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
