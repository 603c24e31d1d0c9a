"""A suite of two small settings: twelve problems of three arms, and one of two."""

from __future__ import annotations

TINY = """
name = "tiny"
seed = 3
policies = ["bts", "kube", "kube-fractional"]

[[settings]]
name = "many"
title = "Many problems"
laws = "bernoulli"
about = "three arms"
runs = 1
engine = "reference"
budgets = [40, 80]
budget_unit = "smallest mean cost"
without = ["kube"]
[[settings.problems]]
family = "near-ties"
arms = 3
count = 12

[[settings]]
name = "one"
title = "One problem"
laws = "bernoulli"
about = "two arms"
runs = 12
engine = "reference"
budgets = [20]
[[settings.problems]]
name = "p"
rewards = [0.9, 0.2]
costs = [0.3, 0.6]
"""
