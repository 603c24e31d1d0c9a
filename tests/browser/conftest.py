"""A real Chromium, Debian's, driven by Playwright; without either these tests are skipped with a reason."""

import os
import shutil
import time
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def chromium():
    sync_api = pytest.importorskip("playwright.sync_api", reason="no Playwright: run 'make browser'")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no Chromium: install Debian's package chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


class Watched:
    """A page, with whatever its console complained about and whichever other hosts it has asked."""

    def __init__(self, browser, base, width=1280, scheme="light", scripts=True, **more):
        self.base, self.width, self.scheme = base, width, scheme
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, timezone_id="Europe/Berlin",
            java_script_enabled=scripts, **more,
        )  # fmt: skip
        self.page = self.context.new_page()
        self.complaints, self.elsewhere = [], []
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda asked: None if asked.url.startswith(base) else self.elsewhere.append(asked.url))

    def sign_in(self, key):
        self.page.goto(self.base + "/")
        self.page.get_by_label("Key").fill(key)
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector("h1:has-text('Campaigns')")

    def until(self, true, seconds=10.0):
        """Wait until this is so; the page's policy lets nobody wait in the page itself by an expression."""
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, "this did not come true in time"
            self.page.wait_for_timeout(50)

    def check(self, axe, name):
        """Nothing serious is wrong for those who cannot see, and nothing is cut off; kept as a picture if asked for."""
        found = [
            each for each in axe.run(self.page).response["violations"] if each["impact"] in ("serious", "critical")
        ]
        assert not found, [(each["id"], [node["html"][:160] for node in each["nodes"][:3]]) for each in found]
        assert self.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, f"{name} is cut off"
        self.keep(name, self.page)

    def keep(self, name, page):
        """As a picture, if asked for."""
        if "BUDGETBANDITS_SCREENS" in os.environ:
            folder = Path(os.environ["BUDGETBANDITS_SCREENS"])
            folder.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=folder / f"{name}-{self.width}-{self.scheme}.png", full_page=True)

    def sound(self):
        assert self.complaints == []
        assert self.elsewhere == []


@pytest.fixture(scope="session")
def axe():
    return pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe: run 'make browser'").Axe()


@pytest.fixture
def watched(chromium):
    made = []

    def make(*given, **more):
        made.append(Watched(chromium, *given, **more))
        return made[-1]

    yield make
    for each in made:
        each.context.close()
