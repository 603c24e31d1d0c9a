"""Which choices for one segment of several `bts-paced` leaves out: against what they could bring."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from budgetbandits.numerics.fluid import best_mix
from budgetbandits.policies.base import Knowledge, Request
from budgetbandits.policies.paced.policy import PacedThompson
from budgetbandits.policies.paced.selection import (
    DrawnMeans,
    candidates_of,
    exploration_is_wasted,
    select,
    select_many,
    substitute_places,
    too_few_upgrades,
)


class Trusting(PacedThompson):
    """The policy without these rules: it pulls whatever its draws name."""

    def draw(self, *given):
        return super().draw(*given)._replace(requests=None)


@pytest.mark.parametrize(("successes", "failures"), [(1, 31), (3, 9), (40, 12), (400, 100), (80, 2)])
@pytest.mark.parametrize("deviations", [1.0, 2.0, 3.0, 4.0])
def test_what_a_trial_could_bring_at_most(successes, failures, deviations):
    """What knowing the truth is worth, by quadrature of the Beta law: the rule puts it at 0.85 to 6 times that."""
    law = stats.beta(successes, failures)
    mean, deviation = law.mean(), law.std()
    loss = min(deviations * deviation, 0.9 * (1.0 - mean))
    alone, _ = integrate.quad(lambda x: (x - mean - loss) * law.pdf(x), mean + loss, 1.0, epsabs=1e-16)
    needed = loss / alone
    for more, verdict in ((1.0 / 0.85, False), (1.0 / 6.0, True)):
        vain = exploration_is_wasted(loss, mean, successes + failures, deviation**2, deviation**2, more * needed)
        assert bool(vain) is verdict


def test_what_is_unsure_besides_the_reward_makes_a_trial_worth_more():
    """The docstring's formula by hand: σ² is the variance of the difference, and z² smaller by the reward's part."""
    mean, certainty, loss, variance, spread = 0.4, 50.0, 0.1, 0.004, 0.01
    apart = mean * np.log(mean / 0.5) + (1.0 - mean) * np.log((1.0 - mean) / 0.5)
    z = np.sqrt(2.0 * certainty * apart * 0.4)
    needed = loss / (np.sqrt(spread) * stats.norm.pdf(z) / (1.0 + z * z))
    for requests, verdict in ((0.999 * needed, True), (1.001 * needed, False)):
        assert bool(exploration_is_wasted(loss, mean, certainty, variance, spread, requests)) is verdict


def test_what_a_plan_must_have_left():
    """Two upgrades where being short costs far more, one where it costs twice as much, none where it costs the same."""
    for price, if_short, least in ((1e-9, 1.0, 2.0), (0.5, 1.0, 1.0), (0.9, 1.0, 0.2), (1.0, 1.0, 0.0)):
        assert not too_few_upgrades(least + 1e-6, price, if_short)
        assert least == 0.0 or too_few_upgrades(least - 1e-6, price, if_short)


def known(policy, rewards, costs, counts, left, requests):
    """A state with some outcomes of each arm, in all of two segments: rewards a tenth about their means, costs as
    they are. This much money is left for this many requests."""
    state, rng = policy.start(len(rewards), Knowledge(budget=1.0, horizon=1.0)), np.random.default_rng(0)
    state.widen(2)
    for segment in (0, 1):
        for arm, count in enumerate(counts):
            for number in range(count):
                reward = rewards[arm] + (0.1 if number % 2 else -0.1)
                policy.observe(state, arm, reward, costs[arm], rng, Request(segment))
    state.known = replace(state.known, budget=state.paid + left, horizon=float(state.pulls.sum() + requests))
    return state


def shares(policy, state, coming=None, segment=0):
    """Of the arms, one by one and all at once, which must have one law: a false alarm in 1 of 10,000 other seeds."""
    rng, request = np.random.default_rng(1), Request(segment, future_arms=coming)
    some = np.bincount([policy.choose(state, rng, request) for _ in range(400)], minlength=len(state.pulls))
    many = np.bincount(policy.choices(state, rng, 20_000, request), minlength=len(state.pulls))
    both = np.array([some, many])[:, some + many > 0]
    assert both.shape[1] == 1 or stats.chi2_contingency(both).pvalue > 1e-4
    return many / many.sum()


def test_a_cheaper_arm_is_tried_while_that_may_pay():
    """It pays 0.2 less by eight outcomes, and money is there for all. With a hundred requests to come it is not
    tried; with a million it is, as often as without the rule."""
    policy, arms = PacedThompson(forget=0.0), ((0.6, 0.8), (0.1, 0.2), (4, 100))
    before = Trusting(forget=0.0)
    for requests, tried in ((100, False), (1_000_000, True)):
        state = known(policy, *arms, requests, requests)
        share, usual = shares(policy, state)[0], shares(before, state)[0]
        assert bool(share > 0.0) is tried
        assert usual > 0.0
    assert share == pytest.approx(usual, rel=0.3)


def test_a_costlier_arm_is_tried_and_so_is_what_is_left_of_excluded_ones():
    policy = PacedThompson(forget=0.0)
    state = known(policy, (0.8, 0.6, 0.5), (0.1, 0.5, 0.05), (100, 4, 4), 100, 100)
    _, costlier, cheaper = shares(policy, state)
    assert costlier > 0.0
    assert cheaper == 0.0
    coming, state.active[:] = state.active.copy(), (False, False, True)
    assert shares(policy, state, coming)[2] == 1.0


def test_a_cheaper_arm_is_tried_once_in_every_segment():
    policy = PacedThompson(forget=0.0)
    state = known(policy, (0.6, 0.8), (0.1, 0.2), (4, 100), 100, 100)
    state.sums[:, 1, 0], state.answered = 0.0, [104, 100]
    assert shares(policy, state)[0] == 0.0
    assert shares(policy, state, segment=1)[0] > 0.0


def test_what_is_better_known_is_no_trial():
    """Far fewer outcomes speak for the costly arm, which is taken to bring a little more."""
    policy = PacedThompson(forget=0.0)
    assert shares(policy, known(policy, (0.78, 0.8), (0.1, 0.2), (400, 4), 1, 2))[0] > 0.1


def replaced_by_hand(drawn, rate, requests):
    """`instead` arm by arm, from SciPy's laws."""
    laws = [[[stats.beta(*ab) for ab in zip(*rows, strict=True)] for rows in zip(*kind, strict=True)]
            for kind in zip(*drawn.shapes, strict=True)]  # fmt: skip
    means = np.array([[[law.mean() for law in row] for row in kind] for kind in laws])
    price = best_mix(means[0], means[1] * drawn.scales, drawn.weight, rate).price
    here = range(len(drawn.scales))
    reward, cost = ([kind[drawn.segment][arm] for arm in here] for kind in laws)
    spread = [r.var() + (price * scale) ** 2 * c.var() for r, c, scale in zip(reward, cost, drawn.scales, strict=True)]
    costs = [law.mean() * scale for law, scale in zip(cost, drawn.scales, strict=True)]
    worth = [law.mean() - price * each for law, each in zip(reward, costs, strict=True)]
    answer = []
    for arm in here:
        known = [b for b in here if drawn.may[b] and spread[b] < spread[arm] and (price > 0.0 or costs[b] > costs[arm])]
        best = max(known, key=lambda b: worth[b], default=arm)
        loss, kept = worth[best] - worth[arm], not drawn.tried[arm] and costs[arm] < costs[best]
        often = max(drawn.weight[drawn.segment], 1.0 / len(drawn.weight))
        law = (reward[arm].mean(), sum(reward[arm].args), reward[arm].var())
        vain = loss > 0.0 and exploration_is_wasted(loss, *law, spread[arm] + spread[best], often * requests)
        answer.append(best if vain and not kept else arm)
    return answer, price


def test_who_answers_in_the_place_of_whom():
    """Random beliefs, on scales of their own; some arms are replaced by cheaper ones, some by costlier ones."""
    rng, replaced = np.random.default_rng(9), set()
    for _ in range(80):
        segments, arms = int(rng.integers(2, 4)), int(rng.integers(2, 5))
        shape, some = (2, segments, arms), (lambda n: rng.random(n) < 0.7)
        shapes = tuple(np.exp(rng.uniform(0.0, 6.0, shape)) for _ in range(2))
        drawn = DrawnMeans(
            np.arange(arms), np.zeros(0), np.zeros(0), rng.dirichlet(np.full(segments, 0.2)), some(arms),
            int(rng.integers(segments)), shapes, 10.0 ** rng.uniform(-3.0, 0.0, arms), some(arms), None,
        )  # fmt: skip
        rate, requests = 10.0 ** rng.uniform(-3.0, 0.5), 10.0 ** rng.uniform(0.0, 3.0)
        drawn = drawn._replace(requests=requests)
        found = substitute_places(drawn, rate, candidates_of(drawn), range(arms))
        by_hand, price = replaced_by_hand(drawn, rate, requests)
        assert found == by_hand
        cost = (shapes[0] / (shapes[0] + shapes[1]))[1, drawn.segment] * drawn.scales
        replaced |= {(bool(cost[new] > cost[arm]), price > 0.0) for arm, new in enumerate(found) if new != arm}
    assert replaced == {(True, True), (False, True), (True, False)}


@pytest.mark.parametrize(
    ("segments", "requests", "forget"), [(1, 100.0, 0.0), (2, np.inf, 0.0), (2, 100.0, 1e-9), (2, -1.0, 0.0)]
)
def test_with_one_segment_and_without_a_known_end_nothing_is_left_out(segments, requests, forget):
    """Draw for draw as without the rules. An arm that changes may be worth a trial whatever is known of it."""
    policy = PacedThompson(forget=forget)
    before = Trusting(forget=forget)
    state = known(policy, (0.5, 0.8), (0.1, 0.2), (4, 100), 100, requests)
    if segments == 1:
        state.sums, state.answered = state.sums.sum(axis=1, keepdims=True), [208]
    some, others = (
        [each.choose(state, rng) for _ in range(500)]
        for each, rng in ((policy, np.random.default_rng(3)), (before, np.random.default_rng(3)))
    )
    assert some == others


@pytest.mark.parametrize(("upgrades", "taken"), [(0.5, False), (1.5, False), (2.5, True)])
def test_the_last_upgrades_are_left_out_where_being_short_is_costly(upgrades, taken):
    """A second arm that pays 0.6 more for 0.2 and a third that pays 0.02 more for 20, two hundred requests to come,
    and beyond the second arm money for some of the third. Once in a number of requests it is chosen, or never."""
    policy, arms = PacedThompson(forget=0.0), ((0.2, 0.8, 0.82), (0.001, 0.01, 1.0), (400, 400, 400))
    state = known(policy, *arms, 200 * 0.01 + upgrades * 0.99, 200)
    chosen, before = shares(policy, state)[2], shares(Trusting(forget=0.0), state)[2]
    assert before == pytest.approx(upgrades / 200, rel=0.35)
    assert chosen == pytest.approx(before, rel=0.35) if taken else chosen < 0.25 * before


@pytest.mark.parametrize(("usual", "taken"), [(0.05, True), (0.11, True), (0.9, False)])
def test_an_upgrade_that_is_drawn_to_be_cheap_counts_at_its_usual_cost(usual, taken):
    """The draw has money for ten of them at 0.1, which pays little more than the arm at 0.01. Lots are 0."""
    mean = np.array([[0.5, 0.51], [0.01, usual]])[:, None].repeat(2, axis=1)
    means = np.array([[[0.5, 0.51]] * 2]), np.array([[[0.01, 0.1], [0.01, 5.0]]])
    drawn = DrawnMeans(
        np.arange(2), *means, np.array([0.5, 0.5]), np.ones(2, dtype=bool), 0, (100.0 * mean, 100.0 * (1.0 - mean)),
        np.ones(2), np.zeros(2, dtype=bool), 100.0,
    )  # fmt: skip
    rate = 0.01 + 10 * 0.09 / 100.0

    class Lots:
        def random(self):
            return 0.0

    assert select_many(drawn, rate, np.zeros(1)).tolist() == [int(taken)]
    assert select(drawn._replace(reward=means[0][0], cost=means[1][0]), rate, Lots()) == int(taken)


def test_upgrades_that_are_worth_their_price_are_taken_to_the_last():
    """Cheap and costly arm have nearly the same ratio: money that is missed costs little more than money left over."""
    policy = PacedThompson(forget=0.0)
    assert shares(policy, known(policy, (0.2, 0.8), (0.1, 0.42), (400, 400), 20 * 0.1 + 0.7 * 0.32, 20))[1] > 0.0


def test_one_draw_is_answered_as_each_of_many():
    """Random beliefs on scales of their own, one draw of them and one lot: the loops of `select` and the arrays of
    `select_many` name the same arm. Some of the segments are rare, and some plans have few upgrades left."""
    rng = np.random.default_rng(12)

    class Lots:
        def random(self):
            return lot

    for _ in range(300):
        segments, arms = int(rng.integers(2, 5)), int(rng.integers(2, 5))
        shapes = tuple(np.exp(rng.uniform(0.0, 5.0, (2, segments, arms))) for _ in range(2))
        scales, weight = 10.0 ** rng.uniform(-3.0, 0.0, arms), rng.dirichlet(np.full(segments, 0.2))
        reward, cost = rng.beta(*shapes)
        drawn = DrawnMeans(
            np.arange(arms), reward[None], (cost * scales)[None], weight, rng.random(arms) < 0.8,
            int(rng.integers(segments)), shapes, scales, rng.random(arms) < 0.8, 10.0 ** rng.uniform(0.0, 3.0),
        )  # fmt: skip
        if drawn.may.any():
            rate, lot = float(scales.max() * 10.0 ** rng.uniform(-3.0, 0.5)), float(rng.random() ** 3)
            one = select(drawn._replace(reward=drawn.reward[0], cost=drawn.cost[0]), rate, Lots())
            assert one == select_many(drawn, rate, np.array([lot]))[0]


def test_an_upgrade_counts_at_its_usual_cost_beyond_that_of_the_arm_it_replaces_on_a_scale_of_its_own():
    """As above, and the cheap arm costs nine tenths of a hundredth: the costly arm usually costs 0.891 more, not 0."""
    mean = np.array([[0.5, 0.51], [0.9, 0.9]])[:, None].repeat(2, axis=1)
    means = np.array([[0.5, 0.51]] * 2), np.array([[0.009, 0.1], [0.009, 5.0]])
    drawn = DrawnMeans(
        np.arange(2), *means, np.array([0.5, 0.5]), np.ones(2, dtype=bool), 0, (100.0 * mean, 100.0 * (1.0 - mean)),
        np.array([0.01, 1.0]), np.zeros(2, dtype=bool), 100.0,
    )  # fmt: skip

    class Lots:
        def random(self):
            return 0.0

    assert select(drawn, 0.009 + 10 * 0.09 / 100.0, Lots()) == 0
