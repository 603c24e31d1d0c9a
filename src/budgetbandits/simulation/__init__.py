"""Games of a policy on a problem, by a reference simulator or a compiled engine.

simulate          `simulate`, the entry for one policy on one problem
game_table        `simulate_many`, for many policies on many problems, and one table of all games
outcome           the result: arrays, regret, summaries, figures
reference         the specification: any policy, one round at a time. Read this first
dispatch          which compiled engine plays which policy, and why not a faster one; needs Numba
engine_support    which methods an engine stands in for, and errors attributed to a policy
parallel          the workers; `common_outcomes` gives all policies the same outcomes
replay            policies on recorded outcomes
engines           the compiled engines

From outside, use `simulate`, `simulate_many`, `random_problems`, `replay` and `Outcome`; the rest is internal.
"""
