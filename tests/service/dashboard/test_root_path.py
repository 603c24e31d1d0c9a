"""Pages below a path of a proxy: each address in them leads there, whether the proxy leaves the path on or not."""

import html
import re
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import pytest

import budgetbandits
from browsing import Browser
from budgetbandits.service.http.app import OWN_SEGMENTS, Application, create_app
from budgetbandits.service.http.auth import make_key
from reads_here import ReadsHere
from served import pull, served

PATH = "/apps/bandits"
TEMPLATES = Path(budgetbandits.__file__).parent / "service/dashboard/templates"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with served(tmp_path_factory.mktemp("below")) as store:
        store.engine.create("50% off", "bts", 20.0, {"a": 1.0, "b": 0.5})
        store.engine.create("v1", "bts-linear", 20.0, {"a": 1.0, "b": 0.5}, features=["x"])
        for number in range(60):
            pull(store.engine, "50% off", f"{number}", cost=0.1, reward=0.5)
        store.app = create_app(store.engine, store, reads=ReadsHere(store), path=PATH)
        store.key = make_key(store, ["admin"], 0.0)
        yield store


@pytest.fixture(scope="module")
def admin(store):
    return Browser(store.app, store.key)


def addresses(page):
    found = re.findall(r' (?:href|action|src|formaction|data-live)="([^"]*)"', page)
    return [html.unescape(each) for each in found if each and not each.startswith("#")]


def test_every_link_leads_below_the_path_and_somewhere(admin):
    """From the first page on, page by page; of addresses that differ in their query only, the first two."""
    seen, waiting, times = set(), [f"{PATH}/"], Counter()
    while waiting:
        here = waiting.pop(0)
        if here in seen or times[here.split("?")[0]] == 2:
            continue
        seen.add(here)
        times[here.split("?")[0]] += 1
        if here.endswith(("/sign-out", "/live")):
            continue
        answer = admin("GET", here)
        assert answer.status_code == 200, (here, answer.text[:300])
        if "text/html" in answer.headers["content-type"] and not here.split("?")[0].endswith("/file"):
            found = addresses(answer.text)
            assert [each for each in found if not each.startswith(f"{PATH}/") and not each.startswith("?")] == [], here
            waiting += [each.split("#")[0] for each in found]
    assert {f"{PATH}/keys/make", f"{PATH}/new", f"{PATH}/live", f"{PATH}/sign-out"} <= seen
    assert f"{PATH}/campaigns/50%25%20off/top-up" in seen
    assert [each for each in seen if each.endswith("/style.css")]


@pytest.mark.parametrize("template", sorted(TEMPLATES.glob("*.html")), ids=lambda path: path.stem)
def test_no_template_has_an_address_of_its_own(template):
    assert re.findall(r"""(?:href|action|src|formaction)=["']/[^"']*""", template.read_text()) == []


@pytest.mark.parametrize("asked", ["", "/", "//"])
@pytest.mark.parametrize("below", [PATH, ""], ids=["path left on", "path taken off"])
def test_with_the_path_or_without_it_and_with_a_slash_or_without(store, below, asked):
    stranger = Browser(store.app)
    to_sign_in = stranger("GET", below + asked or "/")
    assert to_sign_in.status_code == 303
    assert to_sign_in.headers["location"] == f"{PATH}/sign-in?next={quote(PATH + '/', safe='')}"
    answer = stranger("POST", f"{below}/sign-in?next={quote(PATH + '/keys', safe='')}", {"key": store.key})
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PATH}/keys")
    assert f"Path={PATH};" in answer.headers["set-cookie"]
    assert stranger("GET", f"{PATH}/keys").status_code == 200
    assert 'aria-current="page">Keys' in stranger("GET", f"{PATH}/keys").text
    signed_out = stranger("POST", f"{PATH}/sign-out", {"code": stranger.code(f"{PATH}/keys")})
    assert signed_out.headers["location"] == f"{PATH}/sign-in"
    assert stranger("GET", f"{PATH}/keys").status_code == 303


def test_a_form_leads_on_below_the_path(store, admin):
    def confirm(path, fields):
        code = admin.code(f"{PATH}/")
        shown = admin("POST", path, {"code": code, **fields})
        hidden = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', shown.text.split("<main")[1])
        return admin("POST", path, {html.unescape(n): html.unescape(v) for n, v in hidden})

    done = confirm(f"{PATH}/campaigns/50%25%20off/top-up", {"amount": "5"})
    assert (done.status_code, done.headers["location"]) == (303, f"{PATH}/campaigns/50%25%20off")
    assert store.engine.campaigns.account("50% off").budget == 25_000_000


def test_programs_are_served_below_the_path_too(store):
    stranger, key = Browser(store.app), f"Bearer {store.key}"
    for below in (PATH, ""):
        assert stranger("GET", f"{below}/v1/campaigns/v1", Authorization=key).json()["name"] == "v1"
        assert stranger("GET", f"{below}/healthz").status_code == 200
        assert stranger("GET", f"{below}/v1/nothing", Authorization=key).status_code == 404
    assert stranger("GET", f"{PATH}/openapi.json").json()["servers"] == [{"url": PATH}]
    page = stranger("GET", f"{PATH}/metrics", Authorization=key).text
    assert 'route="/v1/campaigns/{campaign}",status="200"' in page
    assert PATH not in page


def test_a_server_without_a_path_says_nothing_of_one(tmp_path):
    with served(tmp_path) as store:
        assert "servers" not in Browser(store.app)("GET", "/openapi.json").json()
        assert Browser(store.app)("GET", f"{PATH}/healthz").status_code == 404


def test_no_path_can_be_taken_for_an_address_of_the_server(store):
    assert isinstance(store.app, Application)
    found = {route.path.split("/")[1] for route in store.app.routes if route.path} - {""}
    assert {"v1", "docs", "campaigns"} <= found
    assert found <= set(OWN_SEGMENTS)
    assert len(found) > 8
