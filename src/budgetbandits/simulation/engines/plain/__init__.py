"""The plain loop: every round a game, a choice, an outcome and an update, as in the reference simulator, compiled.

loop               the loop and the fields that it needs: read it first
games              the Python side: one game after another, for any of the rules below
sampling           a score drawn for every arm; `sampling_games` compiles a policy's score and checks it
paced              the best mix for money and requests, of `bts-paced`: the record of a game, draws and learning;
                   `posteriors` is what is known of the arms, `selection` the arm that answers
priced             the best index at prices on money and time, of `primal-dual-bwk`
paced_games        the Python side of these two

A rule gives the loop its functions. The formulas are those of the policies, compiled, not copies; only sums over
segments are written twice. The index policies play by the same loop; their record and their update, which the lazy
engine shares, stand in `engines.index`.
"""
