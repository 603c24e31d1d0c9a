"""A seeded simulator of everything that can go wrong around a campaign, with the books checked after every step.

It owns the clock, the order of delivery, duplicates, lost answers, failing commits, restarts and a second engine on the
same store that has its own idea of what the policy knows. A failure names its seed; the same seed fails again.
"""

import asyncio
import contextlib
import math
import os
import random
from collections import Counter
from itertools import zip_longest

import pytest

from budgetbandits.errors import (
    AlreadyResolved,
    BadParameter,
    BudgetBanditsError,
    Conflict,
    DecisionArchived,
    HoldRefused,
    NoArmLeft,
    NotFound,
    StoreError,
    UnknownArm,
)
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.feedback import BookedFeedback, FeedbackReport
from budgetbandits.service.leases.leases import Leases
from budgetbandits.service.ledger import DAY, day_of
from budgetbandits.service.retention import Retention
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.service import DecisionService
from budgetbandits.service.session_cache import SessionCache
from budgetbandits.service.shared_budgets.audit import verify_shared_budget
from budgetbandits.service.shared_budgets.members import former_members
from budgetbandits.service.stores.contract import NO_SCOPE
from deep import deep
from memory_store import MemoryStore
from stores import STORES

POLICIES = [
    "bts", "kube", "ucb-bv2", "thompson", "epsilon-first:epsilon=0.2", "pd-bwk", "primal-dual-bwk", "bts-paced",
    "bts-paced:trials=1",
]  # fmt: skip
DRAWING = ("bts", "thompson", "bts-paced", "bts-paced:trials=1", "bts-linear")
IDS = random.Random()


@pytest.fixture(autouse=True)
def _the_same_ids(monkeypatch):
    """Ids of decisions decide what is drawn for them, so a world has its own, the same in every run."""
    monkeypatch.setattr(os, "urandom", IDS.randbytes)
    monkeypatch.setattr("budgetbandits.service.decisions.SLICE_SECONDS", 0.0)  # one decision of a batch at a time


class World:
    """One campaign and the people around it."""

    shared_budget = None

    def __init__(self, store, seed):
        self.random = random.Random(seed)
        IDS.seed(seed)
        self.store, self.now = store, 1000.0
        self.engines = [self.engine(), self.engine()]
        self.policy = "bts-linear" if seed % 18 == 7 else POLICIES[seed % len(POLICIES)]
        self.caps, self.micros = {"a": 1.0, "b": 0.5, "c": 2.0}, []
        self.paced = self.policy.startswith(("bts-paced", "bts-linear"))
        if seed % 36 in (0, 27):  # enough arms to choose from those that rise
            self.caps |= {f"arm {number}": 0.3 for number in range(260)}
        kinds = [{}, {"daily_cap": 6.0}, {"pace_seconds": 3600.0}, {"lease": 4.0, "lease_seconds": 10.0}]
        self.limits = kinds[seed % 4]
        self.soft = seed % 4 in (1, 2) and seed % 8 > 4
        if seed % 4 < 2 and seed % 3 == 1:
            self.limits = self.limits | {"period": "week", "unspent": "carry" if seed % 2 else "lapse"}
        if self.soft:
            self.limits = self.limits | {"on_limit": "cheapest" if seed % 16 < 8 else "b"}
        if self.paced and seed % 3:
            self.limits = self.limits | {"horizon": 60.0}
        if self.policy == "bts-linear":
            self.limits = self.limits | {"features": ("length", "code")}
        if self.policy in DRAWING and seed % 5 < 2:
            self.limits = self.limits | {"propensity_draws": 3.0}
        self.campaign = self.engines[0].create(
            f"campaign {seed}", self.policy, budget=self.random.choice([3.0, 30.0, 300.0]), arms=self.caps,
            hold_seconds=20.0, on_expire=self.random.choice(["charge", "release"]), **self.limits,
            shared_budget=self.shared_budget,
        )  # fmt: skip
        self.names, self.cost_max = [self.campaign, f"campaign {seed}"], max(self.caps.values())
        self.released = self.engines[0].describe(self.campaign).on_expire == "release"
        self.open, self.told, self.keys, self.asked, self.batched = [], [], {}, {}, set()
        self.unrewarded = []
        self.happened, self.period = Counter(), self.engines[0].account(self.campaign).period

    def engine(self):
        return DecisionService(self.store, clock=lambda: self.now)

    def step(self):
        rare = ["many", "tell_many", "again", "void", "tick", "tick", "retry", "break", "restart", "steer", "fail"]
        self.move(["decide"] * 7 + ["feedback"] * 7 + rare)
        if self.random.random() < 0.2:
            self.move(["cost_first", "reward_last", "fail_the_only_one", "rescale"])
        self.check_books()

    def move(self, kinds):
        kind = self.random.choice(kinds)
        try:
            getattr(self, kind)(self.random.choice(self.engines))
            self.happened[kind] += 1
        except HoldRefused as refused:
            self.happened[refused.reason] += 1
        except NoArmLeft:  # those that may answer are retired
            self.happened["no arm left"] += 1

    def check_books(self):
        account = self.engines[0].account(self.campaign)  # reading checks spent + held + leased <= budget
        self.happened["renewed"] += account.period != self.period
        self.period = account.period
        assert account.spent + account.held + account.leased <= account.budget
        leases = self.store.read(lambda tx: tx.leases(self.campaign))
        assert account.leased == sum(lease.account.budget for lease in leases)
        rows = self.store.read(lambda tx: tx.decisions_of([answer.decision for answer in self.keys.values()]))
        assert len(rows) == len(self.keys)
        held = account.held + sum(lease.account.held for lease in leases)
        assert held == sum(row.hold.amount for row in rows if row.hold.state == "pending")
        spent = account.spent + sum(lease.account.spent for lease in leases)
        assert spent == sum(row.hold.charged for row in rows)
        # the largest that each has had: a decision may cost its cap of now, or the hold that was its cap of then
        now = [round(cap * 1e6) for cap in self.caps.values()]
        self.micros = [max(pair) for pair in zip_longest(now, self.micros, fillvalue=0)]
        for row in rows:
            if row.hold.overrun:  # what was charged is the cap, or all the money there was
                self.happened["overrun below the cap"] += row.hold.charged < self.micros[row.arm]
            assert row.hold.charged <= self.micros[row.arm]
        if leases:
            assert account.status == "active"
            self.happened["leased"] += 1
            self.happened["two leases"] += len(leases) > 1
        if "daily_cap" in self.limits and account.day == day_of(self.now):
            today = [row.hold for row in rows if 0 <= row.hold.placed_at - account.day < DAY]
            booked = [(hold, hold.amount if hold.state == "pending" else hold.charged) for hold in today]
            assert account.today == sum(taken for _, taken in booked)
            # what was released and then did cost something, or cost more than was held, is charged to its day as well
            assert sum(min(hold.amount, taken) for hold, taken in booked) <= 6_000_000 or self.released or self.soft
            self.happened["beyond the limit"] += account.today > 6_000_000

    def decide(self, engine):
        key, request = f"key {len(self.keys)}", self.request()
        answer = engine.decide(self.random.choice(self.names), key, **request)
        self.check(answer, request)
        if "pace_seconds" in self.limits and not self.soft:
            account = engine.account(self.campaign)
            share = min(1.0, (self.now - 1000.0) / 3600.0)
            lowered = self.happened["changed budget"]  # then what was spent by then may be ahead of the pace
            assert lowered or account.spent + account.held <= account.budget * share + self.cost_max * 1e6
        self.keys[key], self.asked[key] = answer, request
        self.open.append(answer)

    def request(self):
        """Every other one says something: which arms, what to hold, and where the policy looks, a segment or prices."""
        kinds = ["arms", "exclude", "holds"] + ["segment", "segment", "prices"] * self.paced
        given = self.features()
        if self.random.random() < 0.5:
            return given
        names = self.random.sample(list(self.caps), 2)
        made = {
            "arms": lambda: names, "exclude": lambda: names[:1],
            "segment": lambda: self.random.choice(["code", "mail", "chat"]),
            "holds": lambda: {name: round(self.caps[name] / 2, 6) for name in names},
            "prices": lambda: {name: round(cap * self.random.uniform(0.1, 1), 6) for name, cap in self.caps.items()},
        }  # fmt: skip
        said = set(self.random.sample(kinds, 2))
        self.happened.update(said)
        return given | {kind: made[kind]() for kind in sorted(said)}

    def features(self):
        """The features of a request, in a campaign whose requests have them."""
        if "features" not in self.limits:
            return {}
        self.happened["features"] += 1
        return {"features": {"length": self.random.gauss(5.0, 2.0), "code": float(self.random.random() < 0.3)}}

    def check(self, answer, request):
        """An arm that may answer, with the hold that was said or follows from its price."""
        assert answer.arm in request.get("arms", [answer.arm])
        assert answer.arm not in request.get("exclude", [])
        cap = self.caps[answer.arm]
        if answer.arm in request.get("holds", {}):
            assert answer.hold == request["holds"][answer.arm]
        elif "prices" in request:
            assert answer.hold == min(math.ceil(1.5 * round(request["prices"][answer.arm] * 1e6)) / 1e6, cap)
        else:
            assert answer.hold == cap

    def many(self, engine):
        """Three at once: all of them or none, and the same ones again."""
        key, before, request = f"batch {len(self.keys)}", engine.account(self.campaign), self.request()
        try:
            answers = engine.decide_many(self.campaign, key, 3, **request)
        except HoldRefused:
            after = engine.account(self.campaign)
            # those that were taken back may have begun a day or a period, and ended leases
            if (after.day, after.period, after.leased) == (before.day, before.period, before.leased):
                assert after == before
            self.check_books()
            raise
        assert engine.decide_many(self.campaign, key, 3, **request) == answers
        with pytest.raises(Conflict):
            engine.decide_many(self.campaign, key, 2)
        with pytest.raises(Conflict):
            engine.decide(self.campaign, key)
        for number, answer in enumerate(answers):
            self.keys[f"{key} [{number}]"] = answer
            self.batched.add(f"{key} [{number}]")
            self.open.append(answer)

    def tell_many(self, engine):
        """Some of them told before, one that does not exist: each by itself."""
        chosen = self.random.sample(self.open, min(4, len(self.open)))
        outcomes = [FeedbackReport(each.decision, float(self.random.random() < 0.4), each.hold / 2) for each in chosen]
        results = engine.feedback_many(self.campaign, [*outcomes, FeedbackReport("nothing", 1.0, 0.1)])
        assert isinstance(results[-1], NotFound)
        assert all(isinstance(result, BookedFeedback | Conflict | AlreadyResolved) for result in results[:-1])

    def retry(self, engine):
        if self.keys:
            key, answer = self.random.choice(list(self.keys.items()))
            if key in self.batched:
                return
            assert engine.decide(self.campaign, key, **self.asked[key]) == answer
            with pytest.raises(Conflict):
                engine.decide(self.campaign, key, {"another": "context"}, **self.asked[key])
            with pytest.raises(Conflict):
                engine.decide(self.campaign, key, holds={"a": 0.123})

    def feedback(self, engine):
        """Cost first, reward first, or both; now and then for an expired hold, or more than the cap."""
        if not self.open:
            return
        answer = self.open[self.random.randrange(len(self.open))]
        cost = round(self.random.random() * answer.hold, 3) * (1.5 if self.random.random() < 0.02 else 1.0)
        if answer.hold < self.caps[answer.arm] and self.random.random() < 0.3:  # a long answer
            cost = round(self.random.uniform(answer.hold, self.caps[answer.arm]), 3)
            self.happened["above its hold"] += 1
        parts = [{"cost": cost}, {"reward": float(self.random.random() < 0.4)}]
        for part in self.random.choice([parts, parts[::-1], [parts[0] | parts[1]], parts[:1]]):
            try:
                engine.feedback(answer.decision, **part, campaign=self.random.choice([None, *self.names]))
            except (Conflict, AlreadyResolved):
                self.happened["told before"] += 1
            self.told.append((answer.decision, part))
        if self.random.random() < 0.8:
            self.open.remove(answer)

    def again(self, engine):
        """The same feedback delivered once more: the books must not move."""
        if self.told:
            before = engine.account(self.campaign)
            decision, part = self.random.choice(self.told)
            try:
                engine.feedback(decision, **part)
            except BudgetBanditsError:
                self.happened["refused duplicate"] += 1
            assert engine.account(self.campaign) == before

    def fail(self, engine):
        """No answer came, for which now and then there is a bill; told twice, it counts once."""
        if not self.open:
            return
        answer = self.random.choice(self.open)
        part = {"failed": True} | ({"cost": round(answer.hold / 5, 6)} if self.random.random() < 0.5 else {})
        try:
            for _ in range(2):
                engine.feedback(answer.decision, **part)
                self.happened["failed"] += 1
        except (Conflict, AlreadyResolved):
            self.happened["failed too late"] += 1
        self.told.append((answer.decision, part))

    def cost_first(self, engine):
        """The cost is told at once, as by a provider's bill, and the reward much later, if at all."""
        if self.open:
            answer = self.open.pop(self.random.randrange(len(self.open)))
            with contextlib.suppress(Conflict, AlreadyResolved):  # told before, or voided
                engine.feedback(answer.decision, cost=answer.hold / 4)
                self.unrewarded.append(answer)

    def reward_last(self, engine):
        """The oldest of many that wait, of which some were told in another way meanwhile."""
        if len(self.unrewarded) > 5:
            answer = self.unrewarded.pop(0)
            try:
                engine.feedback(answer.decision, reward=self.random.choice([0.0, 0.5, 1.0]))
                self.happened["rewarded late"] += 1
            except Conflict:
                self.happened["told before"] += 1

    def fail_the_only_one(self, engine):
        """Where only one of the arms that may answer can be paid, its failures are not the end of the money: it answers
        though it is down."""
        account = engine.account(self.campaign)
        active = [arm for arm in engine.describe(self.campaign).arms if arm.active]
        dear = [arm.name for arm in active if round(arm.cost_cap * 1e6) > account.left]
        payable = [arm.name for arm in active if arm.name not in dear]
        waits = self.limits.keys() & {"lease", "daily_cap", "pace_seconds", "period"}
        if account.status != "active" or not dear or not payable or waits or self.policy == "primal-dual-bwk":
            return
        only, request = payable[0], {"arms": [payable[0], *dear]} | self.features()
        for number in range(6):
            key = f"only {number} {len(self.keys)}"
            answer = engine.decide(self.campaign, key, **request)
            assert answer.arm == only
            self.keys[key], self.asked[key] = answer, request
            engine.feedback(answer.decision, failed=True)
        self.happened["only one failed"] += 1

    def void(self, engine):
        if self.open:
            answer = self.random.choice(self.open)
            try:
                engine.void(answer.decision, self.random.choice([None, *self.names]))
            except (AlreadyResolved, Conflict):
                self.happened["void too late"] += 1

    def tick(self, engine):
        longer = [20_000.0] * ("daily_cap" in self.limits) + [600_000.0] * ("period" in self.limits)
        self.now += self.random.choice([0.1, 1.0, 15.0, *longer])
        engine.expire_due()

    def restart(self, _engine):
        self.engines[self.random.randrange(2)] = self.engine()

    def steer(self, engine):
        what = self.random.randrange(6)
        status = engine.account(self.campaign).status
        if what == 0 and engine.account(self.campaign).left < 2_000_000:
            engine.top_up(self.campaign, self.random.choice([0.000001, 5.0]))
        elif what == 1:
            engine.set_status(self.campaign, "paused" if status == "active" else "active")
        elif what == 2 and (len(self.caps) < 6 or 260 < len(self.caps) < 270) and status != "paused":
            name = f"arm {len(self.caps)}"
            engine.add_arm(self.campaign, name, 0.25)
            self.caps[name] = 0.25
        elif status != "active":
            engine.set_status(self.campaign, "active")
        elif what == 3 and len(self.caps) > 4:
            with contextlib.suppress(Conflict):  # retired already
                engine.retire_arm(self.campaign, "c")
        elif what == 4:
            with contextlib.suppress(Conflict, UnknownArm):  # not retired
                engine.bring_back_arm(self.campaign, "c")
                self.happened["brought back"] += 1
        elif what == 5:
            with contextlib.suppress(BadParameter):  # the terms already
                changes = {"hold_seconds": self.random.choice([20.0, 45.0])}
                if self.random.random() < 0.5:
                    changes = {"on_expire": self.random.choice(["charge", "release"])}
                elif self.paced:
                    changes["horizon"] = self.random.choice([None, 20.0, 500.0])
                engine.change_terms(self.campaign, changes)
                self.released |= changes.get("on_expire") == "release"
                self.happened["terms changed"] += 1

    def rescale(self, engine):
        """Caps, the largest reward, the budget, the name and the policy: each a change of terms."""
        name, account = self.random.choice(list(self.caps)), engine.account(self.campaign)
        kind = self.random.choice(["caps", "caps", "reward_max", "budget", "name", "policy"])
        least = (account.spent + account.held + account.leased) / 1e6
        made = {
            "caps": lambda: {name: round(self.caps[name] * self.random.choice([0.5, 0.9, 1.5]), 6)},
            "reward_max": lambda: self.random.choice([1.0, 2.0]),
            "budget": lambda: least + self.random.choice([2.0, 5.0, 50.0]),
            "name": lambda: f"{self.names[1]} renamed {self.random.randrange(3)}",
            "policy": lambda: self.random.choice(self.policies()),
        }  # fmt: skip
        with contextlib.suppress(
            BadParameter
        ):  # the terms already, above the daily cap or the lease, or no plan for it
            changes = {kind: made[kind]()}
            engine.change_terms(self.campaign, changes, actor="an operator")
            self.happened[f"changed {kind}"] += 1
            if kind == "caps":
                self.caps |= changes["caps"]
                self.cost_max = max(self.cost_max, *self.caps.values())
            elif kind == "name":
                self.names.append(changes["name"])  # the names before go on meaning it
            elif kind == "policy":
                self.policy = changes["policy"]
            elif kind == "budget":
                assert engine.account(self.campaign).budget == round(changes["budget"] * 1e6)

    def policies(self):
        """Those that the campaign's requests can be asked of."""
        if self.policy == "bts-linear":
            return ["bts-linear"]
        return ["bts-paced", "bts-paced:forget=0.01"] if self.paced else POLICIES[:6]

    def break_(self, engine):
        """The commit fails, or the answer is lost on the way: the retry finds out which."""
        key, request = f"key {len(self.keys)}", self.features()
        self.store.breaks = self.random.choice(["before", "after"])
        if self.open and self.random.random() < 0.5:
            answer = self.random.choice(self.open)
            try:
                with pytest.raises(BudgetBanditsError):
                    engine.feedback(answer.decision, reward=1.0, cost=answer.hold / 4)
            finally:
                self.store.breaks = None
            return
        try:
            with pytest.raises((StoreError, HoldRefused)):
                engine.decide(self.campaign, key, **request)
        finally:
            self.store.breaks = None
        answer = engine.decide(self.campaign, key, **request)
        self.keys[key], self.asked[key] = answer, request
        self.open.append(answer)


setattr(World, "break", World.break_)


def stepped(world, seed, steps):
    """A world after so many steps; an error says in which of them."""
    for number in range(steps):
        try:
            world.step()
        except BaseException as error:
            error.add_note(f"seed {seed}, step {number}")
            raise
    return world


def play(store, seed, steps):
    world = stepped(World(store, seed), seed, steps)
    assert verify(store, world.campaign) == []
    return world.happened


OFTEN = (
    "segment", "prices", "features", "arms", "exclude", "holds", "failed", "failed too late", "terms changed",
    "daily_cap", "paced", "many", "tell_many", "leased", "two leases", "above its hold", "overrun below the cap",
    "decide", "retry", "again", "break", "void", "told before", "void too late", "frozen", "paused", "rewarded late",
)  # fmt: skip


@pytest.mark.parametrize(("first", "steps"), [(0, 270), *deep((0, 1000), (25, 500), (50, 500), (75, 500))])
def test_many_thousand_steps_in_memory(first, steps):
    happened = Counter()
    for seed in range(first, first + 25):
        happened += play(MemoryStore(), seed, steps)
    for what in (*OFTEN, "renewed", "beyond the limit"):
        assert happened[what] > steps / 50, (what, happened)  # by rounding, machines may play some games differently
    assert happened["exhausted"] + happened["blocked_by_holds"] > steps / 4
    for what in ("brought back", "only one failed"):
        assert happened[what] > steps / 500, (what, happened)
    for what in ("caps", "reward_max", "budget", "name", "policy"):
        assert happened[f"changed {what}"] > steps / 50, (what, happened)


@pytest.fixture(params=STORES)
def databases(request, tmp_path, monkeypatch):
    """A database for each of some seeds, in turn. It does not break on demand, so the steps that ask for it are plain
    decisions."""
    monkeypatch.setattr(World, "break", World.decide)

    def opened(seeds):
        for seed in seeds:
            (tmp_path / str(seed)).mkdir()
            with STORES[request.param](tmp_path / str(seed)) as opener, opener() as store:
                yield seed, store

    return opened


def test_the_same_on_a_real_store(databases):
    for seed, store in databases(range(9)):
        play(store, seed, 70)


class InLoop:
    """A store that is written to from an event loop, as a server does it."""

    def __init__(self, store, loop):
        self.store, self.loop, self.read = store, loop, store.read

    def write(self, work, about=NO_SCOPE):
        return self.loop.run_until_complete(self.store.perform(work, about))


@pytest.fixture
def loop():
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        yield loop


def test_leases_from_an_event_loop_on_a_real_store(databases, loop):
    happened = Counter()
    for seed, store in databases((11, 16, 19, 35, 43)):  # most lease and have money for it, one with features
        happened += play(InLoop(store, loop), seed, 90)
    assert happened["leased"] > happened["two leases"] > 50


class PrunedWorld(World):
    """The simulator's world, of which the past leaves every now and then."""

    folder = None
    left = 0
    spent_before = 0

    def move(self, kinds):
        try:
            super().move([kind for kind in kinds if kind != "tell_many"])
        except DecisionArchived:
            self.happened["archived"] += 1

    def step(self):
        super().step()
        if self.random.random() < 0.06:
            self.prune()

    def prune(self):
        before = self.rows()
        Retention(self.store, Leases(SessionCache(), lambda: self.now), lambda: self.now, rest=0.0).prune(
            self.campaign,
            self.folder,
            self.random.choice([0.0, 0.0005]),
        )
        there = self.rows()
        gone = {id: row for id, row in before.items() if id not in there}
        assert all(row.hold.state != "pending" for row in gone.values())
        self.left += len(gone)
        self.spent_before += sum(row.hold.charged for row in gone.values())
        # their keys are not asked for again, as those of batches are not
        self.batched |= {key for key, answer in self.keys.items() if answer.decision in gone}
        closed = self.store.read(lambda tx: tx.campaign(self.campaign).settings.archived_before)
        takes = {id for id, row in there.items() if row.created_at >= closed or row.hold.state == "pending"}
        for answers in (self.open, self.unrewarded):
            answers[:] = [each for each in answers if each.decision in takes]
        self.told = [each for each in self.told if each[0] in takes]

    def rows(self):
        ids = [answer.decision for answer in self.keys.values()]
        return {row.id: row for row in self.store.read(lambda tx: tx.decisions_of(ids))}

    def check_books(self):
        account = self.engines[0].account(self.campaign)
        leases = self.store.read(lambda tx: tx.leases(self.campaign))
        rows = self.rows().values()
        assert account.leased == sum(lease.account.budget for lease in leases)
        held = account.held + sum(lease.account.held for lease in leases)
        assert held == sum(row.hold.amount for row in rows if row.hold.state == "pending")
        spent = account.spent + sum(lease.account.spent for lease in leases)
        assert spent == self.spent_before + sum(row.hold.charged for row in rows)


def test_the_simulator_with_a_past_that_leaves(databases, tmp_path):
    left = 0
    for seed, store in databases(range(9)):
        world = PrunedWorld(store, seed)
        world.folder = tmp_path / str(seed) / "archive"
        stepped(world, seed, 50).prune()
        roll_up(store)
        assert verify(store, world.campaign) == []
        assert verify(store, world.campaign, archive=world.folder) == []
        left += world.left
    assert left > 50  # decisions in the archive: the games are not without any


class MemberWorld(World):
    """A campaign of the simulator that shares a budget with others."""

    shared_budget = "marketing"

    def fail_the_only_one(self, engine):
        """By the campaign's own money alone nobody can say which arms can be paid."""


class SharedWorld:
    """Three campaigns and the budget that they share; one of them may leave and come back."""

    def __init__(self, store, seed):
        self.random, self.store = random.Random(seed), store
        self.members = []
        self.budgets = DecisionService(store, clock=self.now).shared_budgets
        terms = {"period": "week", "unspent": "carry" if seed % 4 else "lapse"} if seed % 2 else {}
        self.budgets.create("marketing", self.random.choice([8.0, 40.0]), **terms)
        self.members = [MemberWorld(store, 3 * seed + number) for number in range(3)]
        self.happened = Counter()

    def step(self):
        member = self.random.choice(self.members)
        member.now = self.now()
        member.step()
        what = self.random.random()
        if what < 0.02:
            taken = self.account().budget - self.account().left
            self.budgets.change("marketing", {"budget": taken / 1e6 + self.random.choice([0.5, 3.0, 12.0])})
            self.happened["changed"] += 1
        elif what < 0.06:
            inside = member.engines[0].describe(member.campaign).shared_budget is not None
            try:
                change = {"shared_budget": None if inside else "marketing"}
                member.engines[0].change_terms(member.campaign, change)
                self.happened["left" if inside else "joined"] += 1
            except (Conflict, BadParameter):  # it holds something, or more than what is left
                self.happened["stayed"] += 1
        self.check_books()

    def now(self):
        return max((each.now for each in self.members), default=1000.0)

    def account(self):
        return self.budgets.account("marketing")

    def check_books(self):
        """What its members have is what it has, with what those that have left had spent."""

        def read(tx):
            rows = [tx.campaign(each.campaign) for each in self.members]
            shared = tx.shared_budget("marketing")
            inside = [row.account for row in rows if row.settings.terms.shared_budget is not None]
            return shared.account, inside, list(former_members(tx, shared).values())

        account, inside, former = self.store.read(read)
        for name in ("spent", "held", "leased", "overrun"):
            assert getattr(account, name) == sum(getattr(each, name) for each in [*inside, *former])
        assert account.spent + account.held + account.leased <= account.budget
        short = [each for each in inside if account.left < each.left]
        self.happened["short"] += len(short)


def play_shared(store, seed, steps):
    world = stepped(SharedWorld(store, seed), seed, steps)
    for member in world.members:
        assert verify(store, member.campaign) == []
        world.happened += member.happened
    assert verify_shared_budget(store, "marketing") == []
    return world.happened


@pytest.mark.parametrize(("seeds", "steps"), [(8, 150), *deep((40, 600))])
def test_campaigns_that_share_a_budget(seeds, steps):
    happened = sum((play_shared(MemoryStore(), seed, steps) for seed in range(seeds)), Counter())
    for what in ("changed", "left", "joined", "stayed", "leased", "decide", "many", "break", "frozen"):
        assert happened[what] > seeds / 2, (what, happened)
    assert happened["exhausted"] + happened["blocked_by_holds"] + happened["period_spent"] > seeds * steps / 40
    assert happened["short"] > seeds * steps / 2


def test_campaigns_that_share_a_budget_on_a_real_store(databases):
    for seed, store in databases(range(4)):
        play_shared(store, seed, 80)


def test_campaigns_that_share_a_budget_from_an_event_loop(databases, loop):
    for seed, store in databases(range(2)):
        play_shared(InLoop(store, loop), seed, 80)
