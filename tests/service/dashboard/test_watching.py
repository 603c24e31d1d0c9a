"""Watching a campaign on its pages: alarms, all events, which decisions are shown, for how long a page is told."""

import re
import time

import httpx
import pytest

from browsing import Browser
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.dashboard import pages, sessions
from budgetbandits.service.http.app import create_app
from budgetbandits.service.http.auth import drop_key, make_key
from budgetbandits.service.rollups import roll_up


def overrun(engine, name):
    made = engine.decide(name, "dear")
    engine.feedback(made.decision, cost=made.hold + 0.5, reward=1.0)
    engine.set_status(name, "active", actor="bb_somebody")


def standing(store, reader, name):
    """The word and the group on the list, and the word on the campaign's own page."""
    roll_up(store)
    [line] = [each for each in reader("GET", "/?format=json").json()["campaigns"] if each["name"] == name]
    there = reader("GET", f"/campaigns/{name}?format=json").json()["standing"]["word"]
    return line["standing"]["word"], line["standing"]["group"], there


def test_an_overrun_is_an_alarm_for_a_day_though_somebody_has_resumed(store, reader):
    for hours, word, group in [(23, "Overran", "attention"), (25, "Running", "running")]:
        name = f"ads {hours}"
        store.clock.now = time.time() - hours * 3600.0
        store.engine.create(name, "bts", 20.0, {"a": 1.0, "b": 1.0})
        overrun(store.engine, name)
        assert standing(store, reader, name) == (word, group, word)
    page = reader("GET", "/campaigns/ads 23").text
    assert "<strong>Overrun at " in page
    assert "0.50 is booked apart, as overrun" in page
    assert "show=overrun#decisions" in page
    assert "<strong>Overrun" not in reader("GET", "/campaigns/ads 25").text


def test_the_day_after_an_overrun_begins_when_somebody_resumes(store, reader):
    """Frozen for days, it is an alarm of another kind: whoever resumes it sees for a day how it goes on."""
    for frozen, resumed, word in [(80, 23, "Overran"), (80, 25, "Running"), (30, 25, "Running")]:
        name = f"ads {frozen} {resumed}"
        store.clock.now = time.time() - frozen * 3600.0
        store.engine.create(name, "bts", 20.0, {"a": 1.0, "b": 1.0})
        made = store.engine.decide(name, "dear")
        store.engine.feedback(made.decision, cost=made.hold + 0.5, reward=1.0)
        assert standing(store, reader, name)[0] == "Frozen"
        store.clock.now = time.time() - resumed * 3600.0
        store.engine.set_status(name, "active", actor="bb_somebody")
        store.clock.now += 1800.0
        for status in ("paused", "active"):  # which is another matter
            store.engine.set_status(name, status, actor="bb_somebody")
        listed, _, there = standing(store, reader, name)
        assert (listed, there) == (word, word)


def test_an_exhausted_campaign_is_an_alarm_for_a_day(store, reader):
    for hours, group in [(1, "attention"), (25, "stopped")]:
        name = f"ads {hours}"
        store.clock.now = time.time() - hours * 3600.0
        store.engine.create(name, "bts", 1.0, {"a": 1.0, "b": 1.0})
        store.engine.feedback(store.engine.decide(name, "1").decision, cost=0.75, reward=1.0)
        assert standing(store, reader, name) == ("Exhausted", group, "Exhausted")
    store.engine.create("runs", "bts", 1.0, {"a": 1.0, "b": 1.0})
    names = [each["name"] for each in reader("GET", "/?format=json").json()["campaigns"]]
    assert names == ["ads 1", "runs", "ads 25"]
    assert "so no arm can be paid" in reader("GET", "/campaigns/ads 25").text


def test_all_events_are_shown_and_a_freeze_is_one(store, reader):
    engine = store.engine
    engine.create("ads", "bts", 20.0, {"a": 1.0, "b": 1.0}, actor="bb_maker")
    overrun(engine, "ads")
    page = reader("GET", "/campaigns/ads").text
    assert re.search(r"Frozen by an overrun of [ab], 0\.50 booked apart", page)
    assert "All events" not in page
    for number in range(30):
        engine.change_terms("ads", {"hold_seconds": 100.0 + number}, actor="bb_maker")
        engine.top_up("ads", 1.0 + number, actor="bb_maker")
    assert 'href="/campaigns/ads/events"' in reader("GET", "/campaigns/ads?range=day").text
    first = reader("GET", "/campaigns/ads/events?format=json").json()
    second = reader("GET", f"/campaigns/ads/events?format=json&before={first['older']}").json()
    events = [*first["events"], *second["events"]]
    kinds = [event["kind"] for event in events]
    assert kinds == ["topped up", "terms changed"] * 30 + ["active", "frozen", "created"]
    assert second["older"] is None
    changed = [event["changed"] for event in events if event["kind"] == "terms changed"]
    assert changed[:2] == ["wait for feedback 2 min 8 s → 2 min 9 s", "wait for feedback 2 min 7 s → 2 min 8 s"]
    assert changed[-1] == "wait for feedback 1 h → 1 min 40 s"
    page = reader("GET", f"/campaigns/ads/events?before={first['older']}").text
    assert "Created with 20.00" in page
    assert "wait for feedback 1 h → 1 min 40 s" in page
    for path in ("/campaigns/ads/events?before=x", "/campaigns/nobody/events"):
        assert reader("GET", path).status_code in (404, 422)
    alone = Browser(store.app, make_key(store, ["read"], 0.0, store.engine.create("b", "bts", 9.0, {"a": 1, "b": 1})))
    assert alone("GET", "/campaigns/ads/events").status_code == 403


def test_decisions_are_shown_by_kind_arm_and_segment_and_page_by_page(store, reader):
    engine = store.engine
    engine.create("ads", "bts-paced", 90.0, {"a & b": 1.0, "c": 1.0}, horizon=100)
    for number in range(40):
        made = engine.decide(
            "ads", str(number), segment="co&de" if number % 4 else "chat", arms=[["a & b", "c"][number % 2]]
        )
        failed = number == 3
        engine.feedback(made.decision, **({"failed": True} if failed else {"cost": 0.1, "reward": 1.0}))

    def seen(**query):
        answer = reader("GET", str(httpx.URL("/campaigns/ads", params={**query, "format": "json"})))
        return answer.json()["decisions"], answer.json()["older_decisions"]

    decisions, older = seen(arm="a & b", segment="co&de")
    assert len(decisions) == 10  # 2, 6, 10, ...
    assert older is None
    assert {(each["arm"], each["segment"], each["state"]) for each in decisions} == {("a & b", "co&de", "settled")}
    [failed], _ = seen(show="failed")
    assert (failed["failed"], failed["arm"], failed["cost"]) == (True, "c", 0.0)
    first, older = seen()
    second, _ = seen(before=older)
    assert len({each["id"] for each in (*first, *second)}) == 24
    page = reader("GET", "/campaigns/ads?show=settled&arm=c&range=day").text
    assert "?range=day&amp;show=settled&amp;arm=c&amp;segment=chat" not in page  # chat is for the other arm
    assert "?range=day&amp;show=settled&amp;arm=c&amp;segment=co%26de#decisions" in page
    assert "?range=day&amp;show=settled&amp;arm=c&amp;before=" in page
    assert "?range=week&amp;show=settled&amp;arm=c" in page  # the range is changed, the rest stays
    assert "?range=day&amp;show=settled&amp;arm=c&amp;format=json" in page
    assert "/campaigns/ads/file?range=day&amp;show=settled&amp;arm=c" in page
    assert "Arm <strong>c</strong>" in page
    assert "None." in reader("GET", "/campaigns/ads?show=overrun").text
    assert reader("GET", "/campaigns/ads?arm=nobody").status_code == 404
    assert "one of all, held, settled, failed" in reader("GET", "/campaigns/ads?show=never").text


def test_the_json_beside_a_list_is_of_the_same_list(store, reader, admin):
    store.engine.create("ads", "bts", 9.0, {"a": 1.0, "b": 1.0})
    page = reader("GET", "/?q=a%26b&order=name&group=stopped").text
    assert 'href="/?q=a%26b&amp;group=stopped&amp;order=name&amp;format=json"' in page
    assert 'href="/?q=a%26b&amp;group=running&amp;order=name"' in page
    assert reader("GET", "/?q=a%26b&group=stopped&order=name&format=json").json()["found"] == 0
    assert "/campaigns/ads/events?before=7&amp;format=json" in admin("GET", "/campaigns/ads/events?before=7").text
    assert "/keys?before=7&amp;format=json" in admin("GET", "/keys?before=7").text


def test_a_list_or_a_cookie_of_other_figures_is_no_mistake_of_ours(store, reader, admin):
    store.engine.create("ads", "bts", 9.0, {"a": 1.0, "b": 1.0})
    for path in ("/?page=²", "/?page=١", "/keys?before=²", "/campaigns/ads/events?before=²", "/campaigns/ads?before=²"):
        assert admin("GET", path).status_code == 422, path
    prefix, expires, code = reader.cookies[sessions.COOKIE].split(".")
    stranger = Browser(store.app)
    answer = stranger("GET", "/", Cookie=f"{sessions.COOKIE}={prefix}.{expires[:-1]}\u00b2.{code}".encode("latin-1"))
    assert answer.status_code == 303


def test_pages_are_drawn_for_zones_that_there_are(store, reader, monkeypatch):
    """Whoever makes up zones sees the page in UTC that is there already, and fills no memory."""
    store.engine.create("ads", "bts", 9.0, {"a": 1.0, "b": 1.0})
    drawn, render = [], pages.render
    monkeypatch.setattr(pages, "LIFETIMES", dict.fromkeys(pages.LIFETIMES, 600.0))

    def noted(template, **values):
        drawn.append((template, str(values["times"].zone)))
        return render(template, **values)

    monkeypatch.setattr(pages, "render", noted)
    app, made_up = create_app(store.engine, store), ("Mars/1", "Mars/2", "europe/berlin", "right/UTC", "../UTC")
    for zone in ("", *made_up, "Europe/Berlin", "Mars/3", "Asia/Tokyo"):
        for path in ("/", "/campaigns/ads"):
            looking = Browser(app)
            looking.cookies = httpx.Cookies({sessions.COOKIE: reader.cookies[sessions.COOKIE], "zone": zone})
            assert looking("GET", path).status_code == 200
    for part in ("_overview.html", "_campaign.html"):
        assert [zone for name, zone in drawn if name == part] == ["UTC", "Europe/Berlin", "Asia/Tokyo"]


def test_an_arm_or_a_segment_may_be_called_all(store, reader):
    store.engine.create("ads", "bts-paced", 9.0, {"all": 1.0, "b": 1.0}, horizon=9)
    for number, segment in enumerate(("all", "chat")):
        store.engine.decide("ads", str(number), segment=segment, arms=["all"])
    page = reader("GET", "/campaigns/ads").text
    assert "?arm=all#decisions" in page
    assert "?segment=all#decisions" in page
    page = reader("GET", "/campaigns/ads?arm=all&segment=all").text
    assert "?show=held&amp;arm=all&amp;segment=all#decisions" in page
    assert "?arm=all&amp;segment=all&amp;format=json" in page


def test_names_are_found_however_they_are_written(store, reader):
    store.engine.create("Caf\u00e9", "bts", 9.0, {"a": 1.0, "b": 1.0})
    assert reader("GET", "/?format=json&q=cafe\u0301").json()["found"] == 1
    assert reader("GET", "/?q=caf%00\u00e9").status_code == 422  # PostgreSQL would take no text with a zero in it


def test_one_freeze_is_one_event_however_many_overruns_follow(store, reader):
    engine = store.engine
    engine.create("ads", "bts", 20.0, {"a": 1.0, "b": 1.0})
    made = [engine.decide("ads", str(number)) for number in range(3)]
    engine.feedback(made[0].decision, cost=1.5, reward=1.0)
    engine.feedback(made[1].decision, cost=1.25, failed=True)
    engine.feedback(made[2].decision, cost=1.75, reward=1.0)
    kinds = [event["kind"] for event in reader("GET", "/campaigns/ads/events?format=json").json()["events"]]
    assert kinds == ["frozen", "created"]
    assert engine.account("ads").overrun == 1_500_000
    assert verify(store, "ads") == []


def test_who_has_a_key_for_a_closed_campaign_is_not_offered_a_new_one(store, admin):
    store.engine.create("ads", "bts", 20.0, {"a": 1.0, "b": 1.0})
    store.engine.set_status("ads", "closed")
    alone = Browser(store.app, make_key(store, ["admin"], 0.0, "ads"))
    for _ in range(2):  # the page is drawn once for all who may do the same
        assert 'href="/new"' in admin("GET", "/campaigns/ads").text
        assert 'href="/new"' not in alone("GET", "/campaigns/ads").text


def passes_proxies(headers):
    """nginx holds back what comes slowly unless it is asked not to, and others what they compress."""
    assert headers["X-Accel-Buffering"] == "no"
    assert {"no-store", "no-transform"} <= set(headers["Cache-Control"].split(", "))


def test_a_page_too_many_is_told_that_it_is(store, reader, monkeypatch):
    monkeypatch.setattr(pages, "STREAMS_MAX", 0)
    store.engine.create("ads", "bts", 9.0, {"a": 1.0, "b": 1.0})
    for path in ("/live", "/campaigns/ads/live"):
        answer = reader("GET", path)
        assert (answer.status_code, answer.text) == (200, "event: full\ndata: 500\n\n")
        passes_proxies(answer.headers)
    assert "Too many pages are open" in reader("GET", "/campaigns/ads").text


@pytest.mark.parametrize("ending", ["key", "time"])
def test_a_page_is_told_until_its_session_ends(store, monkeypatch, ending):
    """Else the stream goes on for as long as the page is open, and this test hangs."""
    monkeypatch.setitem(pages.LIFETIMES, "campaign", 0.01)
    monkeypatch.setattr(sessions, "KEY_CACHE_SECONDS", 0.0)
    store.engine.create("ads", "bts", 9.0, {"a": 1.0, "b": 1.0})
    key = make_key(store, ["read"], 0.0)
    browser = Browser(create_app(store.engine, store), key)
    of, asked = sessions.Sessions.of, []

    async def counted(self, token):
        asked.append(token)
        if len(asked) == 4:  # the page's own question was the first, the others are the stream's
            if ending == "key":
                drop_key(store, key.split("_")[1])
            else:
                self._clock = lambda: time.time() + sessions.SESSION_SECONDS
        return await of(self, token)

    monkeypatch.setattr(sessions.Sessions, "of", counted)
    answer = browser("GET", "/campaigns/ads/live")
    assert len(asked) == 4
    prefix = key.split("_")[1]
    lost = f"the key bb_{prefix} that you had signed in with"
    why = {"key": f"{lost} was dropped, is off or has expired; sign in with another",
           "time": "your session is over: it lasts for 12 hours; sign in again"}[ending]  # fmt: skip
    assert re.fullmatch(rf"event: changed\ndata: \d+\n\nevent: over\ndata: {why}\n\n", answer.text)
    passes_proxies(answer.headers)
    assert f"{why[0].upper()}{why[1:]}." in browser("GET", "/sign-in").text
    for again in (browser("GET", "/campaigns/ads", X_Part="live"), browser("GET", "/live", Accept="text/event-stream")):
        assert (again.status_code, again.json()["detail"]) == (401, why)


def test_a_cookie_that_was_made_up_is_told_nothing_of_keys(store):
    browser = Browser(store.app)
    assert 'class="notice"' not in browser("GET", "/sign-in").text  # who has never signed in
    for prefix in (make_key(store, ["read"], 0.0).split("_")[1], "abcdefgh"):
        browser.cookies.set(sessions.COOKIE, f"{prefix}.{int(time.time()) + 60}.{'0' * 64}")
        assert f"The key bb_{prefix} that you had signed in with was dropped" in browser("GET", "/sign-in").text
    browser.cookies.set(sessions.COOKIE, "<b>.99999999999.x")
    assert "Your session is over; sign in again." in browser("GET", "/sign-in").text


def test_a_page_hears_something_within_a_beat_however_seldom_it_is_drawn(store, monkeypatch):
    monkeypatch.setitem(pages.LIFETIMES, "campaign", 0.5)
    monkeypatch.setattr(pages, "BEAT", 0.1)
    store.engine.create("ads", "bts", 9.0, {"a": 1.0, "b": 1.0})
    browser = Browser(create_app(store.engine, store), make_key(store, ["read"], 0.0))
    asked = []

    async def of(self, token):
        asked.append(token)
        return None if len(asked) > 2 else await signed_in(self, token)

    signed_in = sessions.Sessions.of
    monkeypatch.setattr(sessions.Sessions, "of", of)
    assert browser("GET", "/campaigns/ads/live").text.count("event: beat\n") >= 5
