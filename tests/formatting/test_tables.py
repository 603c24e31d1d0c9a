"""Tables as HTML, Markdown and LaTeX, and the objects that show themselves by them."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest
from scipy import stats

from budgetbandits import Allocation, BudgetedThompson, Problem, parse_policy, simulate, simulate_many
from budgetbandits.answers import ArmAnswer, CampaignAnswer, CampaignDetailAnswer
from budgetbandits.cli import simulate as simulating
from budgetbandits.errors import BadParameter
from budgetbandits.experiments import Results
from budgetbandits.formatting.tables import EstimateCell, Table, estimate
from budgetbandits.problems.distributions import Bernoulli, Independent
from budgetbandits.problems.problem import Arm
from budgetbandits.simulation.game_table import COLUMNS

NASTY = r"a|b_c*<script>&\`[x]$~{}%#^"


class Cells(HTMLParser):
    """The text of every cell, and every tag."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data.strip("\n")


def test_a_name_is_text_in_html():
    read = Cells(Table(("name", "mean"), [(NASTY, estimate(1.5, 0.25))], title=NASTY, note=NASTY).to_html())
    assert "script" not in read.tags
    assert read.cells[:3] == ["name", "mean", NASTY]
    assert read.cells[3].startswith("1.50 ± 0.25")


def test_a_name_is_text_in_markdown():
    """Every sign that means something in Markdown stands behind a backslash, and the row has its two cells."""
    row = Table(("name", "mean"), [(NASTY, EstimateCell("1"))]).to_markdown().splitlines()[2]
    assert r"a\|b\_c\*\<script\>\&\\\`\[x\]\$\~{}%#^" in row
    assert row.replace(r"\|", "").count("|") == 3


def test_a_name_is_text_in_latex():
    line = (
        Table(("name", "mean"), [("ρ ≥ " + NASTY, EstimateCell("-1,000", "2", best=True))]).to_latex().splitlines()[4]
    )
    assert line.startswith(
        r"$\rho$ ≥ a|b\_c*\textless{}script\textgreater{}\&\textbackslash{}`[x]\$\textasciitilde{}\{\}\%\#"
    )
    assert line.endswith(r"& $\mathbf{-1{,}000} \pm 2$ \\")


@pytest.mark.parametrize(
    ("mean", "error", "value", "beside"),
    [
        (43.1234, 0.8, "43.12", "0.80"),
        (-4630.4, 123.4, "-4,630", "123"),
        (0.0123, 0.00012, "0.01230", "0.00012"),
        (5.0, 0.0, "5", "0"),
        (5.25, math.nan, "5.25", ""),
        (12345.6, None, "12,346", ""),
        (math.nan, 1.0, "–", ""),
    ],
)
def test_estimates_have_two_digits_of_their_error(mean, error, value, beside):
    assert estimate(mean, error) == EstimateCell(value, beside)


# --- what shows itself -----------------------------------------------------------------------------------------------


def many_arms(count: int) -> Problem:
    names = ["<b>first</b>", *(f"arm-{i}" for i in range(1, count))]
    laws = [Independent(Bernoulli(0.5), Bernoulli(0.25 + 0.5 * i / count)) for i in range(count)]
    return Problem(tuple(map(Arm, names, laws)))


def campaign(arms: int) -> CampaignDetailAnswer:
    listed = tuple(ArmAnswer(f"<b>{i}</b>", 0.5, i != 1, 10 * i) for i in range(arms))
    return CampaignDetailAnswer(
        id="1", name="<i>ads</i>", policy="bts", status="active", budget=50.0, spent=12.5, held=0.5, leased=0.0,
        left=37.0, overrun=0.0, created_at=0.0, arms=listed,
    )  # fmt: skip


THINGS = {
    "problem": lambda arms: many_arms(arms),
    "outcome": lambda arms: simulate(many_arms(arms), "ucb1", [5.0, 9.0], 2, engine="reference"),
    "allocation": lambda arms: Allocation(BudgetedThompson(), [f"<b>{i}</b>" for i in range(arms)], 9.0, seed=1),
    "campaign": campaign,
}


@pytest.mark.parametrize("thing", THINGS)
@pytest.mark.parametrize("arms", [3, 1000])
def test_it_is_short_and_safe(thing, arms):
    shown = THINGS[thing](arms)
    assert len(repr(shown)) < 250
    page = shown._repr_html_()
    assert len(page) < 4_000
    assert Cells(page).tags <= {"style", "div", "table", "thead", "tbody", "tr", "th", "td", "span", "p"} | (
        {"b"} if thing == "problem" else set()  # the best ratio is bold
    )
    assert ("and 990 more" in page) == (arms == 1000 and thing != "outcome")
    assert "<b>first" not in page
    assert "<b>0" not in page


def test_a_problem_marks_its_best_arm():
    cells = Cells(Problem.bernoulli([0.3, 0.6, 0.5], [0.2, 0.8, 0.5])._repr_html_()).cells
    assert cells[5:10] == ["arm-1", "0.300", "0.200", "1.500", "best"]
    assert cells[10:15] == ["arm-2", "0.600", "0.800", "0.750", "0.750"]


def test_an_allocation_shows_the_posteriors_ratio_with_its_interval():
    """The exact law of a ratio of Betas, by quadrature of its distribution function, gives the same."""
    spend = Allocation(BudgetedThompson(), ["a", "b"], 90.0, cost_max=2.0, reward_max=4.0, seed=1)
    for reward, cost in ((4.0, 0.0), (0.0, 2.0), (4.0, 2.0), (4.0, 2.0)):
        spend.tell(spend.ask(arms=["a"]), reward=reward, cost=cost)
    spend.retire("b")
    cells = Cells(spend._repr_html_()).cells
    name, pulls, reward, cost, ratio, interval = cells[6:12]
    assert (name, pulls, reward, cost, ratio) == ("a", "4", "3.000", "1.500", "2.000")  # as they were seen
    # Beta(4, 2) of the reward and Beta(4, 2) of the cost, in units of 4 and of 2
    low, high = (float(end) / 2.0 for end in interval.split(" – "))
    prices = (np.arange(20_000) + 0.5) / 20_000
    density = stats.beta.pdf(prices, 4, 2) / 20_000
    for end, share in ((low, 0.025), (high, 0.975)):  # as written, with three digits
        assert density @ stats.beta.cdf(end * prices, 4, 2) == pytest.approx(share, abs=5e-4)
    assert cells[12] == "b (retired)"


@pytest.mark.parametrize("policy", ["bts-gaussian:sigma=0.25", "bts-joint"])
def test_an_allocation_shows_other_posteriors(policy):
    spend = Allocation(
        policy, ["a", "b"], 90.0, cost_max=2.0, reward_max=4.0, seed=1, history={"a": (100, 300.0, 100.0)}
    )
    name, pulls, reward, cost, ratio, interval = Cells(spend._repr_html_()).cells[6:12]
    low, high = map(float, interval.split(" – "))
    assert (name, pulls, reward, cost, ratio) == ("a", "0", "–", "–", "–")  # nothing was seen here
    assert low < 3.0 < high < low + 2.0


@pytest.mark.parametrize("policy", ["bts", "kube", "bts-paced:forget=0.5"])
def test_the_means_of_a_table_are_those_of_the_feedback(policy):
    """Two costs of 0.7 have the mean 0.7, whatever a policy's prior or memory makes of them."""
    spend = Allocation(policy, ["a", "b"], 9.0, cost_max=2.0, seed=1)
    for reward in (1.0, 0.5):
        spend.tell(spend.ask(arms=["a"]), reward=reward, cost=0.7)
    for allocation in (spend, Allocation.from_json(spend.to_json())):
        page = allocation._repr_html_()
        assert Cells(page).cells[6:11] == ["a", "2", "0.750", "0.700", "1.071"]
        assert "Pulls, means and their ratio are of the feedback so far." in page
        assert ("believed ratio is the policy's posterior" in page.replace("&#x27;", "'")) == (policy == "bts")


def test_an_allocation_without_a_posterior_shows_what_was_seen():
    spend = Allocation(parse_policy("kube"), ["a", "b"], 9.0, seed=1)
    spend.tell(spend.ask(), reward=1.0, cost=0.25)
    cells = Cells(spend._repr_html_()).cells
    assert cells[6:12] == ["a", "1", "1.000", "0.250", "4.000", "–"]
    assert cells[12:17] == ["b", "0", "–", "–", "–"]
    assert "KUBE: spent 0.25 of 9, held 0, left 8.75" in spend._repr_html_()


def test_an_outcome_shows_the_interval_of_its_mean():
    outcome = simulate(Problem.bernoulli([0.9, 0.2], [0.3, 0.6]), "ucb1", [9.0, 5.0], 6, engine="reference")
    cells = Cells(outcome._repr_html_()).cells
    values = outcome.reward[:, 1]
    half = stats.t.ppf(0.975, 5) * values.std(ddof=1) / math.sqrt(6)
    assert cells[6] == "5"  # the budgets rise
    mean, error = (float(part) for part in cells[7].split(" ± "))
    assert (mean, error) == pytest.approx((values.mean(), half), abs=0.06)


def test_a_campaign_says_what_matters():
    assert (
        repr(campaign(2))
        == "CampaignDetailAnswer('<i>ads</i>', active, bts: spent 12.50 of 50.00, held 0.50, left 37.00)"
    )
    assert "1 (retired)" not in campaign(1)._repr_html_()
    assert "<table>" not in CampaignAnswer.read(vars(campaign(0)))._repr_html_()  # as in a list of them


def test_a_single_run_is_not_called_a_mean():
    games = simulate_many([many_arms(3)], ["ucb1", "kube"], [5.0], 1, engine="reference")
    written = Results.of(games).to_latex()
    assert "of a single run" in written
    assert "standard error" not in written


# --- results of tables -----------------------------------------------------------------------------------------------


def made_up(runs: int = 8) -> pl.DataFrame:
    """Two policies on two problems that are surely apart if their runs are paired, and not otherwise."""
    rng = np.random.default_rng(1)
    luck = rng.normal(50.0, 20.0, size=(2, runs))
    rows = []
    for place, problem in enumerate(("one", "two")):
        for policy, worse in (("bts", 0.0), ("kube", 2.0)):
            for run in range(runs):
                regret = luck[place, run] + worse + rng.normal(0.0, 0.5)
                rows.append((problem, 3, policy, run, 100.0, regret, regret, 1.0, 1.0, 9, True))
    return pl.DataFrame(rows, schema=list(COLUMNS), orient="row")


def test_paired_runs_are_compared_run_by_run():
    table = made_up()
    apart, paired = Results.of(table), Results.of(table, paired=True)
    assert not apart.best()["sure"].any()
    assert paired.best()["sure"].all()
    values = paired.values()
    expected = stats.ttest_rel(values[0, 0], values[0, 1]).confidence_interval()
    difference = paired.differences("bts", "kube").row(0, named=True)
    assert (difference["low"], difference["high"]) == pytest.approx((expected.low, expected.high))


def test_the_best_is_bold_only_where_it_is_sure():
    table = made_up().filter(pl.col("problem") == "one")
    assert "**" not in Results.of(table).to_markdown()
    page = Results.of(table, paired=True).to_markdown()
    assert [line.count("**") for line in page.splitlines()[2:4]] == [2, 0]
    assert r"\mathbf" in Results.of(table, paired=True).to_latex()
    assert "**" not in Results.of(table, paired=True).to_markdown("rounds")


def test_results_of_a_table_show_themselves():
    results = Results.of(made_up(), "<b>made up</b>")
    assert repr(results) == "Results('<b>made up</b>': 2 problems, 2 policies, 1 budget, 8 runs)"
    assert "&lt;b&gt;made up" in results._repr_html_()
    assert results.summary().height == 4
    assert json.dumps(results.record)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop("identified"), "no column 'identified'"),
        (lambda table: table[1:], "the same runs"),
        (lambda table: table.clear(), "the same runs"),
        (lambda table: table.with_columns(run=0), "the same runs"),
        (lambda table: table.with_columns(arms=pl.int_range(pl.len())), "two numbers of arms"),
    ],
)
def test_a_table_that_is_none_of_games(change, message):
    with pytest.raises(BadParameter, match=message):
        Results.of(change(made_up()))


def half_of(values):
    return stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))


def test_what_follows_a_mean_is_half_of_its_interval_everywhere(capsys, monkeypatch):
    """The terminal, Python and tables agree: none shows the standard error where another shows the interval."""
    monkeypatch.setenv("COLUMNS", "200")
    problem = Problem.bernoulli([0.9, 0.2], [0.3, 0.6])
    outcome = simulate(problem, "ucb1", [9.0], 6, engine="reference")
    values = outcome.pseudo_regret[:, 0]
    text = f"{values.mean():.1f} ± {half_of(values):.1f}"
    assert f"{text} (95 %)" in repr(outcome)
    simulating.show(problem, [outcome], "ucb1")
    shown = capsys.readouterr().out
    assert text in shown
    assert "± is half of the 95 % interval" in shown
    single = Results.of(simulate_many([problem], ["ucb1"], [9.0], 6, engine="reference"))
    assert text in single.to_markdown()
    assert "± half of its 95 % interval" in single.to_markdown()
    means = simulate_many([many_arms(3), many_arms(4)], ["ucb1"], [5.0], 6, engine="reference")
    over = means.group_by("problem").agg(pl.col("pseudo_regret").mean())["pseudo_regret"].to_numpy()
    mean, half = re.search(r"([\d.]+) ± ([\d.]+)", Results.of(means).to_markdown()).groups()
    assert (float(mean), float(half)) == pytest.approx((over.mean(), half_of(over)), rel=0.06)
