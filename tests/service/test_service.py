"""Campaigns: each promise by hand, every policy to the end of its money, and the audit that finds tampering."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from budgetbandits import service
from budgetbandits.errors import (
    AlreadyResolved,
    BadParameter,
    BadState,
    Conflict,
    HoldRefused,
    NoArmLeft,
    NotFound,
    RewardOutOfRange,
    UnknownArm,
)
from budgetbandits.service import session_cache
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.campaign_session import CampaignSession
from budgetbandits.service.ledger import to_units
from budgetbandits.service.service import DecisionService
from budgetbandits.service.session_cache import Change
from budgetbandits.service.session_rows import (
    CHANGED_ARMS_MAX,
    campaign_row,
    catch_up,
    changed_since,
    read_session,
)
from budgetbandits.service.stores.sqlite import SQLiteStore
from deep import EVERY_POLICY
from memory_store import MemoryStore
from stores import tampered_copy

ARMS = {"search": 1.0, "mail": 0.5}


@pytest.fixture
def store(memory_store):
    return memory_store


@pytest.fixture
def campaign(engine):
    return engine.create("ads", "bts", budget=10.0, arms=ARMS, hold_seconds=60.0)


def test_a_decision_holds_the_arms_cap_until_it_is_told(engine, campaign):
    answer = engine.decide(campaign, "one")
    assert answer.hold == ARMS[answer.arm]
    assert answer.expires_at == 1060.0
    assert to_units(engine.account(campaign).held) == answer.hold
    engine.feedback(answer.decision, reward=1.0, cost=0.2)
    assert (to_units(engine.account(campaign).spent), engine.account(campaign).held) == (0.2, 0)


def test_the_same_key_is_the_same_decision(engine, campaign):
    first = engine.decide(campaign, "one", {"visitor": 7})
    assert engine.decide(campaign, "one", {"visitor": 7}) == first
    assert to_units(engine.account(campaign).held) == first.hold
    with pytest.raises(Conflict, match="another context"):
        engine.decide(campaign, "one", {"visitor": 8})
    engine.feedback(first.decision, reward=0.0, cost=0.1)
    assert engine.decide(campaign, "one", {"visitor": 7}) == first


def test_cost_now_and_reward_later_are_one_decision_charged_once(engine, campaign):
    answer = engine.decide(campaign, "one")
    engine.feedback(answer.decision, cost=0.25)
    assert to_units(engine.account(campaign).spent) == 0.25
    assert learned(engine, campaign) == 0
    engine.feedback(answer.decision, reward=1.0)
    engine.feedback(answer.decision, reward=1.0)
    engine.feedback(answer.decision, cost=0.25, reward=1.0)
    assert to_units(engine.account(campaign).spent) == 0.25
    assert learned(engine, campaign) == 1
    for other in ({"cost": 0.3}, {"reward": 0.0}):
        with pytest.raises(Conflict, match="already reported"):
            engine.feedback(answer.decision, **other)


def learned(engine, campaign):
    return sum(arm.learned["pulls"] for arm in engine._store.arms[campaign])


def test_refusals_say_why(engine):
    campaign = engine.create("small", "bts", budget=1.0, arms={"a": 1.0, "b": 0.75})
    answer = engine.decide(campaign, "one")
    with pytest.raises(HoldRefused) as refused:
        engine.decide(campaign, "two")
    assert refused.value.reason == "blocked_by_holds"
    engine.feedback(answer.decision, cost=answer.hold, reward=0.0)
    with pytest.raises(HoldRefused) as refused:
        engine.decide(campaign, "two")
    assert refused.value.reason == "exhausted"
    engine.top_up(campaign, 1.0)
    engine.decide(campaign, "two")


def test_only_arms_that_fit_are_chosen(engine):
    """1.2 left: the arm of 2 is out of reach however good it looks."""
    campaign = engine.create("caps", "bts", budget=1.2, arms={"dear": 2.0, "cheap": 0.1})
    for number in range(12):
        assert engine.decide(campaign, str(number)).arm == "cheap"
    with pytest.raises(HoldRefused):
        engine.decide(campaign, "more")


def test_an_expired_hold_is_charged_and_corrected_by_late_feedback(engine, clock, campaign):
    answer = engine.decide(campaign, "one")
    clock.now += 59.0
    assert engine.expire_due() == {}
    clock.now += 1.0
    assert engine.expire_due() == {"ads": 1}
    assert to_units(engine.account(campaign).spent) == answer.hold
    engine.feedback(answer.decision, cost=0.1, reward=1.0)
    assert to_units(engine.account(campaign).spent) == 0.1
    assert learned(engine, campaign) == 1
    with pytest.raises(AlreadyResolved):
        engine.void(answer.decision)


def test_on_expire_release(engine, clock):
    campaign = engine.create("soft", "bts", budget=10.0, arms=ARMS, hold_seconds=1.0, on_expire="release")
    engine.decide(campaign, "one")
    clock.now += 1.0
    engine.expire_due()
    assert engine.account(campaign).left == engine.account(campaign).budget


def test_an_overrun_freezes_the_campaign_and_is_not_lost(engine, campaign):
    answer = engine.decide(campaign, "one")
    engine.feedback(answer.decision, cost=answer.hold + 0.5, reward=1.0)
    account = engine.account(campaign)
    assert (to_units(account.spent), to_units(account.overrun), account.status) == (answer.hold, 0.5, "frozen")
    with pytest.raises(HoldRefused) as refused:
        engine.decide(campaign, "two")
    assert refused.value.reason == "frozen"
    engine.set_status(campaign, "active")
    engine.decide(campaign, "two")


def test_a_daily_cap_waits_for_the_next_day_rather_than_choose_the_cheap(engine, clock):
    """0.6 of the day is left: enough for mail, but search must have its chance as well."""
    campaign = engine.create("daily", "bts", budget=10.0, arms=ARMS, daily_cap=1.6)
    answer = engine.decide(campaign, "one")
    engine.feedback(answer.decision, cost=answer.hold, reward=1.0)
    while True:
        try:
            answer = engine.decide(campaign, answer.decision)
        except HoldRefused as refused:
            found = refused
            break
        engine.feedback(answer.decision, cost=answer.hold, reward=1.0)
    assert (found.reason, found.retry_after) == ("daily_cap", 86_400.0 - 1000.0)
    assert 600_000 < engine.account(campaign).today <= 1_600_000
    clock.now += 86_400.0
    engine.decide(campaign, "tomorrow")
    assert engine.account(campaign).today <= 1_000_000


def test_a_clock_that_is_a_little_slow_does_not_bring_back_the_day_before(store):
    """Two hosts around midnight: the money of neither day is counted anew."""
    midnight = 86_400.0 * 20_000
    fast, slow = DecisionService(store, lambda: midnight + 1.0), DecisionService(store, lambda: midnight - 1.0)
    campaign = slow.create("daily", "bts", budget=10.0, arms={"a": 1.0, "b": 1.0}, daily_cap=2.0)
    for engine in (slow, fast, slow):
        engine.decide(campaign, f"{id(engine)} {engine.account(campaign).held}")
    assert slow.account(campaign).today == 2_000_000
    for engine in (slow, fast):
        with pytest.raises(HoldRefused) as refused:
            engine.decide(campaign, "one more")
        assert refused.value.reason == "daily_cap"


def test_a_paced_campaign_spends_its_budget_evenly(engine, clock):
    campaign = engine.create("slow", "bts", budget=10.0, arms={"a": 0.5, "b": 0.5}, pace_seconds=1000.0)
    decided, reasons = [], set()
    for second in range(1000):
        clock.now = 1000.0 + second
        try:
            answer = engine.decide(campaign, str(second))
        except HoldRefused as refused:
            reasons.add(refused.reason)
            continue
        engine.feedback(answer.decision, cost=0.5, reward=0.0)
        decided.append(second)
    assert reasons == {"paced", "exhausted"}
    assert decided == list(range(0, 951, 50))


def test_a_batch_that_ends_with_an_error_holds_nothing(engine, campaign):
    """Its fortieth decision, in the second slice, is refused: the key is that of another."""
    request = {"holds": dict.fromkeys(ARMS, 0.01)}
    engine.decide(campaign, "batch [39]", **request)
    before = engine.account(campaign)
    with pytest.raises(Conflict, match="another context, request or count"):
        engine.decide_many(campaign, "batch", 100, **request)
    assert engine.account(campaign).held == before.held
    assert engine.decide(campaign, "batch", **request)  # its keys are free again


def test_a_batch_is_all_or_nothing(engine, campaign):
    assert len(engine.decide_many(campaign, "one", 4)) == 4
    before = engine.account(campaign)
    with pytest.raises(HoldRefused, match="of 100 fit") as refused:
        engine.decide_many(campaign, "two", 100)
    assert (refused.value.reason, refused.value.retry_after) == ("blocked_by_holds", 1.0)
    assert engine.account(campaign) == before
    fresh = engine.create("fresh", "bts", budget=10.0, arms=ARMS)
    with pytest.raises(HoldRefused, match="ask for fewer") as refused:
        engine.decide_many(fresh, "two", 100)
    assert (refused.value.reason, refused.value.retry_after) == ("exhausted", None)
    engine.decide(fresh, "single")
    for key in ("single", "batch"):
        with pytest.raises(Conflict, match="another context, request or count"):
            engine.decide_many(fresh, "batch", 2) and engine.decide(fresh, key) and engine.decide_many(fresh, key, 2)
    for count in (0, 1001):
        with pytest.raises(BadParameter, match="count is"):
            engine.decide_many(campaign, "three", count)
    with pytest.raises(BadParameter, match="0 outcomes"):
        engine.feedback_many(campaign, [])


def test_two_engines_with_very_many_arms_catch_up_with_each_other(engines):
    """Each reads only the arms that the other has changed, and the audit repeats every choice among those that rise."""
    campaign = engines[0].create("many", "bts", budget=300.0, arms={f"arm {n}": 1.0 for n in range(300)})
    reads, behind = [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_cache, "read_session", lambda *given: reads.append(1) or read_session(*given))
        patch.setattr(session_cache, "catch_up", lambda *given: behind.append(len(given[2])) or catch_up(*given))
        for number in range(150):
            answer = engines[number // 3 % 2].decide(campaign, str(number))
            engines[number % 2].feedback(answer.decision, reward=float(number % 2), cost=0.5)
        engines[0].add_arm(campaign, "one more", 0.9)
        engines[1].retire_arm(campaign, "arm 7")
        engines[0].decide(campaign, "last")
    assert len(reads) == 2  # once for each engine, in the beginning
    assert 50 < len(behind) <= 152
    assert max(behind) <= 4


def test_a_change_of_very_many_arms_names_none_of_them(engine, campaign):
    row = engine._store.read(lambda tx: tx.campaign(campaign))
    session = read_session(row, engine._store.read(lambda tx: tx.arms(campaign)))
    few = campaign_row(session, campaign_row(session, row, [1]), [0, 1])
    assert changed_since(few, row.tag) == [0, 1]
    assert changed_since(few, few.tag) == []
    assert changed_since(few, "unknown") is None
    assert changed_since(campaign_row(session, few, range(CHANGED_ARMS_MAX + 1)), row.tag) is None


def test_a_damaged_campaign_does_not_keep_the_others_money(store, engine, clock, tampered):
    for name in ("good", "bad", "fine"):
        engine.decide(engine.create(name, "bts", budget=10.0, arms=ARMS, hold_seconds=60.0), "one")
    bad = next(row for row in store.campaigns.values() if row.name == "bad")
    store.campaigns[bad.id] = replace(bad, account=replace(bad.account, held=0))
    clock.now += 60.0
    with pytest.raises(BadState, match="restore an undamaged copy"):
        engine.expire_due()
    assert (engine.account("good").held, engine.account("fine").held) == (0, 0)


def test_a_mind_in_the_middle_of_a_change_is_nobodys(engine, campaign, monkeypatch):
    """A transaction that ends between learning and writing: what was learned must not pass for what was known."""
    answer = engine.decide(campaign, "one")
    monkeypatch.setattr(Change, "_write", lambda *_: 1 / 0)
    with pytest.raises(BadState, match="division by zero"):
        engine.feedback(answer.decision, reward=1.0, cost=0.1)
    monkeypatch.undo()
    engine.feedback(answer.decision, reward=1.0, cost=0.1)
    assert learned(engine, campaign) == 1


def test_voiding(engine, campaign):
    answer = engine.decide(campaign, "one")
    engine.void(answer.decision)
    engine.void(answer.decision)
    assert engine.account(campaign).held == 0
    with pytest.raises(Conflict, match="voided"):
        engine.feedback(answer.decision, reward=1.0, cost=0.1)


def test_a_call_that_brought_something_was_made(engine, campaign):
    answer = engine.decide(campaign, "one")
    engine.feedback(answer.decision, reward=1.0)
    with pytest.raises(Conflict, match="so the call was made"):
        engine.void(answer.decision)
    engine.feedback(answer.decision, cost=0.25)
    made = engine._store.decisions[answer.decision]
    assert (made.hold.charged, made.reward) == (250_000, 1.0)


def test_closed_is_for_good(engine, campaign):
    answer = engine.decide(campaign, "one")
    engine.set_status(campaign, "closed")
    with pytest.raises(HoldRefused):
        engine.decide(campaign, "two")
    with pytest.raises(Conflict, match="closed for good"):
        engine.set_status(campaign, "active")
    for change in (lambda: engine.top_up(campaign, 1.0), lambda: engine.add_arm(campaign, "tv", 0.5)):
        with pytest.raises(Conflict, match="closed for good"):
            change()
    engine.feedback(answer.decision, reward=1.0, cost=0.1)  # what was spent is still booked
    assert to_units(engine.account(campaign).spent) == 0.1


def test_arms_come_and_go(engine, campaign):
    engine.add_arm(campaign, "social", 0.75)
    engine.retire_arm(campaign, "search")
    engine.retire_arm(campaign, "mail")
    assert {engine.decide(campaign, str(n)).arm for n in range(5)} == {"social"}
    with pytest.raises(NoArmLeft, match="last arm"):
        engine.retire_arm(campaign, "social")
    with pytest.raises(UnknownArm, match="the arms are 'search', 'mail', 'social'"):
        engine.retire_arm(campaign, "radio")
    with pytest.raises(Conflict, match="already"):
        engine.add_arm(campaign, "mail", 0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arms": {"one": 1.0}}, "at least two arms"),
        ({"arms": {"one": 1.0, "two": 0.0}}, "cost cap of 'two' is 0"),
        ({"arms": {"one": 1.0, "": 1.0}}, "an arm's name is"),
        ({"arms": {"one": 1.0, "two": math.nan}}, "use a number"),
        ({"budget": 0.1}, "the cheapest pull may cost 0.50"),
        ({"budget": -1.0}, "budget is -1; use a number from 0 to "),
        ({"budget": math.inf}, "budget is inf"),
        ({"name": " "}, "name is ' '"),
        ({"name": "a/b"}, "without a slash"),
        ({"name": ".."}, "without . or .. alone"),
        ({"name": "c" + "0" * 11}, "looks like an id"),
        ({"daily_cap": 0.9}, "most expensive arm"),
        ({"pace_seconds": 0}, "pace_seconds is 0"),
        ({"name": "ads"}, "already"),
        ({"reward_max": 0}, "reward_max is 0"),
        ({"hold_seconds": -5}, "hold_seconds is -5"),
        ({"on_expire": "forget"}, "charge or release"),
        ({"policy": "best"}, "best"),
        ({"policy": "kube-fractional"}, "must know"),
        ({"known": {"colour": 1}}, "cost_floor and costs"),
        ({"horizon": 200}, "leave horizon out, or use bts-paced"),
        ({"policy": "kube", "propensity_draws": 50}, "leave propensity_draws out, or use bts"),
        ({"lease": 0.9}, "the most expensive arm may cost 1.00; raise it"),
        ({"lease": 5.0, "daily_cap": 5.0}, "cannot keep a daily_cap or pace_seconds; leave"),
        ({"lease": 5.0, "pace_seconds": 5.0}, "cannot keep a daily_cap or pace_seconds; leave"),
        ({"lease": 5.0, "lease_seconds": 0.0}, "lease_seconds is 0; use a positive number"),
        ({"period_budget": 3.0}, "set a period, or leave them out"),
        ({"unspent": "carry"}, "set a period, or leave them out"),
        ({"period": "month", "pace_seconds": 100.0}, "has no pace_seconds and no lease"),
        ({"period": "month", "lease": 5.0}, "has no pace_seconds and no lease"),
        ({"period": "year"}, "use week or month"),
        ({"daily_cap": 2.0, "time_zone": "Europe/Berlyn"}, "use a name such as Europe/Berlin"),
        ({"daily_cap": 2.0, "time_zone": "../etc"}, "use a name such as Europe/Berlin"),
        ({"time_zone": "Europe/Berlin"}, "set a daily_cap or a period, or leave time_zone out"),
        ({"on_limit": "cheapest"}, "set one, or let on_limit be refuse"),
        ({"on_limit": "nobody", "daily_cap": 2.0}, "no arm 'nobody'"),
    ],
)
def test_campaigns_that_are_refused(engine, campaign, change, message):
    settings = {"name": "other", "policy": "bts", "budget": 10.0, "arms": ARMS} | change
    with pytest.raises((BadParameter, Conflict, UnknownArm, ValueError), match=message):
        engine.create(**settings)
    assert list(engine._store.campaigns) == [campaign]


@pytest.mark.parametrize("reward", [1.5, -0.1, math.nan, math.inf, True])
def test_a_reward_out_of_range_does_not_keep_its_cost_from_being_booked(engine, campaign, reward):
    answer = engine.decide(campaign, "one")
    for _ in range(2):  # told again, it changes nothing and says the same
        with pytest.raises(RewardOutOfRange, match="the cost that came with it is booked"):
            engine.feedback(answer.decision, cost=0.1, reward=reward)
        account = engine.account(campaign)
        assert (account.spent, account.held) == (100_000, 0)
    assert learned(engine, campaign) == 0
    engine.feedback(answer.decision, reward=1.0)
    assert learned(engine, campaign) == 1


def test_another_reward_than_before_does_not_keep_the_cost_from_being_booked(engine, campaign):
    answer = engine.decide(campaign, "one")
    engine.feedback(answer.decision, reward=1.0)
    with pytest.raises(Conflict, match="the cost that came with it is booked"):
        engine.feedback(answer.decision, cost=0.1, reward=0.0)
    assert (engine.account(campaign).spent, engine.account(campaign).held) == (100_000, 0)
    assert learned(engine, campaign) == 1  # from the reward that was told first


def test_rounding_makes_no_overrun_and_loses_no_cost(engine):
    campaign = engine.create("tiny", "bts", budget=1.0, arms={"a": 0.0000125, "b": 0.0000125})
    for number, cost in enumerate([0.0000125, 125 * 0.0000001, 0.0000125 * (1 + 1e-14), 0.000013, 0.0000004]):
        engine.feedback(engine.decide(campaign, str(number)).decision, cost=cost, reward=0.0)
    account = engine.account(campaign)
    assert (account.spent, account.overrun, account.status) == (4 * 13 + 1, 0, "active")
    engine.feedback(engine.decide(campaign, "over").decision, cost=0.0000131)
    assert (engine.account(campaign).overrun, engine.account(campaign).status) == (1, "frozen")


def test_feedback_that_is_refused_changes_nothing(engine, campaign):
    answer = engine.decide(campaign, "one")
    before = engine.account(campaign)
    for wrong in ({"reward": 1.5}, {"reward": -0.1}, {"reward": math.nan}, {"reward": True}):
        with pytest.raises(RewardOutOfRange):
            engine.feedback(answer.decision, **wrong)
    for wrong in (-0.1, math.nan, math.inf, 1e300):
        with pytest.raises(BadParameter, match="cost is"):
            engine.feedback(answer.decision, cost=wrong)
    with pytest.raises(NotFound, match="no decision"):
        engine.feedback("nothing", cost=0.1)
    with pytest.raises(NotFound, match="no campaign"):
        engine.decide("nothing", "key")
    with pytest.raises(BadParameter, match="1 to 200 characters"):
        engine.decide(campaign, "")
    assert engine.account(campaign) == before


@pytest.mark.parametrize("name", [*EVERY_POLICY, "bts:prior_reward=jeffreys,prior_cost=2/8+3/1,kappa=1.5"])
def test_every_policy_spends_its_budget_and_the_audit_agrees(store, name):
    engine = DecisionService(store)
    known = {"cost_floor": 0.1, "costs": {"a": 0.4, "b": 0.5, "c": 0.2}}
    policy = f"{name}:horizon=200" if name == "moss" else name
    campaign = engine.create("all", policy, budget=12.0, arms={"a": 1.0, "b": 1.0, "c": 0.5}, known=known)
    rng = np.random.default_rng(1)
    for number in range(500):
        try:
            answer = engine.decide(campaign, str(number))
        except HoldRefused as refused:
            end = refused.reason
            break
        engine.feedback(answer.decision, reward=float(rng.random() < 0.5), cost=known["costs"][answer.arm])
        if number % 7 == 0:
            engine = DecisionService(store)  # a restart: everything it knows is in the store
    account = engine.account(campaign)
    assert end in ("exhausted", "policy_stopped")
    assert account.held == 0
    assert account.left < 1_000_000


@pytest.mark.parametrize("name", ["bts", "thompson", "ucb1", "epsilon-first"])
def test_what_was_made_ready_is_used_only_while_it_holds(store, name, monkeypatch):
    """Decisions and feedback in any order, arms that come and go, money for some arms only; an idle moment after
    each step. The audit repeats every choice from the events alone."""
    ahead, made = [], []
    think = CampaignSession.prefetch_choice
    monkeypatch.setattr(
        CampaignSession, "prefetch_choice", lambda session: (think(session), ahead.append(session._prefetched))[0]
    )
    engine = DecisionService(store)
    campaign = engine.create("all", name, budget=60.0, arms={"a": 1.0, "b": 1.0, "c": 0.5})
    rng, open_ones = np.random.default_rng(2), []
    for number in range(400):
        try:
            if open_ones and rng.random() < 0.5:
                told = open_ones.pop(int(rng.integers(len(open_ones))))
                engine.feedback(told.decision, reward=float(rng.random() < 0.5), cost=told.hold * rng.random())
            else:
                open_ones.append(engine.decide(campaign, str(number)))
                made.append(open_ones[-1].decision)
        except HoldRefused:
            continue
        if number in (50, 150):
            engine.add_arm(campaign, f"arm {number}", 0.7)
        if number in (100, 200):
            engine.retire_arm(campaign, "a" if number == 100 else "arm 50")
        if number % 60 == 30:
            engine = DecisionService(store)
        store.prepare()
    used = {each[1] for each in ahead if each is not None} & set(made)
    assert (len(used) > 20) == (name in ("bts", "thompson"))


def test_the_audit_finds_what_was_tampered_with(tmp_path):
    path = tmp_path / "money.db"
    with SQLiteStore(path) as store:
        engine = DecisionService(store)
        campaign = engine.create("ads", "bts", budget=10.0, arms=ARMS)
        for number in range(6):
            answer = engine.decide(campaign, str(number))
            if number < 4:
                engine.feedback(answer.decision, reward=float(number % 2), cost=0.3)
        assert verify(store, campaign) == []
    for statement in (
        "UPDATE campaign SET spent = spent - 1",
        "UPDATE campaign SET budget = budget + 1000000",
        "UPDATE campaign SET status = 'paused'",
        "UPDATE decision SET cost = cost + 1, charged = charged + 1 WHERE state = 'settled'",
        "UPDATE decision SET reward = 1 - reward",
        "UPDATE decision SET state = 'voided' WHERE state = 'pending'",
        "DELETE FROM event WHERE seq = 5",
        "UPDATE event SET amount = amount + 1 WHERE kind = 'settled'",
        "UPDATE arm SET learned = replace(learned, '\"pulls\":', '\"pulls\":1')",
        "UPDATE arm SET active = 0 WHERE number = 1",
    ):
        with tampered_copy(path, statement) as store:
            assert verify(store, campaign) != [], statement


def rooms_entered(terms):
    """The rooms for money that not every campaign has, which decisions, their feedback and expiry enter."""
    engine, paths = DecisionService(MemoryStore()), set()
    if "shared_budget" in terms:
        engine.shared_budgets.create("team", 100.0)
    engine.create("ads", "bts", budget=10.0, arms=ARMS, **terms)
    sys.setprofile(lambda frame, event, _: paths.add(frame.f_code.co_filename) if event == "call" else None)
    try:
        ids = [engine.decide("ads", str(number)).decision for number in range(4)]
        engine.decide_many("ads", "batch", 2)
        engine.feedback(ids[0], reward=1.0, cost=0.1)
        engine.feedback(ids[1], cost=0.1)
        engine.feedback(ids[2], failed=True)
        engine.void(ids[3])
        engine.expire_due()
    finally:
        sys.setprofile(None)
    entered = {Path(path).relative_to(Path(service.__file__).parent) for path in paths if "bandits/service" in path}
    return {path.parts[0] for path in entered} & {"leases", "shared_budgets", "periods.py"}


def test_a_campaign_enters_only_the_rooms_whose_terms_it_has():
    assert rooms_entered({}) == set()
    assert "leases" in rooms_entered({"lease": 2.0})
    assert "shared_budgets" in rooms_entered({"shared_budget": "team"})
    assert "periods.py" in rooms_entered({"period": "month", "period_budget": 10.0})
