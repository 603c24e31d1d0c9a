"""What every policy promises. The policies are found by the registry: a new one is held to this without more work."""

import json
from collections.abc import Mapping

import numpy as np
import pytest

from budgetbandits import POLICIES, Allocation
from budgetbandits.errors import MissingKnowledge
from budgetbandits.policies import parse_policy
from budgetbandits.policies.base import KNOWLEDGE

BUDGET = 10.0**9
EVERY = pytest.mark.parametrize("name", POLICIES)


def knowledge(policy, arms, budget=BUDGET):
    truth = {"budget": budget, "cost_floor": 0.1, "costs": np.linspace(0.2, 0.9, arms)}
    return {what: truth[what] for what in policy.needs}


def started(name, arms, budget=BUDGET):
    policy = POLICIES[name]()
    return policy, policy.start(arms, knowledge(policy, arms, budget))


def feedback(rng):
    """Any outcome a law can produce: the ends, the middle, and numbers that are almost 0 or 1."""
    return tuple(rng.choice([0.0, 1.0, rng.random(), 1e-12, 1.0 - 1e-12], size=2))


def play(policy, state, rng, world, rounds):
    chosen = []
    for _ in range(rounds):
        arm = policy.choose(state, rng)
        chosen.append(arm)
        policy.observe(state, arm, *feedback(world), rng)
    return chosen


@EVERY
def test_same_seed_same_choices(name):
    games = []
    for _ in range(2):
        policy, state = started(name, 7)
        games.append(play(policy, state, np.random.default_rng(1), np.random.default_rng(2), 300))
    assert games[0] == games[1]


@EVERY
def test_a_state_written_and_read_goes_on_bit_for_bit(name):
    policy, state = started(name, 7)
    rng, world = np.random.default_rng(1), np.random.default_rng(2)
    play(policy, state, rng, world, 150)
    written = json.dumps(state.to_dict())  # Python's JSON knows infinity; Allocation writes it portably
    copy = policy.start(7, json.loads(written)["known"]).filled(json.loads(written))
    assert json.dumps(copy.to_dict()) == written
    rng_copy, world_copy = np.random.default_rng(), np.random.default_rng()
    rng_copy.bit_generator.state = rng.bit_generator.state
    world_copy.bit_generator.state = world.bit_generator.state
    assert play(policy, state, rng, world, 300) == play(policy, copy, rng_copy, world_copy, 300)


@EVERY
@pytest.mark.parametrize("arms", [2, 3, 10_000])
def test_any_number_of_arms(name, arms):
    policy, state = started(name, arms)
    chosen = play(policy, state, np.random.default_rng(1), np.random.default_rng(2), 50)
    assert all(isinstance(arm, int) and 0 <= arm < arms for arm in chosen)


@EVERY
def test_feedback_for_any_arm_at_any_time(name):
    """Asks outrun feedback, feedback comes in any order, in batches, and for arms that were never chosen."""
    policy, state = started(name, 6)
    rng, world = np.random.default_rng(1), np.random.default_rng(2)
    waiting = []
    for _ in range(60):
        waiting += [policy.choose(state, rng) for _ in range(world.integers(0, 12))]
        world.shuffle(waiting)
        for _ in range(world.integers(0, len(waiting) + 1)):
            policy.observe(state, waiting.pop(), *feedback(world), rng)
        for _ in range(world.integers(0, 3)):
            policy.observe(state, int(world.integers(6)), *feedback(world), rng)
    assert all(0 <= arm < 6 for arm in waiting)


@EVERY
def test_first_pulls_are_not_repeated_while_feedback_is_on_its_way(name):
    policy, state = started(name, 5)
    rng = np.random.default_rng(1)
    chosen = [policy.choose(state, rng) for _ in range(5)]
    assert name in ("bts", "thompson") or chosen == [0, 1, 2, 3, 4]


class Watched(Mapping):
    """Refuses to tell anything that was not declared."""

    def __init__(self, truth, declared):
        self._truth, self._declared = truth, declared

    def __getitem__(self, key):
        assert key in self._declared, f"reads {key!r} without declaring it"
        return self._truth[key]

    def __iter__(self):
        raise AssertionError("looks through everything there is to know")

    def __len__(self):
        return len(self._truth)


@EVERY
def test_reads_nothing_it_did_not_declare(name):
    policy = POLICIES[name]()
    truth = {"budget": 100.0, "cost_floor": 0.1, "costs": np.array([0.2, 0.9])}
    state = policy.start(2, Watched(truth, policy.needs))
    assert policy.needs <= set(KNOWLEDGE)
    assert set(state.known) == policy.needs
    for what in policy.needs:
        with pytest.raises(MissingKnowledge, match=what):
            policy.start(2, {key: truth[key] for key in policy.needs - {what}})


@EVERY
def test_a_hundred_thousand_rounds_without_a_nan(name):
    """A NaN in a score has no argmax: `best` raises on it. Sums are looked at as well."""
    policy, state = started(name, 5)
    rng, world = np.random.default_rng(1), np.random.default_rng(2)
    outcomes = world.choice([0.0, 1.0, 0.5, 1e-12], size=(100_000, 2), p=[0.3, 0.3, 0.3, 0.1]).tolist()
    for reward, cost in outcomes:
        policy.observe(state, policy.choose(state, rng), reward, cost, rng)
    assert state.pulls.sum() == 100_000
    for value in vars(state).values():
        assert not isinstance(value, np.ndarray) or value.dtype.kind != "f" or not np.isnan(value).any()


@EVERY
def test_only_the_arm_that_is_told_changes_in_place(name):
    """Whoever keeps a state in rows writes back one arm for each pull; what changes more is a new array."""
    policy, state = started(name, 6, budget=60.0)
    rng, world = np.random.default_rng(1), np.random.default_rng(2)

    def arrays():
        return {key: value for key, value in vars(state).items() if isinstance(value, np.ndarray)}

    for _ in range(200):
        before, copies = arrays(), {key: value.copy() for key, value in arrays().items()}
        arm = policy.choose(state, rng)
        for key, array in before.items():
            assert np.array_equal(array, copies[key]), key
        if arm is None:
            break
        copies = {key: value.copy() for key, value in arrays().items()}
        policy.observe(state, arm, *feedback(world), rng)
        for key, array in arrays().items():
            assert np.array_equal(np.delete(array, arm, axis=-1), np.delete(copies[key], arm, axis=-1)), key


@EVERY
def test_retired_arms_are_never_chosen(name):
    policy, state = started(name, 4)
    rng, world = np.random.default_rng(1), np.random.default_rng(2)
    state.active[0] = False
    play(policy, state, rng, world, 40)
    state.active[2] = False
    assert set(play(policy, state, rng, world, 200)) <= {1, 3}


@EVERY
def test_an_arm_added_later_gets_its_chance(name):
    policy, state = started(name, 3, budget=100.0)
    rng, world = np.random.default_rng(1), np.random.default_rng(2)
    play(policy, state, rng, world, 30)
    known = dict(state.known) | ({"costs": np.array([0.3])} if "costs" in state.known else {})
    state.extend(policy.start(1, known))
    chosen = []
    for _ in range(400):
        arm = policy.choose(state, rng)
        if arm is None:
            break
        chosen.append(arm)
        policy.observe(state, arm, *((1.0, 0.1) if arm == 3 else (0.0, 0.9)), rng)
    assert 3 in chosen or name.startswith("epsilon-first")  # ε-first has done with exploring


@EVERY
def test_history_counts_like_pulls(name):
    """Recalling good pulls of arm 1 and bad ones of the others makes it the favourite; many, for cautious policies."""
    policy, state = started(name, 4)
    for arm in range(4):
        policy.recall(state, arm, 40_000, *((36_000.0, 4_000.0) if arm == 1 else (2_000.0, 36_000.0)))
    assert state.pulls.tolist() == [40_000] * 4
    if not name.startswith("epsilon-first"):
        chosen = [policy.choose(state, np.random.default_rng(seed)) for seed in range(20)]
        assert chosen == [1] * 20


@EVERY
def test_the_text_of_a_policy_names_it(name):
    policy = POLICIES[name]()
    assert policy.spec == name
    assert parse_policy(policy.spec) == policy
    assert hash(policy) == hash(POLICIES[name]())


@EVERY
@pytest.mark.parametrize("stop", [0, 1, 37, 120])
def test_an_allocation_written_and_read_goes_on_bit_for_bit(name, stop):
    policy = POLICIES[name]()
    arms = ["a", "b", "c", "d"]
    settings = {"costs": dict.fromkeys(arms, 1.0)} if "costs" in policy.needs else {}
    settings |= {"cost_floor": 0.2} if "cost_floor" in policy.needs else {}
    spend = Allocation(policy, arms, budget=300.0, cost_max=2.0, reward_max=5.0, seed=3, **settings)
    world = np.random.default_rng(4)

    def step(allocation, rng):
        """Ask up to twice, tell one of the open asks."""
        names = [str(allocation.ask()) for _ in range(rng.integers(1, 3))]
        pending = allocation.pending
        allocation.tell(pending[rng.integers(len(pending))], rng.choice([0.0, 5.0, 2.5]), rng.choice([0.0, 2.0, 0.7]))
        return names

    for _ in range(stop):
        step(spend, world)
    copy = Allocation.from_json(spend.to_json())
    assert copy.to_json() == spend.to_json()
    seeds = world.integers(2**32, size=80)
    trail = [[step(each, np.random.default_rng(seed)) for seed in seeds] for each in (spend, copy)]
    assert trail[0] == trail[1]
    assert copy.to_json() == spend.to_json()
