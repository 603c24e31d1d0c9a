"""One budget over several campaigns: never over on either level, whatever happens to its members."""

import asyncio
from collections import Counter
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from budgetbandits.errors import BadParameter, Conflict, HoldRefused, NotFound
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.backup import back_up
from budgetbandits.service.feedback import FeedbackReport
from budgetbandits.service.ledger import Account
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.service import DecisionService
from budgetbandits.service.shared_budgets.audit import verify_shared_budget
from budgetbandits.service.shared_budgets.rules import SharedBudget, SharedSettings, capped, uncapped
from budgetbandits.service.stores.sqlite import SQLiteStore
from clock import Clock
from stores import all_events, in_threads, tampered_copy

ARMS = {"search": 1.0, "mail": 0.5}
MEMBERS = ("spring", "summer")


@pytest.fixture
def marketing(engine):
    """A budget of 5 over two campaigns that may each spend 4."""
    engine.shared_budgets.create("marketing", 5.0)
    for name in MEMBERS:
        engine.create(name, "bts", 4.0, ARMS, shared_budget="marketing")
    return engine


def shared(engine):
    return engine.shared_budgets.account("marketing")


def check(store, engine, *others):
    """The shared account is the sum of its members', and all audits agree; ``others`` have left."""
    total, members = Counter(), [row.name for row in engine.shared_budgets.describe("marketing").campaigns]
    for name in members:
        account = engine.account(name)
        total.update(spent=account.spent, held=account.held, leased=account.leased, overrun=account.overrun)
        assert verify(store, name) == []
    for account in others:
        total.update(spent=account.spent, overrun=account.overrun)
    found = shared(engine)
    assert Account(found.budget, total["spent"], total["held"], total["overrun"], leased=total["leased"],
                   period=found.period, advance=found.advance) == found  # fmt: skip
    assert verify_shared_budget(store, "marketing") == []


def until_refused(engine, names, cost=None, key="", **request):
    """Decide in turn until one is refused; the decisions, and the refusal. Settled for ``cost``, if it is given."""
    made = []
    while True:
        try:
            made.append(engine.decide(names[len(made) % len(names)], f"{key}{len(made)}", **request))
        except HoldRefused as refused:
            return made, refused
        if cost is not None:
            engine.feedback(made[-1].decision, cost=cost, reward=0.0)


def test_the_rules_by_hand():
    budget = SharedBudget("all", Account(100, 10, 20), 0.0, SharedSettings())
    moved = budget.moved(Account(50, 5, 5), Account(50, 8, 0, overrun=2, leased=7))
    assert moved.account == Account(100, 13, 15, overrun=2, leased=7)
    assert budget.moved(Account(50, 5), Account(60, 5)) is budget
    with pytest.raises(ArithmeticError):
        budget.moved(Account(500), Account(500, held=71))
    own = Account(50, 10, 10)
    assert (capped(own, None), capped(own, 30), capped(own, 31)) == (own, own, own)
    assert capped(own, 4) == Account(24, 10, 10)
    assert uncapped(Account(24, 14, 10), own) == Account(50, 14, 10)
    assert budget.joined(Account(90, 30, 40), Account(0)).account == Account(100, 40, 60)
    assert budget.joined(Account(90, 12), Account(10, 10)).account == Account(100, 12, 20)
    with pytest.raises(BadParameter, match="raise that first"):
        budget.joined(Account(90, 31, 40), Account(0))


def test_members_are_refused_when_the_shared_budget_is_spent(store, marketing):
    made, refused = until_refused(marketing, MEMBERS, arms=["search"])
    assert (len(made), refused.reason) == (5, "blocked_by_holds")
    assert "shared budget 'marketing' has 0.00 left next to open holds" in str(refused)
    for answer in made:
        marketing.feedback(answer.decision, cost=0.9, reward=1.0)
    check(store, marketing)
    more, refused = until_refused(marketing, MEMBERS, cost=0.5, key="more", arms=["mail"])
    assert (len(more), refused.reason) == (1, "exhausted")  # 5 · 0.9 + 0.5 are spent
    assert "'marketing' has 0.00 left, 0.50 needed; raise it" in str(refused)
    assert shared(marketing) == Account(5_000_000, 5_000_000)
    marketing.shared_budgets.change("marketing", {"budget": 6.0}, actor="an operator")
    assert len(until_refused(marketing, ["summer"], cost=0.5, key="again", arms=["mail"])[0]) == 2
    check(store, marketing)


def test_a_member_keeps_to_its_own_budget_too(store, marketing):
    made, refused = until_refused(marketing, ["spring"], arms=["search"])
    assert (len(made), refused.reason) == (4, "blocked_by_holds")
    assert "shared budget" not in str(refused)
    assert len(until_refused(marketing, ["summer"], arms=["search"])[0]) == 1
    check(store, marketing)


def test_only_arms_that_the_shared_budget_can_pay_are_chosen(store, marketing):
    until_refused(marketing, MEMBERS, cost=0.9, arms=["search"])  # 4.5 are spent
    answer = marketing.decide("spring", "the last")
    assert answer.arm == "mail"
    event = all_events(store, "spring")[-1]
    assert (event.kind, event.shared_left) == ("decided", 500_000)
    check(store, marketing)


def test_a_cost_above_its_hold_takes_what_the_shared_budget_has(store, marketing):
    """Both hold 0.2 of a cap of 1; the shared budget has 0.1 more. What it cannot pay is an overrun there as well."""
    for number in range(4):
        marketing.feedback(marketing.decide("summer", f"{number}", arms=["search"]).decision, cost=0.925, reward=0.0)
    first, second = (
        marketing.decide("spring", f"{number}", arms=["search"], holds={"search": 0.2}).decision for number in range(2)
    )
    third = marketing.decide("spring", "third", arms=["search"], holds={"search": 0.8}).decision
    marketing.feedback(first, cost=0.25, reward=1.0)  # 0.05 of the 0.1 that is left
    assert marketing.account("spring").overrun == 0
    marketing.feedback(second, cost=1.0, reward=1.0)
    account = marketing.account("spring")
    assert (account.spent, account.overrun, account.status) == (500_000, 750_000, "frozen")
    assert shared(marketing) == Account(5_000_000, 4_200_000, 800_000, 750_000)
    marketing.feedback(third, cost=0.1, reward=1.0)
    check(store, marketing)


def test_voided_and_expired_holds_move_the_shared_budget(store, marketing, clock):
    marketing.void(marketing.decide("spring", "1", arms=["search"]).decision)
    assert shared(marketing).left == 5_000_000
    charged = marketing.decide("spring", "2", arms=["search"]).decision
    marketing.change_terms("summer", {"on_expire": "release"})
    marketing.decide("summer", "3", arms=["search"])
    clock.now += 4000.0
    marketing.expire_due()
    assert shared(marketing) == Account(5_000_000, 1_000_000)
    marketing.feedback(charged, cost=0.3, reward=0.0)
    assert shared(marketing) == Account(5_000_000, 300_000)
    marketing.decide_many("summer", "batch", 3, arms=["search"])
    with pytest.raises(HoldRefused):
        marketing.decide_many("spring", "batch", 3, arms=["search"])
    assert shared(marketing).held == 3_000_000
    check(store, marketing)


def test_a_plan_for_requests_sees_the_smaller_budget(engine, store):
    """With its own 1,000 it could take the expensive arm for each of 100 requests; the shared budget has 20."""
    engine.shared_budgets.create("marketing", 20.0)
    arms = {"large": 1.0, "small": 0.1}
    engine.create("spring", "bts-paced", 1000.0, arms, horizon=100.0, shared_budget="marketing")
    answered = 0
    for number in range(100):
        try:
            made = engine.decide("spring", f"{number}")
        except HoldRefused:
            continue
        answered += 1
        engine.feedback(made.decision, cost=made.hold, reward=1.0 if made.arm == "large" else 0.5)
    assert answered >= 80
    check(store, engine)


def test_campaigns_join_and_leave(store, marketing):
    engine = marketing
    engine.create("autumn", "bts", 4.0, ARMS)
    engine.feedback(engine.decide("autumn", "1", arms=["search"]).decision, cost=0.7, reward=0.0)
    held = engine.decide("autumn", "2", arms=["mail"]).decision
    engine.change_terms("autumn", {"shared_budget": "marketing"}, actor="an operator")
    assert shared(engine) == Account(5_000_000, 700_000, 500_000)
    check(store, engine)
    with pytest.raises(Conflict, match=r"holds 0\.50 of the shared budget"):
        engine.change_terms("autumn", {"shared_budget": None})
    engine.feedback(held, cost=0.4, reward=0.0)
    engine.change_terms("autumn", {"shared_budget": None}, actor="an operator")
    assert shared(engine) == Account(5_000_000, 1_100_000)
    engine.feedback(engine.decide("autumn", "3", arms=["search"]).decision, cost=0.9, reward=0.0)
    check(store, engine, Account(4_000_000, 1_100_000))
    engine.change_terms("autumn", {"shared_budget": "marketing"})  # what it had spent here counts once
    assert shared(engine) == Account(5_000_000, 2_000_000)
    check(store, engine)
    engine.shared_budgets.create("sales", 50.0)
    with pytest.raises(Conflict, match="leave that first"):  # two locks at once could be waited for in a circle
        engine.change_terms("autumn", {"shared_budget": "sales"})
    changes = [event for event in all_events(store, "autumn") if event.kind == "terms changed"]
    assert [event.actor for event in changes] == ["an operator", "an operator", None]


def test_overruns_of_many_members_are_at_most_the_largest_amount(store, engine):
    """Ten of the largest, of which no ten can be added in 64 bits, refuse no member's feedback."""
    engine.shared_budgets.create("marketing", 100.0)
    for number in range(10):
        engine.create(f"member {number}", "bts", 4.0, ARMS, shared_budget="marketing")
        made = engine.decide(f"member {number}", "one", arms=["search"])
        engine.feedback(made.decision, cost=1e12, reward=1.0)
    assert shared(engine) == Account(100_000_000, 10_000_000, overrun=10**18)
    for number in range(10):
        assert verify(store, f"member {number}") == []
    assert verify_shared_budget(store, "marketing") == []


def test_a_member_that_comes_back_needs_no_room_for_what_it_has_spent_here(store, marketing):
    """Spring has spent 3 of 5 and left, and 0.5 are left when it joins again: only what it spent meanwhile is new."""
    engine = marketing
    for number in range(3):
        engine.feedback(engine.decide("spring", f"{number}", arms=["search"]).decision, cost=1.0, reward=0.0)
    engine.change_terms("spring", {"shared_budget": None})
    for number in range(3):
        engine.feedback(engine.decide("summer", f"{number}", arms=["mail"]).decision, cost=0.5, reward=0.0)
    engine.feedback(engine.decide("spring", "away", arms=["mail"]).decision, cost=0.25, reward=0.0)
    engine.change_terms("spring", {"shared_budget": "marketing"})
    assert shared(engine) == Account(5_000_000, 4_750_000)
    engine.change_terms("spring", {"shared_budget": None})
    engine.feedback(engine.decide("spring", "away again", arms=["mail"]).decision, cost=0.5, reward=0.0)
    with pytest.raises(BadParameter, match=r"has spent and holds 0\.50, and the shared budget 'marketing' has 0\.25"):
        engine.change_terms("spring", {"shared_budget": "marketing"})
    check(store, engine, Account(4_000_000, 3_250_000))


def test_what_cannot_join(marketing):
    engine = marketing
    with pytest.raises(NotFound, match="no shared budget 'sales'"):
        engine.create("winter", "bts", 4.0, ARMS, shared_budget="sales")
    with pytest.raises(BadParameter, match="in EUR, the shared budget 'marketing' in none"):
        engine.create("winter", "bts", 4.0, ARMS, shared_budget="marketing", currency="EUR")
    engine.create("rich", "bts", 40.0, ARMS)
    for number in range(7):
        engine.feedback(engine.decide("rich", f"{number}", arms=["search"]).decision, cost=0.9, reward=0.0)
    with pytest.raises(BadParameter, match=r"has spent and holds 6\.30, and the shared budget 'marketing' has 5\.00"):
        engine.change_terms("rich", {"shared_budget": "marketing"})
    assert engine.describe("rich").shared_budget is None
    assert shared(engine) == Account(5_000_000)


def test_created_and_changed_once(engine, store):
    for _ in range(2):
        engine.shared_budgets.create("marketing", 5.0, currency="EUR")
        engine.shared_budgets.change("marketing", {"budget": 7.0})
        engine.shared_budgets.change("marketing", {"budget": 5.0})
    with pytest.raises(Conflict, match="already"):
        engine.shared_budgets.create("marketing", 6.0, currency="EUR")
    engine.create("spring", "bts", 4.0, ARMS, shared_budget="marketing", currency="EUR")
    engine.decide("spring", "1", arms=["search"])
    with pytest.raises(BadParameter, match=r"use 1\.00, which is spent and held"):
        engine.shared_budgets.change("marketing", {"budget": 0.5})
    with pytest.raises(BadParameter, match="set a period"):
        engine.shared_budgets.change("marketing", {"unspent": "carry"})
    with pytest.raises(BadParameter, match="'currency' is nothing"):
        engine.shared_budgets.change("marketing", {"currency": "USD"})
    with pytest.raises(NotFound):
        engine.shared_budgets.describe("sales")
    check(store, engine)


def test_a_clone_is_a_member_and_a_deleted_one_leaves_what_it_spent(store, marketing, tmp_path):
    engine = marketing
    engine.feedback(engine.decide("spring", "1", arms=["search"]).decision, cost=0.75, reward=1.0)
    engine.clone("spring", "autumn")
    engine.decide("autumn", "1", arms=["search"])
    check(store, engine)
    engine.set_status("spring", "closed")
    engine.retention.delete("spring")
    assert [row.name for row in engine.shared_budgets.describe("marketing").campaigns] == ["autumn", "summer"]
    assert shared(engine) == Account(5_000_000, 750_000, 1_000_000)
    check(store, engine, Account(4_000_000, 750_000))


def test_pruned_members_are_audited_from_their_checkpoints(store, marketing, clock, tmp_path):
    engine = marketing
    for number in range(6):
        clock.now += 86_400.0
        name = MEMBERS[number % 2]
        engine.feedback(engine.decide(name, f"{number}").decision, cost=0.2, reward=1.0)
    roll_up(store)
    engine.retention._rest = 0.0
    assert engine.retention.prune("spring", tmp_path, 2.0).events
    engine.decide("summer", "later")
    check(store, engine)
    assert verify(store, "spring", archive=tmp_path) == []


def test_no_member_decides_until_all_have_said_what_they_spent_since_a_copy(store, marketing):
    engine = marketing
    engine.feedback(engine.decide("spring", "1", arms=["search"]).decision, cost=0.5, reward=0.0)
    engine.mark_restored(actor="an operator")
    assert engine.shared_budgets.describe("marketing").unreported == 2
    engine.set_status("spring", "active", spent_since=1.0)
    with pytest.raises(HoldRefused, match="what 1 of its campaigns has spent since") as refused:
        engine.decide("spring", "2")
    assert refused.value.reason == "paused"
    with pytest.raises(Conflict, match="spent since"):
        engine.set_status("summer", "closed")
    with pytest.raises(Conflict, match="resume it first"):
        engine.change_terms("summer", {"shared_budget": None})
    engine.set_status("summer", "active", spent_since=3.9)  # the shared budget has 3.5 left
    assert engine.account("summer").overrun == 400_000
    assert shared(engine) == Account(5_000_000, 5_000_000, overrun=400_000)
    check(store, engine)
    engine.shared_budgets.change("marketing", {"budget": 9.0})
    engine.decide("spring", "3")
    check(store, engine)


def test_a_copy_with_members(tmp_path):
    with SQLiteStore(tmp_path / "money.db") as store:
        engine = DecisionService(store)
        engine.shared_budgets.create("marketing", 5.0)
        engine.create("spring", "bts", 4.0, ARMS, shared_budget="marketing", lease=1.0)
        engine.decide("spring", "1")
        back_up(tmp_path / "money.db", tmp_path / "copy.db")
    with SQLiteStore(tmp_path / "copy.db") as copy:
        engine = DecisionService(copy)
        assert engine.mark_restored() == ["spring"]
        assert shared(engine).leased == 0
        engine.set_status("spring", "active", spent_since=0.0)
        engine.decide("spring", "2")
        check(copy, engine)


@pytest.mark.parametrize("unspent", ["lapse", "carry"])
def test_months_of_a_shared_budget(store, unspent):
    """Each month gets 10: what January leaves lapses, or is there in February."""
    zone = ZoneInfo("Europe/Berlin")
    clock = Clock(datetime(2026, 1, 15, tzinfo=zone).timestamp())
    engine = DecisionService(store, clock)
    engine.shared_budgets.create("marketing", 10.0, period="month", unspent=unspent, time_zone="Europe/Berlin")
    for name in MEMBERS:
        engine.create(name, "bts", 1000.0, ARMS, shared_budget="marketing")
    for number in range(3):
        engine.feedback(engine.decide("spring", f"{number}", arms=["search"]).decision, cost=1.0, reward=0.0)
    open_hold = engine.decide("summer", "held", arms=["search"])
    clock.now = datetime(2026, 2, 1, tzinfo=zone).timestamp() - 1.0
    assert engine.decide("spring", "last").hold <= 1.0
    before = shared(engine)
    clock.now += 1.0
    made, refused = until_refused(engine, MEMBERS, cost=1.0, key="feb", arms=["search"])
    left = before.left // 1_000_000 if unspent == "carry" else 0
    assert len(made) == 10 + left
    assert refused.reason == "blocked_by_holds"
    engine.feedback(open_hold.decision, cost=1.0, reward=0.0)
    events = [event.kind for event in store.read(lambda tx: tx.events("shared budget marketing"))]
    assert events == ["created", "joined", "joined", "renewed"]
    check(store, engine)


def test_a_period_that_is_spent_says_when_the_next_begins(engine, store, clock):
    clock.now = datetime(2026, 1, 31, 23, tzinfo=ZoneInfo("UTC")).timestamp()
    engine.shared_budgets.create("marketing", 1.0, period="month")
    engine.create("spring", "bts", 1000.0, ARMS, shared_budget="marketing")
    made, refused = until_refused(engine, ["spring"], cost=1.0, arms=["search"])
    assert (len(made), refused.reason, refused.retry_after) == (1, "period_spent", 3600.0)
    clock.now += 40 * 86_400.0  # a clock that is wrong, and then right again
    engine.decide("spring", "ahead", arms=["search"])
    clock.now -= 40 * 86_400.0
    engine.reset_clock("spring")
    assert shared(engine).period == datetime(2026, 1, 1, tzinfo=ZoneInfo("UTC")).timestamp()
    check(store, engine)


def test_what_is_changed_before_the_first_decision_of_a_period_is_of_that_period(engine, store, clock):
    """Another budget, another time zone, a member that joins, and what was spent since a copy: each renews first."""
    clock.now = datetime(2026, 1, 31, tzinfo=ZoneInfo("UTC")).timestamp()
    engine.shared_budgets.create("marketing", 2.0, period="month")
    engine.create("spring", "bts", 1000.0, ARMS, shared_budget="marketing")
    until_refused(engine, ["spring"], cost=1.0, arms=["search"])  # January's 2 are spent
    clock.now = datetime(2026, 2, 2, tzinfo=ZoneInfo("UTC")).timestamp()
    engine.shared_budgets.change("marketing", {"time_zone": "Europe/Berlin", "period_budget": 3.0})
    assert shared(engine) == Account(4_000_000, 2_000_000, period=clock.now - 86_400 - 3600)
    assert len(until_refused(engine, ["spring"], cost=1.0, key="feb", arms=["search"])[0]) == 2
    clock.now += 28 * 86_400.0
    engine.mark_restored()
    engine.set_status("spring", "active", spent_since=1.0)
    assert (shared(engine).left, shared(engine).overrun) == (2_000_000, 0)
    until_refused(engine, ["spring"], cost=1.0, key="mar", arms=["search"])
    engine.create("summer", "bts", 1000.0, ARMS)
    engine.feedback(engine.decide("summer", "1", arms=["search"]).decision, cost=1.0, reward=0.0)
    clock.now += 31 * 86_400.0
    engine.change_terms("summer", {"shared_budget": "marketing"})
    assert shared(engine).left == 2_000_000
    check(store, engine)


@pytest.mark.parametrize("terms", [{}, {"horizon": 200.0}], ids=["bts", "bts-paced"])
def test_leases_of_two_servers_and_two_campaigns(opener, clock, terms):
    """What is leased is taken from the shared budget; in the end less than one hold of it is left, and nothing more
    than it has was spent."""
    with opener() as one, opener() as other:
        engines = [DecisionService(each, clock) for each in (one, other)]
        engines[0].shared_budgets.create("marketing", 30.0)
        for name in MEMBERS:
            lease = {"lease": 3.0, "lease_seconds": 10.0}
            engines[0].create(name, None, 40.0, ARMS, shared_budget="marketing", **lease, **terms)
        number, refused, leased = 0, 0, 0
        while refused < 8:
            engine, name = engines[number % 2], MEMBERS[number // 2 % 2]
            number += 1
            try:
                made = engine.decide(name, f"{number}")
            except HoldRefused:
                refused += 1
                clock.now += 11.0
                engine.expire_due()
                continue
            engine.feedback(made.decision, cost=made.hold, reward=1.0)
            leased += shared(engine).leased > 0
        assert leased > 20
        clock.now += 20.0
        engines[0].expire_due()
        assert shared(engines[0]).leased == 0
        assert 0 <= shared(engines[0]).left < 500_000
        check(one, engines[0])


def test_an_audit_of_leases_takes_both_budgets_as_they_were_after_them(store, engine, clock):
    """The member's own 12 are less than the shared 14 after every lease, and would not be before it."""
    engine.shared_budgets.create("marketing", 14.0)
    engine.create("spring", "bts", 12.0, ARMS, shared_budget="marketing", lease=4.0, lease_seconds=10.0)
    engine.create("summer", "bts", 12.0, ARMS, shared_budget="marketing", lease=1.0, lease_seconds=10.0)
    for number in range(12):
        made = engine.decide(MEMBERS[number % 2], f"{number}")
        engine.feedback(made.decision, cost=made.hold, reward=1.0)
        clock.now += 3.0
    leased = [event.shared_left for event in all_events(store, "spring") if event.kind in ("leased", "merged")]
    assert None in leased
    check(store, engine)


def test_an_audit_finds_what_was_changed(tmp_path, clock):
    path = tmp_path / "money.db"
    with SQLiteStore(path) as store:
        engine = DecisionService(store, clock)
        engine.shared_budgets.create("marketing", 3.0)
        for name in MEMBERS:
            engine.create(name, "bts", 4.0, ARMS, shared_budget="marketing")
        until_refused(engine, MEMBERS, cost=0.3)
        check(store, engine)

    def found(statement):
        with tampered_copy(path, statement) as store:
            return verify_shared_budget(store, "marketing")

    assert "row says" in found("UPDATE shared_budget SET spent = spent - 1")[0]
    assert "row says" in found("UPDATE shared_budget SET budget = budget + 1")[0]
    last = "(SELECT MAX(seq) FROM event WHERE shared_left IS NOT NULL)"
    assert any("was left of" in each for each in found(f"UPDATE event SET shared_left = 1500000 WHERE seq = {last}"))
    assert any("was left of" in each for each in found(f"UPDATE event SET shared_left = NULL WHERE seq = {last}"))
    assert found("UPDATE campaign SET spent = spent - 1 WHERE name = 'spring'")
    assert any(
        "by its events" in e for e in found("UPDATE campaign_name SET shared_budget = NULL WHERE name = 'spring'")
    )
    assert any(
        "cannot" in each or "row says" in each
        for each in found("UPDATE campaign SET settings = '{' WHERE name = 'spring'")
    )


def test_many_workers_over_many_campaigns_get_exactly_what_there_is(opener):
    """Forty at once over four campaigns, half from event loops of two servers and half from threads: the shared budget
    has money for exactly 37 decisions, and exactly 37 are made."""
    with opener() as one, opener() as other:
        engines = [DecisionService(each) for each in (one, other)]
        engines[0].shared_budgets.create("marketing", 37.0)
        names = [f"campaign {number}" for number in range(4)]
        for name in names:
            engines[0].create(name, "bts", 100.0, {"a": 1.0, "b": 1.0}, shared_budget="marketing")

        reasons = Counter()

        async def client(engine, store, worker):
            made = 0
            for number in range(3):
                name = names[(worker + number) % 4]
                try:
                    [answer] = await store.perform(*engine.decision_task(name, f"{worker} {number}"))
                    if number == 1:
                        await store.perform(*engine.feedback_task(FeedbackReport(answer.decision, 1.0, 1.0), name))
                    made += 1
                except HoldRefused as refused:
                    reasons[refused.reason] += 1
            return made

        async def clients(side):
            store = (one, other)[side]
            return sum(await asyncio.gather(*(client(engines[side], store, side * 100 + each) for each in range(10))))

        def thread(worker):
            if worker < 2:
                return asyncio.run(clients(worker))
            made = 0
            for number in range(3):
                try:
                    engines[worker % 2].decide(names[(worker + number) % 4], f"thread {worker} {number}")
                    made += 1
                except HoldRefused:
                    pass
            return made

        assert sum(in_threads(thread, range(12))) == 37
        assert set(reasons) <= {"blocked_by_holds", "exhausted"}
        account = shared(engines[0])
        assert account.spent + account.held == 37_000_000
        check(one, engines[0])
