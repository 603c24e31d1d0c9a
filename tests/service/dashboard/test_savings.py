"""What a campaign saved, and what is believed of arms with small caps: from the requests that were told in full."""

from types import SimpleNamespace

import numpy as np
import pytest

from budgetbandits.service.dashboard.arms import saved_by
from budgetbandits.service.dashboard.campaign import campaign_json, campaign_view
from budgetbandits.service.dashboard.query import PageQuery
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.stores.records import CampaignSettings, Counts
from budgetbandits.terms import Terms
from deep import deep
from served import pull


def numbers(store, name):
    """Of a campaign's page; the same from events and from rollups."""

    def read():
        return store.read(lambda tx: campaign_json(campaign_view(tx, tx.campaign(name), PageQuery())))

    before = read()
    roll_up(store)
    assert read()["saved"] == before["saved"]
    return before


def arms(*counts, cap=1_000_000):
    """Arms of these counts, by their numbers, and a campaign of theirs."""
    row = SimpleNamespace(settings=CampaignSettings(Terms(), cap, "plain"))
    made = [
        SimpleNamespace(number=number, name=f"arm {number}", active=True, scale=cap) for number in range(len(counts))
    ]
    return made, dict(enumerate(counts)), row


def played(rng, pulls, failing=0.0, late=0.0, chance=0.5):
    """An arm that brings 1 with this chance for half a unit; some fail at full cost, some rewards are not told yet."""
    failed = rng.random(pulls) < failing
    told = ~failed & (rng.random(pulls) >= late)
    reward = float((rng.random(told.sum()) < chance).sum())
    costs = np.where(failed, 1_000_000, 500_000)
    return Counts(
        0, 0, decided=pulls, costs_reported=pulls, rewards_reported=int(told.sum()), cost=int(costs.sum()),
        spent=int(costs.sum()), failed=int(failed.sum()), failed_cost=int(costs[failed].sum()), reward=reward,
        reward_squared=reward,
        cost_squared=(costs.astype(float) ** 2).sum(), failed_cost_squared=(costs[failed].astype(float) ** 2).sum(),
    )  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [{}, {"failing": 0.5, "late": 0.5}, *deep({"failing": 0.5}, {"late": 0.5}, {"failing": 0.2, "late": 0.9})],
    ids=str,
)
def test_of_arms_that_are_the_same_nothing_is_saved(case):
    """Of 60 campaigns at least 53 have 0 in the interval, and their medians are not all on one side: fails by chance
    with probability below 0.01 if 95 % have."""
    rng, inside, above = np.random.default_rng(6), 0, 0
    for _ in range(60):
        made = saved_by(*arms(played(rng, 300, **case), played(rng, 120, **case)), 10**9)
        inside += made["saved"]["low"] <= 0.0 <= made["saved"]["high"]
        above += made["saved"]["median"] > 0.0
    assert inside >= 53
    assert 18 <= above <= 46


def by_thompson_sampling(rng, campaigns, pulls, chances):
    """What each arm of each campaign is told when the policy chooses: every pull costs half a unit."""
    brought, pulled = np.zeros((campaigns, len(chances))), np.zeros((campaigns, len(chances)), int)
    every = np.arange(campaigns)
    for _ in range(pulls):
        arms = np.argmax(rng.beta(1.0 + brought, 1.0 + pulled - brought), axis=1)
        brought[every, arms] += rng.random(campaigns) < np.array(chances)[arms]
        pulled[every, arms] += 1
    return [
        [Counts(0, 0, decided=count, costs_reported=count, rewards_reported=count, cost=500_000 * count,
                spent=500_000 * count, reward=reward, reward_squared=reward, cost_squared=2.5e11 * count)
         for reward, count in zip(rewards, counts, strict=True)]
        for rewards, counts in zip(brought.tolist(), pulled.tolist(), strict=True)
    ]  # fmt: skip


def test_no_saving_is_claimed_where_a_policy_has_chosen_among_arms_that_are_the_same():
    """Arms that had bad luck are dropped and keep their low estimates: medians are too high, by what the manual says.
    Of 60 campaigns at most 9 claim a saving, of which 4.5 % do: fails by chance with probability below 0.002."""
    played = by_thompson_sampling(np.random.default_rng(3), 80, 200, [0.4, 0.4, 0.4])
    of_all_arms = [counts for counts in played if all(each.decided for each in counts)]
    made = [saved_by(*arms(*counts), 100_000_000) for counts in of_all_arms[:60]]
    assert len(made) == 60
    assert sum(each["claim"] == "saved" for each in made) <= 9
    assert sum(each["saved"]["median"] > 0.0 for each in made) >= 40
    assert 0.03 < np.mean([each["saved"]["median"] / each["spent"] for each in made]) < 0.12


def test_a_saving_that_there_is_is_claimed_and_so_is_a_loss():
    rng = np.random.default_rng(4)
    [counts] = by_thompson_sampling(rng, 1, 600, [0.8, 0.2, 0.2])
    assert saved_by(*arms(*counts), 10**9)["claim"] == "saved"
    assert saved_by(*arms(played(rng, 60, chance=0.9), played(rng, 900, chance=0.1)), 10**9)["claim"] == "lost"
    assert saved_by(*arms(played(rng, 60), played(rng, 60)), 10**9)["claim"] is None


def test_an_even_split_would_meet_the_failures_of_each_arm():
    """Both answer alike; the second fails nine times of ten, for the full price: who seldom chose it has saved."""
    rng = np.random.default_rng(2)
    good, bad = played(rng, 950), played(rng, 50, failing=0.9)
    made = saved_by(*arms(good, bad), good.spent + bad.spent)
    # half the money at 1 per unit, and half at 0.05 / 0.95
    assert made["even"]["median"] == pytest.approx(made["spent"] * (1.0 + 0.053) / 2, rel=0.1)
    assert made["saved"]["low"] > 0.5 * made["spent"]
    assert (made["best_arm"], made["left_out"]) == ("arm 0", 0.0)
    never = Counts(0, 0, decided=5, costs_reported=5, failed=5, cost=5_000_000, failed_cost=5_000_000, spent=5_000_000)
    assert saved_by(*arms(good, never), good.spent + never.spent)["saved"]["low"] > 0.0


def test_money_and_reward_are_of_the_same_requests(store):
    """Of each arm 8 answered, 2 without a reward; 2 failed; 2 expired and charged; 1 overran its cap by 3."""
    engine = store.engine
    engine.create("ads", "bts", 1000.0, {"a": 1.0, "b": 1.0}, hold_seconds=60.0)
    for arm in "ab":
        for number in range(8):
            pull(
                engine, "ads", f"{arm} {number}", arms=[arm], cost=0.5, reward=None if number < 2 else float(number % 2)
            )
        for number in range(2):
            pull(engine, "ads", f"fails {arm} {number}", arms=[arm], cost=1.0, failed=True)
            engine.decide("ads", f"expires {arm} {number}", arms=[arm])
            store.clock.now += 3600.0
            engine.expire_due()
    made = numbers(store, "ads")["saved"]
    # six eighths of 4 for answers and of 2 for failures; the rest, and the expired holds, are left out
    assert (made["spent"], made["reward"], made["left_out"]) == (9.0, 6.0, 12.0 - 9.0 + 4.0)
    assert made["saved"]["low"] < 0.0 < made["saved"]["high"]
    engine.feedback(engine.decide("ads", "dear", arms=["a"]).decision, cost=4.0, reward=1.0)
    made = numbers(store, "ads")["saved"]
    assert made["spent"] == pytest.approx(9.0 / 2 + (6.0 + 1.0) * 7 / 9)
    assert made["saved"]["low"] < 0.0 < made["saved"]["high"]


def test_nothing_is_said_where_too_little_is_told():
    rng = np.random.default_rng(3)
    known = played(rng, 100)
    told_nothing = Counts(0, 0, decided=9, expired=9, spent=9_000_000)
    without_reward = Counts(0, 0, decided=9, costs_reported=9, cost=9_000_000, spent=9_000_000, cost_squared=9e12)
    without_cost = Counts(0, 0, decided=9, rewards_reported=9, reward=9.0, reward_squared=9.0)
    for other in (told_nothing, without_reward, without_cost):
        assert saved_by(*arms(known, other), 10**9) is None
    assert saved_by(*arms(known), 10**9) is None
    assert saved_by(*arms(played(rng, 50, chance=0.0), played(rng, 50, chance=0.0)), 10**9) is None
    assert saved_by(*arms(known, known), 10**9) is not None


def test_rewards_that_are_ahead_of_their_costs_are_left_out():
    twice = Counts(0, 0, decided=80, costs_reported=40, rewards_reported=80, cost=20_000_000,
                   spent=20_000_000, reward=40.0, reward_squared=40.0, cost_squared=40 * 25e10)  # fmt: skip
    made = saved_by(*arms(twice, twice), 40_000_000)
    assert (made["spent"], made["reward"], made["left_out"]) == (40.0, 40.0, 0.0)
    assert made["saved"]["low"] < 0.0 < made["saved"]["high"]


def test_with_a_horizon_nothing_is_said_of_what_was_saved(store):
    for name, terms in (("ads", {}), ("paced", {"horizon": 100})):
        store.engine.create(name, "bts-paced", 60.0, {"a": 1.0, "b": 1.0}, **terms)
        for number in range(8):
            pull(store.engine, name, f"{number}", arms=["ab"[number % 2]], cost=0.5, reward=1.0)
    assert numbers(store, "ads")["saved"] is not None
    assert numbers(store, "paced")["saved"] is None


@pytest.mark.parametrize(("policy", "own"), [("bts", True), ("ucb-bv1", False)])
def test_prices_are_on_the_scale_by_which_the_policy_learns(store, policy, own):
    """Sixty answers at exactly 0.005, of an arm with the cap 0.01 beside one with 100."""
    engine = store.engine
    engine.create("ads", policy, 500.0, {"large": 100.0, "small": 0.01}, known={"cost_floor": 0.001})
    for name, cost, often in (("large", 0.05, 2), ("small", 0.005, 4)):
        for number in range(60):
            pull(engine, "ads", f"{name} {number}", arms=[name], cost=cost, reward=float(number % often == 0))
    large, small = numbers(store, "ads")["arms"]
    if own:
        assert small["price"]["median"] == pytest.approx(0.005, rel=0.01)
        assert small["price"]["high"] < 0.006
        assert small["ratio"]["low"] < 50.0 < small["ratio"]["high"] < 100.0
        assert small["chance_of_best"] > 0.97
    else:  # to this policy 1 is the largest cap, and such a price is next to nothing
        assert small["price"]["high"] > 0.05
    assert large["price"]["high"] < 0.3
