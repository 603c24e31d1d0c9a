"""What tests of the laboratory's pages do again and again."""

import contextlib
import http.client
import os
import threading
import time

from budgetbandits.report.viewer.folder import Folder
from budgetbandits.report.viewer.pages import Viewer
from budgetbandits.report.viewer.server import Server


def past(folder, seconds):
    then = time.time() - seconds
    for path in [*folder.rglob("*")]:
        os.utime(path, (then, then))


def everything(folder):
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}


def text(answer):
    return answer.body.decode()


def until(true, seconds=20.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


@contextlib.contextmanager
def ask(port, path, **headers):
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", path, headers=headers)
        with connection.getresponse() as answer:
            yield answer


@contextlib.contextmanager
def viewing(folder):
    """The address of a server on this folder."""
    with Server(Viewer(Folder(folder)), "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.url
        finally:
            server.stopping.set()
            server.shutdown()
            thread.join()
