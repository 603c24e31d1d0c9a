"""The decision service: spend a real budget from many workers, durably, and never a cent too much."""
