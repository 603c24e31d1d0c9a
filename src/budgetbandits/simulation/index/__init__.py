"""Index policies, compiled: the leader in blocks, the others only when they could matter."""

from budgetbandits.simulation.fresh_cache import clear_if_stale

clear_if_stale()  # before anything compiled is imported
