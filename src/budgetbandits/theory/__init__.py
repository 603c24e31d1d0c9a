"""What is proven about Budgeted Thompson Sampling, evaluated: bounds that can be drawn beside measurements."""

from budgetbandits.theory.constants import (
    bts_constant,
    delta_gaps,
    epsilon_gaps,
    reference_arm,
    ucb_bv1_constant,
    ucb_bv1_constant_quoted,
    ucb_bv2_constant,
)
from budgetbandits.theory.lower import any_law_constant, any_law_distances, distances, lower_constant
from budgetbandits.theory.upper import ArmBound, UpperBound, upper_bound, upper_bounds

__all__ = [
    "ArmBound",
    "UpperBound",
    "any_law_constant",
    "any_law_distances",
    "bts_constant",
    "delta_gaps",
    "distances",
    "epsilon_gaps",
    "lower_constant",
    "reference_arm",
    "ucb_bv1_constant",
    "ucb_bv1_constant_quoted",
    "ucb_bv2_constant",
    "upper_bound",
    "upper_bounds",
]
