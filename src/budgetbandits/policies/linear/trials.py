"""Trials of `bts-linear`: whether an arm that another is better than is worth one.

With many features there is always one more thing to find out, and Thompson sampling finds out everything. So an arm
that another is better than by x, by the means of the posteriors at that price, is tried only if that may pay. m
trials would change what is known of its worth by about

    s² = σ² m/(m + m₀),   m₀ = (1 + columns)/h,

where σ² is the variance of that worth and h the leverage zᵀG⁻¹z of the request: without features, m₀ is the number of
outcomes so far. They cost m x, and earn s (φ(x/s) − x/s Φ(−x/s)) for each of the T requests to come that are like
this one, of which a tenth are taken to be. The level of the arm is that of all T requests: with its variance alone, and
m₀ its outcomes, they may pay as well. Neither earns for more requests than the money left pays for with this arm. If
neither pays for any m, the better arm answers. Arms that were never tried are tried, and so are more expensive ones
where money is left over by the draw. Where the better arm costs more than the chosen one, the price is at least that of
the means: by a draw in which nothing expensive is worth its money, it is low.
"""

from __future__ import annotations

import math

from budgetbandits.numerics.regression import LEVEL_WEIGHT
from budgetbandits.policies.linear.fit import Fit
from budgetbandits.policies.linear.program import Program
from budgetbandits.policies.linear.state import REWARD, LinearState

TRIALS = tuple(2.0**power for power in range(12))
"""Numbers of trials that are considered."""

ALIKE = 0.1
"""Assumed share of later requests that resemble this one. Tuned on `examples/data`."""

WIDEST = 4.0
"""The largest variance of the logarithm of a mean cost, where it stands for a relative one."""

SQRT_2, SQRT_2PI = math.sqrt(2.0), math.sqrt(2.0 * math.pi)
"""The roots of 2 and 2π, of the normal law."""


def trial_pays(
    state: LinearState, fit: Fit, program: Program, arm: int, loss: float, paid: float, affordable: float
) -> bool:
    """Whether a trial of an arm may pay.

    loss        by how much its worth is below that of another arm
    paid        the worth of its mean cost
    affordable  how many answers of it the money left pays for
    """
    regressions, row, one = fit.regressions, program.rows[-1], slice(arm, arm + 1)
    count = float(state.counts[arm])
    if count == 0.0:
        return True
    a, b = (float(shape[arm]) for shape in fit.shapes)
    (reward,), (log_cost,) = regressions.variance(row, one).tolist()
    relative = min(b / (a * (a + b + 1.0)), WIDEST)
    level = float(regressions.noise[REWARD, arm]) / (count + LEVEL_WEIGHT) + paid * paid * relative
    local = reward + paid * paid * (relative + min(log_cost, WIDEST))
    leverage = float(regressions.leverage(row, one)[REWARD, 0])
    # of the level, which is that of all requests, and of the worth of requests like this one
    for share, unsure, halved in (
        (1.0, level, count + LEVEL_WEIGHT),
        (ALIKE, local, (1.0 + fit.standard.size) / leverage),
    ):
        for trials in TRIALS:
            learned = math.sqrt(unsure * trials / (trials + halved))
            ratio = loss / learned
            gain = math.exp(-0.5 * ratio * ratio) / SQRT_2PI - 0.5 * ratio * math.erfc(ratio / SQRT_2)
            profiting = min(share * (program.requests - trials), affordable - trials)
            if max(profiting, 0.0) * learned * gain > trials * loss:
                return True
    return False
