"""The books compared with what their events make of them, and the events written out.

`audit` is what users call, `replay` repeats every event, `event_cut` says which events there were at one moment,
`open_decisions` keeps what a replay must remember, `export` writes events, `reader` is the program that a server starts
for either.
"""
