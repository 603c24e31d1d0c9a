"""Index policies, compiled: the leader in blocks, the others only when they could matter."""
