"""`bts-paced`: Thompson sampling for a budget that must last for a number of requests.

Read `policy` first: it has the rule, with its formulas. `statistics` holds the sums of outcomes and the posteriors that
follow from them, `pooling` what segments learn from each other, `selection` the arm that answers once the program of
`numerics.fluid` is solved, and which trials are left out. Outside, `PacedThompson` and its state `PacedState` are used.
"""

from budgetbandits.policies.paced.policy import PacedThompson

__all__ = ["PacedThompson"]
