"""A campaign from its first decision to its last, watched by somebody: the page agrees with the API at every stop."""

import time

import httpx
import pytest

from budgetbandits.client import Client
from budgetbandits.errors import HoldRefused
from servers import admin_key, free_port, serving

pytestmark = pytest.mark.browser


def spend(client, count):
    for _ in range(count):
        made = client.decide("story")
        made.settle(reward=1.0, cost=made.hold / 2)


def agrees(browser, client):
    """Wait until the page shows what the API says now."""
    info = client.campaign("story")
    said = [f"{info.spent:,.2f} of {info.budget:,.2f}", f"{info.held:,.2f}", f"{info.left:,.2f}"]
    browser.until(lambda: browser.page.locator(".stats dd:not(.caption)").all_inner_texts()[:3] == said)


def test_from_the_first_decision_to_the_last(tmp_path, watched):
    port = free_port()
    server, base = serving(tmp_path, port), f"http://127.0.0.1:{port}"
    try:
        key = admin_key(tmp_path)
        browser = watched(base)
        with Client(base, key) as client:
            client.create("story", budget=18.0, arms={"search": 1.0, "mail": 0.5})
            browser.sign_in(key)
            page = browser.page
            page.get_by_role("link", name="story").click()
            page.wait_for_selector("text=No decision yet")
            spend(client, 3)
            agrees(browser, client)
            pause_and_resume(page, client)
            page.get_by_role("link", name="Top up").click()
            page.get_by_label("Amount").fill("2")
            page.get_by_role("button", name="Top up 2.00").click()
            page.wait_for_selector("text=of 20.00")
            assert client.campaign("story").budget == 20.0
            agrees(browser, client)
            browser.sound()
            server = restarted(server, tmp_path, port, browser)
            with pytest.raises(HoldRefused, match="needed"):
                spend(client, 100)
            page.wait_for_selector(".alarm >> text=Exhausted")
            agrees(browser, client)
            assert page.locator(".events li").count() == 4
            browser.sound()
            assert client.verify("story") == []
    finally:
        server.terminate()
        server.wait(20)


def pause_and_resume(page, client):
    page.get_by_role("link", name="Pause").click()
    page.wait_for_selector("text=running → paused")
    page.get_by_role("button", name="Pause").click()
    page.wait_for_selector("h1 >> text=Paused")
    assert client.campaign("story").status == "paused"
    with pytest.raises(HoldRefused):
        spend(client, 1)
    page.get_by_role("link", name="Resume").first.click()  # there is another one beside the word Paused
    page.get_by_role("button", name="Resume").click()
    page.wait_for_selector("h1 >> text=Running")
    assert client.campaign("story").status == "active"


def restarted(server, folder, port, browser):
    """The page says that it is cut off, and recovers by itself, still signed in."""
    server.terminate()
    server.wait(20)
    browser.page.wait_for_selector("text=No connection since")
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"http://127.0.0.1:{port}/healthz")
    time.sleep(1.5)  # the page has tried in vain
    server = serving(folder, port)
    browser.page.wait_for_selector("#disconnected", state="hidden", timeout=20_000)
    assert browser.page.inner_text("#live-state") == "Live"
    browser.complaints = [
        each for each in browser.complaints if "ERR_CONNECTION" not in each and "ERR_INCOMPLETE" not in each
    ]
    return server
