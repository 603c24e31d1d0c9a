"""Shared by all compiled engines.

records            the record of a game, pointers into its arrays, the end of a budget: read this first
laws               a problem's laws as flat arrays, and draws from them
draws              random numbers; `binomials` draws many trials at once, `special` has log-gamma and its relatives
policy_functions   a policy's own index, score or learn, compiled
cache              Numba's disk cache, and the notice that something is compiled

Every engine imports from here, so a stale cache is dropped here, before anything is loaded from it.
"""

from budgetbandits.numerics import numba_extension  # noqa: F401 - before anything that calls a formula is compiled
from budgetbandits.simulation.engines.runtime.cache import clear_if_stale

clear_if_stale()
