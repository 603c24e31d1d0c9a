"""Alarms on the pages: silence by one rule for the page and the list, and what was refused since when."""

import re
from pathlib import Path
from typing import get_args

import pytest

from browsing import Browser
from budgetbandits.service import ledger
from budgetbandits.service.dashboard.campaign_view import REASONS
from budgetbandits.service.http.auth import make_key
from budgetbandits.service.rollups import roll_up
from served import served


@pytest.fixture
def store(tmp_path):
    with served(tmp_path) as store:
        store.now = store.clock.now
        yield store


@pytest.fixture
def reader(store):
    return Browser(store.app, make_key(store, ["read"], 0.0))


def word(store, reader, name):
    """On the list and on the campaign's own page, where it is the same."""
    roll_up(store)
    [line] = [each for each in reader("GET", "/?format=json").json()["campaigns"] if each["name"] == name]
    there = reader("GET", f"/campaigns/{name}?format=json").json()["standing"]
    assert {name: line["standing"][name] for name in there} == there
    return there["word"]


def decide_at(store, name, *minutes):
    """Decisions so many minutes ago; what is due expires."""
    for ago in minutes:
        store.clock.now = store.now - 60.0 * ago
        store.engine.decide(name, f"{ago}")
        store.engine.expire_due()
    store.clock.now = store.now
    store.engine.expire_due()


LONG, SHORT = {"hold_seconds": 4 * 3600.0}, {"hold_seconds": 60.0}


@pytest.mark.parametrize(
    ("terms", "minutes", "said"),
    [
        (LONG, (70, 65), "No feedback"),  # held
        (LONG | {"lease": 50.0, "lease_seconds": 7200.0}, (70, 65), "No feedback"),  # held in a lease
        (SHORT, (70, 65, 10), "No feedback"),  # expired and charged, and decisions go on
        (SHORT | {"on_expire": "release"}, (70, 65, 10), "No feedback"),
        (SHORT | {"lease": 50.0}, (70, 65, 10), "No feedback"),
        (SHORT, (75, 70), "Running"),  # nobody decides any more, and nothing is held
        (LONG, (), "Running"),
    ],
)
def test_silence_is_an_alarm_wherever_the_money_is(store, reader, terms, minutes, said):
    store.clock.now = store.now - 4800.0
    store.engine.create("ads", "bts", 100.0, {"a": 1.0, "b": 1.0}, **terms)
    told = store.engine.decide("ads", "told")
    store.engine.feedback(told.decision, cost=0.5, reward=1.0)
    decide_at(store, "ads", *minutes)
    assert word(store, reader, "ads") == said
    if minutes:
        made = store.engine.decide("ads", "told again")
        store.engine.feedback(made.decision, cost=0.5, reward=1.0)
        assert word(store, reader, "ads") == "Running"


def test_silence_of_less_than_an_hour_is_none(store, reader):
    store.clock.now = store.now - 3500.0
    store.engine.create("ads", "bts", 100.0, {"a": 1.0, "b": 1.0}, **LONG)
    decide_at(store, "ads", 50, 10)
    assert word(store, reader, "ads") == "Running"


def refuse(store, name, reason, count, at):
    id, hour = store.engine.describe(name)["id"], int(at) - int(at) % 3600
    store.write(lambda tx: tx.rollups().add_refusals([(id, hour, reason, count)]))


def test_what_was_refused_before_the_last_decision_is_not_counted_again(store, reader):
    store.clock.now = store.now - 4 * 86_400.0
    store.engine.create("ads", "bts", 1.0, {"a": 1.0, "b": 1.0})
    store.engine.feedback(store.engine.decide("ads", "1").decision, cost=1.0, reward=1.0)
    refuse(store, "ads", "exhausted", 500, store.now - 3 * 86_400.0)
    store.clock.now = store.now - 7200.0
    store.engine.top_up("ads", 1.0)
    store.engine.feedback(store.engine.decide("ads", "2").decision, cost=1.0, reward=1.0)
    page = reader("GET", "/campaigns/ads").text
    assert "so no arm can be paid" in page
    assert "refused for that" not in page
    refuse(store, "ads", "exhausted", 7, store.now - 7200.0)
    refuse(store, "ads", "exhausted", 4, store.now)
    refuse(store, "ads", "paused", 90, store.now)
    assert " 11 requests were refused for that since " in reader("GET", "/campaigns/ads?range=day").text


def test_every_reason_of_a_refusal_is_on_the_page(store, reader):
    """All that the service refuses with: a new reason needs a word."""
    source = "".join(path.read_text() for path in Path(ledger.__file__).parent.glob("*.py"))
    reasons = set(re.findall(r'HoldRefused\(\s*"(\w+)"', source)) | {*get_args(ledger.Status)} - {"active"}
    assert reasons == set(REASONS)
    store.engine.create("ads", "bts", 1.0, {"a": 1.0, "b": 1.0})
    for number, reason in enumerate(REASONS):
        refuse(store, "ads", reason, 41 + number, store.now)
    page = reader("GET", "/campaigns/ads").text
    section = page[page.index('id="refusals"') : page.index('id="holds"')]
    assert re.findall(r"<dt>([^<]+)</dt>.*?>(\d+)</dd>", section) == [
        (word, str(41 + number)) for number, word in enumerate(REASONS.values())
    ]


def test_a_freeze_is_one_event_however_much_is_done_to_a_frozen_campaign(store, reader):
    store.engine.create("ads", "bts", 10.0, {"a": 1.0, "b": 1.0})
    store.engine.feedback(store.engine.decide("ads", "dear").decision, cost=2.0, reward=1.0)
    for _ in range(101):
        store.engine.top_up("ads", 1.0)
    events = reader("GET", "/campaigns/ads/events?format=json").json()
    older = reader("GET", f"/campaigns/ads/events?format=json&before={events['older']}").json()
    oldest = reader("GET", f"/campaigns/ads/events?format=json&before={older['older']}").json()
    kinds = [each["kind"] for page in (events, older, oldest) for each in page["events"]]
    assert kinds == ["topped up"] * 101 + ["frozen", "created"]
