"""Games of ε-first and ε-first-greedy, in a few draws.

`engine` is the Python side, and plays in NumPy what `kernel` does not cover: ε-first-greedy, laws without atoms, tiny
budgets. `kernel` is a compiled game of ε-first on finite laws, with its record.
"""
