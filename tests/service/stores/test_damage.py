"""Rows that were damaged, as by a disk or an editor: named, with a remedy, and nobody else's trouble."""

import shutil
from contextlib import suppress

import pytest

from browsing import Browser
from budgetbandits.errors import BadState
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.audit.reader import Job, answer
from budgetbandits.service.dashboard.actions.catalog import ACTIONS
from budgetbandits.service.dashboard.overview import overview
from budgetbandits.service.dashboard.query import ListQuery
from budgetbandits.service.feedback import FeedbackReport
from budgetbandits.service.http.auth import make_key
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.service import DecisionService
from budgetbandits.service.shared_budgets.audit import verify_shared_budget
from budgetbandits.service.stores.sqlite import SQLiteStore
from clock import Clock
from served import served
from stores import tamper

ARMS = {"small": 1.0, "large": 1.0}

DAMAGE = {
    "no settings": "UPDATE campaign SET settings = '{}' WHERE name = 'damaged'",
    "no JSON": "UPDATE campaign SET learned = 'nonsense' WHERE name = 'damaged'",
    "a list for an object": "UPDATE campaign SET learned = '[]' WHERE name = 'damaged'",
    "no number": """UPDATE campaign SET settings = replace(settings, '3600.0', '"x"') WHERE name = 'damaged'""",
    "more spent than there is": "UPDATE campaign SET spent = 9e18 WHERE name = 'damaged'",
    "no such policy": "UPDATE campaign SET policy = 'nonsense' WHERE name = 'damaged'",
    "no arms": "DELETE FROM arm WHERE campaign = 'ID'",
    "an arm that has learned nothing": "UPDATE arm SET learned = '[]' WHERE campaign = 'ID' AND number = 1",
    "an arm out of order": "UPDATE arm SET number = 7 WHERE campaign = 'ID' AND number = 1",
    "a decision of no arm": "UPDATE decision SET arm = 99 WHERE campaign = 'ID'",
    "a decision of no time": "UPDATE decision SET created_at = 9e999 WHERE campaign = 'ID'",
    "a request that is none": "UPDATE decision SET request = '[7]' WHERE campaign = 'ID'",
}


def asked(engine, name, one, two, three, four):
    """Whatever can be asked of a campaign with these decisions."""
    return (
        lambda: engine.decide(name, "new", segment="code"), lambda: engine.decide(name, "0", segment="code"),
        lambda: engine.decide_many(name, "many", 2), lambda: engine.feedback(one, cost=0.1, reward=1.0),
        lambda: engine.feedback_many(name, [FeedbackReport(two, 1.0, 0.1)]),
        lambda: engine.feedback(three, failed=True, campaign=name), lambda: engine.void(four, name),
        lambda: engine.describe(name), lambda: engine.account(name), lambda: engine.totals(name),
        lambda: engine.top_up(name, 1.0), lambda: engine.set_status(name, "paused"),
        lambda: list(answer(engine._store, Job("export", name))),
    )  # fmt: skip


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_row_is_named_and_stays_with_its_campaign(tmp_path, what):
    """Whatever is asked of the campaign is answered, or refused by an error with a remedy; all others go on."""
    path, names = tmp_path / "money.db", ("damaged", "other")
    with SQLiteStore(path) as store:
        engine = DecisionService(store, Clock(1000.0))
        ids = {name: engine.create(name, "bts-paced", budget=30.0, arms=ARMS) for name in names}
        told = {name: [engine.decide(name, f"{n}", segment="code").decision for n in range(4)] for name in names}
    tamper(path, DAMAGE[what].replace("ID", ids["damaged"]))
    with SQLiteStore(path) as store:
        clock, refusals = Clock(1001.0), []
        engine = DecisionService(store, clock)
        for name in names:
            for ask in asked(engine, name, *told[name]):
                try:
                    ask()
                except BadState as error:
                    refusals.append((name, str(error)))
        assert refusals
        assert all(name == "damaged" and "restore an undamaged copy" in text for name, text in refusals)
        assert "other" in [each.name for each in engine.overview()]
        clock.now += 4000.0
        with suppress(BadState):
            engine.expire_due()
        assert engine.account("other").held == 0
        with suppress(BadState):
            roll_up(store)
        assert store.read(lambda tx: tx.rollups().watermark(ids["other"]).seq) > 0
        assert "other" in [line.glance.name for line in store.read(lambda tx: overview(tx, ListQuery(""), None)).lines]
        assert verify(store, "damaged") != []
        assert verify(store, "other") == []


def test_holds_of_others_expire_behind_those_of_a_damaged_campaign(tmp_path, monkeypatch):
    """However many of the oldest holds cannot be expired."""
    monkeypatch.setattr("budgetbandits.service.expiry.EXPIRED_HOLDS_MAX", 3)
    clock = Clock(1000.0)
    with SQLiteStore(tmp_path / "money.db") as store:
        engine = DecisionService(store, clock)
        for name in ("damaged", "torn", "other"):
            engine.create(name, "bts", budget=30.0, arms=ARMS)
            for number in range(4):
                engine.decide(name, f"{number}")
            clock.now += 1.0
        tamper(tmp_path / "money.db", "UPDATE campaign SET spent = 9e18 WHERE name IN ('damaged', 'torn')")
        clock.now += 4000.0
        for left in (1_000_000, 0):
            with pytest.raises(BadState):
                engine.expire_due()
            assert engine.account("other").held == left


@pytest.mark.parametrize("what", DAMAGE)
def test_the_forms_of_a_damaged_campaign_name_the_damage(tmp_path, what):
    with served(tmp_path) as store:
        id = store.engine.create("damaged", "bts-paced", budget=30.0, arms=ARMS)
        store.engine.decide("damaged", "1", segment="code")
        admin = Browser(store.app, make_key(store, ["admin"], 0.0))
        code = admin.code("/campaigns/damaged/pause")
        tamper(tmp_path / "money.db", DAMAGE[what].replace("ID", id))
        for action in ACTIONS:
            for method, form in (("GET", None), ("POST", {"code": code, "amount": "1", "name": "new", "cap": "1"})):
                answer = admin(method, f"/campaigns/damaged/{action}", form)
                assert answer.status_code != 500, (action, method)
                assert answer.status_code != 503 or "restore an undamaged copy" in answer.text


def test_pages_go_on_after_campaigns_that_are_damaged(tmp_path):
    """Each page has as many campaigns as there are to be read, also after one that was read before it was damaged."""
    with served(tmp_path) as store:
        ids = []
        for number in range(8):
            store.clock.now += 1.0
            ids.append(store.engine.create(f"c{number}", "bts", 10.0, ARMS))
        key = make_key(store, ["read"], 0.0)
        damage = {
            1: "learned = 'x'",
            2: """settings = '{"hold_seconds": "x"}'""",
            3: "learned = 'x'",
            6: "settings = '['",
        }

        def break_some(tx):
            for number, change in damage.items():
                tx.change(f"UPDATE campaign SET {change} WHERE id = ?", (ids[number],))

        store.write(break_some)
        good = [f"c{number}" for number in (0, 4, 5, 7)]
        service = Browser(store.app, key)

        def page(query):
            answer = service("GET", f"/v1/campaigns?{query}", Authorization=f"Bearer {key}")
            assert answer.status_code == 200, answer.text
            return answer.json()

        for limit in (1, 2, 3, 5):
            names, after = [], ""
            while found := page(f"limit={limit}{after}"):
                names += [each["name"] for each in found]
                after = f"&after={found[-1]['id']}"
            assert names == good
        for number in damage:
            later = [name for name in good if name > f"c{number}"]
            assert [each["name"] for each in page(f"limit=9&after={ids[number]}")] == later


TERMS_CHANGED = "UPDATE campaign SET settings = json_set(settings, '$.{}', {}) WHERE name = 'ads'"
SHARED_CHANGED = "UPDATE shared_budget SET settings = json_set(settings, '$.{}', {})"
PENDING = "WHERE id = (SELECT MAX(id) FROM decision WHERE state = 'pending')"
BOOKS = {
    "a daily cap": (TERMS_CHANGED.format("terms.daily_cap", "1000.0"), "daily_cap 1000.0 after 1 changes"),
    "the first terms": (TERMS_CHANGED.format("earlier[0].terms.on_expire", "'release'"), "from the beginning"),
    "a restore": (TERMS_CHANGED.format("restored_from", "NULL"), "does not wait to hear what was spent"),
    "a creation": ("UPDATE campaign SET created_at = created_at - 100 WHERE name = 'ads'", "it was created at"),
    "a name": ("UPDATE campaign SET name = 'adverts' WHERE name = 'ads'", "the list of names 'ads'"),
    "a decision of another": (f"UPDATE decision SET campaign = 'c00000000000' {PENDING}", "the row says"),
    "a hold for ever": (f"UPDATE decision SET expires_at = 1e10 {PENDING}", "later than any hold"),
    "a shared budget's terms": (SHARED_CHANGED.format("terms.period_budget", "500.0"), "its events {'period': 'month'"),
    "whom it waits for": (SHARED_CHANGED.format("unreported", "json('[]')"), "it waits for []"),
    "a shared period": ("UPDATE shared_budget SET period = period - 2700000", "the shared budget's row says"),
    "a shared renewal": ("UPDATE event SET amount = amount + 1 WHERE kind = 'renewed'", "(renewed) grants 30000001"),
}


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    """A store with a shared budget that was renewed, and a member that was restored from a copy."""
    path, clock = tmp_path_factory.mktemp("books") / "money.db", Clock(1.77e9)
    with SQLiteStore(path) as store:
        engine = DecisionService(store, clock)
        engine.shared_budgets.create("all", 50.0)
        engine.shared_budgets.change("all", {"period": "month", "period_budget": 30.0, "unspent": "carry"})
        for name in ("ads", "other"):
            engine.create(name, "bts", 20.0, ARMS, shared_budget="all", daily_cap=10.0)
        engine.change_terms("ads", {"hold_seconds": 1e7})
        for number in range(4):
            clock.now += 10 * 86_400.0
            engine.feedback(engine.decide("ads", f"{number}").decision, cost=0.5, reward=1.0)
        engine.decide("ads", "open")
        engine.mark_restored()
        engine.set_status("other", "active", spent_since=1.0)
        assert differences(store) == []
    return path


def differences(store):
    return [*verify(store, "ads"), *verify(store, "other"), *verify_shared_budget(store, "all")]


@pytest.mark.parametrize("what", BOOKS)
def test_books_that_were_changed_by_hand_do_not_agree(books, tmp_path, what):
    statement, words = BOOKS[what]
    shutil.copy(books, tmp_path / "money.db")
    assert tamper(tmp_path / "money.db", statement) == 1
    with SQLiteStore(tmp_path / "money.db") as store:
        found = differences(store)
    assert any(words in text for text in found), found
