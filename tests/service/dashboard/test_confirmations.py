"""Confirmations: what is on the button is what is booked, and what they promise is what happens."""

import re
import time

import httpx
import pytest

from browsing import button
from served import kinds_of_events, served

ARMS = {"search": 1.0, "mail": 0.5}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store and a service on it; every test makes a campaign of its own."""
    with served(tmp_path_factory.mktemp("confirming")) as store:
        yield store


def overrun(engine, name, above=0.5):
    made = engine.decide(name, f"dear {above}")
    engine.feedback(made.decision, cost=made.hold + above, reward=1.0)


# --- nothing without a confirmation -----------------------------------------------------------------------------------


def test_a_form_leads_to_a_page_that_says_what_it_will_do_and_does_nothing(store, admin):
    store.engine.create("steps", "bts", 20.0, ARMS)
    form, path = admin("GET", "/campaigns/steps/top-up").text, "/campaigns/steps/top-up"
    assert ">Continue</button>" in form
    assert button(form) is None
    shown = admin("POST", path, {"code": admin.code("/"), "amount": "10"})
    assert (shown.status_code, store.engine.account("steps").budget) == (200, 20_000_000)
    assert "20.00 → <strong>30.00</strong>" in shown.text
    assert ">Top up 10.00</button>" in shown.text
    assert 'id="amount"' not in shown.text  # what is to be confirmed cannot be edited here
    back = admin("POST", path, {"code": admin.code("/"), "amount": "10", "edit": "1"})
    assert 'id="amount" name="amount" value="10"' in back.text
    assert kinds_of_events(store, "steps") == ["created"]
    assert admin("POST", path, button(shown.text)).status_code == 303
    assert store.engine.account("steps").budget == 30_000_000


@pytest.mark.parametrize(
    "forged", [{"amount": "1000"}, {"once": "another"}, {"confirmed": "0" * 64}, {"confirmed": "é"}]
)
def test_another_value_than_the_one_confirmed_is_refused(store, admin, forged):
    name = f"forged {sorted(forged.items())[0]}"
    store.engine.create(name, "bts", 20.0, ARMS)
    path = str(httpx.URL(f"/campaigns/{name}/top-up"))
    pressed = button(admin.check(path, {"amount": "10"}).text) | forged
    answer = admin("POST", path, pressed)
    assert answer.status_code == 409
    assert "This is not what you have confirmed" in answer.text
    shown = "1,000.00" if "amount" in forged else "10.00"
    assert f">Top up {shown}</button>" in answer.text  # what it would do, to be confirmed anew
    said = admin("POST", f"{path}?format=json", pressed)
    assert (said.status_code, said.json()["title"]) == (409, "Conflict")
    assert kinds_of_events(store, name) == ["created"]


def test_what_has_changed_since_it_was_shown_is_shown_again(store, admin):
    engine = store.engine
    engine.create("moves", "bts", 20.0, ARMS)
    pressed = button(admin("GET", "/campaigns/moves/top-up?amount=5").text)
    engine.top_up("moves", 70.0)
    answer = admin("POST", "/campaigns/moves/top-up", pressed)
    assert answer.status_code == 409
    assert "90.00 → <strong>95.00</strong>" in answer.text
    engine.feedback(engine.decide("moves", "1").decision, cost=0.25, reward=1.0)  # this is no other confirmation
    assert admin("POST", "/campaigns/moves/top-up", button(answer.text)).status_code == 303
    assert engine.account("moves").budget == 95_000_000


def test_nobody_resumes_by_a_button_from_before_the_overrun(store, admin):
    engine = store.engine
    engine.create("freezes", "bts", 20.0, ARMS)
    made = engine.decide("freezes", "1")
    engine.set_status("freezes", "paused")
    pressed = button(admin("GET", "/campaigns/freezes/resume").text)
    engine.feedback(made.decision, cost=made.hold + 0.5, reward=1.0)
    answer = admin("POST", "/campaigns/freezes/resume", pressed)
    assert answer.status_code == 409
    assert "0.50 stays booked apart" in answer.text
    assert engine.account("freezes").status == "frozen"


def test_a_new_campaign_and_a_key_take_a_confirmation(store, admin):
    form = {"name": "by hand", "budget": "90", "arms": "a = 2\r\nb & c = 3", "policy": "bts"}
    shown = admin("POST", "/new", {"code": admin.code("/"), **form})
    assert "by hand" in shown.text
    assert "by hand" not in store.engine.names()
    forged = button(shown.text) | {"budget": "900"}
    assert admin("POST", "/new", forged).status_code == 409
    for _ in range(2):
        assert admin("POST", "/new", button(shown.text)).status_code == 303
    assert store.engine.describe("by hand").budget == 90.0
    assert [arm.name for arm in store.engine.describe("by hand").arms] == ["a", "b & c"]
    before = len(store.read(lambda tx: tx.keys()))
    shown = admin("POST", "/keys/make", {"code": admin.code("/"), "read": "1"})
    assert admin("POST", "/keys/make", button(shown.text) | {"admin": "1"}).status_code == 409
    assert len(store.read(lambda tx: tx.keys())) == before


def test_thousands_of_arms_are_checked_and_more_than_fit_are_refused_in_words(store, admin):
    arms = "\n".join(f"arm number {place} = 1.5" for place in range(2000))
    said = admin.check("/new", {"name": "large", "budget": "9000", "arms": arms, "policy": "bts"})
    assert "9,000.00 for 2,000 arms" in said.text
    large = admin.check("/new", {"name": "large", "budget": "9000", "arms": "x" * 900_000})
    assert large.status_code == 422
    assert "with the API or the command line" in large.json()["detail"]


# --- and it is true ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"daily_cap": 1.0}, "until the next day by UTC: what is left of the daily cap of 1.00 is below 1.00"),
        ({"pace_seconds": 864_000.0}, "none for about 6 h: the campaign is ahead of its plan"),
        ({}, "are made again at once"),
    ],
)
def test_resuming_says_when_decisions_are_made_again(store, admin, terms, words):
    name = f"resume {terms}"
    engine, store.clock.now = store.engine, time.time()
    engine.create(name, "bts", 20.0, {"a": 1.0, "b": 1.0}, **terms)
    engine.feedback(engine.decide(name, "1").decision, cost=0.5, reward=1.0)
    engine.set_status(name, "paused")
    assert re.search(words, admin("GET", str(httpx.URL(f"/campaigns/{name}/resume"))).text)


@pytest.fixture
def leased(store):
    """A campaign of which a server has a lease: something of it is spent, something held, the rest free."""
    name, engine = f"leased {len(store.engine.names())}", store.engine
    engine.create(name, "bts", 40.0, ARMS, lease=5.0, lease_seconds=1e6)
    for number in range(3):
        made = engine.decide(name, str(number))
        if number:
            engine.feedback(made.decision, cost=0.25, reward=1.0)
    assert engine.account(name).leased
    return name


def money(micros):
    return f"{micros / 1e6:.2f}"


def test_a_top_up_of_a_campaign_with_leases_says_what_is_left_then(store, admin, leased):
    before = store.engine.account(leased)
    page = admin("GET", str(httpx.URL(f"/campaigns/{leased}/top-up?amount=5"))).text
    assert admin("POST", str(httpx.URL(f"/campaigns/{leased}/top-up")), button(page)).status_code == 303
    after = store.engine.account(leased)
    assert after.left > before.left + 5_000_000  # what was leased and not spent or held came back
    assert f"{money(before.left)} → <strong>{money(after.left)}</strong>" in page
    assert f"all {money(before.leased)} under leases comes back: {money(after.spent)} spent" in page


@pytest.mark.parametrize(
    ("action", "words"), [("close", "stays held until feedback"), ("pause", "stays held; feedback")]
)
def test_what_stays_held_is_what_is_held_then(store, admin, leased, action, words):
    path = str(httpx.URL(f"/campaigns/{leased}/{action}"))
    page = admin("GET", path).text
    assert admin("POST", path, button(page)).status_code == 303
    after = store.engine.account(leased)
    assert after.held
    assert f">{money(after.held)} {words}" in page


def test_costs_below_a_cent_are_never_nothing(store, admin):
    engine, store.clock.now = store.engine, time.time()
    engine.create("small", "bts", 500.0, {"a": 0.0016, "b": 0.0016})
    overrun(engine, "small", 0.0009)
    assert "0.0009 stays booked apart" in admin("GET", "/campaigns/small/resume").text
    page = admin("GET", "/campaigns/small").text
    assert "cost 0.0025, more than the 0.0016 that was held" in page
    assert "0.0009 is booked apart, as overrun" in page
    assert "0.0009 booked apart" in page
    assert "cap 0.0016" in page
    assert "0.0009 booked apart as overrun" in admin("GET", "/?q=small").text
    assert "0.0009 booked apart" in admin("GET", "/campaigns/small/events").text
    assert "holds 0.0016," in admin("GET", "/campaigns/small/add-arm?name=c&cap=0.0016").text
    assert "<dd>0.002 <span" in page  # spent: 0.0016, never 0.00


@pytest.mark.parametrize("name", ["horizon", "daily_cap of reward_max"])
def test_a_name_is_not_translated(store, admin, name):
    engine = store.engine
    engine.create(name, "bts", 20.0, {name: 1.0, "b": 0.5})
    path = str(httpx.URL(f"/campaigns/{name}/retire-arm"))
    assert f"the arms are &#39;{name}&#39;, &#39;b&#39;" in admin.check(path, {"arm": "nobody"}).text
    path = str(httpx.URL(f"/campaigns/{name}/add-arm"))
    assert f"&#39;my {name}&#39; is 0" in admin.check(path, {"name": f"my {name}", "cap": "0"}).text


# --- terms ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "typed", "words"),
    [
        ("pace_seconds", "31,536,000", "Spread over is 31,536,000; use a positive number up to 11,574.07"),
        (
            "hold_seconds",
            "900,000,000",
            "Wait for feedback is 900,000,000; use a positive number up to 16,666,666.66",
        ),
        (
            "propensity_draws",
            "1,000,000",
            "Draws for propensities is 1,000,000; use a whole number from 1 up to 10,000",
        ),
    ],
)
def test_forms_keep_the_bounds_of_terms_in_the_units_that_they_ask_for(store, admin, field, typed, words):
    form = {"name": f"bounds {field}", "budget": "90", "arms": "a = 2\nb = 3", "policy": "bts", field: typed}
    assert words in admin.check("/new", form).text
    assert admin("POST", "/new", {"code": admin.code("/"), **form}).status_code == 422
    store.engine.create(f"bounds {field}", "bts", 20.0, ARMS)
    assert words in admin.check(str(httpx.URL(f"/campaigns/bounds {field}/change-terms")), {field: typed}).text


# --- what changes while a form is open --------------------------------------------------------------------------------


def test_an_open_form_is_told_while_typing_that_the_campaign_has_changed(store, admin):
    engine, path = store.engine, "/campaigns/open tab/"
    engine.create("open tab", "bts", 20.0, ARMS, daily_cap=5.0)
    forms = {"top-up": {"amount": "5"}, "add-arm": {"name": "new", "cap": "0.5"}, "change-terms": {"hold_seconds": "9"}}
    opened = {}
    for name in forms:
        [opened[name]] = re.findall(r'name="state_code" value="([\w-]+)"', admin("GET", path + name).text)
        engine.feedback(engine.decide("open tab", name).decision, cost=0.25, reward=1.0)  # changes nothing of it

    def told():
        said = [admin.check(path + name, fields | {"state_code": opened[name]}).text for name, fields in forms.items()]
        assert all(button(each) for each in said)
        return {(re.findall(r"<p class=.wrong.*?>(.*?); open it again", each) or [""])[0] for each in said}

    assert told() == {""}
    engine.change_terms("open tab", {"daily_cap": 4.0})
    assert told() == {"The terms of the campaign have changed since this form was opened"}
    engine.top_up("open tab", 1.0)
    engine.retire_arm("open tab", "mail")
    assert told() == {"The budget, the terms and the arms of the campaign have changed since this form was opened"}
    shown = admin("POST", path + "top-up", {"code": admin.code("/"), "amount": "5", "state_code": opened["top-up"]})
    assert "have changed since this form was opened" in shown.text  # without scripts, on the page that confirms
    assert admin("POST", path + "top-up", button(shown.text)).status_code == 303
    [again] = re.findall(r'name="state_code" value="([\w-]+)"', admin("GET", path + "top-up").text)
    assert "since this form" not in admin.check(path + "top-up", {"amount": "5", "state_code": again}).text


# --- refused before it is read ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "headers", "status", "words"),
    [
        ("/new", {"Content_Length": "1000001"}, 413, "create large campaigns with the API or the command line"),
        ("/new", {"Transfer_Encoding": "chunked"}, 411, "Send Content-Length with the body"),
        ("/campaigns/a%00b", {}, 422, "leave it out"),
    ],
)
def test_a_browser_is_told_on_a_page_and_a_program_in_json(admin, path, headers, status, words):
    shown = admin("POST", path, {"a": "b"}, **headers, Accept="text/html,application/xhtml+xml,*/*;q=0.8")
    assert (shown.status_code, shown.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert words in shown.text
    assert "default-src 'none'" in shown.headers["content-security-policy"]
    assert admin("POST", path, {"a": "b"}, **headers, Accept="*/*", X_Part="check").json()["status"] == status
    assert admin("POST", f"{path}?format=json", {"a": "b"}, **headers, Accept="text/html").json()["status"] == status


# --- what is wrong stands next to its field ---------------------------------------------------------------------------

NEW = {"name": "new", "budget": "90", "arms": "a = 2\nb = 3", "policy": "bts", "on_expire": "charge"}
WRONG = [
    ("/new", NEW | {"name": ""}, ["name"]), ("/new", NEW | {"name": "plain"}, ["name"]),
    ("/new", NEW | {"budget": "1,50"}, ["budget"]), ("/new", NEW | {"budget": "1"}, ["budget"]),
    ("/new", NEW | {"arms": "a = 2"}, ["arms"]), ("/new", NEW | {"arms": "a = 2\nb = x"}, ["arms"]),
    ("/new", NEW | {"arms": "a = 2\nb = 0"}, ["arms"]), ("/new", NEW | {"arms": "a = 2\nb"}, ["arms"]),
    ("/new", NEW | {"arms": "a = 2\nb/.. = 2"}, ["arms"]), ("/new", NEW | {"daily_cap": "1"}, ["daily_cap"]),
    ("/new", NEW | {"pace_seconds": "-1"}, ["pace_seconds"]), ("/new", NEW | {"horizon": "5"}, ["horizon"]),
    ("/new", NEW | {"reward_max": "x"}, ["reward_max"]), ("/new", NEW | {"hold_seconds": "x"}, ["hold_seconds"]),
    ("/new", NEW | {"currency": "x" * 300}, ["currency"]),
    ("/new", NEW | {"propensity_draws": "0.5"}, ["propensity_draws"]),
    ("/new", {"name": "", "budget": "x", "arms": "a"}, ["arms", "budget", "name"]),
    ("/campaigns/plain/top-up", {"amount": "x"}, ["amount"]), ("/campaigns/plain/top-up", {"amount": "0"}, ["amount"]),
    ("/campaigns/plain/add-arm", {"name": "a", "cap": "1"}, ["name"]),
    ("/campaigns/plain/add-arm", {"name": "x/..", "cap": "1"}, ["name"]),
    ("/campaigns/plain/add-arm", {"name": "x", "cap": "0"}, ["cap"]),
    ("/campaigns/plain/retire-arm", {"arm": "nobody"}, ["arm"]),
    ("/campaigns/plain/change-terms", {"daily_cap": "0.1"}, ["daily_cap"]),
    ("/campaigns/plain/change-terms", {"hold_seconds": "x"}, ["hold_seconds"]),
    ("/campaigns/plain/change-terms", {"horizon": "5"}, ["horizon"]),
    ("/keys/make", {"campaign": "nobody", "read": "1"}, ["campaign"]), ("/keys/make", {"campaign": ""}, ["scopes"]),
    ("/keys/make", {"rate": "0", "read": "1"}, ["rate"]),
]  # fmt: skip


def test_what_is_wrong_is_said_next_to_the_field_it_is_about_without_scripts_and_with(store, admin):
    store.engine.create("plain", "bts", 20.0, {"a": 1.0, "b": 1.0})
    for path, fields, names in WRONG:
        filled = dict(re.findall(r'name="(was_\w+|campaign_id|state_code)" value="([^"]*)"', admin("GET", path).text))
        shown = {name.removeprefix("was_"): text for name, text in filled.items() if name.startswith("was_")}
        form = {"code": admin.code("/"), **filled, **shown, **fields}
        page = admin("POST", path, form)
        assert page.status_code >= 400, (path, fields)
        said = re.findall(r'<p class="wrong" id="(\w+)-wrong"[^>]* role="alert">([^<]+)</p>', page.text)
        assert sorted(name for name, _ in said) == names, (path, fields, said)
        assert page.text.count('class="wrong"') == page.text.count('-wrong" data-wrong=')  # and nowhere else
        assert ">Continue</button>" in page.text
        part = admin("POST", path, form, X_Part="submit").text
        assert sorted(re.findall(r'<p class="wrong" data-for="(\w+)"', part)) == names
