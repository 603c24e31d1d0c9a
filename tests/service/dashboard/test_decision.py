"""The page of a decision, the search that leads there, and the lines that connect a program."""

import html
import re
import shlex
from types import SimpleNamespace

import pytest

from browsing import Browser
from budgetbandits.service.http.auth import make_key
from budgetbandits.service.stores.sql import decision_search

FEATURES = ["length", "hour <b>"]


def seen(answer):
    """What a page says, without its markup."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", answer.text)).split())


@pytest.fixture
def made(store):
    """A campaign with a decision of every fate, by what became of it."""
    engine, clock = store.engine, store.clock
    engine.create("ads", "bts", 20.0, {"search": 1.0, "mail": 0.5}, hold_seconds=60.0, actor="bb_maker")
    decide = {"arms": ["search"], "metadata": {"user": "u-17 <b>", "prompt": 3}}
    made = {fate: engine.decide("ads", f"key of {fate}", **decide) for fate in ("settled", "failed", "voided", "late")}
    clock.now += 12.0
    engine.feedback(made["settled"].decision, reward=1.0)
    clock.now += 8.0
    engine.feedback(made["settled"].decision, cost=0.25)
    engine.feedback(made["failed"].decision, failed=True)
    engine.void(made["voided"].decision)
    clock.now += 60.0
    engine.expire_due()
    made["held"] = engine.decide("ads", "key of held", segment=None)
    return made


def test_the_page_of_a_decision_has_its_life_and_its_request(store, reader, made):
    page = seen(reader("GET", f"/campaigns/ads/decisions/{made['settled'].decision}"))
    for words in (
        f"Decision {made['settled'].decision[:8]} Settled", "Asked: search was chosen, and 1.00 held",
        "Reward 1 reported 12 s later", "Cost 0.25 reported: settled 20 s later", "Key key of settled",
        "Arms search", "user u-17 <b>", "prompt 3",
    ):  # fmt: skip
        assert words in page, words
    assert "Expires" not in page
    wanted = {
        "failed": "Failed: there was no answer", "voided": "Voided: the call was never made",
        "late": "Expired without a cost: 1.00 was charged",
        "held": "if no cost is reported, and is charged then",
    }  # fmt: skip
    for fate, words in wanted.items():
        assert words in seen(reader("GET", f"/campaigns/ads/decisions/{made[fate].decision}"))
    answer = reader("GET", f"/campaigns/ads/decisions/{made['settled'].decision}?format=json").json()
    assert [event["kind"] for event in answer["events"]] == ["decided", "rewarded", "settled"]
    assert (answer["key"], answer["cost"], answer["metadata"]["prompt"]) == ("key of settled", 0.25, 3)
    assert answer["look_further_after"] is None


def test_the_rest_of_a_life_may_be_further_on(store, reader, made, monkeypatch):
    monkeypatch.setattr(decision_search, "EVENTS_SEARCHED_MAX", 3)
    path = f"/campaigns/ads/decisions/{made['settled'].decision}"
    page = reader("GET", path)
    assert "Look further" in seen(page)
    assert "Cost 0.25 reported: settled" not in seen(page)
    found = [event["kind"] for event in reader("GET", f"{path}?format=json").json()["events"]]
    address = html.unescape(re.search(r'rel="next" href="([^"]*)"', page.text)[1])
    while address is not None:
        page = reader("GET", address)
        found += [event["kind"] for event in reader("GET", f"{address}&format=json").json()["events"]]
        more = re.search(r'rel="next" href="([^"]*)"', page.text)
        address = None if more is None else html.unescape(more[1])
    assert found == ["decided", "rewarded", "settled"]


def test_a_decision_is_found_by_id_key_and_metadata(store, reader, made):
    engine = store.engine
    here = "/campaigns/ads/decisions"
    id = made["settled"].decision
    for text in (id, id[:6], id[:8].upper(), "key of settled"):
        answer = reader("GET", f"{here}?q={text}")
        assert (answer.status_code, answer.headers["location"]) == (303, f"{here}/{id}"), text
    found = reader("GET", f"{here}?q=prompt=3&format=json").json()
    assert [each["id"] for each in found["decisions"]] == [
        made[fate].decision for fate in ("late", "voided", "failed", "settled")
    ]
    assert "has this in its metadata" in seen(reader("GET", f"{here}?q=prompt=4"))
    assert "has this id or key" in seen(reader("GET", f"{here}?q=nobody"))
    engine.decide("ads", "a=b")  # a key may look like an entry
    assert reader("GET", f"{here}?q=a=b").status_code == 303
    assert reader("GET", f"{here}?q={'x' * 2001}").status_code == 422
    assert 'value="&lt;i&gt;"' in reader("GET", f"{here}?q=<i>").text
    page = reader("GET", "/campaigns/ads").text
    assert f'href="{here}/{id}"' in page
    assert f"Decision {id[:8]} of ads" in seen(reader("GET", f"/?q={id[:10]}"))


def test_a_decision_of_another_campaign_is_not_shown(store, reader, made):
    store.engine.create("other", "bts", 20.0, {"a": 1.0, "b": 0.5})
    id = made["settled"].decision
    assert reader("GET", f"/campaigns/other/decisions/{id}").status_code == 404
    assert reader("GET", f"/campaigns/other/decisions?q={id}").status_code == 200  # and nothing found
    alone = Browser(store.app, make_key(store, ["read"], 0.0, "other"))
    assert alone("GET", f"/campaigns/ads/decisions/{id}").status_code == 403
    assert f"/decisions/{id}" not in alone("GET", f"/?q={id}").text
    assert Browser(store.app)("GET", f"/campaigns/ads/decisions/{id}").status_code == 303


# --- connect ---------------------------------------------------------------------------------------------------------


def lines(browser, path, kind, **headers):
    text = re.search(rf'<pre[^>]* id="{kind}-lines"[^>]*>(.*?)</pre>', browser("GET", path, **headers).text, re.S)[1]
    return html.unescape(text)


def test_the_lines_for_a_program_have_this_servers_address_and_campaign(store, reader):
    store.engine.create('50% "off"', "bts", 20.0, {"openai/gpt-4o-mini": 1.0, "b": 0.5})
    path = "/campaigns/50%25%20%22off%22/connect"
    python = lines(reader, path, "python", Host="bandits.example", X_Forwarded_Proto="https")
    assert 'Client("https://bandits.example", os.environ["BUDGETBANDITS_KEY"])' in python
    assert r'client.decide("50% \"off\"")' in python
    compile(python, "python", "exec")
    openai = lines(reader, path, "openai")
    assert '"openai/gpt-4o-mini": (INPUT, OUTPUT),' in openai
    compile(openai, "openai", "exec")
    words = shlex.split(lines(reader, path, "curl"))
    assert words[2] == "http://service/v1/campaigns/50%25%20%22off%22/decisions"
    assert "javascript" not in lines(reader, path, "python", X_Forwarded_Proto="javascript")


def test_the_lines_name_no_price_that_nobody_gave(store, reader):
    """Pasted as they are they stop there, before anything is booked by a price that is wrong."""
    store.engine.create("ads", "bts", 20.0, {"gpt-4o": 1.0, "gpt-4o-mini": 0.5})
    openai = lines(reader, "/campaigns/ads/connect", "openai")
    table = re.search(r"^prices = \{.*?^\}", openai, re.S | re.M)[0]
    assert not re.search(r"\d\.\d", table)
    with pytest.raises(NameError, match="INPUT"):
        exec(table)


def test_the_lines_give_every_feature_that_the_campaign_asks_for(store, reader):
    store.engine.create("ads", "bts-linear", 20.0, {"a": 1.0, "b": 0.5}, features=FEATURES, horizon=40)
    python = lines(reader, "/campaigns/ads/connect", "python")

    class Stub:
        def __init__(self, *given):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *given):
            pass

        def decide(self, campaign, **options):
            made = store.engine.decide(campaign, "key", **options)
            self.arm = made.arm
            self.settle = lambda reward, cost: store.engine.feedback(made.decision, reward=reward, cost=cost)
            return self

    known = {"Client": Stub, "call": lambda arm: SimpleNamespace(value=1.0, price=0.25), "os": SimpleNamespace(
        environ={"BUDGETBANDITS_KEY": "key"})}  # fmt: skip
    exec("\n".join(line for line in python.splitlines() if not line.startswith(("import", "from"))), known)
    assert store.engine.describe("ads").spent == 0.25
    words = shlex.split(lines(reader, "/campaigns/ads/connect", "curl"))
    assert words[words.index("-d") + 1] == '{"features": {"length": 0.0, "hour <b>": 0.0}}'
