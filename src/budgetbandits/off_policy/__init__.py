"""Evaluation of another policy from a log of decisions with their propensities.

Everything in ``__all__`` is public: read a `Log`, make a `Target`, `evaluate` it.

log             decisions with their propensities, from a file or a table
targets         the policy to evaluate, as probabilities in each situation of the log
outcome_models  guesses at what each arm would have earned and cost
estimates       what it would have earned and spent, with intervals
"""

from budgetbandits.off_policy.estimates import Estimate, Evaluation, Value, evaluate
from budgetbandits.off_policy.log import Log, read_log
from budgetbandits.off_policy.targets import Target, even, held_still, mix, one_arm

__all__ = [
    "Estimate",
    "Evaluation",
    "Log",
    "Target",
    "Value",
    "evaluate",
    "even",
    "held_still",
    "mix",
    "one_arm",
    "read_log",
]
