"""The compiled engines: the games of the reference simulator, faster. Used by `simulation.dispatch` only.

runtime         shared by all: random numbers, laws, records, the cache of compiled code
thompson        Thompson sampling without drawing what cannot matter
index           index policies, in blocks where the index allows it
plain           a choice, an outcome and an update in every round: scores that are drawn, money that must last for a
                number of requests, and any index
epsilon_first   explore, then exploit

In each, `engine` or `games` is the Python side; the other modules are compiled. They work on one record, a class with
an annotated line for each field.
docs/explanation/engine.md proves that the engines are exact.
"""
