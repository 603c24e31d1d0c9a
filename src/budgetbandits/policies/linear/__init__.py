"""`bts-linear`: Thompson sampling for requests with features, and a budget that must last.

Read `policy` first: it has the rule, with its formulas. `state` holds the sums of outcomes and the recent requests that
the price on money is found with; `fit` says what follows from the sums, by the regressions of `numerics.regression`.
"""

from budgetbandits.policies.linear.policy import LinearThompson

__all__ = ["LinearThompson"]
