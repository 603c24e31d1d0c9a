"""Operating from the pages: what a confirmation promises is done, what would be refused has no button, keys."""

import html
import re

import httpx
import pytest

from browsing import Browser, button
from budgetbandits.errors import Conflict
from budgetbandits.service.http.auth import make_key
from served import kinds_of_events, served


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Campaigns in several states; tests change those that they create themselves."""
    with served(tmp_path_factory.mktemp("operating")) as store:
        engine = store.engine
        for name in ("plain", "paused", "closed", "one arm"):
            engine.create(name, "bts", 20.0, {"search": 1.0, "mail": 0.5})
        engine.create("capped", "bts", 20.0, {"search": 1.0, "mail": 0.5}, daily_cap=1.5)
        engine.set_status("paused", "paused")
        engine.set_status("closed", "closed")
        engine.retire_arm("one arm", "mail")
        engine.create("knows", "kube", 20.0, {"a": 1.0, "b": 0.5}, known={"costs": {"a": 0.5, "b": 0.25}})
        yield store


REFUSED = [
    ("paused", "pause", {}, "is paused already"),
    ("plain", "resume", {}, "runs already"),
    ("plain", "retire-arm", {"arm": "nobody"}, "o arm &#39;nobody"),
    ("one arm", "retire-arm", {"arm": "mail"}, "is retired already"),
    ("one arm", "retire-arm", {"arm": "search"}, "is the last arm"),
    ("plain", "bring-back-arm", {"arm": "mail"}, "is not retired"),
    ("plain", "add-arm", {"name": "mail", "cap": "0.5"}, "already; give this one another name"),
    ("plain", "add-arm", {"name": "a\tb", "cap": "0.5"}, "printable characters"),
    ("capped", "add-arm", {"name": "tv", "cap": "2"}, "aily cap is 1.50, and the most expensive arm may cost 2.00"),
    ("plain", "add-arm", {"name": "tv", "cap": "0"}, "is 0; give the most"),
    ("knows", "add-arm", {"name": "tv", "cap": "0.5"}, "knows all costs beforehand"),
    ("plain", "change-cap", {"arm": "nobody", "cap": "1"}, "o arm &#39;nobody"),
    ("plain", "change-cap", {"arm": "mail", "cap": "0"}, "is 0; give the most"),
    ("plain", "change-cap", {"arm": "mail", "cap": "0.5"}, "hese are the terms already"),
    ("capped", "change-cap", {"arm": "mail", "cap": "2"}, "aily cap is 1.50, and the most expensive arm may cost 2.00"),
    ("plain", "top-up", {"amount": "much"}, "type a number"),
    ("plain", "change-terms", {"hold_seconds": "-3"}, "use a number from 0"),
    ("plain", "top-up", {"amount": "0"}, "use a positive amount, and no more than"),
    ("plain", "change-terms", {"daily_cap": "0.1"}, "Daily cap is 0.10, and the most expensive arm"),
    *(("closed", action, {}, "is closed for good") for action in
      ("pause", "resume", "close", "top-up", "add-arm", "change-cap", "retire-arm", "bring-back-arm",
       "change-terms")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "action", "fields", "words"), REFUSED)
def test_what_would_be_refused_is_said_and_has_no_button(store, admin, name, action, fields, words):
    address = str(httpx.URL(f"/campaigns/{name}/{action}", params=fields))
    before = kinds_of_events(store, name)
    main = admin("GET", address).text.partition("<h1>")[2]
    assert words in main
    assert button(main) is None
    part = admin.check(address.partition("?")[0], fields)
    assert (part.status_code, button(part.text)) == (200, None)
    assert words in part.text
    said = admin("GET", f"{address}{'&' if fields else '?'}format=json").json()
    assert html.unescape(words).lower() in said["problem"].lower()
    assert said["changes"] == []
    for query in ("", "?format=json"):
        answer = admin("POST", address.partition("?")[0] + query, {"code": admin.code(), **fields})
        assert 400 <= answer.status_code < 500
        assert query == "" or answer.json()["status"] == answer.status_code
    assert kinds_of_events(store, name) == before


def test_to_pause_what_is_paused_is_no_event(store):
    store.engine.create("still", "bts", 20.0, {"a": 1.0, "b": 0.5})
    for status in ("paused", "paused", "active", "active"):
        store.engine.set_status("still", status)
    assert kinds_of_events(store, "still") == ["created", "paused", "active"]
    store.engine.retire_arm("still", "a")
    with pytest.raises(Conflict, match="retired already"):
        store.engine.retire_arm("still", "a")


def test_amounts_are_in_the_currency_and_with_the_decimals_they_need(store, admin):
    store.engine.create("tiny", "bts", 20.0, {"a": 1.0, "b": 0.5}, currency="EUR", pace_seconds=864_000.0)
    page = admin("GET", "/campaigns/tiny/top-up?amount=0.0025").text
    assert ">Top up 0.0025 EUR</button>" in page
    assert "20.0000 EUR → <strong>20.0025 EUR</strong>" in page
    assert ">Top up 0.000001 EUR</button>" in admin("GET", "/campaigns/tiny/top-up?amount=0.0000001").text
    assert "0.00 EUR stays held" in admin("GET", "/campaigns/tiny/pause").text
    assert "holds 0.25 EUR," in admin("GET", "/campaigns/tiny/add-arm?name=c&cap=0.25").text
    terms = admin("GET", "/campaigns/tiny/change-terms?daily_cap=12.125").text
    assert "none → <strong>12.125 EUR</strong>" in terms


def test_a_horizon_below_what_is_answered_is_warned_about(store, admin):
    engine = store.engine
    engine.create("routed", "bts-paced", 20.0, {"a": 1.0, "b": 0.5}, horizon=10)
    for number in range(3):
        engine.feedback(engine.decide("routed", str(number)).decision, cost=0.1, reward=1.0)
    assert "3 already, as many as are expected" in admin("GET", "/campaigns/routed/change-terms?horizon=3").text
    assert "already, as many" not in admin("GET", "/campaigns/routed/change-terms?horizon=4").text
    engine.feedback(engine.decide("routed", "fails").decision, failed=True)
    assert "4 already, as many as are expected" in admin("GET", "/campaigns/routed/change-terms?horizon=4").text


def test_a_daily_cap_below_what_today_has_cost_is_warned_about(store, admin):
    store.engine.feedback(store.engine.decide("plain", "first", arms=["search"]).decision, cost=1.0, reward=1.0)
    for cap, warned in (("1.25", True), ("1.5", False)):
        page = admin("GET", f"/campaigns/plain/change-terms?daily_cap={cap}").text
        assert ("1.00 already: decisions are refused until the next day begins" in page) == warned


def test_a_cap_is_changed_on_the_page(store, admin, reader):
    assert "change-cap?arm=mail" in admin("GET", "/campaigns/plain").text
    assert "change-cap" not in reader("GET", "/campaigns/plain").text
    page = admin("GET", "/campaigns/paused/change-cap?arm=mail&cap=2.5").text
    assert "Cap of mail" in page
    assert "0.50 → <strong>2.50</strong>" in page
    assert "stays paused" in page
    admin.confirm("/campaigns/paused/change-cap", {"arm": "mail", "cap": "2.5"})
    assert {arm.name: arm.cost_cap for arm in store.engine.describe("paused").arms} == {
        "search": 1.0,
        "mail": 2.5,
    }


def test_a_new_campaign_says_its_budget_and_whether_its_name_is_taken(store, admin):
    form = {"name": "new", "budget": "1,100", "arms": "a = 200\nb = 1.5", "policy": "bts", "currency": "EUR"}
    said = admin.check("/new", form).text
    assert "1,100.00 EUR for 2 arms" in said
    assert "5 at least" in said
    assert ">Create the campaign with 1,100.00 EUR</button>" in said
    taken = admin("GET", str(httpx.URL("/new", params=form | {"name": "plain"}))).text
    assert "there is a campaign &#39;plain&#39; already" in taken.lower()
    wrong = admin("GET", str(httpx.URL("/new", params=form | {"horizon": "5", "format": "json"}))).json()
    assert "leave requests expected out, or use bts-paced" in wrong["problem"]
    right = admin("GET", str(httpx.URL("/new", params=form | {"format": "json"}))).json()
    assert (right["problem"], right["changes"][0]["what"]) == (None, "Name")


# --- keys ------------------------------------------------------------------------------------------------------------


def test_a_form_makes_one_key_however_often_it_is_sent(store, admin):
    assert "plain alone" in admin("GET", "/keys/make?decide=1&campaign=plain").text
    form = button(
        admin(
            "POST",
            "/keys/make",
            {"code": admin.code(), "decide": "1", "feedback": "1", "campaign": "plain", "rate": "2.5"},
        ).text
    )
    before = store.read(lambda tx: tx.keys())
    first, second = (admin("POST", "/keys/make", form) for _ in range(2))
    text = re.search(r"bb_\w{8}_[\w-]{20,}", first.text)[0]
    [key] = [each for each in store.read(lambda tx: tx.keys()) if each not in before]
    assert (key.prefix, key.scopes) == (text.split("_")[1], ("decide", "feedback"))
    assert key.campaign == store.engine.describe("plain").id
    assert key.requests_per_second == 2.5
    assert second.status_code == 409
    assert f"has already made the key bb_{key.prefix}" in second.text
    assert text not in second.text
    shown = admin("GET", "/keys").text
    assert "2.5 a second" in shown
    assert text not in shown


def test_keys_made_and_dropped_are_recorded(store, admin):
    made = admin.confirm("/keys/make", {"read": "1"}).text
    prefix = re.search(r"bb_(\w{8})_", made)[1]
    page = admin("GET", f"/keys/drop?key={prefix}").text
    assert "are refused within five seconds" in page
    assert [admin("POST", "/keys/drop", button(page)).status_code for _ in range(2)] == [303, 404]
    assert "it may have been dropped already" in admin("GET", f"/keys/drop?key={prefix}").text
    said = admin("GET", "/keys?format=json").json()
    assert prefix not in [key["prefix"] for key in said["keys"]]
    who = re.search(r"(bb_\w{8}) · admin", admin("GET", "/").text)[1]
    latest = [(each["kind"], each["prefix"], each["scopes"], each["by"]) for each in said["events"][:2]]
    assert latest == [("dropped", prefix, ["read"], who), ("made", prefix, ["read"], who)]
    page = admin("GET", "/keys").text
    assert f'Dropped <code class="key-name">bb_{prefix}</code>: read' in page


def test_nobody_drops_the_key_in_use_or_makes_one_for_nothing(store, admin):
    own = re.search(r"bb_(\w{8}) · admin", admin("GET", "/").text)[1]
    assert "sign in with another one" in admin("GET", f"/keys/drop?key={own}").text
    assert admin("POST", "/keys/drop", {"code": admin.code(), "key": own}).status_code == 409
    assert "choose from" in admin("POST", "/keys/make", {"code": admin.code()}).text
    assert "No campaign" in admin.check("/keys/make", {"read": "1", "campaign": "nobody"}).text


def test_the_record_of_keys_has_pages(store, admin):
    for _ in range(55):
        make_key(store, ["read"], 0.0, actor="bb_many")
    first = admin("GET", "/keys?format=json").json()
    second = admin("GET", f"/keys?format=json&before={first['older']}").json()
    assert len(first["events"]) == 50
    assert second["older"] is None
    assert first["events"][-1]["prefix"] != second["events"][0]["prefix"]
    assert f"before={first['older']}" in admin("GET", "/keys").text
    assert admin("GET", "/keys?before=x").status_code == 422


def test_tags_are_changed_by_the_form_and_filter_the_list(store, admin):
    store.engine.create("tagged", "bts", 20.0, {"a": 1.0, "b": 0.5}, tags=["team a"])
    assert 'value="team a"' in admin("GET", "/campaigns/tagged/change-terms").text
    fields = {"tags": "zoo , <b>", "was_tags": "team a"}
    assert "team a → <strong>&lt;b&gt;, zoo</strong>" in admin.check("/campaigns/tagged/change-terms", fields).text
    admin.confirm("/campaigns/tagged/change-terms", fields)
    assert store.engine.describe("tagged").tags == ("<b>", "zoo")
    listed = admin("GET", "/?tag=zoo&order=newest")
    assert 'class="name" href="/campaigns/tagged"' in listed.text
    assert listed.text.count('<a class="name"') == 1
    assert admin("GET", "/?tag=team%20a&format=json").json()["campaigns"] == []
    assert 'href="/?tag=%3Cb%3E"' in admin("GET", "/campaigns/tagged").text
    admin.confirm("/campaigns/tagged/change-terms", {"tags": "", "was_tags": "<b>, zoo"})
    assert store.engine.describe("tagged").tags is None
    wrong = admin.check("/campaigns/tagged/change-terms", {"tags": "a,,b", "was_tags": ""}).text
    assert 'data-for="tags"' in wrong


def test_a_webhook_is_added_tested_and_dropped_on_its_page(store, admin, reader, monkeypatch):
    store.engine.create("ads", "bts", 20.0, {"a": 1.0, "b": 0.5})
    assert "None yet" in admin("GET", "/webhooks").text
    wrong = admin.check("/webhooks/add", {"url": "ftp://example.com"}).text
    assert 'data-for="url"' in wrong
    assert 'data-for="campaign"' in admin.check("/webhooks/add", {"url": "http://x", "campaign": "nobody"}).text
    made = admin.confirm("/webhooks/add", {"url": "https://example.com/<b>", "campaign": "ads"})
    [hook] = store.read(lambda tx: tx.webhooks().all())
    assert hook.secret in made.text
    page = admin("GET", "/webhooks").text
    assert hook.secret not in page
    assert "https://example.com/&lt;b&gt;" in page
    assert "none yet" in page
    store.write(lambda tx: tx.webhooks().note_try(hook.id, store.clock.now, "status 500"))
    assert "status 500" in admin("GET", "/webhooks").text
    assert admin("GET", "/webhooks?format=json").json()["webhooks"][0]["problem"] == "status 500"
    assert reader("GET", "/webhooks").status_code == 403
    alone = Browser(store.app, make_key(store, ["admin"], 0.0, "ads"))
    assert alone("GET", "/webhooks").status_code == 403
    sent = iter([None, "status 500"])
    monkeypatch.setattr("budgetbandits.service.deliveries.send_test", lambda _, id: next(sent) if id == hook.id else id)
    assert "type test" in admin.check("/webhooks/test", {"id": hook.id}).text
    tested = [admin.confirm("/webhooks/test", {"id": hook.id}).text for _ in range(2)]
    assert "https://example.com/&lt;b&gt; has accepted" in tested[0]
    assert "Not accepted: status 500" in tested[1]
    assert reader("GET", f"/webhooks/test?id={hook.id}").status_code == 403
    assert admin.confirm("/webhooks/drop", {"id": hook.id}).status_code == 303
    assert "may have been dropped already" in admin("GET", f"/webhooks/test?id={hook.id}").text
    assert store.read(lambda tx: tx.webhooks().all()) == []
    assert "may have been dropped already" in admin("POST", "/webhooks/drop", {"code": admin.code("/"), "id": "x"}).text
