"""Campaigns that begin with what is known: past outcomes in a table, or what another campaign has learned."""

import pytest

from budgetbandits import Allocation
from budgetbandits.cli.outcomes import read_history
from budgetbandits.errors import BadParameter, Conflict, CostOutOfRange, RewardOutOfRange, UnknownArm
from budgetbandits.policies import POLICIES
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.audit.export import export
from budgetbandits.service.service import DecisionService
from budgetbandits.service.session_rows import read_session
from clock import Clock
from stores import STORES

ARMS = {"search": 2.0, "mail": 0.5}
PAST = {"search": (40, 30.0, 50.0), "mail": (10, 2.0, 1.0)}


@pytest.fixture
def clock():
    return Clock(86_400.0 * 10)


@pytest.fixture
def store(memory_store):
    return memory_store


def session_of(engine, campaign):
    row = engine._store.read(lambda tx: tx.campaign(campaign))
    return read_session(row, engine._store.read(lambda tx: tx.arms(row.id)))


def history_of(engine, campaign):
    session = session_of(engine, campaign)
    return {name: session.history(arm) for arm, name in enumerate(session.names)}


def near(history):
    return {
        name: (pulls, pytest.approx(reward), pytest.approx(cost)) for name, (pulls, reward, cost) in history.items()
    }


def play(engine, campaign, count):
    for number in range(count):
        made = engine.decide(campaign, f"{campaign} {number}")
        engine.feedback(made.decision, reward=float(number % 2), cost=made.hold / 2)


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "bts-linear"])
def test_every_policy_begins_with_its_history(engine, policy):
    known = {"costs": {"search": 0.5, "mail": 0.25}, "cost_floor": 0.1}
    engine.create("ads", policy, 100.0, ARMS, known=known, history=PAST)
    assert history_of(engine, "ads") == near(PAST)
    assert engine.account("ads").spent == 0
    play(engine, "ads", 4)


def test_it_knows_what_an_allocation_with_the_same_history_knows(engine):
    engine.create("ads", "bts-paced", 100.0, ARMS, history=PAST, horizon=100)
    spend = Allocation("bts-paced", ARMS, 100.0, cost_max=ARMS, history=PAST, horizon=100)
    ours, theirs = session_of(engine, "ads").state, spend._session.learner.state
    assert ours.sums == pytest.approx(theirs.sums)


def test_history_is_no_part_of_the_plan(engine):
    """50 past pulls use neither money nor requests of this budget."""
    engine.create("ads", "bts-paced", 100.0, ARMS, history=PAST, horizon=20)
    play(engine, "ads", 5)
    session, account = session_of(engine, "ads"), engine.account("ads")
    session.set_remaining(account)
    assert session.state.requests == 15
    assert session.state.left == pytest.approx((account.budget - account.spent) / 2e6)


@pytest.mark.parametrize(
    ("history", "error", "words"),
    [
        ({"radio": (1, 1, 0.1)}, UnknownArm, "no arm 'radio'"),
        ({"mail": (1, 2)}, BadParameter, "give how many pulls, total reward, total cost"),
        ({"mail": (1.5, 1, 0.1)}, BadParameter, "give a whole number"),
        ({"mail": (2, 3.0, 0.1)}, RewardOutOfRange, "a total reward of 3 in 2 pulls; each has 0 to 1"),
        ({"mail": (2, 1.0, 1.5)}, CostOutOfRange, "raise the cap"),
        ({"mail": (2, 1.0, -1.5)}, BadParameter, "use a number from 0"),
    ],
)
def test_what_is_no_history_is_refused(engine, history, error, words):
    with pytest.raises(error, match=words):
        engine.create("ads", "bts", 100.0, ARMS, history=history)
    assert engine.names() == []


@pytest.mark.parametrize("name", STORES)
def test_a_clone_has_what_the_other_has_learned(name, tmp_path, clock):
    with STORES[name](tmp_path) as opener, opener() as store:
        engine = DecisionService(store, clock)
        terms = {"daily_cap": 20.0, "time_zone": "Europe/Berlin", "on_limit": "cheapest", "reward_max": 2.0}
        engine.create("ads", "bts-gaussian", 100.0, {**ARMS, "radio": 1.0}, **terms)
        play(engine, "ads", 20)
        engine.retire_arm("ads", "radio")
        engine.change_terms("ads", {"caps": {"mail": 1.5}, "budget": 80.0})
        learned = history_of(engine, "ads")
        for copy, budget in (("ads 2", 7.0), ("ads 3", None)):
            engine.clone("ads", copy, budget, key="once")
        engine.clone("ads", "ads 2", 7.0, key="once")
        found, first = engine.describe("ads 2"), engine.describe("ads")
        assert (found.budget, found.spent, engine.account("ads 3").budget) == (7.0, 0.0, 80_000_000)
        assert {arm.name: arm.cost_cap for arm in found.arms} == {"search": 2.0, "mail": 1.5}
        assert [getattr(found, term) for term in (*terms, "policy")] == [
            getattr(first, term) for term in (*terms, "policy")
        ]
        assert history_of(engine, "ads 2") == near({arm: learned[arm] for arm in ("search", "mail")})
        made = engine.decide("ads", "one more")
        engine.feedback(
            made.decision, reward=1.0, cost=0.25
        )  # the clone's key is of what was asked, not of what was known
        engine.clone("ads", "ads 2", 7.0, key="once")
        with pytest.raises(Conflict):
            engine.clone("ads", "ads 2", 8.0, key="once")
        engine.clone("ads", "fresh", learned=False, actor="mia")
        assert [arm.pulls for arm in engine.describe("fresh").arms] == [0, 0]
        for each in engine.names():
            if each != "ads":
                play(engine, each, 2)
            assert verify(store, each) == []


def test_a_clone_of_a_policy_that_must_know_more_and_of_a_month(engine):
    known = {"costs": {"search": 0.5, "mail": 0.25}}
    engine.create("ads", "epsilon-first-greedy", 100.0, ARMS, known=known, period="month", unspent="carry")
    engine.change_terms("ads", {"caps": {"search": 4.0}})
    play(engine, "ads", 4)
    engine.clone("ads", "again")
    first, second = (session_of(engine, name).state.known.costs for name in ("ads", "again"))
    assert second == pytest.approx(first)
    assert engine.describe("again").budget == 100.0
    play(engine, "again", 4)


def test_an_audit_misses_a_history_that_no_event_tells(engine, tampered):
    store = engine._store
    engine.create("ads", "bts", 100.0, ARMS, history=PAST)
    store.events[0].request = None
    assert verify(store, "ads") != []


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_export_is_a_history(engine, tmp_path, suffix):
    """Of what was reported in full: of six decisions, one waits for its reward."""
    engine.create("ads", "kube", 100.0, ARMS, known={"costs": {"search": 0.5, "mail": 0.25}})
    play(engine, "ads", 5)
    engine.feedback(engine.decide("ads", "open").decision, cost=0.25)
    export(engine._store, "ads", tmp_path / f"made.{suffix}", "decisions")
    past = read_history(tmp_path / f"made.{suffix}")
    assert sum(pulls for pulls, _, _ in past.values()) == 5
    learned = {name: each for name, each in history_of(engine, "ads").items() if each[0]}
    assert past == near(learned)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("arm,reward\na,1\n", "no column 'cost'"),
        ("arm,reward,cost\na,1,much\n", "row 1: 'much' is no number from 0 upwards"),
        ("arm,reward,cost\na,,1\n", "no row has an arm, a reward and a cost"),
    ],
)
def test_files_that_are_none(tmp_path, text, words):
    file = tmp_path / "past.csv"
    file.write_text(text)
    with pytest.raises(BadParameter, match=words):
        read_history(file)


def test_a_table_of_totals(tmp_path):
    file = tmp_path / "past.csv"
    file.write_text("arm,pulls,reward,cost\nmail,10,2,1\nmail,2,1,0.5\n")
    assert read_history(file) == {"mail": (12, 3.0, 1.5)}
