"""Log lines: what comes from outside is shown, and never acted on."""

import io
import json
import logging
import re

import httpx
import pytest
import structlog

from budgetbandits.service.http.server import visible, write_logs

NASTY = "ads\x1b]0;owned\x07\x1b[2J\x9b31m\r\n\u202eforged\x7f"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Screen(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.fixture
def logging_on(monkeypatch):
    """Write logs to this screen; everything is as before when the test is over."""
    root = logging.getLogger()
    before, level = root.handlers, root.level

    def start(terminal):
        screen = Screen(terminal)
        monkeypatch.setattr("sys.stderr", screen)
        write_logs()
        return screen

    yield start
    root.handlers = before
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.mark.parametrize("terminal", [True, False])
def test_a_log_line_carries_no_control_characters(logging_on, terminal):
    screen = logging_on(terminal)
    log = structlog.get_logger("test")
    log.warning("topped up", campaign=NASTY, arms=[NASTY], **{"odd\x1bkey": 1})
    log.info(NASTY)
    logging.getLogger("a library").warning("it said %s", NASTY)
    log.error("request failed", path=NASTY, exc_info=ValueError(NASTY))
    rest = COLOUR.sub("", screen.getvalue())  # the renderer's own colours
    assert not [each for each in rest if not each.isprintable() and each != "\n"]
    assert "forged" in rest  # all of it is there to be read
    if terminal:
        assert "\\x1b[2J" in rest
        assert "ValueError" in rest
    else:
        assert [json.loads(line)["level"] for line in rest.splitlines()] == ["warning", "info", "warning", "error"]


def test_what_can_be_read_stays_as_it_is():
    assert visible("café 東京 'x'") == "café 東京 'x'"
    assert visible("a\nb", keep="\n") == "a\nb"


def test_addresses_of_webhooks_are_not_written_down(logging_on):
    """Their paths may be secrets, and httpx logs each request with its whole address."""
    screen = logging_on(False)
    with httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(204))) as client:
        client.post("https://hooks.example/services/SECRET")
    structlog.get_logger("test").info("said")
    assert "SECRET" not in screen.getvalue()
    assert "said" in screen.getvalue()
