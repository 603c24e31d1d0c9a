"""Games of a policy on a problem: `simulate.simulate` is the entry, `reference` the specification."""
