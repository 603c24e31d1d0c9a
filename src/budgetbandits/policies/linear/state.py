"""The state of `bts-linear`: sums of outcomes and features for each arm, and recent requests.

A request's row is (1, features, segments): the features less those of the first request, so that large numbers that
vary little lose no digits, and a 1 in the column of its segment. Nothing is standardised before it is added up, so that
sums stay exact whatever scale turns out to be right; `Standard` does it for the sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadState
from budgetbandits.numerics.arrays import Arms, Array
from budgetbandits.policies.base import Request, UnitChange
from budgetbandits.policies.planning import PlanState

PAID, REWARD_SQUARED, LOG_SQUARED, COST, COST_SQUARED = range(5)
"""The rows of `LinearState.totals`: money paid; squares of rewards and of logarithms of costs; costs, their squares."""

RECENT = 128
"""Recent requests that stand for those to come, of all arms together."""

FEWEST_RECENT = 4
"""Recent requests that are kept of each arm, at least."""

REWARD, LOG_COST = range(2)
"""The kinds of outcomes that regressions are for."""

FARTHEST = 10.0
"""Standard deviations from its mean beyond which a feature counts as if it were this far."""

OUTCOMES_FOR_SPREAD = 20
"""Outcomes from which on features are held to `FARTHEST`: with fewer, the deviation is not known well enough."""

STANDARDISED_EVERY = 16
"""Outcomes from one standard to the next, but for the first ones and where a column begins to vary."""

NO_VARIANCE, TINY_VARIANCE = 1e-12, 1e-60
"""A feature whose variance is less than that share of its mean square is a constant. So is one that varies by less than
1e-30."""

LARGEST_SUM = 1e150
"""Fourth powers of features, which are at most 1e30 apart from each other or little more, add up to less."""

LONGEST_TAIL = 9.0
"""The kurtosis of the exponential law, whose tails are the longest for which standard deviations are the measure."""


class ColumnMoments(NamedTuple):
    """The means and the central moments of columns. The variance is 0 where a column is a constant."""

    mean: Array
    variance: Array
    third: Array
    fourth: Array

    @classmethod
    def by_sums(cls, sums: Array, squares: Array, powers: Array) -> ColumnMoments:
        """The moments by the sums of rows, whose first column counts them, and of their second to fourth powers."""
        count = np.maximum(sums[0], 1.0)
        mean, second, (third, fourth) = sums / count, squares / count, powers / count
        square = mean * mean
        variance = second - square
        varies = (variance > NO_VARIANCE * second) & (variance > TINY_VARIANCE)
        return cls(
            mean, np.where(varies, variance, 0.0), third - mean * (3.0 * second - 2.0 * square),
            fourth - mean * (4.0 * third - mean * (6.0 * second - 3.0 * square)),
        )  # fmt: skip


class Standard(NamedTuple):
    """The means of the columns of rows, 1 over their spreads, and their variances once they are standardised; 0, 1 and
    0 for the first column.

    The spread is the standard deviation, or more where tails are longer than an exponential law's: √(m₄/9m₂) by the
    central moments. A flag that one request in a thousand has is 32 standard deviations from its mean, and as large is
    what it may change, before anything is known of it. By its spread it is 3 from its mean, however rare it is. Columns
    that have not varied yet have the scale 0, and become 0.
    """

    mean: Array
    scale: Array
    variance: Array

    @property
    def size(self) -> float:
        """How many columns of ordinary features differ as much from request to request."""
        return float(self.variance.sum())

    @property
    def spread(self) -> Array:
        """Infinite for columns that have not varied."""
        varies = self.scale > 0.0
        return np.where(varies, 1.0 / np.where(varies, self.scale, 1.0), np.inf)

    @property
    def transform(self) -> Array:
        """The matrix that standardises a row."""
        matrix = np.diag(self.scale)
        matrix[:, 0] -= self.mean * self.scale
        return matrix

    def row(self, row: Array) -> Array:
        """A row, or rows, standardised."""
        return np.asarray((row - self.mean) * self.scale)


@dataclass
class LinearState(PlanState):
    """Sums of outcomes and features, whose last axis runs over the arms.

    products   sums of row times row, as (column, column, arm)
    responses  sums of row times reward, and of row times the logarithm of the cost, as (kind, column, arm)
    powers     sums of third and of fourth powers of rows, as (power, column, arm)
    totals     sums of squares and of costs, as (row, arm)
    past       of outcomes that came without requests, and count as those of the mean request: their number, the sums of
               rewards and of logarithms of costs, as (row, arm)
    recent     rows of each arm's latest requests, as (slot, column, arm), to seven digits, which is enough for a price.
               The first column is the number of the request, from 1 on, and 0 in a slot that is empty; the second says
               how far the estimates of its prices were from the usual ones; the others are features and segments
    origin     the features of the first request
    standards  the means, scales and variances of `standard`; none before the first outcome
    """

    symmetric: ClassVar[tuple[str, ...]] = ("products",)
    products: Array = field(default_factory=lambda: np.zeros((1, 1, 0)))
    responses: Array = field(default_factory=lambda: np.zeros((2, 1, 0)))
    powers: Array = field(default_factory=lambda: np.zeros((2, 1, 0)))
    totals: Array = field(default_factory=lambda: np.zeros((5, 0)))
    past: Array = field(default_factory=lambda: np.zeros((3, 0)))
    recent: NDArray[np.float32] = field(default_factory=lambda: np.zeros((1, 2, 0), dtype=np.float32))
    origin: list[float] = field(default_factory=list)
    standards: list[list[float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kept: object = None
        """The fit that `linear.fit` keeps here. It follows from the rest and is never saved, like the next."""
        self._standard: tuple[list[list[float]], int, Standard] | None = None

    @property
    def columns(self) -> int:
        """The number of columns of a row: one, the features, and the segments after the first."""
        return int(self.products.shape[0])

    @property
    def segments(self) -> int:
        """How many segments there are; the first has no column: the others are set apart from it."""
        return self.columns - self.known.features

    @property
    def counts(self) -> Array:
        """Outcomes of each arm, with those that are half forgotten as halves."""
        return np.asarray(self.products[0, 0] + self.past[0])

    @property
    def paid(self) -> float:
        return float((self.totals[PAID] * self.scales).sum())

    def arm_sums(self, arm: int, segment: int | None = None) -> tuple[float, float, float]:
        reward = self.responses[REWARD, 0, arm] + self.past[1, arm]
        return float(self.counts[arm]), float(reward), float(self.totals[COST, arm])

    def rescale(self, units: UnitChange) -> None:
        """Write the sums in other units."""
        sums, past, costs = self.responses[:, 0] + self.past[1:], self.past.copy(), self.totals[COST]
        counts, rewards, logs = self.counts, sums[REWARD], sums[LOG_COST]
        reward, cost = _at_most(units.reward, counts, rewards), _at_most(units.costs, counts, costs)
        log, responses = np.log(cost), self.responses.copy()
        responses[REWARD] *= reward
        responses[LOG_COST] += self.products[0] * log  # whose first column is 1 in every row
        past[1] *= reward
        past[2] += past[0] * log
        paid, reward_squared, log_squared, _, cost_squared = self.totals
        self.totals = np.array([
            paid * units.costs, np.minimum(reward_squared * reward**2, rewards * reward),
            np.maximum(log_squared + 2.0 * log * logs + counts * log**2, 0.0),
            costs * cost, np.minimum(cost_squared * cost**2, costs * cost),
        ])  # fmt: skip
        self.responses, self.past = responses, past
        self.rescale_estimates(units.money)

    @property
    def squares(self) -> Array:
        """The sums of squares of rows, as (column, arm)."""
        return self.products.reshape(-1, len(self.pulls))[:: self.columns + 1]

    def fade(self, shares: Array) -> None:
        """Let what was learned of each arm count less, by what is kept of it."""
        for name in ("products", "responses", "powers", "past"):
            setattr(self, name, getattr(self, name) * shares)
        self.totals = np.concatenate([self.totals[:REWARD_SQUARED], self.totals[REWARD_SQUARED:] * shares])

    def add(self, arm: int, row: Array, reward: float, log: float) -> None:
        """Add an outcome of an arm: its reward, and the logarithm of its cost."""
        self.products[..., arm] += np.outer(row, row)
        self.responses[REWARD, :, arm] += reward * row
        self.responses[LOG_COST, :, arm] += log * row
        cube = row * row * row
        self.powers[0, :, arm] += cube
        self.powers[1, :, arm] += cube * row

    def row(self, request: Request, standard: Standard) -> Array:
        """The row of a request."""
        row = standard.mean.copy()
        row[0] = 1.0
        features = self.known.features
        if request.features is not None and features:
            origin = np.array(self.origin) if self.origin else request.features
            row[1 : 1 + features] = request.features - origin
            if self.answered_requests >= OUTCOMES_FOR_SPREAD:
                far = FARTHEST * standard.spread
                row = np.minimum(np.maximum(row, standard.mean - far), standard.mean + far)
        row[1 + features :] = 0.0
        if request.segment:
            row[features + request.segment] = 1.0
        return row

    @property
    def standard(self) -> Standard:
        """The means and scales that rows are standardised by."""
        kept = self._standard
        if kept is None or kept[0] is not self.standards or kept[1] != self.columns:
            values = np.zeros((3, self.columns))
            values[1, 0] = 1.0
            if self.standards:  # segments may have come since
                values[:, : len(self.standards[0])] = self.standards
            kept = self._standard = self.standards, self.columns, Standard(*values)
        return kept[2]

    def standardise(self, row: Array, standard: Standard) -> None:
        """Set the standard by all rows so far, the last of which this is, now and then: what follows from it must be
        found again for every arm."""
        answered = self.answered_requests
        if (
            answered <= STANDARDISED_EVERY
            or answered % STANDARDISED_EVERY == 0
            or ((standard.scale == 0.0) & (row != standard.mean)).any()
        ):
            self.standards = [row.tolist() for row in self.measured()]

    def measured(self) -> Standard:
        """The standard by the rows of all arms so far."""
        mean, variance, _, fourth = self.moments()
        positive = np.where(variance > 0.0, variance, 1.0)
        spread = np.where(variance > 0.0, np.sqrt(np.maximum(positive, fourth / (LONGEST_TAIL * positive))), np.inf)
        scale = 1.0 / spread
        mean[0], scale[0] = 0.0, 1.0
        return Standard(mean, scale, variance / spread / spread)

    def moments(self) -> ColumnMoments:
        """The moments of the rows of all arms together."""
        return ColumnMoments.by_sums(self.products[0].sum(axis=1), self.squares.sum(axis=1), self.powers.sum(axis=2))

    def arm_moments(self, arms: Arms) -> ColumnMoments:
        """The moments of the rows of each of these arms, as (column, arm)."""
        return ColumnMoments.by_sums(self.products[0][:, arms], self.squares[:, arms], self.powers[:, :, arms])

    def factors(self, prices: Array | None) -> Array:
        """The logarithm of the estimate of each arm's price in units of its usual one; 0 where there is none."""
        factors = np.zeros(len(self.pulls))
        if prices is not None and self.estimates:
            count, _, _, total = self.estimate_sums
            given = np.isfinite(prices) & (count > 0.0)
            factors[given] = np.log(prices[given]) - total[given] / count[given]
        return factors

    def remember(self, arm: int, row: Array, factors: Array) -> None:
        """Keep a request that the arm has answered, in the place of its oldest."""
        slot = self.recent[int(self.pulls[arm] - 1) % len(self.recent), :, arm]
        slot[0], slot[1], slot[2:] = self.answered_requests, factors.mean(), row[1:]

    def recent_rows(self) -> tuple[Array, Array, Array]:
        """Rows of recent requests, the logarithms of their prices in units of the usual ones, and how many each stands
        for: what an arm has answered since the oldest of its requests among them stands for all that it answers."""
        number = self.recent[:, 0].astype(float)
        kept = held = number > 0.0
        if np.count_nonzero(held) > RECENT:  # arms have come since
            newest, of_arm = np.partition(number, -RECENT, axis=None)[-RECENT], np.partition(number, -FEWEST_RECENT, 0)
            kept = held & (number >= np.minimum(newest, of_arm[-FEWEST_RECENT]))
        oldest = np.where(kept, number, np.inf).min(axis=0, initial=np.inf)
        earlier = held.all(axis=0) | (kept != held).any(axis=0)  # whether the arm may have answered others before them
        since = self.answered_requests + 1.0 - np.where(earlier, oldest, 1.0)
        slots, arms = np.nonzero(kept)
        kept_rows = self.recent[slots, :, arms].astype(float)
        rows = kept_rows[:, 1:]
        factors = rows[:, 0].copy()
        rows[:, 0] = 1.0
        return rows, factors, 1.0 / np.maximum(since[arms], 1.0)

    def widen(self, segments: int) -> None:
        """Make room for this many columns."""
        more = segments - self.columns
        if more > 0:
            self.products = np.pad(self.products, ((0, more), (0, more), (0, 0)))
            self.responses, self.powers = (
                np.pad(sums, ((0, 0), (0, more), (0, 0))) for sums in (self.responses, self.powers)
            )
            self.recent = np.pad(self.recent, ((0, 0), (0, more), (0, 0)))

    def make_room(self, name: str, shape: tuple[int, ...]) -> None:
        self.widen(shape[1] - (name == "recent"))  # which has one column more
        if name == "recent" and not self.recent.any():  # the slots are those of the first arms: some were added
            self.recent = np.zeros((shape[0], self.columns + 1, len(self.pulls)), dtype=np.float32)

    def filled(self, values: Mapping[str, Any]) -> Self:
        try:
            for name in ("products", "recent"):
                self.make_room(name, np.shape(values[name]))
        except (KeyError, IndexError, ValueError):
            raise BadState("'products' are no sums of rows; the saved state is damaged") from None
        super().filled(values)
        given = np.array(self.origin, dtype=object)
        if given.shape not in ((0,), (self.known.features,)) or not all(isinstance(value, float) for value in given):
            raise BadState("'origin' are no features of a request; the saved state is damaged")
        if (self.products.diagonal() < 0.0).any():
            raise BadState("'products' has negative squares; the saved state is damaged")
        shape = np.array(self.standards, dtype=object).shape
        sound = shape in ((0,), *((3, columns) for columns in range(1, self.columns + 1)))
        if sound:
            saved = np.array(self.standard)
            sound = bool(
                np.isfinite(saved).all() and (saved[1:] >= 0.0).all() and saved[:, 0].tolist() == [0.0, 1.0, 0.0]
            )
        if not sound:
            raise BadState("'standards' are no means, scales and variances of columns; the saved state is damaged")
        return self

    def check(self, name: str, array: NDArray[Any]) -> None:
        if name in ("products", "responses", "powers", "past", "recent"):
            if not (np.abs(array.astype(float)) < LARGEST_SUM).all():
                raise BadState(f"{name!r} holds no number, or one that is too large; the saved state is damaged")
        else:
            super().check(name, array)


def _at_most(factor: float | Array, counts: Array, sums: Array) -> Array:
    """The factor for each arm, or less where the mean would be above 1."""
    most = np.divide(counts, sums, out=np.full(len(counts), np.inf), where=sums > 0.0)
    return np.asarray(np.minimum(factor, most))
