"""Thompson sampling, compiled: exact in distribution, without drawing what cannot matter."""
