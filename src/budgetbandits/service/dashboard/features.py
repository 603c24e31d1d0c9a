"""The features of requests on the pages of a campaign: which of them move reward and price, and what the policy would
choose for a request that a reader types in.

An effect is that of one standard deviation more of a feature, as the policy believes it (`Policy.feature_slopes`): on
an arm's mean reward, in units of reward, and on its price, as a share of it, since prices are regressed by their
logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from budgetbandits.allocation.propensity import counts
from budgetbandits.errors import BadFeature
from budgetbandits.policies.base import FeatureSlopes, Request
from budgetbandits.service.campaign_session import CampaignSession
from budgetbandits.service.ledger import to_units
from budgetbandits.service.projection import MedianInterval
from budgetbandits.service.session_rows import read_session
from budgetbandits.service.stores.contract import Transaction
from budgetbandits.service.stores.records import ArmRow, Campaign
from budgetbandits.validation import finite

FEATURES_SHOWN_MAX, ARMS_SHOWN_MAX = 12, 6
"""Features with the surest effects, and arms with the most feedback."""

DRAWS = 400
"""Number of choices from which the probabilities of a request are counted."""
SEED = 2015
"""Seed of these choices, always the same so that a page does not flicker."""

NORMAL_95 = 1.959964
"""Standard deviations to either side that hold 95 % of a normal law."""


@dataclass(frozen=True)
class Effect:
    """The effect of a feature with one arm, on its mean reward and, as a share, on its price."""

    arm: int
    reward: MedianInterval
    price: MedianInterval
    sureness: float
    """How many standard deviations the surer of both is away from none."""


@dataclass(frozen=True)
class FeatureLine:
    """One feature: its mean and standard deviation so far, and its effects; none if it has not varied yet."""

    name: str
    mean: float
    deviation: float
    effects: list[Effect]

    @property
    def sureness(self) -> float:
        """The largest certainty of the effects."""
        return max((effect.sureness for effect in self.effects), default=0.0)


@dataclass(frozen=True)
class FeatureEffects:
    """The features with the surest effects, how many more there are, and how many arms are not shown."""

    lines: list[FeatureLine]
    not_shown: int
    arms_not_shown: int

    @property
    def reward_end(self) -> float:
        """How far the axis of rewards goes to either side of 0."""
        return self._end("reward")

    @property
    def price_end(self) -> float:
        """The end of the axis of prices."""
        return self._end("price")

    def _end(self, kind: str) -> float:
        result = [getattr(effect, kind) for line in self.lines for effect in line.effects]
        return 1.1 * max((max(-effect.low, effect.high) for effect in result), default=1.0)

    def as_json(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """The lines as JSON."""
        return [
            {"name": line.name, "mean": line.mean, "standard_deviation": line.deviation,
             "effects": [{"arm": names[effect.arm], "reward": asdict(effect.reward), "price": asdict(effect.price)}
                         for effect in line.effects]}
            for line in self.lines
        ]  # fmt: skip


def effects_of(row: Campaign, arms: Sequence[ArmRow]) -> FeatureEffects | None:
    """None for a campaign without features, and before the first feedback."""
    if row.settings.terms.features is None or not any(arm.learned["pulls"] for arm in arms):
        return None
    session = read_session(row, arms)
    state, slopes = session.state, session.policy.feature_slopes(session.state)
    if slopes is None:
        return None
    pulled = [arm for arm in np.argsort(-state.pulls, kind="stable").tolist() if state.pulls[arm] and state.active[arm]]
    shown, lines = sorted(pulled[:ARMS_SHOWN_MAX]), []
    for number, name in enumerate(row.settings.terms.features):
        mean, deviation = float(slopes.means[number]), float(slopes.deviations[number])
        effects = [_effect(row, arm, slopes, number) for arm in shown] if slopes.unsure[:, number].any() else []
        lines.append(FeatureLine(name, mean, deviation if effects else 0.0, effects))
    lines.sort(key=lambda line: -line.sureness)
    rest = len(lines[FEATURES_SHOWN_MAX:])
    return FeatureEffects(lines[:FEATURES_SHOWN_MAX], rest, len(pulled) - len(shown))


def _effect(row: Campaign, arm: int, slopes: FeatureSlopes, number: int) -> Effect:
    mean, deviation = (
        np.array([slopes.reward[number, arm], slopes.log_cost[number, arm]]),
        slopes.unsure[:, number, arm],
    )
    ends = np.stack([mean, mean - NORMAL_95 * deviation, mean + NORMAL_95 * deviation])
    reward, price = ends[:, 0] * row.settings.terms.reward_max, np.expm1(ends[:, 1])
    sureness = float(np.max(np.abs(mean) / deviation))
    return Effect(arm, MedianInterval(*reward.tolist()), MedianInterval(*price.tolist()), sureness)


# --- a request that a reader types in ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class ArmChance:
    """How likely an arm is to answer a request, and what that is expected to bring and to cost."""

    arm: int
    name: str
    chance: float
    reward: float
    price: float


@dataclass(frozen=True)
class RequestView:
    """A request as it was typed in, and who would answer it now; ``problem`` says what is wrong with it."""

    row: Campaign
    segments: list[str]
    typed: dict[str, str]
    segment: str
    answers: list[ArmChance]
    problem: str = ""

    def as_json(self) -> dict[str, Any]:
        """The view as JSON."""
        return {
            "campaign": self.row.name, "features": self.typed, "segment": self.segment or None,
            "problem": self.problem or None, "answers": [asdict(answer) for answer in self.answers],
        }  # fmt: skip


def field_name(number: int) -> str:
    """The name of a feature's field in the form."""
    return f"feature-{number}"


def _rounded(mean: float, deviation: float) -> str:
    """A mean to about a hundredth of the deviation.

    >>> _rounded(1_764_321_987.25, 3600.0), _rounded(0.123456, 1.0), _rounded(2.0, 0.0)
    ('1764321990', '0.12', '2')
    """
    near = round(mean, 2 - math.floor(math.log10(deviation))) if deviation > 0.0 else mean
    return f"{near:.15g}"


def request_view(tx: Transaction, row: Campaign, query: Mapping[str, str]) -> RequestView:
    """The request with the numbers in the query, and the means of the features that it does not have."""
    names = row.settings.terms.features
    if names is None:
        raise BadFeature(f"requests of campaign {row.name!r} have no features; create a campaign that names some")
    session = read_session(row, tx.arms(row.id))
    slopes = session.policy.feature_slopes(session.state)
    moments = [(0.0, 0.0)] * len(names) if slopes is None else np.transpose([slopes.means, slopes.deviations]).tolist()
    usual = [_rounded(mean, deviation) for mean, deviation in moments]
    typed = {name: query.get(field_name(number), usual[number]) for number, name in enumerate(names)}
    segments, segment = [segment for segment in session.segments if segment is not None], query.get("segment", "")
    if segment and segment not in segments:
        problem = f"there is no segment {segment!r:.60}; choose one of those that requests have named"
        return RequestView(row, segments, typed, segment, [], problem)
    try:
        given = finite("features", {name: _number(text) for name, text in typed.items()})
    except BadFeature as error:
        return RequestView(row, segments, typed, segment, [], str(error))
    session.set_remaining(row.account)
    answers = _answers(row, session, session.request(segment or None, None, session.feature_values(given)), tx.now())
    return RequestView(row, segments, typed, segment, answers)


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _answers(row: Campaign, session: CampaignSession, request: Request, now: float) -> list[ArmChance]:
    """The probabilities of all active arms, the likely first."""
    policy, state, settings = session.policy, session.state, row.settings
    available, cooling = session.cooldowns.available(state.active, now)
    named = counts(session.learner, np.random.default_rng(SEED), DRAWS, available, request, cooling)
    reward, cost = policy.expected(state, request)
    answers = [
        ArmChance(arm, session.names[arm], float(named[arm]) / DRAWS, float(reward[arm]) * settings.terms.reward_max,
                  to_units(settings.cost_max) * float(cost[arm]))
        for arm in np.flatnonzero(state.active).tolist()
    ]  # fmt: skip
    return sorted(answers, key=lambda answer: -answer.chance)
