"""No engine plays another policy than the one written: each way in which one could, and what is done about it."""

from __future__ import annotations

import pickle
import re
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import cloudpickle
import numpy as np
import pytest
from numba.core import event
from numba.extending import overload

from budgetbandits import POLICIES, Problem, parse_policy, simulate
from budgetbandits.errors import BadParameter, NotANumber
from budgetbandits.policies.epsilon_first import EpsilonFirst, EpsilonFirstGreedy
from budgetbandits.policies.gittins_ratio import GittinsRatio
from budgetbandits.policies.index import RISING_INDEX, IndexPolicy, Monotonicity, where
from budgetbandits.policies.kube import KUBE, FractionalKUBE
from budgetbandits.policies.primal_dual import PrimalDualBwK
from budgetbandits.policies.prior import PriorPolicy
from budgetbandits.policies.statistics import Tally
from budgetbandits.policies.thompson import BudgetedThompson
from budgetbandits.problems.distributions import Bernoulli, Fixed, Independent
from budgetbandits.problems.problem import Arm
from budgetbandits.simulation.dispatch import EPSILON_FIRST_METHODS, engine_for
from budgetbandits.simulation.engine_support import EngineUnsupported
from budgetbandits.simulation.engines.index import conformance
from budgetbandits.simulation.engines.index.conformance import rehearse, try_out
from budgetbandits.simulation.engines.index.engine import IndexGames
from budgetbandits.simulation.engines.index.rules import INDEX_METHODS, compiled
from budgetbandits.simulation.reference import ReferencePlayer
from deep import mostly_deep
from own_rules import AboveTheFloor, CautiousRatio, Forgetful, Steep, cautious_ratio, with_own

PROBLEM = Problem.bernoulli([0.9, 0.3, 0.5], [0.5, 0.2, 0.9])


def played(policy, **changes):
    return simulate(PROBLEM, policy, [30.0], runs=4, seed=1, **changes)


def assert_left_to_the_reference(policy, why):
    """Auto says why, plays what the reference plays to the bit, and "fast" refuses with the same words."""
    outcome, reference = played(policy), played(policy, engine="reference")
    assert outcome.engine == "reference"
    assert why in outcome.engine_reason
    assert np.array_equal(outcome.pulls, reference.pulls)
    assert np.array_equal(outcome.reward, reference.reward)
    with pytest.raises(BadParameter, match="no fast engine plays") as refused:
        played(policy, engine="fast")
    assert why in str(refused.value)


# --- methods -----------------------------------------------------------------------------------------------------


class Confused(KUBE):
    """Learns from every pull as if it had been one of another arm."""

    name = "confused"

    def observe(self, state, arm, reward, cost, rng):
        super().observe(state, (arm + 1) % len(state.pulls), reward, cost, rng)


class Stubborn(EpsilonFirst):
    """Pulls the last arm whatever happens."""

    name = "stubborn"

    def choose(self, state, rng):
        return len(state.pulls) - 1


def test_policies_with_methods_of_their_own():
    assert_left_to_the_reference(Confused(), "an observe of its own")
    assert_left_to_the_reference(Stubborn(), "choose of its own")
    assert (played(Stubborn()).pulls[:, 0, :2] == 0).all()


@pytest.mark.parametrize("name", INDEX_METHODS)
def test_any_method_the_index_engines_stand_in_for(name):
    for parent in (KUBE, PrimalDualBwK, FractionalKUBE):
        engine = engine_for(PROBLEM, with_own(parent, name)())
        assert engine.name == "reference"
        article = "an" if name[0] in "ao" else "a"
        assert engine.reason == f"it has {article} {name} of its own, which no compiled engine knows"


def test_the_prices_of_primal_dual_bwk():
    own = type("Own", (PrimalDualBwK,), {"_raise_prices": lambda self, state, arm: None})
    assert "raise_prices of its own" in engine_for(PROBLEM, own()).reason


@pytest.mark.parametrize("name", EPSILON_FIRST_METHODS)
def test_any_method_the_engine_of_epsilon_first_stands_in_for(name):
    for parent in (EpsilonFirst, EpsilonFirstGreedy):
        assert f"{name} of its own" in engine_for(PROBLEM, with_own(parent, name)()).reason


def test_a_subclass_that_changes_nothing_is_played_fast():
    for parent, engine in ((KUBE, "index blocks"), (EpsilonFirst, "epsilon-first"), (PrimalDualBwK, "index blocks")):
        assert engine_for(PROBLEM, type("Renamed", (parent,), {"name": "renamed"})()).name == engine


def test_a_thompson_sampling_whose_class_was_changed(monkeypatch):
    monkeypatch.setattr(BudgetedThompson, "start", lambda self, arms, known: None, raising=False)
    assert "start" in engine_for(PROBLEM, BudgetedThompson()).reason


def test_a_thompson_sampling_of_ones_own():
    assert_left_to_the_reference(type("Own", (BudgetedThompson,), {"name": "own"})(), "exactly bts and thompson")


# --- extras ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wide(IndexPolicy):
    name: ClassVar[str] = "wide"
    index = staticmethod(cautious_ratio)
    monotone: ClassVar[Monotonicity] = RISING_INDEX
    width: float = 0.3


def with_width(name, rule):
    """Another index that takes the width, of which nothing is declared."""
    return type(name, (Wide,), {"index": rule, "monotone": Monotonicity(), "extras": lambda self, _: (self.width,)})


def with_extras(name, extras, parent=Wide, **attributes):
    return type(name, (parent,), {"name": name, "extras": lambda self, state: extras(state), **attributes})()


FADING = with_extras("fading", lambda state: (0.3 / (1.0 + state.cost.sum()),))
LATE = with_extras("late", lambda state: (0.3 if state.pulls.sum() < 10_000 else 3.0,))
"""Changes its mind after ten thousand rounds."""
GENEROUS, BARE = with_extras("generous", lambda state: (0.3, 0.4)), with_extras("bare", lambda state: 0.3)
OF_EACH_ARM, DECLARED = (
    with_extras(f"of-each-arm-{extra}", lambda state: (np.linspace(0.1, 0.9, len(state.pulls)),), first_extra=extra)
    for extra in ("constant", "own")
)
UNTIL_IT_COSTS = with_extras("until-it-costs", lambda state: (0.2 if (state.cost == 0.0).any() else 0.01,))
"""Looks at what has cost nothing yet: invisible wherever every arm has cost something."""


@dataclass(frozen=True)
class Deviation(IndexPolicy):
    """Says variance and gives its root."""

    name: ClassVar[str] = "deviation"
    index = staticmethod(lambda mean_reward, mean_cost, pulls, rounds, spread: mean_reward + spread)
    first_extra: ClassVar[str] = "variance"

    def extras(self, state: Tally) -> tuple[Any, ...]:
        return (np.sqrt(np.maximum(state.reward_squared / state.seen - state.mean_reward**2, 0.0)),)


LARGEST_COST = with_extras("largest", lambda state: (state.mean_cost.max(),), Deviation, first_extra="smallest cost")


@pytest.mark.parametrize("policy", [FADING, LATE], ids=lambda policy: policy.name)
def test_extras_that_depend_on_the_state(policy):
    assert_left_to_the_reference(policy, "number 1 of its extras changes with the state")


@pytest.mark.parametrize("policy", [Deviation(), LARGEST_COST], ids=lambda policy: policy.name)
def test_extras_that_are_not_what_first_extra_declares(policy):
    assert_left_to_the_reference(policy, f"is not the {policy.first_extra}")


class WithoutPrior(PriorPolicy):
    """Fits a prior and does not hand it on: the engine would write where nothing is."""

    name: ClassVar[str] = "without-prior"
    first_pulls: ClassVar[bool] = False
    index = staticmethod(
        lambda reward, cost, pulls, rounds, rewards, costs, left: (pulls * reward + left) / (pulls + 1.0)
    )

    def extras(self, state: Tally) -> tuple[Any, ...]:
        return self.money_extras(state)


class Swapped(GittinsRatio):
    """Hands on the prior of the costs first."""

    name: ClassVar[str] = "swapped"

    def extras(self, state: Tally) -> tuple[Any, ...]:
        *known, good, bad, costly, free, width = super().extras(state)
        return (*known, costly, free, good, bad, width)


class Forced(GittinsRatio):
    """Pulls every arm once first, in which time the reference fits the prior and the engine would not."""

    name: ClassVar[str] = "forced"
    first_pulls: ClassVar[bool] = True


def test_a_prior_must_be_where_the_engine_fits_it():
    assert_left_to_the_reference(WithoutPrior(), "prior_extras")
    assert_left_to_the_reference(Swapped(), "is not the money")
    assert_left_to_the_reference(Forced(), "without first pulls")


def test_a_number_for_each_arm_must_be_declared():
    assert_left_to_the_reference(OF_EACH_ARM, "first_extra = 'own'")
    assert played(DECLARED).engine == "index blocks"


@pytest.mark.parametrize("engine", ["auto", "fast", "reference"])
@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (
            Wide(0.5),
            r"extras gives 0 of the further arguments of its index, which takes 1 \(width\); let extras return",
        ),
        (GENEROUS, "extras gives 2 of the further arguments of its index, which takes 1"),
        (BARE, r"extras gives 0.3; let it return a tuple, such as \(width,\)"),
    ],
)
def test_extras_of_the_wrong_number(policy, words, engine):
    with pytest.raises(BadParameter, match=words):
        played(policy, engine=engine)


def with_default(mean_reward, mean_cost, pulls, rounds, width=2.0):
    return mean_reward + np.sqrt(width * np.log(rounds) / pulls)


def test_a_default_of_the_index_is_its_extra():
    """Without extras the reference takes the default, and so must the engine: not 0."""
    own = type("Own", (IndexPolicy,), {"name": "own", "index": staticmethod(with_default)})
    game = IndexGames(PROBLEM, own(), [30.0]).play(np.random.SeedSequence(0))
    wide = with_width("Own", staticmethod(with_default))
    same, other = (IndexGames(PROBLEM, wide(width), [30.0]).play(np.random.SeedSequence(0)) for width in (2.0, 0.0))
    assert engine_for(PROBLEM, own()).name == "index plain loop"
    assert game[0][3].tolist() == same[0][3].tolist() != other[0][3].tolist()


# --- the index ---------------------------------------------------------------------------------------------------


def bare_ratio(mean_reward, mean_cost, pulls, rounds):
    return mean_reward / mean_cost


@dataclass(frozen=True)
class BareRatio(IndexPolicy):
    name: ClassVar[str] = "bare-ratio"
    index = staticmethod(bare_ratio)


class RisingRatio(BareRatio):
    name = "bare-ratio"
    monotone = RISING_INDEX


def test_an_index_that_is_not_a_number_is_one_error_in_every_engine():
    """The first pulls bring nothing and cost nothing: 0/0."""
    law = Independent(Bernoulli(0.0), Bernoulli(1e-9))
    problem = Problem((Arm("one", law), Arm("two", law)))
    messages = set()
    for policy, engine in ((BareRatio(), "reference"), (BareRatio(), "fast"), (RisingRatio(), "fast")):
        with pytest.raises(NotANumber, match="give it one there with where") as error:
            simulate(problem, policy, [1.0], runs=1, engine=engine)
        messages.add(str(error.value))
    assert messages == {
        "bare-ratio: the index of arm 0 is not a number at mean_reward 0, mean_cost 0, pulls 1, rounds 2; give it one "
        "there with where, such as where(mean_cost > 0.0, mean_reward / mean_cost, np.inf)"
    }


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("who", ["the leader", "another arm"])
def test_an_index_that_ceases_to_be_a_number(who, lazy):
    """Found where the leader's index turns into NaN, and where another arm's does; what is declared is wrong then."""
    indices = {
        "the leader": lambda mean_reward, mean_cost, pulls, rounds: (0.0 * pulls + 1.0) / np.sqrt(6.5 - pulls),
        "another arm": lambda mean_reward, mean_cost, pulls, rounds: pulls * np.sqrt(10.5 - rounds + 9.0 * (pulls - 1)),
    }
    monotone = replace(Monotonicity(), rises_with_rounds=True)
    policy = type("Own", (BareRatio,), {"index": staticmethod(indices[who]), "monotone": monotone})()
    with pytest.raises(NotANumber, match=r"index of arm \d is not a number"):
        IndexGames(PROBLEM, policy, [200.0], lazy=lazy).play(np.random.SeedSequence(0))


class Picky(FractionalKUBE):
    name = "picky"
    index = staticmethod(lambda mean_reward, mean_cost, pulls, rounds, cost: mean_reward + np.sqrt(0.8 - cost) / pulls)


@pytest.mark.parametrize("engine", ["reference", "lazy", "plain"])
def test_nobody_asks_for_the_index_of_an_arm_that_cannot_be_paid(engine):
    """Once each has been pulled, 0.4 is left: the index of the first arm is NaN and does not matter."""
    problem = Problem(tuple(Arm(f"{cost}", Independent(Bernoulli(0.5), Fixed(cost))) for cost in (0.9, 0.5, 0.2)))
    players = {
        "reference": lambda: ReferencePlayer(problem, Picky(), [2.0]),
        "lazy": lambda: IndexGames(problem, Picky(), [2.0]),
        "plain": lambda: IndexGames(problem, Picky(), [2.0], lazy=False),
    }
    ((_, _, _, pulls),) = players[engine]().play(np.random.SeedSequence(0), 1_000)
    assert pulls.tolist() == [1, 1, 3]


WIDTH = 1.0


def reads_a_global(mean_reward, mean_cost, pulls, rounds):
    return mean_reward + WIDTH * np.log(rounds) / pulls


def test_an_index_that_reads_a_global_is_compiled_for_its_value(monkeypatch):
    assert compiled(reads_a_global)(0.5, 0.5, 1.0, np.e) == 1.5
    monkeypatch.setattr(f"{__name__}.WIDTH", 2.0)
    assert compiled(reads_a_global)(0.5, 0.5, 1.0, np.e) == 2.5
    monkeypatch.setattr(f"{__name__}.WIDTH", np.ones(1))
    with pytest.raises(EngineUnsupported, match="reads WIDTH"):
        compiled(reads_a_global)


def summed(a, b, c, d, e, f):
    return a + 2.0 * b + 4.0 * c + 8.0 * d + 16.0 * e + 32.0 * f


def in_halves(mean_reward):
    return 0.5 * doubled(mean_reward)


def doubled(mean_reward):
    return 2.0 * mean_reward


def of_six(mean_reward, mean_cost, pulls, rounds, a, b, c, d, e, f):
    return in_halves(mean_reward) + summed(a, b, c, d, e, f) * np.log(rounds) / pulls


@dataclass(frozen=True)
class OfSix(IndexPolicy):
    name: ClassVar[str] = "of-six"
    index = staticmethod(of_six)
    scale: float = 0.01

    def extras(self, state: Tally) -> tuple[Any, ...]:
        return tuple(self.scale * k for k in range(1, 7))


def test_an_index_takes_as_many_extras_and_helpers_as_it_likes():
    numbers = 0.5, 0.5, 4.0, 100.0, *(0.01 * k for k in range(1, 7))
    assert compiled(of_six)(*numbers) == pytest.approx(of_six(*numbers), rel=1e-12)
    narrow, wide = (simulate(PROBLEM, OfSix(scale), [30.0], runs=200, seed=1) for scale in (0.01, 0.3))
    assert (narrow.engine, wide.engine) == ("index plain loop", "index plain loop")
    slow = simulate(PROBLEM, OfSix(0.3), [30.0], runs=200, seed=1, engine="reference")
    for arm in range(3):
        one, other = slow.pulls[:, 0, arm], wide.pulls[:, 0, arm]
        spread = np.sqrt((one.var() + other.var()) / 200)
        assert abs(one.mean() - other.mean()) < 5 * spread  # false alarm: one in a million
    assert narrow.pulls[:, 0, 2].mean() < wide.pulls[:, 0, 2].mean()


def test_a_process_compiles_an_index_once_however_often_it_is_sent(monkeypatch):
    """And tries it out once, whatever the problem."""
    tried = []
    monkeypatch.setattr(conformance, "try_out", lambda policy: tried.append(policy) or try_out(policy))
    rule = staticmethod(lambda mean_reward, mean_cost, pulls, rounds, width: in_halves(mean_reward) + width / pulls)
    own, begun = with_width("Sent", rule), []
    with event.install_listener("numba:compile", Compilations(begun)):
        for arms in (2, 3, 4):
            sent = pickle.loads(cloudpickle.dumps(own()))
            problem = Problem.bernoulli([0.5] * arms, [0.4] * arms)
            assert engine_for(problem, sent).name == "index plain loop"
            IndexGames(problem, sent, [30.0]).play(np.random.SeedSequence(0))
    assert begun.count("<lambda>") == 2  # the index, and the adapter by which engines call it
    assert len(tried) == 1


class Compilations(event.Listener):
    def __init__(self, begun):
        self.begun = begun

    def on_start(self, event):
        self.begun.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event):
        pass


@pytest.mark.parametrize("step", [1e-8, 1e-12])
def test_an_index_that_rounds_otherwise_compiled_is_the_same_index(step):
    """The difference of two numbers that are nearly equal: of its digits, up to all but four are rounding."""

    def slope(mean_reward, mean_cost, pulls, rounds):
        return (np.tanh(1.0 + mean_reward + step) - np.tanh(1.0 + mean_reward)) / step

    try_out(type("Own", (BareRatio,), {"name": "slope", "index": staticmethod(slope)})())


@pytest.mark.parametrize(("factor", "same"), [(1.0 + 1e-8, True), (1.0 + 1e-5, False)])
def test_an_index_that_is_another_one_compiled_is_left_to_the_reference(factor, same):
    def helper(mean_reward):
        return mean_reward

    overload(helper)(lambda mean_reward: lambda mean_reward: factor * mean_reward)
    rule = staticmethod(lambda mean_reward, mean_cost, pulls, rounds: helper(mean_reward) + 0.0 * factor)
    engine = engine_for(PROBLEM, type("Own", (BareRatio,), {"name": "off", "index": rule})())
    if same:
        assert engine.name == "index plain loop"
        return
    assert engine.name == "reference"
    said, right = re.search(r"compiled, its index is (\S+) instead of (\S+) at", engine.reason).groups()
    assert said != right


@pytest.mark.parametrize(
    ("index", "why"),
    [
        (np.fmin, "no plain function"),
        (lambda mean_reward, mean_cost, pulls, rounds, *rest: mean_reward, "no plain function"),
        (lambda mean_reward, mean_cost, pulls: mean_reward, "takes 3 arguments"),
        (lambda mean_reward, mean_cost, pulls, rounds: float(str(1.5)) * undefined, "Numba cannot compile"),  # noqa: F821
    ],
)
def test_an_index_that_cannot_be_compiled_says_why(index, why):
    with pytest.raises(EngineUnsupported, match=why):
        compiled(index)


# --- rehearsals --------------------------------------------------------------------------------------------------

INDEXED = [policy for name in POLICIES if isinstance(policy := parse_policy(name), IndexPolicy)]
REHEARSED = [
    policy for policy in INDEXED if policy.name in ("kube", "ucb-bv2", "omega-star-ucb", "imed-ratio", "pd-bwk")
]
OWN = [CautiousRatio(), Steep(), AboveTheFloor(), Forgetful()]


@pytest.mark.parametrize("policy", [*mostly_deep(INDEXED, REHEARSED), *OWN], ids=lambda policy: policy.name)
def test_what_the_engines_play_passes_a_rehearsal(policy):
    """The package's own policies are tried out and rehearsed here, others when they are first used."""
    if not engine_for(PROBLEM, policy).compiled:
        return
    try_out(policy)
    if policy.softmax or policy.exploration(5) > 0.0:
        return  # its choice is a draw; distributions are compared in test_agreement
    for arms, money in ((5, 60), (40, 50)):
        rehearse(policy, arms, money)


class Boastful(Forgetful):
    """Declares what is not so."""

    name = "boastful"
    monotone = RISING_INDEX


def test_a_false_declaration_is_found_in_a_rehearsal():
    with pytest.raises(EngineUnsupported, match="where its choose names"):
        rehearse(Boastful(), 5, 60)


def test_extras_that_look_at_arms_that_have_cost_nothing():
    problem = Problem.bernoulli([0.6, 0.9], [0.02, 0.03])
    assert "changes with the state" in engine_for(problem, UNTIL_IT_COSTS).reason


def stern(mean_reward, mean_cost, pulls, rounds):
    """Gives an arm up for as long as it may hardly be good."""
    upper = mean_reward + np.sqrt(0.5 * np.log(np.maximum(rounds, 1.0)) / pulls)
    return where(upper >= 0.7, mean_reward, -np.inf)


class Stern(IndexPolicy):
    name = "stern"
    index = staticmethod(stern)


class RisingStern(Stern):
    name = "rising-stern"
    monotone = replace(RISING_INDEX, ignores_cost=True)


def test_an_index_of_minus_infinity_means_not_this_arm():
    problem = Problem.bernoulli([0.5, 0.45, 0.4, 0.55], [0.5] * 4)
    slow = simulate(problem, Stern(), [300.0], runs=50, seed=3, engine="reference")
    fast = simulate(problem, Stern(), [300.0], runs=1_000, seed=3)
    assert fast.engine == "index plain loop"
    for one, other in ((slow.rounds, fast.rounds), (slow.spend, fast.spend)):
        spread = np.sqrt(one.var() / 50 + other.var() / 1_000)
        assert abs(one.mean() - other.mean()) < 5 * spread  # false alarm: one in a million


def test_minus_infinity_is_refused_where_it_cannot_be_played():
    problem = Problem.bernoulli([0.5, 0.45, 0.4, 0.55], [0.5] * 4)
    with pytest.raises(NotANumber, match=r"is −∞ at .*engine='reference'"):
        simulate(problem, RisingStern(), [300.0], runs=20, seed=3, engine="fast")


class CheapOrDear(FractionalKUBE):
    """Its index ignores the prices, which decide who can be paid."""

    name = "cheap-or-dear"
    index = staticmethod(POLICIES["ucb1"].index)
    monotone = POLICIES["ucb1"].monotone
    first_extra = "constant"

    def extras(self, state):
        return ()


def test_arms_of_different_prices_are_not_taken_for_one_another():
    arms = tuple(Arm(str(i), Independent(Fixed(0.5), Fixed(0.9 if i % 2 else 0.1))) for i in range(20))
    outcome = simulate(Problem(arms), CheapOrDear(), [15.3], runs=60, seed=1, engine="fast")
    assert outcome.spend == pytest.approx(15.3)


def test_every_engine_says_why_it_is_not_a_faster_one():
    many = Problem.bernoulli([0.5] * 40, [0.5] * 40)
    cases = {
        ("bts", PROBLEM): ("thompson", ""),
        ("epsilon-first-greedy", PROBLEM): ("epsilon-first", ""),
        ("kube", PROBLEM): ("index blocks", ""),
        ("ucb-bv2", PROBLEM): ("index plain loop", ""),
        ("ucb-bv2", many): ("index bounds", "smallest cost, which moves"),
        ("bayes-ucb", PROBLEM): ("reference", "Numba cannot compile its index"),
        ("kube-knapsack", PROBLEM): ("reference", "a choose of its own"),
        ("primal-dual-bwk:horizon=50", PROBLEM): ("paced plain loop", ""),
        ("bts-paced", PROBLEM): ("paced plain loop", ""),
        ("ucb-b2", PROBLEM): ("index bounds", "its index depends on variances, which blocks of pulls do not tell"),
        ("imed-ratio", PROBLEM): ("index bounds", "its index depends on the best ratio, which moves with every pull"),
        ("b-greedy", PROBLEM): ("index plain loop", "it draws the arm at random, so every index counts in every round"),
    }
    for (name, problem), (engine, reason) in cases.items():
        found = engine_for(problem, parse_policy(name))
        assert found.name == engine, name
        assert reason in found.reason
        assert bool(reason) == bool(found.reason)
    library = "Unknown attribute 'betainccinv' of type Module(<module 'scipy.special'>)"  # no folder of this machine
    assert library in engine_for(PROBLEM, parse_policy("bayes-ucb")).reason
    remedy = "never falls with the rounds; if that is so, give the class monotone = RISING_INDEX"
    assert remedy in engine_for(PROBLEM, Forgetful()).reason
    partly = type(
        "Partly", (Forgetful,), {"index": staticmethod(bare_ratio), "monotone": Monotonicity(rises_with_rounds=True)}
    )
    assert engine_for(PROBLEM, partly()).name == "index bounds"
