"""Studies in a browser: what a page says is what the folder holds, and nothing is written into it."""

import json
import os
import shutil
import threading
import time

import pytest

from budgetbandits.errors import BadParameter, NotFound, StudyError
from budgetbandits.experiments import leaderboard, run
from budgetbandits.experiments.results import Results
from budgetbandits.experiments.runner import Workers
from budgetbandits.experiments.study import Study, progress
from budgetbandits.experiments.suite import Suite
from budgetbandits.report.leaderboard import write_page
from budgetbandits.report.page import with_way_back
from budgetbandits.report.viewer.folder import Folder
from budgetbandits.report.viewer.pages import PAGES, Viewer, address_of, curves
from budgetbandits.report.viewer.server import Server
from budgetbandits.web import view_cache
from budgetbandits.web.view_cache import CPU_SHARE, BackgroundValue
from studies import small
from suites import TINY
from viewed import ask, everything, past, text, until

# --- how far ---------------------------------------------------------------------------------------------------------


def test_rate_and_time_left_are_those_of_the_latest_parts(half):
    """Six parts of 6 runs, ten seconds apart, the last five seconds ago: 30 runs in 55 s, and 36 are missing."""
    study = Study(half / "deep/one")
    now = time.time()
    for place, path in enumerate(sorted(study.parts.iterdir())):
        os.utime(path, (now - 55 + 10 * place,) * 2)
    far = progress(study, study.asked(), now)
    assert (far.cells, far.cells_done, far.runs, far.runs_done) == (12, 6, 72, 36)
    assert far.rate == pytest.approx(30 / 55, rel=1e-6)
    assert far.seconds_left == pytest.approx(36 / (30 / 55), rel=1e-6)
    assert far.running
    assert sum(runs for runs, _ in far.runs_by_policy.values()) == 36
    assert {of for _, of in far.runs_by_policy.values()} == {18}
    later = progress(study, study.asked(), now + 120)
    assert not later.running
    assert later.seconds_left is None


def test_a_study_that_was_begun_and_has_no_part_yet(half):
    study = Study(half / "deep/one")
    shutil.rmtree(study.parts)
    assert not progress(study, study.asked(), time.time()).running
    os.utime(study.record)
    far = progress(study, study.asked(), time.time())
    assert far.running
    assert (far.cells_done, far.rate) == (0, None)
    assert Results.so_far(study.folder) is None


def test_results_so_far_are_the_parts_that_are_there(half, whole_study):
    whole, part = Results.load(whole_study).table, Results.so_far(half / "deep/one").table
    assert part.height == whole.height // 2
    where = ["problem", "policy", "budget", "run"]
    assert part.sort(where).equals(whole.join(part.select(where), on=where, how="semi").sort(where))


@pytest.mark.parametrize("budgets", [(5.0, 20.0), (20.0,)])
def test_curves_of_policies_that_have_not_all_played(tmp_path, budgets):
    study = run(small(budgets=budgets), tmp_path / "x", Workers(jobs=1))
    kept = {cell["key"] for cell in study.asked()["cells"] if cell["policy"] != "kube"}
    for key in set(study.there()) - kept:
        study.part(key).unlink()
    preview = curves(study.folder)
    assert (preview.runs, preview.groups) == (54, 2)
    assert "policy-0 line" in preview.drawings[0].svg
    assert [drawing.width for drawing in preview.drawings] == ["wide", "narrow"]


# --- pages -----------------------------------------------------------------------------------------------------------


def test_the_list_has_every_study_and_every_page_beside_them(finished):
    (finished / "deep" / "leaderboard.html").write_text("<!doctype html><title>Who &amp; where</title>")
    (finished / "broken").mkdir()
    (finished / "broken" / "study.json").write_text("{")
    (finished / ".hidden").mkdir()
    (finished / ".hidden" / "study.json").write_text("{")
    viewer = Viewer(Folder(finished))
    page = text(viewer.answer("/", {}))
    assert 'href="/study/deep/one"' in page
    assert "Finished" in page
    assert 'href="/files/deep/leaderboard.html">Who &amp; where<' in page
    listing = json.loads(viewer.answer("/", {"format": "json"}).body)
    assert [study["place"] for study in listing["studies"]] == ["deep/one"]
    [wrong] = listing["unreadable"]
    assert "run the experiment again" in wrong
    assert "/.hidden" not in page


def test_a_study_says_where_no_faster_engine_has_played(half):
    slower = "BTS, ε-first, ε-first epsilon=0.2, KUBE: the reference simulator played (asked for)"
    viewer = Viewer(Folder(half))
    assert slower in text(viewer.answer("/watch/deep/one", {}))
    assert json.loads(viewer.answer("/watch/deep/one", {"format": "json"}).body)["slower"] == [slower]
    Study(half / "deep/one").efforts_file.write_text("[[1], 2, 3]\n[[1], null, 3, 4]\n")
    assert slower not in text(viewer.answer("/watch/deep/one", {}))
    Study(half / "deep/one").efforts_file.unlink()
    assert "Runs by policy" in text(viewer.answer("/watch/deep/one", {}))


def test_an_empty_folder_says_how_to_fill_it(tmp_path):
    assert "budgetbandits run growth --out" in text(Viewer(Folder(tmp_path)).answer("/", {}))


def test_the_report_of_a_finished_study_is_drawn_elsewhere_once(finished, asked):
    asked.clear()
    viewer = Viewer(Folder(finished))
    before = everything(finished)
    assert "is being drawn" in text(viewer.answer("/study/deep/one", {}))
    until(lambda: viewer.answer("/study/deep/one", {}).body == b'<a class="brand" href="/">b</a>small')
    assert viewer.answer("/study/deep/one", {}, part=True).headers["X-Reload"]
    viewer.answer("/study/deep/one", {})
    assert len(asked) == 1
    assert not asked[0].exists()
    assert everything(finished) == before


def test_a_report_that_cannot_be_drawn_says_why(finished):
    next((finished / "deep/one/parts").iterdir()).write_bytes(b"no parquet")
    past(finished, 3600)
    viewer = Viewer(Folder(finished))
    until(lambda: "The report cannot be drawn" in text(viewer.answer("/study/deep/one", {})))
    assert "delete it and run the experiment again" in text(viewer.answer("/study/deep/one", {}))


def test_a_report_that_is_up_to_date_is_shown_as_it_is(finished):
    (finished / "deep/one/report.html").write_text('<span class="brand">x</span>mine')
    viewer = Viewer(Folder(finished))
    assert text(viewer.answer("/study/deep/one", {})) == '<a class="brand" href="/">x</a>mine'
    os.utime(finished / "deep/one/report.html", (time.time() - 7200,) * 2)
    assert "is being drawn" in text(viewer.answer("/study/deep/one", {}))


def test_a_study_that_runs_is_watched_and_not_touched(half):
    viewer = Viewer(Folder(half))
    before = everything(half)
    page = text(viewer.answer("/study/deep/one", {}))
    assert "Not finished" in page
    assert "being drawn" in page
    seen = viewer.pulse("/watch/deep/one")
    until(lambda: viewer.pulse("/watch/deep/one") > seen)
    answer = viewer.answer("/study/deep/one", {}, part=True)
    assert "<svg" in text(answer)
    assert "<html" not in text(answer)
    assert int(answer.headers["X-Event"]) == viewer.pulse("/watch/deep/one")
    numbers = json.loads(viewer.answer("/study/deep/one", {"format": "json"}).body)
    assert (numbers["cells_done"], numbers["cells"], numbers["running"]) == (6, 12, False)
    assert everything(half) == before


@pytest.mark.parametrize(
    "path",
    ["/files/../secret.html", "/files/deep/one/parts", "/files/%2e%2e/secret.html", "/study/nobody", "/study/../..",
     "/files/deep/.x.html", "/files/link.html", "/nothing", "/assets/x/other.js"],
)  # fmt: skip
def test_only_what_belongs_to_studies_is_handed_out(finished, path):
    (finished.parent / "secret.html").write_text("secret")
    (finished / "deep/.x.html").write_text("secret")
    (finished / "link.html").symlink_to(finished.parent / "secret.html")
    answer = Viewer(Folder(finished)).answer(path, {})
    assert answer.status == 404
    assert b"secret" not in answer.body.replace(b"secret.html", b"")


def test_files_beside_a_report_are_handed_out(finished):
    (finished / "deep/one/summary.csv").write_text("a,b\n")
    answer = Viewer(Folder(finished)).answer("/files/deep/one/summary.csv", {})
    assert (answer.body, answer.kind) == (b"a,b\n", "text/csv; charset=utf-8")


def test_a_single_study_is_shown_at_once(finished):
    assert address_of(Folder(finished)) == "/"
    assert address_of(Folder(finished / "deep/one")) == "/study/"
    assert "Not found" not in text(Viewer(Folder(finished / "deep/one")).answer("/study/", {}))
    with pytest.raises(StudyError, match="name that of a study"):
        Folder(finished / "nowhere")
    with pytest.raises(NotFound):
        Folder(finished).inside("../x")


def test_a_page_of_others_is_left_as_it_is():
    assert with_way_back("<p>x</p>", "/") == "<p>x</p>"


# --- without slowing anything ----------------------------------------------------------------------------------------


@pytest.fixture
def alone(monkeypatch):
    """No drawing of another test is waited for."""
    monkeypatch.setattr(view_cache, "_one_at_a_time", threading.Lock())


def test_what_takes_long_is_done_seldom(alone):
    """A making of 2 s is not repeated before 2 / SHARE s have passed, however often it is asked for."""
    now = [0.0]

    def make():
        now[0] += 2.0
        return now[0]

    of = BackgroundValue(make, clock=lambda: now[0])
    of.latest()
    until(lambda: of.number == 1)
    until(lambda: not of._making)
    now[0] = 2.0 + 2.0 / CPU_SHARE - 0.1
    of.latest()
    assert of.number == 1
    now[0] = 2.0 + 2.0 / CPU_SHARE
    assert of.latest() in (2.0, now[0])
    until(lambda: of.number == 2)


def test_what_cannot_be_made_says_why(alone):
    def make():
        raise StudyError("the disk is gone")

    of = BackgroundValue(make)
    of.latest()
    until(lambda: of.number == 1)
    assert (of.value, of.failed) == (None, "the disk is gone")


# --- over HTTP -------------------------------------------------------------------------------------------------------


def test_pages_over_http(served):
    with ask(served, "/") as answer:
        assert answer.status == 200
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
        assert b"deep/one" in answer.read()
    with ask(served, PAGES.asset_path("live.js")) as answer:
        assert "immutable" in answer.headers["Cache-Control"]
    with ask(served, "/study/deep%2Fone") as answer:
        assert answer.status == 200
    with ask(served, "/live/watch/deep/one") as answer:
        assert answer.readline() == b"event: changed\n"
        assert answer.headers["X-Accel-Buffering"] == "no"  # or proxies hold it back
        assert answer.headers["Cache-Control"] == "no-store, no-transform"


def test_a_page_elsewhere_that_gives_this_machine_a_name_reads_nothing(served):
    for host, status in (("evil.example", 403), (f"localhost:{served}", 200)):
        with ask(served, "/", Host=host) as answer:
            assert answer.status == status


def test_a_port_that_is_taken(served, half):
    with pytest.raises(BadParameter, match="--port 0"):
        Server(Viewer(Folder(half)), "127.0.0.1", served)


def test_a_leaderboard_that_was_played_is_shown_with_its_settings(tmp_path):
    """Two small settings, played: each is a study with its report, and the page of all of them is there as it is."""
    (tmp_path / "suite.toml").write_text(TINY)
    suite, out = Suite.load(tmp_path / "suite.toml"), tmp_path / "board"
    leaderboard.play(suite, out, Workers(jobs=1))
    page = write_page(suite, leaderboard.summarise(suite, out), out)
    viewer = Viewer(Folder(tmp_path))
    listed = text(viewer.answer("/", {}))
    assert 'href="/files/board/leaderboard.html">' in listed
    assert listed.count("Finished") == 2
    shown = viewer.answer("/files/board/leaderboard.html", {})
    assert text(shown) == with_way_back(page.read_text(), "/")
    assert "One problem" in text(shown)
    for setting in ("many", "one"):
        assert viewer.answer(f"/study/board/{setting}", {}).status == 200
