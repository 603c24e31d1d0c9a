"""The evidence against an arm at which its trial ends, when the money left could pay for N pulls in all.

`theory.stopping` solves the problem; this is its solution as a polynomial, made of NumPy's functions, so that it serves
arrays and can be compiled for single arms. It is right to 1e-5 for n/N from 1e-16 to 1, and constant below that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from budgetbandits.numerics.compilation import compiled

SMALLEST_SHARE, WIDTH = 1e-16, 6.069708517540586
"""Smallest share n/N, and √(ln N/n) at that share."""

COEFFICIENTS = (
    2.16014758, -0.605433604, -11.4097153, 3.91591925, 25.9519789, -11.1936016, -32.8794809,
    18.5540814, 24.4129486, -19.5217878, -8.98078706, 13.0699895, -1.15322648, -4.70977785,
    3.1305615, -0.639544972, -0.377409667, 4.87997731, 3.53364215,
)  # fmt: skip
"""Coefficients of c, highest power first, as a polynomial in 2w/`WIDTH` − 1 with w = √(ln N/n). The boundary is
c √(1 − n/N) standard errors."""


@compiled
def allowed_evidence(share: Any) -> Any:
    """The log-likelihood ratio h²/2 at which the trial ends, after the ``share`` n/N of its pulls.

    >>> round(float(allowed_evidence(0.5)), 4), float(allowed_evidence(1.0))  # 0.57706²/2
    (0.1665, 0.0)
    """
    inside = np.minimum(np.maximum(share, SMALLEST_SHARE), 1.0)
    place = 2.0 * np.sqrt(-np.log(inside)) / WIDTH - 1.0
    scale = 0.0
    for coefficient in COEFFICIENTS:
        scale = scale * place + coefficient
    return 0.5 * scale * scale * (1.0 - inside)
