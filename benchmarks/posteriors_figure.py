"""The figures of benchmarks/posteriors.py: regrets by those of BTS, with their intervals."""

from __future__ import annotations


def draw_priors(*a):
    pass


def draw_correlated(*a):
    pass
