"""How far a study is: what of it is there, how fast it grows, and how long the rest will take at that rate."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from budgetbandits.experiments.study import Study

PARTS = 20
"""Latest parts over which the rate is taken, of those that came since the study was last begun."""
QUIET = 60.0
"""Seconds without a new part after which a study may have stopped, if its parts came faster before."""


@dataclass(frozen=True)
class Progress:
    """Of a study at one moment; times are seconds since 1970.

    ``by_policy`` has (runs done, runs) of each policy; ``latest`` is when the latest part was written, or the study
    begun; ``rate`` is runs a second, if there are enough parts to tell; ``gap`` is the longest time between two parts
    of those; ``state`` differs whenever the record or a part does.
    """

    cells: int
    cells_done: int
    by_policy: dict[str, tuple[int, int]]
    latest: float
    rate: float | None
    gap: float
    now: float
    state: tuple[int, ...]

    @property
    def runs(self) -> int:
        return sum(runs for _, runs in self.by_policy.values())

    @property
    def runs_done(self) -> int:
        return sum(done for done, _ in self.by_policy.values())

    @property
    def finished(self) -> bool:
        return self.cells_done == self.cells

    @property
    def quiet_for(self) -> float:
        """Seconds since anything was written."""
        return max(self.now - self.latest, 0.0)

    @property
    def running(self) -> bool:
        """Whether a part has come lately, as parts of this study come; nothing else tells of who computes it."""
        return not self.finished and self.quiet_for < max(QUIET, 5.0 * self.gap)

    @property
    def seconds_left(self) -> float | None:
        """At the present rate, as if all cells took equally long."""
        if self.finished or not self.running or not self.rate:
            return None
        return (self.runs - self.runs_done) / self.rate


def progress(study: Study, record: dict[str, Any], now: float) -> Progress:
    """From the names and times of the parts alone: none of them is opened."""
    there, known = study.there(), study.record.stat()
    runs, done = Counter[str](), Counter[str]()
    of_part = Counter[str]()
    for cell in record["cells"]:
        games = cell["runs"] * len(cell.get("problems", [""]))
        runs[cell["policy"]] += games
        if cell["key"] in there:
            done[cell["policy"]] += games
            of_part[cell["key"]] += games
    written = sorted((there[key].st_mtime, games) for key, games in of_part.items())
    # begun again, a study's record is written again: how long it stood still before that says nothing
    recent = [(at, games) for at, games in written[-PARTS:] if at >= known.st_mtime]
    times = [at for at, _ in recent]
    rate = None
    if len(recent) > 1 and now > times[0]:
        rate = sum(games for _, games in recent[1:]) / (now - times[0])
    cells_done = sum(cell["key"] in there for cell in record["cells"])
    begun = [known.st_mtime] if cells_done < len(record["cells"]) else []
    parts = [there[key] for key in of_part]
    return Progress(
        cells=len(record["cells"]),
        cells_done=cells_done,
        by_policy={policy: (done[policy], runs[policy]) for policy in record["policies"]},
        latest=max([*begun, *(at for at, _ in written[-1:])], default=0.0),
        rate=rate,
        gap=max((later - sooner for sooner, later in pairwise(times)), default=0.0),
        now=now,
        state=(known.st_mtime_ns, known.st_size, len(parts), sum(each.st_mtime_ns for each in parts),
               sum(each.st_size for each in parts)),
    )  # fmt: skip
