"""Confidence intervals of shares and of means, for tables and statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

LEVEL = 0.95
"""Confidence level of every interval that is shown."""


def wilson(hits: Any, trials: Any, level: float = LEVEL) -> tuple[Any, Any]:
    """Wilson's interval for a share, which holds for few hits, too."""
    z = scipy.special.ndtri(0.5 + level / 2)
    share = hits / trials
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * np.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def half_width(error: Any, count: Any, level: float = LEVEL) -> Any:
    """Half of the interval of a mean, shown after ± everywhere, from its standard error over ``count`` values.

    >>> round(float(half_width(0.5, 11)), 3)
    1.114
    """
    return student_quantile(0.5 + level / 2, np.maximum(count - 1, 1)) * error


def student_quantile(share: float, freedom: Any) -> Any:
    """The quantile of Student's t; `scipy.stats` has it, too, and takes a second and a half to import."""
    return scipy.special.stdtrit(freedom, share)
