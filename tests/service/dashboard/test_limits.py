"""The limit that binds is the figure that is shown, and the standing is the same word everywhere."""

from datetime import UTC, datetime

import pytest

from browsing import seen
from budgetbandits.service.projection import projections
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.standing import outlooks
from called import Service
from served import pull

ARMS = {"a": 3.0, "b": 3.0}


@pytest.fixture
def members(store):
    """Two campaigns with 50 each, and 40 for both."""
    store.engine.shared_budgets.create("all", 40.0)
    for name in ("spring", "summer"):
        store.engine.create(name, "bts", 50.0, ARMS, shared_budget="all")
    pull(store.engine, "spring", "1", cost=2.5, reward=1.0)
    return store


def test_what_a_shared_budget_has_left_is_what_its_members_have(members, admin):
    """37.50, and not the 47.50 and 50 of their own; both together have no more, either."""
    assert "Left 37.50 in the shared budget all; 47.50 of its own" in seen(admin("GET", "/campaigns/spring"))
    listed = seen(admin("GET", "/"))
    assert "Left 37.50 for new decisions" in listed
    assert listed.count("37.50 left, shared") == 2
    assert "47.50" not in listed
    assert seen(admin("GET", "/shared-budgets/all")).count("37.50 left, shared") == 2
    [sums] = admin("GET", "/?format=json").json()["sums"]
    assert (sums["left"], sums["held"], sums["spent"]) == (37.5, 0.0, 2.5)
    metrics = admin_metrics(members)
    assert 'budgetbandits_campaign_left{campaign="spring"} 37.5' in metrics


def admin_metrics(store):
    return Service(store)("GET", "/metrics").text


def test_open_money_is_shown_as_held_beside_a_shared_budget(members, admin):
    members.engine.decide("summer", "2")
    assert "Held 3.00 until feedback comes" in seen(admin("GET", "/"))


def test_what_the_daily_cap_leaves_is_said_with_what_is_left(store, admin):
    store.engine.create("ads", "bts", 50.0, ARMS, daily_cap=5.0)
    pull(store.engine, "ads", "1", cost=2.0, reward=1.0)
    assert "Left 48.00 for new decisions; 3.00 today" in seen(admin("GET", "/campaigns/ads"))


@pytest.mark.parametrize("shared", [False, True], ids=["its own", "shared"])
def test_a_campaign_that_runs_out_is_running_out_everywhere(store, admin, shared):
    engine, begun = store.engine, store.clock.now - 660.0
    store.clock.now = begun
    if shared:
        engine.shared_budgets.create("all", 30.0)
    own = {"shared_budget": "all"} if shared else {}
    engine.create("ads", "bts", 9000.0 if shared else 30.0, ARMS, **own)
    for minute in range(1, 10):
        store.clock.now = begun + 60.0 * minute
        pull(engine, "ads", str(minute), cost=1.0, reward=1.0)
    roll_up(store)
    page, of = seen(admin("GET", "/campaigns/ads")), "The money of its shared budget all" if shared else "The money"
    assert "ads Running out" in page
    assert f"Running out. {of} is likely to end" in page
    assert "Running out" in seen(admin("GET", "/"))
    assert not shared or "Running out" in seen(admin("GET", "/shared-budgets/all"))
    assert admin("GET", "/campaigns/ads?format=json").json()["standing"]["word"] == "Running out"
    [outlook] = store.read(lambda tx: outlooks(tx, tx.pages().campaign_list().ids(9)))
    answer = Service(store)("GET", "/v1/campaigns/ads/standing").json()
    assert outlook.name == answer["standing"] == "running_out"
    assert answer["runs_out"]["limit"] == ("shared_budget" if shared else "budget")


def test_a_shared_budget_that_ends_first_stands_before_the_requests_that_the_own_one_would_last_for(store, admin):
    engine, begun = store.engine, store.clock.now - 660.0
    store.clock.now = begun
    engine.shared_budgets.create("all", 20.0)
    engine.create("ads", "bts-paced", 900.0, ARMS, horizon=30, shared_budget="all")
    for minute in range(1, 10):
        store.clock.now = begun + 60.0 * minute
        pull(engine, "ads", str(minute), cost=1.0, reward=1.0)
    roll_up(store)
    page = seen(admin("GET", "/campaigns/ads"))
    assert "of its shared budget, its own money lasts for all 30 requests" in page
    for text in (page, seen(admin("GET", "/"))):
        assert "All 30 requests" not in text


@pytest.mark.parametrize("shared", [False, True], ids=["its own", "shared"])
def test_money_of_a_month_that_has_begun_counts_before_the_first_decision_of_it(store, monkeypatch, shared):
    monkeypatch.setattr("budgetbandits.service.rollups.MINUTES_KEPT_SECONDS", 1e9)
    engine, terms = store.engine, {"period": "month", "time_zone": "UTC"}
    store.clock.now = begun = datetime(2025, 1, 31, 23, 49, 30, tzinfo=UTC).timestamp()
    if shared:
        engine.shared_budgets.create("all", 20.0, **terms)
    own = {"shared_budget": "all"} if shared else terms
    engine.create("ads", "bts", 9000.0 if shared else 20.0, ARMS, **own)
    for minute in range(1, 9):
        store.clock.now = begun + 60.0 * minute
        pull(engine, "ads", str(minute), cost=2.0, reward=1.0)
    roll_up(store)

    def ends(tx, now):
        pages, ids = tx.pages(), tx.pages().campaign_list().ids(9)
        [end] = projections(pages, pages.summaries(ids, now), pages.spent_by(3600, ids, now - 86_400), now).values()
        return end.median - now

    assert store.read(lambda tx: ends(tx, begun + 480.0)) < 150.0  # 4 are left of January, at 2 a minute
    assert store.read(lambda tx: ends(tx, begun + 660.0)) > 500.0  # February
