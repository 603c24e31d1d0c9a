"""After an outage of PostgreSQL a server reads again soon, however long it lasted."""

import contextlib
import socket
import threading
import time
from urllib.parse import urlsplit, urlunsplit

import pytest

from budgetbandits.errors import StoreError
from stores import STORES


class Cable:
    """A way to a server that can be cut and mended: while it is cut, connections are refused and open ones are lost."""

    def __init__(self, host, port):
        self._to = (host, port)
        self._open = []
        self._listener = self._listen(0)
        self.port = self._listener.getsockname()[1]

    def _listen(self, port):
        listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._serve, args=(listener,), daemon=True).start()
        return listener

    def _serve(self, listener):
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(self._to)
                self._open += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        for end in (one, other):
            end.close()

    def cut(self):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # or else `accept` goes on
        self._listener.close()
        for end in self._open:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def mend(self):
        self._listener = self._listen(self.port)


def test_reads_succeed_soon_after_an_outage(tmp_path):
    """Of seven seconds, after which a pool that doubles its waits would be in one of eight."""
    with STORES["postgres"](tmp_path) as opener:
        parts = urlsplit(opener.keywords["url"])
        cable = Cable(parts.hostname, parts.port)
        place = f"{parts.username}@127.0.0.1:{cable.port}"
        with opener.func(urlunsplit(parts._replace(netloc=place))) as store:
            assert store.read(lambda tx: tx.campaign("none")) is None
            cable.cut()
            end = time.monotonic() + 7.0
            while time.monotonic() < end:
                with pytest.raises(StoreError):
                    store.read(lambda tx: tx.campaign("none"))
            cable.mend()
            began = time.monotonic()
            while time.monotonic() - began < 30.0:
                with contextlib.suppress(StoreError):
                    assert store.read(lambda tx: tx.campaign("none")) is None
                    break
            assert time.monotonic() - began < 3.5
        cable.cut()
