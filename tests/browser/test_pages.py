"""Every state of every page, wide and narrow, light and dark: accessible, nothing from elsewhere, nothing cut off.

With BUDGETBANDITS_SCREENS=FOLDER each is kept as a picture.
"""

import contextlib
import random
import re
import time

import pytest

from budgetbandits.errors import HoldRefused
from budgetbandits.service.http.auth import make_key
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore
from clock import Clock
from servers import admin_key, running

pytestmark = pytest.mark.browser
TIME = re.compile(r"\d\d:\d\d(:\d\d)?")
CAPS = {"cedar-70b": 1.2, "atlas-mini": 1.2, "a model with a rather long name": 0.6}

PAGES = {
    "overview": "/", "filtered": "/?q=nothing", "tagged": "/?tag=team+a",
    "running": "/campaigns/running", "day": "/campaigns/running?range=day",
    "frozen": "/campaigns/frozen", "exhausted": "/campaigns/exhausted", "paused": "/campaigns/paused",
    "silent": "/campaigns/silent", "fresh": "/campaigns/fresh", "closed": "/campaigns/closed",
    "blocked": "/campaigns/blocked", "nearly": "/campaigns/nearly", "routed": "/campaigns/routed",
    "top-up": "/campaigns/running/top-up?amount=40", "retire": "/campaigns/running/retire-arm?arm=atlas-mini",
    "terms": "/campaigns/running/change-terms?daily_cap=30&pace_seconds=9&hold_seconds=60&on_expire=release",
    "bring-back": "/campaigns/paused/bring-back-arm?arm=atlas-mini",
    "new": "/new", "keys": "/keys", "not-found": "/campaigns/nobody",
    "featured": "/campaigns/featured", "request": "/campaigns/featured/request?feature-0=7.5&segment=code",
    "overran": "/campaigns/overran", "tail": "/campaigns/routed?segment=code",
    "events": "/campaigns/running/events", "refused": "/campaigns/paused/pause",
    "no-such-arm": "/campaigns/running/retire-arm?arm=nobody", "make-key": "/keys/make?read=1",
    "connect": "/campaigns/featured/connect", "found": "/campaigns/routed/decisions?q=user=u-1",
    "nothing-found": "/campaigns/routed/decisions?q=nobody", "decision": "/campaigns/routed/decisions?q=7",
    "decision-held": "/campaigns/running/decisions?q=open", "sorted": "/campaigns/routed?sort=-price",
    "webhooks": "/webhooks", "add-webhook": "/webhooks/add?url=https://example.com/budget",
}  # fmt: skip

STATES = {
    "overview": [
        *("Frozen", "Exhausted", "Blocked by holds", "Overran", "Nearly exhausted", "No feedback", "Running"),
        *("Paused", "Closed"),
    ]
}
"""What a page must show, or its picture would be of less than all states."""

IN_DARK = (
    "overran", "make-key", "overview", "running", "frozen", "exhausted", "blocked", "routed", "top-up", "terms", "new",
    "keys", "featured", "request", "connect", "found", "decision", "webhooks",
)  # fmt: skip
"""The others have the colours of these."""


def spend(store, engine, clock, name, count, rng, hours):
    """So many decisions in the hours before now, told a little later, in one transaction."""
    from budgetbandits.service.feedback import FeedbackReport

    end = clock.now

    def work(tx):
        for number in range(count):
            clock.now = end - hours * 3600 * (1 - number / count)
            try:
                [made] = engine.decision_task(name, f"{name} {number}").work(tx)
            except HoldRefused:  # ahead of its pace, or exhausted
                continue
            clock.now += rng.choice([2.0, 30.0])
            outcome = FeedbackReport(
                made.decision, float(rng.random() < 0.6), round(rng.uniform(0.2, 0.6) * made.hold, 6)
            )
            engine.feedback_task(outcome, name).work(tx)

    store.write(work)
    clock.now = end


def route(engine, clock, rng):
    """Requests of three segments with a budget for all of them, and an answer that fails twice."""
    engine.create("routed", "bts-paced", 60.0, CAPS, horizon=250, hold_seconds=1e6, actor="bb_tester")
    for number in range(60):
        clock.now += 5.0
        note = {"user": f"u-{number % 5}"}
        segment, arms = rng.choice(["code", "chat", "search"]), [[*CAPS][number % 3]] if number < 6 else None
        made = engine.decide("routed", key=f"{number}", segment=segment, arms=arms, metadata=note)
        failed = number in (45, 50)
        cost = None if failed else round(rng.uniform(0.2, 0.6) * made.hold, 6)
        reward = None if failed else float(rng.random() < 0.6)
        engine.feedback(made.decision, reward=reward, cost=cost, failed=failed)


def route_by_features(engine, clock, rng):
    """Requests with a number that moves prices, one that moves nothing, and one that has not varied yet."""
    names = ["length of the prompt in tokens", "hour", "language"]
    engine.create("featured", "bts-linear", 60.0, CAPS, horizon=250, features=names, hold_seconds=1e6)
    for number in range(60):
        clock.now += 5.0
        length = rng.uniform(4.0, 8.0)
        given = dict(zip(names, (length, rng.randrange(24), 1), strict=True))
        made = engine.decide("featured", key=f"{number}", segment=rng.choice(["code", "chat"]), features=given)
        engine.feedback(made.decision, reward=float(rng.random() < 0.6), cost=round(length / 10 * made.hold, 6))


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("states")
    clock, rng = Clock(time.time()), random.Random(1)
    now = clock.now
    with SQLiteStore(folder / "budgetbandits.db") as store:
        engine, key = DecisionService(store, clock), make_key(store, ["admin"], now)
        for name, hours, count, budget in [
            ("running", 100, 300, 200.0), ("frozen", 20, 60, 60.0), ("exhausted", 30, 400, 40.0),
            ("paused", 10, 40, 50.0), ("silent", 5, 30, 50.0), ("fresh", 0, 0, 20.0), ("closed", 9, 20, 20.0),
            ("blocked", 3, 8, 6.0), ("nearly", 30, 12, 8.0), ("overran", 20, 60, 60.0),
        ]:  # fmt: skip
            clock.now = now - hours * 3600 - 10
            pace, currency = 3.6e5 if name == "running" else None, "EUR" if name == "exhausted" else None
            tags = {
                "running": ("search", "team a"),
                "fresh": ("team a",),
                "frozen": ("a team with a rather long name",),
            }
            terms = {"hold_seconds": 1e6, "pace_seconds": pace, "currency": currency, "tags": tags.get(name)}
            engine.create(name, "bts", budget, CAPS, actor="bb_tester", **terms)
            if name == "running":  # its plan bends
                clock.now = now - 50 * 3600
                engine.change_terms(name, {"pace_seconds": 6e5}, actor="bb_tester")
            clock.now = now - 3 * 3600 if name == "silent" else now
            spend(store, engine, clock, name, count, rng, hours - 4 if name == "silent" else hours)
        clock.now = now - 2 * 3600
        engine.decide("silent", key="nobody tells")
        clock.now = now - 600
        for name in ("frozen", "overran"):
            made = engine.decide(name, key="too dear")
            engine.feedback(made.decision, cost=made.hold + 0.8, reward=1.0)
        engine.set_status("overran", "active", actor="bb_tester")
        engine.decide("silent", key="open")
        with contextlib.suppress(HoldRefused):
            for number in range(20):
                engine.decide("blocked", key=f"open {number}")
        while engine.account("nearly").left >= 1_200_000:
            made = engine.decide("nearly", key=f"left {engine.account('nearly').left}")
            engine.feedback(made.decision, cost=0.3, reward=1.0)
        engine.decide("running", key="open")
        route(engine, clock, rng)
        route_by_features(engine, clock, rng)
        clock.now = now
        engine.change_terms("running", {"daily_cap": 50.0}, actor="bb_tester")
        engine.retire_arm("paused", "atlas-mini", actor="bb_tester")
        for name, status in (("paused", "paused"), ("closed", "closed")):
            engine.set_status(name, status, actor="bb_tester")
        roll_up(store)  # or the first pictures would be of the first seconds of a server
    with running(folder) as (base, _):
        yield base, key


@pytest.fixture
def browser(served, watched):
    """Signed in, with the list of campaigns."""
    base, key = served
    browser = watched(base)
    browser.sign_in(key)
    return browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 412])
def test_every_page_is_sound(served, watched, axe, width, scheme):
    base, key = served
    browser = watched(base, width=width, scheme=scheme)
    browser.page.goto(base)
    check(browser, axe, "sign-in")
    browser.sign_in(key)
    for name, path in PAGES.items():
        if scheme == "dark" and name not in IN_DARK:
            continue
        browser.page.goto(base + path)
        for state in STATES.get(name, ()):
            assert browser.page.get_by_text(state, exact=True).count()
        check(browser, axe, name)
        if name == "not-found":
            browser.complaints = [each for each in browser.complaints if "404" not in each]
    browser.sound()


ROOM_BESIDE_NAMES = """() => [...document.querySelectorAll(".wide .chart rect.swatch")].map((swatch) => {
  const name = swatch.nextElementSibling.getBBox(), share = swatch.nextElementSibling.nextElementSibling.getBBox();
  return name.x + name.width <= share.x;
})"""


def test_nothing_is_cut_off_however_long_names_and_amounts_are(tmp_path, watched, axe):
    name = "N" * 200
    with SQLiteStore(tmp_path / "budgetbandits.db") as store:
        engine, key = DecisionService(store), make_key(store, ["admin"], time.time(), actor="bb_tester")
        arms = ["A" * 200, "検索広告の費用" * 20, "Wm" * 50]
        engine.create(name, "bts-paced", 4e11, dict.fromkeys(arms, 1e9), currency="x" * 200, actor="bb_tester")
        for number in range(6):
            made = engine.decide(name, key=f"{number}", segment="S" * 200, arms=[arms[number % 3]])
            engine.feedback(made.decision, cost=123_456_789.123456, reward=1.0)
        make_key(store, ["read"], time.time(), name, actor="bb_tester")
        roll_up(store)
    here = f"/campaigns/{name}"
    paths = ("/", here, f"{here}?arm={'A' * 200}", "/keys", f"{here}/events", f"{here}/top-up?amount=7",
             f"{here}/retire-arm?arm={'A' * 200}")  # fmt: skip
    with running(tmp_path) as (base, _):
        for width in (1280, 412):
            browser = watched(base, width=width)
            browser.sign_in(key)
            for place, path in enumerate(paths):
                browser.page.goto(base + path)
                check(browser, axe, f"long-{place}")
                if path == here and width == 1280:
                    assert browser.page.evaluate(ROOM_BESIDE_NAMES) == [True] * 6  # three arms in two charts
                if path == "/keys":
                    lines = "each => each.getClientRects().length"
                    assert browser.page.locator("td, th").locator("code").first.evaluate(lines) == 1
            browser.sound()


def test_terms_are_changed_and_an_arm_comes_back(browser):
    base, page = browser.base, browser.page
    page.goto(base + "/campaigns/running/change-terms")
    page.get_by_label("Daily cap").fill("60")
    page.wait_for_selector("text=50.00 → 60.00")
    page.get_by_role("button", name="Change the terms").click()
    page.wait_for_selector("text=daily cap 50.00 → 60.00")
    page.goto(base + "/campaigns/silent/retire-arm?arm=atlas-mini")
    page.get_by_role("button", name="Retire atlas-mini").click()
    page.get_by_role("link", name="Bring back").click()
    page.get_by_role("button", name="Bring back atlas-mini").click()
    page.wait_for_selector("text=Brought back arm atlas-mini")
    browser.sound()


def check(browser, axe, name):
    page = browser.page
    page.wait_for_load_state("load")
    page.wait_for_timeout(150)
    browser.check(axe, name)


def test_a_list_can_be_filtered_by_keyboard_alone(browser):
    page = browser.page
    # pressed again if the page's script was not there yet
    browser.until(lambda: page.evaluate("document.activeElement.id") == "q" or page.keyboard.press("/"))
    page.keyboard.type("froz")
    browser.until(lambda: page.locator("a.name").count() == 1)
    assert page.evaluate("document.activeElement.id") == "q"
    assert "q=froz" in page.url
    page.get_by_role("link", name="frozen").press("Enter")
    page.wait_for_selector("text=Frozen by an overrun")
    assert "CET" in page.inner_text("footer")
    browser.sound()


def test_arms_are_sorted_by_their_heads_and_on_a_phone_by_words(served, watched):
    base, key = served
    orders = []
    for width in (1280, 412):
        browser = watched(base, width=width)
        browser.sign_in(key)
        page = browser.page
        page.goto(base + "/campaigns/routed")
        names = page.locator("table.arms tbody th .name")
        if width == 1280:
            head = page.get_by_role("columnheader", name="Price")
            head.get_by_role("link").click()
            browser.until(lambda head=head: head.get_attribute("aria-sort") == "ascending")
            up = names.all_inner_texts()
            head.get_by_role("link").press("Enter")
            browser.until(lambda head=head: head.get_attribute("aria-sort") == "descending")
            assert names.all_inner_texts() == up[::-1]
            head.get_by_role("link").click()
            browser.until(lambda head=head: head.get_attribute("aria-sort") == "ascending")
        else:
            page.get_by_role("navigation", name="Sort arms by").get_by_role("link", name="Price").click()
            page.wait_for_selector(".sorts [aria-current]:has-text('Price')")
        orders.append(names.all_inner_texts())
        browser.sound()
    assert orders[0] == orders[1]
    assert len(orders[0]) == 3


@pytest.mark.parametrize("width", [1280, 412])
def test_a_chart_says_its_values_under_the_pointer_and_by_keys(served, watched, axe, width):
    base, key = served
    browser = watched(base, width=width)
    browser.sign_in(key)
    page = browser.page
    page.goto(base + "/campaigns/routed")
    for id, words in [("money", "spent"), ("requests", "requests: "), ("price", ": "), ("share-spend", "%")]:
        figure = page.locator(f"#plot-{id}")
        said = figure.locator(".readout")
        assert said.inner_text() == ""
        page.evaluate(f"document.getElementById('plot-{id}').scrollIntoView({{block: 'center'}})")  # news replace it
        box = figure.locator("svg:visible").bounding_box()
        page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + box["height"] / 2)
        browser.until(lambda said=said, words=words: words in said.inner_text())
        first = said.inner_text()
        assert figure.locator("svg:visible .pointer").count() == 1
        page.evaluate("draw()")  # as when there is news
        page.wait_for_timeout(300)
        assert TIME.sub("", said.inner_text()) == TIME.sub("", first)  # an axis that ends now has moved on
        page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + box["height"] / 2)
        assert said.inner_text() != first
        page.mouse.move(1, 1)
        browser.until(lambda said=said: said.inner_text() == "")
        figure.focus()
        page.keyboard.press("End")
        last = said.inner_text()
        page.keyboard.press("ArrowLeft")
        assert said.inner_text() not in ("", last)
        page.evaluate("draw()")
        page.wait_for_timeout(300)
        assert page.evaluate("document.activeElement.id") == f"plot-{id}"
        page.keyboard.press("Home")
        assert said.inner_text() != last
        if id == "requests":
            browser.check(axe, "pointed")
        page.evaluate("document.activeElement.blur()")
    browser.sound()


@pytest.mark.parametrize("width", [1280, 412])
def test_a_decision_is_found_and_its_texts_are_copied(served, watched, width):
    base, key = served
    browser = watched(base, width=width)
    browser.context.grant_permissions(["clipboard-read", "clipboard-write"])
    browser.sign_in(key)
    page = browser.page
    page.goto(base + "/campaigns/routed")
    field = page.get_by_role("searchbox", name="Find a decision by id, key or metadata")
    field.fill("user=u-3")
    field.press("Enter")
    page.wait_for_selector("h1:has-text('Decisions of routed')")
    assert page.locator("table.decisions tbody tr").count() == 12
    page.locator("table.decisions tbody a").first.click()
    page.wait_for_selector("h2:has-text('Life')")
    id = page.url.rpartition("/")[2]
    page.get_by_role("button", name="Copy the id").click()
    page.wait_for_selector("button:has-text('Copied')")
    assert page.evaluate("navigator.clipboard.readText()") == id
    page.get_by_role("link", name="find others with user u-3").click()
    page.wait_for_selector("h1:has-text('Decisions of routed')")
    page.goto(base + "/campaigns/routed/connect")
    page.get_by_role("button", name="Copy the lines for Python").click()
    page.wait_for_selector("button:has-text('Copied')")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert f'Client("{base}", ' in copied
    assert 'client.decide("routed")' in copied
    browser.sound()


def test_forms_say_what_will_happen_while_they_are_filled_in(browser):
    base, page = browser.base, browser.page
    page.goto(base + "/campaigns/running/top-up")
    page.get_by_label("Amount").fill("1000")
    page.wait_for_selector("text=200.00 → 1,200.00")
    assert page.get_by_role("button", name="Top up 1,000.00").is_visible()
    page.goto(base + "/new")
    page.get_by_label("Name").fill("made here")
    page.get_by_label("Budget", exact=True).fill("90")
    page.get_by_label("Arms and their caps").fill("a = 2\nb = 3")
    page.wait_for_selector("text=30 at least")
    page.get_by_role("button", name="Create the campaign").click()
    page.wait_for_selector("h1:has-text('made here')")
    browser.sound()


@pytest.mark.parametrize("width", [1280, 412])
def test_a_form_has_a_button_at_all_times_and_says_what_is_wrong_next_to_the_field(served, watched, axe, width):
    """Not while somebody types: once they have left the field, or want to go on."""
    base, key = served
    browser = watched(base, width=width)
    browser.sign_in(key)
    page = browser.page
    page.goto(base + "/new")
    go_on, arms, budget = page.get_by_role("button", name="Continue"), page.locator("#arms"), page.locator("#budget")
    assert go_on.is_visible()
    go_on.click()  # of an empty form
    browser.until(lambda: page.locator("#name-wrong").is_visible())
    browser.until(lambda: page.evaluate("document.activeElement.id") == "name")
    page.goto(base + "/new")
    budget.press_sequentially("1,50")
    page.wait_for_timeout(600)  # longer than a check takes to come
    assert page.locator(".wrong:visible").count() == 0
    assert go_on.is_visible()
    budget.blur()
    browser.until(lambda: page.locator(".wrong:visible").all_inner_texts() == [
        "Budget is '1,50'; type a number such as 1500 or 1,500.25."])  # fmt: skip
    assert budget.get_attribute("aria-invalid") == "true"
    below = page.locator("#budget-wrong").bounding_box()["y"] - budget.bounding_box()["y"]
    assert 0 < below < 80
    browser.check(axe, "wrong-field")
    budget.fill("90")  # which unsays it at once
    assert page.locator(".wrong:visible").count() == 0
    page.get_by_label("Name").fill("another")
    arms.fill("a = 2")
    page.wait_for_timeout(600)
    box = go_on.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 4)
    page.mouse.down()  # which leaves the field: what is wrong with it must not move the button away
    page.wait_for_timeout(300)
    assert go_on.bounding_box() == box
    page.mouse.up()
    browser.until(lambda: "at least two arms" in page.locator("#arms-wrong").inner_text())
    browser.until(lambda: page.evaluate("document.activeElement.id") == "arms")
    arms.fill("a = 2\nb = 3")
    page.wait_for_selector("button:has-text('Create the campaign with 90.00')")
    assert go_on.is_hidden()
    arms.fill("a = 2\nb = 3\nc")
    browser.until(lambda: go_on.is_visible())
    browser.sound()


def held_back(page, wanted):
    """Checks whose form ends with this wait until they are let go; others pass."""
    held = []

    def perhaps(route):
        if route.request.headers.get("x-part") in ("check", "submit") and (route.request.post_data or "").endswith(
            wanted
        ):
            held.append(route)
        else:
            route.continue_()

    page.route("**/*", perhaps)
    return held


def test_what_is_on_the_button_is_what_is_booked_however_late_checks_come(browser):
    """An earlier check is answered last; and what was typed after it is not what its button stands for."""
    base, page = browser.base, browser.page
    page.goto(base + "/campaigns/fresh/top-up")
    held = held_back(page, "amount=10")
    field = page.get_by_label("Amount")
    assert page.get_by_role("button", name="Continue").is_visible()
    field.fill("10")
    browser.until(lambda: held)
    field.fill("1000")
    page.wait_for_selector("button:has-text('Top up 1,000.00')")
    for route in held:
        route.continue_()
    page.wait_for_timeout(200)
    assert page.locator("#checked button").all_inner_texts() == ["Top up 1,000.00"]
    page.unroute_all(behavior="ignoreErrors")
    held = held_back(page, "amount=7")
    field.fill("7")  # the button is off at once, though nothing has been answered
    assert page.locator("#checked button").is_disabled()
    assert page.locator("#checked button").inner_text() == "Checking …"
    field.press("Enter")  # which books nothing
    browser.until(lambda: len(held) >= 1)
    page.wait_for_timeout(300)
    page.unroute_all(behavior="ignoreErrors")
    field.fill("8")
    field.press("Enter")
    page.wait_for_selector("button:has-text('Top up 8.00')")
    browser.until(lambda: page.evaluate("document.activeElement.textContent") == "Top up 8.00")
    assert page.url.endswith("/top-up")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=of 28.00")
    browser.complaints = [each for each in browser.complaints if "ERR_FAILED" not in each]
    browser.sound()


def test_a_check_that_fails_says_so_and_the_form_goes_on_without_it(browser, axe):
    base, page = browser.base, browser.page
    page.goto(base + "/campaigns/nearly/top-up")
    page.get_by_label("Amount").fill("3")
    page.wait_for_selector("button:has-text('Top up 3.00')")
    page.route("**/*", lambda route: route.fulfill(status=431, body="too large"))
    page.get_by_label("Amount").fill("4")
    page.wait_for_selector("text=This could not be checked: the server has answered 431.")
    assert page.locator("#checked button").count() == 0
    page.unroute_all(behavior="ignoreErrors")
    page.get_by_role("button", name="Continue").click()
    page.wait_for_selector("text=8.0000 → 12.0000")
    assert page.get_by_label("Amount").count() == 0
    browser.check(axe, "confirm")
    page.get_by_role("button", name="Top up 4.00").click()
    page.wait_for_selector("text=of 12.00")
    browser.complaints = [each for each in browser.complaints if "431" not in each]
    browser.sound()


def test_a_campaign_of_thousands_of_arms_is_checked(browser):
    base, page = browser.base, browser.page
    page.goto(base + "/new")
    page.get_by_label("Name").fill("large")
    page.get_by_label("Budget", exact=True).fill("9000")
    paste = "(field, text) => { field.value = text; field.dispatchEvent(new Event('input', { bubbles: true })); }"
    arms = "\n".join(f"arm number {place} = 1.5" for place in range(2000))
    page.get_by_label("Arms and their caps").evaluate(paste, arms)  # to fill it in takes half a minute
    page.wait_for_selector("text=9,000.00 for 2,000 arms")
    page.get_by_role("button", name="Create the campaign with 9,000.00").click()
    page.wait_for_selector("h1:has-text('large')")
    browser.sound()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 412])
def test_without_scripts_a_form_leads_to_its_confirmation(served, watched, width, scheme):
    base, key = served
    browser = watched(base, width=width, scheme=scheme, scripts=False)
    browser.sign_in(key)
    page = browser.page
    page.goto(base + "/campaigns/fresh/top-up")
    browser.keep("form-no-scripts", page)
    page.get_by_label("Amount").fill("25.5")
    page.get_by_role("button", name="Continue").click()
    assert page.get_by_role("button", name="Top up 25.50").is_visible()
    browser.keep("confirm-top-up", page)
    page.get_by_role("button", name="Back to the form").click()
    assert page.get_by_label("Amount").input_value() == "25.5"
    page.goto(base + "/campaigns/running/close")
    browser.keep("confirm-close", page)
    page.goto(base + "/new")
    page.get_by_label("Name").fill(f"no scripts {width} {scheme}")
    page.get_by_label("Budget", exact=True).fill("90")
    page.get_by_label("Arms and their caps").fill("a = 2")
    page.get_by_role("button", name="Continue").click()
    assert "at least two arms" in page.inner_text("#arms-wrong")
    assert page.locator(".wrong:visible").count() == 1
    browser.keep("wrong-no-scripts", page)
    page.get_by_label("Arms and their caps").fill("a = 2\nb = 3")
    page.get_by_role("button", name="Continue").click()
    assert "90.00 for 2 arms" in page.inner_text("main")
    browser.keep("confirm-new", page)
    page.get_by_role("button", name="Create the campaign with 90.00").click()
    assert f"no scripts {width} {scheme}" in page.inner_text("h1")
    browser.complaints = [each for each in browser.complaints if "422" not in each]
    browser.sound()


FULL = "from budgetbandits.service.dashboard import pages\npages.STREAMS_MAX = 1\n"


def test_a_page_too_many_says_that_it_is_not_live_and_tries_again(tmp_path, watched):
    with running(tmp_path, first=FULL) as (base, _):
        key = admin_key(tmp_path)
        first, second = watched(base), watched(base)
        first.sign_in(key)
        first.until(lambda: first.page.inner_text("#live-state") == "Live")
        second.sign_in(key)
        second.page.wait_for_selector("text=Too many pages are open")
        assert second.page.inner_text("#live-state") == "Delayed"
        assert second.page.locator("#disconnected").is_hidden()
        second.keep("not-live", second.page)
        first.page.goto("about:blank")

        def told():
            second.page.get_by_role("button", name="Update now").click()
            second.page.wait_for_timeout(300)
            return second.page.locator("#not-live").is_hidden()

        second.until(told)
        assert second.page.inner_text("#live-state") == "Live"
        second.sound()


BREAKABLE = """
import pathlib
from budgetbandits.errors import StoreError
from budgetbandits.service.stores.sqlite import SQLiteStore
read = SQLiteStore.read
def perhaps(self, *given, **more):
    if pathlib.Path("broken").exists():
        raise StoreError("cannot read: the disk is gone")
    return read(self, *given, **more)
SQLiteStore.read = perhaps
"""
"""A store that cannot be read while there is a file called broken."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_without_numbers_or_a_server_say_what_to_do(tmp_path, watched, axe, scheme):
    """An empty store, a wrong key, a store that is gone, and a server that is: each says what it means and what to do,
    and the page goes on by itself when there is something to show."""
    with running(tmp_path, first=BREAKABLE) as (base, server):
        key = admin_key(tmp_path)
        both = [watched(base, width=width, scheme=scheme) for width in (1280, 412)]
        for browser in both:
            browser.page.goto(base)
            browser.page.get_by_label("Key").fill("bb_wrong")
            browser.page.keyboard.press("Enter")
            browser.page.wait_for_selector("text=No such key")
            browser.check(axe, "wrong-key")
            browser.sign_in(key)
            browser.check(axe, "empty")
        for browser in both:
            browser.page.goto(base + "/new")
            browser.page.get_by_label("Name").fill(f"ads {browser.width}")
            browser.page.get_by_label("Budget", exact=True).fill("90")
            browser.page.get_by_label("Arms and their caps").fill("search = 2\nsocial = 3")
            browser.page.get_by_role("button", name="Create the campaign").click()
            browser.page.wait_for_selector("text=No decision yet")
        (tmp_path / "broken").touch()
        for browser in both:
            browser.page.wait_for_selector("text=The store cannot be read")
            assert browser.page.inner_text("#live-state") == "Not live"
            browser.check(axe, "store-error")
            other = browser.context.new_page()
            other.goto(base + "/?order=name")
            other.wait_for_selector("text=The store cannot be used")
            assert other.get_by_role("link", name="Try again").get_attribute("href") == "/"
            browser.keep("store-gone", other)
            other.close()
        (tmp_path / "broken").unlink()
        for browser in both:
            browser.page.locator("#store-error [data-try]").dispatch_event("click")  # it may have gone on by itself
            browser.page.wait_for_selector("#store-error", state="hidden")
        server.terminate()
        server.wait(20)
        for browser in both:
            browser.page.wait_for_selector("text=No connection since")
            browser.check(axe, "disconnected")
            expected = ("401", "503", "ERR_CONNECTION", "ERR_INCOMPLETE")
            browser.complaints = [each for each in browser.complaints if not any(word in each for word in expected)]
            browser.sound()


def test_a_page_says_that_it_waits(browser):
    """What is asked for and does not come soon: the old numbers stay, and it says so."""
    page = browser.page
    held = []
    page.route(lambda address: "q=froz" in address, lambda route: held.append(route))
    # pressed again if the page's script was not there yet
    browser.until(lambda: page.evaluate("document.activeElement.id") == "q" or page.keyboard.press("/"))
    page.keyboard.type("froz")
    page.wait_for_selector("#live-state >> text=Loading")
    assert page.locator("#live").get_attribute("aria-busy") == "true"
    browser.until(lambda: held)
    for route in held:
        route.continue_()
    page.unroute_all(behavior="ignoreErrors")
    browser.until(lambda: page.locator("a.name").count() == 1)
    page.wait_for_selector("#live-state >> text=Live")
    browser.sound()


def test_who_has_a_page_open_is_signed_out_when_the_key_is_dropped(served, watched):
    base, key = served
    admin, guest = watched(base), watched(base)
    admin.sign_in(key)
    admin.page.goto(base + "/keys/make")
    admin.page.get_by_label("read").check()
    admin.page.wait_for_selector("text=all campaigns, those to come too")
    admin.page.get_by_role("button", name="Make the key").click()
    text = admin.page.locator("code.key-text").inner_text()
    guest.sign_in(text)
    guest.page.wait_for_selector("#live-state >> text=Live")
    admin.page.goto(f"{base}/keys/drop?key={text.split('_')[1]}")
    admin.page.get_by_role("button", name="Drop bb_").click()
    admin.page.wait_for_selector(f"text=Dropped bb_{text.split('_')[1]}")
    guest.page.wait_for_selector("text=You are signed out.", timeout=20_000)
    prefix = text.split("_")[1]
    why = f"The key bb_{prefix} that you had signed in with was dropped, is off or has expired; sign in with another."
    assert why in guest.page.inner_text("#signed-out")
    assert guest.page.inner_text("#live-state") == "Signed out"
    guest.keep("signed-out", guest.page)
    guest.page.get_by_role("link", name="Sign in").click()
    guest.page.wait_for_selector("h1:has-text('Sign in')")
    assert guest.page.inner_text(".notice") == why
    guest.keep("sign-in-dropped", guest.page)
    guest.complaints = [each for each in guest.complaints if "401" not in each]
    admin.sound()
    guest.sound()
