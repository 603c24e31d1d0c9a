"""The alert rules and the Grafana dashboard in `deploy/`: read by a real Prometheus, and firing in an outage.

Debian's package prometheus has both programs. Grafana is in no Debian: its dashboard is checked for its expressions,
each of which the real Prometheus evaluates, and for metrics that a server really has.
"""

import contextlib
import json
import re
import subprocess
import time

import httpx
import pytest

from budgetbandits.client import Client
from budgetbandits.service.http.metrics import Metrics
from budgetbandits.service.stores.sqlite import SQLiteStore
from deployed import DEPLOY, program
from servers import admin_key, free_port, serving

RULES, DASHBOARD = DEPLOY / "prometheus-rules.yml", DEPLOY / "grafana-dashboard.json"
NAME = re.compile(r"\b(?:budgetbandits|process)_\w+")


def expressions():
    """Every expression of the dashboard, with what Grafana fills in."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    made = [target["expr"] for panel in panels for target in panel["targets"]]
    return [each.replace("$job", ".*").replace("$campaign", ".*") for each in made]


def test_rules_and_dashboard_use_metrics_that_there_are(tmp_path):
    with SQLiteStore(tmp_path / "money.db") as store:
        page = Metrics(store).page().decode()
    there = set()
    for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", page, re.M):
        there |= {f"{name}_bucket", f"{name}_count", f"{name}_sum"} if kind == "histogram" else {name}
    of_variables = re.findall(r"label_values\((\w+)", DASHBOARD.read_text())
    used = {*of_variables, *NAME.findall(RULES.read_text()), *(n for each in expressions() for n in NAME.findall(each))}
    assert len(used) > 20
    assert used <= there, used - there


def test_the_dashboard_is_whole():
    dashboard = json.loads(DASHBOARD.read_text())
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) == len({panel["title"] for panel in panels})
    taken = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
        assert [each["refId"] for each in panel["targets"]] == list("ABC"[: len(panel["targets"])])
    assert {each["name"] for each in dashboard["templating"]["list"]} == {"datasource", "job", "campaign"}


FIRING = {
    # alert: (series, values a minute apart, minutes after which it fires, values with which it never does)
    "CampaignFrozen": ('budgetbandits_campaign_standing{campaign="ads",standing="frozen"}', "1x30", 0, "_x30"),
    "CampaignRestored": (
        'budgetbandits_campaign_standing{campaign="ads",standing="restored"}', "1x30", 15, "1x10 _x30"),
    "CampaignBlockedByHolds": (
        'budgetbandits_campaign_standing{campaign="ads",standing="blocked_by_holds"}', "1x30", 10, "1x8 _x30"),
    "CampaignWithoutFeedback": (
        'budgetbandits_campaign_standing{campaign="ads",standing="no_feedback"}', "1x30", 5, "1x3 _x30"),
    "CampaignOverran": ('budgetbandits_campaign_standing{campaign="ads",standing="overran"}', "1x30", 0, "_x30"),
    "CampaignArmDown": ('budgetbandits_campaign_arms_down{campaign="ads"}', "2x30", 5, "1x3 _x30"),
    "CampaignNearlyExhausted": (
        'budgetbandits_campaign_standing{campaign="ads",standing="nearly_exhausted"}', "1x30", 5, "1x3 _x30"),
    "CampaignRunningOut": (
        'budgetbandits_campaign_projected_end_timestamp_seconds{campaign="ads"}', "80000x30", 15, "100000x30"),
    "CampaignDamaged": ("budgetbandits_damaged_campaigns", "1x30", 0, "0x30"),
    "ServerDown": ('up{job="budgetbandits",instance="a"}', "0x30", 1, "1x30"),
    "ServerFailing": ('budgetbandits_requests_total{status="503",instance="a"}', "0+60x30", 6, "0x30"),
    "ServerSlow": (
        'budgetbandits_request_duration_seconds_bucket{route="/v1/campaigns/{campaign}/decisions",le="+Inf"}',
        "0+60x30", 11, "0x30"),
    "BackgroundTaskStopped": (
        'budgetbandits_background_success_timestamp_seconds{task="expire"}', "0x30", 8, "0+60x30"),
    "RollupsBehind": ("budgetbandits_rollup_lag_seconds", "400x30", 10, "5x30"),
    "WebhooksRefused": ('budgetbandits_notifications_total{result="refused"}', "0+1x30", 10, "0 3x30"),
    "HoldsExpire": ("budgetbandits_expired_holds_total", "0+1x40", 16, "7x40"),
}  # fmt: skip


def test_each_alert_fires_after_its_time_and_not_before(tmp_path):
    """promtool expects none and names the cases that fire, since it would compare the texts of those it expects."""
    tests, wanted = [], set()
    for alert, (series, bad, after, good) in FIRING.items():
        cases = [(bad, after + 1, True), (good, 25, False), *([(bad, after - 1, False)] if after else [])]
        for values, minutes, fires in cases:
            name = f"{alert} with {values} at {minutes} min"
            wanted |= {name} if fires else set()
            given = [{"series": series, "values": values}]
            if alert == "ServerSlow":  # a histogram has two buckets at least; none took less than this
                given.append({"series": series.replace("+Inf", "0.5"), "values": "0x30"})
            look = {"eval_time": f"{minutes}m", "alertname": alert, "exp_alerts": []}
            tests.append({"name": name, "interval": "1m", "input_series": given, "alert_rule_test": [look]})
    file = tmp_path / "test.json"
    file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "30s", "tests": tests}))
    command = [program("promtool"), "test", "rules", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert set(re.findall(r"^ *name: (.+),$", said, re.M)) == wanted, said


def test_every_alert_has_a_case():
    alerts = re.findall(r"- alert: (\w+)", RULES.read_text())
    assert set(alerts) - set(FIRING) == {"CampaignExhausted"}  # it needs two series: in the staged outage


CONFIGURATION = """
global: {{scrape_interval: 1s, evaluation_interval: 1s, scrape_timeout: 1s}}
rule_files: [{folder}/rules.yml]
scrape_configs:
  - job_name: budgetbandits
    authorization: {{credentials_file: {folder}/key}}
    static_configs: [{{targets: ["127.0.0.1:{server}"]}}]
"""


@contextlib.contextmanager
def prometheus(folder, server, key):
    """The address of a Prometheus that scrapes this server every second, with the rules and waits of a second."""
    (folder / "key").write_text(key)
    (folder / "rules.yml").write_text(re.sub(r"for: \d+m", "for: 1s", RULES.read_text()))
    (folder / "prometheus.yml").write_text(CONFIGURATION.format(folder=folder, server=server))
    port = free_port()
    command = [program("prometheus"), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
               f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]  # fmt: skip
    with (folder / "prometheus.log").open("w") as said, subprocess.Popen(command, stderr=said, stdout=said) as running:
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
                yield client
        finally:
            running.terminate()


def firing(client):
    with contextlib.suppress(httpx.TransportError):
        alerts = client.get("/api/v1/alerts").json()["data"]["alerts"]
        return {
            (each["labels"]["alertname"], each["labels"].get("campaign"))
            for each in alerts
            if each["state"] == "firing"
        }
    return set()


def wait_for(client, wanted, seconds=60.0):
    """The alerts that fire, when these and no others do."""
    end, seen = time.monotonic() + seconds, None
    while time.monotonic() < end:
        seen = firing(client)
        if seen == wanted:
            return
        time.sleep(0.2)
    raise AssertionError(f"firing: {seen}, wanted: {wanted}")


def healthy(client):
    with contextlib.suppress(httpx.TransportError):
        found = client.get("/api/v1/targets").json()["data"]["activeTargets"]
        return [each["health"] for each in found] == ["up"]
    return False


@pytest.mark.crashes
def test_alerts_fire_in_an_outage_and_end_with_it(tmp_path):
    program("prometheus")
    port = free_port()
    server = serving(tmp_path, port)
    key = admin_key(tmp_path)
    try:
        with Client(f"http://127.0.0.1:{port}", key) as client, prometheus(tmp_path, port, key) as watcher:
            client.create("ads", budget=10.0, arms={"search": 1.0, "mail": 0.5})
            client.create("spent", budget=1.0, arms={"search": 1.0, "mail": 1.0})
            while not healthy(watcher):
                time.sleep(0.2)
            time.sleep(3)  # three evaluations of a server that is well
            assert firing(watcher) == set()
            for expression in expressions():
                answer = watcher.get("/api/v1/query", params={"query": expression}).json()
                assert answer["status"] == "success", (expression, answer)
            with client.decide("ads") as d:
                d.settle(cost=d.hold + 3.0)  # above its cap
            with client.decide("spent") as d:
                d.settle(cost=1.0)
            wait_for(watcher, {("CampaignFrozen", "ads"), ("CampaignExhausted", "spent")})
            server.kill()
            server.wait()
            wait_for(watcher, {("ServerDown", None)}, 400.0)
            server = serving(tmp_path, port)
            client.resume("ads")
            client.top_up("spent", 5.0)
            wait_for(watcher, {("CampaignOverran", "ads")})
    finally:
        server.kill()
        server.wait()
