"""Any sampling policy with a `score` and a `learn` that can be compiled, all arms drawn in every round.

`engine` is the Python side: it compiles the policy's functions, plays, and checks policies from outside the package.
`plain_loop` is the loop of the reference simulator, compiled, and the record that it works on.
"""
