"""The paper's simulations, and a verdict on each thing it says about them."""
