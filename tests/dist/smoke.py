"""Each wheel, installed alone into fresh environments and used there as its users do: the core, the lab, the service
and its client.

    python tests/dist/smoke.py DIST

DIST holds the wheel of the package and that of the client. Nothing of the checkout is within reach: commands run in
temporary folders, without PYTHONPATH.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
OUTSIDE = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}

CORE = """
from budgetbandits import Allocation, BudgetedThompson
spend = Allocation(BudgetedThompson(), ["search", "mail"], budget=20.0, cost_max=2.0, seed=7)
while not spend.exhausted:
    spend.tell(spend.ask(), reward=0.5, cost=1.0)
assert Allocation.from_json(spend.to_json()).left == spend.left
from budgetbandits.errors import MissingExtra
try:
    import budgetbandits.client
except MissingExtra as error:
    print(error)
"""
CLIENT = """
import sys
from budgetbandits_client import AsyncClient, Client, adapters
from budgetbandits_client.adapters.openai import BudgetedOpenAI
from budgetbandits_client.errors import HoldRefused, NotFound
with Client(sys.argv[1], open(sys.argv[2]).read().strip()) as client:
    try:
        client.campaign("nothing")
    except NotFound as error:
        print(type(error).__module__)
    with client.decide("ads") as decision:
        decision.settle(reward=1.0, cost=0.5)
    print(client.campaign("ads"))
assert not {"budgetbandits", "numpy", "scipy"} & set(sys.modules)
"""
SERVICE = """
import sys
from budgetbandits.client import Client
with Client(sys.argv[1], open(sys.argv[2]).read().strip()) as client:
    client.create("ads", budget=50.0, arms={"search": 2.0, "mail": 0.5})
    for _ in range(3):
        with client.decide("ads") as decision:
            decision.settle(reward=1.0, cost=0.25)
    print(client.campaign("ads").spent, client.verify("ads"))
"""


def main(dist: Path) -> None:
    [wheel] = dist.glob("budgetbandits-*.whl")
    [client] = dist.glob("budgetbandits_client-*.whl")
    expect(wheel.name.split("-")[1] == client.name.split("-")[1], "the client is of another version")
    check_content(wheel)
    for use, extra in ((use_core, ""), (use_service, "[service]"), (use_lab, "[lab]")):
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="budgetbandits-smoke-") as folder:
            here = Path(folder)
            environment(here / "env", f"{wheel}{extra}")
            if use is use_service:
                environment(here / "client", str(client))
            installed = time.monotonic()
            size = megabytes(here / "env")
            use(here)
        print(
            f"{extra or 'the core'}: {size:.0f} MB, installed in {installed - began:.0f} s, "
            f"used in {time.monotonic() - installed:.0f} s"
        )
    for version, python in sorted(other_pythons().items()):
        with tempfile.TemporaryDirectory(prefix="budgetbandits-smoke-") as folder:
            try:
                environment(Path(folder) / "env", str(wheel), python)
            except subprocess.CalledProcessError:
                print(f"Python {version}: NumPy and SciPy are not to be had for it here")
                continue
            use_core(Path(folder))
            print(f"Python {version}: the core is installed and used")


def other_pythons() -> dict[str, str]:
    """The other Pythons of this machine that the package is for, by their versions: on the path, or pyenv's."""
    known = [shutil.which(f"python3.{minor}") for minor in range(11, 16)]
    known += map(str, Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/3.1[1-5].*/bin/python"))
    found = {}
    for python in filter(None, known):
        ask = [python, "-c", "import sys; print(*sys.version_info[:2], sep='.')"]
        said = subprocess.run(ask, env=OUTSIDE, capture_output=True, text=True, check=False)
        if said.returncode == 0 and said.stdout.strip() != "{}.{}".format(*sys.version_info):
            found[said.stdout.strip()] = python
    return found


def check_content(wheel: Path) -> None:
    """Every file of the package that git knows is in the wheel, and no link in what an index shows is relative."""
    tracked = subprocess.run(
        ["git", "ls-files", "src/budgetbandits"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    with zipfile.ZipFile(wheel) as archive:
        there = set(archive.namelist())
        [metadata] = (archive.read(name).decode() for name in there if name.endswith(".dist-info/METADATA"))
    missing = [name for name in tracked if name.removeprefix("src/") not in there]
    expect(tracked and not missing, f"the wheel lacks {missing}")
    links = re.findall(r"\]\(([^)]*)\)", metadata)
    relative = [link for link in links if not link.startswith("https://")]
    expect(links and not relative, f"relative links in the metadata: {relative}")


def use_core(here: Path) -> None:
    said = run(here, "python", "-c", CORE)
    expect("pip install 'budgetbandits[client]'" in said, said)
    expect("pip install 'budgetbandits[service]'" in run(here, "budgetbandits", "--help"), "the core has no help")
    said = run(here, "budgetbandits", "policies", code=2)
    expect("pip install 'budgetbandits[lab]'" in said, said)


def use_lab(here: Path) -> None:
    expect("Use " in run(here, "budgetbandits", "recommend", "--arms", "12", "--budget", "2000"), "no recommendation")
    run(here, "budgetbandits", "paper", "--quick", "--out", "paper")
    run(here, "budgetbandits", "leaderboard", "--quick", "--setting", "start", "--out", "leaderboard")
    for page in ("paper/report.html", "leaderboard/leaderboard.html"):
        expect((here / page).stat().st_size > 10_000, f"{page} is nearly empty")
    said = run(here, "budgetbandits", "serve", code=2)
    expect("pip install 'budgetbandits[service]'" in said, said)


def use_service(here: Path) -> None:
    for needless in ("numba", "polars", "matplotlib", "joblib"):
        expect(not list(here.glob(f"env/lib/*/site-packages/{needless}")), f"the service installs {needless}")
    with serving(here) as address:
        said = run(here, "python", "-c", SERVICE, address, "admin.key")
        use_client(here, address)
    expect(said == "0.75 []\n", said)
    expect("agrees" in run(here, "budgetbandits", "campaign", "verify", "ads"), "the audit does not agree")
    said = run(here, "budgetbandits", "run", "paper", "--out", "paper", code=2)
    expect("pip install 'budgetbandits[lab]'" in said, said)


def use_client(here: Path, address: str) -> None:
    """The client's own distribution, in an environment without any other: NumPy and SciPy are not there."""
    for needless in ("numpy", "scipy", "budgetbandits"):
        expect(not list(here.glob(f"client/lib/*/site-packages/{needless}")), f"the client installs {needless}")
    said = run(here, "python", "-c", CLIENT, address, "admin.key", environment="client")
    expect(said.startswith("budgetbandits_client.errors\n") and "spent 1.25" in said, said)
    print(f"the client: {megabytes(here / 'client'):.0f} MB")


def megabytes(folder: Path) -> float:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file() and not each.is_symlink()) / 1e6


@contextlib.contextmanager
def serving(here: Path) -> Iterator[str]:
    """A server on any free port; where it is."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [here / "env/bin/budgetbandits", "serve", "--port", port, "--key-file", "admin.key"]
    with (
        open(here / "log", "w") as log,
        subprocess.Popen(command, cwd=here, env=OUTSIDE, stdout=log, stderr=log) as server,
    ):
        try:
            end = time.monotonic() + 60
            while not (here / "admin.key").exists():
                expect(server.poll() is None and time.monotonic() < end, (here / "log").read_text())
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"  # the client tries again until it answers
        finally:
            server.terminate()


def environment(folder: Path, what: str, interpreter: str = sys.executable) -> None:
    """A fresh one with this installed, by uv, or by pip where uv cannot."""
    subprocess.run([interpreter, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin/python"
    by_uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python, what]
    if subprocess.run(
        by_uv, env=OUTSIDE | {"UV_HTTP_TIMEOUT": "10"}, stderr=subprocess.DEVNULL, check=False
    ).returncode:
        subprocess.run([python, "-m", "ensurepip"], env=OUTSIDE, stdout=subprocess.DEVNULL, check=True)
        by_pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", what]
        subprocess.run(by_pip, env=OUTSIDE, check=True)


def run(here: Path, program: str, *arguments: str, code: int = 0, environment: str = "env") -> str:
    """What a program of the environment prints; it must end with this code."""
    command = [here / environment / "bin" / program, *arguments]
    done = subprocess.run(command, cwd=here, env=OUTSIDE, capture_output=True, text=True, check=False)
    expect(done.returncode == code, f"{program} {' '.join(arguments)} ends with {done.returncode}:\n{done.stderr}")
    return done.stdout + (done.stderr if code else "")


def expect(right: object, otherwise: str) -> None:
    if not right:
        sys.exit(f"smoke: {otherwise}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
