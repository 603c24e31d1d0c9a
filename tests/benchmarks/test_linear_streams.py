"""The benchmark of streams with features: its player who knows the truth, and its cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from budgetbandits.plugins import run_file

streams = run_file(Path(__file__).parents[2] / "benchmarks/linear_streams.py")


def test_who_knows_the_truth_earns_the_fluid_bound():
    """Of 400 requests, but for luck, whose standard deviation is 5 % in a game; four standard errors of 8 games. A
    player who earned a tenth less would be found out in 98 of 100 seeds."""
    shares = [streams.share(streams.TRUTH, 5, 3, 400, game) for game in range(8)]
    assert np.mean(shares) == pytest.approx(0.99, abs=4 * 0.05 / np.sqrt(8))


def test_a_cell_is_a_share_of_the_bound():
    """Without features the best mix is some 10 % below the bound; nobody is far above it."""
    assert 0.6 < streams.share("bts-paced", 5, 3, 300, 0) < 1.1


def test_estimates_are_means_and_standard_errors():
    assert streams.estimate([0.9, 1.0]) == "95.0 ± 5.0 %"
