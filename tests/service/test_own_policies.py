"""A policy of a plugin that shares no class with the package's is served like theirs, where its code is, and nowhere
else."""

import os

import pytest

from browsing import Browser, seen
from budgetbandits import plugins
from budgetbandits.errors import BadParameter, Conflict
from budgetbandits.policies import POLICY_REGISTRY, parse_policy
from budgetbandits.policies.files import PLUGIN_VARIABLE, load_inherited
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.http.auth import make_key
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore
from called import Service
from fading import FADING, SAYS_TOTALS

ARMS = {"search": 1.0, "mail": 0.5}


@pytest.fixture
def load(tmp_path):
    """Loads the policy from a file, with this code added to its class; it is gone after the test."""
    file = tmp_path / "mine.py"

    def load(code=FADING + SAYS_TOTALS):
        file.write_text(code)
        plugins.load(file)
        return file

    yield load
    POLICY_REGISTRY._added.clear()


@pytest.fixture
def store(tmp_path):
    with SQLiteStore(tmp_path / "money.db") as store:
        yield store


def pulls(client, count, first=0):
    """Decisions of the campaign and their feedback: mail pays half of the time, search never."""
    arms = []
    for number in range(first, first + count):
        made = client.decide("ads", key=f"{number}")
        made.settle(reward=float(made.arm == "mail" and number % 2), cost=0.25)
        arms.append(made.arm)
    return arms


def test_it_is_served_changed_and_audited(store, load):
    load()
    with Service(store).client() as client:
        client.create(
            "ads", policy="fading-ratio:fade=0.05", budget=100.0, arms=ARMS, history={"search": (8, 7.0, 1.0)}
        )
        before = pulls(client, 30)
    assert before[0] == "mail"
    assert {"search", "mail"} == set(before)
    with Service(store).client() as client:  # a server that was started anew reads what was learned
        client.change_terms("ads", reward_max=2.0, caps={"mail": 0.25})
        pulls(client, 10, 30)
        client.change_terms("ads", policy="bts")
        pulls(client, 10, 40)
        client.change_terms("ads", policy="fading-ratio")
        pulls(client, 10, 50)
        assert client.verify("ads") == []


def test_its_pages_show_it(store, load):
    load()
    service = Service(store)
    with service.client() as client:
        campaign = client.create("ads", policy="fading-ratio", budget=100.0, arms=ARMS)
        made = [client.decide("ads", key=f"{number}") for number in range(6)]
        for decision in made[:5]:
            decision.settle(reward=1.0, cost=0.25)
    admin = Browser(service.app, make_key(store, ["admin"], 0.0))
    assert "fading-ratio: The best ratio of sums that fade" in admin("GET", "/new").text
    page = admin("GET", f"/campaigns/{campaign.id}")
    assert page.status_code == 200, seen(page)
    assert "fading-ratio" in seen(page)
    page = admin("GET", f"/campaigns/{campaign.id}/decisions/{made[0].id}")
    assert page.status_code == 200, seen(page)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (None, "load it with 'budgetbandits --plugin FILE'"),
        (FADING.replace("1.0 - self.fade", "0.9") + SAYS_TOTALS, "give a changed policy another name"),
    ],
)
def test_a_server_with_other_code_says_so_and_decides_nothing(store, load, other, words):
    load()
    DecisionService(store).create("ads", "fading-ratio", budget=100.0, arms=ARMS)
    first = DecisionService(store).decide("ads", "first")
    POLICY_REGISTRY._added.clear()
    if other is not None:
        load(other)
    service = Service(store)
    for path, body in (("decisions", {}), (f"decisions/{first.decision}/feedback", {"reward": 1.0, "cost": 0.5})):
        answer = service("POST", f"/v1/campaigns/ads/{path}", body, Idempotency_Key="second")
        assert (answer.status_code, answer.json()["title"]) == (409, "Conflict"), answer.text
        assert "campaign 'ads' plays" in answer.json()["detail"]
        assert words in answer.json()["detail"]
    with pytest.raises(Conflict, match="fading-ratio"):
        verify(store, "ads")
    with pytest.raises(Conflict, match="fading-ratio"):
        service.engine.change_terms("ads", {"reward_max": 2.0})
    page = Browser(service.app, make_key(store, ["read"], 0.0))("GET", "/campaigns/ads")
    assert page.status_code == 200, seen(page)  # what was booked and reported needs no policy
    assert [each["name"] for each in service("GET", "/v1/campaigns").json()] == ["ads"]


def test_the_same_code_in_another_layout_is_the_same(store, load):
    load()
    DecisionService(store).create("ads", "fading-ratio", budget=100.0, arms=ARMS)
    load("# a comment\n" + FADING + SAYS_TOTALS)
    assert DecisionService(store).decide("ads", "first").arm == "search"


def test_one_that_says_no_totals_is_refused(store, load):
    load(FADING)
    with pytest.raises(BadParameter, match=r"fading-ratio .* write totals\(self, state, arm\) in its class"):
        DecisionService(store).create("ads", "fading-ratio", budget=100.0, arms=ARMS)


def test_the_processes_of_a_server_load_what_it_has_loaded(load, monkeypatch):
    file = load()
    POLICY_REGISTRY._added.clear()
    monkeypatch.setenv(PLUGIN_VARIABLE, os.pathsep.join([str(file)]))
    load_inherited()
    assert parse_policy("fading-ratio").name == "fading-ratio"
