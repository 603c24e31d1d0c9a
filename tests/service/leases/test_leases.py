"""Leases: what is promised of them by hand, on two servers that share a store; every policy; tampering."""

import random
from dataclasses import replace

import pytest

from budgetbandits import POLICIES
from budgetbandits.errors import AlreadyResolved, HoldRefused, StoreError
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.campaign_session import CampaignSession
from budgetbandits.service.leases import lending
from budgetbandits.service.ledger import Account, to_units
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore
from deep import EVERY_POLICY
from stores import all_events, tampered_copy

ARMS = {"search": 1.0, "mail": 0.5}


@pytest.fixture
def store(memory_store):
    return memory_store


@pytest.fixture
def two(engines):
    """Two servers on one campaign that leases 5 of its 100 at a time."""
    engines[0].create("ads", "bts", 100.0, ARMS, lease=5.0, lease_seconds=10.0, hold_seconds=60.0)
    return engines


def leases(store):
    return store.read(lambda tx: tx.leases(tx.campaign("ads").id))


def kinds(store):
    return [event.kind for event in all_events(store, "ads")]


def test_accounts_of_a_campaign_and_its_lease():
    account, lease = lending.lend(Account(100, 10), 40)
    assert (account, lease) == (Account(100, 10, leased=40), Account(40))
    lease, hold = lending.place(lease, 30)
    lease = replace(lease, spent=5, requests_used=2)
    assert lending.place(lease, 1)[0].requests_used == 2
    account, lease = lending.merge(account, lease)
    assert (account, lease) == (Account(100, 15, leased=35, requests_used=2), Account(35, 0, 30))
    account, lease = lending.resize(account, lease, 60)
    assert (account, lease) == (Account(100, 15, leased=60, requests_used=2), Account(60, 0, 30))
    assert lending.give_back(account, replace(lease, spent=7, requests_used=3)) == Account(100, 22, 30, requests_used=5)
    with pytest.raises(ArithmeticError):
        lending.lend(account, 26)
    with pytest.raises(ArithmeticError):
        lending.place(lease, 31)
    assert hold.amount == 30


def test_under_a_lease_neither_the_campaign_nor_its_arms_are_written(store, two):
    two[0].feedback(two[0].decide("ads", "first").decision, reward=1.0, cost=0.1)
    before = dict(store.campaigns), dict(store.arms)
    for number in range(3):
        two[0].feedback(two[0].decide("ads", f"{number}").decision, reward=1.0, cost=0.25)
        two[0].void(two[0].decide("ads", f"void {number}").decision)
    assert (store.campaigns, store.arms) == before
    [lease] = leases(store)
    assert lease.account == Account(5_000_000, 850_000, requests_used=4)
    assert to_units(two[0].account("ads").leased) == two[0].describe("ads").leased == 5.0


def test_each_server_has_its_own_lease_and_hears_what_the_other_was_told(store, two, clock):
    answers = [two[number % 2].decide("ads", f"{number}") for number in range(4)]
    assert len(leases(store)) == 2
    for number, answer in enumerate(answers):
        two[1 - number % 2].feedback(answer.decision, reward=1.0, cost=0.1)
    held = two[0]._leases._held[answers[0].campaign]
    assert held.session.state.pulls.sum() == 0
    two[0].decide("ads", "next")
    assert held.session.state.pulls.sum() == 2  # of its own lease, though the other server was told
    clock.now += 6.0
    two[0].decide("ads", "merges")
    two[1].decide("ads", "merges too")
    assert kinds(store).count("merged") == 2
    assert two[1]._leases._held[answers[0].campaign].session.state.pulls.sum() == 4


def test_a_lease_goes_on_from_what_the_campaign_knows_when_it_is_merged(store, two, clock):
    two[0].decide("ads", "one")
    for number in range(20):
        two[1].feedback(two[1].decide("ads", f"other {number}").decision, reward=1.0, cost=0.01)
    clock.now += 6.0
    two[1].decide("ads", "the other merges")
    two[0].decide("ads", "and the first")
    assert two[0]._leases._held[store.read(lambda tx: tx.campaign("ads")).id].session.state.pulls.sum() == 20


def test_choices_that_leave_a_trace_are_counted_when_a_lease_is_merged(engine, store, clock):
    engine.create("ads", "epsilon-first:epsilon=0.9", 100.0, ARMS, lease=5.0, lease_seconds=10.0)
    for number in range(3):
        engine.decide("ads", f"{number}")
    assert store.read(lambda tx: tx.campaign("ads")).learned["single"]["turn"] == 0
    clock.now += 6.0
    engine.decide("ads", "merges")
    assert store.read(lambda tx: tx.campaign("ads")).learned["single"]["turn"] == 3


def test_a_lease_that_runs_low_is_filled_up(store, two):
    for number in range(30):
        two[0].decide("ads", f"{number}")
    assert "merged" in kinds(store)
    [lease] = leases(store)
    assert lease.account.held >= 15_000_000
    assert two[0].account("ads").held == 0


def test_the_lease_of_a_server_that_is_gone_is_charged_for_what_its_events_show(store, two, clock):
    told, open = two[0].decide("ads", "told"), two[0].decide("ads", "open")
    two[0].feedback(told.decision, reward=1.0, cost=0.2)
    clock.now += 9.0
    assert two[1].expire_due() == {}
    assert len(leases(store)) == 1
    clock.now += 1.0
    assert two[1].expire_due() == {}
    account = two[1].account("ads")
    assert (account.spent, to_units(account.held), account.leased) == (200_000, open.hold, 0)
    assert leases(store) == []
    assert two[1].describe("ads").arms[list(ARMS).index(told.arm)].pulls == 1
    two[1].feedback(open.decision, reward=0.0, cost=0.1)  # at the campaign now
    two[0].decide("ads", "the first was only slow")
    assert two[1].account("ads").spent == 300_000


@pytest.mark.parametrize(
    "change",
    [
        lambda engine: engine.set_status("ads", "paused"),
        lambda engine: engine.set_status("ads", "closed"),
        lambda engine: engine.top_up("ads", 1.0),
        lambda engine: engine.add_arm("ads", "new", 0.75),
        lambda engine: engine.retire_arm("ads", "mail"),
    ],
)
def test_what_an_operator_changes_holds_for_every_server_at_once(store, two, change):
    for engine in two:
        engine.decide("ads", f"{id(engine)}")
    change(DecisionService(store))
    assert leases(store) == []
    status = two[0].account("ads").status
    for engine in two:
        if status == "active":
            answers = engine.decide_many("ads", "many", 4) if engine is two[0] else [engine.decide("ads", "one more")]
            names = {arm.name for arm in engine.describe("ads").arms if arm.active}
            assert {answer.arm for answer in answers} <= names
        else:
            with pytest.raises(HoldRefused) as refused:
                engine.decide("ads", "one more")
            assert refused.value.reason == status


def test_an_overrun_under_a_lease_freezes_the_campaign_for_every_server(store, two):
    answers = [engine.decide("ads", f"{number}") for number, engine in enumerate(two)]
    two[1].feedback(answers[0].decision, cost=3.0)
    assert leases(store) == []
    account = two[0].account("ads")
    assert (account.status, to_units(account.overrun)) == ("frozen", 3.0 - answers[0].hold)
    for engine in two:
        with pytest.raises(HoldRefused, match="frozen"):
            engine.decide("ads", "after")


@pytest.mark.parametrize("server", [0, 1])
def test_a_cost_between_hold_and_cap_is_paid_by_the_lease_or_the_campaign_and_freezes_nobody(store, two, server):
    """Whoever has the lease books it there; whoever has not ends all leases, as the cap is not known to it."""
    answers = [engine.decide("ads", f"{number}", holds=dict.fromkeys(ARMS, 0.1)) for number, engine in enumerate(two)]
    lent = len(leases(store))
    two[server].feedback(answers[0].decision, cost=0.4, reward=1.0)
    assert len(leases(store)) == (lent if server == 0 else 0)
    two[1 - server].decide("ads", "after")
    two[0].set_status("ads", "paused")
    account = two[0].account("ads")
    assert (account.spent, account.overrun, account.leased) == (400_000, 0, 0)


def test_a_cost_that_its_lease_cannot_pay_is_paid_by_the_campaign(store, two):
    """All leases end, and their money is the campaign's."""
    answer = two[0].decide("ads", "one", arms=["search"], holds={"search": 0.1})
    number = 0
    while leases(store)[0].account.left >= 900_000:
        two[0].decide("ads", f"{number}")
        number += 1
    two[0].feedback(answer.decision, cost=1.0, reward=1.0)
    account = two[0].account("ads")
    assert (account.spent, account.overrun, account.status, leases(store)) == (1_000_000, 0, "active", [])


@pytest.mark.parametrize("on_expire", ["charge", "release"])
def test_a_cost_that_comes_after_its_hold_expired_is_booked_at_the_campaign(engine, store, clock, on_expire):
    engine.create("ads", "bts", 100.0, ARMS, lease=5.0, lease_seconds=1e5, hold_seconds=5.0, on_expire=on_expire)
    answer = engine.decide("ads", "one")
    clock.now += 5.0
    assert engine.expire_due() == {"ads": 1}
    assert leases(store)[0].account.spent == (answer.hold * 1e6 if on_expire == "charge" else 0)
    engine.feedback(answer.decision, reward=1.0)
    engine.feedback(answer.decision, cost=0.2)
    account = engine.account("ads")
    assert (account.spent, account.held, account.overrun, account.leased) == (200_000, 0, 0, 0)
    with pytest.raises(AlreadyResolved):
        engine.void(answer.decision)


def test_the_last_money_is_spent_whoever_has_it(engines):
    """Small leases at the end, then none; money in the lease of a server that nobody asks is not out of reach."""
    one, idle = engines
    one.create("ads", "bts", 30.0, ARMS, lease=6.0, lease_seconds=10.0)
    idle.feedback(idle.decide("ads", "only one").decision, cost=0.5, reward=0.0)
    for number in range(100):
        try:
            answer = one.decide("ads", f"{number}")
        except HoldRefused as refused:
            assert refused.reason == "exhausted"  # noqa: PT017
            break
        one.feedback(answer.decision, cost=answer.hold, reward=1.0)
    account = one.account("ads")
    assert (account.held, account.leased) == (0, 0)
    assert to_units(account.left) < min(ARMS.values())


def test_exhausted_is_said_only_when_nothing_is_held_or_leased(store, clock, engines):
    engine, other = engines
    engine.create("ads", "bts", 4.4, {"a": 1.0, "b": 1.0}, lease=1.0, lease_seconds=10.0)
    first = engine.decide("ads", "0")
    assert leases(store)[0].account == Account(1_000_000, 0, 1_000_000)
    for number in range(1, 4):
        other.decide("ads", f"{number}")
    with pytest.raises(HoldRefused) as refused:
        other.decide("ads", "too many")
    assert (refused.value.reason, refused.value.retry_after) == ("blocked_by_holds", 1.0)
    assert "1.00 in leases" in str(refused.value)
    for number in range(1, 4):
        engine.feedback(engine.decide("ads", f"{number}").decision, cost=1.0)
    with pytest.raises(HoldRefused, match="in leases"):
        other.decide("ads", "too many")
    engine.feedback(first.decision, cost=1.0)
    clock.now += 10.0
    engine.expire_due()
    with pytest.raises(HoldRefused) as refused:
        other.decide("ads", "too many")
    assert refused.value.reason == "exhausted"


def test_one_key_is_one_decision_whichever_server_is_asked(two):
    answer = two[0].decide("ads", "key", {"user": 1})
    assert two[1].decide("ads", "key", {"user": 1}) == answer
    many = two[1].decide_many("ads", "many", 3)
    assert two[0].decide_many("ads", "many", 3) == many
    assert two[0].decide_many("ads", "larger than a lease", 20)[0].campaign == answer.campaign


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_server_whose_commit_fails_goes_on_from_what_was_committed(store, two, when):
    two[0].decide("ads", "one")
    store.breaks = when
    for number in range(3):
        with pytest.raises(StoreError, match=r"gone|lost"):
            two[0].decide("ads", f"lost {number}")
    store.breaks = None
    for number in range(3):
        two[1 - number % 2].feedback(two[0].decide("ads", f"lost {number}").decision, reward=1.0, cost=0.5)


def test_what_was_undone_never_passes_for_what_another_server_was_told(store, two):
    """Both are one event after the same beginning; only the digest tells them apart."""
    answers = [two[0].decide("ads", f"{number}") for number in range(2)]
    store.breaks = "before"
    with pytest.raises(StoreError):
        two[0].feedback(answers[0].decision, reward=1.0, cost=0.5)
    store.breaks = None
    two[1].feedback(answers[1].decision, reward=0.0, cost=0.01)
    two[0].decide("ads", "after")
    session = two[0]._leases._held[answers[0].campaign].session
    [told] = [row for row in store.decisions.values() if row.reward is not None]
    assert session.state.pulls.sum() == 1
    assert (told.id, session.state.statistics[0].sum()) == (answers[1].decision, 2.0)  # the prior's alone, 1 an arm


def test_a_choice_that_fails_halfway_leaves_nothing_behind(store, monkeypatch):
    """A choice of this policy changes whose turn it is."""
    engine = DecisionService(store)
    engine.create("ads", "epsilon-first:epsilon=0.5", 100.0, ARMS, lease=5.0, lease_seconds=1e6)
    engine.decide("ads", "one")
    choose = CampaignSession.next_choice

    def fails(self, *given):
        choose(self, *given)
        raise RuntimeError("on purpose")

    with monkeypatch.context() as broken:
        broken.setattr(CampaignSession, "next_choice", fails)
        with pytest.raises(RuntimeError):
            engine.decide("ads", "two")
    engine.decide("ads", "three")


@pytest.mark.parametrize("policy", EVERY_POLICY)
def test_every_policy_spends_a_budget_under_leases_and_the_audit_repeats_it(policy, store, clock, engines):
    known = {"cost_floor": 0.1, "costs": {"search": 0.6, "mail": 0.4, "post": 0.2}}
    needs = {what: known[what] for what in POLICIES[policy]().needs & known.keys()}
    chance = random.Random(3)
    arms = {"search": 1.0, "mail": 0.5, "post": 0.5}
    engines[0].create("ads", policy, 40.0, arms, known=needs, lease=6.0, lease_seconds=10.0)
    open, reason = [], ""
    for number in range(1000):
        clock.now += 0.2
        try:
            open.append(chance.choice(engines).decide("ads", f"{number}"))
        except HoldRefused as refused:
            reason = refused.reason
        if open and chance.random() < 0.9:
            answer = open.pop(chance.randrange(len(open)))
            chance.choice(engines).feedback(answer.decision, reward=chance.random(), cost=answer.hold * 0.7)
        if reason in ("exhausted", "policy_stopped"):
            break
    assert reason in ("exhausted", "policy_stopped")
    assert kinds(store).count("merged") > 3


def test_the_audit_finds_leases_that_were_tampered_with(tmp_path, clock):
    path = tmp_path / "money.db"
    with SQLiteStore(path) as store:
        engine = DecisionService(store, clock)
        engine.create("ads", "bts", 50.0, ARMS, lease=8.0, lease_seconds=20.0)
        for number in range(8):
            clock.now += 2.0
            answer = engine.decide("ads", str(number))
            if number < 7:
                engine.feedback(answer.decision, reward=float(number % 2), cost=0.3)
        assert {"leased", "merged"} < set(kinds(store))
        assert verify(store, "ads") == []
    for statement in (
        "UPDATE lease SET spent = spent + 1",
        "UPDATE lease SET held = held - 1",
        "UPDATE lease SET amount = amount + 1",
        "UPDATE lease SET digest = 'other'",
        "UPDATE campaign SET leased = leased - 1",
        "DELETE FROM lease",
        "DELETE FROM event WHERE kind = 'settled' AND lease_seq = 3",
        "UPDATE event SET lease = NULL, lease_seq = NULL WHERE lease_seq = 3",
        "UPDATE event SET reward = 1 - reward WHERE kind = 'settled'",
        "UPDATE event SET arm = 1 - arm WHERE kind = 'decided'",
    ):
        with tampered_copy(path, statement) as store:
            assert verify(store, "ads") != [], statement
