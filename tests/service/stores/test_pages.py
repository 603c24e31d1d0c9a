"""What pages ask of every store, page by page: decisions by kind, arm and segment, events, the record of keys."""

import random

from budgetbandits.service.http.auth import drop_key, make_key
from budgetbandits.service.request import ResolvedRequest
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sql import dashboard, decision_search
from budgetbandits.service.stores.sql.dashboard import DECISION_KINDS, DecisionFilter
from clock import Clock
from stores import all_decisions


def played(store):
    """Sixty decisions of three segments and none, told in every way there is."""
    clock, rng = Clock(1_800_000_000.0), random.Random(3)
    engine = DecisionService(store, clock)
    id = engine.create("ads", "bts-paced", 200.0, {"search": 1.0, "mail": 0.5}, hold_seconds=200.0, actor="bb_maker")
    for number in range(60):
        clock.now += 1.0
        segment = rng.choice([None, "code", 'ch"at', "é"])
        made = engine.decide("ads", str(number), segment=segment)
        what = rng.choice(["tell", "tell", "open", "void", "fail", "dear", "late"])
        if what == "void":
            engine.void(made.decision)
        elif what == "fail":
            engine.feedback(made.decision, failed=True)
        elif what == "late":
            clock.now += 40.0
            engine.expire_due()
        elif what != "open":
            engine.feedback(made.decision, cost=1.5 if what == "dear" else 0.25, reward=1.0)
            engine.set_status("ads", "active", actor="bb_maker")
    return engine, id


def is_of(kind, made):
    states = {"held": "pending", "settled": "settled", "expired": "expired", "voided": "voided"}
    return {"all": True, "failed": made.failed, "overrun": made.hold.overrun > 0}.get(
        kind, made.hold.state == states.get(kind)
    )


def segment(made):
    said = ResolvedRequest.from_json(made.request)
    return None if said is None else said.segment


def test_all_decisions_are_found_page_by_page(store, monkeypatch):
    monkeypatch.setattr(dashboard, "DECISIONS_SEARCHED_MAX", 7)
    _, id = played(store)
    made = all_decisions(store, "ads")[::-1]
    for kind in DECISION_KINDS:
        for arm, of in [(None, None), (1, None), (None, 'ch"at'), (0, "é")]:
            wanted = [
                each for each in made
                if is_of(kind, each) and arm in (None, each.arm) and of in (None, segment(each))
            ]  # fmt: skip
            assert wanted or arm is not None or of is not None, kind
            found, before, pages = [], None, 0
            while pages == 0 or before is not None:
                which = DecisionFilter(kind, arm, of)
                page = store.read(lambda tx, which=which, before=before: tx.pages().decisions(id, 4, which, before))
                assert len(page.decisions) <= 4
                found, before, pages = found + page.decisions, page.older, pages + 1
            assert found == wanted, (kind, arm, of)
            assert pages <= 60 / 4 + 9  # so that no page is looked at twice


def test_events_of_operators_and_freezes_are_found_page_by_page(store):
    engine, id = played(store)
    engine.change_terms("ads", {"hold_seconds": 60.0}, actor="bb_maker")
    events = store.read(lambda tx: tx.events(id, limit=9999))
    wanted = [each for each in reversed(events) if each.decision is None]
    dear = [each for each in all_decisions(store, "ads") if each.hold.overrun]
    assert sorted(each.amount for each in wanted if each.kind == "frozen") == sorted(each.hold.overrun for each in dear)
    found, before = [], None
    while page := store.read(lambda tx, before=before: tx.pages().operator_events(id, 3, before)):
        found, before = found + page, page[-1].seq
    assert found == wanted
    assert store.read(lambda tx: tx.pages().event_numbers(id, "frozen")) == [
        e.seq for e in wanted if e.kind == "frozen"
    ]


def test_the_record_of_keys_outlives_them(store):
    id = DecisionService(store).create("ads", "bts", 20.0, {"search": 1.0, "mail": 0.5})
    first = make_key(store, ["decide", "feedback"], 5.0, "ads", actor="bb_maker").split("_")[1]
    drop_key(store, first, actor="bb_other")
    second = make_key(store, ["read"], 7.0).split("_")[1]
    events = store.read(lambda tx: tx.key_events(9))
    assert [(e.kind, e.prefix, e.scopes, e.campaign, e.actor) for e in events] == [
        ("made", second, ("read",), None, None),
        ("dropped", first, ("decide", "feedback"), id, "bb_other"),
        ("made", first, ("decide", "feedback"), id, "bb_maker"),
    ]
    assert events[0].at == 7.0
    assert store.read(lambda tx: tx.key_events(1, events[1].seq)) == events[2:]


def open_holds(store, id, now):
    return store.read(lambda tx: tx.pages().holds(id, now, [10.0, 100.0]))


def test_open_holds_are_those_of_the_campaign(store, monkeypatch):
    clock = Clock(1_800_000_000.0)
    engine, begun = DecisionService(store, clock), clock.now
    ids = [engine.create(name, "bts", 200.0, {"a": 1.0, "b": 1.0}, hold_seconds=500.0) for name in ("ads", "other")]
    for number in range(9):
        clock.now = begun + 20.0 * number
        made = [engine.decide(name, f"{number}") for name in ("ads", "other")]
        if number % 3 == 0:
            engine.feedback(made[0].decision, cost=0.5, reward=1.0)
    found = open_holds(store, ids[0], clock.now)  # made 0, 20, 60, 80, 120 and 140 seconds ago
    assert (found.counts, found.expires_at, found.amount, found.more) == ([1, 4, 6], begun + 520.0, 1_000_000, False)
    assert open_holds(store, ids[1], clock.now).counts == [1, 5, 9]
    assert open_holds(store, "nobody's", clock.now).counts == [0, 0, 0]
    monkeypatch.setattr(dashboard, "HOLDS_COUNTED_MAX", 4)
    found = open_holds(store, ids[0], clock.now)
    assert (found.counts, found.more) == ([0, 2, 4], True)


def test_a_decision_is_found_by_the_beginning_of_its_id(store):
    _, id = played(store)
    other = DecisionService(store).create("other", "bts", 20.0, {"a": 1.0, "b": 1.0})
    made = all_decisions(store, "ads")
    for each in made[:9]:
        for digits in (6, 8, 32):
            wanted = sorted(row.id for row in made if row.id.startswith(each.id[:digits]))
            for campaign, found in ((None, wanted), (id, wanted), (other, [])):
                rows = store.read(lambda tx, p=each.id[:digits], c=campaign: tx.pages().search().with_prefix(p, 9, c))
                assert [row.id for row in rows] == found
    [row] = store.read(lambda tx: tx.pages().search().with_prefix(made[3].id, 9))
    assert row == made[3]
    assert len(store.read(lambda tx: tx.pages().search().with_prefix("", 5))) == 5


def test_all_events_of_a_decision_are_found_a_window_at_a_time(store, monkeypatch):
    """Also of one that was reported on long after it had expired."""
    engine, id = played(store)
    DecisionService(store).create("other", "bts", 20.0, {"a": 1.0, "b": 1.0})
    late = next(made for made in all_decisions(store, "ads") if made.hold.state == "expired")
    engine.feedback(late.id, cost=0.25, reward=1.0)
    engine.set_status("ads", "paused")
    events = store.read(lambda tx: tx.events(id, limit=9999))
    for made in all_decisions(store, "ads"):
        wanted = [event for event in events if event.decision == made.id]
        found = store.read(lambda tx, made=made: tx.pages().search().events(made))
        assert (found.events, found.upto) == (wanted, None)
    monkeypatch.setattr(decision_search, "EVENTS_SEARCHED_MAX", 7)
    for made in all_decisions(store, "ads"):
        wanted = [event for event in events if event.decision == made.id]
        found, after, windows = {}, None, 0
        while windows == 0 or after is not None:
            page = store.read(lambda tx, made=made, after=after: tx.pages().search().events(made, after))
            found, after, windows = found | {event.seq: event for event in page.events}, page.upto, windows + 1
        assert [found[seq] for seq in sorted(found)] == wanted
        assert windows <= len(events) / 7 + 1
        assert windows > 1 or events[-8].seq <= wanted[0].seq


def test_the_events_of_a_decision_are_looked_for_from_where_it_was_made(store, monkeypatch):
    """So that the first window has them in a campaign of any length."""
    monkeypatch.setattr(decision_search, "EVENTS_SEARCHED_MAX", 20)
    clock = Clock(1_800_000_000.0)
    engine = DecisionService(store, clock)
    engine.create("ads", "bts", 200.0, {"a": 1.0, "b": 1.0})
    for number in range(150):
        clock.now += 10.0
        engine.feedback(engine.decide("ads", f"{number}").decision, cost=0.5, reward=1.0)
    for made in all_decisions(store, "ads")[::13]:
        found = store.read(lambda tx, made=made: tx.pages().search().events(made))
        assert [event.kind for event in found.events] == ["decided", "settled"]
