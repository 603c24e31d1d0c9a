"""The pages of a folder of studies: requests and their responses, and the previews of running studies."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from budgetbandits.errors import NotFound
from budgetbandits.experiments import plots
from budgetbandits.experiments.results import Results
from budgetbandits.formatting.datetimes import Times, duration
from budgetbandits.formatting.numbers import count, exact, listed, short, thousands
from budgetbandits.policies import label
from budgetbandits.report.figures import WIDTHS, Drawing, PageFigure, drawing_of, legend_marks
from budgetbandits.report.page import page_of, with_way_back
from budgetbandits.report.viewer.folder import MEDIA_TYPES, Folder, PageEntry, StudyEntry, as_text
from budgetbandits.web.assets import LivePages
from budgetbandits.web.servers import BEAT
from budgetbandits.web.view_cache import EXPECTED_ERRORS, BackgroundValue

HTML = "text/html; charset=utf-8"
"""Media type of a page."""

NO_EMBEDDING = "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
"""Rules that every content security policy ends with."""

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self'; connect-src 'self'; "
    f"{NO_EMBEDDING}"
)
"""Content security policy of the viewer's pages. Inline styles are allowed since figures have colours in attributes."""
FOREIGN_FILE_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    f"style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; {NO_EMBEDDING}"
)
"""Content security policy of files of the folder, which may come from others. Their scripts run in a sandbox that
cannot read the viewer's pages or send anything. A report has a stricter policy of its own."""

log = logging.getLogger(__name__)

REPORT_SECONDS = 20.0
"""Time that a study has after its last part to write its report itself."""


# the figure of a running study
PREVIEW = PageFigure("so-far", "Mean pseudo-regret so far", "", legend=True)


class Curves(NamedTuple):
    """The figure of a running study for each width, and the numbers of its runs and groups of problems."""

    drawings: list[Drawing]
    runs: int
    groups: int


def curves(folder: Path) -> Curves | None:
    """The figure of the regret so far, for two widths; None before the first part."""
    results = Results.so_far(folder)
    if results is None:
        return None
    draw = partial(plots.regret if len(results.budgets) > 1 else plots.dots, results)
    drawings = [drawing_of(PREVIEW, draw, width) for width in WIDTHS]
    return Curves(drawings, results.table.height // len(results.budgets), len(results.groups))


def report(folder: Path) -> str:
    """The page that `budgetbandits report` would write, without writing into the study."""
    with tempfile.TemporaryDirectory(prefix="budgetbandits-view-") as scratch:
        return page_of(Results.load(folder, keep=False), Path(scratch))


@dataclass(frozen=True)
class PageResponse:
    """The response to a request for a page or a file."""

    body: bytes
    kind: str = HTML
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class Viewer:
    """The pages of one folder, in which nothing is written."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._curves: dict[str, BackgroundValue[Curves | None]] = {}
        self._reports: dict[str, tuple[tuple[int, ...], BackgroundValue[str]]] = {}

    def answer(self, path: str, query: Mapping[str, str], part: bool = False) -> PageResponse:
        """The page at a path, or only its changing part for a page that is shown already."""
        try:
            return self._answer(path, query, part)
        except NotFound as error:
            return _page("problem.html", 404, problem=str(error), title="Not found")
        except Exception as error:
            status = 503 if isinstance(error, EXPECTED_ERRORS) else 500
            return _page("problem.html", status, problem=why(error, path), title="This cannot be shown")

    def _answer(self, path: str, query: Mapping[str, str], part: bool) -> PageResponse:
        first, _, rest = path.lstrip("/").partition("/")
        if first == "":
            return self._list(query, part)
        if first == "study":
            return self._study(rest, query, part)
        if first == "watch":
            return self._watch(self.folder.study(rest, time.time()), query, part)
        if first == "files":
            return self._file(rest)
        name = rest.rpartition("/")[2]
        if first == "assets" and name in PAGES.media_types:
            kept = {"Cache-Control": "public, max-age=31536000, immutable"}
            return PageResponse(PAGES.asset(name).encode(), PAGES.media_types[name], headers=kept)
        raise NotFound(f"there is no page {path!r:.80}; go back to the list")

    def pulse(self, path: str) -> int:
        """A number that changes when the page at this path does."""
        first, _, rest = path.lstrip("/").partition("/")
        if first == "":
            seen = self.folder.look(time.time())
            state = [(entry.place, entry.progress.state, entry.progress.running) for entry in seen.studies]
            return int(hashlib.sha256(ascii((state, seen.pages, seen.wrong)).encode()).hexdigest()[:12], 16)
        return self._event(self.folder.study(rest, time.time()))

    # --- pages ---------------------------------------------------------------------------------------------------

    def _list(self, query: Mapping[str, str], part: bool) -> PageResponse:
        seen = self.folder.look(time.time())
        if query.get("format") == "json":
            return _json({"studies": [_numbers(entry) for entry in seen.studies], "unreadable": seen.wrong})
        wrong = list(seen.wrong)
        values: dict[str, Any] = {
            "studies": _rows("_list_study.html", seen.studies, wrong),
            "pages": _rows("_list_page.html", seen.pages, wrong),
            "wrong": wrong, "root": str(self.folder.root), "live": "/live/",
        }  # fmt: skip
        return _page("_list.html" if part else "list.html", **values)

    def _study(self, place: str, query: Mapping[str, str], part: bool) -> PageResponse:
        """The report of a finished study, or the progress of a running one."""
        shown = self.folder.study(place, time.time())
        if query.get("format") == "json" or not shown.progress.finished:
            return self._watch(shown, query, part)
        text = (
            shown.report.read_text(encoding="utf-8", errors="replace")
            if shown.report is not None
            else self._report(shown)
        )
        if text is None:
            return self._watch(shown, query, part)
        if part:  # of a page that was watched: it is another one now
            return PageResponse(b"", headers={"X-Reload": "1"})
        return _foreign(with_way_back(text, "/").encode("utf-8", "replace"), HTML)

    def _report(self, shown: StudyEntry) -> str | None:
        """The report of a study, drawn in the background once for each state of the study; None until it is ready or
        while the study may still write it."""
        if shown.progress.quiet_for < REPORT_SECONDS:
            return None
        of, value = self._reports.get(shown.place, ((), None))
        if value is None or of != shown.progress.state:
            value = BackgroundValue(partial(report, self.folder.inside(shown.place)), seconds_min=math.inf)
            self._reports[shown.place] = (shown.progress.state, value)
        return value.latest()

    def _watch(self, shown: StudyEntry, query: Mapping[str, str], part: bool) -> PageResponse:
        if query.get("format") == "json":
            return _json(_numbers(shown))
        curves = self._curves_of(shown)
        _, report = self._reports.get(shown.place, ((), None))
        without = shown.progress.finished and shown.report is None
        report_to_come = without and (report is None or not report.number)
        values: dict[str, Any] = {
            "study": shown, "marks": legend_marks(shown.record["policies"]), "making": report_to_come,
            "curves": None if report_to_come else curves.latest(), "failed": curves.failed, "tried": curves.number > 0,
            "wrong": "" if report is None else report.failed, "slower": shown.slower,
        }  # fmt: skip
        if part:
            return _page("_study.html", headers={"X-Event": str(self._event(shown))}, **values)
        return _page("study.html", **values, live=f"/live/watch/{address(shown.place)}")

    def _curves_of(self, shown: StudyEntry) -> BackgroundValue[Curves | None]:
        if shown.place not in self._curves:
            self._curves[shown.place] = BackgroundValue(partial(curves, self.folder.inside(shown.place)))
        return self._curves[shown.place]

    def _event(self, shown: StudyEntry) -> int:
        """A number that rises with each part, each drawing of the curves, and with the report."""
        _, report = self._reports.get(shown.place, ((), None))
        drawings = self._curves_of(shown).number + (0 if report is None else report.number)
        return shown.progress.cells_done + drawings

    def _file(self, place: str) -> PageResponse:
        path = self.folder.file(place)
        content = path.read_bytes()
        if path.suffix == ".html":
            content = with_way_back(content.decode("utf-8", errors="replace"), "/").encode()
        return _foreign(content, MEDIA_TYPES[path.suffix])


def why(error: Exception, path: str) -> str:
    """The message of a page about an error, which is logged, with the traceback of an unexpected one."""
    foreseen = isinstance(error, EXPECTED_ERRORS)
    log.error("%s: %s", as_text(path)[:200], as_text(str(error)), exc_info=None if foreseen else error)
    return str(error) if foreseen else "a mistake of ours; the terminal that runs 'budgetbandits view' says more"


def _foreign(content: bytes, kind: str) -> PageResponse:
    headers = {"Content-Security-Policy": FOREIGN_FILE_POLICY}
    if kind == MEDIA_TYPES[".pdf"]:  # browsers show none that is closed in like this
        headers["Content-Disposition"] = "attachment"
    return PageResponse(content, kind, headers=headers)


def address(place: str) -> str:
    """A place below the folder as part of an address; file names are bytes, and not always text.

    >>> address("a b/caf\\udce9")
    'a%20b/caf%E9'
    """
    return quote(os.fsencode(place))


def _numbers(shown: StudyEntry) -> dict[str, Any]:
    """A study as JSON."""
    record, far = shown.record, shown.progress
    return {
        "place": shown.place or ".", "page": f"/study/{address(shown.place)}", "name": record["name"],
        "begun": record.get("begun"), "policies": record["policies"], "problems": len(record["problems"]),
        "budgets": record["budgets"],
        "runs": record["runs"], "finished": far.finished, "running": far.running, "cells": far.cells,
        "cells_done": far.cells_done, "games": far.runs, "games_done": far.runs_done, "latest": far.latest,
        "games_per_second": far.rate if far.running else None, "seconds_left": far.seconds_left,
        "slower": shown.slower,
        "by_policy": {policy: {"done": runs, "of": of} for policy, (runs, of) in far.runs_by_policy.items()},
    }  # fmt: skip


def _json(content: dict[str, Any]) -> PageResponse:
    text = json.dumps(content, ensure_ascii=False)
    return PageResponse(text.encode("utf-8", "replace"), "application/json")


# --- templates and assets ----------------------------------------------------------------------------------------


def _page(template: str, status: int = 200, headers: Mapping[str, str] | None = None, **values: Any) -> PageResponse:
    text = _filled(template, {"live": ""} | values)
    return PageResponse(
        text.encode("utf-8", "replace"), HTML, status, {"Content-Security-Policy": PAGE_POLICY} | dict(headers or {})
    )


def _filled(template: str, values: dict[str, Any]) -> str:
    times = Times(datetime.now().astimezone().tzinfo or UTC, time.time())
    return PAGES.render(template, **{"times": times, "beat": BEAT} | values)


def _rows(template: str, entries: Sequence[StudyEntry | PageEntry], wrong: list[str]) -> list[Markup]:
    """The rows of the list. An entry that cannot be drawn adds a message to ``wrong`` and leaves the others intact."""
    rows = []
    for entry in entries:
        try:
            rows.append(Markup(_filled(template, {"each": entry})))
        except Exception as error:
            log.exception("cannot draw %s", as_text(entry.place))
            wrong.append(f"cannot show {entry.place or '.'}: {type(error).__name__}: {error}")
    return rows


def _rate(per_second: float) -> str:
    """A rate as text.

    >>> _rate(1234.5), _rate(2.5), _rate(0.02)
    ('1,234 a second', '2.5 a second', '1.2 a minute')
    """
    if per_second >= 10.0:
        return f"{per_second:,.0f} a second"
    return f"{per_second:.1f} a second" if per_second >= 1.0 else f"{60.0 * per_second:.1f} a minute"


PAGES = LivePages(
    "budgetbandits.report.viewer", (),
    {"policy": label, "duration": duration, "path": address, "short": short, "exact": exact, "listed": listed,
     "thousands": thousands, "rate": _rate},
    {"counted": count},
)  # fmt: skip


def address_of(folder: Folder) -> str:
    """The address of the first page: that of the study, if the folder is one."""
    return "/study/" if Path(folder.root / "study.json").is_file() else "/"
