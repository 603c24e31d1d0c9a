"""What the steps of a game take, for weighing one way to play it against another.

Nanoseconds measured on one machine; only their proportions matter, and only for speed.
"""

from __future__ import annotations

PRICE_ROUND = 45.0  # an open round before anything is drawn
PRICE_HOT = 45.0  # drawing one hot arm
PRICE_SKETCH = 25.0  # sketching it, when there are two
PRICE_STRETCH = 350.0  # a stretch of rounds of two hot arms that ends with a look
PRICE_WIN = 15.0  # of the arm that wins seldom, in such a stretch
PRICE_POOL = 30.0  # drawing the best of the arms never pulled
PRICE_OPEN_RING = 110.0  # an alarm in an open round
PRICE_BLOCK_RING = 60.0  # an alarm while the leader is pulled in blocks
PRICE_COLD_PULL = 350.0  # a new tangent and alarm after pulling a cold arm
PRICE_FALLBACK_ARM = 14.0
PRICE_FALLBACK_DRAW = 100.0
PRICE_WINDOW = 450.0
PRICE_DIP = 800.0
PRICE_TANGENT = 180.0
