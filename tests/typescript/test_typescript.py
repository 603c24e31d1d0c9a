"""A client in TypeScript, generated from the document of a running server, checked strictly, and used."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from servers import admin_key, running

EXAMPLE = Path(__file__).parents[2] / "out" / "typescript"
"""A copy of ``examples/typescript``, with what it needs from npm: `make typescript` makes it."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """What the example's commands need to know of a server that runs."""
    folder = tmp_path_factory.mktemp("server")
    with running(folder) as (address, _):
        yield {"BUDGETBANDITS_URL": address, "BUDGETBANDITS_KEY": admin_key(folder)}


@pytest.fixture(scope="module")
def npm(server):
    """``npm("start")`` runs a script of the example; its output. The types are generated first."""

    def run(*words):
        done = subprocess.run(
            ["npm", *words], cwd=EXAMPLE, env=os.environ | server, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("run", "generate")
    return run


def test_the_example_decides_and_tells_until_the_money_is_spent(npm):
    npm("run", "check")
    said = npm("start")
    decisions, spent = re.search(r"^(\d+) decisions, ([\d.]+) of 0.5 spent$", said, re.MULTILINE).groups()
    assert 0.448 < float(spent) <= 0.5  # no arm's cap fits what is left, or else it would go on
    assert sum(map(int, re.findall(r": (\d+) pulls$", said, re.MULTILINE))) == int(decisions) > 10


def test_the_types_refuse_mistakes(npm):
    """`mistakes.ts` marks each line that must not pass; one that passes fails the check."""
    npm("exec", "--", "tsc", "--project", str(Path(__file__).parent))
