"""Mathematics that knows neither arms nor money: array types, divergences, posteriors, the fluid program, intervals.

arrays       array types for annotations, and functions that compile
divergence   relative entropies, and how far an arm is from a ratio
posteriors   laws of an arm's means and of their ratio
fluid        the linear program of money and requests, for one set of means or for many draws at once
regression   Bayesian linear regressions of arms that have a part in common
intervals    confidence intervals
stopping     how much evidence ends the trial of an arm
compilation       `compiled`, the mark of a formula that compiled code may call
numba_extension   makes these formulas, `where` and `all_true` known to Numba; imported by Numba alone
"""
