"""A real server where one campaign asks for all that it can get while another decides. `make attack` runs these."""

from pathlib import Path

import pytest

from budgetbandits.plugins import run_file
from budgetbandits.service.http.auth import make_key
from servers import free_port, serving

neighbours = run_file(Path(__file__).parents[3] / "benchmarks/neighbours.py")

pytestmark = pytest.mark.attack

TRIES = 3
"""The machine may have other work in one of the two halves that are compared."""


@pytest.mark.parametrize("kind", ["draws", "segments", "batches"])
def test_a_greedy_campaign_leaves_a_stranger_within_three_times_the_delay_alone(kind, opener, tmp_path):
    with opener() as store:
        key, address = make_key(store, ["admin"], 0.0), store.address
    port, ratios = free_port(), []
    process = serving(tmp_path, port, address)
    try:
        while len(ratios) < TRIES and min(ratios, default=3.0) >= 3.0:
            found = neighbours.measure(port, key, kind, seconds=4.0, clients=4)
            assert found.rate > 0.0  # it was answered
            ratios.append(found.ratio)
    finally:
        process.terminate()
        process.wait(20.0)
    assert min(ratios) < 3.0, ratios
