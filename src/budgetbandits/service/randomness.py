"""The randomness of a campaign, which is the same whenever its events are replayed.

Every decision has generators of its own, one for each purpose, seeded by a digest of the decision's id and the purpose.
So no draw depends on what else was decided, on the order in which feedback came, or on the server.
"""

from __future__ import annotations

import hashlib
import os
from typing import Literal, get_args

import numpy as np

Purpose = Literal["choose", "learn", "propensity"]


def new_decision_id() -> str:
    """A new id of 96 random bits: no two of a million million are the same in all but one of 150,000 stores."""
    return os.urandom(12).hex()


class Draws:
    """The generators of one server for one campaign: one object for each purpose, seeded again for each decision."""

    def __init__(self) -> None:
        self._generators = {purpose: np.random.Generator(np.random.PCG64(0)) for purpose in get_args(Purpose)}
        self._ready = dict.fromkeys(self._generators, "")

    def generator(self, decision: str, purpose: Purpose) -> np.random.Generator:
        """The decision's generator, good until the next call for this purpose."""
        if self._ready[purpose] != decision:
            self.prepare(decision, purpose)
        self._ready[purpose] = ""
        return self._generators[purpose]

    def prepare(self, decision: str, purpose: Purpose) -> None:
        """Seed a generator before it is asked for."""
        digest = hashlib.blake2b(f"{purpose}:{decision}".encode(), digest_size=32).digest()
        state, step = int.from_bytes(digest[:16], "little"), int.from_bytes(digest[16:], "little") | 1
        self._generators[purpose].bit_generator.state = {
            "bit_generator": "PCG64", "state": {"state": state, "inc": step}, "has_uint32": 0, "uinteger": 0
        }  # fmt: skip
        self._ready[purpose] = decision
