"""Games of ε-first and ε-first-greedy, in a few draws."""
