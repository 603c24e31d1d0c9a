"""`bts-paced`: Thompson sampling for a budget that must last for a number of requests.

`policy` has the rule, `statistics` what is kept of the outcomes, `selection` the choice from a plan, `pooling` what
segments learn from each other, `exploration` which trials are left out.
"""

from budgetbandits.policies.paced.policy import PacedThompson

__all__ = ["PacedThompson"]
