"""Estimates of what a target earns and spends for each request, from decisions that another policy has made.

What is estimated is the mean over all requests. One for which the target has no arm among those on offer stays
unanswered: its reward and cost are 0. With A = Σ π(a), which is 1 for a request that the target answers, else 0,
w = π(arm) / propensity, the weight of a decision, and y its reward or cost:

    inverse propensity   mean of w y. Unbiased, wide, and skewed.
    self-normalised      mean of w y over the mean of w, times the mean of A: the mean of answered requests,
                         times their share. A little biased, narrower.
    direct method        mean of Σ π(a) q(a), where q is a guess at the mean of y for each request and arm
                         (`outcome_models`). As biased as the guess, so it has no interval.
    doubly robust        mean of Σ π(a) q(a) + w (y − q(arm)). Unbiased for any q that is fixed, and the narrower the
                         better the guess.

Decisions of a policy that learns are not independent: the propensities of each depend on what came of those before. But
given the past, the expectation of each term is what the target earns, for a q that is fixed: the terms are a
martingale's differences about it. By the martingale central limit theorem their mean is normal about it, with the
standard error of a sample of independent terms, if their conditional variances settle and no single term matters. They
do not where the log has all but stopped choosing what the target wants: that is what the rules of overlap look for, and
then there is no estimate. That q knows of later decisions is an error of second order: its own error times that of the
weights' mean. Requests are taken to be like those to come: independent, and of the same mix of segments.

A normal interval covers too little where terms are skewed, as costs are if a few answers cost many times the others. A
log that happens to lack such answers has too low a mean and too small a spread at once. Its skewness is too small as
well, so corrections by skewness (Johnson's, Hall's) and the bootstrap of t help too little. Each end of an interval is
therefore that of the terms and one more, equal to the most extreme on its side: the high end counts the largest term
twice, the low end the smallest. Compared with the standard error this is little if no single term matters: then
coverage tends to 95 %, from above unless terms are skewed. Of outcomes that are rarer than one in the length of the log
and far beyond all that it has seen, no interval can know.

Propensities that were counted from draws, and probabilities of the target that were, add noise. The first is in the
spread of the terms; the second is added to the standard error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from budgetbandits.errors import BadParameter
from budgetbandits.numerics.arrays import Array
from budgetbandits.off_policy.log import Log
from budgetbandits.off_policy.outcome_models import guesses, request_rows
from budgetbandits.off_policy.targets import Target

Z = 1.959963984540054
"""Standard errors on either side of a 95 % interval."""
EFFECTIVE_MIN = 100.0
"""Effective sample size below which nothing is estimated."""
FEW_CHOICES = 10
"""Choices of an arm in a segment below which it counts as all but never chosen there."""
UNSEEN_MAX = 0.5
"""Standard errors below which must be what the target's choices of all but never chosen arms could bring or cost."""
BALANCE_ERRORS = 4.0
"""Standard errors by which the weighted mean of a feature may differ from its mean over all requests."""


@dataclass(frozen=True)
class Estimate:
    """A value for each request.

    error      its standard error
    low, high  the ends of its 95 % interval, which reaches farther where terms are more extreme
    """

    value: float
    error: float
    low: float
    high: float

    def as_json(self) -> dict[str, float]:
        """The numbers by name."""
        return {"value": self.value, "error": self.error, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Value:
    """The reward, or the cost, of a request.

    direct  by the direct method
    more    what the target's is above that of the policy that ran; of doubly robust terms, decision by decision
    """

    inverse_propensity: Estimate
    self_normalised: Estimate
    doubly_robust: Estimate
    more: Estimate
    direct: float


@dataclass(frozen=True)
class Evaluation:
    """The evaluation of a target by a log.

    effective   how many decisions of the target itself would say as much: (Σ w)² / Σ w²
    unseen      share of the target's choices that were all but never made in their segment
    unanswered  share of requests for which the target has no arm
    weight      the mean of the weights; far from the share of requests that are answered, propensities are wrong
    problem     why there are no values; "" if there are
    """

    target: str
    decisions: int
    effective: float
    unseen: float
    unanswered: float
    weight: Estimate
    problem: str
    reward: Value | None
    cost: Value | None


def evaluate(log: Log, target: Target) -> Evaluation:
    """Estimate the reward and the cost that the target would have had for each request of the log.

    >>> from budgetbandits.off_policy import even, read_log
    >>> columns = {"arm": ["a", "b"] * 300, "reward": [1.0, 0.4] * 300, "cost": [0.2, 0.1] * 300}
    >>> log = read_log(columns | {"propensity": [0.5] * 600})
    >>> round(evaluate(log, even(log)).reward.doubly_robust.value, 2)
    0.7
    """
    chances = target.probability[target.rows(log)]
    weight = np.take_along_axis(chances, log.arm[:, None], axis=1)[:, 0] / log.propensity
    effective = float(weight.sum() ** 2 / (weight**2).sum()) if weight.any() else 0.0
    chosen = np.zeros((int(log.segment.max()) + 1, len(log.arms)))
    np.add.at(chosen, (log.segment, log.arm), 1.0)
    unseen = (chances * (chosen < FEW_CHOICES)[log.segment]).mean(axis=0)
    values, problem = [], _few(effective, len(log)) or _unbalanced(log, chances, weight)
    for outcome in (log.reward, log.cost):
        if not problem:
            value = _value(log, target, chances, weight, outcome)
            values.append(value)
            problem = _unseen(log, unseen, outcome, value.doubly_robust.error)
    reward, cost = (None, None) if problem else values
    unanswered = float((chances.sum(axis=1) == 0.0).mean())
    return Evaluation(
        target.name, len(log), effective, float(unseen.sum()), unanswered, mean_of(weight), problem, reward, cost
    )


def _few(effective: float, decisions: int) -> str:
    if effective >= EFFECTIVE_MIN:
        return ""
    return (
        f"too little overlap: {decisions:,} decisions say as much of it as {effective:.0f} of its own would, and "
        f"{EFFECTIVE_MIN:.0f} are needed; collect a longer log, or evaluate something closer to what ran"
    )


def _unseen(log: Log, unseen: Array, outcome: Array, error: float) -> str:
    """Why the share of choices of each arm that the log has all but never made is too large, if it is."""
    largest = np.array([outcome[log.arm == arm].max(initial=-np.inf) for arm in range(len(log.arms))])
    # of an arm that was never chosen nothing is known, not even how much it may cost
    largest[np.isinf(largest)] = np.inf
    [seldom] = np.nonzero(unseen > 0.0)
    could = unseen[seldom] * largest[seldom]
    if could.sum() <= UNSEEN_MAX * error:
        return ""
    arm = log.arms[int(seldom[could.argmax()])]
    return (
        f"too little overlap: the log has fewer than {FEW_CHOICES} of the choices that are {unseen.sum():.2%} of its "
        f"own, such as {arm}, and they could matter more than all noise; evaluate something closer to what ran, or log "
        "with more exploration"
    )


def _unbalanced(log: Log, chances: Array, weight: Array) -> str:
    """Why the weights do not make all requests of the decisions, if they do not. Where the log never makes the target's
    choices for requests with some features, no weight says so, but the weighted mean of these features does."""
    rows = request_rows(log)[:, 1 : 1 + len(log.feature_names)]
    terms = (weight - chances.sum(axis=1))[:, None] * rows
    errors = terms.std(axis=0, ddof=1) / np.sqrt(len(log))
    away = np.abs(terms.mean(axis=0)) / np.where(errors > 0.0, errors, np.inf)
    if away.max(initial=0.0) <= BALANCE_ERRORS:
        return ""
    name = log.feature_names[int(away.argmax())]
    return (
        f"too little overlap: the log hardly ever makes its choices for requests with some values of {name}, whose "
        f"weighted mean is {away.max():.0f} standard errors away from that of all requests; evaluate something closer "
        "to what ran, or log with more exploration"
    )


def _value(log: Log, target: Target, chances: Array, weight: Array, outcome: Array) -> Value:
    guess = guesses(log, outcome)
    own = np.take_along_axis(guess, log.arm[:, None], axis=1)[:, 0]
    direct = (chances * guess).sum(axis=1)
    terms = direct + weight * (outcome - own)
    noise = _drawn_noise(target, log, guess.mean(axis=0))
    return Value(
        mean_of(weight * outcome, noise),
        mean_of(_normalised(weight, outcome, chances.sum(axis=1)), noise),
        mean_of(terms, noise),
        mean_of(terms - outcome, noise),
        float(direct.mean()),
    )


def _normalised(weight: Array, outcome: Array, answered: Array) -> Array:
    """Terms whose mean is the self-normalised estimate, and whose spread is its error, to first order."""
    of_answered = float((weight * outcome).sum() / weight.sum())
    scale = answered.mean() / weight.mean()
    return np.asarray(scale * weight * (outcome - of_answered) + of_answered * answered)


def mean_of(terms: Array, noise: float = 0.0) -> Estimate:
    """The mean of terms, each with the same expectation given those before; ``noise`` is a further variance of it.

    >>> estimate = mean_of(np.array([0.0] * 90 + [1.0] * 10))
    >>> estimate.value, round(estimate.low, 3), round(estimate.high, 3)
    (0.1, 0.04, 0.17)
    """
    if len(terms) < 2:
        raise BadParameter("the log has a single decision; collect more")
    value, ends = float(terms.mean()), []
    for extreme, errors in ((float(terms.min()), -Z), (float(terms.max()), Z)):
        again = np.append(terms, extreme)
        # from the value on, not the mean of these: rounding must not bring an end to the value's other side
        ends.append(value + (extreme - value) / len(again) + errors * _error(again, noise))
    return Estimate(value, _error(terms, noise), *ends)


def _error(terms: Array, noise: float) -> float:
    return float(np.sqrt(terms.var(ddof=1) / len(terms) + noise))


def _drawn_noise(target: Target, log: Log, guess: Array) -> float:
    """The variance that probabilities bring in which were counted from draws, as far as the guess knows the arms."""
    if target.draws is None:
        return 0.0
    share = np.bincount(target.rows(log), minlength=len(target.probability)) / len(log)
    mean = target.probability @ guess
    spread = np.maximum(target.probability @ guess**2 - mean**2, 0.0)
    return float((share**2 * spread).sum() / target.draws)
