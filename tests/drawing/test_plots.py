"""Figures of one simulation, one problem and one allocation."""

import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from budgetbandits import Allocation, Problem, parse_policy, simulate
from budgetbandits.drawing import posteriors
from budgetbandits.drawing.arms import SHOWN
from budgetbandits.errors import BadParameter


@pytest.fixture(scope="module")
def outcome():
    problem = Problem.bernoulli([0.9, 0.2, 0.5], [0.3, 0.6, 0.4])
    return simulate(problem, parse_policy("bts"), [50, 200], 12, engine="reference")


def test_pulls_are_shares_of_the_games_and_ratios_are_true(outcome):
    left, right = outcome.plot().axes
    assert [text.get_text() for text in left.get_yticklabels()] == ["arm-1", "arm-3", "arm-2"]
    share = (outcome.pulls[:, 1] / outcome.pulls[:, 1].sum(axis=1, keepdims=True)).mean(axis=0)
    assert [bar.get_width() for bar in left.patches] == pytest.approx(100 * share[[0, 2, 1]])
    assert right.lines[1].get_xdata() == pytest.approx([3.0, 1.25, 1 / 3])
    first = outcome.plot(budget=50).axes[0].patches[0].get_width()
    assert first == pytest.approx(100 * (outcome.pulls[:, 0, 0] / outcome.pulls[:, 0].sum(axis=1)).mean())
    with pytest.raises(BadParameter, match="no budget 7 was played"):
        outcome.plot(budget=7)


def test_many_arms_share_the_last_row():
    problem = Problem.bernoulli(np.linspace(0.1, 0.9, 30).tolist(), [0.5] * 30)
    left, _ = simulate(problem, parse_policy("ucb1"), [40], 2, engine="reference").plot(width="paper").axes
    assert len(left.patches) == SHOWN + 1
    assert left.get_yticklabels()[-1].get_text() == "10 others"
    assert sum(bar.get_width() for bar in left.patches) == pytest.approx(100.0)


def test_regret_of_an_outcome_is_its_pseudo_regret(outcome):
    axes = Figure().subplots()
    assert outcome.plot("regret", ax=axes) is axes
    assert axes.lines[0].get_ydata() == pytest.approx(outcome.pseudo_regret.mean(axis=0))
    with pytest.raises(BadParameter, match="choose one of pulls, regret"):
        outcome.plot("pie")


def test_a_single_run_has_no_interval_and_is_drawn_all_the_same():
    problem = Problem.bernoulli([0.9, 0.2], [0.3, 0.6])
    alone = simulate(problem, parse_policy("bts"), [20, 40, 80], 1, engine="reference")
    assert len(alone.plot("regret").axes[0].lines) == 1
    assert len(alone.plot().axes) == 2


def test_the_best_ratio_is_the_steepest_line():
    problem = Problem.bernoulli([0.3, 0.6], [0.2, 0.8])
    axes = problem.plot(ax=Figure().subplots())
    x, y = axes.lines[0].get_data()
    assert y[1] / x[1] == pytest.approx(1.5)
    assert {text.get_text() for text in axes.texts} >= {"arm-1", "arm-2", "1.5"}


def test_the_ratios_density_is_that_of_many_draws():
    """A million draws: each quantile within five standard errors, so a false alarm is rarer than one in a million."""
    rng = np.random.default_rng(16)
    arm = posteriors.Posterior("a", (13.0, 29.0), (31.0, 11.0))
    drawn = np.sort(rng.beta(*arm.reward, 1_000_000) / rng.beta(*arm.cost, 1_000_000))
    density = posteriors.ratio_density(arm, 2.0)
    for found, share in ((density.low, 0.025), (density.median, 0.5), (density.high, 0.975)):
        rank = np.searchsorted(drawn, found / 2.0) / len(drawn)
        # and a little for the 200 costs that stand for the posterior
        assert abs(rank - share) < 5 * np.sqrt(share * (1 - share) / len(drawn)) + 2e-4
    assert np.trapezoid(density.y, density.x) == pytest.approx(0.9945, abs=2e-3)


def test_beta_densities_are_in_the_users_units():
    density = posteriors.beta_density(2.0, 1.0, 4.0)  # 2x on [0, 1]
    assert density.y * 4.0 == pytest.approx(2.0 * density.x / 4.0)
    assert density.median == pytest.approx(4.0 * np.sqrt(0.5))


@pytest.mark.parametrize("policy", ["bts", "kube"])
def test_an_allocation_shows_what_it_believes(policy):
    past = {"search": (6, 20.0, 8.0), "mail": (3, 5.0, 2.0), "old": (1, 0.0, 2.0)}
    spend = Allocation(parse_policy(policy), list(past), 20.0, cost_max=2.0, reward_max=5.0, seed=1, history=past)
    spend.retire("old")
    figure = spend.plot(width="page")
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["search", "mail"]
    rewards, costs, ratios = (
        [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"] for axes in figure.axes
    )
    assert rewards == pytest.approx([posteriors.beta_density(*ab, 5.0).median for ab in ((5.0, 3.0), (2.0, 3.0))])
    assert costs == pytest.approx([posteriors.beta_density(*ab, 2.0).median for ab in ((5.0, 3.0), (2.0, 3.0))])
    arm = posteriors.Posterior("search", (5.0, 3.0), (5.0, 3.0))
    assert ratios[0] == pytest.approx(posteriors.ratio_density(arm, 2.5).median)


def test_of_many_arms_those_pulled_most_are_shown():
    past = {f"arm {i}": (i + 1, 1.0, 1.0) for i in range(25)}
    spend = Allocation(parse_policy("bts"), list(past), 20.0, seed=1, history=past)
    spend.retire("arm 24")
    shown = [text.get_text() for text in spend.plot(width="paper").axes[0].get_yticklabels()]
    assert shown == [f"arm {i}" for i in range(4, 24)]


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("budgetbandits.drawing")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("budgetbandits.drawing")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BadParameter, match=r"figures need Matplotlib; install budgetbandits\[lab\]"):
        Problem.bernoulli([0.3, 0.6], [0.2, 0.8]).plot()
