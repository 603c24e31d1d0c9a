"""Beta priors of the means of arms, as users write them: by name, as text, as pairs of numbers.

``0.5/0.5`` is Beta(1/2, 1/2) for every arm, ``2/8+9/1`` is Beta(2, 8) for the first arm and Beta(9, 1) for the second.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from budgetbandits.errors import BadParameter
from budgetbandits.numerics.arrays import Array

Pairs = tuple[tuple[float, float], ...]
"""The parameters (a, b) of a Beta prior: one pair for all arms, or one for each arm in order."""

Prior = str | Sequence[Any]
"""A prior as a user may write it: a name, text, a pair, or a list of pairs."""

UNIFORM: Pairs = ((1.0, 1.0),)
"""Beta(1, 1), of the paper."""

NAMED_PRIORS: dict[str, Pairs] = {"uniform": UNIFORM, "jeffreys": ((0.5, 0.5),)}
"""Priors by the names that a user may write."""

PRIOR_MIN, PRIOR_MAX = 0.1, 1e9
"""The range of a parameter. Below, a draw may be so near to 0 that no float holds it; above, no game could change a
posterior."""


def pairs(prior: Prior, parameter: str) -> Pairs:
    """The prior as pairs; BadParameter if it is none.

    0.5/0.5 is Beta(1/2, 1/2) for every arm. 2/8+9/1 is Beta(2, 8) for the first arm, Beta(9, 1) for the second, and
    uniform for arms that come later.

    >>> pairs("2/8 + 1/1", "prior"), pairs((0.5, 0.5), "prior"), pairs("jeffreys", "prior")
    (((2.0, 8.0), (1.0, 1.0)), ((0.5, 0.5),), ((0.5, 0.5),))
    """
    if isinstance(prior, str) and prior.strip().lower() in NAMED_PRIORS:
        return NAMED_PRIORS[prior.strip().lower()]
    try:
        # the + of an exponent, as in 1e+2, joins nothing
        listed = [p.split("/") for p in re.split(r"(?<![eE])\+", prior)] if isinstance(prior, str) else list(prior)
        if not isinstance(prior, str) and np.ndim(listed[0]) == 0:
            listed = [listed]
        parameters = tuple((float(a), float(b)) for a, b in listed)
    except (TypeError, ValueError, IndexError):
        raise BadParameter(
            f"{parameter} is {prior!r:.40}; write uniform, jeffreys, a/b such as 0.5/0.5, or a/b for each arm, "
            f"joined by +"
        ) from None
    for pair in parameters:
        if not all(PRIOR_MIN <= number <= PRIOR_MAX for number in pair):
            raise BadParameter(f"{parameter} has Beta{pair}; use parameters from {PRIOR_MIN:g} to {PRIOR_MAX:g}")
    return parameters


def spread(prior: Pairs, numbers: range) -> Array:
    """The parameters of the arms with these numbers, as (a or b, arm).

    >>> spread(((2.0, 8.0), (3.0, 1.0)), range(1, 3))
    array([[3., 1.],
           [1., 1.]])
    """
    if len(prior) == 1:
        return np.repeat(np.array(prior).T, len(numbers), axis=1)
    listed = np.ones((2, max(len(prior), numbers.stop)))
    listed[:, : len(prior)] = np.array(prior).T
    return listed[:, numbers.start : numbers.stop]
