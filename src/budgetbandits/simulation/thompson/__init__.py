"""Thompson sampling, compiled: exact in distribution, without drawing what cannot matter."""

from budgetbandits.simulation.fresh_cache import clear_if_stale

clear_if_stale()  # before anything compiled is imported
