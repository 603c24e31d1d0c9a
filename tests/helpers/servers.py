"""A real server in a process of its own, as a user starts it."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time

import httpx


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def serving(folder, port, store=None, first="", options=()):
    """A server on the database of this folder or the one at this address, ready when this returns; what it says goes
    into the file ``said``. Its process runs the statements ``first`` before anything else."""
    start = f"{first}\nfrom budgetbandits.__main__ import main; main()"
    command = [sys.executable, "-c", start, "serve", "--port", str(port), *options]
    if store is not None:
        command += ["--store", store]
    with (folder / "said").open("w") as said:
        server = subprocess.Popen(command, cwd=folder, stdout=said, stderr=subprocess.STDOUT)
    with httpx.Client() as client:  # one for all attempts: making one takes longer than a request
        while True:
            try:
                client.get(f"http://127.0.0.1:{port}/readyz").raise_for_status()
            except httpx.HTTPError:
                assert server.poll() is None, (folder / "said").read_text()
                time.sleep(0.02)
            else:
                return server


def admin_key(folder):
    """The key that the first server of this folder has made."""
    return (folder / "budgetbandits-admin.key").read_text().strip()


@contextlib.contextmanager
def running(folder, **more):
    """The address of a server on the database of this folder, and its process."""
    port = free_port()
    server = serving(folder, port, **more)
    try:
        yield f"http://127.0.0.1:{port}", server
    finally:
        server.terminate()
        server.wait(20)
