"""Index policies, compiled: the leader in blocks, the others only when they could matter.

engine        the Python side: `IndexGames` plays, `how_played` says by which loop
state         the record of a game, and an arm's index read off it
loops         the plain loop and the lazy one: read them first
election      finding the leader, with `groups` of equal arms and `bounds` on their indices
pulls         pulls and tapes of outcomes; `blocks` pulls the leader many times at once, `sweeps` all arms near a tie
rules         a policy's index, compiled; `conformance` finds out whether an engine plays it as written
"""
