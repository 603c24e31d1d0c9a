"""Policies that make a budget last for so many requests: `bts-paced` and `primal-dual-bwk` with a horizon."""
