"""The engine of policies that make a budget last for a number of requests: `bts-paced`, and `primal-dual-bwk`.

Its plain loops are those of the reference simulator, compiled, with the same draws in the same order. `engine` is the
Python side, `plain_loop` the record of a game and its rounds, `posteriors` what is known of the arms, `selection` the
arm that answers. The formulas are those of `policies.paced` and `numerics.fluid`, compiled, not copies; only the
sums over segments are written twice. Used by `simulation.dispatch` alone.
"""
