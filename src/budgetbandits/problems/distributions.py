"""The laws of rewards and costs: what one arm hides.

A `Law` is the distribution of one number in [0, 1], an `OutcomeLaw` the joint one of a pull's reward and cost.
Every law knows its mean exactly, samples from a generator that is passed in, and reads and writes a table of
plain values (the inline tables of a problem file).
"""

from __future__ import annotations

import functools
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import scipy

from budgetbandits import validation
from budgetbandits.errors import ProblemError
from budgetbandits.numerics.arrays import Array
from budgetbandits.registry import Registry


def number(value: Any, name: str, low: float = 0.0, high: float = 1.0) -> float:
    """``value`` as a float in [low, high], or a `ProblemError` that names it."""
    result = validation.number(value)
    if math.isnan(result):
        raise ProblemError(f"{name} is {value!r:.40}, not a number; write a number in [{low:g}, {high:g}]")
    if not low <= result <= min(high, 1e100):
        raise ProblemError(f"{name} is {value!r:.40}, outside [{low:g}, {high:g}]; rescale it into that range")
    return result


def normalised(weights: Sequence[Any], atoms: int) -> tuple[float, ...]:
    """Weights of a finite law as probabilities; any positive total will do."""
    if isinstance(weights, str) or not isinstance(weights, Sequence):
        raise ProblemError(f"weights is {weights!r}; write a list with one weight for each of the {atoms} values")
    if len(weights) != atoms:
        raise ProblemError(f"{len(weights)} weights for {atoms} values; give each value one weight")
    numbers = [number(w, f"weight {i + 1}", 0.0, 1e100) for i, w in enumerate(weights)]
    total = math.fsum(numbers)
    if total <= 0.0:
        raise ProblemError(f"the weights sum to {total:g}; make at least one of them positive")
    if abs(total - 1.0) <= 1e-12:  # probabilities already: left alone, so that writing and reading changes no bit
        return tuple(numbers)
    return tuple(w / total for w in numbers)


# --- one number --------------------------------------------------------------------------------------------------


class Law(ABC):
    """The distribution of one number in [0, 1]."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def expectation(self) -> float:
        """The mean, exactly."""

    @abstractmethod
    def quantile(self, level: Array) -> Array:
        """The smallest value whose cumulative probability reaches ``level``."""

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Draw ``size`` independent values."""
        return self.quantile(rng.random(size))

    def atoms(self) -> tuple[Array, Array] | None:
        """The values and their probabilities where there are finitely many, else None."""
        return None

    def to_table(self) -> dict[str, Any]:
        """This law as a table of a problem file."""
        return {"law": self.kind} | {field.name: _plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True)
class Bernoulli(Law):
    """The law of 0 and 1 in which 1 has the probability ``mean``.

    >>> Bernoulli(0.31).expectation
    0.31
    """

    mean: float
    kind: ClassVar[str] = "bernoulli"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", number(self.mean, "mean"))

    @property
    def expectation(self) -> float:
        return self.mean

    def quantile(self, level: Array) -> Array:
        return np.asarray(level > 1.0 - self.mean, dtype=float)

    def atoms(self) -> tuple[Array, Array]:
        return np.array([0.0, 1.0]), np.array([1.0 - self.mean, self.mean])


@dataclass(frozen=True)
class Lattice(Law):
    """A law of finitely many values with weights, such as the paper's multinomial.

    >>> Lattice([0, 0.25, 0.5, 0.75, 1], [1, 2, 1, 0, 1]).expectation
    0.4
    """

    support: Sequence[float]
    weights: Sequence[float]
    kind: ClassVar[str] = "lattice"

    def __post_init__(self) -> None:
        if isinstance(self.support, str) or not isinstance(self.support, Sequence) or not self.support:
            raise ProblemError(f"support is {self.support!r}; write a list of values in [0, 1]")
        values = [number(v, f"support value {i + 1}") for i, v in enumerate(self.support)]
        if len(set(values)) < len(values):
            raise ProblemError("the support holds a value twice; merge the two and add their weights")
        pairs = sorted(zip(values, normalised(self.weights, len(values)), strict=True))
        object.__setattr__(self, "support", tuple(value for value, _ in pairs))
        object.__setattr__(self, "weights", tuple(weight for _, weight in pairs))

    @property
    def expectation(self) -> float:
        return math.fsum(v * w for v, w in zip(self.support, self.weights, strict=True))

    def quantile(self, level: Array) -> Array:
        cumulative = np.cumsum(self.weights)[:-1]  # the last value takes whatever rounding leaves
        return np.asarray(self.support)[np.searchsorted(cumulative, level, side="left")]

    def atoms(self) -> tuple[Array, Array]:
        return np.array(self.support), np.array(self.weights)


@dataclass(frozen=True)
class Beta(Law):
    """The Beta(a, b) law.

    >>> Beta(2, 6).expectation
    0.25
    """

    a: float
    b: float
    kind: ClassVar[str] = "beta"

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            value = number(getattr(self, name), name, 0.0, math.inf)
            if not 0.0 < value < math.inf:
                raise ProblemError(f"{name} is {value:g}; a beta law needs positive, finite a and b")
            object.__setattr__(self, name, value)

    @property
    def expectation(self) -> float:
        return self.a / (self.a + self.b)

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        return rng.beta(self.a, self.b, size)

    def quantile(self, level: Array) -> Array:
        return np.asarray(scipy.special.betaincinv(self.a, self.b, level))


@dataclass(frozen=True)
class Fixed(Law):
    """The law of a constant.

    >>> Fixed(0.7).expectation
    0.7
    """

    value: float
    kind: ClassVar[str] = "fixed"

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", number(self.value, "value"))

    @property
    def expectation(self) -> float:
        return self.value

    def quantile(self, level: Array) -> Array:
        return np.full(np.shape(level), self.value)

    def atoms(self) -> tuple[Array, Array]:
        return np.array([self.value]), np.array([1.0])


# --- one pull: a reward and a cost -------------------------------------------------------------------------------


class OutcomeLaw(ABC):
    """The joint distribution of the reward and the cost of one pull."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def reward_mean(self) -> float:
        """The expected reward, exactly."""

    @property
    @abstractmethod
    def cost_mean(self) -> float:
        """The expected cost, exactly."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int) -> tuple[Array, Array]:
        """Draw the rewards and the costs of ``size`` independent pulls."""

    @abstractmethod
    def cost_atoms(self) -> tuple[Array, Array, Array] | None:
        """Each possible cost, its probability and the expected reward given it; None if costs are continuous."""


@dataclass(frozen=True)
class Independent(OutcomeLaw):
    """The law of a reward and a cost that are independent, as the paper assumes."""

    reward: Law
    cost: Law
    kind: ClassVar[str] = "independent"

    @property
    def reward_mean(self) -> float:
        return self.reward.expectation

    @property
    def cost_mean(self) -> float:
        return self.cost.expectation

    def sample(self, rng: np.random.Generator, size: int) -> tuple[Array, Array]:
        return self.reward.sample(rng, size), self.cost.sample(rng, size)

    def cost_atoms(self) -> tuple[Array, Array, Array] | None:
        atoms = self.cost.atoms()
        return None if atoms is None else (*atoms, np.full(len(atoms[0]), self.reward_mean))


@dataclass(frozen=True)
class JointTable(OutcomeLaw):
    """A finite joint law: rows of (reward, cost, weight).

    >>> JointTable([[1, 1, 3], [0, 0.5, 1]]).cost_mean
    0.875
    """

    outcomes: Sequence[Sequence[float]]
    kind: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        rows = self.outcomes
        if isinstance(rows, str) or not isinstance(rows, Sequence) or not rows:
            raise ProblemError(f"outcomes is {rows!r}; write a list of [reward, cost, weight] rows")
        for i, row in enumerate(rows):
            if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != 3:
                raise ProblemError(f"outcome {i + 1} is {row!r}; write it as [reward, cost, weight]")
        weights = normalised([row[2] for row in rows], len(rows))
        clean = tuple(
            (number(r, f"reward of outcome {i + 1}"), number(c, f"cost of outcome {i + 1}"), weights[i])
            for i, (r, c, _) in enumerate(rows)
        )
        object.__setattr__(self, "outcomes", clean)

    @property
    def reward_mean(self) -> float:
        return math.fsum(r * w for r, _, w in self.outcomes)

    @property
    def cost_mean(self) -> float:
        return math.fsum(c * w for _, c, w in self.outcomes)

    def sample(self, rng: np.random.Generator, size: int) -> tuple[Array, Array]:
        rewards, costs, weights = np.array(self.outcomes).T
        rows = np.searchsorted(np.cumsum(weights)[:-1], rng.random(size), side="right")
        return rewards[rows], costs[rows]

    def cost_atoms(self) -> tuple[Array, Array, Array]:
        rewards, costs, weights = np.array(self.outcomes).T
        levels, where = np.unique(costs, return_inverse=True)
        probability = np.bincount(where, weights).astype(float)
        reward = np.bincount(where, weights * rewards)
        return levels, probability, np.divide(reward, probability, out=np.zeros_like(reward), where=probability > 0)


@dataclass(frozen=True)
class Copula(OutcomeLaw):
    """Two marginals joined by a Gaussian copula: ``correlation`` is the correlation of the two underlying normals.

    >>> Copula(Bernoulli(0.5), Beta(2, 2), correlation=0.8).cost_mean
    0.5
    """

    reward: Law
    cost: Law
    correlation: float
    kind: ClassVar[str] = "copula"

    def __post_init__(self) -> None:
        object.__setattr__(self, "correlation", number(self.correlation, "correlation", -1.0, 1.0))

    @property
    def reward_mean(self) -> float:
        return self.reward.expectation

    @property
    def cost_mean(self) -> float:
        return self.cost.expectation

    def sample(self, rng: np.random.Generator, size: int) -> tuple[Array, Array]:
        cost_score = rng.standard_normal(size)
        own = rng.standard_normal(size) * math.sqrt(1.0 - self.correlation**2)
        reward_score = self.correlation * cost_score + own
        reward_level, cost_level = scipy.special.ndtr(reward_score), scipy.special.ndtr(cost_score)
        return self.reward.quantile(reward_level), self.cost.quantile(cost_level)

    def cost_atoms(self) -> tuple[Array, Array, Array] | None:
        atoms = self.cost.atoms()
        if atoms is None:
            return None
        levels, probability = atoms
        upper = np.minimum(np.cumsum(probability), 1.0)
        upper[-1] = 1.0
        lower = np.concatenate([[0.0], upper[:-1]])
        reward = np.array([self._reward_within(a, b) for a, b in zip(lower, upper, strict=True)])
        return levels, probability, reward

    def _reward_within(self, lower: float, upper: float) -> float:
        """E[reward | the cost's normal score lies between two of its quantiles], by quadrature."""
        if upper <= lower:
            return 0.0
        spread = math.sqrt(1.0 - self.correlation**2)
        nodes, weights = _legendre()
        atoms = self.reward.atoms()
        if atoms is None:
            cost_score = scipy.special.ndtri(lower + (upper - lower) * (nodes + 1.0) / 2.0)
            scores, score_weights = _hermite()
            levels = scipy.special.ndtr(self.correlation * cost_score[:, None] + spread * scores)
            expected = self.reward.quantile(levels) @ (score_weights / score_weights.sum())
            return float(expected @ weights / 2.0)
        cuts = scipy.special.ndtri(np.minimum(np.cumsum(atoms[1]), 1.0)[:-1])
        # the expected reward changes fastest where the cost's score makes a cut even: the pieces meet there
        middles = scipy.special.ndtr(cuts / self.correlation) if self.correlation else np.zeros(0)
        edges = np.unique(np.concatenate([[lower, upper], middles[(middles > lower) & (middles < upper)]]))
        total = 0.0
        for start, stop in itertools.pairwise(edges):
            cost_score = scipy.special.ndtri(start + (stop - start) * (nodes + 1.0) / 2.0)
            with np.errstate(divide="ignore", invalid="ignore"):  # spread 0: the score alone decides, by ±inf
                reached = scipy.special.ndtr((cuts - self.correlation * cost_score[:, None]) / spread)
            steps = np.diff(np.hstack([np.zeros((len(nodes), 1)), reached, np.ones((len(nodes), 1))]))
            total += float(weights @ (steps @ atoms[0])) / 2.0 * (stop - start)
        return total / (upper - lower)


@functools.cache
def _legendre() -> tuple[Array, Array]:
    return np.polynomial.legendre.leggauss(60)


@functools.cache
def _hermite() -> tuple[Array, Array]:
    return np.polynomial.hermite_e.hermegauss(60)


# --- reading -----------------------------------------------------------------------------------------------------

LAWS: dict[str, type[Law]] = {law.kind: law for law in (Bernoulli, Lattice, Beta, Fixed)}
"""The laws of the package, by kind."""

KNOWN_LAWS: Registry[type[Law]] = Registry("law", LAWS, "budgetbandits.laws")
"""The laws of the package and those from outside it."""

JOINT_LAWS: dict[str, type[JointTable] | type[Copula]] = {"table": JointTable, "copula": Copula}
"""The joint laws of a reward and a cost, by kind."""


def parse_law(table: Any) -> Law:
    """A law from its table, such as ``{"law": "bernoulli", "mean": 0.31}``."""
    kind, values = _checked_table(table, KNOWN_LAWS)
    return KNOWN_LAWS[kind](**values)


def parse_joint(table: Any) -> OutcomeLaw:
    """A joint law from its table, such as ``{"law": "table", "outcomes": [[1, 1, 0.5], [0, 0, 0.5]]}``."""
    kind, values = _checked_table(table, JOINT_LAWS)
    for marginal in ("reward", "cost"):
        if marginal in values:
            try:
                values[marginal] = parse_law(values[marginal])
            except ProblemError as error:
                raise ProblemError(f"{marginal}: {error}") from None
    return JOINT_LAWS[kind](**values)


def joint_table(law: OutcomeLaw) -> dict[str, Any]:
    """A joint law as a table of a problem file."""
    if isinstance(law, JointTable):
        return {"law": law.kind, "outcomes": [list(row) for row in law.outcomes]}
    if isinstance(law, Copula):
        marginals = {"reward": law.reward.to_table(), "cost": law.cost.to_table()}
        return {"law": law.kind, **marginals, "correlation": law.correlation}
    raise ProblemError(f"a law of type {type(law).__name__} cannot be written as TOML; use one of the package's own")


def _checked_table(table: Any, kinds: Mapping[str, type]) -> tuple[str, dict[str, Any]]:
    names = ", ".join(kinds)
    if not isinstance(table, Mapping):
        raise ProblemError(
            f"{table!r:.40} is not a law; write a table such as {{ law = ..., ... }} with one of {names}"
        )
    if not isinstance(table.get("law"), str) or table["law"] not in kinds:
        raise ProblemError(f"unknown law {table.get('law')!r:.40}; choose one of {names}")
    kind = str(table["law"])
    values = {key: value for key, value in table.items() if key != "law"}
    wanted = [field.name for field in fields(kinds[kind])]
    for key in values:
        if key not in wanted:
            raise ProblemError(f"unknown key {key!r}; a {kind} law takes {', '.join(wanted)}")
    for key in wanted:
        if key not in values:
            raise ProblemError(f"{key} is missing; a {kind} law takes {', '.join(wanted)}")
    return kind, values


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


# --- laws from outside the package -----------------------------------------------------------------------------------
#
# The package's laws lie in [0, 1] by construction. Any other law is checked by a few draws when an arm is made of it,
# and its outcomes are checked wherever it is drawn from.

TRIAL_DRAWS = 256
"""Number of outcomes that are drawn to check a law from outside the package."""

TRIAL_LEVELS = np.concatenate([[0.0, 2.0**-53], np.linspace(0.001, 0.999, 99), [1.0 - 2.0**-53]])
"""Levels at which the quantiles of a law are checked; the first and the last are the ends of what can be drawn."""


def is_standard(law: Law | OutcomeLaw) -> bool:
    """Whether the law, and each law it is made of, belongs to the package."""
    if type(law) in (Independent, Copula):
        return is_standard(law.reward) and is_standard(law.cost)  # type: ignore[union-attr]
    return type(law) is JointTable or type(law) in LAWS.values()


def check_law(arm: str, law: OutcomeLaw) -> None:
    """Raise a `ProblemError` if the law is seen to leave [0, 1]; rare values are caught when they are drawn."""
    _check_inside(arm, "mean reward", np.array([law.reward_mean]))
    _check_inside(arm, "mean cost", np.array([law.cost_mean]))
    marginals = {"reward": law.reward, "cost": law.cost} if isinstance(law, Independent | Copula) else {}
    for quantity, marginal in marginals.items():
        _check_inside(arm, quantity, marginal.quantile(TRIAL_LEVELS))
        if (atoms := marginal.atoms()) is not None:
            _check_inside(arm, quantity, atoms[0])
    if (costs := law.cost_atoms()) is not None:
        _check_inside(arm, "cost", costs[0])
        _check_inside(arm, "expected reward at a cost", costs[2])
    checked_sample(arm, law, np.random.default_rng(0), TRIAL_DRAWS)


def checked_sample(arm: str, law: OutcomeLaw, rng: np.random.Generator, size: int) -> tuple[Array, Array]:
    """``size`` rewards and costs, each of which is checked to lie in [0, 1]."""
    rewards, costs = law.sample(rng, size)
    for quantity, values in (("reward", rewards), ("cost", costs)):
        if np.shape(values) != (size,):
            raise ProblemError(
                f"arm {arm!r}: {size} draws gave an array of {quantity}s of shape {np.shape(values)}; "
                f"return one {quantity} for each draw"
            )
        _check_inside(arm, quantity, values)
    return rewards, costs


def _check_inside(arm: str, quantity: str, values: Array) -> None:
    values = np.asarray(values, dtype=float)
    outside = values[~((values >= 0.0) & (values <= 1.0))]  # also what is no number
    if len(outside):
        worst = outside[np.abs(outside - 0.5).argmax()]
        raise ProblemError(f"arm {arm!r}: a {quantity} is {worst:g}, outside [0, 1]; rescale the law into that range")
