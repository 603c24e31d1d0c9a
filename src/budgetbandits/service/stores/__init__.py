"""Where campaigns are kept: the contract in `base`, SQLite for one host."""
