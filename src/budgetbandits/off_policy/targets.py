"""Targets of an evaluation: the probability of each arm in each situation of a log.

A target does not learn while it is evaluated. A policy of the library first learns from another log, or from an earlier
part of the same, and is then held still: its probabilities of choice are those of its beliefs by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from budgetbandits.allocation.learner import Learner
from budgetbandits.allocation.propensity import counts
from budgetbandits.errors import BadParameter, MissingKnowledge, UnknownArm
from budgetbandits.numerics.arrays import Array
from budgetbandits.off_policy.log import Log
from budgetbandits.policies.base import NO_REQUEST_INFO, Knowledge, Policy, Request
from budgetbandits.validation import integer, positive, within

DRAWS = 10_000
"""Choices of a policy that learns nothing more, in each situation, from which its probabilities are counted."""
DRAWS_WITH_FEATURES = 100
"""The same where nearly every request is a situation of its own: the noise of many is small."""
LEAST_SHARE = 1e-3
"""Choices that are less likely are left out: few logs can speak of them, and one that cannot would speak of nothing."""


@dataclass(frozen=True)
class Target:
    """``probability`` is (situation, arm); a row of zeros is a situation in which the target cannot answer.

    draws      how many choices the probabilities were counted from; None if they are exact
    situation  each decision's row of ``probability``; None if that is its situation in the log
    """

    name: str
    probability: Array
    draws: int | None = None
    situation: NDArray[np.int64] | None = None

    def rows(self, log: Log) -> NDArray[np.int64]:
        """The row of ``probability`` for each decision of the log."""
        return log.situation if self.situation is None else self.situation


def one_arm(log: Log, arm: str) -> Target:
    """Always this arm; requests that could not have it stay unanswered."""
    return Target(f"always {arm}", _among(log, np.eye(len(log.arms))[_number(log, arm)]))


def even(log: Log) -> Target:
    """Every arm that can be chosen, equally often."""
    return Target("even", _among(log, np.ones(len(log.arms))))


def mix(log: Log, shares: Mapping[str, float]) -> Target:
    """Arms by these shares; where one cannot be chosen, the others by theirs.

    >>> from budgetbandits.off_policy import read_log
    >>> log = read_log({"arm": ["a", "b"], "reward": [1, 0], "cost": [1, 1], "propensity": [0.5, 0.5]})
    >>> mix(log, {"a": 3, "b": 1}).probability.tolist()
    [[0.75, 0.25]]
    """
    weights = np.zeros(len(log.arms))
    for arm, share in shares.items():
        weights[_number(log, arm)] = within(f"the share of {arm!r:.60}", share, 0.0, np.inf)
    if not weights.any():
        raise BadParameter("a mix needs an arm with a share above 0; name one")
    named = ", ".join(f"{arm} {share / weights.sum():.3g}" for arm, share in shares.items())
    return Target(f"mix {named}", _among(log, weights))


def held_still(
    log: Log,
    policy: Policy,
    learned_from: Log,
    budget_per_request: float | None = None,
    draws: int | None = None,
    seed: int = 0,
) -> Target:
    """A policy with what it has learned from a log, in the situations of another; without what it would choose less
    than once in a thousand times.

    ``budget_per_request`` is what a policy that plans with a budget has for each request, in the log's units. A policy
    that looks at features has those of the requests, if the logs have any.
    """
    if not policy.uses_features:
        log, learned_from = log.without_features(), learned_from.without_features()
    draws = (DRAWS_WITH_FEATURES if log.feature_names else DRAWS) if draws is None else integer("draws", draws, 1)
    integer("seed", seed)
    before = learned_from.aligned(log)
    if before.arms != log.arms:
        new = ", ".join(before.arms[len(log.arms) :])
        raise UnknownArm(f"{new} was learned of and is not in the log that is evaluated on; evaluate without it")
    learning, choosing = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2))
    learner = _taught(policy, before, log, budget_per_request, learning)
    probability = np.zeros((len(log.situations), len(log.arms)))
    requests = _requests(policy, log)
    for number in np.unique(log.situation).tolist():
        named = counts(learner, choosing, draws, np.array(log.situations[number].arms), requests[number])
        named[named < LEAST_SHARE * draws] = 0
        probability[number] = named / max(named.sum(), 1)
    return Target(policy.spec, probability, draws, log.situation)


def _taught(
    policy: Policy, before: Log, log: Log, budget_per_request: float | None, rng: np.random.Generator
) -> Learner:
    """A learner after every decision of a log, with ``budget_per_request`` for each request to come."""
    unknown = sorted(policy.needs & {"costs", "cost_floor"})
    if unknown:
        raise MissingKnowledge(f"{policy.name} must know {unknown[0]}, which no log says; evaluate another policy")
    caps = np.array([max((part.cost[part.arm == arm].max(initial=0.0) for part in (before, log)), default=0.0)
                     for arm in range(len(log.arms))])  # fmt: skip
    top = float(caps.max()) or 1.0
    caps = np.where(caps > 0.0, caps, top)
    reward_max = float(max(before.reward.max(), log.reward.max())) or 1.0
    knowledge: dict[str, Any] = {"features": len(log.feature_names)}
    if "budget" in policy.needs:
        if budget_per_request is None:
            raise MissingKnowledge(f"{policy.name} plans with a budget; say budget_per_request")
        positive("budget_per_request", budget_per_request, hint=", in the log's units")
        money = float(before.cost.sum()) + budget_per_request * len(log)
        knowledge |= {"budget": money / top, "horizon": float(len(before) + len(log))}
    learner = Learner.new(policy, len(log.arms), Knowledge(**knowledge), scales=caps / top, kind="plain")
    scale = caps if learner.state.known.scales is not None else np.full(len(caps), top)
    if policy.looks_at_requests:
        while policy.for_requests.segments(learner.state) < len(before.segments):
            policy.for_requests.open_segment(learner.state)
    requests = _requests(policy, before)
    for arm, number, reward, cost in zip(
        before.arm.tolist(), before.situation.tolist(), before.reward / reward_max, before.cost, strict=True
    ):
        learner.learn(arm, float(reward), float(cost / scale[arm]), rng, requests[number])
    return learner


def _requests(policy: Policy, log: Log) -> list[Request]:
    """The request of each situation, as the policy sees it."""
    if not policy.looks_at_requests:
        return [NO_REQUEST_INFO] * len(log.situations)
    return [
        Request(situation.segment, features=np.array(situation.features) if situation.features else None)
        for situation in log.situations
    ]


def _among(log: Log, weights: Array) -> Array:
    """The shares of the arms that can be chosen in each situation."""
    could = np.array([situation.arms for situation in log.situations])
    shares = np.where(could, weights, 0.0)
    total = shares.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0.0, shares / np.where(total > 0.0, total, 1.0), 0.0))


def _number(log: Log, arm: str) -> int:
    if arm not in log.arms:
        raise UnknownArm(f"no arm {arm!r:.60} in the log; the arms are {', '.join(log.arms[:8])}")
    return log.arms.index(arm)
