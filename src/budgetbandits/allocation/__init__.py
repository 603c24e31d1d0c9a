"""A policy driven by a program that spends money: `ask` and `tell`.

Read `allocation` first: `Allocation` is what users see.

learner, choosers     a policy with what it has learned, and exact choices without drawing every arm
propensity            how likely a choice was
session               one step of a request, for an allocation and for the decision service
cooldowns, substitutes  arms that cool down after failures, and which arm answers in their place
asks, money, units    open asks, what is left, and the user's units
state                 what an allocation remembers, as JSON and as a table

The decision service uses everything here but `allocation`, `state`, `asks` and `money`.
"""
