"""Streams of requests with features, whose truth is linear. Reads and writes TOML.

The features x of a request are drawn independently of one another and of other requests, each by its law. For such a
request an arm has

    the mean reward   level + slopes · x,         clipped to [0, 1],
    the mean cost     level × exp(slopes · x),    clipped to (0, 1].

Outcomes have Beta laws with these means. The standard deviation of a reward is ``reward_spread`` times that of a
Bernoulli law: at 1 rewards are 0 or 1, at 0 they are their means. The standard deviation of a cost is ``cost_spread``
times its mean, or less where the mean is so near to 1 that this does not fit into [0, 1].

    reward_spread = 1.0
    cost_spread = 0.5

    [[features]]
    name = "log_length"
    law = "normal"          # with mean and spread; or "bernoulli", with mean
    mean = 5.0
    spread = 1.0

    [[arms]]
    name = "small"
    reward = { level = 0.8, slopes = { log_length = -0.06 } }      # a slope that is left out is 0
    cost = { level = 0.01, slopes = { log_length = 0.4 } }
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy

from budgetbandits.errors import ProblemError
from budgetbandits.formatting.numbers import count
from budgetbandits.numerics.arrays import Array
from budgetbandits.problems.problem import SMALLEST_COST, check_distinct, check_keys, check_name, parsed, read_file
from budgetbandits.validation import FileKey, within

SPREADS = {  # keys of a stream for the spreads of outcomes
    "reward_spread": FileKey("number", "1 for rewards of 0 or 1, less for Beta laws, 0 for their means.", "1"),
    "cost_spread": FileKey("number", "The standard deviation of a cost, as a share of its mean.", "0.5"),
}
KEYS = {  # keys of a stream
    "features": FileKey("list of tables", "The features, each under a line [[features]]."),
    "arms": FileKey("list of tables", "The arms, each under a line [[arms]]; at least two."),
    **SPREADS,
}
FEATURE_KEYS = {  # keys of a feature
    "name": FileKey("text", "Its name."),
    "law": FileKey("text", "How it is drawn: normal, or bernoulli for 0 and 1."),
    "mean": FileKey("number", "Its mean.", "0 for normal, 0.5 for bernoulli"),
    "spread": FileKey("number", "Its standard deviation, if it is normal.", "1"),
}
ARM_KEYS = {  # keys of an arm
    "name": FileKey("text", "Its name."),
    "reward": FileKey("line", "Its mean reward: level + slopes · features, clipped to [0, 1]."),
    "cost": FileKey("line", "Its mean cost: level × exp(slopes · features), clipped to (0, 1]."),
}
LINE_KEYS = {  # keys of a mean that is linear in the features
    "level": FileKey("number", "The value where all features are 0."),
    "slopes": FileKey("table", "A number for each feature by name; one that is left out is 0.", "all 0"),
}

LARGEST = 1e9
"""Largest absolute value of levels, slopes, and the means and spreads of features."""

COST_VARIANCE_MAX = 0.5
"""The largest variance of a cost, in units of that of a Bernoulli law with its mean."""

TYPICAL_REQUESTS = 32_768
"""Size of the sample of requests that represents all: see `LinearStream.typical_rows`."""

BATCH = 256
"""Number of requests whose features are drawn at once."""


@dataclass(frozen=True)
class NormalFeature:
    """A feature with a normal distribution.

    name    the name of the feature
    mean    its mean
    spread  its standard deviation
    """

    kind: ClassVar[str] = "normal"
    name: str
    mean: float = 0.0
    spread: float = 1.0

    def __post_init__(self) -> None:
        check_name("feature", self.name)
        where = f"feature {self.name!r}"
        object.__setattr__(self, "mean", _checked(f"{where}: mean", self.mean, -LARGEST))
        object.__setattr__(self, "spread", _checked(f"{where}: spread", self.spread, 0.0))

    @property
    def deviation(self) -> float:
        """Its standard deviation."""
        return self.spread

    def quantile(self, levels: Array) -> Array:
        """Its values at these levels in [0, 1)."""
        return np.asarray(self.mean + self.spread * scipy.special.ndtri(np.maximum(levels, 2.0**-54)))


@dataclass(frozen=True)
class BernoulliFeature:
    """A feature that is 1 with the probability ``mean``, else 0."""

    kind: ClassVar[str] = "bernoulli"
    name: str
    mean: float = 0.5

    def __post_init__(self) -> None:
        check_name("feature", self.name)
        mean = within(f"feature {self.name!r}: mean", self.mean, 0.0, 1.0, error=ProblemError)
        object.__setattr__(self, "mean", mean)

    @property
    def deviation(self) -> float:
        """Its standard deviation."""
        return float(np.sqrt(self.mean * (1.0 - self.mean)))

    def quantile(self, levels: Array) -> Array:
        """Its values at these levels in [0, 1)."""
        return np.asarray(levels >= 1.0 - self.mean, dtype=float)


Feature = NormalFeature | BernoulliFeature
FEATURE_LAWS: dict[str, type[NormalFeature] | type[BernoulliFeature]] = {  # the laws of features, by kind
    kind.kind: kind for kind in (NormalFeature, BernoulliFeature)
}


@dataclass(frozen=True)
class LinearArm:
    """An arm whose means follow the features: the levels at features of 0, and a slope for each feature, in order.

    reward, reward_slopes  level and slopes of the mean reward
    cost, cost_slopes      level of the mean cost, and slopes of its logarithm
    """

    name: str
    reward: float
    cost: float
    reward_slopes: tuple[float, ...] = ()
    cost_slopes: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_name("arm", self.name)
        where = f"arm {self.name!r}: "
        object.__setattr__(self, "reward", _checked(where + "the level of the reward", self.reward, -LARGEST))
        object.__setattr__(self, "cost", _checked(where + "the level of the cost", self.cost, 0.0))
        for kind in ("reward", "cost"):
            slopes = getattr(self, f"{kind}_slopes")
            numbers = tuple(_checked(f"{where}a slope of the {kind}", slope, -LARGEST) for slope in slopes)
            object.__setattr__(self, f"{kind}_slopes", numbers)


@dataclass(frozen=True, repr=False)
class LinearStream:
    """Requests with features, and at least two arms whose means are linear in them.

    features       the law of each feature; they are independent, and there may be none
    arms           the arms, with a slope for each feature
    reward_spread  spread of rewards around their mean, 1 for rewards of 0 or 1
    cost_spread    spread of costs around their mean, as a share of the mean

    >>> long = NormalFeature("log_length", mean=5.0)
    >>> arms = LinearArm("a", 0.5, 0.1, (0.0,), (0.0,)), LinearArm("b", 0.1, 0.2, (0.1,), (0.0,))
    >>> stream = LinearStream((long,), arms)
    >>> stream
    LinearStream(2 arms, 1 feature)
    >>> [values.round(3).tolist() for values in stream.means(np.array([[4.0], [6.0]]))]
    [[[0.5, 0.5], [0.5, 0.7]], [[0.1, 0.2], [0.1, 0.2]]]
    """

    features: tuple[Feature, ...]
    arms: tuple[LinearArm, ...]
    reward_spread: float = 1.0
    cost_spread: float = 0.5
    reward_max: ClassVar[float] = 1.0
    cost_max: ClassVar[float] = 1.0
    scales: ClassVar[None] = None
    """Players do not know the largest cost of each arm."""
    writable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("features", "arms"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for spread in ("reward_spread", "cost_spread"):
            object.__setattr__(self, spread, within(spread, getattr(self, spread), 0.0, 1.0, error=ProblemError))
        if len(self.arms) < 2:
            raise ProblemError(f"a stream needs at least two arms, this one has {len(self.arms)}; add [[arms]] entries")
        check_distinct("feature", self.feature_names)
        check_distinct("arm", self.names)
        for arm in self.arms:
            for slopes in (arm.reward_slopes, arm.cost_slopes):
                if len(slopes) != len(self.features):
                    raise ProblemError(
                        f"arm {arm.name!r} has {len(slopes)} slopes and there are {len(self.features)} features; give "
                        f"one for each"
                    )

    # --- what it is ----------------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """The arms by name, in order."""
        return tuple(arm.name for arm in self.arms)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features by name, in order."""
        return tuple(feature.name for feature in self.features)

    def __len__(self) -> int:
        """How many arms there are."""
        return len(self.arms)

    def __repr__(self) -> str:
        return f"LinearStream({len(self)} arms, {count(len(self.features), 'feature')})"

    def means(self, rows: Array) -> tuple[Array, Array]:
        """The mean rewards and the mean costs for requests with these features, as (request, arm)."""
        reward_level, reward_slopes, cost_level, cost_slopes = self._coefficients
        with np.errstate(over="ignore"):
            return (
                np.clip(reward_level + rows @ reward_slopes, 0.0, 1.0),
                np.clip(cost_level * np.exp(rows @ cost_slopes), SMALLEST_COST, 1.0),
            )

    @cached_property
    def _coefficients(self) -> tuple[Array, Array, Array, Array]:
        """The levels and slopes of rewards and of costs; slopes as (feature, arm)."""
        shape = len(self.arms), len(self.features)
        return (
            np.array([arm.reward for arm in self.arms]),
            np.array([arm.reward_slopes for arm in self.arms]).reshape(shape).T,
            np.array([arm.cost for arm in self.arms]),
            np.array([arm.cost_slopes for arm in self.arms]).reshape(shape).T,
        )

    def typical_rows(self) -> Array:
        """The features of `TYPICAL_REQUESTS` requests: a Latin hypercube sample, the same at every call.

        A mean over it has at most about the standard error of a mean over as many independent requests, and none at all
        for a sum of functions of single features.
        """
        rng = np.random.default_rng(self.identity)
        rows = np.zeros((TYPICAL_REQUESTS, len(self.features)))
        for column, feature in enumerate(self.features):
            rows[:, column] = feature.quantile((rng.permutation(TYPICAL_REQUESTS) + 0.5) / TYPICAL_REQUESTS)
        return rows

    @cached_property
    def reward_means(self) -> Array:
        """The mean reward of each arm, if it answers all requests."""
        return np.asarray(self.means(self.typical_rows())[0].mean(axis=0))

    @cached_property
    def cost_means(self) -> Array:
        """The mean cost of each arm, if it answers all requests."""
        return np.asarray(self.means(self.typical_rows())[1].mean(axis=0))

    # --- its requests --------------------------------------------------------------------------------------------

    def requests(self, rng: np.random.Generator) -> Iterator[Array]:
        """The features of one request after another, without end."""
        while True:
            levels = rng.random((BATCH, len(self.features)))
            for column, feature in enumerate(self.features):
                levels[:, column] = feature.quantile(levels[:, column])
            yield from levels

    def outcome(self, arm: int, row: Array, rng: np.random.Generator) -> tuple[float, float]:
        """Draw the reward and the cost of this arm for a request with these features."""
        reward, cost = (float(means[arm]) for means in self.means(row))
        wide = COST_VARIANCE_MAX * cost * (1.0 - cost)
        return (
            _beta(rng, reward, self.reward_spread**2 * reward * (1.0 - reward)),
            _beta(rng, cost, min((self.cost_spread * cost) ** 2, wide)),
        )

    # --- files ---------------------------------------------------------------------------------------------------

    @cached_property
    def identity(self) -> int:
        """A number that depends on the content alone, to derive seeds from."""
        return int.from_bytes(hashlib.blake2b(self.content.encode(), digest_size=8).digest(), "little")

    @cached_property
    def content(self) -> str:
        """The stream as text: its TOML."""
        lines = [f"reward_spread = {self.reward_spread!r}", f"cost_spread = {self.cost_spread!r}"]
        lines += [] if self.features else ["features = []"]
        for feature in self.features:
            numbers = [f"{attribute.name} = {getattr(feature, attribute.name)!r}" for attribute in fields(feature)[1:]]
            lines += ["[[features]]", f"name = {_text(feature.name)}", f"law = {_text(feature.kind)}", *numbers]
        for arm in self.arms:
            lines += ["[[arms]]", f"name = {_text(arm.name)}"]
            for kind, level, slopes in (
                ("reward", arm.reward, arm.reward_slopes),
                ("cost", arm.cost, arm.cost_slopes),
            ):
                named = [f"{_text(n)} = {s!r}" for n, s in zip(self.feature_names, slopes, strict=True) if s]
                lines.append(f"{kind} = {{ level = {level!r}, slopes = {{ {', '.join(named)} }} }}")
        return "\n".join(lines) + "\n"

    def to_toml(self) -> str:
        """The stream as TOML; reading it back gives an equal one."""
        return self.content

    @classmethod
    def from_toml(cls, text: str) -> LinearStream:
        """Read a stream; a `ProblemError` names the feature or the arm, what is wrong with it and the remedy."""
        return cls.from_document(parsed(text))

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> LinearStream:
        """Read a stream from a parsed TOML document; see `from_toml`."""
        check_keys(document, KEYS, "a stream with features")
        spreads = {name: document[name] for name in SPREADS if name in document}
        features = tuple(_parse_feature(entry) for entry in _tables(document, "features"))
        names = [feature.name for feature in features]
        return cls(features, tuple(_parse_arm(entry, names) for entry in _tables(document, "arms")), **spreads)

    @classmethod
    def load(cls, path: str | Path) -> LinearStream:
        """Read a stream from a TOML file."""
        return read_file(path, cls.from_toml)


def _beta(rng: np.random.Generator, mean: float, variance: float) -> float:
    """Draw from the Beta law with this mean and variance; at the extreme variances it is Bernoulli or constant."""
    widest = mean * (1.0 - mean)
    if variance >= widest:
        return float(rng.random() < mean)
    strength = widest / variance - 1.0 if variance > 0.0 else np.inf
    return float(rng.beta(mean * strength, (1.0 - mean) * strength)) if strength < 1.0 / SMALLEST_COST else mean


# --- reading ----------------------------------------------------------------------------------------------------------


def _checked(what: str, value: Any, low: float) -> float:
    """A number above ``low``, as a float, so that files and seeds do not depend on how it is written."""
    return within(what, value, low, LARGEST, above=True, error=ProblemError)


def _tables(document: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    entries = document.get(key, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ProblemError(f"{key} is not a list of tables; write each under a line [[{key}]]")
    for number, entry in enumerate(entries, start=1):
        if "name" not in entry:
            raise ProblemError(f'number {number} of {key} has no name; add name = "..."')
    return entries


def _parse_feature(entry: dict[str, Any]) -> Feature:
    law = entry.get("law")
    if not isinstance(law, str) or law not in FEATURE_LAWS:
        raise ProblemError(f"feature {entry['name']!r}: law is {law!r:.40}; choose one of {', '.join(FEATURE_LAWS)}")
    kind = FEATURE_LAWS[law]
    check_keys(
        entry, ("law", *(attribute.name for attribute in fields(kind))), f"feature {entry['name']!r}, with a {law} law,"
    )
    return kind(**{key: value for key, value in entry.items() if key != "law"})


def _parse_arm(entry: dict[str, Any], features: list[str]) -> LinearArm:
    where = f"arm {entry['name']!r}"
    check_keys(entry, ARM_KEYS, where)
    lines: list[tuple[Any, tuple[Any, ...]]] = []
    for kind in ("reward", "cost"):
        mean = entry.get(kind)
        if not isinstance(mean, dict) or "level" not in mean or not isinstance(mean.get("slopes", {}), dict):
            example = "{ level = 0.5, slopes = { log_length = 0.1 } }"
            raise ProblemError(f"{where}: {kind} is {mean!r:.40}; write {kind} = {example}")
        check_keys(mean, LINE_KEYS, f"the {kind} of {where}")
        slopes = mean.get("slopes", {})
        for name in slopes:
            if name not in features:
                raise ProblemError(
                    f"{where}: {kind} has a slope for {name!r:.40}, which is no feature; the features are "
                    f"{', '.join(features) or 'none'}"
                )
        lines.append((mean["level"], tuple(slopes.get(name, 0.0) for name in features)))
    (reward, reward_slopes), (cost, cost_slopes) = lines
    return LinearArm(entry["name"], reward, cost, reward_slopes, cost_slopes)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
