"""The oracle against enumeration, closed forms and Lemma 1."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetbandits import Problem, best_arms, best_ratio, family, optimum
from budgetbandits.errors import BadParameter, NotALattice
from budgetbandits.problems.distributions import Beta, Copula, Fixed, Independent, JointTable, Lattice
from budgetbandits.problems.oracle import cost_step, gaps, reward_bounds
from budgetbandits.problems.problem import Arm


def problem_of(*laws):
    return Problem(tuple(Arm(f"a{i}", law) for i, law in enumerate(laws)))


def by_recursion(problem, budget, step, over=False):
    """The optimality equation in exact fractions, written from the rules and not from the program."""
    arms = [
        [(int(Fraction(c).limit_denominator(64) / step), Fraction(p), Fraction(r)) for c, p, r in zip(*a, strict=True)]
        for a in (arm.law.cost_atoms() for arm in problem.arms)
    ]

    @cache
    def value(left):
        if left <= 0 and not over:
            return Fraction(0)
        options = []
        for atoms in arms:
            stay = sum(p for k, p, _ in atoms if k == 0)
            total = sum(p * (r + (value(left - k) if k else 0)) for k, p, r in atoms if k <= left)
            options.append(total / (1 - stay))
        return max(options)

    return value(int(Fraction(budget) / step))


lattice = st.builds(
    Lattice,
    st.just([0.0, 0.25, 0.5, 0.75, 1.0]),
    st.lists(st.integers(0, 5), min_size=5, max_size=5).filter(lambda w: sum(w[1:]) > 0),
)


@settings(deadline=None)
@given(st.lists(st.tuples(lattice, lattice), min_size=2, max_size=3), st.integers(0, 20))
def test_a_remainder_pays_for_free_pulls(laws, quarters):
    """A budget between two multiples of the step: play goes on, free of charge, until a pull costs something."""
    problem = problem_of(*(Independent(reward, cost) for reward, cost in laws))
    best = optimum(problem, quarters / 4 + 0.1)
    step = Fraction(best.step)
    exact = by_recursion(problem, (Fraction(quarters, 4) + Fraction(1, 10)) // step * step, step, over=True)
    assert best.reward == pytest.approx(float(exact))


def test_a_remainder_by_hand():
    assert optimum(Problem.bernoulli([0.5, 0.5], [0.1, 0.5]), 0.5).reward == pytest.approx(0.9 * 0.5 / 0.1)


@settings(deadline=None)
@given(st.lists(st.tuples(lattice, lattice), min_size=2, max_size=4), st.integers(1, 40))
def test_agrees_with_enumeration_and_lemma_1(laws, quarters):
    problem = problem_of(*(Independent(reward, cost) for reward, cost in laws))
    best = optimum(problem, quarters / 4)
    step = Fraction(best.step)
    budget = Fraction(quarters, 4)
    exact = by_recursion(problem, budget // step * step, step, over=budget % step > 0)
    assert best.reward == pytest.approx(float(exact))
    low, high = reward_bounds(problem, quarters / 4)
    assert low - 1e-9 <= best.best_arm_reward <= best.reward + 1e-9
    assert best.reward <= high + 1e-9
    assert -1e-9 <= best.gain <= 2 * best.ratio + 1e-9


def test_the_best_policy_gains_something():
    """Three quarters on the costly arm and a quarter on the cheap one beat the costly one alone when 1 is left."""
    costly = Independent(Fixed(1.0), Fixed(0.75))
    best = optimum(problem_of(costly, Independent(Fixed(0.3), Fixed(0.25))), 1.0)
    assert (best.reward, best.best_arm_reward) == (1.3, 1.0)
    assert best.gain == pytest.approx(0.3)
    assert best.choice.tolist() == [1, 1, 0, 0]


def test_bernoulli_is_lemma_1_exactly():
    problem = family("uniform-bernoulli", 10, seed=1, low=0.05)
    best = optimum(problem, 500)
    assert best.reward == pytest.approx(best_ratio(problem) * 500, rel=1e-12)
    assert best.gain == pytest.approx(0.0, abs=1e-9)
    assert set(best.choice.tolist()) == set(best_arms(problem).tolist())
    assert reward_bounds(problem, 500)[0] == reward_bounds(problem, 500)[1] == best_ratio(problem) * 500
    assert reward_bounds(problem, 500.5)[0] < reward_bounds(problem, 500.5)[1]


def test_a_correlated_table_by_hand():
    """Cost ½ pays 1, cost 1 pays nothing: with 1 left a pull earns ½(1 + V(½)), and V(½) = ½."""
    law = JointTable([[1, 0.5, 1], [0, 1, 1]])
    assert optimum(problem_of(law, law), 1.0).reward == pytest.approx(0.5 * (1 + 0.5))


def test_a_copula_is_worth_what_its_table_is():
    """A copula of two Bernoulli laws is a 2×2 table; P(both) in closed form."""
    copula = Copula(Lattice([0, 1], [0.5, 0.5]), Lattice([0.5, 1], [0.5, 0.5]), 0.6)
    both = 0.25 + np.arcsin(0.6) / (2 * np.pi)  # the orthant probability of two normals
    table = JointTable([[1, 1, both], [0, 1, 0.5 - both], [1, 0.5, 0.5 - both], [0, 0.5, both]])
    assert optimum(problem_of(copula, copula), 7).reward == pytest.approx(
        optimum(problem_of(table, table), 7).reward, abs=1e-6
    )


def test_steps():
    half, third = Independent(Fixed(1), Fixed(0.5)), Independent(Fixed(1), Lattice([0, 1 / 3], [1, 1]))
    assert cost_step(problem_of(half, half)) == Fraction(1, 2)
    assert cost_step(problem_of(half, third)) == Fraction(1, 6)
    tenth = Independent(Fixed(1), Fixed(0.1))
    assert optimum(problem_of(tenth, tenth), 0.3).reward == pytest.approx(3)  # 0.3 holds three tenths
    assert optimum(problem_of(half, half), 0).reward == 0
    assert optimum(problem_of(half, half), 0.4).reward == 0


def test_budgets_below_one_and_next_to_a_multiple_of_the_step():
    half = problem_of(Independent(Fixed(1), Fixed(0.5)), Independent(Fixed(0), Fixed(0.5)))
    assert reward_bounds(half, 0.5) == (0.0, 3.0)  # nobody earns less than nothing
    assert optimum(half, 0.5).reward == optimum(half, 0.5 - 1e-10).reward == 1.0  # rounding takes nothing away
    assert optimum(half, 0.5 - 1e-8).reward == 0.0


def test_of_equally_good_arms_the_one_that_leaves_least_over_is_the_best_alone():
    costly, cheap = Independent(Fixed(0.75), Fixed(0.75)), Independent(Fixed(0.25), Fixed(0.25))
    for laws in ((costly, cheap), (cheap, costly)):
        assert optimum(problem_of(*laws), 1.0).best_arm_reward == 1.0


def test_costs_that_never_come_make_no_step():
    law = Independent(Fixed(1), Lattice([0, 1 / 3, 0.5], [1, 0, 1]))
    assert cost_step(problem_of(law, law)) == Fraction(1, 2)


def test_gaps_are_zero_for_all_that_is_best():
    problem = Problem.bernoulli([0.3, 0.6, 0.6], [0.1, 0.2, 0.6])
    assert best_arms(problem).tolist() == [0, 1]
    assert gaps(problem).tolist() == [0.0, 0.0, pytest.approx(2.0)]


def test_ratios_that_rounding_sets_apart_are_a_tie():
    problem = Problem.bernoulli([0.3, 0.75], [0.1, 0.25])
    assert 0.3 / 0.1 < 0.75 / 0.25
    assert best_arms(problem).tolist() == [0, 1]
    assert gaps(problem).tolist() == [0.0, 0.0]


def test_what_is_not_a_lattice_is_refused():
    fine = Independent(Fixed(1), Fixed(0.5))
    with pytest.raises(NotALattice, match="arm 'a1' has continuous costs"):
        optimum(problem_of(fine, Independent(Fixed(1), Beta(1, 1))), 10)
    with pytest.raises(NotALattice, match="arm 'a1': cost"):
        optimum(problem_of(fine, Independent(Fixed(1), Fixed(0.123456789))), 10)
    with pytest.raises(BadParameter, match="budget"):
        optimum(problem_of(fine, fine), float("nan"))
    with pytest.raises(BadParameter, match="coarser"):
        optimum(problem_of(fine, fine), 1e9)
    primes = [Independent(Fixed(1), Fixed(1 / p)) for p in (9973, 9967, 9949)]
    with pytest.raises(NotALattice, match="no common step"):
        optimum(problem_of(*primes), 1.0)
