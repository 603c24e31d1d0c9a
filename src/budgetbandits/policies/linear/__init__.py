"""`bts-linear`: Thompson sampling for requests with features, and a budget that must last.

Read `policy` first: it has the rule, with its formulas. `state` holds the sums of outcomes that the regressions of
`numerics.regression` follow from, and the recent requests that the price on money is found with.
"""

from budgetbandits.policies.linear.policy import LinearThompson

__all__ = ["LinearThompson"]
