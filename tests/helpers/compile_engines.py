"""Compile engines into Numba's disk cache, so that two test processes do not both do it: `make test` runs this first."""

from __future__ import annotations

import sys

from budgetbandits import Problem, simulate

if __name__ == "__main__":
    for policy in sys.argv[1:]:
        simulate(Problem.bernoulli([0.9, 0.2], [0.3, 0.6]), policy, [5.0], runs=1)
