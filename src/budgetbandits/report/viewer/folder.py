"""The studies of a folder, and the pages that were written next to them.

One broken entry does not harm the others: what is wrong with it is shown in its place, and logged.
"""

from __future__ import annotations

import logging
import os
import re
import stat
from dataclasses import dataclass
from functools import lru_cache
from html import unescape
from pathlib import Path
from typing import Any

from budgetbandits.errors import NotFound, StudyError
from budgetbandits.experiments.study import Progress, Study, progress
from budgetbandits.report.page import REPORT

DEPTH_MAX = 4
"""Depth of folders below the one that is shown in which studies are searched."""
MEDIA_TYPES = {".html": "text/html; charset=utf-8", ".csv": "text/csv; charset=utf-8", ".png": "image/png",
          ".svg": "image/svg+xml", ".pdf": "application/pdf", ".json": "application/json",
          ".parquet": "application/vnd.apache.parquet", ".toml": "text/plain; charset=utf-8",
          ".tex": "text/plain; charset=utf-8", ".md": "text/markdown; charset=utf-8"}  # fmt: skip
"""Media types of the files that are served, which are those of studies and reports."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StudyEntry:
    """A study: its place below the folder, its record, its progress, and its report if that is up to date."""

    place: str
    record: dict[str, Any]
    progress: Progress
    report: Path | None
    slower: list[str]
    """Notes on games that no faster engine has played, and why."""

    @property
    def groups(self) -> int:
        """The number of groups of problems."""
        return len({problem["group"] for problem in self.record["problems"]})


@dataclass(frozen=True)
class PageEntry:
    """A page of several studies, such as the paper's or the leaderboard's."""

    place: str
    title: str
    at: float


@dataclass(frozen=True)
class Listing:
    """The content of a folder: studies, running ones first, then the latest; pages, the latest first; and messages
    about entries that cannot be read."""

    studies: list[StudyEntry]
    pages: list[PageEntry]
    wrong: list[str]


class Folder:
    """A folder of studies, or a single study."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._logged: set[str] = set()
        if not self.root.is_dir():
            raise StudyError(f"{root} is no folder; name that of a study, or one with studies in it")

    def look(self, now: float) -> Listing:
        """The current content of the folder. A missing folder is an error, unlike an empty one."""
        studies, pages, wrong = list[StudyEntry](), list[PageEntry](), list[str]()
        folders, refused = self._folders()
        for error in refused:
            wrong.append(self._mishap(Path(error.filename), error))
        for folder in folders:
            is_study = self._known(folder / "study.json") is not None
            for path in [folder] if is_study else sorted(folder.glob("*.html")):
                try:
                    if is_study:
                        studies.append(self._shown(path, now))
                    elif stat := self._known(path):
                        pages.append(PageEntry(self._place(path), _title(path, stat.st_mtime_ns), stat.st_mtime))
                except Exception as error:  # one entry must not harm the others
                    wrong.append(self._mishap(path, error))
        studies.sort(key=lambda study: (not study.progress.running, -study.progress.latest))
        return Listing(studies, sorted(pages, key=lambda page: -page.at), wrong)

    def _mishap(self, path: Path, error: Exception) -> str:
        """The message about a broken entry, which is logged once, with the traceback of an unexpected error."""
        foreseen = isinstance(error, StudyError | OSError)
        why = getattr(error, "strerror", None) or str(error) if foreseen else f"{type(error).__name__}: {error}"
        words = why if isinstance(error, StudyError) else f"cannot show {path}: {why}"
        if words not in self._logged:
            self._logged.add(words)
            log.warning("%s", as_text(words), exc_info=None if foreseen else error)
        return as_text(words)

    def study(self, place: str, now: float) -> StudyEntry:
        """The study at a place below the folder."""
        folder = self.inside(place)
        if not self._known(folder / "study.json"):
            raise NotFound(f"there is no study at {place or '.'!r:.80}; go back to the list")
        return self._shown(folder, now)

    def file(self, place: str) -> Path:
        """The path of a file that may be served."""
        path = self.inside(place)
        if path.suffix not in MEDIA_TYPES or not self._known(path):
            raise NotFound(f"there is no file {place!r:.80} to show; go back to the list")
        return path

    def inside(self, place: str) -> Path:
        """The path of a place, with links resolved; `NotFound` if it is outside the folder."""
        try:
            path = (self.root / place).resolve()
            hidden = any(part.startswith(".") for part in path.relative_to(self.root).parts)
        except (ValueError, OSError, RuntimeError):  # no name for a file, a circle of links, outside
            hidden = True
        if hidden:
            raise NotFound(f"there is nothing at {place!r:.80}; go back to the list")
        return path

    def _known(self, path: Path) -> os.stat_result | None:
        """The status of a regular file inside the folder; None for anything else."""
        try:
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                status = self.inside(self._place(path)).lstat()
        except (OSError, NotFound):
            return None
        return status if stat.S_ISREG(status.st_mode) else None

    def _shown(self, folder: Path, now: float) -> StudyEntry:
        study = Study(folder)
        asked = study.record.stat()
        record = _asked(study, asked.st_mtime_ns, asked.st_size)
        far = progress(study, record, now)
        report = self._known(folder / REPORT)
        fresh = far.finished and report is not None and report.st_mtime >= max(far.latest, asked.st_mtime)
        stat = self._known(study.efforts_file)
        version = (asked.st_mtime_ns, asked.st_size)
        slower = _slower(study, version, (stat.st_mtime_ns, stat.st_size)) if stat else []
        return StudyEntry(self._place(folder), record, far, folder / REPORT if fresh else None, slower)

    def _place(self, path: Path) -> str:
        place = path.relative_to(self.root).as_posix()
        return "" if place == "." else place

    def _folders(self) -> tuple[list[Path], list[OSError]]:
        """The folder and those below it, except those inside a study, and the errors of unreadable ones."""
        try:
            os.scandir(self.root).close()
        except OSError as error:
            raise StudyError(
                f"cannot read {self.root}: {error.strerror}; was it moved or removed? Put it back, or start "
                "'budgetbandits view' where it is"
            ) from None
        folders, refused = list[Path](), list[OSError]()
        for folder, names, files in os.walk(self.root, onerror=refused.append):
            path = Path(folder)
            folders.append(path)
            deep = len(path.relative_to(self.root).parts) >= DEPTH_MAX
            names[:] = [] if deep or "study.json" in files else sorted(n for n in names if not n.startswith("."))
        return folders, refused


def as_text(name: str) -> str:
    """A file name as text; bytes that are no text become question marks.

    >>> as_text("caf\\udce9")
    'caf?'
    """
    return name.encode("utf-8", "replace").decode()


@lru_cache(maxsize=256)
def _asked(study: Study, changed: int, size: int) -> dict[str, Any]:
    """The record of a study, cached: that of a large study takes long to read and does not change while it runs."""
    return study.asked()


@lru_cache(maxsize=256)
def _slower(study: Study, asked: tuple[int, int], efforts: tuple[int, int]) -> list[str]:
    """The notes on slow engines, cached until the study's files change."""
    return study.slower(_asked(study, *asked))


@lru_cache(maxsize=256)
def _title(path: Path, changed: int) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        title = re.search(r"<title>(.*?)</title>", file.read(4096), re.DOTALL)
    return unescape(title[1]).strip() if title else path.name
