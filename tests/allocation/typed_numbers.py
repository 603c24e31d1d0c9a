"""A user's program with every kind of number that an allocation takes. `make lint` checks its types."""

from decimal import Decimal
from fractions import Fraction

import numpy as np

from budgetbandits import Allocation

spend = Allocation(
    "bts-paced",
    ["search", "mail"],
    budget=Decimal("50.00"),
    cost_max={"search": Fraction(5, 2), "mail": np.float32(2.0)},
    reward_max=np.int64(3),
    history={"mail": (np.int64(20), Decimal("4.5"), np.float64(3.0)), "search": (2.0, 1, 0.5)},
    seed=1,
)
assert spend.can_ask(np.float32(0.5), arms=["mail"])
ask = spend.ask(Decimal("0.75"), holds={"search": np.float32(0.5), "mail": Decimal("0.5")})
spend.tell(ask, reward=np.int64(1), cost=Decimal("0.37"))
spend.tell(spend.ask(prices={"search": Fraction(1, 3), "mail": 1}), reward=True, cost=np.float32(0.5))
spend.tell(spend.ask(), cost=np.array(0.25))
spend.add_arm("social", cost_max=Decimal("1.5"), history=(np.int64(4), Fraction(1, 2), Decimal("1")))
spend.top_up(Decimal("5"))

planned = Allocation(
    "bts-linear", ["search", "mail"], budget=np.float32(9.0), horizon=np.int64(100), features=["length"], seed=1
)
planned.set_horizon(Decimal("120"))
planned.tell(planned.ask(features={"length": np.float32(0.5)}), reward=False, cost=np.float64(0.1))

known = Allocation("kube-fractional", ["search", "mail"], budget=9, costs={"search": Decimal("0.9"), "mail": 1})
floor = Allocation("ucb-bv1", ["search", "mail"], budget=9, cost_floor=Decimal("0.1"))


def refused() -> None:
    """Text is no number; a checker that let it pass would find these comments unused."""
    spend.tell(spend.ask(), cost="0.37")  # type: ignore[arg-type]
    spend.top_up("5")  # type: ignore[arg-type]
