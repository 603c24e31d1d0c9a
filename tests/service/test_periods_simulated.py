"""Recurring budgets under clocks that jump, changed terms, prunings and restored copies, with books kept apart.

The books (`Purse`) are a program of their own: a month is a number of the calendar there, not a time, and what was
granted is a list. They foretell whether each step succeeds, is refused for want of money or for a clock that is wrong,
and what both accounts are after it. A failure names its seed; the same seed fails again.
"""

import contextlib
import os
import random
import shutil
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from budgetbandits.errors import BadParameter, Conflict, DecisionArchived, HoldRefused, WrongClock
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.backup import back_up
from budgetbandits.service.leases.leases import Leases
from budgetbandits.service.retention import Retention
from budgetbandits.service.service import DecisionService
from budgetbandits.service.session_cache import SessionCache
from budgetbandits.service.shared_budgets.audit import verify_shared_budget
from budgetbandits.service.stores.contract import find_campaign
from budgetbandits.service.stores.sqlite import SQLiteStore
from deep import deep

DAY, HOUR = 86_400, 3600
LONGEST_DAY = 25 * HOUR
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Pacific/Kiritimati", "Pacific/Honolulu")
NAMES = ("spring", "summer", "autumn")
CAPPED, DAILY_CAP = NAMES[0], 1_500_000


IDS = random.Random()


@pytest.fixture(autouse=True)
def _the_same_ids(monkeypatch):
    """Ids of decisions decide what is drawn for them, so a world has its own, the same in every run."""
    monkeypatch.setattr(os, "urandom", IDS.randbytes)
    monkeypatch.setattr("budgetbandits.service.decisions.SLICE_SECONDS", 0.0)  # one decision of a batch at a time


@dataclass
class Purse:
    """The books of a budget, in micros."""

    kind: str | None
    zone: str
    amount: int
    carries: bool
    budget: int
    spent: int = 0
    held: int = 0
    number: int = 0
    """Of the present period, by the calendar."""
    begun: int = 0
    advance: int = 0
    granted: list = field(default_factory=list)
    """By renewal: its amount, the number and beginning of the period before it, and the beginning of its own."""

    @property
    def left(self):
        return self.budget - self.spent - self.held

    def period(self, now):
        """The number of the period of this moment, and when it began."""
        local = datetime.fromtimestamp(now, ZoneInfo(self.zone))
        first = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0, tzinfo=None)
        if self.kind == "month":
            first, number = first.replace(day=1), local.year * 12 + local.month
        else:
            first, number = first - timedelta(days=first.weekday()), (first.toordinal() - 1) // 7
        return number, int(first.replace(tzinfo=ZoneInfo(self.zone)).timestamp())

    def begin(self, now):
        if self.kind is not None:
            self.number, self.begun = self.period(now)

    def ahead(self, now):
        return self.begun > now + HOUR

    def renew(self, now):
        if self.kind is None:
            return
        if self.ahead(now):
            raise WrongClock
        number, begun = self.period(now)
        if number <= self.number:
            return
        due = (number - self.number) * self.amount
        grown = max(due - self.advance, 0)
        self.advance = max(self.advance - due, 0)
        if not self.carries:
            grown = min(grown, self.amount) - self.left  # what was left lapses
        self.granted.append((grown, self.number, self.begun, begun))
        self.budget, self.number, self.begun = self.budget + grown, number, begun

    def align(self, now):
        """After a change of terms the period begins as it does in the time zone of now, if it is the same there."""
        number, begun = self.period(now)
        if number == self.number:
            self.begun = begun

    def set_back(self, now):
        """Whether there was anything to set back."""
        undone = [each for each in self.granted if each[3] > now]
        if self.kind is None or (not undone and self.begun <= now):
            return False
        self.granted = [each for each in self.granted if each[3] <= now]
        self.begin(now)
        if undone and undone[0][2] <= now:
            _, self.number, self.begun, _ = undone[0]
        self.budget -= sum(each[0] for each in undone)
        missing = max(-self.left, 0)
        self.budget, self.advance = self.budget + missing, self.advance + missing
        self.renew(now)
        return True

    def resolve(self, made_at, amount, charged, now, held=True):
        """A hold, or what was charged for it, becomes what is charged now."""
        before = self.left
        self.held -= amount if held else 0
        self.spent += charged - (0 if held else amount)
        if self.kind is not None and not self.carries and made_at < self.begun:
            self.budget -= max(self.left - before, 0)
        elif made_at > now:  # it was made by a clock that was ahead
            back = min(max(self.left - before, 0), self.advance)
            self.budget, self.advance = self.budget - back, self.advance - back


@dataclass
class Open:
    name: str
    made_at: float
    amount: int
    expires_at: float
    charged: bool = False
    booked: int = 0
    """Of the money of its day."""


@dataclass
class Books:
    """Everything that a store should know."""

    shared: Purse
    purses: dict
    members: set
    days: dict
    left_behind: dict = field(default_factory=dict)
    open: dict = field(default_factory=dict)
    """By decision, those that take feedback."""
    capped: list = field(default_factory=list)
    """All decisions of the campaign with a daily cap ..."""
    today: int = 0
    """... and what those of its present day hold and were charged."""


class World:
    def __init__(self, folder, seed, store=None):
        self.random, self.folder = random.Random(seed), folder
        IDS.seed(seed)
        self.true = datetime(2026, 1, 10, tzinfo=UTC).timestamp()
        self.error, self.lags, self.number, self.happened = 0.0, (0.0, 0.0), 0, Counter()
        self.stack = contextlib.ExitStack()
        self.saved, self.copies, self.is_copied = None, 0, store is None
        self.open_store("first", store)
        self.begin()

    def open_store(self, name, store=None):
        self.stack.close()
        self.path, self.archive = self.folder / f"{name}.db", self.folder / f"{name} archive"
        self.store = self.stack.enter_context(SQLiteStore(self.path)) if store is None else store
        self.retention = Retention(self.store, Leases(SessionCache(), self.now), self.now, rest=0.0)
        self.engines = [DecisionService(self.store, lambda n=n: self.now(n)) for n in range(2)]

    def now(self, server=0):
        return self.true + self.error + self.lags[server]

    def purse(self, kind, budget):
        zone, carries = self.random.choice(ZONES), self.random.random() < 0.5
        made = Purse(kind, zone, self.random.choice([3, 5, 8]) * 1_000_000, carries, budget)
        terms = {
            "period": kind, "time_zone": zone, "period_budget": made.amount / 1e6,
            "unspent": "carry" if carries else "lapse",
        }  # fmt: skip
        return made, terms if kind is not None else {}

    def begin(self):
        """A shared budget and three campaigns, two of them with periods of their own; all at one moment."""
        engine, now = self.engines[0], self.now()
        shared, terms = self.purse(self.random.choice(["month", "week"]), 8_000_000)
        engine.shared_budgets.create("marketing", 8.0, **terms)
        self.books = Books(shared, {}, set(NAMES[:2]), dict.fromkeys(NAMES, 0))
        shared.begin(now)
        for number, name in enumerate(NAMES):
            kind = [None, "month", "week"][number]
            purse, terms = self.purse(kind, 200_000_000 if kind is None else 6_000_000)
            self.wait = {**getattr(self, "wait", {}), name: self.random.choice([2, 12, 45]) * DAY}
            self.charges = {**getattr(self, "charges", {}), name: self.random.random() < 0.6}
            engine.create(
                name, "bts", purse.budget / 1e6, {"a": 1.0, "b": 1.0}, hold_seconds=self.wait[name],
                on_expire="charge" if self.charges[name] else "release", **terms,
                daily_cap=DAILY_CAP / 1e6 if name == CAPPED else None,
                shared_budget="marketing" if name in self.books.members else None,
            )  # fmt: skip
            purse.begin(now)
            self.books.purses[name] = purse

    def shared_of(self, books, name):
        return books.shared if name in books.members else None

    def step(self):
        often = ["decide"] * 8 + ["report"] * 5 + ["pass_time"] * 3 + ["expire", "void", "reset", "reset", "batch"]
        changes = ["top_up", "terms", "shared_terms", "join_or_leave"]
        rare = ["jump", "jump", "right_again", "keep_a_copy", "restore", "prune", *changes]
        kind = self.random.choice(often + rare)
        getattr(self, kind)()
        self.happened[kind] += 1
        self.check()

    def attempt(self, do, foretell):
        """Do it, and in the books: both succeed, or both are refused for the same reason. Whether they succeed."""
        books, refused, foretold = deepcopy(self.books), None, None
        try:
            foretell(books)
        except (WrongClock, HoldRefused, Conflict, BadParameter) as error:
            foretold = type(error)
        try:
            do()
        except (WrongClock, HoldRefused, Conflict, BadParameter) as error:
            refused = type(error)
            self.happened[getattr(error, "reason", "not held")] += 1
        assert refused == foretold, (refused, foretold)
        if refused is None:
            self.books = books
        self.happened[refused.__name__ if refused else "done"] += 1
        return refused is None

    def place(self, books, name, amount, now, id=None):
        """A decision in the books."""
        purse, shared = books.purses[name], self.shared_of(books, name)
        purses = [purse] if shared is None else [purse, shared]
        if books.days[name] > now + HOUR or any(each.ahead(now) for each in purses):
            raise WrongClock
        made_at = max(now, books.days[name], *(each.begun for each in purses))
        for each in purses:
            each.renew(made_at)
            if amount > each.left:
                raise HoldRefused("exhausted", "")
        day = max(books.days[name], int(made_at // DAY) * DAY)
        books.open[id] = new = Open(name, made_at, amount, made_at + self.wait[name], booked=amount)
        if name == CAPPED:
            books.today = (books.today if day == books.days[name] else 0) + amount
            if books.today > DAILY_CAP:
                raise HoldRefused("daily_cap", "")
            books.capped.append(new)
        for each in purses:
            each.held += amount
        books.days[name] = day

    def decide(self):
        server, name = self.random.randrange(2), self.random.choice(NAMES)
        amount, key = self.random.choice([0.125, 0.5, 1.0]), f"key {self.number}"
        self.number += 1
        made = []
        done = self.attempt(
            lambda: made.append(self.engines[server].decide(name, key, holds={"a": amount, "b": amount})),
            lambda books: self.place(books, name, round(amount * 1e6), self.now(server), key),
        )
        if done:
            self.books.open[made[0].decision] = self.books.open.pop(key)
            assert made[0].expires_at == self.books.open[made[0].decision].expires_at
            self.happened["decisions"] += 1

    def batch(self):
        """Three or none: those that were made before one is refused are voided again, in the period that they began."""
        server, name, key = self.random.randrange(2), self.random.choice(NAMES), f"batch {self.number}"
        self.number += 1
        books, made, refused, foretold = [self.books], [], None, None
        for number in range(3):
            books.append(deepcopy(books[-1]))
            try:
                self.place(books[-1], name, 500_000, self.now(server), number)
            except (HoldRefused, WrongClock) as error:
                foretold = type(error)
                books.pop()
                break
        try:
            made = self.engines[server].decide_many(name, key, 3, holds={"a": 0.5, "b": 0.5})
        except (HoldRefused, WrongClock) as error:
            refused = type(error)
        assert refused == foretold, (refused, foretold)
        self.books = books[-1]
        for number in range(len(books) - 1):
            if made:
                self.books.open[made[number].decision] = self.books.open.pop(number)
            else:
                self.resolve(number, 0, server)
        self.happened["decisions"] += len(made)

    def resolve(self, id, charged, server=0, keep=False):
        known = self.books.open.pop(id)
        if known.name == CAPPED and 0 <= known.made_at - self.books.days[CAPPED] < LONGEST_DAY:
            self.books.today = max(self.books.today + charged - known.booked, 0)
        known.booked = charged
        for purse in (self.books.purses[known.name], self.shared_of(self.books, known.name)):
            if purse is not None:
                purse.resolve(known.made_at, known.amount, charged, self.now(server), held=not known.charged)
        if keep:
            known.charged, known.amount = True, charged
            self.books.open[id] = known

    def report(self):
        if self.books.open:
            id = self.random.choice(list(self.books.open))
            known = self.books.open[id]
            cost = self.random.choice([0, known.amount // 4, known.amount])
            server = self.random.randrange(2)
            if known.charged and self.is_archived(id, known):
                with pytest.raises(DecisionArchived):
                    self.engines[server].feedback(id, cost=cost / 1e6, reward=1.0, campaign=known.name)
                del self.books.open[id]
                self.happened["archived"] += 1
                return
            self.engines[server].feedback(id, cost=cost / 1e6, reward=1.0)
            self.resolve(id, cost, server)

    def is_archived(self, id, known):
        """Whether it takes no more feedback; nor does one whose time a reset opens again once it has left the store."""
        row, made = self.store.read(lambda tx: (find_campaign(tx, known.name), tx.decision(id)))
        return made is None or known.made_at < row.settings.archived_before

    def prune(self):
        """No money moves, whatever the clock says is old."""
        name, days = self.random.choice(NAMES), self.random.choice([1, 10, 60])
        self.happened["pruned"] += self.retention.prune(name, self.archive, days).events

    def void(self):
        pending = [id for id, known in self.books.open.items() if not known.charged]
        if pending:
            id = self.random.choice(pending)
            server = self.random.randrange(2)
            self.engines[server].void(id)
            self.resolve(id, 0, server)

    def expire(self):
        self.engines[0].expire_due()
        for id, known in list(self.books.open.items()):
            if not known.charged and known.expires_at <= self.now():
                charges = self.charges[known.name]
                self.resolve(id, known.amount if charges else 0, keep=charges)

    def pass_time(self):
        self.true += self.random.choice([60, 5 * HOUR, DAY, 6 * DAY])
        self.lags = self.random.choice([(0.0, 0.0), (0.0, 173.0), (0.0, -900.0)])

    def jump(self):
        self.error = self.random.choice([-40, -3, 0.2, 2, 33, 155]) * DAY + self.random.random()
        self.happened["jumps"] += 1

    def right_again(self):
        self.happened["jumps"] += self.error != 0.0
        self.error = 0.0

    def reset(self, name=None):
        """By whoever believes in the clock as it is. Where no money is ahead, an answer of an arm may be."""
        name, now = name or self.random.choice(NAMES), self.now()
        books, today, latest = deepcopy(self.books), int(now // DAY) * DAY, now + self.wait[name]
        purse, shared = books.purses[name], self.shared_of(books, name)
        ahead = [each.set_back(now) for each in (purse, shared) if each is not None]
        ahead.append(books.days[name] > today)
        if name == CAPPED and books.days[name] > today:
            books.today = self.booked_of(books, today)
        books.days[name] = min(books.days[name], today)
        for known in books.open.values():
            if known.name == name and not known.charged and known.expires_at > latest:
                known.expires_at = latest
                ahead.append(True)
        try:
            self.engines[0].reset_clock(name)
        except Conflict:
            assert not any(ahead)
            return
        purse.renew(now)
        self.books = books
        self.happened["set back"] += any(ahead)

    def booked_of(self, books, day):
        """What a day has been charged; all that ever was, if a part of it may be archived."""
        id = self.store.read(lambda tx: find_campaign(tx, CAPPED).id)
        archived_up_to = self.store.read(lambda tx: tx.pruning().archived_up_to(id))
        if day < archived_up_to and self.store.read(lambda tx: find_campaign(tx, id)).settings.archived_before:
            return books.purses[CAPPED].spent + books.purses[CAPPED].held
        return sum(each.booked for each in books.capped if day <= each.made_at < day + DAY)

    def top_up(self):
        name = self.random.choice(NAMES)

        def foretell(books):
            books.purses[name].renew(self.now())
            books.purses[name].budget += 1_500_000

        self.attempt(lambda: self.engines[0].top_up(name, 1.5), foretell)

    def new_terms(self, purse):
        """Another zone, amount or use of what is left; how to say it, and how to book it."""
        what, zone = self.random.randrange(3), self.random.choice(ZONES)
        if what == 0 and zone != purse.zone:
            return {"time_zone": zone}, lambda each: setattr(each, "zone", zone)
        amount = self.random.choice([each for each in (3, 5, 8) if each * 1_000_000 != purse.amount])
        if what < 2:
            return {"period_budget": float(amount)}, lambda each: setattr(each, "amount", amount * 1_000_000)
        return {"unspent": "lapse" if purse.carries else "carry"}, lambda each: setattr(
            each, "carries", not each.carries
        )

    def terms(self):
        name = self.random.choice(NAMES[1:])
        changes, book = self.new_terms(self.books.purses[name])

        def foretell(books):
            books.purses[name].renew(self.now())
            book(books.purses[name])
            books.purses[name].align(self.now())

        self.attempt(lambda: self.engines[0].change_terms(name, changes), foretell)

    def shared_terms(self):
        changes, book = self.new_terms(self.books.shared)

        def foretell(books):
            books.shared.renew(self.now())
            book(books.shared)
            books.shared.align(self.now())

        self.attempt(lambda: self.engines[0].shared_budgets.change("marketing", changes), foretell)

    def join_or_leave(self):
        name = self.random.choice(NAMES)
        inside = name in self.books.members

        def foretell(books):
            purse, shared = books.purses[name], books.shared
            purse.renew(self.now())
            if purse.kind is not None:
                purse.align(self.now())
            if inside:
                if purse.held:
                    raise Conflict
                books.members.remove(name)
                books.left_behind[name] = purse.spent
                return
            shared.renew(self.now())
            new = purse.spent - books.left_behind.pop(name, 0)
            if new + purse.held > shared.left:
                raise BadParameter
            shared.spent, shared.held = shared.spent + new, shared.held + purse.held
            books.members.add(name)

        change = {"shared_budget": None if inside else "marketing"}
        self.attempt(lambda: self.engines[0].change_terms(name, change), foretell)

    def keep_a_copy(self):
        if not self.is_copied:
            return
        self.copies += 1
        name = f"copy {self.copies}"
        back_up(self.path, self.folder / f"{name}.db")
        if self.archive.exists():
            shutil.copytree(self.archive, self.folder / f"{name} archive")
        self.saved = name, deepcopy(self.books)

    def restore(self):
        """What came after the copy is lost, and an operator says what was spent since."""
        if self.saved is None:
            return
        (name, self.books), self.saved = self.saved, None
        self.open_store(name)
        self.engines[0].mark_restored()
        for name in NAMES:
            purses = [self.books.purses[name], *([self.books.shared] if name in self.books.members else [])]
            if any(each.ahead(self.now()) for each in purses):
                self.reset(name)
            self.resume(name)
        self.happened["restored"] += 1

    def resume(self, name):
        """With what it has spent since, which there is money for."""
        spent = self.random.choice([0, 250_000])

        def foretell(books):
            purse, shared = books.purses[name], self.shared_of(books, name)
            for each in (purse,) if shared is None else (purse, shared):
                each.renew(self.now())
                each.spent += spent
            return min(each.left for each in (purse, shared or purse))

        spent = spent if foretell(deepcopy(self.books)) >= 0 else 0
        assert self.attempt(lambda: self.engines[0].set_status(name, "active", spent_since=spent / 1e6), foretell)

    def check(self):
        engine = self.engines[self.number % 2]
        accounts = {name: engine.account(name) for name in NAMES} | {
            "marketing": engine.shared_budgets.account("marketing")
        }
        for name, account in accounts.items():
            purse = self.books.purses.get(name, self.books.shared)
            there = (account.budget, account.spent, account.held, account.period, account.advance, account.overrun)
            assert there == (purse.budget, purse.spent, purse.held, purse.begun, purse.advance, 0), name
            assert purse.left >= 0
        assert accounts[CAPPED].today == self.books.today
        self.happened["compared"] += len(accounts)


def play(folder, seed, steps, store=None):
    world = World(folder, seed, store)
    with world.stack:
        for number in range(steps):
            try:
                world.step()
            except BaseException as error:
                error.add_note(f"seed {seed}, step {number}")
                raise
        for name in NAMES:
            assert verify(world.store, name) == []
            assert not world.archive.exists() or verify(world.store, name, archive=world.archive) == []
        assert verify_shared_budget(world.store, "marketing") == []
    return world.happened


@pytest.mark.parametrize(("first", "seeds", "steps"), [(35, 1, 150), *deep((100, 6, 1200))])
def test_clocks_that_jump_and_stores_that_are_restored(tmp_path, first, seeds, steps):
    happened = Counter()
    for seed in range(first, first + seeds):
        (tmp_path / str(seed)).mkdir()
        happened += play(tmp_path / str(seed), seed, steps)
    print(dict(happened))
    for what in ("decisions", "jumps", "WrongClock", "HoldRefused", "restored", "reset", "expire", "terms"):
        assert happened[what] >= seeds * steps / 200, (what, happened)
    for what in ("pruned", "daily_cap"):
        assert happened[what] >= seeds * steps / 400, (what, happened)


@pytest.mark.parametrize("steps", [120, *deep(600)])
def test_clocks_that_jump_on_postgres(postgres, tmp_path, steps):
    """Nothing is restored there: its own programs copy it."""
    with postgres() as store:
        happened = play(tmp_path, 1, steps, store)
    for what in ("decisions", "jumps", "WrongClock", "pruned"):
        assert happened[what] >= steps / 200, (what, happened)
