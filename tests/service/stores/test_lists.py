"""The list of campaigns as a database makes it, against the same made in Python of every campaign there is."""

import random

import pytest

from budgetbandits.errors import BadParameter
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.dashboard import overview as module
from budgetbandits.service.dashboard.overview import ListQuery, overview
from budgetbandits.service.ledger import Account, to_units
from budgetbandits.service.service import DecisionService
from budgetbandits.service.standing import standing
from budgetbandits.service.stores.contract import Event
from budgetbandits.service.stores.records import Lease, Rank
from clock import Clock

NAMES = ("straße", "STRASSE", "ärger", "Ärger 2", "zebra", "Alpha", "alpha 2", "ελλάς")
"""Lower case differs among databases in some of these; none can be told apart by what comes after the name."""

DOWN = '[{"arm": "a", "failures": 4, "since": 1e9, "substitute": null, "times": null}]'


def filled(store, count, rng):
    """Campaigns in every state there is, by SQL; their ids."""
    engine, now = DecisionService(store, Clock(1e9)), store.read(lambda tx: tx.now())
    ids = []
    for number in range(count):
        name = f"{rng.choice(NAMES)} {number:03d}"
        ids.append(engine.create(name, "bts", 10.0, {"a": 1.0, "b": rng.choice([0.2, 1.0]), "c": 0.5}))

    def change(tx):
        for at in (now - 600.0, now - 90_000.0):
            tx.add_event(Event(ids[0], "settled", at))
        overruns = [event.seq for event in tx.events(ids[0], kind="settled")]
        for id in ids:
            for at in rng.choice([(), (now - 600.0,), (now - 90_000.0,), (now - 90_000.0, now - 600.0)]):
                tx.add_event(Event(id, "active", at))  # resumed after the overrun, once or twice
            left = rng.choice([0, 100_000, 300_000, 700_000, 2_000_000])
            held, leased = rng.choice([(0, 0), (400_000, 0), (0, 400_000)])
            moments = [now - rng.choice([60.0, 4000.0, 9000.0, 90_000.0]) for _ in range(3)]
            tx.change(
                "UPDATE campaign SET status = ?, overrun = ?, spent = ?, held = ?, leased = ?, created_at = ?, "
                "arms_down = ? WHERE id = ?",
                (rng.choice(["active"] * 7 + ["paused", "frozen", "closed"]), rng.choice([0, 500_000]),
                 10_000_000 - left - held - leased, held, leased, moments[0], rng.choice([None, None, DOWN]), id),
            )  # fmt: skip
            if rng.random() < 0.3:  # restored from a copy: what was spent since is not said yet
                unsaid, said = '"restored_from":null', '"restored_from":1.5'
                tx.change("UPDATE campaign SET settings = REPLACE(settings, ?, ?) WHERE id = ?", (unsaid, said, id))
            if leased:
                lent = rng.choice([0, 400_000])
                tx.add_lease(Lease(f"{id} lease", id, Account(400_000, 0, lent), now + 60.0, 1, 0, ""))
            if rng.random() < 0.8:
                tx.change(
                    "INSERT INTO rollup_watermark (campaign, seq, last_decision_at, last_feedback_at, "
                    "oldest_unanswered_at, last_overrun_event) VALUES (?, 0, ?, ?, ?, ?)",
                    (
                        id,
                        moments[1],
                        rng.choice([None, moments[2]]),
                        rng.choice([None, moments[1], now - 4000.0]),
                        rng.choice([None, *overruns]),
                    ),
                )
            if rng.random() < 0.3:
                tx.change("UPDATE arm SET active = ? WHERE campaign = ? AND number = 1", (False, id))

    store.write(change)
    return ids


def rank_of(tx, summary, now):
    """The rank of a campaign, made in Python."""
    account, mark = summary.account, tx.rollups().watermark(summary.id)
    if account.status != "active":
        restored = account.status == "paused" and summary.settings.restored_from is not None
        return Rank.RESTORED if restored else Rank[account.status.upper()]
    hour_ago, day_ago, latest = now - 3600.0, now - 86_400.0, mark.last_decision_at or 0.0
    if summary.left < summary.smallest_cap and not summary.decides_in_leases:
        news = max(mark.last_feedback_at or 0.0, summary.created_at, latest) > day_ago
        return Rank.BLOCKED if account.open else Rank.EXHAUSTED if news else Rank.SPENT
    waits_since = now if mark.oldest_unanswered_at is None else mark.oldest_unanswered_at
    matters = account.held or summary.held_in_leases or latest > hour_ago
    if (mark.last_feedback_at or 0.0) <= waits_since < hour_ago and matters:
        return Rank.SILENT
    overran = account.overrun and mark.last_overrun_event
    resumed = tx.events(summary.id, mark.last_overrun_event, kind="active") if overran else []
    if resumed and resumed[0].at > day_ago:
        return Rank.OVERRAN
    if summary.arms_down:
        return Rank.DOWN
    return Rank.NEARLY_EXHAUSTED if summary.left < summary.largest_cap else Rank.RUNNING


def key(order, glance, state):
    """What a list is ordered by. Names that are equal but for case do not occur: each ends with its own number."""
    group = ["attention", "running", "stopped"].index(state.group)
    if order == "alarm":
        return state.rank, -(glance.last_decision_at or 0.0)
    if order == "name":
        return group, glance.name.casefold()
    if order == "left":
        return group, glance.account.left / glance.account.budget
    return group, -glance.created_at


def test_a_list_is_found_counted_and_ordered_as_if_all_were_read(store, monkeypatch):
    ids = filled(store, 120, random.Random(8))

    def ranks(tx):
        now = tx.now()
        return [(each.rank, rank_of(tx, each, now)) for each in tx.pages().summaries(ids, now)]

    pairs = store.read(ranks)
    assert len(pairs) == len(ids)
    assert all(rank is again for rank, again in pairs)
    monkeypatch.setattr(module, "CAMPAIGNS_PER_PAGE", 17)
    states = set()
    for text in ("", "STRASSE", "Ärg", "alpha 2 0", " 0", " ", "nobody"):  # few, most, all, none
        for order in ("alarm", "name", "left", "newest"):
            for group in ("all", "attention", "running", "stopped"):

                def read(tx, asked=(text, group, order)):
                    first = overview(tx, ListQuery(*asked), None)
                    pages = range(2, first.matching // 17 + 3)  # one more than there are
                    views = [first, *(overview(tx, ListQuery(*asked, page), None) for page in pages)]
                    return views, tx.pages().summaries(ids, tx.now())

                views, glances = store.read(read)
                named = [(each, standing(each, views[0].now)) for each in glances]
                named = [(each, state) for each, state in named if text.casefold() in each.name.casefold()]
                wanted = [pair for pair in named if group in ("all", pair[1].group)]
                lines = [line for view in views for line in view.lines]
                assert sorted(line.glance.id for line in lines) == sorted(each.id for each, _ in wanted)
                keys = [key(order, line.glance, line.standing) for line in lines]
                assert keys == sorted(keys), (text, order, group)
                assert views[0].matching == len(wanted)
                for each in ("attention", "running", "stopped"):
                    assert views[0].counts[each] == sum(state.group == each for _, state in named)
                states |= {line.standing.rank for line in lines}
    assert states == set(Rank)  # or this test has shown less than it says


def test_sums_are_by_currency(store):
    engine = DecisionService(store, Clock(1e9))
    nothing = store.read(lambda tx: overview(tx, ListQuery(), None))
    assert (nothing.campaigns, nothing.lines, nothing.matching) == (0, [], 0)
    first = engine.create("first", "bts", 10.0, {"a": 1.0, "b": 1.0}, currency="EUR")
    engine.create("second", "bts", 2.0**39, {"a": 1.0, "b": 1.0}, currency="EUR")
    engine.decide("first", "1")
    seen = store.read(lambda tx: overview(tx, ListQuery("second"), None))
    [sums] = seen.sums
    assert (seen.campaigns, sums.currency, sums.budget, sums.held) == (2, "EUR", 2.0**39 + 10, 1.0)
    assert sums.left == to_units(sum(engine.account(name).left for name in ("first", "second")))
    for name in ("third", "fourth", "fifth"):
        engine.create(name, "bts", 10.0, {"a": 1.0, "b": 1.0})
    engine.create("sixth", "bts", 7.0, {"a": 1.0, "b": 1.0}, currency="CHF")
    engine.create("leased", "bts", 100.0, {"a": 1.0, "b": 1.0}, currency="CHF", lease=4.0)
    made = engine.decide("leased", "1")
    engine.feedback(made.decision, cost=0.5, reward=1.0)
    seen = store.read(lambda tx: overview(tx, ListQuery(), None))
    assert [(each.currency, each.campaigns, each.budget) for each in seen.sums] == [
        (None, 3, 30.0), ("CHF", 2, 107.0), ("EUR", 2, 2.0**39 + 10)
    ]  # fmt: skip
    assert (seen.campaigns, seen.sums[1].spent_with_leases, seen.sums[0].spent_with_leases) == (7, 0.5, 0.0)
    alone = store.read(lambda tx: overview(tx, ListQuery(), first))
    assert (alone.campaigns, alone.sums[0].currency, alone.matching, alone.counts["all"]) == (1, "EUR", 1, 1)


def test_budgets_may_sum_up_to_more_than_the_largest_number_of_a_database(store):
    engine = DecisionService(store)
    for number in range(10):
        engine.create(f"ads {number}", "bts", 1e12, {"a": 1.0, "b": 1.0})

    def lend(tx):
        for id in [row.id for row in tx.campaigns()]:
            tx.change("UPDATE campaign SET spent = 3, overrun = ?, leased = ? WHERE id = ?", (2**62, 10**17 - 7, id))
            tx.add_lease(Lease(f"{id} lease", id, Account(2**62, 2**62 - 1, 0), 1e10, 1, 0, ""))

    store.write(lend)
    [sums] = store.read(lambda tx: tx.pages().campaign_list().sums())
    budget = 10 * 10**18
    assert sums.money == {
        "budget": budget, "spent": 30, "held": 0, "leased": 10 * (10**17 - 7), "overrun": 10 * 2**62,
        "left": budget - 30 - 10 * (10**17 - 7), "spent_with_leases": 30 + 10 * (2**62 - 1),
    }  # fmt: skip
    assert store.read(lambda tx: overview(tx, ListQuery(), None)).as_json()["sums"]


def test_a_list_is_filtered_by_tag_and_a_tag_can_change(store):
    engine = DecisionService(store, Clock(1e9))
    ids = {}
    for name, tags in {"first": ["search", "team a"], "second": ["team a"], "third": ["team"], "fourth": None}.items():
        ids[name] = engine.create(name, "bts", 10.0, {"a": 1.0, "b": 1.0}, tags=tags)

    def found(tag, only=None, text=""):
        view = store.read(lambda tx: overview(tx, ListQuery(text, order="name", tag=tag), only))
        assert view.matching == len(view.lines)
        return [line.glance.name for line in view.lines], view.tags

    every = ["search", "team", "team a"]
    assert found("team a") == (["first", "second"], every)
    assert found("team") == (["third"], every)  # and not what begins with it
    assert found("nobody's") == ([], every)
    assert found("team a", text="sec") == (["second"], every)
    assert found("", ids["first"]) == (["first"], ["search", "team a"])
    engine.change_terms("second", {"tags": ["zoo", "e\u0301"]}, actor="bb_maker")
    engine.change_terms("first", {"tags": None})
    assert found("é") == (["second"], ["team", "zoo", "é"])
    assert engine.describe("second").tags == ("zoo", "é")
    assert engine.describe("first").tags is None
    assert verify(store, "second") == []
    refused = [
        (["a,b"], "without a comma"), ([], "give a list"), ([""], "a name of its own"), ("zoo", "give a list"),
        ([f"t{n}" for n in range(17)], "16 at most"), (["x", "x"], "a name of its own"),
        ([" x"], "no space at either end"),
    ]  # fmt: skip
    for tags, words in refused:
        with pytest.raises(BadParameter, match=words):
            engine.change_terms("third", {"tags": tags})
