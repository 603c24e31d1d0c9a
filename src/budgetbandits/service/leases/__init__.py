"""Money lent to a server that decides by itself: `ledger` has its rules, `leases` who takes and returns it."""
