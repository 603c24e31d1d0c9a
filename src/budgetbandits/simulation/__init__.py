"""Games of a policy on a problem, by a reference simulator or a compiled engine.

simulate          `simulate`, the entry for one policy on one problem; `many` has `simulate_many`, for a table of them
outcome           the result: arrays, regret, summaries, figures
reference         the specification: any policy, one round at a time. Read this first
dispatch          which compiled engine plays which policy, and why not a faster one; needs Numba
engine_support    which methods an engine stands in for, and errors attributed to a policy
parallel          the workers; `common_outcomes` gives all policies the same outcomes
replay            policies on recorded outcomes
engines           the compiled engines

From outside, use `simulate`, `simulate_many`, `random_problems`, `replay` and `Outcome`; the rest is internal.
"""
