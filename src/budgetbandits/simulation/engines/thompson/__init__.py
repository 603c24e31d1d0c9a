"""Thompson sampling, compiled: exact in distribution, without drawing what cannot matter.

engine        the Python side: `ThompsonGames` plays; laws and settings of a `Run`
state         the record of a game, and the prices of its steps
rounds        the loop over rounds, and those in which every hot arm is drawn, by `hot_arms`: read it first
level         hot and cold arms and their alarms; `envelope` bounds a ratio, `planning` chooses the level
blocks        rounds of a single hot arm
near_ties     rounds of two hot arms that are nearly tied; `near_tie_chances` has their chances of winning
outcomes      outcomes of decided pulls, money, and the end of a budget
"""
