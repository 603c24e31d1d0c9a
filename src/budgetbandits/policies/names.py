"""What policies are called in figures, tables and on the terminal."""

from __future__ import annotations

NAMES = {
    "bts": "BTS", "epsilon-first": "ε-first", "pd-bwk": "PD-BwK", "ucb-bv1": "UCB-BV1", "kube": "KUBE",
    "epsilon-first-greedy": "ε-first greedy", "primal-dual-bwk": "PrimalDualBwK", "ucb-bv2": "UCB-BV2",
    "kube-fractional": "fractional KUBE", "kube-knapsack": "knapsack KUBE", "thompson": "Thompson", "ucb1": "UCB1",
    "ucb-v": "UCB-V", "moss": "MOSS", "kl-ucb": "KL-UCB", "bayes-ucb": "Bayes-UCB",
    "bts-gaussian": "Gaussian BTS", "bts-joint": "joint BTS", "bts-paced": "paced BTS",
}  # fmt: skip
"""As their papers write them."""

PAPER = ("bts", "epsilon-first", "pd-bwk", "ucb-bv1", "kube")
"""The policies that the paper simulates: they look the same in every figure."""


def label(policy: str) -> str:
    """The name of a policy from its spec, and its parameters.

    >>> label("epsilon-first"), label("epsilon-first:epsilon=0.05"), label("mine:a=1.0,b=2.0")
    ('ε-first', 'ε-first epsilon=0.05', 'mine a=1 b=2')
    """
    name, _, parameters = policy.partition(":")
    words = [part.removesuffix(".0") for part in parameters.split(",") if part]
    return " ".join([NAMES.get(name, name), *words])
