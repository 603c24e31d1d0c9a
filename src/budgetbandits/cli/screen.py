"""How the commands look on a terminal: one kind of table, one kind of progress bar."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table


def plain_table(**options: Any) -> Table:
    """A table with a line under its head and no frame."""
    return Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, **options)


def progress_bar(console: Console, **options: Any) -> Progress:
    """What is going on, how many runs are done, how fast (the task's field ``rate``), and the time gone and left."""
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
