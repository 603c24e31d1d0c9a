"""What policies are called in figures and tables."""

from __future__ import annotations

NAMES = {"bts": "BTS", "epsilon-first": "ε-first", "pd-bwk": "PD-BwK", "ucb-bv1": "UCB-BV1", "kube": "KUBE"}
"""The policies that the paper simulates, by their specs."""


def label(policy: str) -> str:
    """The paper's name of a policy, or else its spec."""
    return NAMES.get(policy, policy)
