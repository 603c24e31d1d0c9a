"""Request streams: requests whose arms change with time, by segment, or both. Reads and writes TOML.

A *part* is the problem of some of the requests: those of one segment, from some request on. Parts that begin together
are a *phase*. So drift is a stream of several phases, and a product with several features is a stream of several
segments. Arms are known by their names; an arm that a part does not have cannot answer its requests.

    [[parts]]
    from = 0                # the first request has the number 0
    segment = "code"
    share = 0.4
    [[parts.arms]]          # as in a problem file
    name = "small"
    reward = { law = "bernoulli", mean = 0.3 }
    cost = { law = "fixed", value = 0.1 }
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadParameter, ProblemError
from budgetbandits.numerics.arrays import Array
from budgetbandits.problems.distributions import Copula, Fixed, Independent, JointTable, Lattice, Law, OutcomeLaw
from budgetbandits.problems.linear import LinearStream
from budgetbandits.problems.problem import UNITS, Problem, check_keys, parsed, read_file, recorded_arms
from budgetbandits.problems.records import read_csv
from budgetbandits.validation import FileKey, integer, within

KEYS = {  # keys of a part
    "from": FileKey("whole number", "The number of its first request; the first of all is 0.", "0"),
    "segment": FileKey("text", "The segment whose requests meet it.", "the only one"),
    "share": FileKey("number", "The share of that segment in the requests; those of a phase sum to 1.", "1"),
    "arms": FileKey("list of tables", "Its arms, each under a line [[parts.arms]], as in a problem file."),
    **UNITS,
}
SHARES_ROUNDING = 1e-9
"""Largest difference from 1 of a sum of shares that counts as a floating-point error."""


@dataclass(frozen=True)
class StreamPart:
    """A part of a stream: the problem of the requests of one segment in one phase.

    problem  its arms and their laws
    first    the number of the first request of its phase; the first of all is 0
    segment  the name of its segment
    share    the share of its segment in the requests of its phase
    """

    problem: Problem
    first: int = 0
    segment: str = ""
    share: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.problem, Problem):
            raise ProblemError(f"a part has {self.problem!r:.40} for a problem; give a Problem")
        integer("from", self.first, hint=", the number of a request", error=ProblemError)
        if not isinstance(self.segment, str) or not (self.segment or " ").isprintable():
            raise ProblemError(f"segment is {self.segment!r:.40}; name it by a text such as 'code'")
        within("share", self.share, 0.0, 1.0, above=True, error=ProblemError)


@dataclass(frozen=True, repr=False)
class RequestStream:
    """A request stream: parts in the order of their phases, each phase with the same segments in the same order.

    >>> before, after = Problem.bernoulli([0.2, 0.8], [0.1, 0.5]), Problem.bernoulli([0.2, 0.8], [0.1, 0.25])
    >>> stream = RequestStream.phases([(0, before), (500, after)])
    >>> stream
    RequestStream(2 arms, phases from 0, 500)
    >>> stream.cost_means.tolist()
    [[0.1, 0.5], [0.1, 0.25]]
    """

    parts: tuple[StreamPart, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts or self.parts[0].first != 0:
            raise ProblemError("no part begins at request 0; let the first phase begin there")
        for number, first in enumerate(self.firsts):
            if number and first <= self.firsts[number - 1]:
                raise ProblemError(f"the phases are not in order: {first} comes late; sort the parts by from")
            phase = [part for part in self.parts if part.first == first]
            names = [part.segment for part in phase]
            if len(set(names)) < len(names):
                raise ProblemError(f"two parts from {first} on have the same segment; give each a name of its own")
            if tuple(names) != self.segments:
                raise ProblemError(
                    f"from {first} on the segments are {', '.join(map(repr, names))}, before "
                    f"{', '.join(map(repr, self.segments))}; list the same segments in every phase, in one order"
                )
            total = math.fsum(part.share for part in phase)
            if abs(total - 1.0) > SHARES_ROUNDING:
                raise ProblemError(f"the shares from {first} on sum to {total:g}; let them sum to 1")
        for unit in UNITS:
            if len({getattr(part.problem, unit) for part in self.parts}) > 1:
                raise ProblemError(f"the parts have different {unit}; measure all of them in one unit")

    @classmethod
    def phases(cls, phases: Iterable[tuple[int, Problem]]) -> RequestStream:
        """A stream with one segment whose problem changes at each of these requests."""
        return cls(tuple(StreamPart(problem, first) for first, problem in phases))

    @classmethod
    def of_segments(cls, segments: Mapping[str, tuple[float, Problem]]) -> RequestStream:
        """A stream with one phase, by the share and the problem of each segment."""
        return cls(tuple(StreamPart(problem, 0, name, share) for name, (share, problem) in segments.items()))

    @classmethod
    def from_csv(cls, path: str | Path, columns: Mapping[str, str] | None = None) -> RequestStream:
        """A stream with the segments of a CSV file, whose columns are arm, reward, cost and segment.

        A pull has one of the recorded pairs of reward and cost of its arm and segment, all equally likely; a segment's
        share is its share of the rows.
        """
        records = read_csv(path, columns)
        if records.segment is None:
            raise ProblemError(f"{path}: no column says segment; name it: columns=segment=COLUMN")
        top = float(records.reward.max()) or 1.0, float(records.cost.max()) or 1.0
        parts = []
        for number, name in enumerate(records.segments):
            rows = records.segment == number
            chosen = replace(records, arm=records.arm[rows], reward=records.reward[rows], cost=records.cost[rows])
            problem = Problem(recorded_arms(chosen, top), *top)
            parts.append(StreamPart(problem, 0, name, float(rows.mean())))
        return cls(tuple(parts))

    # --- what it is ----------------------------------------------------------------------------------------------

    @cached_property
    def firsts(self) -> tuple[int, ...]:
        """The number of the first request of each phase."""
        return tuple(dict.fromkeys(int(part.first) for part in self.parts))

    @cached_property
    def segments(self) -> tuple[str, ...]:
        """The names of the segments, in order."""
        return tuple(part.segment for part in self.parts if part.first == self.parts[0].first)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All arms, in the order in which the parts name them."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.problem.names))

    def __len__(self) -> int:
        """How many arms there are."""
        return len(self.names)

    def __repr__(self) -> str:
        facts = [f"{len(self)} arms"]
        if len(self.firsts) > 1:
            facts.append(f"phases from {', '.join(map(str, self.firsts))}")
        if len(self.segments) > 1:
            facts.append(f"segments {', '.join(self.segments)}")
        return f"RequestStream({', '.join(facts)})"

    @cached_property
    def available_arms(self) -> NDArray[np.bool_]:
        """Which arms each part has, as (part, arm)."""
        return np.array([[name in part.problem.names for name in self.names] for part in self.parts])

    @cached_property
    def future_arms(self) -> NDArray[np.bool_]:
        """Which arms any segment of each part's phase has, as (part, arm): those that later requests may have."""
        phases = self.available_arms.reshape(len(self.firsts), len(self.segments), len(self))
        return np.repeat(phases.any(axis=1), len(self.segments), axis=0)

    @cached_property
    def reward_means(self) -> Array:
        """The mean rewards as (part, arm); 0 for an arm that a part does not have."""
        return self._by_part(lambda problem: problem.reward_means)

    @cached_property
    def cost_means(self) -> Array:
        """The mean costs as (part, arm); 0 for an arm that a part does not have."""
        return self._by_part(lambda problem: problem.cost_means)

    @cached_property
    def scales(self) -> Array | None:
        """The largest cost of each arm in any part, or None unless players know it for every arm."""
        if any(part.problem.scales is None for part in self.parts):
            return None
        return np.asarray(self._by_part(lambda problem: np.asarray(problem.scales)).max(axis=0))

    def _by_part(self, means: Callable[[Problem], Array]) -> Array:
        table = np.zeros((len(self.parts), len(self)))
        for row, part in zip(table, self.parts, strict=True):
            row[[self.names.index(name) for name in part.problem.names]] = means(part.problem)
        return table

    def requests(self, horizon: int) -> Array:
        """How many of ``horizon`` requests each part has on average."""
        ends = [*self.firsts[1:], math.inf]
        length = {first: max(0.0, min(end, horizon) - first) for first, end in zip(self.firsts, ends, strict=True)}
        return np.array([length[part.first] * part.share for part in self.parts])

    def sequence(self, horizon: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """The part of each of ``horizon`` requests, by number; the segments come in random order."""
        parts, width = np.zeros(horizon, dtype=np.int64), len(self.segments)
        for phase, first in enumerate(self.firsts):
            parts[first:] = phase * width
            if width > 1 and first < horizon:
                shares = np.cumsum([part.share for part in self.parts[phase * width : (phase + 1) * width]])[:-1]
                parts[first:] += np.searchsorted(shares, rng.random(horizon - first), side="right")
        return parts

    @cached_property
    def identity(self) -> int:
        """A number that depends on the content alone, to derive seeds from."""
        return int.from_bytes(hashlib.blake2b(self.content.encode(), digest_size=8).digest(), "little")

    @cached_property
    def content(self) -> str:
        """The stream as text: its TOML, with a fingerprint in the place of a custom law."""
        return "".join(_heading(part) + part.problem.content for part in self.parts)

    @property
    def writable(self) -> bool:
        """Whether `to_toml` can write it: every law is one of the package's."""
        return all(part.problem.writable for part in self.parts)

    # --- files ---------------------------------------------------------------------------------------------------

    def to_toml(self) -> str:
        """The stream as TOML; reading it back gives an equal one. Only the package's own laws can be written."""
        lines = [line for part in self.parts for line in (_heading(part) + part.problem.to_toml()).splitlines()]
        return "".join(("[[parts.arms]]" if line == "[[arms]]" else line) + "\n" for line in lines)

    @classmethod
    def from_toml(cls, text: str) -> RequestStream:
        """Read a stream; a `ProblemError` names the part, what is wrong with it and the remedy."""
        return cls.from_document(parsed(text))

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> RequestStream:
        """Read a stream from a parsed TOML document; see `from_toml`."""
        entries = document.get("parts")
        if set(document) != {"parts"} or not isinstance(entries, list):
            raise ProblemError("a request stream holds nothing but [[parts]]; write each part under such a line")
        parts = []
        for number, entry in enumerate(entries, start=1):
            try:
                parts.append(_parse_part(entry))
            except ProblemError as error:
                raise ProblemError(f"part {number}: {error}") from None
        return cls(tuple(parts))

    @classmethod
    def load(cls, path: str | Path) -> RequestStream:
        """Read a stream from a TOML file."""
        return read_file(path, cls.from_toml)


def from_toml(text: str) -> Environment:
    """A problem or a stream of either kind from its TOML."""
    document = parsed(text)
    if "features" in document:
        return LinearStream.from_document(document)
    return RequestStream.from_document(document) if "parts" in document else Problem.from_document(document)


def load(path: str | Path) -> Environment:
    """Read a TOML file that holds a problem or a stream."""
    return read_file(path, from_toml)


def _heading(part: StreamPart) -> str:
    segment = f"segment = {json.dumps(part.segment, ensure_ascii=False)}\n" if part.segment else ""
    share = f"share = {part.share!r}\n" if part.share != 1.0 else ""
    return f"[[parts]]\nfrom = {part.first}\n{segment}{share}"


def _parse_part(entry: Any) -> StreamPart:
    if not isinstance(entry, dict):
        raise ProblemError("it is no table; write it under a line [[parts]]")
    check_keys(entry, KEYS, "a part")
    problem = Problem.from_document({key: entry[key] for key in ("arms", *UNITS) if key in entry})
    return StreamPart(problem, entry.get("from", 0), entry.get("segment", ""), entry.get("share", 1.0))


Environment = Problem | RequestStream | LinearStream
"""Anything that a policy may be played on: a problem or a stream."""


# --- drift: a problem before and after a change -----------------------------------------------------


def scaled(problem: Problem, arm: str, *, reward: float = 1.0, cost: float = 1.0) -> Problem:
    """The problem with all rewards and costs of one arm multiplied by factors, as after a change of its price."""
    for what, factor in (("reward", reward), ("cost", cost)):
        within(what, factor, 0.0, 1.0, hint=", so that outcomes stay in [0, 1]")
    _check_arm(problem, arm)
    arms = [
        replace(member, law=_times(member.law, reward, cost)) if member.name == arm else member
        for member in problem.arms
    ]
    return replace(problem, arms=tuple(arms))


def without(problem: Problem, arm: str) -> Problem:
    """The problem without this arm."""
    _check_arm(problem, arm)
    return replace(problem, arms=tuple(member for member in problem.arms if member.name != arm))


def _check_arm(problem: Problem, arm: str) -> None:
    if arm not in problem.names:
        raise BadParameter(f"no arm {arm!r}; the arms are {', '.join(problem.names)}")


def _times(law: OutcomeLaw, reward: float, cost: float) -> OutcomeLaw:
    if isinstance(law, JointTable):
        return JointTable([[r * reward, c * cost, weight] for r, c, weight in law.outcomes])
    if isinstance(law, Independent | Copula):
        return replace(law, reward=_marginal(law.reward, reward), cost=_marginal(law.cost, cost))
    raise BadParameter(f"a {law.kind} law cannot be multiplied; write the phases out, each with its own laws")


def _marginal(law: Law, factor: float) -> Law:
    if factor == 1.0:
        return law
    if isinstance(law, Fixed):
        return Fixed(law.value * factor)
    atoms = law.atoms()
    if atoms is None:
        raise BadParameter(f"a {law.kind} law cannot be multiplied; write the phases out, each with its own laws")
    return Lattice((atoms[0] * factor).tolist(), atoms[1].tolist())


def _most_rewarding(problem: Problem) -> str:
    return problem.names[int(problem.reward_means.argmax())]


def price_cut(problem: Problem, request: int) -> RequestStream:
    """The arm with the highest mean reward costs half from this request on."""
    return RequestStream.phases([(0, problem), (request, scaled(problem, _most_rewarding(problem), cost=0.5))])


def quality_drop(problem: Problem, request: int) -> RequestStream:
    """The arm with the highest mean reward pays half from this request on."""
    return RequestStream.phases([(0, problem), (request, scaled(problem, _most_rewarding(problem), reward=0.5))])


def new_arm(problem: Problem, request: int) -> RequestStream:
    """The arm with the highest mean reward is added at this request."""
    return RequestStream.phases([(0, without(problem, _most_rewarding(problem))), (request, problem)])


DRIFTS: dict[str, Callable[[Problem, int], RequestStream]] = {
    "price-cut": price_cut,
    "quality-drop": quality_drop,
    "new-arm": new_arm,
}
"""Changes of a problem at some request, by name."""


def drifting(problem: Problem, drift: str, request: int) -> RequestStream:
    """A stream of two phases: the problem before and after a change at a request.

    >>> drifting(Problem.bernoulli([0.2, 0.5, 0.8], [0.1, 0.3, 0.5]), "new-arm", request=100).available_arms.tolist()
    [[True, True, False], [True, True, True]]
    """
    if drift not in DRIFTS:
        raise BadParameter(f"unknown drift {drift!r}; choose one of {', '.join(DRIFTS)}")
    return DRIFTS[drift](problem, request)
