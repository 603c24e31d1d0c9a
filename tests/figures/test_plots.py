"""Figures of one simulation, one problem and one allocation."""

import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

from budgetbandits import Allocation, Problem, parse_policy, simulate
from budgetbandits.errors import BadParameter, MissingExtra
from budgetbandits.figures import arms, posteriors
from budgetbandits.numerics.posteriors import BetaPosterior, RatioPosterior
from budgetbandits.policies import SamplingPolicy


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


def test_many_arms_share_the_last_row(monkeypatch):
    monkeypatch.setattr(arms, "ARMS_SHOWN_MAX", 3)
    problem = Problem.bernoulli(np.linspace(0.1, 0.9, 8).tolist(), [0.5] * 8)
    left, _ = simulate(problem, parse_policy("ucb1"), [40], 2, engine="reference").plot(width="paper").axes
    assert len(left.patches) == 4
    assert left.get_yticklabels()[-1].get_text() == "5 others"
    assert sum(bar.get_width() for bar in left.patches) == pytest.approx(100.0)


def test_regret_of_an_outcome_is_its_pseudo_regret(outcome):
    axes = Figure().subplots()
    assert outcome.plot("regret", ax=axes) is axes
    assert axes.lines[0].get_ydata() == pytest.approx(outcome.pseudo_regret.mean(axis=0))


def test_a_single_run_has_no_interval_and_is_drawn_all_the_same():
    problem = Problem.bernoulli([0.9, 0.2], [0.3, 0.6])
    alone = simulate(problem, parse_policy("bts"), [20, 40, 80], 1, engine="reference")
    assert len(alone.plot("regret").axes[0].lines) == 1
    assert len(alone.plot().axes) == 2


def test_the_best_ratio_is_the_steepest_line():
    axes = Problem.bernoulli([0.3, 0.6], [0.2, 0.8]).plot(ax=Figure().subplots())
    x, y = axes.lines[0].get_data()
    assert y[1] / x[1] == pytest.approx(1.5)
    assert {text.get_text() for text in axes.texts} >= {"arm-1", "arm-2", "1.5"}


def test_the_ratios_density_is_the_derivative_of_its_distribution():
    ratio = RatioPosterior(BetaPosterior(13.0, 29.0), BetaPosterior(31.0, 11.0))
    density = posteriors.density(ratio, 2.0)
    low, median, high = 2.0 * ratio.quantile(np.array([0.025, 0.5, 0.975]))
    assert (density.low, density.median, density.high) == pytest.approx((low, median, high))
    costs = stats.beta.ppf((np.arange(4000) + 0.5) / 4000, 31.0, 11.0)
    exact = [np.mean(costs * stats.beta.pdf(z / 2.0 * costs, 13.0, 29.0)) / 2.0 for z in density.x]
    assert density.y == pytest.approx(exact, abs=2e-3 * max(exact))


def test_beta_densities_are_in_the_users_units():
    density = posteriors.density(BetaPosterior(2.0, 1.0), 4.0)  # 2x on [0, 1]
    assert density.y * 4.0 == pytest.approx(2.0 * density.x / 4.0)
    assert density.median == pytest.approx(4.0 * np.sqrt(0.5))


@pytest.mark.parametrize("policy", ["bts-gaussian", "bts-joint"])
def test_an_allocation_draws_other_posteriors(policy):
    spend = Allocation(policy, ["a", "b"], 20.0, seed=1, history={"a": (40, 30.0, 10.0), "b": (40, 25.0, 10.0)})
    figure = spend.plot()
    figure.draw_without_rendering()  # a layout that collapsed would warn, and a warning is an error here
    assert [axes.lines[2].get_xdata()[0] for axes in figure.axes] == pytest.approx([0.75, 0.25, 3.0], rel=0.05)


def test_a_policy_with_statistics_of_its_own_is_not_drawn():
    class Mine(SamplingPolicy):
        name = "mine"

        def prior(self):
            return (1.0,)

        def add_history(self, state, arm, pulls, reward, cost):
            pass

    with pytest.raises(
        BadParameter, match=r"mine says neither totals nor posteriors .* write totals\(self, state, arm\) in its class"
    ):
        Allocation(Mine(), ["a", "b"], 20.0).plot()


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
    assert rewards == pytest.approx(
        [posteriors.density(BetaPosterior(*ab), 5.0).median for ab in ((5.0, 3.0), (2.0, 3.0))]
    )
    assert costs == pytest.approx(
        [posteriors.density(BetaPosterior(*ab), 2.0).median for ab in ((5.0, 3.0), (2.0, 3.0))]
    )
    assert ratios[0] == pytest.approx(
        posteriors.density(RatioPosterior(BetaPosterior(5.0, 3.0), BetaPosterior(5.0, 3.0)), 2.5).median
    )


def test_of_many_arms_those_pulled_most_are_shown(monkeypatch):
    monkeypatch.setattr(posteriors, "ARMS_SHOWN_MAX", 3)
    past = {f"arm {i}": (i + 1, 1.0, 1.0) for i in range(6)}
    spend = Allocation(parse_policy("bts"), list(past), 20.0, seed=1, history=past)
    spend.retire("arm 5")
    shown = [text.get_text() for text in spend.plot(width="paper").axes[0].get_yticklabels()]
    assert shown == ["arm 2", "arm 3", "arm 4"]


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("budgetbandits.figures")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("budgetbandits.figures")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"figures need Matplotlib; pip install 'budgetbandits\[lab\]'"):
        Problem.bernoulli([0.3, 0.6], [0.2, 0.8]).plot()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"width": None}, "width is None; use paper, page, phone"),
        ({"budget": "5"}, "no budget '5' was played"),
        ({"foo": 5}, "does not take foo; it takes budget"),
        ({"figure": "regret", "log": "x"}, "log is 'x'; use True, False"),
        ({"figure": "regret", "ax": 3}, "ax is 3; give axes"),
        ({"figure": "x"}, "unknown figure 'x'; choose one of pulls, regret"),
    ],
)
def test_odd_options_are_refused(outcome, options, words):
    with pytest.raises(BadParameter, match=words):
        outcome.plot(**options)


def test_a_problem_is_not_drawn_into_a_number():
    with pytest.raises(BadParameter, match="ax is 3; give axes"):
        Problem.bernoulli([0.3, 0.6], [0.2, 0.8]).plot(ax=3)
