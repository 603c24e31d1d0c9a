"""Leases beside what else there is: audits that stream, batches in slices, wrong clocks, setting back."""

import asyncio
from functools import partial

import pytest

from budgetbandits.errors import HoldRefused
from budgetbandits.service import decisions
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.audit.slices import Cut
from budgetbandits.service.feedback import FeedbackReport
from budgetbandits.service.ledger import DAY
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.contract import Scope
from clock import Clock
from stores import STORES, all_decisions, all_events, tamper

NOON = 20_000.5 * DAY
ARMS = {"search": 1.0, "mail": 0.5}


@pytest.fixture
def clock():
    return Clock(NOON)


@pytest.fixture
def two(engines):
    """Two servers with a lease each of 5 of their campaign's 100, and an open decision each."""
    engines[0].create("ads", "bts", 100.0, ARMS, lease=5.0, lease_seconds=10.0, hold_seconds=60.0)
    for number, engine in enumerate(engines):
        engine.decide("ads", f"open {number}")
    return engines


def leases(store):
    return store.read(lambda tx: tx.leases(tx.campaign("ads").id))


# --- audits ------------------------------------------------------------------------------------------------------


class Meanwhile:
    """A store on which something happens right after so many reads."""

    def __init__(self, store, reads, act):
        self._store, self._reads, self._act = store, reads, act

    def read(self, work, urgent=False):
        answer = self._store.read(work, urgent)
        self._reads -= 1
        if self._reads == 0:
            self._act()
        return answer


def tells(engine, other):
    engine.feedback(engine.decide("ads", "open 0").decision, reward=1.0, cost=0.25)
    other.feedback(other.decide("ads", "open 1").decision, cost=0.25)


def decides(engine, _other):
    engine.decide("ads", "meanwhile")


def leases_anew(engine, _other):
    third = DecisionService(engine._store, engine._clock)
    third.feedback(third.decide("ads", "of a third server").decision, reward=1.0, cost=0.25)


def ends_all(engine, other):
    engine.top_up("ads", 1.0)
    tells(engine, other)


def changes_nothing(_engine, _other):
    pass


@pytest.mark.parametrize("reads", [2, 3, 4])  # the first is of the number of its checkpoint
@pytest.mark.parametrize("change", [tells, decides, leases_anew, ends_all, changes_nothing])
def test_an_audit_leaves_out_what_was_committed_later_with_a_lower_number(tmp_path, clock, change, reads):
    """As PostgreSQL numbers events: what was begun under one lock before, and committed after, what another had."""
    renumber = partial(tamper, tmp_path / "money.db")
    with STORES["sqlite"](tmp_path) as opener, opener() as store:
        one, other = DecisionService(store, clock), DecisionService(store, clock)
        one.create("ads", "bts", 100.0, ARMS, lease=5.0, lease_seconds=10.0, hold_seconds=60.0)
        for number, engine in enumerate((one, other)):
            engine.decide("ads", f"open {number}")
        last = store.read(lambda tx: tx.last_event(tx.campaign("ads").id))
        renumber("UPDATE event SET seq = 1000 WHERE seq = ?", last)
        before = [event.seq for event in all_events(store, "ads")]

        def act():
            change(one, other)
            renumber("UPDATE event SET seq = seq - 900 WHERE seq > 1000")

        assert verify(Meanwhile(store, reads, act), "ads") == []
        renumber("UPDATE event SET seq = seq + 1000 WHERE seq > ? AND seq < 1000", last)
        assert (len(all_events(store, "ads")) > len(before)) == (change is not changes_nothing)
        assert verify(store, "ads") == []


def test_an_audit_misses_the_events_that_a_lease_says_it_had(tmp_path, clock):
    with STORES["sqlite"](tmp_path) as opener, opener() as store:
        engine = DecisionService(store, clock)
        engine.create("ads", "bts", 100.0, ARMS, lease=5.0, lease_seconds=10.0)
        for number in range(3):
            engine.decide("ads", f"{number}")
        assert tamper(tmp_path / "money.db", "DELETE FROM event WHERE seq = (SELECT max(seq) FROM event)") == 1
        assert any(text.startswith("lease ") for text in verify(store, "ads"))


def test_a_cut_is_what_is_committed_whatever_its_numbers(tmp_path):
    """On PostgreSQL an event of one lease that is not committed yet has a lower number than one of another that is."""
    with STORES["postgres"](tmp_path) as opener, opener() as store, opener() as second:
        one, other = DecisionService(store), DecisionService(second)
        campaign = one.create("ads", "bts", 100.0, ARMS, lease=5.0, lease_seconds=60.0)
        one.decide("ads", "0")
        made = other.decide("ads", "1")
        seen = []

        def slow(tx):
            answer = one.decisions.make(tx, "ads", [("slow", "digest")])
            tx.last_event(campaign)  # to ask for it writes the event that has waited, so that it has its number
            # in an event loop, which needs only the lease of the other server
            asyncio.run(second.perform(*other.feedback_task(FeedbackReport(made.decision, 1.0, 0.25), "ads")))
            seen.append(store.read(lambda tx: Cut.of(tx, campaign)))
            return answer

        store.write(slow, Scope("ads"))
        events = all_events(store, "ads")
        [cut] = seen
        assert [event.kind for event in events if not cut.has(event)] == ["decided"]
        assert events[-1].kind == "settled"
        assert cut.first < cut.last == events[-1].seq
        assert verify(store, "ads") == []


# --- batches -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_a_batch_is_paid_by_the_campaign_and_undone_beside_leases(store, two, monkeypatch, seconds):
    monkeypatch.setattr(decisions, "SLICE_SECONDS", seconds)  # each decision in a transaction of its own, or all in one
    made = two[0].decide_many("ads", "fits", 20)
    assert len({answer.decision for answer in made}) == 20
    assert len(leases(store)) == 2
    with pytest.raises(HoldRefused, match="of 300 fit"):
        two[1].decide_many("ads", "does not fit", 300)
    assert verify(store, "ads") == []
    rows = all_decisions(store, "ads")
    assert {row.lease for row in rows if row.key not in ("open 0", "open 1")} == {None}
    assert sum(row.hold.booked for row in rows) == sum(row.hold.amount for row in rows if row.hold.state == "pending")
    again = two[0].decide_many("ads", "does not fit", 3)  # its keys are free
    assert len(again) == 3
    for engine in two:
        assert engine.decide_many("ads", "fits", 20) == made
        engine.decide("ads", f"single {id(engine)}")
    assert verify(store, "ads") == []


def test_a_batch_takes_the_money_that_is_in_leases(store, two):
    assert len(two[0].decide_many("ads", "nearly all", 98)) == 98
    assert leases(store) == []
    assert verify(store, "ads") == []


# --- time --------------------------------------------------------------------------------------------------------


def test_holds_under_leases_are_found_and_expire(store, two, clock):
    clock.now += 5.5
    two[0].decide("ads", "merges its lease")
    clock.now = NOON + 60.0
    assert two[1].expire_due() == {"ads": 2}
    assert leases(store) == []
    clock.now += 10.0
    assert two[1].expire_due() == {"ads": 1}
    assert verify(store, "ads") == []


def test_a_hold_expires_in_a_lease_that_goes_on(engine, store, clock):
    engine.create("ads", "bts", 100.0, ARMS, lease=5.0, lease_seconds=100.0, hold_seconds=2.0)
    hold = engine.decide("ads", "expires").hold
    clock.now += 3.0
    assert engine.expire_due() == {"ads": 1}
    [lease] = leases(store)
    assert (lease.account.spent, lease.account.held) == (int(hold * 1e6), 0)
    assert engine.expire_due() == {}
    assert verify(store, "ads") == []


def test_a_lease_that_was_merged_by_a_wrong_clock_is_merged_anew(store, two, clock):
    clock.now = NOON + 400 * DAY
    two[0].decide("ads", "far ahead")
    clock.now = NOON + 20.0
    two[0].decide("ads", "now")
    assert max(lease.expires_at for lease in leases(store)) == NOON + 30.0
    assert verify(store, "ads") == []


def test_setting_back_ends_leases_and_gives_their_decisions_less_time(store, two, clock):
    clock.now = NOON + 400 * DAY
    two[0].decide("ads", "far ahead, under a lease")
    clock.now = NOON + 20.0
    two[1].reset_clock("ads")
    assert leases(store) == []
    assert max(row.expires_at for row in all_decisions(store, "ads")) == NOON + 80.0
    assert verify(store, "ads") == []
    clock.now += 60.0
    assert two[1].expire_due() == {"ads": 3}
    assert verify(store, "ads") == []


def test_what_was_decided_under_leases_is_of_no_day(store, two, clock):
    engine = two[0]
    engine.decide_many("ads", "of the campaign's own", 2)
    clock.now = NOON + 400 * DAY
    engine.decide_many("ads", "far ahead", 2)
    clock.now = NOON + 20.0
    engine.reset_clock("ads")
    own = [row.hold.amount for row in all_decisions(store, "ads") if row.key.startswith("of the campaign's own")]
    account = engine.account("ads")
    assert (account.day, account.today) == (20_000 * DAY, sum(own))
    assert verify(store, "ads") == []
    engine.void(engine.decide("ads", "open 0").decision)
    assert verify(store, "ads") == []
