"""Promises of confirmations: terms to the last digit, when decisions are made again, and what is spendable by now."""

import html
import re
import time

import pytest

from budgetbandits.errors import HoldRefused
from budgetbandits.service import ledger
from budgetbandits.service.ledger import Account, Limits
from budgetbandits.service.stores.contract import Transaction
from served import served

NOON = time.time() // 86_400 * 86_400 + 43_200.0


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store and a service on it, both by one clock; every test makes a campaign of its own."""
    folder = tmp_path_factory.mktemp("promises")
    with pytest.MonkeyPatch.context() as patched, served(folder, NOON) as store:
        patched.setattr(Transaction, "now", lambda _: store.clock.now)
        yield store


def said(page):
    """What a confirmation says, by its labels."""
    lines = re.findall(r"<div><dt>(.*?)</dt><dd>(.*?)</dd></div>", page)
    return {label: html.unescape(re.sub("<.*?>", "", words)) for label, words in lines}


# --- to the last digit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("term", "typed", "booked", "words"),
    [
        ("hold_seconds", "1.9", 114.0, "wait for feedback 1 min → 1 min 54 s"),
        ("hold_seconds", "0.001", 0.06, "wait for feedback 1 min → 0.06 s"),
        ("pace_seconds", "100.9", 8_717_760.0, "spread over 100 d → 100 d 21 h 36 min"),
        ("pace_seconds", "100.0000001", 8_640_000.00864, "spread over 100 d → 100 d 0.00864 s"),
        ("pace_seconds", "0.7", 60_480.0, "spread over 100 d → 16 h 48 min"),
        ("horizon", "100.4", 100.4, "requests expected 100 → 100.4"),
        ("horizon", "1,234,567", 1_234_567.0, "requests expected 100 → 1,234,567"),
        ("propensity_draws", "120", 120.0, "draws for propensities none → 120"),
        ("daily_cap", "12.0000001", 12.000001, "daily cap none → 12.000001"),
    ],
)
def test_a_change_of_terms_says_what_is_booked(store, admin, term, typed, booked, words):
    name = f"{term} {typed}"
    store.engine.create(name, "bts-paced", 100.0, {"x": 1.0, "y": 0.5}, hold_seconds=60.0, horizon=100,
                        pace_seconds=100 * 86_400.0)  # fmt: skip
    path = f"/campaigns/{name}/change-terms"
    shown = said(admin.check(path, {term: typed}).text)
    assert words in [f"{label.lower()} {change}" for label, change in shown.items()]
    assert admin.confirm(path, {term: typed}).status_code == 303
    assert getattr(store.engine.describe(name), term) == booked
    [event] = [each for each in admin("GET", f"/campaigns/{name}/events?format=json").json()["events"]
               if each["kind"] == "terms changed"]  # fmt: skip
    assert event["changed"] == words


def test_a_new_campaign_says_what_is_booked(admin):
    form = {"name": "new", "policy": "bts-paced", "budget": "100", "arms": "a = 1\nb = 2", "reward_max": "12345.678",
            "horizon": "1.5", "hold_seconds": "1.9", "pace_seconds": "100.9", "daily_cap": "12.0000001"}  # fmt: skip
    shown = said(admin.check("/new", form).text)
    assert shown["Largest reward"] == "12,345.678"
    assert shown["Requests expected"].startswith("1.5, ")
    assert (shown["Wait for feedback"], shown["Without feedback"]) == ("1 min 54 s", "charged")
    assert shown["Spread over"].startswith("100 d 21 h 36 min, about 0.99 a day")
    assert shown["Daily cap"] == "12.000001"


def test_a_small_top_up_is_seen_in_the_plan(store, admin):
    store.engine.create("slow", "bts", 100.0, {"x": 1.0, "y": 0.5}, pace_seconds=100 * 86_400.0)
    assert said(admin.check("/campaigns/slow/top-up", {"amount": "0.01"}).text)["Plan"] == (
        "1.000000 a day → 1.000100 a day, at once"
    )


# --- when decisions are made again ------------------------------------------------------------------------------------


def after_resuming(store, admin, name):
    store.engine.set_status(name, "paused")
    words = said(admin("GET", f"/campaigns/{name}/resume").text)["Decisions"]
    store.engine.set_status(name, "active")
    return words


@pytest.mark.parametrize("limit", [{"daily_cap": 10.5}, {"pace_seconds": 864_000.0}])
def test_an_arm_cooling_down_is_not_waited_for(store, admin, limit):
    engine, name = store.engine, f"rests {next(iter(limit))}"
    engine.create(name, "bts", 100.0, {"dear": 10.0, "cheap": 1.0}, **limit)
    engine.feedback(engine.decide(name, "paid", arms=["cheap"]).decision, cost=0.9, reward=1.0)
    assert re.match("none for .*; only requests for cheaper arms", after_resuming(store, admin, name))
    assert engine.decide(name, "cheap alone", arms=["cheap"]).hold == 1.0
    with pytest.raises(HoldRefused):
        engine.decide(name, "of both")
    store.clock.now += 900.0
    for number in range(4):
        failing = engine.decide(name, f"fails {number}", arms=["dear"], holds={"dear": 0.5})
        store.clock.now += 20.0
        engine.feedback(failing.decision, failed=True)
    assert after_resuming(store, admin, name) == "are made again at once"
    assert engine.decide(name, "of the one awake").arm == "cheap"


def test_a_wait_is_said_to_the_second(store, admin):
    engine = store.engine
    engine.create("soon", "bts", 100.0, {"a": 10.0, "b": 10.0}, pace_seconds=1000.0)
    engine.feedback(engine.decide("soon", "1").decision, cost=10.0, reward=1.0)
    assert after_resuming(store, admin, "soon").startswith("none for about 1 min 40 s: the campaign is ahead")
    store.clock.now += 60.5
    assert after_resuming(store, admin, "soon").startswith("none for about 40 s: ")
    store.clock.now += 40.0
    assert engine.decide("soon", "2").hold == 10.0


def test_numbers_of_the_page_are_written_as_people_do(store, admin):
    engine = store.engine
    engine.create("long", "bts", 1e6, {"a": 1.0, "b": 1.0}, pace_seconds=8_717_765.5, reward_max=1e8,
                  hold_seconds=119.0)  # fmt: skip
    store.clock.now += 1000.0
    for number, reward in enumerate((12345.678, 2e7, 1 / 3)):
        engine.feedback(engine.decide("long", f"{number}").decision, cost=0.001, reward=reward)
    engine.decide("long", "open")
    page = admin("GET", "/campaigns/long").text
    for words in ("paced over 100 d 21 h 36 min 5.5 s", ">12,345.678<", ">20,000,000<", ">0.333333<",
                  "The first expires in 1 min 59 s"):  # fmt: skip
        assert words in page
    assert not re.search(r"\de[+-]\d", re.sub("<.*?>", " ", page))
    large = admin.check("/campaigns/long/top-up", {"amount": "1" + "0" * 20}).text
    assert "Amount is 100,000,000,000,000,000,000; use a number from 0 to 1,000,000,000,000." in large


def test_more_requests_than_expected_are_said_to_be_more(store, admin):
    engine = store.engine
    engine.create("more", "bts-paced", 100.0, {"a": 10.0, "b": 10.0}, horizon=2.5)

    def answer(number):
        engine.feedback(engine.decide("more", f"{number}").decision, cost=1.0, reward=1.0)
        return admin("GET", f"/campaigns/more?before={10**9 + number}").text

    answer(1)
    # half a request is expected besides the next one, which cannot have more than all there is
    assert "98.000000 is left for each request to come" in answer(2)
    page = answer(3)
    assert "3 answered, beyond the 2.5 expected" in page
    assert "More requests have come than were expected" in page
    words = said(admin.check("/campaigns/more/change-terms", {"horizon": "1"}).text)
    assert words["Requests used"].startswith("3 already, more than are expected then")


def test_a_policy_that_stops_at_its_horizon_is_not_said_to_go_on(store, admin):
    engine = store.engine
    engine.create("ended", "primal-dual-bwk", 100.0, {"a": 10.0, "b": 10.0}, horizon=2)
    for number in range(2):
        engine.feedback(engine.decide("ended", f"{number}").decision, cost=1.0, reward=1.0)
    with pytest.raises(HoldRefused, match="its horizon is over"):
        engine.decide("ended", "beyond")
    assert "and primal-dual-bwk makes no decision beyond them" in admin("GET", "/campaigns/ended").text
    words = said(admin.check("/campaigns/ended/change-terms", {"horizon": "1"}).text)["Requests used"]
    assert words == "2 already, more than are expected then: primal-dual-bwk makes no decision any more"


def test_requests_with_smaller_holds_are_decided_when_no_cap_fits(store, admin):
    engine = store.engine
    engine.create("holds", "bts", 1.5, {"a": 1.0, "b": 1.0})
    engine.feedback(engine.decide("holds", "1").decision, cost=1.0, reward=1.0)
    words = after_resuming(store, admin, "holds")
    assert words.startswith("none until there is money: 0.5000 is left, the smallest cap is 1.0000; only requests with")
    assert engine.decide("holds", "2", holds={"a": 0.5, "b": 0.5}).hold == 0.5
    assert after_resuming(store, admin, "holds").endswith("the smallest cap is 1.0000")  # nothing is left for anybody
    engine.top_up("holds", 5.0)
    assert after_resuming(store, admin, "holds") == "are made again at once"


def test_a_policy_that_has_stopped_is_not_promised_to_go_on(store, admin):
    engine = store.engine
    engine.create("stops", "primal-dual-bwk", 4.0, {"a": 1.0, "b": 1.0}, horizon=3)
    assert after_resuming(store, admin, "stops") == "are made again at once"
    for number in range(3):
        engine.feedback(engine.decide("stops", str(number)).decision, cost=0.25, reward=1.0)
    with pytest.raises(HoldRefused, match="stops here"):
        engine.decide("stops", "one more")
    assert after_resuming(store, admin, "stops").startswith("none: primal-dual-bwk stops here")


# --- the plan and the form --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("elapsed", [-5.0, 0.0, 1000.0, 43_210.0, 86_399.0, 86_400.0, 1e6])
def test_what_is_spendable_by_now_can_be_held_and_not_more(elapsed):
    budget, limits = 7_000_003, Limits(None, 86_400.0, 1000.0, 1_000_000)
    most, now = ledger.spendable(budget, 1000.0 + elapsed, limits), 1000.0 + elapsed
    ledger.place(Account(budget), most, now, limits)
    if most < budget:
        with pytest.raises(HoldRefused):
            ledger.place(Account(budget), most + 2, now, limits)
    assert ledger.spendable(budget, now, ledger.NO_LIMITS) == budget


def test_a_plan_says_that_the_largest_cap_is_spendable(store, admin):
    store.engine.create("begins", "bts", 100.0, {"a": 1.0, "b": 0.25}, pace_seconds=100 * 86_400.0)
    store.clock.now += 864.0
    shown = said(admin.check("/campaigns/begins/change-terms", {"pace_seconds": "50"}).text)
    assert shown["Spendable by now"] == "1.01 → 1.02"
    assert store.engine.decide("begins", "1").hold <= 1.01


def test_a_form_that_is_shown_again_has_the_terms_as_they_are(store, admin):
    engine, path = store.engine, "/campaigns/stale/change-terms"
    engine.create("stale", "bts", 100.0, {"a": 1.0, "b": 0.5}, daily_cap=1.2)
    opened = dict(re.findall(r'name="(\w+)" value="([^"]*)"', admin("GET", path).text)) | {"on_expire": "charge"}
    assert opened["daily_cap"] == "1.2"
    engine.change_terms("stale", {"daily_cap": 20.0})
    back = admin("POST", path, opened | {"hold_seconds": "30", "edit": "1"}).text
    again = dict(re.findall(r'name="(\w+)" value="([^"]*)"', back.partition("data-confirm")[0]))
    assert (again["daily_cap"], again["was_daily_cap"]) == ("20", "20")
    assert (again["hold_seconds"], again["was_hold_seconds"]) == ("30", "60")  # what was typed stays
    shown = said(admin.check(path, again | {"on_expire": "charge", "daily_cap": "1.2"}).text)
    assert (shown["Daily cap"], shown["Wait for feedback"]) == ("20.00 → 1.20", "1 h → 30 min")
