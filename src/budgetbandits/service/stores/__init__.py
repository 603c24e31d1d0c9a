"""Where campaigns are kept: the contract in `base`, SQLite for one host, PostgreSQL for many."""
