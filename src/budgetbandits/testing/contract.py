"""The promises of every policy to its driver, as checks for any policy.

Each takes a policy and raises `Violation`, or returns why it does not apply. Seeds are fixed: a check that holds once
always holds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from budgetbandits.allocation.allocation import Allocation
from budgetbandits.errors import BudgetBanditsError, MissingKnowledge
from budgetbandits.policies import parse_policy
from budgetbandits.policies.base import KNOWLEDGE, Knowledge, Policy, Request, State

BUDGET = 10.0**9
"""Budget of a game that no check spends."""

ROUNDS = 100_000
"""Rounds of the long game."""

FEATURE_NAMES = ("x", "y", "z")
"""Names of the features of a request, for policies that use features."""

FEATURES = len(FEATURE_NAMES)
"""Number of features of a request."""

Check = Callable[[Policy], str | None]
"""A check of a policy: raises `Violation`, or returns why it does not apply."""


class Violation(AssertionError):
    """A promise that the policy does not keep, and how that was seen."""


def expect(kept: bool, otherwise: str) -> None:
    """Raise a `Violation` with this message unless the promise is kept."""
    if not kept:
        raise Violation(otherwise)


def knowledge(arms: int, budget: float = BUDGET) -> Knowledge:
    """Everything that a policy may need to know beforehand, for this number of arms."""
    return Knowledge(budget, horizon=10.0**9, cost_floor=0.1, costs=np.linspace(0.2, 0.9, arms), features=FEATURES)


def feedback(rng: np.random.Generator) -> tuple[float, float]:
    """Draw a reward and a cost such as any law may produce: 0, 1, numbers between, some of them almost 0 or 1."""
    reward, cost = rng.choice([0.0, 1.0, rng.random(), 1e-12, 1.0 - 1e-12], size=2)
    return float(reward), float(cost)


def any_request(policy: Policy, world: np.random.Generator) -> tuple[Request, ...]:
    """Draw a request: empty for most policies. One that uses features gets numbers, a single 1, or unknown features."""
    if not policy.uses_features:
        return ()
    kinds = None, world.normal(size=FEATURES), np.eye(FEATURES)[world.integers(FEATURES)]
    return (Request(features=kinds[world.integers(len(kinds))]),)


def choose(policy: Policy, state: State, rng: np.random.Generator, *request: Request) -> int:
    """The arm that the policy chooses; a `Violation` if it chooses none, since there is money for any."""
    arm = policy.choose(state, rng, *request)
    if arm is None:
        raise Violation("choose stops although the budget is nearly infinite")
    return arm


def play(policy: Policy, state: State, rng: np.random.Generator, world: np.random.Generator, rounds: int) -> list[int]:
    """Play this many rounds and return the chosen arms."""
    chosen = []
    for _ in range(rounds):
        request = any_request(policy, world)
        arm = choose(policy, state, rng, *request)
        chosen.append(arm)
        policy.observe(state, arm, *feedback(world), rng, *request)
    return chosen


def _generators() -> tuple[np.random.Generator, np.random.Generator]:
    """The random generators of the policy and of the world."""
    return np.random.default_rng(1), np.random.default_rng(2)


def _arrays(state: State) -> dict[str, np.ndarray[Any, Any]]:
    return {name: value for name, value in vars(state).items() if isinstance(value, np.ndarray)}


# --- the checks ------------------------------------------------------------------------------------------------------


def same_seed_same_choices(policy: Policy) -> None:
    """Two games with equal generators have the same choices."""
    games = [play(policy, policy.start(7, knowledge(7)), *_generators(), 300) for _ in range(2)]
    expect(games[0] == games[1], "two games with the same generators differ; draw from the generator that is passed in")


def a_saved_state_goes_on(policy: Policy) -> None:
    """A state that is written and read continues bit for bit."""
    state = policy.start(7, knowledge(7))
    rng, world = _generators()
    play(policy, state, rng, world, 150)
    written = json.dumps(state.to_dict())
    copy = policy.start(7, Knowledge(**json.loads(written)["known"])).filled(json.loads(written))
    expect(json.dumps(copy.to_dict()) == written, "a state that is written and read is another one")
    again = np.random.default_rng(), np.random.default_rng()
    for to, of in zip(again, (rng, world), strict=True):
        to.bit_generator.state = of.bit_generator.state
    same = play(policy, state, rng, world, 300) == play(policy, copy, *again, 300)
    expect(same, "after reading a saved state other arms are chosen; keep everything that choices need in the state")


def any_number_of_arms(policy: Policy) -> None:
    """Choices are arms, whether there are 2, 3 or 10,000 of them."""
    for arms in (2, 3, 10_000):
        state = policy.start(arms, knowledge(arms))
        for arm in play(policy, state, *_generators(), 50):
            expect(type(arm) is int and 0 <= arm < arms, f"of {arms} arms it chooses {arm!r}; return an int")


def feedback_at_any_time(policy: Policy) -> None:
    """Feedback may come late, in any order, in batches, and for arms that were never chosen."""
    state = policy.start(6, knowledge(6))
    rng, world = _generators()
    waiting: list[tuple[int, tuple[Request, ...]]] = []
    for _ in range(60):
        requests = [any_request(policy, world) for _ in range(world.integers(0, 12))]
        waiting += [(choose(policy, state, rng, *request), request) for request in requests]
        world.shuffle(waiting)
        for _ in range(world.integers(0, len(waiting) + 1)):
            arm, request = waiting.pop()
            policy.observe(state, arm, *feedback(world), rng, *request)
        for _ in range(world.integers(0, 3)):
            policy.observe(state, int(world.integers(6)), *feedback(world), rng)
    expect(all(0 <= arm < 6 for arm, _ in waiting), "it chooses an arm that there is not")


def first_pulls_in_turn(policy: Policy) -> str | None:
    """A policy that pulls every arm once does so even when it is asked again before the first feedback."""
    if not policy.first_pulls:
        return "it does not pull every arm once"
    state, rng = policy.start(5, knowledge(5)), np.random.default_rng(1)
    chosen = [policy.choose(state, rng) for _ in range(5)]
    expect(chosen == [0, 1, 2, 3, 4], f"the first five choices without feedback are {chosen}, not each arm once")
    return None


class _WatchedKnowledge(Knowledge):
    """Knowledge that raises a `Violation` when a policy reads anything that it has not declared."""

    declared: frozenset[str] = frozenset()

    def __getattribute__(self, name: str) -> Any:
        if name == "__dict__":
            raise Violation("start looks through everything there is to know; read what needs names")
        declared = object.__getattribute__(self, "declared")
        expect(name not in KNOWLEDGE or name in declared, f"start reads {name!r} without declaring it under needs")
        return object.__getattribute__(self, name)


def reads_what_it_declares(policy: Policy) -> None:
    """``start`` reads the knowledge that ``needs`` declares and nothing else, and asks for what is missing."""
    truth: dict[str, Any] = {"budget": 100.0, "cost_floor": 0.1, "costs": np.array([0.2, 0.9]), "horizon": 1000.0}
    expect(policy.needs <= set(KNOWLEDGE), f"needs names {sorted(policy.needs)}; there is {', '.join(KNOWLEDGE)}")
    watched = _WatchedKnowledge.__new__(_WatchedKnowledge)
    for name, value in (truth | {"scales": None, "unlearned": 0, "declared": policy.needs}).items():
        object.__setattr__(watched, name, value)
    kept = policy.start(2, watched).known.to_dict().keys()
    expect(kept == policy.needs, "the state's known is not what needs names; make it with select_knowledge(known)")
    for name in policy.needs - {"horizon"}:
        try:
            policy.start(2, Knowledge(**{key: truth[key] for key in policy.needs - {name}}))
        except MissingKnowledge as error:
            expect(name in str(error), f"without {name} the error does not name it: {error}")
        else:
            raise Violation(f"start does not ask for {name}, which needs names; read it with select_knowledge(known)")


def a_long_game_of_numbers(policy: Policy) -> None:
    """A long game counts every pull and leaves no NaN in the state."""
    state = policy.start(5, knowledge(5))
    rng, world = _generators()
    outcomes = world.choice([0.0, 1.0, 0.5, 1e-12], size=(ROUNDS, 2), p=[0.3, 0.3, 0.3, 0.1]).tolist()
    arm = 0
    for number, (reward, cost) in enumerate(outcomes):
        # later rounds come in batches with one choice each: many states far apart say more than many neighbours
        request = any_request(policy, world)
        if number < ROUNDS // 200 or number % 100 == 0:
            arm = choose(policy, state, rng, *request)
        policy.observe(state, arm, reward, cost, rng, *request)
    expect(int(state.pulls.sum()) == ROUNDS, f"after {ROUNDS:,} rounds the state counts {state.pulls.sum():,} pulls")
    for name, value in _arrays(state).items():
        expect(value.dtype.kind != "f" or not np.isnan(value).any(), f"{name} of the state is not a number")


def learns_about_one_arm_at_a_time(policy: Policy) -> None:
    """A driver that keeps a state in rows writes back one arm for each pull; a larger change is a new array."""
    state = policy.start(6, knowledge(6, budget=60.0))
    rng, world = _generators()
    for _ in range(200):
        before, copies = _arrays(state), {name: value.copy() for name, value in _arrays(state).items()}
        request = any_request(policy, world)
        arm = policy.choose(state, rng, *request)
        for name, array in before.items():
            expect(np.array_equal(array, copies[name]), f"choose changes {name} in place; assign a new array")
        if arm is None:
            break
        before, copies = _arrays(state), {name: value.copy() for name, value in _arrays(state).items()}
        policy.observe(state, arm, *feedback(world), rng, *request)
        for name, array in before.items():
            same = np.array_equal(np.delete(array, arm, axis=-1), np.delete(copies[name], arm, axis=-1))
            expect(same, f"observe of one arm changes {name} of another in place; assign a new array")


def retired_arms_rest(policy: Policy) -> None:
    """Retired arms are never chosen."""
    state = policy.start(4, knowledge(4))
    rng, world = _generators()
    state.active[0] = False
    play(policy, state, rng, world, 40)
    state.active[2] = False
    chosen = set(play(policy, state, rng, world, 200))
    expect(chosen <= {1, 3}, f"of four arms 0 and 2 are retired, and {sorted(chosen)} are chosen; look at state.active")


def a_new_arm_gets_its_chance(policy: Policy) -> str | None:
    """An arm that is added later, and is the best, is chosen within 400 rounds."""
    if policy.rule_kind(math.inf) == "explore first":
        return "ε-first has done with exploring"
    state = policy.start(3, knowledge(3, budget=100.0))
    rng, world = _generators()
    play(policy, state, rng, world, 30)
    state.extend(policy.new_arm_state(state, replace(state.known, costs=np.array([0.3]))))
    chosen = set()
    for _ in range(400):
        arm = policy.choose(state, rng)
        if arm is None:
            break
        chosen.add(arm)
        policy.observe(state, arm, *((1.0, 0.1) if arm == 3 else (0.0, 0.9)), rng)
    expect(3 in chosen, "an arm that is added later, and is the best, is not chosen in 400 rounds")
    return None


def history_counts(policy: Policy) -> str | None:
    """A history of many good pulls of arm 1 and bad pulls of the others makes arm 1 the favourite."""
    state = policy.start(4, knowledge(4))
    for arm in range(4):
        policy.add_history(state, arm, 40_000, *((36_000.0, 4_000.0) if arm == 1 else (2_000.0, 36_000.0)))
    expect(state.pulls.tolist() == [40_000] * 4, "recall of 40,000 pulls does not count them")
    if policy.rule_kind(math.inf) == "explore first":
        return "ε-first explores by its budget, whatever it recalls"
    chosen = [policy.choose(state, np.random.default_rng(seed)) for seed in range(20)]
    expect(chosen.count(1) >= 15, f"with 40,000 recalled pulls each it chooses {chosen}, though arm 1 is far better")
    return None


def totals_are_those_of_the_outcomes(policy: Policy) -> str | None:
    """Totals are the sums of the history and of the outcomes; these are 0 or 1, which no policy rounds."""
    state = policy.start(3, knowledge(3))
    policy.add_history(state, 2, 8, 4.0, 2.0)
    if policy.totals(state, 2) is None:
        return "it does not say what it has learned, so it cannot be carried over to other policies and units"
    policy.observe(state, 2, 1.0, 1.0, np.random.default_rng(1))
    expected = {0: (0.0, 0.0, 0.0), 2: (9.0, 5.0, 3.0)}
    for arm, sums in expected.items():
        totals = policy.totals(state, arm)
        expect(
            totals is not None and np.allclose(totals, sums),
            f"the outcomes, rewards and costs of an arm add up to {sums}, and its totals say {totals}",
        )
    return None


def features_tell_requests_apart(policy: Policy) -> str | None:
    """A policy that uses features learns which arm pays for which of three kinds of requests."""
    if not policy.uses_features:
        return "it looks at no features"
    if not policy.looks_at_requests:
        raise Violation("uses_features is set, but it never sees a request; make it a RequestPolicy")
    state = policy.start(FEATURES, knowledge(FEATURES))
    rng, world = _generators()
    right = []
    for _ in range(300):
        kind = int(world.integers(FEATURES))
        request = Request(features=np.eye(FEATURES)[kind])
        arm = choose(policy, state, rng, request)
        policy.for_requests.observe(state, arm, float(arm == kind), 0.5, rng, request)
        right.append(arm == kind)
    late = sum(right[-100:])
    expect(late >= 75, f"where a feature says which arm pays, {late} of the last 100 of 300 choices are right")
    return None


def its_text_names_it(policy: Policy) -> None:
    """The policy's text is parsed to an equal policy with the same hash."""
    try:
        parsed = parse_policy(policy.spec)
    except BudgetBanditsError as error:
        raise Violation(f"its text {policy.spec!r} cannot be read: {error}") from None
    expect(parsed == policy, f"its text {policy.spec!r} is read as {parsed}")
    expect(hash(parsed) == hash(policy), "two equal ones have different hashes; write @dataclass(frozen=True)")


def a_saved_allocation_goes_on(policy: Policy) -> None:
    """An allocation that is saved and read continues bit for bit, wherever it is stopped."""
    for stop in (0, 1, 37, 120):
        spend, world = _allocation(policy), np.random.default_rng(4)
        for _ in range(stop):
            _step(spend, world, policy.uses_features)
        copy = Allocation.from_json(spend.to_json())
        expect(copy.to_json() == spend.to_json(), f"saved after {stop} steps, it is read as another one")
        seeds = world.integers(2**32, size=80)
        trails = [
            [_step(allocation, np.random.default_rng(seed), policy.uses_features) for seed in seeds]
            for allocation in (spend, copy)
        ]
        expect(trails[0] == trails[1], f"saved after {stop} steps, it goes on otherwise")
        expect(copy.to_json() == spend.to_json(), f"saved after {stop} steps, it ends otherwise")


def _allocation(policy: Policy) -> Allocation:
    arms = ["a", "b", "c", "d"]
    settings: dict[str, Any] = {"costs": dict.fromkeys(arms, 1.0)} if "costs" in policy.needs else {}
    settings |= {"cost_floor": 0.2} if "cost_floor" in policy.needs else {}
    settings |= {"features": FEATURE_NAMES} if policy.uses_features else {}
    return Allocation(policy, arms, budget=300.0, cost_max=2.0, reward_max=5.0, seed=3, **settings)


def _step(allocation: Allocation, rng: np.random.Generator, with_features: bool) -> list[str]:
    """Ask once or twice, then give feedback for one of the open asks; the names of the chosen arms."""
    names = []
    for _ in range(rng.integers(1, 3)):
        values = {name: float(rng.normal()) for name in FEATURE_NAMES} if with_features else None
        names.append(allocation.ask(features=values).arm)
    pending = allocation.pending
    ask = pending[rng.integers(len(pending))]
    allocation.tell(ask, reward=float(rng.choice([0.0, 5.0, 2.5])), cost=float(rng.choice([0.0, 2.0, 0.7])))
    return names


CONTRACT: dict[str, Check] = {  # the checks of the contract, by name
    check.__name__.replace("_", " "): check
    for check in (
        same_seed_same_choices,
        a_saved_state_goes_on,
        any_number_of_arms,
        feedback_at_any_time,
        first_pulls_in_turn,
        reads_what_it_declares,
        learns_about_one_arm_at_a_time,
        retired_arms_rest,
        a_new_arm_gets_its_chance,
        history_counts,
        totals_are_those_of_the_outcomes,
        features_tell_requests_apart,
        its_text_names_it,
        a_saved_allocation_goes_on,
        a_long_game_of_numbers,
    )
}
