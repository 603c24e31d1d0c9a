"""The pages over HTTP: who sees what, sessions, forms of the session alone, and numbers that agree with the API."""

import asyncio
import collections
import json
import re
import time

import httpx
import pytest
from pydantic_core import to_json

from browsing import Browser, button
from budgetbandits.errors import BadParameter, StoreError
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.dashboard import sessions
from budgetbandits.service.dashboard.actions import fields
from budgetbandits.service.dashboard.campaign import campaign_view
from budgetbandits.service.dashboard.query import PageQuery
from budgetbandits.service.feedback import FeedbackReport
from budgetbandits.service.http.app import create_app
from budgetbandits.service.http.auth import drop_key, make_key
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sql.core import SqlTransaction
from budgetbandits.service.stores.sqlite import SQLiteStore
from served import served, steps

NAME = "ads <b>&"
"""A name that would break a page that forgot to escape it."""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with three campaigns, two of them decided on; each test leaves the first two as they are."""
    with served(tmp_path_factory.mktemp("pages")) as store:
        engine = store.engine
        for seconds, name in enumerate((NAME, "other", "plain")):
            store.clock.now += seconds  # the newest is the last
            engine.create(name, "bts", 20.0, {"search": 1.0, "<i>mail": 0.5}, actor="bb_maker")
        for number in range(12):
            made = engine.decide(NAME, key=f"{number}")
            if number % 4:
                engine.feedback(made.decision, cost=0.25, reward=float(number % 2))
        roll_up(store)
        engine.decide(NAME, key="after the rollup")
        yield store


PATH = "/campaigns/ads%20%3Cb%3E%26"


def test_who_has_not_signed_in_sees_nothing(store):
    stranger = Browser(store.app)
    for path in ("/", PATH, f"{PATH}/file", f"{PATH}/live", "/live", "/new", "/keys", "/keys/make", f"{PATH}/top-up"):
        answer = stranger("GET", path)
        assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/sign-in"), path
        assert NAME not in answer.text
    assert stranger("GET", "/?format=json").status_code == 401
    assert stranger("GET", "/", X_Part="live").status_code == 401
    assert stranger("POST", f"{PATH}/pause", {}).status_code == 401


def test_after_signing_in_one_is_where_one_wanted_to_be(store):
    browser = Browser(store.app)
    key = make_key(store, ["read"], 0.0)
    for wanted, got in [("/keys", "/keys"), ("//evil.example", "/"), ("https://evil.example", "/"), ("/\\evil", "/")]:
        answer = browser("POST", f"/sign-in?next={wanted}", {"key": key})
        assert (answer.status_code, answer.headers["location"]) == (303, got)


def test_the_cookie_is_for_this_site_alone_and_has_no_key_in_it(store):
    key = make_key(store, ["read"], 0.0)
    cookie = Browser(store.app)("POST", "/sign-in", {"key": key}).headers["set-cookie"]
    assert all(word in cookie for word in ("HttpOnly", "SameSite=strict", "Max-Age=86400", "Path=/"))
    assert "Secure" not in cookie  # the server speaks plain HTTP unless a proxy says that it does not
    assert key.split("_", 2)[2] not in cookie
    behind = Browser(store.app)("POST", "/sign-in", {"key": key}, X_Forwarded_Proto="https")
    assert "Secure" in behind.headers["set-cookie"]


@pytest.mark.parametrize("scopes", [["decide"], ["feedback", "decide"]])
def test_a_key_that_may_not_read_cannot_sign_in(store, scopes):
    answer = Browser(store.app)("POST", "/sign-in", {"key": make_key(store, scopes, 0.0)})
    assert answer.status_code == 403
    assert "scope read or admin" in answer.text
    assert "set-cookie" not in answer.headers


def test_guesses_at_the_sign_in_are_counted(tmp_path):
    with SQLiteStore(tmp_path / "money.db") as store:
        browser = Browser(create_app(DecisionService(store), store))
        answers = [browser("POST", "/sign-in", {"key": f"bb_12345678_{number}"}).status_code for number in range(21)]
        assert answers == [401] * 20 + [429]
        assert browser("POST", "/sign-in", {"key": make_key(store, ["read"], 0.0)}).status_code == 303


def test_a_session_ends_with_its_time_its_key_and_when_it_is_forged(store, monkeypatch):
    browser = Browser(store.app, make_key(store, ["read"], 0.0))
    token = browser.cookies[sessions.COOKIE]
    assert browser("GET", "/").status_code == 200
    prefix, expires, code = token.split(".")
    for forged in (
        f"{prefix}.{int(expires) + 1}.{code}",
        f"{prefix}.{expires}.{code[:-1]}0x",
        f"{prefix}.9{expires}.{code}",
        "x",
        "a.b.c",
    ):
        browser.cookies = {sessions.COOKIE: forged}
        assert browser("GET", "/").status_code == 303, forged
    of = sessions.Sessions(store, None, clock=lambda: int(expires) - 1.0)
    assert asyncio.run(of.of(token)).key.prefix == prefix
    assert asyncio.run(sessions.Sessions(store, None, clock=lambda: float(expires)).of(token)) is None
    drop_key(store, prefix)
    assert asyncio.run(sessions.Sessions(store, None).of(token)) is None


def test_a_key_for_one_campaign_sees_that_one_alone(store):
    browser = Browser(store.app, make_key(store, ["admin"], 0.0, "other"))
    page = browser("GET", "/").text
    assert "/campaigns/other" in page
    assert PATH not in page
    listed = browser("GET", "/?format=json").json()
    assert [row["name"] for row in listed["campaigns"]] == ["other"]
    assert [each["budget"] for each in listed["sums"]] == [20.0]
    assert browser("GET", "/campaigns/other").status_code == 200
    id = store.engine.describe(NAME).id
    for path in (PATH, f"/campaigns/{id}", "/campaigns/no such", f"{PATH}?format=json", f"{PATH}/file", f"{PATH}/live",
                 f"{PATH}/pause", "/new", "/keys", "/keys/make", "/keys/drop", "/keys/turn-on"):  # fmt: skip
        answer = browser("GET", path)
        assert answer.status_code == 403, path
        assert "search" not in answer.text
    code = browser.code("/campaigns/other/pause")
    assert browser("POST", f"{PATH}/pause", {"code": code}).status_code == 403
    assert browser("POST", "/keys/make", {"code": code, "admin": "1"}).status_code == 403
    assert store.engine.account(NAME).status == "active"


def test_pages_may_load_nothing_from_elsewhere_and_run_no_inline_script(admin):
    for path in ("/", PATH, "/new", "/keys", "/keys/make", f"{PATH}/top-up"):
        answer = admin("GET", path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert not re.search(r"<script(?! src=\"/assets/)|\sstyle=|\son\w+=|https?://(?!localhost)", answer.text), path
    assert admin("GET", re.search(r'href="(/assets/\w+/style.css)"', admin("GET", "/").text)[1]).status_code == 200
    assert admin("GET", "/assets/x/routes.py").status_code == 422


def test_an_address_without_a_page_is_answered_by_a_page_for_persons_and_by_json_for_programs(admin):
    page = admin("GET", "/nosuch", accept="text/html,*/*;q=0.8")
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is no page at this address." in page.text
    assert admin("GET", "/nosuch").json()["title"] == "not_found"


def test_names_are_escaped(admin):
    for path in ("/", PATH, f"{PATH}/retire-arm?arm=%3Ci%3Email", f"{PATH}/file"):
        text = admin("GET", path).text
        assert "<b>&" not in text
        assert "<i>mail" not in text
    assert "&lt;i&gt;mail" in admin("GET", PATH).text


def test_the_numbers_are_those_of_the_api(store, reader):
    view, row = reader("GET", f"{PATH}?format=json").json(), json.loads(to_json(store.engine.describe(NAME)))
    assert {name: view[name] for name in row if name != "arms"} == {name: row[name] for name in row if name != "arms"}
    totals = store.engine.totals(NAME)
    for arm in view["arms"]:
        total = totals.get(arm["name"])  # bts may never have chosen it
        cost, reward = (total.cost, total.reward) if total else (0.0, 0.0)
        assert (arm["cost"], arm["reward"]) == (pytest.approx(cost), pytest.approx(reward))
    assert sum(arm["decided"] for arm in view["arms"]) == 13  # one of them after the rollup
    assert sum(sum(slot["decided"].values()) for slot in view["slots"]) == 13
    assert view["open_holds"]["count"] == 4
    assert view["events"][0] == {
        "at": view["created_at"],
        "kind": "created",
        "by": "bb_maker",
        "arm": None,
        "amount": 20.0,
    }
    page = reader("GET", PATH).text
    spent = sum(total.cost for total in totals.values())
    assert f"<dd>{spent:.2f} <span" in page


@pytest.mark.parametrize("path", ["?range=day", "?range=week&show=held", "?show=overrun", "?show=expired"])
def test_every_view_is_a_url(reader, path):
    assert reader("GET", PATH + path).status_code == 200
    assert reader("GET", f"{PATH}?range=never").status_code == 422


def test_the_list_is_filtered_and_sorted(reader):
    names = [row["name"] for row in reader("GET", "/?format=json&q=O&order=name").json()["campaigns"]]
    assert names == ["other"]
    answer = reader("GET", "/?format=json&order=newest").json()
    assert answer["groups"]["all"] == 3
    assert answer["campaigns"][-1]["name"] == NAME
    assert "No campaign has" in reader("GET", "/?q=nothing like it").text
    assert reader("GET", "/?order=no").status_code == 422


def test_who_may_read_changes_nothing(store, reader):
    assert reader("GET", "/keys").status_code == 403
    for path in (
        f"{PATH}/pause",
        f"{PATH}/top-up",
        "/new",
        "/keys/make",
        "/keys/drop",
        "/keys/turn-on",
        "/webhooks/turn-on",
    ):
        assert reader("GET", path).status_code == 403, path
        assert reader("POST", path, {"code": "0" * 64, "amount": "5"}).status_code == 403, path
    assert "Top up" not in reader("GET", PATH).text
    assert store.engine.account(NAME).budget == 20_000_000


def test_only_forms_of_the_session_change_anything(store, admin):
    code = admin.code()
    another = Browser(store.app, make_key(store, ["admin"], 0.0))
    for sent, headers in [
        ({}, {}),
        ({"code": another.code()}, {}),
        ({"code": code[:-1] + ("0" if code[-1] != "0" else "1")}, {}),
        ({"code": code}, {"Sec_Fetch_Site": "cross-site"}),
        ({"code": code}, {"Sec_Fetch_Site": "same-site"}),
    ]:
        assert admin("POST", "/campaigns/plain/pause", sent, **headers).status_code == 403
        assert store.engine.account("plain").status == "active"
    pressed = button(admin("GET", "/campaigns/plain/pause").text)
    for sent, headers in [({**pressed, "code": another.code()}, {}), (pressed, {"Sec_Fetch_Site": "cross-site"})]:
        assert admin("POST", "/campaigns/plain/pause", sent, **headers).status_code == 403
        assert store.engine.account("plain").status == "active"
    assert admin("POST", "/campaigns/plain/pause", pressed, Sec_Fetch_Site="same-origin").status_code == 303
    assert store.engine.account("plain").status == "paused"
    assert admin.confirm("/campaigns/plain/resume").status_code == 303


def test_actions_are_shown_before_and_recorded_after(store, admin):
    assert admin("GET", "/campaigns/plain/dance").status_code == 404
    page = admin("GET", "/campaigns/plain/top-up?amount=5").text
    assert "20.00 → <strong>25.00</strong>" in page
    assert "Top up 5.00" in page
    for _ in range(2):  # sent twice, done once
        assert admin("POST", "/campaigns/plain/top-up", button(page)).status_code == 303
    assert store.engine.account("plain").budget == 25_000_000
    admin.confirm("/campaigns/plain/add-arm", {"name": "radio", "cap": "0.75"})
    admin.confirm("/campaigns/plain/retire-arm", {"arm": "search"})
    arms = {arm.name: arm.active for arm in store.engine.describe("plain").arms}
    assert arms == {"search": False, "<i>mail": True, "radio": True}
    assert "bring-back-arm?arm=search" in admin("GET", "/campaigns/plain").text
    assert "2 → <strong>3</strong>" in admin("GET", "/campaigns/plain/bring-back-arm?arm=search").text
    admin.confirm("/campaigns/plain/bring-back-arm", {"arm": "search"})
    assert store.engine.describe("plain").arms[0].active
    events = admin("GET", "/campaigns/plain?format=json").json()["events"]
    who = re.search(r"(bb_\w{8}) · admin", admin("GET", "/").text)[1]
    assert [(event["kind"], event["by"]) for event in events[:4]] == [
        ("arm brought back", who), ("arm retired", who), ("arm added", who), ("topped up", who)
    ]  # fmt: skip


def test_amounts_of_different_currencies_are_not_added_up(store, admin):
    [before] = admin("GET", "/?format=json").json()["sums"]
    store.engine.create("in euro", "bts", 70.0, {"a": 1.0, "b": 1.0}, currency="EUR & <b>")
    assert "of 70.00 EUR &amp; &lt;b&gt;" in admin("GET", "/campaigns/in%20euro").text
    plain, euro = admin("GET", "/?format=json").json()["sums"]
    assert plain == before
    assert (euro["currency"], euro["campaigns"], euro["budget"]) == ("EUR & <b>", 1, 70.0)
    page = admin("GET", "/?order=newest").text
    assert "Totals by currency" in page
    assert '<th scope="row">EUR &amp; &lt;b&gt;</th><td>1</td><td>70.00</td>' in page
    alone = Browser(store.app, make_key(store, ["read"], 0.0, "in euro"))
    assert "of 70.00 EUR" in alone("GET", "/?order=newest").text


def test_terms_are_changed_by_the_form(store, admin):
    """What is not touched stays to the last digit, though the form shows days and minutes."""
    store.engine.create("paced", "bts", 50.0, {"a": 1.0, "b": 1.0}, pace_seconds=1e6 / 7, hold_seconds=100.0)
    page = admin("GET", "/campaigns/paced/change-terms").text
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page)) | {"on_expire": "charge"}
    path = "/campaigns/paced/change-terms"
    assert fields["hold_seconds"] == fields["was_hold_seconds"] == "1.666666667"
    fields["daily_cap"] = "12.5"
    shown = admin.check(path, fields).text
    assert "none → <strong>12.50</strong>" in shown
    assert "Wait" not in shown
    for _ in range(2):  # sent twice, done once
        assert admin("POST", path, button(shown)).status_code == 303
    now = store.engine.describe("paced")
    assert (now.daily_cap, now.pace_seconds, now.hold_seconds) == (12.5, 1e6 / 7, 100.0)
    fields |= {"daily_cap": "", "was_daily_cap": "12.5", "pace_seconds": "3"}
    assert "Spendable by now" in admin("GET", str(httpx.URL(path, params=fields))).text
    assert admin.confirm(path, fields).status_code == 303
    now = store.engine.describe("paced")
    assert (now.daily_cap, now.pace_seconds) == (None, 3 * 86_400.0)
    fields |= {"was_daily_cap": "", "was_pace_seconds": "3", "on_expire": "release"}
    shown = admin("GET", str(httpx.URL(path, params=fields))).text
    assert "charged → <strong>released" in shown
    assert admin.confirm(path, fields).status_code == 303
    assert store.engine.describe("paced").on_expire == "release"
    page = admin("GET", "/campaigns/paced").text
    assert "without feedback charged → released<" in page
    assert "daily cap 12.50 → none; spread over 1 d 15 h 40 min 57.14285714287 s → 3 d<" in page
    assert "daily cap none → 12.50<" in page
    assert verify(store.engine._store, "paced") == []


def test_a_campaign_is_created_by_the_form_and_checked_while_it_is_filled_in(store, admin):
    form = {"name": "new one", "budget": "1,000", "arms": "a = 2\nb= 1.5\n", "policy": "bts", "pace_seconds": "10"}
    said = admin.check("/new", form).text
    assert "500 at least" in said
    assert "100.00 a day" in said
    assert "is no arm; write NAME = CAP" in admin.check("/new", form | {"arms": "a = 2\nb"}).text
    assert admin.check("/new", {}).text.strip() == ""
    one = admin("POST", "/new", {"code": admin.code(), **form | {"arms": "a = 2"}})
    assert one.status_code == 422
    assert "at least two arms" in one.text
    made = admin.confirm("/new", form)
    assert (made.status_code, made.headers["location"]) == (303, "/campaigns/new%20one")
    row = store.engine.describe("new one")
    assert (row.budget, row.pace_seconds) == (1000.0, 864_000.0)


def test_the_file_stands_alone(reader):
    answer = reader("GET", f"{PATH}/file")
    assert answer.headers["content-disposition"].startswith("attachment")
    assert not re.search(r'<script|<link|(?:href|src|action)="/(?!campaigns)', answer.text)
    assert "--accent" in answer.text
    assert "Money against time" in answer.text


def test_signing_out_takes_a_form_of_the_session(store):
    browser = Browser(store.app, make_key(store, ["read"], 0.0))
    assert browser("POST", "/sign-out", {}).status_code == 403
    code = re.search(r'name="code" value="(\w+)"', browser("GET", "/").text)[1]
    assert browser("POST", "/sign-out", {"code": code}).status_code == 303
    assert browser("GET", "/").status_code == 303


def test_a_store_that_cannot_be_read_is_a_page(store, reader, monkeypatch):
    def broken(work, urgent=False):
        raise StoreError("cannot read: the disk is gone")

    reader("GET", "/")  # the session is remembered
    monkeypatch.setattr(store, "read", broken)
    answer = reader("GET", "/campaigns/other?range=week")
    assert answer.status_code == 503
    assert "Nobody gets a decision" in answer.text


def test_states_are_said(store, reader):
    engine = store.engine
    engine.create("states", "bts", 2.0, {"a": 1.0, "b": 1.0})
    page = reader("GET", "/campaigns/states").text
    assert "No decision yet" in page
    assert "Not known yet" in page
    made = engine.decide("states", key="1")
    other = engine.decide("states", key="2")
    assert "Blocked by holds" in reader("GET", "/campaigns/states?range=week").text
    engine.feedback(other.decision, cost=1.0)
    engine.feedback(made.decision, cost=1.5, reward=1.0)
    frozen = reader("GET", "/campaigns/states?range=day").text
    assert "Frozen by an overrun at" in frozen
    assert "cost 1.5000, more than the 1.0000 that was held" in frozen
    engine.set_status("states", "active")
    assert "so no arm can be paid" in reader("GET", "/campaigns/states?show=held").text
    engine.set_status("states", "closed")
    assert "Closed for good" in reader("GET", "/campaigns/states?show=expired").text


def test_a_page_costs_as_much_for_a_campaign_of_ten_times_the_decisions(tmp_path):
    with served(tmp_path) as store:
        engine, clock, now = store.engine, store.clock, store.clock.now
        for name, decisions in (("short", 100), ("long", 1000)):
            clock.now = now - 1200.0
            engine.create(name, "ucb1", 1e4, {"search": 1.0, "mail": 0.5})

            def work(tx, name=name, decisions=decisions):
                for number in range(decisions):
                    clock.now = now - 1000.0 + 900.0 * number / decisions
                    [made] = engine.decision_task(name, f"{number}").work(tx)
                    engine.feedback_task(FeedbackReport(made.decision, 1.0, 0.5), name).work(tx)

            store.write(work)
        roll_up(store)
        long, short = (
            steps(store, lambda tx, name=name: campaign_view(tx, tx.campaign(name), PageQuery()))
            for name in ("long", "short")
        )
        assert long < 1.3 * short


def test_a_part_says_which_events_it_knows_of(store, reader):
    engine = store.engine
    engine.create("watched", "bts", 5.0, {"a": 1.0, "b": 1.0})
    id = engine.describe("watched").id
    answer = reader("GET", "/campaigns/watched", X_Part="live")
    assert int(answer.headers["x-event"]) == store.read(lambda tx: tx.last_event(id)) > 0
    assert 0.0 < float(answer.headers["x-again"]) <= 5.0  # when to ask for what this does not know of
    assert int(reader("GET", "/?q=watched", X_Part="live").headers["x-event"]) >= int(answer.headers["x-event"])


def test_no_text_with_the_character_nul_gets_in(store, admin, monkeypatch):
    """By an address, a form or a cookie: none of it is asked of the store, which might not take it."""
    asked, key = [], SqlTransaction.key
    monkeypatch.setattr(SqlTransaction, "key", lambda tx, prefix: asked.append(prefix) or key(tx, prefix))
    for path in ("/?text=a%00b", f"{PATH}?arm=%00", f"{PATH}?segment=%00", "/campaigns/a%00b", "/new?name=%00",
                 "/keys/drop?key=%00", "/keys/turn-on?key=%00"):  # fmt: skip
        answer = admin("GET", path)
        assert (answer.status_code, "U+0000" in answer.text) == (422, True), path
    for path, form in [
        ("/campaigns/plain/add-arm", {"code": admin.code(), "name": "a\0b", "cap": "0.5"}),
        ("/sign-in", {"key": "bb_\0_secret"}),
    ]:
        answer = admin("POST", path, form)
        assert answer.status_code == 422
        assert "U+0000" in answer.text
    assert "\0" not in asked
    monkeypatch.setattr(store, "read", None)  # so that asking it would fail
    answer = Browser(store.app)("GET", "/", Cookie=f'{sessions.COOKIE}="\\000.{int(time.time()) + 900}.code"')
    assert answer.status_code in (303, 401)


def test_decisions_are_found_by_their_metadata(store, reader):
    engine = store.engine
    engine.create("noted", "bts", 20.0, {"openai/a": 0.5, "b": 0.25})
    made = [engine.decide("noted", key=f"{n}", metadata={"user": f"u&{n % 2}", "n": n}).decision for n in range(4)]
    plain = engine.decide("noted", key="plain").decision
    page = reader("GET", "/campaigns/noted").text
    assert page.count("?metadata=user%3Du%261#decisions") == 2
    assert ">n=3</a>" in page
    found = reader("GET", "/campaigns/noted?metadata=user=u%261").text
    shown = [each for each in (*made, plain) if f"<code>{each[:8]}</code>" in found]
    assert shown == [made[1], made[3]]
    assert "Metadata <strong>user=u&amp;1</strong>" in found
    by_json = reader("GET", "/campaigns/noted?format=json&metadata=n=2").json()["decisions"]
    assert [(each["id"], each["metadata"]) for each in by_json] == [(made[2], {"n": 2, "user": "u&0"})]
    refused = reader("GET", "/campaigns/noted?metadata=user&format=json")
    assert (refused.status_code, "write NAME=VALUE" in refused.text) == (422, True)


def test_a_campaign_with_a_horizon_shows_its_requests_segments_and_failures(store, reader):
    engine = store.engine
    engine.create("routed", "bts-paced", 20.0, {"a": 0.5, "b": 0.25}, horizon=40, reward_max=2.0)
    spent, by_segment = 0.0, {"code": [], "chat": []}
    for number in range(12):
        segment = "code" if number % 3 else "chat"
        made = engine.decide("routed", key=f"{number}", segment=segment)
        reward, cost = 2.0 * (number % 2), round(0.1 + 0.01 * number, 6)
        engine.feedback(made.decision, reward=reward, cost=cost)
        by_segment[segment].append((reward, cost))
        spent += cost
    failing = engine.decide("routed", key="fails", segment="code")
    engine.feedback(failing.decision, failed=True)
    found = reader("GET", "/campaigns/routed?format=json").json()
    requests = found["requests"]
    assert (requests["answered"], requests["failed"], requests["horizon"]) == (12, 1, 40)
    assert requests["used"] == 13
    assert requests["cost_each"] == pytest.approx(spent / 13)
    assert requests["left_each"] == pytest.approx((20.0 - spent) / 27)
    for line in requests["segments"]:
        told = by_segment[line["name"]]
        assert line["answered"] == len(told)
        assert line["mean_reward"] == pytest.approx(sum(reward for reward, _ in told) / len(told))
        assert line["mean_cost"] == pytest.approx(sum(cost for _, cost in told) / len(told))
        assert line["most_share"] >= 0.5
    [cooling] = [arm for arm in found["arms"] if arm["failures"]]
    assert (cooling["name"], cooling["failures"]) == (failing.arm, 1)
    engine.change_terms("routed", {"horizon": 50, "propensity_draws": 20})
    page = reader("GET", "/campaigns/routed?range=week").text
    assert "12 answered and 1 failed of 50 expected" in page
    assert "requests expected 40 → 50; draws for propensities none → 20<" in page
    assert "1 failure</span>" in page
    assert reader("GET", "/campaigns/plain?format=json").json()["requests"] is None


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("1500", 1500.0), ("1,500.25", 1500.25), ("12,345,678", 12345678.0), (" 0.5 ", 0.5)],
)
def test_numbers_may_have_thousands(typed, meant):
    assert fields.number({"amount": typed}, "amount", "amount") == meant


@pytest.mark.parametrize("typed", ["1,5", "0,5", "1.000,50", "1000,50", "1,50", "1_000", "１２", "12,34,567", ""])
def test_a_decimal_comma_is_no_thousand(typed):
    with pytest.raises(BadParameter, match="type a number such as"):
        fields.number({"amount": typed}, "amount", "amount")


def test_a_campaign_of_more_arms_than_are_shown_is_named_right(store, reader):
    arms = {f"arm {place}": 1.0 for place in range(70)}
    store.engine.create("many", "bts", budget=500.0, arms=arms)
    decided = collections.Counter()
    for place in range(90):
        answer = store.engine.decide("many", str(place))
        store.engine.feedback(answer.decision, reward=0.5, cost=0.5)
        decided[answer.arm] += 1
    view = reader("GET", "/campaigns/many?format=json").json()
    slots = collections.Counter()
    for slot in view["slots"]:
        slots.update(slot["decided"])
    assert slots == decided
    assert len(view["arms"]) < 70
    assert reader("GET", "/campaigns/many").status_code == 200


def test_a_page_follows_the_name_of_its_campaign(store, reader, monkeypatch):
    """Whoever has the name now: a campaign that was renamed elsewhere, or another one after it was deleted."""
    monkeypatch.setattr("budgetbandits.service.dashboard.pages.NAME_SECONDS", 0.0)
    store.engine.create("ads", "bts", 20.0, {"search": 1.0, "mail": 0.5})
    assert "/campaigns/ads/live" in reader("GET", "/campaigns/ads").text
    store.engine.change_terms("ads", {"name": "adverts"})
    assert "/campaigns/adverts/live" in reader("GET", "/campaigns/ads").text
    store.engine.set_status("adverts", "closed")
    store.engine.retention.delete("adverts")
    assert reader("GET", "/campaigns/ads").status_code == 404
    store.engine.create("ads", "bts", 30.0, {"search": 1.0, "mail": 0.5})
    assert reader("GET", "/campaigns/ads").status_code == 200
