"""What another policy would have earned, from a log of decisions with their propensities."""

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
