"""The laboratory's pages in a real Chromium: a list, a study that runs, and its report once it is done."""

import os
import time

import pytest

from budgetbandits.experiments import run
from budgetbandits.experiments.runner import Workers
from budgetbandits.report.page import write_report
from studies import small
from viewed import viewing

pytestmark = pytest.mark.browser


@pytest.fixture
def served(tmp_path):
    """A finished study, and one of which half is there."""
    run(small(name="done"), tmp_path / "done", Workers(jobs=1))
    study = run(small(name="half"), tmp_path / "more" / "half", Workers(jobs=1))
    left = sorted(study.parts.iterdir())[::2]
    kept = {path: path.read_bytes() for path in left}
    for path in left:
        path.unlink()
    with viewing(tmp_path) as base:
        yield base, kept, study.folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 412])
def test_the_pages_are_sound(served, watched, axe, width, scheme):
    base, _, _ = served
    browser = watched(base, width=width, scheme=scheme)
    page = browser.page
    for name, path in (("studies", "/"), ("watched", "/study/more/half"), ("nothing", "/study/nobody")):
        page.goto(base + path)
        if name == "watched":
            page.locator("svg.figure:visible").wait_for(timeout=60_000)
        browser.check(axe, name)
    browser.complaints = [each for each in browser.complaints if "404" not in each]
    browser.sound()


def test_a_study_that_is_watched_becomes_its_report(served, watched):
    base, kept, folder = served
    browser = watched(base)
    page = browser.page
    page.goto(base + "/study/more/half")
    assert "6 of 12" in page.inner_text(".stats")
    parts = list(kept.items())
    for path, content in parts[:-1]:
        path.write_bytes(content)
    browser.until(lambda: "11 of 12" in page.inner_text(".stats"))
    parts[-1][0].write_bytes(parts[-1][1])
    write_report(folder)
    page.wait_for_selector("text=How this was made", timeout=60_000)
    page.locator("a.brand").click()
    page.wait_for_selector("h1:has-text('Studies')")
    browser.sound()


def test_a_report_from_elsewhere_reads_and_sends_nothing(served, watched, tmp_path):
    base, _, _ = served
    report = tmp_path / "done" / "report.html"
    report.write_text(
        "<title>waits</title><script>fetch('/?format=json').then((a) => a.text()).then((t) => { document.title = t; })"
        ".catch((e) => { document.title = `fetch: ${e.name}, ${self.origin}`; });</script>"
    )
    os.utime(report, (time.time() + 9,) * 2)
    browser = watched(base)
    browser.page.goto(base + "/study/done")
    browser.until(lambda: browser.page.title() != "waits")
    assert browser.page.title() == "fetch: TypeError, null"


def test_our_own_report_works_closed_in(served, watched, tmp_path):
    base, _, _ = served
    write_report(tmp_path / "done")
    browser = watched(base)
    page = browser.page
    page.goto(base + "/study/done")
    button = page.locator(".keys button[data-policy]").first
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    page.locator("a.brand").click()
    page.wait_for_selector("h1:has-text('Studies')")
    browser.sound()


def test_a_lost_connection_is_dated_when_it_was_lost_in_the_zone_of_the_page(tmp_path, watched):
    """The browser is in Berlin, and the page says its times in this machine's zone."""
    with viewing(tmp_path) as base:
        page = watched(base).page
        page.goto(base)
        page.wait_for_selector("text=No study here yet")
        page.wait_for_timeout(1500)
        begun = int(time.time())
    ended = int(time.time())  # a stream ends with its next beat
    page.locator("[data-since]:visible").wait_for()
    said = page.inner_text("[data-since]")
    assert said in [time.strftime("%H:%M:%S", time.localtime(second)) for second in range(begun - 1, ended + 2)]
