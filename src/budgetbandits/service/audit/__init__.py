"""Checks stored balances and what was learned against a replay of the events, and exports the events.

`audit` is what users call. `replay` repeats every event, `slices` says which events were committed at one moment,
and `open_decisions` keeps what a replay must remember. A `checkpoint` is where a replay may begin, and `archive` has
what came before it. `export` writes events. `reader` is the program that a server
starts for an audit or an export.
"""
