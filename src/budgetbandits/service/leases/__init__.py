"""Leases: money lent to a server, which decides with it under a row of its own.

`lending` has the rules of the money. `leases` takes, merges and ends leases, and has `LeaseFunds` for decisions made
under one. The rest of the service asks `Leases` for the funds of a decision, and whether its transaction can do
without locking the campaign's row.
"""
