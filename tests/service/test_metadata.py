"""Metadata of decisions: kept as sent, part of what a key is for, exported, looked for, and seen by no policy."""

import csv
import json
import math

import pytest

from budgetbandits import Allocation
from budgetbandits.errors import BadParameter, Conflict
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.audit.export import export
from budgetbandits.service.stores.sql.dashboard import DecisionFilter
from stores import all_decisions, all_events

ARMS = {"openai/gpt-4o-mini": 0.1, "openai/gpt-4o": 1.0}
NOTES = {"user": "u-17 ü", "tokens": 350, "share": 0.25}


@pytest.mark.parametrize("lease", [None, 5.0])
def test_it_is_kept_exported_and_audited(engine, store, tmp_path, lease):
    campaign = engine.create("models", "bts", budget=100.0, arms=ARMS, lease=lease)
    plain = engine.decide(campaign, "plain")
    noted = engine.decide(campaign, "noted", metadata=NOTES, arms=["openai/gpt-4o"])
    many = engine.decide_many(campaign, "many", 2, metadata={"user": "u-2"})
    for made in (plain, noted, *many):
        engine.feedback(made.decision, cost=0.05, reward=1.0)
    assert verify(store, campaign) == []

    rows = {each.id: each.request for each in all_decisions(store, campaign)}
    assert rows[plain.decision] is None  # nothing is written where nothing is said
    assert json.loads(rows[noted.decision])["metadata"] == NOTES
    assert json.loads(rows[many[1].decision]) == {"metadata": {"user": "u-2"}}
    told = {e.decision: e.request for e in all_events(store, campaign) if e.kind == "decided"}
    assert told == rows

    export(store, campaign, tmp_path / "decisions.csv")
    with (tmp_path / "decisions.csv").open() as file:
        column = {row["decision"]: row["metadata"] for row in csv.DictReader(file)}
    assert column[plain.decision] == ""
    assert json.loads(column[noted.decision]) == NOTES


def test_a_key_is_for_one_metadata(engine):
    campaign = engine.create("models", "bts", budget=100.0, arms=ARMS)
    first = engine.decide(campaign, "one", metadata=NOTES)
    assert engine.decide(campaign, "one", metadata=dict(reversed(NOTES.items()))) == first
    for other in ({}, {"metadata": {}}, {"metadata": NOTES | {"tokens": 351}}, {"metadata": {"user": "u-17 ü"}}):
        with pytest.raises(Conflict, match="use a new key"):
            engine.decide(campaign, "one", **other)
    assert engine.decide(campaign, "two") == engine.decide(campaign, "two", metadata={})  # nothing said is nothing


def test_no_choice_depends_on_it(engine, store):
    """The audit makes each choice again from the event; here with the metadata taken out of what it looks at."""
    campaign = engine.create("models", "bts-paced", budget=100.0, arms=ARMS, horizon=200)
    for number in range(20):
        made = engine.decide(campaign, f"{number}", segment="chat", metadata={"n": number})
        engine.feedback(made.decision, cost=0.05, reward=number % 2)
    assert verify(store, campaign) == []
    assert engine.describe(campaign).segments == ("chat",)


def test_what_is_none_is_refused(engine):
    campaign = engine.create("models", "bts", budget=100.0, arms=ARMS)
    for metadata, says in (
        ([("user", 1)], "map names to texts and numbers"),
        ({"user": None}, "'user' is None; use a text or a finite number"),
        ({"user": True}, "'user' is True; use a text"),
        ({"user": math.nan}, "'user' is nan; use a text"),
        ({"user": ["u"]}, "use a text or a finite number"),
        ({"a=b": 1}, "printable characters without ="),
        ({"": 1}, "use 1 to 64 printable"),
        ({"x" * 65: 1}, "use 1 to 64 printable"),
        ({3: 1}, "has the name 3"),
        ({str(n): n for n in range(17)}, "has 17 entries; give 16 at most"),
        ({"user": "é" * 1000}, "takes 2,0.. bytes as JSON; 2,000 at most"),
        ({"user": "a\0b"}, "U\\+0000"),
        ({"user": "\ud800"}, "half of one"),
    ):
        with pytest.raises(BadParameter, match=says):
            engine.decide(campaign, "one", metadata=metadata)
    assert engine.account(campaign).held == 0


def test_decisions_are_found_by_it(engine, store):
    campaign = engine.create("models", "bts", budget=1000.0, arms=ARMS)
    made = [engine.decide(campaign, f"{n}", metadata={"user": f"u{n % 3}", "n": n / 2}).decision for n in range(9)]
    engine.decide(campaign, "none")

    def found(*wanted):
        which = DecisionFilter(metadata=wanted)
        return [each.id for each in store.read(lambda tx: tx.pages().decisions(campaign, 50, which)).decisions]

    assert found("user", "u1") == [made[7], made[4], made[1]]
    assert found("n", "3") == [made[6]]
    assert found("n", "1.5") == [made[3]]
    assert found("user", "u") == found("nobody", "u1") == []


def test_an_allocation_keeps_none():
    spend = Allocation("bts", ["a", "b"], budget=20.0, cost_max=2.0, seed=7)
    with pytest.raises(TypeError, match="unexpected argument 'metadata'"):
        spend.ask(metadata={"user": 1})
