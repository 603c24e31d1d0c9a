"""What there is to see beneath a folder: studies, and pages that were written beside them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from html import unescape
from pathlib import Path
from typing import Any

from budgetbandits.errors import NotFound, StudyError
from budgetbandits.experiments.progress import Progress, progress
from budgetbandits.experiments.study import Study
from budgetbandits.report.page import REPORT

DEEP = 4
"""Folders below the one that is shown in which studies are looked for."""
SERVED = {".html": "text/html; charset=utf-8", ".csv": "text/csv; charset=utf-8", ".png": "image/png",
          ".svg": "image/svg+xml", ".pdf": "application/pdf", ".json": "application/json",
          ".parquet": "application/vnd.apache.parquet", ".toml": "text/plain; charset=utf-8",
          ".tex": "text/plain; charset=utf-8", ".md": "text/markdown; charset=utf-8"}  # fmt: skip
"""The kinds of files that are handed out, which are those that studies and reports consist of."""


@dataclass(frozen=True)
class Shown:
    """A study: where it is below the folder, what was asked, how far it is, and whether its report is up to date."""

    place: str
    record: dict[str, Any]
    progress: Progress
    report: Path | None

    @property
    def groups(self) -> int:
        return len({problem["group"] for problem in self.record["problems"]})


@dataclass(frozen=True)
class Written:
    """A page of several studies, such as the paper's or the leaderboard's."""

    place: str
    title: str
    at: float


class Folder:
    """A folder of studies, or a single study."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        if not self.root.is_dir():
            raise StudyError(f"{root} is no folder; name that of a study, or one with studies in it")

    def studies(self, now: float) -> tuple[list[Shown], list[str]]:
        """All studies, running ones first, then the latest first; and what is wrong with those that cannot be read."""
        found, wrong = [], []
        for folder in self._folders():
            if (folder / "study.json").is_file():
                try:
                    found.append(self._shown(folder, now))
                except StudyError as error:
                    wrong.append(str(error))
        return sorted(found, key=lambda each: (not each.progress.running, -each.progress.latest)), wrong

    def study(self, place: str, now: float) -> Shown:
        """The study at a place below the folder."""
        folder = self.inside(place)
        if not (folder / "study.json").is_file():
            raise NotFound(f"there is no study at {place or '.'!r:.80}; go back to the list")
        return self._shown(folder, now)

    def pages(self) -> list[Written]:
        """Pages beside folders of studies rather than in them."""
        found = []
        for folder in self._folders():
            if not (folder / "study.json").is_file():
                for path in sorted(folder.glob("*.html")):
                    stat = path.stat()
                    found.append(Written(self._place(path), _title(path, stat.st_mtime_ns), stat.st_mtime))
        return sorted(found, key=lambda each: -each.at)

    def inside(self, place: str) -> Path:
        """The path of a place; one that leads out of the folder is not found."""
        path = (self.root / place).resolve()
        if not path.is_relative_to(self.root) or any(
            part.startswith(".") for part in path.relative_to(self.root).parts
        ):
            raise NotFound(f"there is nothing at {place!r:.80}; go back to the list")
        return path

    def _shown(self, folder: Path, now: float) -> Shown:
        study = Study(folder)
        record = _asked(study, study.record.stat().st_mtime_ns)
        far = progress(study, record, now)
        report = folder / REPORT
        written = report.stat().st_mtime if report.is_file() else 0.0
        fresh = far.finished and written >= max(far.latest, study.record.stat().st_mtime)
        return Shown(self._place(folder), record, far, report if fresh else None)

    def _place(self, path: Path) -> str:
        place = path.relative_to(self.root).as_posix()
        return "" if place == "." else place

    def _folders(self) -> list[Path]:
        """The folder and those below it, but not those inside a study."""
        found = []
        for here, names, files in os.walk(self.root):
            path = Path(here)
            found.append(path)
            deep = len(path.relative_to(self.root).parts) >= DEEP
            names[:] = [] if deep or "study.json" in files else sorted(n for n in names if not n.startswith("."))
        return found


@lru_cache(maxsize=256)
def _asked(study: Study, changed: int) -> dict[str, Any]:
    """Kept, since the record of a large study takes long to read and does not change while it runs."""
    return study.asked()


@lru_cache(maxsize=256)
def _title(path: Path, changed: int) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        found = re.search(r"<title>(.*?)</title>", file.read(4096), re.DOTALL)
    return unescape(found[1]).strip() if found else path.name
