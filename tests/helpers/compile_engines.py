"""Compile engines into the disk cache, once for all test processes: the first part of `make test`."""

from __future__ import annotations

import sys

from budgetbandits import Problem, simulate

if __name__ == "__main__":
    for policy in sys.argv[1:]:
        simulate(Problem.bernoulli([0.9, 0.2], [0.3, 0.6]), policy, [5.0], runs=1)
