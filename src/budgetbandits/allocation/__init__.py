"""A policy driven by a program that spends money: `ask` and `tell`.

Read `allocation` first: `Allocation` is what users see.

learner, choosers      a policy with what it has learned, and exact choices without drawing every arm
propensity             how likely a choice was
asks, holds, money     open asks, what they hold, what is left
cooldowns              arms that rest after failures
segments, units        names and units of the user, and what the policy sees
state, saved, table    what an allocation keeps, as JSON and as a table

The decision service uses everything here but `allocation` and `state`.
"""
