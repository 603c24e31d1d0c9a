"""What a client without a key may cost: long heads, requests that never end, connections that nobody uses."""

import contextlib
import json
import socket
import time

import httpx
import pytest

from budgetbandits.service.http.connections import HEADER_BYTES_MAX
from budgetbandits.service.http.rate_limit import network
from servers import free_port, serving
from stores import in_threads

HURRIED = """
from budgetbandits.service.http import connections
connections.SEND_SECONDS_MAX, connections.LINGER_SECONDS = 1.5, 0.05
"""


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """Of a server that gives clients 1.5 seconds, since a busy machine is slow, and one address ten connections."""
    port = free_port()
    few = "connections.connection_limit = lambda: 20"
    process = serving(tmp_path_factory.mktemp("served"), port, first=HURRIED + few)
    yield port
    process.terminate()
    process.wait(timeout=20)


def sent(port, *pieces, source="127.0.0.1"):
    """What is answered when these pieces are sent one after the other, until the server closes."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=10, source_address=(source, 0)) as connection:
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(0.005)
        with contextlib.suppress(ConnectionError):
            while more := connection.recv(65536):
                answer += more
    return answer


def problem(answer, status):
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), answer[:200]
    assert b"content-type: application/problem+json" in head
    assert json.loads(body)["status"] == status
    return json.loads(body)["detail"]


HEAD = b"GET /healthz HTTP/1.1\r\nHost: here\r\nConnection: close\r\n"


@pytest.mark.parametrize("pieces", [1, 2, 20])
@pytest.mark.parametrize("what", ["one header", "many headers", "path"])
def test_heads_that_are_too_long(port, what, pieces):
    for length, status in ((HEADER_BYTES_MAX - 200, 200), (HEADER_BYTES_MAX + 1, 431)):
        if what == "one header":
            request = HEAD + b"X: " + b"y" * length + b"\r\n\r\n"
        elif what == "many headers":
            request = HEAD + b"X: 345678\r\n" * (length // 11) + b"\r\n"
            request = request if status == 200 else request.replace(b"\r\n\r\n", b"\r\nX: 345678\r\n" * 20 + b"\r\n")
        else:
            request = HEAD.replace(b"/healthz", b"/healthz?" + b"y" * length) + b"\r\n"
        step = len(request) // pieces + 1
        answer = sent(port, *(request[at : at + step] for at in range(0, len(request), step)))
        if status == 431:
            assert f"{HEADER_BYTES_MAX:,}" in problem(answer, 431)
        else:
            assert answer.startswith(b"HTTP/1.1 200"), answer[:200]


def test_a_head_that_is_longer_than_any_piece_is_refused_before_it_ends(port):
    problem(sent(port, HEAD + b"X: ", *[b"y" * 1000] * 40), 431)


def test_requests_that_do_not_come_in_time(port):
    half_a_body = b"POST /v1/campaigns HTTP/1.1\r\nHost: here\r\nContent-Length: 10\r\n\r\n", b"{"
    begun = time.monotonic()
    pieces = [(HEAD,), (b"GET",), half_a_body, (), (b"\r\n" * 10,)]
    head, word, body, *unused = in_threads(lambda each: sent(port, *each), pieces)
    assert time.monotonic() - begun < 8.0
    problem(head, 408)
    problem(word, 408)
    problem(body, 401)  # without a key, it is said before the body has come; and cut off when it does not come
    assert unused == [b"", b""]  # a connection that nobody uses is closed


def test_a_client_that_sends_slowly_is_cut_off_though_it_goes_on(port):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\n")
        with pytest.raises(ConnectionError):  # noqa: PT012 - whichever write finds out
            for _ in range(100):
                connection.sendall(b"X: y\r\n")
                time.sleep(0.05)


def test_what_is_no_http_is_a_problem(port):
    assert "openapi" in problem(sent(port, b"\x16\x03\x01 hello\r\n\r\n"), 400)


def test_a_connection_that_is_kept_serves_again(port):
    with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        assert client.get("/healthz").status_code == 200
        time.sleep(2.0)  # longer than a request may take, shorter than connections are kept
        assert client.get("/healthz").status_code == 200


def test_requests_one_behind_the_other(port):
    two = HEAD.replace(b"Connection: close\r\n", b"X: " + b"y" * 20_000 + b"\r\n") + b"\r\n"
    answer = sent(port, two * 3 + HEAD + b"\r\n")  # together longer than a head may be
    assert answer.count(b"HTTP/1.1 200") == 4


def test_one_address_cannot_take_all_connections(port):
    with contextlib.ExitStack() as stack:
        first = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.9", 0)))
            for _ in range(10)
        ]
        answer = sent(port, source="127.0.0.9")
        assert "too many" in problem(answer, 503)
        assert b"retry-after: 1\r\n" in answer
        assert sent(port, HEAD + b"\r\n").startswith(b"HTTP/1.1 200")  # others have room
        first[0].close()
        time.sleep(0.1)
        assert sent(port, HEAD + b"\r\n", source="127.0.0.9").startswith(b"HTTP/1.1 200")


def test_addresses():
    assert network("/run/socket") == "/run/socket"
    assert network("fe80::1%eth0") == "fe80::"


def test_a_request_that_is_on_its_way_when_the_server_stops_is_answered(tmp_path):
    port = free_port()
    process = serving(tmp_path, port)
    with contextlib.ExitStack() as stack:
        new, used, unused = (
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10)) for _ in range(3)
        )
        kept = HEAD.replace(b"Connection: close\r\n", b"") + b"\r\n"
        used.sendall(kept)
        answer = b""
        while not answer.endswith(b'{"status":"ok"}'):
            answer += used.recv(65536)
        process.terminate()
        while True:  # until it takes no more connections
            try:
                socket.create_connection(("127.0.0.1", port), timeout=10).close()
            except ConnectionRefusedError:
                break
            time.sleep(0.01)
        for each in (new, used):
            each.sendall(kept)
        for each in (new, used):
            answer = b"".join(iter(lambda: each.recv(65536), b""))  # noqa: B023
            assert answer.startswith(b"HTTP/1.1 200"), answer
            assert b"connection: close\r\n" in answer
        assert unused.recv(1) == b""
    assert process.wait(timeout=20) == 0
