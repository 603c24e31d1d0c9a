"""The OpenAPI document: what clients in other languages are generated from; and the page that shows it."""

import asyncio
import inspect
import re
from typing import get_args

import httpx
import pytest

from budgetbandits import errors
from budgetbandits.answers import EventKind, Status
from budgetbandits.client import Client
from budgetbandits.service.audit.replay import Replay
from budgetbandits.service.dashboard.campaign import REFUSAL_NAMES
from budgetbandits.service.http import document as openapi
from budgetbandits.service.http.auth import SCOPES, make_key
from budgetbandits.service.stores.sqlite import SQLiteStore
from called import Service


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with SQLiteStore(tmp_path_factory.mktemp("store") / "budgetbandits.db") as store:
        yield Service(store)


@pytest.fixture(scope="module")
def document(service):
    return service("GET", "/openapi.json").json()


@pytest.fixture(scope="module")
def operations(document):
    """Each operation by its id, with its path and method."""
    found = [
        (operation["operationId"], operation | {"path": path, "method": method})
        for path, each in document["paths"].items()
        for method, operation in each.items()
    ]
    assert len(dict(found)) == len(found), "an operation id is used twice"
    return dict(found)


def test_operations_are_named_like_the_methods_of_the_client(operations):
    """One vocabulary for all languages; feedback is told, as an `Allocation` is."""
    methods = {name for name, _ in inspect.getmembers(Client, inspect.isfunction) if not name.startswith("_")}
    methods = methods - {"close", "decides"} | {"tell", "tell_many", "metrics", "health", "ready"}
    assert set(operations) == methods - {"feedback", "feedback_many"}


def test_every_operation_has_a_tag_a_summary_and_the_scope_of_its_key(document, operations):
    tags = {each["name"] for each in document["tags"]}
    assert {tag for each in operations.values() for tag in each["tags"]} == tags
    for name, each in operations.items():
        assert each["summary"], name
        assert each["description"].startswith(each["summary"]), name
        assert (each["security"] == []) == (name in ("health", "ready")), name
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    scopes = {name: each["security"][0]["key"] for name, each in operations.items() if each["security"]}
    assert scopes["decide"] == ["decide"]
    assert scopes["tell"] == scopes["void"] == ["feedback"]
    assert scopes["campaigns"] == ["read"]
    assert scopes["create"] == scopes["verify"] == ["admin"]


def test_a_key_of_another_scope_is_refused_as_the_document_says(service, operations):
    """The scope in the document is the one that is asked for: each other one gets a 403."""
    keys = {scope: make_key(service.store, [scope], 0.0) for scope in SCOPES}

    async def allowed(client, operation):
        """The scopes that may do this, on things that do not exist."""
        path, found = re.sub(r"{\w+}", "x", operation["path"]), set()
        for scope, key in keys.items():
            headers = {"Authorization": f"Bearer {key}"}
            answer = await client.request(operation["method"].upper(), path, headers=headers)
            assert answer.status_code < 500, path
            found |= {scope} if answer.status_code != 403 else set()
        return found

    async def ask_all():
        async with httpx.AsyncClient(transport=service.transport, base_url="http://service") as client:
            return {name: await allowed(client, each) for name, each in operations.items() if each["security"]}

    wanted = {name: {*each["security"][0]["key"], "admin"} for name, each in operations.items() if each["security"]}
    assert asyncio.run(ask_all()) == wanted


def test_every_problem_is_the_same_schema(document, operations):
    for name, each in operations.items():
        for code, response in each["responses"].items():
            if code.startswith("2"):
                continue
            schema = response["content"]["application/problem+json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/ProblemDetails"}, name
    assert "HTTPValidationError" not in document["components"]["schemas"]
    result = document["components"]["schemas"]["FeedbackBatchResult"]["properties"]["problem"]
    assert {"$ref": "#/components/schemas/ProblemDetails"} in result["anyOf"]


def test_statuses_are_those_of_the_route(operations):
    codes = {name: set(each["responses"]) for name, each in operations.items()}
    assert codes["health"] == {"200"}
    assert codes["ready"] == {"200", "503"}
    assert codes["keys"] == {"200", "401", "403", "422", "429", "503"}
    assert codes["campaign"] == {"200", "401", "403", "404", "422", "429", "503"}
    assert {name for name in codes if "402" in codes[name]} == {"decide", "decide_many"}
    assert {name for name in codes if "507" in codes[name]} == {"export", "verify", "verify_shared_budget"}
    assert {name for name in codes if "409" in codes[name]} == {n for n in codes if operations[n]["method"] != "get"}
    assert {name for name in codes if "201" in codes[name]} == {
        "create", "clone", "add_arm", "create_key", "create_webhook", "create_shared_budget", "decide", "decide_many",
    }  # fmt: skip


def test_bodies_and_answers_have_names(operations):
    """So that generated types have them, too."""
    decide = operations["decide"]
    assert {each["name"] for each in decide["parameters"]} == {"campaign", "Idempotency-Key"}
    body = decide["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/DecisionRequest"}
    for name, each in operations.items():
        good = next(response for code, response in each["responses"].items() if code.startswith("2"))
        for kind, content in good["content"].items():
            if kind == "application/json":
                schema = content["schema"]
                assert "$ref" in schema.get("items", schema), name


def test_words_that_programs_compare_are_enumerated(document):
    schemas = document["components"]["schemas"]

    def words(schema, field):
        found = schemas[schema]["properties"][field]
        return set(found.get("enum") or found.get("items", {}).get("enum") or found["anyOf"][0]["enum"])

    assert words("CampaignAnswer", "status") == set(get_args(Status))
    assert words("CampaignAnswer", "on_expire") == {"charge", "release"}
    assert words("CampaignAnswer", "period") == {"week", "month"}
    assert words("KeyAnswer", "scopes") == {"decide", "feedback", "read", "admin"}
    assert words("EventAnswer", "kind") == set(get_args(EventKind))
    titles = words("ProblemDetails", "title")
    assert {*errors.REFUSALS, "unauthorized", "Conflict", "NotFound", "RewardOutOfRange"} <= titles
    assert not {"HoldRefused", "NotAllowed"} & titles  # these have the titles of their reasons


def test_the_words_are_complete():
    """A kind of event that the audit replays, or a reason that the page names, is in the document."""
    source = inspect.getsource(Replay.__post_init__)
    replayed = {*re.findall(r'"([a-z ]+)": self\._', source), *get_args(Status)}
    assert replayed == set(get_args(EventKind))
    assert set(errors.REFUSALS) == set(REFUSAL_NAMES)


def test_the_document_is_put_together_once(service, monkeypatch):
    """Anybody may ask for it, so it costs nothing to send."""
    first, page = service("GET", "/openapi.json"), service("GET", "/docs")
    monkeypatch.setattr(openapi, "document", lambda: pytest.fail("once is enough"))
    monkeypatch.setattr(openapi, "to_json", lambda _: pytest.fail("once is enough"))
    monkeypatch.setattr(openapi, "render", lambda *_, **__: pytest.fail("once is enough"))
    again = service("GET", "/openapi.json")
    assert (again.content, again.headers["content-type"]) == (first.content, "application/json")
    assert service("GET", "/docs").text == page.text
    tag = first.headers["etag"]
    for one_of in (tag, f"W/{tag}", "*", f'"other", W/{tag}'):
        known = service("GET", "/openapi.json", If_None_Match=one_of)
        assert (known.status_code, known.content) == (304, b"")
    assert service("GET", "/openapi.json", If_None_Match='"other", W/"another"').status_code == 200


def test_the_page_shows_every_operation_and_type_and_needs_nothing_from_elsewhere(service, document, operations):
    page = service("GET", "/docs", key="none")
    assert page.status_code == 200
    for name in (
        *operations,
        *document["components"]["schemas"],
        *(f"tag-{each['name']}" for each in document["tags"]),
    ):
        assert page.text.count(f'id="{name}"') == 1, name
    assert all(target.startswith(("/", "#")) for target in re.findall(r'(?:src|href)="([^"]+)"', page.text))
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for target in re.findall(r'href="#([^"]+)"', page.text):
        assert f'id="{target}"' in page.text
