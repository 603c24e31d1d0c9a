"""Alarms on the pages: silence by one rule for the page and the list, and what was refused since when."""

import re
import socket
from pathlib import Path
from typing import get_args

import pytest

from budgetbandits.service import ledger
from budgetbandits.service.dashboard.campaign import REFUSAL_NAMES, campaign_view
from budgetbandits.service.dashboard.overview import ListQuery, overview
from budgetbandits.service.dashboard.query import PageQuery
from budgetbandits.service.http import server
from budgetbandits.service.http.metrics import Metrics
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore
from served import pull, served, steps


@pytest.fixture
def store(tmp_path):
    with served(tmp_path) as store:
        store.now = store.clock.now
        yield store


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
        (LONG, (50, 10), "Running"),  # not for an hour yet
        (LONG, (), "Running"),
        (LONG, (0.1,), "Running"),  # idle for more than an hour, and the first decision is seconds old
        (LONG | {"lease": 50.0, "lease_seconds": 7200.0}, (0.1,), "Running"),
    ],
)
def test_silence_is_an_alarm_wherever_the_money_is(store, reader, terms, minutes, said):
    store.clock.now = store.now - 4800.0
    store.engine.create("ads", "bts", 100.0, {"a": 1.0, "b": 1.0}, **terms)
    store.engine.feedback(store.engine.decide("ads", "told").decision, cost=0.5, reward=1.0)
    decide_at(store, "ads", *minutes)
    assert word(store, reader, "ads") == said
    if minutes:
        pull(store.engine, "ads", "told again", cost=0.5, reward=1.0)
        assert word(store, reader, "ads") == "Running"


def test_a_decision_that_was_taken_back_does_not_wait(store, reader):
    store.clock.now = store.now - 4800.0
    store.engine.create("ads", "bts", 100.0, {"a": 1.0, "b": 1.0}, **LONG)
    store.engine.void(store.engine.decide("ads", "void").decision)
    decide_at(store, "ads", 0.1)
    assert word(store, reader, "ads") == "Running"


def test_a_campaign_that_was_never_told_waits_from_its_first_decision_on(store, reader):
    store.clock.now = store.now - 5 * 3600.0
    store.engine.create("ads", "bts", 100.0, {"a": 1.0, "b": 1.0}, **LONG)
    decide_at(store, "ads", 10)
    assert word(store, reader, "ads") == "Running"
    store.clock.now = store.now - 3700.0
    store.engine.create("old", "bts", 100.0, {"a": 1.0, "b": 1.0}, **LONG)
    decide_at(store, "old", 61, 1)
    assert word(store, reader, "old") == "No feedback"
    assert reader("GET", "/campaigns/old?format=json").json()["standing"]["cause"] == "for 1 h 1 min, 2.00 held"


def test_the_list_reads_no_events_though_a_long_lease_keeps_the_mark_back(store, reader):
    """With ten times the events the list takes the database as many steps."""
    store.clock.now = store.now - 7200.0
    store.engine.create("ads", "bts", 1000.0, {"a": 1.0, "b": 1.0}, lease=900.0, lease_seconds=9000.0, **LONG)
    store.clock.now = store.now - 4000.0
    taken = []
    for upto in (20, 200):
        for number in range(upto):
            store.engine.decide("ads", f"{number}")  # those there are already are made no second time
        roll_up(store)
        taken.append(steps(store, lambda tx: overview(tx, ListQuery(), None)))
    id = store.engine.describe("ads").id
    mark, last = store.read(lambda tx: (tx.rollups().watermark(id), tx.last_event(id)))
    assert mark.seq < 20 < mark.activity_seq == last
    assert word(store, reader, "ads") == "No feedback"
    assert taken[1] < 1.3 * taken[0]


def test_a_page_looks_at_no_open_hold_of_another_campaign(store):
    """With ten times as many elsewhere a page takes the database as many steps."""
    store.engine.create("small", "bts", 20.0, {"a": 1.0, "b": 1.0})
    store.engine.create("large", "bts", 2000.0, {"a": 1.0, "b": 1.0})
    store.engine.decide("small", "1")
    taken = []
    for key, count in (("few", 20), ("many", 180)):
        store.engine.decide_many("large", key, count)
        roll_up(store)
        taken.append(steps(store, lambda tx: campaign_view(tx, tx.campaign("small"), PageQuery())))
    assert taken[1] < 1.1 * taken[0]


def test_an_arm_that_is_down_is_an_alarm_that_names_who_stands_in_at_what_price(store, reader):
    store.clock.now -= 1500.0
    store.engine.create("ads", "bts-paced", 100.0, {"cheap": 0.1, "other": 1.0}, horizon=1000)
    for number in range(30):
        for name, cost in (("cheap", 0.01), ("other", 0.5)):
            pull(store.engine, "ads", f"{name} {number}", arms=[name], cost=cost, reward=0.5)
    assert word(store, reader, "ads") == "Running"
    for number in range(3):
        assert store.engine.describe("ads").arms_down == 0
        made = store.engine.decide("ads", f"fails {number}", arms=["cheap"])
        store.clock.now += 500.0
        store.engine.feedback(made.decision, failed=True)
    assert word(store, reader, "ads") == "Arm down"
    cause = reader("GET", "/campaigns/ads?format=json").json()["standing"]["cause"]
    assert re.fullmatch(
        r"cheap has failed 3 times in a row, the first .* ago; other stands in at 50 times the price", cause
    )
    page = reader("GET", "/campaigns/ads").text
    assert "retire it until it is back" in page
    assert "3 failures</span>, cools down until" in page
    assert reader("GET", "/?group=attention&format=json").json()["found"] == 1
    described = store.engine.describe("ads")
    assert described.arms_down == 1
    assert described.arms[0].down_since == pytest.approx(store.now - 1500.0, abs=0.002)
    assert 'budgetbandits_campaign_arms_down{campaign="ads"} 1.0' in Metrics(store).page().decode()
    pull(store.engine, "ads", "answers", arms=["cheap"], cost=0.01, reward=1.0)
    assert word(store, reader, "ads") == "Running"


def refuse(store, name, reason, count, at):
    id, hour = store.engine.describe(name).id, int(at) - int(at) % 3600
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


def test_refusals_that_were_not_written_yet_are_when_a_server_ends(tmp_path, monkeypatch):
    made = []

    class Counting(server.Metrics):
        def __init__(self, store, *others):
            super().__init__(store, *others)
            made.append((DecisionService(store), self))

    class Ends:
        def __init__(self, *_):
            pass

        def run(self, sockets):
            [(engine, metrics)] = made
            engine.create("ads", "bts", 1.0, {"a": 1.0, "b": 1.0})
            metrics.refused.count("ads", "closed", 7200.0)

    for name, value in (("Metrics", Counting), ("_Server", Ends), ("write_logs", lambda: None),
                        ("hand_over_first_key", lambda *_: None)):  # fmt: skip
        monkeypatch.setattr(server, name, value)
    monkeypatch.setattr(server.signal, "signal", lambda *_: None)
    monkeypatch.setattr(server.gc, "freeze", lambda: None)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server.serve(listener, server.ServerOptions(str(tmp_path / "money.db"), "here"))
    with SQLiteStore(tmp_path / "money.db") as store:
        id = store.read(lambda tx: tx.campaign("ads").id)
        assert store.read(lambda tx: tx.rollups().refusals(id, 0)) == {"closed": 1}


def test_every_reason_of_a_refusal_is_on_the_page(store, reader):
    """All that the service refuses with: a new reason needs a word."""
    source = "".join(path.read_text() for path in Path(ledger.__file__).parent.glob("*.py"))
    reasons = set(re.findall(r'HoldRefused\(\s*"(\w+)"', source)) | {*get_args(ledger.Status)} - {"active"}
    assert reasons == set(REFUSAL_NAMES)
    store.engine.create("ads", "bts", 1.0, {"a": 1.0, "b": 1.0})
    for number, reason in enumerate(REFUSAL_NAMES):
        refuse(store, "ads", reason, 41 + number, store.now)
    page = reader("GET", "/campaigns/ads").text
    section = page[page.index('id="refusals"') : page.index('id="holds"')]
    assert re.findall(r"<dt>([^<]+)</dt>.*?>(\d+)</dd>", section) == [
        (word, str(41 + number)) for number, word in enumerate(REFUSAL_NAMES.values())
    ]


def test_a_mean_price_above_the_cap_is_shown_as_it_is_and_what_the_policy_makes_of_it(store, reader):
    store.engine.create("dear", "bts", 100.0, {"a": 1.0, "b": 1.0})
    for number in range(12):
        pull(store.engine, "dear", f"{number}", arms=["a"], cost=1.5 if number else 0.5, reward=1.0)
        store.engine.set_status("dear", "active")
    [arm, _] = reader("GET", "/campaigns/dear?format=json").json()["arms"]
    assert arm["price"]["low"] < 17.0 / 12 < arm["price"]["high"]
    assert arm["price"]["median"] == pytest.approx(17.0 / 12, rel=0.02)
    assert arm["price_learned_as"] == 1.0
    assert "above the cap; bts learns 1.00 at most" in reader("GET", "/campaigns/dear").text
