"""Any sampling policy with a `score` and a `learn` that can be compiled, all arms drawn in every round."""
