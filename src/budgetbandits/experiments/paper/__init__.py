"""The paper's simulations, reproduced, and a verdict on each of its claims.

Read `findings` first: it runs the two studies and gathers the claims.

calibration    a problem that agrees with the numbers the paper reports
claims         a claim, its comparisons and its verdict
observations   the claims about mean regrets and standard deviations
findings       both studies, the claims about proven bounds, all verdicts
"""
