"""A small study that the tests of experiments share: cheap policies, no compiler needed."""

from __future__ import annotations

from budgetbandits.experiments import Experiment

SMALL = """
name = "small"
seed = 3
runs = 6
budgets = [5, 20]
policies = ["bts", "epsilon-first:epsilon=[0.1, 0.2]", "kube"]
engine = "reference"

[[problems]]
name = "inline"
rewards = [0.9, 0.2, 0.5]
costs = [0.3, 0.6, 0.5]

[[problems]]
name = "random"
family = "uniform-bernoulli"
arms = 3
seed = 7
count = 2
low = 0.2
"""


def small(**changes) -> Experiment:
    return Experiment.from_toml(SMALL).changed(**changes)
