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
"""Folders below the one that is shown in which studies are looked for."""
MEDIA_TYPES = {".html": "text/html; charset=utf-8", ".csv": "text/csv; charset=utf-8", ".png": "image/png",
          ".svg": "image/svg+xml", ".pdf": "application/pdf", ".json": "application/json",
          ".parquet": "application/vnd.apache.parquet", ".toml": "text/plain; charset=utf-8",
          ".tex": "text/plain; charset=utf-8", ".md": "text/markdown; charset=utf-8"}  # fmt: skip
"""The kinds of files that are handed out, which are those that studies and reports consist of."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StudyEntry:
    """A study: where it is below the folder, what was asked, how far it is, and whether its report is up to date."""

    place: str
    record: dict[str, Any]
    progress: Progress
    report: Path | None
    slower: list[str]
    """Where no faster engine has played, and why."""

    @property
    def groups(self) -> int:
        return len({problem["group"] for problem in self.record["problems"]})


@dataclass(frozen=True)
class PageEntry:
    """A page of several studies, such as the paper's or the leaderboard's."""

    place: str
    title: str
    at: float


@dataclass(frozen=True)
class Listing:
    """All studies, running ones first, then the latest first; pages next to them, the latest first; and what is wrong
    with entries that cannot be read."""

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
        """Everything there is now. A missing folder is an error, not an empty one."""
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
                    elif known := self._known(path):
                        pages.append(PageEntry(self._place(path), _title(path, known.st_mtime_ns), known.st_mtime))
                except Exception as error:  # one entry must not harm the others
                    wrong.append(self._mishap(path, error))
        studies.sort(key=lambda each: (not each.progress.running, -each.progress.latest))
        return Listing(studies, sorted(pages, key=lambda each: -each.at), wrong)

    def _mishap(self, path: Path, error: Exception) -> str:
        """What is wrong with an entry; logged once, with the traceback if it is an error that nobody foresaw."""
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
        """A file that may be handed out."""
        path = self.inside(place)
        if path.suffix not in MEDIA_TYPES or not self._known(path):
            raise NotFound(f"there is no file {place!r:.80} to show; go back to the list")
        return path

    def inside(self, place: str) -> Path:
        """The path of a place, links followed; one that leads out of the folder is not found."""
        try:
            path = (self.root / place).resolve()
            hidden = any(part.startswith(".") for part in path.relative_to(self.root).parts)
        except (ValueError, OSError, RuntimeError):  # no name for a file, a circle of links, outside
            hidden = True
        if hidden:
            raise NotFound(f"there is nothing at {place!r:.80}; go back to the list")
        return path

    def _known(self, path: Path) -> os.stat_result | None:
        """What a regular file is known by; None of what is no such file, or a link that leads out of the folder."""
        try:
            found = path.lstat()
            if stat.S_ISLNK(found.st_mode):
                found = self.inside(self._place(path)).lstat()
        except (OSError, NotFound):
            return None
        return found if stat.S_ISREG(found.st_mode) else None

    def _shown(self, folder: Path, now: float) -> StudyEntry:
        study = Study(folder)
        asked = study.record.stat()
        record = _asked(study, asked.st_mtime_ns, asked.st_size)
        far = progress(study, record, now)
        report = self._known(folder / REPORT)
        fresh = far.finished and report is not None and report.st_mtime >= max(far.latest, asked.st_mtime)
        known = self._known(study.efforts_file)
        version = (asked.st_mtime_ns, asked.st_size)
        slower = _slower(study, version, (known.st_mtime_ns, known.st_size)) if known else []
        return StudyEntry(self._place(folder), record, far, folder / REPORT if fresh else None, slower)

    def _place(self, path: Path) -> str:
        place = path.relative_to(self.root).as_posix()
        return "" if place == "." else place

    def _folders(self) -> tuple[list[Path], list[OSError]]:
        """The folder and those below it, but not those inside a study; and why some cannot be read."""
        try:
            os.scandir(self.root).close()
        except OSError as error:
            raise StudyError(
                f"cannot read {self.root}: {error.strerror}; was it moved or removed? Put it back, or start "
                "'budgetbandits view' where it is"
            ) from None
        found, refused = list[Path](), list[OSError]()
        for here, names, files in os.walk(self.root, onerror=refused.append):
            path = Path(here)
            found.append(path)
            deep = len(path.relative_to(self.root).parts) >= DEPTH_MAX
            names[:] = [] if deep or "study.json" in files else sorted(n for n in names if not n.startswith("."))
        return found, refused


def as_text(name: str) -> str:
    """A name as it can be shown: bytes of a file's name that are no text become question marks.

    >>> as_text("caf\\udce9")
    'caf?'
    """
    return name.encode("utf-8", "replace").decode()


@lru_cache(maxsize=256)
def _asked(study: Study, changed: int, size: int) -> dict[str, Any]:
    """Kept, since the record of a large study takes long to read and does not change while it runs."""
    return study.asked()


@lru_cache(maxsize=256)
def _slower(study: Study, asked: tuple[int, int], efforts: tuple[int, int]) -> list[str]:
    """Kept like the record, by when and how its files have changed."""
    return study.slower(_asked(study, *asked))


@lru_cache(maxsize=256)
def _title(path: Path, changed: int) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        found = re.search(r"<title>(.*?)</title>", file.read(4096), re.DOTALL)
    return unescape(found[1]).strip() if found else path.name
