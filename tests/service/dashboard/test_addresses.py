"""Addresses on pages: a campaign of any name leads to itself, and a button acts on the campaign of its page."""

import html
import re

import pytest

from browsing import Browser, button
from budgetbandits.service.dashboard.actions.catalog import ACTIONS
from budgetbandits.service.dashboard.query import address
from budgetbandits.service.http.auth import make_key
from served import kinds_of_events, served

NAMES = ["summer sale", "summer%20sale", "50%20", "what?", "a#b", "a&b=c+d;e", "%2F", "ä%C3%A4", '"<i>"']
ACTS = [
    ("top-up", {"amount": "5"}),
    ("pause", {}),
    ("resume", {}),
    ("close", {}),
    ("add-arm", {"name": "50%20", "cap": "0.5"}),
    ("change-cap", {"arm": "a%20b/c:d", "cap": "0.75"}),
    ("retire-arm", {"arm": "a%20b/c:d"}),
    ("bring-back-arm", {"arm": "retired"}),
    ("change-terms", {"hold_seconds": "30"}),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with served(tmp_path_factory.mktemp("addresses")) as store:
        for name in NAMES:
            store.engine.create(name, "bts", 20.0, {"a%20b/c:d": 1.0, "retired": 0.5, "c": 0.5})
        store.key = make_key(store, ["admin"], 0.0)
        yield store


def attributes(page, name):
    return [html.unescape(each) for each in re.findall(rf' {name}="([^"]*)"', page)]


def heading(page):
    return html.unescape(re.sub("<.*?>", "", re.search(r"<h1>(.*?)(<span|</h1>)", page, re.S)[1])).strip()


def link_to(admin, name):
    """Where the list of campaigns leads for this one."""
    page = admin("GET", address(q=name)).text
    links = re.findall(r'<a class="name" href="([^"]*)">(.*?)</a>', page)
    return {html.unescape(words): html.unescape(href) for href, words in links}[name]


@pytest.mark.parametrize("name", NAMES)
def test_all_that_a_campaigns_page_leads_to_is_of_this_campaign(admin, name):
    here = link_to(admin, name)
    page = admin("GET", here).text
    assert heading(page) == name
    [live] = attributes(page, "data-live")
    links = [each for each in attributes(page, "href") if each.startswith("/campaigns/")]
    assert {each.split("?")[0].partition(here)[0] for each in [*links, live]} == {""}
    [in_json] = [each for each in links if "format=json" in each]
    assert admin("GET", in_json).json()["name"] == name
    for link in (f"{here}/file?", f"{here}/change-terms"):
        assert link in links
        assert name in heading(admin("GET", link).text)
    [retire] = [each for each in links if each.endswith("/retire-arm?arm=a%2520b%2Fc%3Ad")]
    assert ">Retire a%20b/c:d</button>" in admin("GET", retire).text


@pytest.mark.parametrize(
    ("name", "below"), [*((name, "?range=day") for name in NAMES), ("summer%20sale", "/top-up?amount=5&x=a%2520b")]
)
def test_signing_in_leads_to_what_was_asked_for(store, admin, name, below):
    asked, stranger = link_to(admin, name) + below, Browser(store.app)
    to_sign_in = stranger("GET", asked).headers["location"]
    [sends_to] = [each for each in attributes(stranger("GET", to_sign_in).text, "action") if "sign-in" in each]
    for where in (to_sign_in, sends_to):
        assert stranger("POST", where, {"key": store.key}).headers["location"] == asked


def test_every_action_is_tried():
    assert [action for action, _ in ACTS] == sorted(ACTIONS, key=[action for action, _ in ACTS].index)


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize(("action", "fields"), ACTS)
def test_a_button_acts_on_the_campaign_of_its_page_and_not_on_its_twin(store, admin, action, fields, scripts):
    engine, twin = store.engine, f"{action} {scripts}"
    name = twin.replace(" ", "%20")
    for each in (twin, name):
        engine.create(each, "bts", 20.0, {"a%20b/c:d": 1.0, "retired": 0.5, "c": 0.5})
        engine.retire_arm(each, "retired")
        if action == "resume":
            engine.set_status(each, "paused")
    before = kinds_of_events(store, name)
    shown = admin("GET", f"{link_to(admin, name)}/{action}").text
    assert heading(shown) == f"{ACTIONS[action].title} {name}"
    if fields:
        [form] = re.findall(r'<form class="form".*?</form>', shown, re.S)
        hidden = dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form))
        sent = hidden | {each: html.unescape(value) for each, value in fields.items()}
        [sends_to] = attributes(form, "action")
        shown = admin("POST", sends_to, sent, **({"X_Part": "check"} if scripts else {})).text
        if not scripts:
            assert heading(shown) == f"{ACTIONS[action].title} {name}"
            assert attributes(shown, "action") == ["/sign-out", sends_to, sends_to]
    [confirm] = attributes(re.search(r"<form[^>]* data-confirm>", shown)[0], "action")
    pressed = button(shown)
    # whatever has become of the address on the way, nothing is said or done of the other campaign
    elsewhere = admin("POST", f"{link_to(admin, twin)}/{action}", pressed)
    assert (elsewhere.status_code, button(elsewhere.text)) == (409, None)
    assert "This form belongs to another campaign" in elsewhere.text
    answer = admin("POST", confirm, pressed)
    assert (answer.status_code, answer.headers.get("location")) == (303, link_to(admin, name))
    assert len(kinds_of_events(store, name)) == len(before) + 1
    assert kinds_of_events(store, twin) == before


def test_a_form_that_reaches_another_campaign_is_not_checked_there(store, admin):
    page = admin("GET", f"{link_to(admin, 'summer%20sale')}/top-up").text
    [of] = re.findall(r'name="campaign_id" value="(\w+)"', page)
    part = admin.check("/campaigns/summer%20sale/top-up", {"campaign_id": of, "amount": "5"})
    assert (part.status_code, button(part.text)) == (409, None)
    assert "belongs to another campaign than 'summer sale'" in part.json()["detail"]
    back = admin("POST", "/campaigns/summer%20sale/top-up", {"code": admin.code("/"), "campaign_id": of, "edit": "1"})
    assert back.status_code == 409


def test_a_page_that_cannot_be_shown_is_tried_again_at_its_own_address(store, admin, monkeypatch):
    from budgetbandits.errors import StoreError

    asked = link_to(admin, "what?") + "/events"

    def broken(*_, **__):
        raise StoreError("the disk is full")

    monkeypatch.setattr(store, "read", broken)
    assert asked in attributes(admin("GET", asked).text, "href")
