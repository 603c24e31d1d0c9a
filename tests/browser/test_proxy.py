"""A page behind a real nginx, Debian's: live as nginx is installed, and where it holds back streams, not said to be."""

import contextlib
import time

import pytest

from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore
from deployed import nginx
from servers import admin_key, free_port, running
from viewed import viewing

pytestmark = pytest.mark.browser

SHORT = "from budgetbandits.web import servers\nservers.BEAT = 0.4\n"
"""Beats that a test can wait for."""


@contextlib.contextmanager
def proxy(folder, behind, more):
    """A proxy with nothing but its defaults, and perhaps a directive more."""
    port = free_port()
    places = f"location / {{ proxy_pass http://127.0.0.1:{behind}; {more} }}"
    with nginx(folder, port, f"server {{ listen 127.0.0.1:{port}; {places} }}"):
        yield f"http://127.0.0.1:{port}"


def port_of(address):
    return address.rpartition(":")[2]


@pytest.fixture(scope="module")
def behind(tmp_path_factory):
    """The port of a server, a key for it, and an engine on its store."""
    folder = tmp_path_factory.mktemp("behind")
    with SQLiteStore(folder / "budgetbandits.db") as store, running(folder, first=SHORT) as (base, _):
        yield port_of(base), admin_key(folder), DecisionService(store, time.time)


def campaign(engine, name):
    """The address of a new campaign, and what spends half a unit of it."""
    engine.create(name, "bts", 20.0, {"a": 1.0, "b": 1.0})
    return f"/campaigns/{name}", lambda: engine.feedback(engine.decide(name, key="one").decision, cost=0.5, reward=1.0)


COMPRESSED = "gzip on; gzip_types text/event-stream; gzip_min_length 0; gzip_proxied any;"
"""Which holds back what comes slowly, unless the answer says not to ..."""
DEAF = f"{COMPRESSED} proxy_ignore_headers X-Accel-Buffering;"
"""... and nginx heeds it."""


@pytest.mark.parametrize("more", ["", COMPRESSED, DEAF], ids=["plain", "compressed", "deaf"])
def test_behind_nginx_a_page_is_live_or_says_that_it_is_not(behind, tmp_path, watched, more):
    port, key, engine = behind
    here, spend = campaign(engine, f"proxied {len(more)}")
    with proxy(tmp_path, port, more) as base:
        browser = watched(base)
        browser.sign_in(key)
        page, state = browser.page, browser.page.locator("#live-state")
        page.goto(base + here)
        if more == DEAF:
            assert state.inner_text() != "Live"
            page.wait_for_selector("#silent >> text=Updates are delayed.")
            assert state.inner_text() == "Delayed"
            assert page.locator("#disconnected").is_hidden()
            browser.keep("silent", page)
        else:
            browser.until(lambda: state.inner_text() == "Live")
        spend()
        # by itself, told or asked for; a page may be twenty seconds old
        page.wait_for_selector("text=0.50 of 20.00", timeout=40_000)
        if more != DEAF:
            page.wait_for_timeout(2 * 3 * 400)  # longer than the page's patience
            assert state.inner_text() == "Live"
            assert page.locator("#silent").is_hidden()
        browser.sound()


def test_the_laboratorys_page_is_live_behind_nginx(tmp_path, watched):
    """Its server ends streams by closing them, and as nginx is installed it holds those back."""
    with viewing(tmp_path) as behind, proxy(tmp_path, port_of(behind), "") as base:
        browser = watched(base)
        browser.page.goto(base)
        browser.until(lambda: browser.page.inner_text("#live-state") == "Live")
        browser.sound()


DEAFENED = """const Real = EventSource;
EventSource = class extends Real {
  addEventListener(name, act) { super.addEventListener(name, (event) => { if (!window.deaf) act(event); }); }
};"""


def test_a_page_that_hears_nothing_says_so_until_it_hears_again(behind, watched):
    """As when a machine has slept: the connection looks open, and nothing comes."""
    port, key, engine = behind
    here, spend = campaign(engine, "deaf")
    base = f"http://127.0.0.1:{port}"
    browser = watched(base)
    browser.page.add_init_script(DEAFENED)
    browser.sign_in(key)
    page, state = browser.page, browser.page.locator("#live-state")
    page.goto(base + here)
    browser.until(lambda: state.inner_text() == "Live")
    page.evaluate("window.deaf = true")
    page.wait_for_selector("#silent >> text=Updates are delayed.")
    assert state.inner_text() == "Delayed"
    spend()
    page.wait_for_selector("text=0.50 of 20.00", timeout=40_000)
    page.evaluate("window.deaf = false")
    browser.until(lambda: state.inner_text() == "Live")
    assert page.locator("#silent").is_hidden()
    browser.sound()


def test_a_page_whose_numbers_do_not_come_is_not_called_live(behind, watched):
    """The stream works, and the answer with the numbers hangs: patience ends, and the page says since when."""
    port, key, engine = behind
    here, spend = campaign(engine, "hanging")
    base = f"http://127.0.0.1:{port}"
    browser = watched(base)
    browser.sign_in(key)
    page, state = browser.page, browser.page.locator("#live-state")
    page.goto(base + here)
    browser.until(lambda: state.inner_text() == "Live")
    held = []
    page.route("**/campaigns/hanging", lambda route: held.append(route))
    spend()
    browser.until(lambda: state.inner_text() == "Loading")
    browser.until(lambda: state.inner_text().startswith("Offline since "))
    page.wait_for_timeout(1000)  # beats come meanwhile
    assert state.inner_text() != "Live"
    assert page.locator("#disconnected").is_visible()
    page.unroute_all(behavior="ignoreErrors")
    page.wait_for_selector("text=0.50 of 20.00")
    browser.until(lambda: state.inner_text() == "Live")
    browser.complaints = [each for each in browser.complaints if "ERR_" not in each]
    browser.sound()
