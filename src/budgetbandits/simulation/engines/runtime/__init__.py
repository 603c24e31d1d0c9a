"""What the compiled engines share: draws, laws as flat arrays, pointers.

Every engine imports from here, so a stale cache is dropped here, before anything is loaded from it.
"""

from budgetbandits.simulation.engines.runtime.cache import clear_if_stale

clear_if_stale()
