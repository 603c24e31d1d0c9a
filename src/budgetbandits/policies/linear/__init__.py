"""`bts-linear`: Thompson sampling for requests with features, and a budget that must last.

Read `policy` first: it has the rule, with its formulas. `state` holds the sums of outcomes and recent requests; `fit`
says what follows from the sums, by the regressions of `numerics.regression`; `program` finds the price on money, and
`trials` says which arms are worth a trial.
"""

from budgetbandits.policies.linear.policy import LinearThompson

__all__ = ["LinearThompson"]
