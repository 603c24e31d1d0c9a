"""The compiled engines: the games of the reference simulator, faster. Used by `simulation.dispatch` only.

runtime         shared by all: random numbers, laws, records, the cache of compiled code
thompson        Thompson sampling without drawing what cannot matter
index           index policies, in blocks where the index allows it
sampling        policies that score arms by draws
paced           money that must last for a number of requests
epsilon_first   explore, then exploit

In each, `engine` is the Python side; the other modules are compiled. They work on one record, which `state` describes,
or in small engines the module with the loop.
docs/explanation/engine.md proves that the engines are exact.
"""
