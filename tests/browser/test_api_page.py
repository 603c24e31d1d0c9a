"""The page of the HTTP API in a real Chromium: on a phone, in the dark, without a key and without scripts."""

import pytest

from servers import running

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    with running(tmp_path_factory.mktemp("server")) as (address, _):
        yield address


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (412, "dark")])
def test_the_page_is_sound_with_everything_opened(base, watched, axe, width, scheme):
    browser = watched(base, width=width, scheme=scheme)
    browser.page.goto(f"{base}/docs")
    browser.check(axe, "docs")
    browser.page.evaluate("() => document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    browser.check(axe, "docs-open")
    browser.sound()


def test_without_scripts_an_operation_opens_and_leads_to_its_type(base, watched):
    browser = watched(base, scripts=False)
    browser.page.goto(f"{base}/docs")
    browser.page.get_by_text("decide", exact=True).first.click()
    browser.page.locator("details#decide").get_by_role("link", name="DecisionRequest").click()
    assert browser.page.url == f"{base}/docs#DecisionRequest"
    browser.sound()
