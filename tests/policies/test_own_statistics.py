"""A policy from a file that shares no class but `Policy` and `State` with the package's: what it has learned is carried
over, warm-started and shown like theirs."""

import numpy as np
import pytest

from budgetbandits import Allocation, plugins
from budgetbandits.allocation import substitutes
from budgetbandits.errors import BadParameter
from budgetbandits.numerics.posteriors import BetaPosterior
from budgetbandits.policies import POLICY_REGISTRY, parse_policy
from budgetbandits.policies.base import Knowledge, UnitChange
from budgetbandits.policies.posteriors import posterior
from budgetbandits.policies.transfer import carried, totals
from fading import FADING, SAYS_TOTALS


@pytest.fixture
def fading(tmp_path):
    """Loads the policy with this code added to its class; it is gone after the test."""

    def load(more):
        file = tmp_path / "mine.py"
        file.write_text(FADING + more)
        plugins.load(file)

    yield load
    POLICY_REGISTRY._added.clear()


KNOWN = Knowledge(budget=100.0, horizon=500.0)
HALVED = UnitChange(0.5, np.full(2, 0.5), 0.5)


def learned(policy):
    state, rng = policy.start(2, KNOWN), np.random.default_rng(1)
    for arm, reward, cost in ((0, 1.0, 0.25), (1, 0.5, 0.5), (1, 0.5, 1.0)):
        policy.observe(state, arm, reward, cost, rng)
    return state


@pytest.mark.parametrize("other", ["bts", "kube", "bts-paced", "bts-linear"])
def test_it_is_carried_over_to_other_policies_and_back(other, fading):
    fading(SAYS_TOTALS)
    mine, other = parse_policy("fading-ratio:fade=0"), parse_policy(other)
    there = carried(mine, learned(mine), other, KNOWN, HALVED, 0.0)
    back = carried(other, there, mine, KNOWN, UnitChange(2.0, np.full(2, 2.0), 2.0), 0.0)
    assert pytest.approx(np.array([(1.0, 1.0, 0.25), (2.0, 1.0, 1.5)])) == back.weights.T
    assert totals(other, there, 1) == (2, pytest.approx(0.5), pytest.approx(0.75))


def test_in_other_units_it_begins_again_with_its_totals(fading):
    fading(SAYS_TOTALS)
    mine = parse_policy("fading-ratio:fade=0")
    after = carried(mine, learned(mine), mine, KNOWN, HALVED, 0.0)
    assert pytest.approx(np.array([(1.0, 0.5, 0.125), (2.0, 0.5, 0.75)])) == after.weights.T


def test_one_that_says_no_totals_is_told_what_to_write(fading):
    fading("")
    mine, words = parse_policy("fading-ratio"), r"fading-ratio .* write totals\(self, state, arm\) in its class"
    with pytest.raises(BadParameter, match=words):
        carried(mine, learned(mine), parse_policy("bts"), KNOWN, HALVED, 0.0)
    with pytest.raises(BadParameter, match=words):
        posterior(mine, learned(mine), 0)


def test_an_allocation_warm_starts_it_shows_what_its_totals_say_and_goes_on(fading):
    fading(SAYS_TOTALS)
    history = {"search": (9, 1.0, 5.0), "mail": (9, 6.0, 5.0)}
    spend = Allocation("fading-ratio:fade=0", ["search", "mail"], budget=10.0, history=history, seed=1)
    ask = spend.ask()
    spend.tell(ask, reward=1.0, cost=0.5)
    of = posterior(spend.policy, spend._session.state, 1)
    assert ask.arm == "mail"
    assert (of.reward, of.cost) == (BetaPosterior(8.0, 4.0), BetaPosterior(6.5, 5.5))
    assert Allocation.from_json(spend.to_json()).ask().arm == spend.ask().arm == "mail"


def test_a_substitute_of_its_arms_may_cost_what_its_totals_allow(fading):
    fading(SAYS_TOTALS)
    mine = parse_policy("fading-ratio:fade=0")
    assert substitutes.share(mine, learned(mine), 0, 1) == pytest.approx(2.0 * 0.25 / 0.75)
