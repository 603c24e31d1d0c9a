"""A service for the examples: the one of BUDGETBANDITS_URL and BUDGETBANDITS_KEY, or a temporary one."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx


@contextlib.contextmanager
def service():
    """The address of a service and a key for it; a temporary one is stopped afterwards."""
    if "BUDGETBANDITS_URL" in os.environ:
        yield os.environ["BUDGETBANDITS_URL"], os.environ["BUDGETBANDITS_KEY"]
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = "from budgetbandits.__main__ import main; main()"
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [sys.executable, "-c", start, "serve", "--port", str(port)],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        try:
            next(line for line in server.stdout if "admin key" in line)
            key = (Path(folder) / "budgetbandits-admin.key").read_text().strip()
            address = f"http://127.0.0.1:{port}"
            while True:
                with contextlib.suppress(httpx.TransportError):
                    httpx.get(f"{address}/readyz").raise_for_status()
                    break
                time.sleep(0.05)
            yield address, key
        finally:
            server.terminate()
            server.wait()


def compare(unit, budget, got, spent, even):
    """Print what the same success would have cost at the rate of an even split of the money."""
    worth = got * budget / even
    print(f"  budgetbandits   {got:8,.1f} {unit} for {spent:7.2f}")
    print(f"  an even split   {even:8,.1f} {unit} for {budget:7.2f}")
    print(f"  At that rate ours would have cost {worth:.2f}: saved {worth - spent:.2f}, {1 - spent / worth:.0%}.")
