"""Segments by name: the kinds of requests that a policy learns of apart, numbered in the order in which they came."""

from __future__ import annotations

from collections.abc import Iterable

from budgetbandits.allocation.learner import Learner
from budgetbandits.errors import BadParameter
from budgetbandits.numerics.arrays import Array
from budgetbandits.policies.base import NO_REQUEST_INFO, Request


class Segments(dict[str | None, int]):
    """The numbers of the segments that requests have named. Requests that name none are a segment too, once others
    name one."""

    def __init__(self, names: Iterable[str | None] = ()) -> None:
        super().__init__((name, number) for number, name in enumerate(names))

    def request(
        self, learner: Learner, name: str | None, prices: Array | None = None, *, asked: bool = False
    ) -> Request:
        """A request as the policy sees it; a segment that is new is opened. ``prices`` are in the policy's units.

        ``asked``: whether there are requests whose outcomes are still to come, and whose segments are known by number.
        """
        if name is None and prices is None and not self:
            return NO_REQUEST_INFO
        if name is not None and (not isinstance(name, str) or not name):
            raise BadParameter(f"segment is {name!r:.40}; name it by a text such as 'code'")
        policy, state = learner.by_request, learner.state
        if not self and name is not None and (asked or state.pulls.any()):
            self[None] = 0  # what was asked or learned before any segment was named is of no named one
        if name not in self:
            number = len(self)
            while policy.segments(state) <= number:
                policy.open_segment(state)
            self[name] = number
        return Request(self[name], prices)
