"""Metrics of campaigns, of a server and of its store, on both stores: exact, bounded, and what Prometheus can read."""

import re
import threading
import time
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from budgetbandits.errors import BadParameter, StoreError
from budgetbandits.service.http import campaign_metrics, server
from budgetbandits.service.http.campaign_metrics import SERIES, CampaignMetrics, CampaignSeries
from budgetbandits.service.http.metrics import Metrics
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.service import DecisionService
from called import Service
from served import pull
from stores import tamper

ARMS = {"search": 1.0, "mail": 0.5}


@pytest.fixture
def service(store):
    return Service(store)


def values(page):
    """Every sample, by its name and labels; refuses what Prometheus's own parser refuses."""
    found = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            key = (sample.name, *sorted(sample.labels.items()))
            assert key not in found, f"twice: {key}"
            found[key] = sample.value
    return found


def of_campaigns(page, name="ads"):
    """The samples of a campaign, by their name without its beginning; the standing is its label."""
    made = {}
    for (metric, *labels), value in values(page).items():
        labels = dict(labels)
        if labels.pop("campaign", None) == name:
            made[metric.removeprefix("budgetbandits_campaign_")] = labels.get("standing", value)
    return made


def test_a_campaign_has_its_money_as_the_store_has_it_now(service):
    engine = service.engine
    engine.create("ads", None, 10.0, ARMS, horizon=100)
    pull(engine, "ads", "1", cost=0.25, reward=0.75)
    held = engine.decide("ads", "2").hold
    roll_up(service.store)
    engine.top_up("ads", 5.0)  # behind the server's back
    seen = of_campaigns(service("GET", "/metrics").text)
    assert seen.pop("behind_plan_ratio") == pytest.approx((0.15 - 0.25) / 15.0)
    assert seen == {
        "budget": 15.0, "spent": 0.25, "held": held, "left": 14.75 - held, "standing": "running",
        "spent_24_hours": 0.25, "reward_24_hours": 0.75,
    }  # fmt: skip
    made = engine.decide("ads", "3")
    engine.feedback(made.decision, cost=made.hold + 0.5)
    seen = of_campaigns(service("GET", "/metrics").text)
    assert (seen["overrun"], seen["standing"]) == (0.5, "frozen")


def test_closed_campaigns_drop_out_and_the_most_urgent_come_first(store):
    engine = DecisionService(store)
    for name in ("one", "two", "three", "closed", 'odd "name" \\ n'):
        engine.create(name, "bts", 10.0, ARMS)
    made = engine.decide("three", "1")
    engine.feedback(made.decision, cost=made.hold + 0.5)
    engine.set_status("closed", "closed")
    page = Metrics(store).page().decode()
    named = {dict(labels)["campaign"] for (_, *labels) in values(page) if "campaign" in dict(labels)}
    assert named == {"one", "two", "three", 'odd "name" \\ n'}
    of_all = values(page)
    for rank, count in (("closed", 1.0), ("frozen", 1.0), ("running", 3.0), ("paused", 0.0)):
        assert of_all["budgetbandits_campaigns", ("rank", rank)] == count
    assert of_all["budgetbandits_campaigns_left_out",] == 0.0
    few = CampaignMetrics(store, CampaignSeries.parse("left,standing", 1)).page().decode()
    assert of_campaigns(few, "three").keys() == {"left", "standing"}
    assert few.count('campaign="') == 2
    assert values(few)["budgetbandits_campaigns_left_out",] == 3.0
    none = CampaignMetrics(store, CampaignSeries.parse("none")).page().decode()
    assert 'campaign="' not in none
    assert values(none)["budgetbandits_campaigns_left_out",] == 4.0


def test_which_series_there_are_is_checked():
    assert CampaignSeries.parse(None).names == tuple(SERIES)
    for text, match in (("left,lefft", "no series 'lefft'; list some of budget, spent"), ("left,left", "twice")):
        with pytest.raises(BadParameter, match=match):
            CampaignSeries.parse(text)


def test_a_projected_end_and_a_lag_are_series(store):
    engine = DecisionService(store)
    campaign = engine.create("ads", "bts", 10.0, ARMS)
    pull(engine, "ads", "1", cost=0.25)
    page = values(Metrics(store).page().decode())
    assert 0.0 <= page["budgetbandits_rollup_lag_seconds",] < 60.0
    hour = 3600.0
    store.write(lambda tx: tx.change("UPDATE event SET at = at - ?", (hour,)))
    lag = values(Metrics(store).page().decode())["budgetbandits_rollup_lag_seconds",]
    assert hour <= lag < hour + 60.0
    roll_up(store)
    assert values(Metrics(store).page().decode())["budgetbandits_rollup_lag_seconds",] == 0.0

    def age(tx):
        tx.change("UPDATE campaign SET created_at = created_at - 7200 WHERE id = ?", (campaign,))

    store.write(age)
    outlook = engine.standing("ads")
    seen = of_campaigns(Metrics(store).page().decode())
    assert seen["projected_end_timestamp_seconds"] == pytest.approx(outlook.runs_out.median, abs=60.0)


def test_a_server_counts_its_process_its_store_and_what_it_does_by_itself(store):
    metrics = Metrics(store)
    seen = values(metrics.page().decode())
    [build] = [dict(labels) for (name, *labels) in seen if name == "budgetbandits_build_info"]
    assert build["store"] in ("sqlite", "postgres")
    assert re.fullmatch(r"\d+\.\d+.*", build["version"])
    assert seen["process_resident_memory_bytes",] > 1e6
    pools = {dict(labels)["pool"] for (name, *labels) in seen if name == "budgetbandits_store_connections"}
    assert {"writers", "readers"} <= pools
    assert seen["budgetbandits_store_waiting", ("pool", "writers")] == 0.0

    def fails():
        raise StoreError("the disk is full; make room")

    def works():
        pass

    for work in (fails, works, works, fails):
        server._once(server.partial(work), metrics)
    seen = values(metrics.page().decode())
    assert seen["budgetbandits_background_failures_total", ("task", "fails")] == 2.0
    assert ("budgetbandits_background_failures_total", ("task", "works")) not in seen
    ended = seen["budgetbandits_background_success_timestamp_seconds", ("task", "works")]
    assert time.time() - 60 < ended <= time.time()


def test_readers_of_a_store_are_counted(store):
    DecisionService(store).create("ads", "bts", 10.0, ARMS)

    def busy(tx):
        return {pool.name: pool.busy for pool in store.pools()}

    during, after = store.read(busy), {pool.name: pool.busy for pool in store.pools()}
    assert (during["readers"], after["readers"]) == (1, 0)


def test_a_scrape_rests_and_is_made_once_for_all_who_wait(store, monkeypatch):
    engine, rests, asked, begun = DecisionService(store), [], [], threading.Event()
    for number in range(5):
        engine.create(f"campaign {number}", "bts", 10.0, ARMS)
    monkeypatch.setattr(campaign_metrics, "CAMPAIGNS_AT_ONCE", 2)
    go_on = threading.Event()

    def rest(seconds):
        rests.append(seconds)
        begun.set()
        go_on.wait(10)

    def now():
        asked.append(time.monotonic())
        return asked[-1]

    monkeypatch.setattr(
        campaign_metrics, "time", SimpleNamespace(sleep=rest, monotonic=now, thread_time=time.thread_time)
    )
    metrics, pages = CampaignMetrics(store, CampaignSeries()), []
    threads = [threading.Thread(target=lambda: pages.append(metrics.page())) for _ in range(4)]
    threads[0].start()
    assert begun.wait(10)
    before = len(asked)
    for thread in threads[1:]:
        thread.start()
    while len(asked) < before + 3:  # the first rests, the others have asked
        time.sleep(0.001)
    go_on.set()
    for thread in threads:
        thread.join(10)
    # the first, and one more for those who asked while it was made
    assert len(pages) == 4
    assert len(rests) == 2 * 3
    assert pages[0].count(b"budgetbandits_campaign_left{") == 5


def test_damaged_campaigns_are_counted(tmp_path):
    from budgetbandits.service.stores.sqlite import SQLiteStore

    with SQLiteStore(tmp_path / "money.db") as store:
        for name in ("one", "two"):
            DecisionService(store).create(name, "bts", 10.0, ARMS)
    tamper(tmp_path / "money.db", "UPDATE campaign SET learned = '7' WHERE name = 'one'")
    with SQLiteStore(tmp_path / "money.db") as store:
        assert values(Metrics(store).page().decode())["budgetbandits_damaged_campaigns",] == 1.0
