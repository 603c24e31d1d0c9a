"""How often intervals of off-policy estimates cover the truth."""

from collections import Counter

from scipy import stats

from budgetbandits import off_policy


def uncovered(logs, truths, ways=("inverse_propensity", "self_normalised", "doubly_robust")):
    """The intervals, by arm and kind, that cover the truth in fewer or more of these logs than 95 % makes 99.99 %
    likely; ``truths`` has the mean reward and cost of each arm."""
    covered = Counter()
    for log in logs:
        for arm, truth in truths.items():
            found = off_policy.evaluate(log, off_policy.one_arm(log, arm))
            for value, true, what in zip((found.reward, found.cost), truth, ("reward", "cost"), strict=True):
                for way in ways:
                    each = getattr(value, way)
                    covered[arm, what, way] += each.low <= true <= each.high
    low, high = stats.binom.ppf([0.00005, 0.99995], len(logs), 0.95)
    return {key: hits for key, hits in covered.items() if not low <= hits <= high}
