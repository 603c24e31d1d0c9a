"""Rollups on every store: whatever has happened, they are what the events add up to, before and after each slice."""

import random
from collections import defaultdict

import pytest

from budgetbandits.errors import BudgetBanditsError
from budgetbandits.service import rollups
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.dashboard.campaign import campaign_json, campaign_view
from budgetbandits.service.dashboard.overview import overview
from budgetbandits.service.dashboard.query import ListQuery, PageQuery
from budgetbandits.service.rollups import History, Refusals, roll_up
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.records import COUNTS
from budgetbandits.service.stores.sql.rollups import DAY, HOUR, MINUTE
from clock import Clock
from stores import STORES, all_decisions, all_events

BEGIN = 1_800_000_000.0


def play(engine, clock, rng, steps, campaign="ads"):
    """Decide, tell (late, in two parts, above the cap), fail (also after the cost was told), void, let expire, in
    random order; pauses of up to an hour."""
    open, unrewarded = [], []
    kinds = ["decide", "decide", "decide", "tell", "tell", "cost", "reward", "void", "expire", "fail", "fail later"]
    for step in range(steps):
        clock.now += rng.choice([0.1, 3.0, 30.0, 200.0, 2000.0])
        what = rng.choice(kinds)
        try:
            if what == "decide":
                open.append(engine.decide(campaign, key=f"{campaign} {step}").decision)
            elif what == "expire":
                engine.expire_due()
            elif what == "reward" and unrewarded:
                engine.feedback(unrewarded.pop(), reward=rng.choice([0.25, 1.0]))
            elif what == "fail later" and unrewarded:
                engine.feedback(unrewarded.pop(), failed=True)
            elif open:
                decision = open.pop(rng.randrange(len(open)))
                cost = rng.choice([0.0, 0.3, 0.5, 1.5])
                if what == "void":
                    engine.void(decision)
                elif what == "fail":
                    engine.feedback(decision, failed=True, cost=rng.choice([None, 0.25]))
                else:
                    engine.feedback(decision, cost=cost, reward=rng.random() if what == "tell" else None)
                    unrewarded += [decision] if what == "cost" else []
                    if cost > 1.0:
                        engine.set_status(campaign, "active")
        except BudgetBanditsError:
            pass


def added_up(store, campaign, span):
    """The same from the events and decisions, without SQL."""
    made = {each.id: each for each in all_decisions(store, campaign)}
    charged, expired, counts = defaultdict(int), defaultdict(int), defaultdict(lambda: dict.fromkeys(COUNTS, 0))
    for event in all_events(store, campaign):
        if event.decision is None:
            continue
        hold, row = made[event.decision].hold, counts[int(event.at // span) * span, event.arm]
        row["decided"] += event.kind == "decided"
        row["voided"] += event.kind == "voided"
        row["expired"] += event.kind == "expired"
        row["rewards_reported"] += event.reward is not None
        row["reward"] += event.reward or 0.0
        row["reward_squared"] += (event.reward or 0.0) ** 2
        if event.kind in ("expired", "settled"):
            now = event.amount if event.kind == "expired" else hold.charged
            row["spent"] += now - charged[event.decision]
            charged[event.decision] = now
        if event.kind == "settled":
            delay = event.at - made[event.decision].created_at
            row["costs_reported"] += 1
            row["cost"] += event.amount
            row["cost_squared"] += event.amount**2
            row["overrun"] += hold.overrun
            row["overruns"] += hold.overrun > 0
            row["delay_10"] += delay < 10
            row["delay_60"] += 10 <= delay < 60
            row["delay_300"] += 60 <= delay < 300
            # charged when it expired, it was gone then
            row["requests_used"] += hold.state == "settled" or not expired[event.decision]
        if event.kind == "expired":
            expired[event.decision] = event.amount
            row["requests_used"] += event.amount > 0
        if event.kind == "failed":
            row["failed"] += 1
            row["failed_cost"] += made[event.decision].cost
            row["failed_cost_squared"] += made[event.decision].cost ** 2
    return {key: [pytest.approx(row[name]) for name in COUNTS] for key, row in counts.items()}


def read(store, campaign, span):
    counts = store.read(lambda tx: History.of(tx, tx.campaign(campaign)).by(span))
    return {(each.begins, each.arm): list(each.values()) for each in counts}


@pytest.mark.parametrize("terms", [{}, {"on_expire": "release"}, {"lease": 5.0}], ids=["charge", "release", "leases"])
def test_rollups_are_what_the_events_add_up_to(store, monkeypatch, terms):
    monkeypatch.setattr(rollups, "EVENTS_AT_ONCE", 7)
    monkeypatch.setattr(rollups, "MINUTES_KEPT_SECONDS", 10 * DAY)
    clock, rng = Clock(BEGIN), random.Random(11)
    engine = DecisionService(store, clock)
    engine.create("ads", "bts", budget=60.0, arms={"search": 1.0, "mail": 0.5}, hold_seconds=900.0, **terms)
    for _ in range(4):
        play(engine, clock, rng, 60)
        for _ in range(2):  # before and after they are rolled up
            for span in (MINUTE, HOUR, DAY):
                assert read(store, "ads", span) == added_up(store, "ads", span)
            roll_up(store)
        assert verify(store, "ads") == []
    totals = store.read(lambda tx: History.of(tx, tx.campaign("ads")).totals())
    spent = engine.account("ads").spent + sum(each.account.spent for each in store.read(
        lambda tx: tx.leases(tx.campaign("ads").id)))  # fmt: skip
    assert sum(each.spent for each in totals.values()) == spent > 0
    assert sum(each.overruns for each in totals.values()) > 0
    assert sum(each.expired for each in totals.values()) > 0
    assert sum(each.failed_cost for each in totals.values()) > 0
    leased = store.read(lambda tx: tx.leases(tx.campaign("ads").id))
    requests_used = engine.account("ads").requests_used + sum(each.account.requests_used for each in leased)
    assert sum(each.requests_used for each in totals.values()) == requests_used > 0


def test_a_young_campaign_is_read_in_seconds_while_its_events_are_few(store, monkeypatch):
    clock, rng = Clock(BEGIN), random.Random(12)
    engine = DecisionService(store, clock)
    engine.create("ads", "bts", budget=60.0, arms={"search": 1.0, "mail": 0.5}, hold_seconds=900.0)
    play(engine, clock, rng, 60)
    roll_up(store)
    play(engine, clock, rng, 5)
    slots = store.read(lambda tx: History.of(tx, tx.campaign("ads")).fine_slots(5))
    wanted = added_up(store, "ads", 5)
    decided, spent = COUNTS.index("decided"), COUNTS.index("spent")
    assert {(at, arm): (d, s) for at, arm, d, s in slots} == {
        key: (row[decided], row[spent]) for key, row in wanted.items()
    }
    monkeypatch.setattr(rollups, "EVENTS_READ_MAX", 20)
    assert store.read(lambda tx: History.of(tx, tx.campaign("ads")).fine_slots(5)) is None


def test_rolling_up_ends_when_it_is_told_to_and_goes_on_later(store, monkeypatch):
    monkeypatch.setattr(rollups, "EVENTS_AT_ONCE", 5)
    clock = Clock(BEGIN)
    engine = DecisionService(store, clock)
    id = engine.create("ads", "bts", budget=60.0, arms={"search": 1.0, "mail": 0.5})
    play(engine, clock, random.Random(5), 40)
    before = read(store, "ads", HOUR)
    roll_up(store, stopping=lambda: True)
    assert 0 < store.read(lambda tx: tx.rollups().watermark(id).seq) < store.read(lambda tx: tx.last_event(id))
    assert read(store, "ads", HOUR) == before
    roll_up(store)
    assert store.read(lambda tx: tx.rollups().watermark(id).seq == tx.last_event(id))
    assert read(store, "ads", HOUR) == before


def test_rolling_up_twice_changes_nothing_and_old_minutes_go(store):
    clock = Clock(BEGIN)
    engine = DecisionService(store, clock)
    engine.create("ads", "bts", budget=60.0, arms={"search": 1.0, "mail": 0.5})
    play(engine, clock, random.Random(5), 40)
    assert roll_up(store) == 1
    before = read(store, "ads", HOUR)
    assert roll_up(store) == 0
    assert read(store, "ads", HOUR) == before
    id = store.read(lambda tx: tx.campaign("ads").id)
    # the campaign's clock is years ahead of the store's or behind it; only minutes are ever dropped
    assert len(store.read(lambda tx: tx.rollups().rows(id, MINUTE))) in (0, len(read(store, "ads", MINUTE)))
    store.write(lambda tx: tx.rollups().add(id, [], tx.rollups().watermark(id), clock.now + HOUR))
    assert store.read(lambda tx: tx.rollups().rows(id, MINUTE)) == []
    assert read(store, "ads", HOUR) == before
    assert verify(store, "ads") == []


@pytest.mark.parametrize(
    ("tampering", "found"),
    [
        ("UPDATE rollup SET spent = spent + 1 WHERE span = 86400", "rollups of the day"),
        ("UPDATE rollup SET reward = reward + 1 WHERE span = 86400", "rollups of the day"),
        ("UPDATE rollup SET failed_cost = failed_cost + 1 WHERE span = 86400", "rollups of the day"),
        ("UPDATE rollup SET requests_used = requests_used + 1 WHERE span = 86400", "rollups of the day"),
        ("DELETE FROM rollup WHERE span = 86400", "rollups of the day"),
        ("UPDATE rollup SET costs_reported = costs_reported + 1 WHERE span = 3600", "hours"),
        ("UPDATE rollup SET delay_10 = delay_10 + 1 WHERE span = 3600", "hours"),
        ("UPDATE rollup SET costs_reported = costs_reported + 1 WHERE span = 60", "minutes"),
        ("UPDATE rollup_watermark SET seq = seq - 3", "rollups of the day"),
    ],
)
def test_an_audit_finds_tampering(store, tampering, found):
    clock = Clock(BEGIN)
    engine = DecisionService(store, clock)
    engine.create("ads", "bts", budget=60.0, arms={"search": 1.0, "mail": 0.5})
    play(engine, clock, random.Random(5), 40)
    roll_up(store)
    store.write(lambda tx: tx.change(tampering))
    assert any(found in text for text in verify(store, "ads"))


def test_pages_read_what_there_is(store):
    clock = Clock(BEGIN)
    engine = DecisionService(store, clock)
    id = engine.create("ads", "bts", budget=60.0, arms={"search": 1.0, "mail": 0.5}, actor="bb_maker")
    clock.now += 1.0
    other = engine.create("other", "bts", budget=5.0, arms={"a": 1.0, "b": 0.5})
    play(engine, clock, random.Random(5), 80)
    engine.decide("ads", "held")
    engine.retire_arm("ads", "mail", actor="bb_tester")
    roll_up(store)
    made = all_decisions(store, "ads")
    pages = store.read(lambda tx: tx.pages().summaries([id, other], tx.now()))
    assert [(each.name, each.arms, each.smallest_cap, each.largest_cap) for each in pages] == [
        ("ads", 1, 1_000_000, 1_000_000), ("other", 2, 500_000, 1_000_000)
    ]  # fmt: skip
    assert pages[0].last_decision_at == max(each.created_at for each in made)
    assert store.read(lambda tx: tx.pages().names([id])) == {id: "ads"}
    hourly = store.read(lambda tx: tx.pages().spent_by(3600, [id, other], BEGIN - DAY))
    assert sum(hourly[id].values()) == engine.account("ads").spent
    assert hourly[other] == {}
    pending = [each for each in made if each.hold.state == "pending"]
    holds = store.read(lambda tx: tx.pages().holds(id, clock.now, [60.0, 1e9]))
    young = sum(each.created_at > clock.now - 60.0 for each in pending)
    assert holds.counts == [young, len(pending), len(pending)]
    assert holds.expires_at == min(each.expires_at for each in pending)
    events = store.read(lambda tx: tx.pages().operator_events(id, 100))
    assert [events[0].kind, events[0].actor, events[-1].kind, events[-1].actor] == [
        "arm retired", "bb_tester", "created", "bb_maker"
    ]  # fmt: skip
    assert store.read(lambda tx: tx.pages().last_event()) == events[0].seq
    assert store.read(lambda tx: tx.pages().event(events[0].seq)) == events[0]
    assert store.read(lambda tx: tx.pages().event(10**9)) is None
    view = campaign_json(store.read(lambda tx: campaign_view(tx, tx.campaign(id), PageQuery())))
    assert sum(arm["decided"] for arm in view["arms"]) == len(made)
    assert store.read(lambda tx: overview(tx, ListQuery("nobody is called that"), None)).lines == []
    listed = store.read(lambda tx: overview(tx, ListQuery(), None)).as_json()
    assert [row["name"] for row in listed["campaigns"]] == ["ads", "other"]


def test_refusals_are_counted_by_hour_and_reason(store):
    engine = DecisionService(store, Clock(BEGIN))
    id = engine.create("ads", "bts", budget=60.0, arms={"search": 1.0, "mail": 0.5})
    refusals = Refusals()
    for at, campaign, reason in [(BEGIN, "ads", "paused"), (BEGIN + 1, id, "paused"), (BEGIN + HOUR, id, "exhausted")]:
        refusals.count(campaign, reason, at)
    refusals.flush(store)
    refusals.count("ads", "paused", BEGIN + HOUR)
    refusals.flush(store)
    refusals.flush(store)
    hour = int(BEGIN // HOUR) * HOUR
    assert store.read(lambda tx: tx.rollups().refusals(id, hour)) == {"paused": 3, "exhausted": 1}
    assert store.read(lambda tx: tx.rollups().refusals(id, hour + HOUR)) == {"paused": 1, "exhausted": 1}


def test_refusals_are_written_in_one_order_and_lock_no_campaign(store, monkeypatch):
    """Servers that have refused in other orders never wait for each other in a circle."""
    campaigns = [
        DecisionService(store).create(f"ads {number}", "bts", 10.0, {"a": 1.0, "b": 1.0}) for number in range(5)
    ]
    transaction = store.write(type)
    done = []
    for name in ("_execute", "_execute_many"):
        run = getattr(transaction, name)
        monkeypatch.setattr(transaction, name, lambda self, *asked, run=run: done.append(asked) or run(self, *asked))
    for order in (campaigns, campaigns[::-1]):
        refusals = Refusals()
        for number, campaign in enumerate(order):
            refusals.count(campaign, "paused", BEGIN)
            refusals.count(f"ads {number}", "exhausted", BEGIN)
        refusals.flush(store)
        [(statement, rows)] = done
        assert statement.startswith("INSERT INTO refusal")
        assert [row[0] for row in rows] == sorted(campaigns * 2)
        assert rows == sorted(rows)
        done.clear()
    kept = [store.read(lambda tx, id=id: tx.rollups().refusals(id, 0)) for id in campaigns]
    assert kept == [{"paused": 2, "exhausted": 2}] * 5


def test_postgres_refusals_are_written_while_other_servers_have_their_campaigns(tmp_path):
    with STORES["postgres"](tmp_path) as opener, opener() as one, opener() as other:
        campaigns = [
            DecisionService(one).create(f"ads {number}", "bts", 10.0, {"a": 1.0, "b": 1.0}) for number in range(3)
        ]
        refusals = Refusals()
        for campaign in campaigns:
            refusals.count(campaign, "paused", BEGIN)

        def meanwhile(tx):
            for campaign in reversed(campaigns):
                tx.campaign(campaign)
            refusals.flush(one)

        other.write(meanwhile)
        assert [one.read(lambda tx, id=id: tx.rollups().refusals(id, 0)) for id in campaigns] == [{"paused": 1}] * 3


def test_a_name_is_counted_once_however_it_is_written():
    """What a client may write in very many ways fills no memory."""
    refusals = Refusals()
    for name in ("\xe9t\xe9", "e\u0301t\xe9", "\xe9te\u0301", "e\u0301te\u0301"):
        refusals.count(name, "paused", BEGIN)
    assert len(refusals) == 1


def test_refusals_of_a_campaign_that_was_deleted_keep_back_no_others(store):
    """A server counts in memory for some seconds, in which a closed campaign that programs still ask may be deleted."""
    engine, refusals = DecisionService(store, Clock(BEGIN)), Refusals()
    ids = [engine.create(name, "bts", budget=10.0, arms={"a": 1.0, "b": 0.5}) for name in ("ads", "deleted")]
    for name in ("ads", "deleted"):
        refusals.count(name, "closed", BEGIN)
    engine.set_status("deleted", "closed")
    engine.retention.delete("deleted")
    refusals.flush(store)
    assert len(refusals) == 0
    assert [store.read(lambda tx, id=id: tx.rollups().refusals(id, 0)) for id in ids] == [{"closed": 1}, {}]
