"""Tables, summaries and comparisons against the same figures worked out by NumPy and SciPy."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest
from scipy import stats

from budgetbandits.errors import BadParameter, StudyError
from budgetbandits.experiments import Results, run
from budgetbandits.experiments.results import wilson
from budgetbandits.experiments.runner import Workers
from budgetbandits.report import write_report
from studies import small


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    run(small(runs=12), folder, Workers(count=1))
    return Results.load(folder)


def values(results, problem, policy, budget=20.0, metric="pseudo_regret"):
    rows = results.table.filter(
        (pl.col("problem") == problem) & (pl.col("policy") == policy) & (pl.col("budget") == budget)
    )
    return rows[metric].to_numpy()


def test_the_table_is_tidy(results):
    assert results.table.columns == [
        "group", "problem", "arms", "policy", "run", "budget", "regret", "pseudo_regret", "reward", "spend", "rounds",
        "identified",
    ]  # fmt: skip
    assert len(results.table) == 3 * 4 * 12 * 2
    assert results.groups == ["inline", "random"]


@pytest.mark.parametrize("metric", ["pseudo_regret", "regret", "rounds"])
def test_summary(results, metric):
    row = results.summary(metric).filter(
        (pl.col("problem") == "inline") & (pl.col("policy") == "kube") & (pl.col("budget") == 20)
    )
    sample = values(results, "inline", "kube", metric=metric)
    assert row["runs"].item() == 12
    assert row["mean"].item() == pytest.approx(sample.mean())
    assert row["std"].item() == pytest.approx(sample.std(ddof=1))
    assert row["sem"].item() == pytest.approx(sample.std(ddof=1) / np.sqrt(12))
    for name, q in (("q05", 0.05), ("q50", 0.5), ("q95", 0.95)):
        assert row[name].item() == pytest.approx(np.quantile(sample, q))
    hits = values(results, "inline", "kube", metric="identified")
    assert row["missed"].item() == (~hits).sum()


def test_differences_are_welchs(results):
    row = results.differences("bts", "kube").filter(pl.col("problem") == "random / seed 8").row(0, named=True)
    first, second = (values(results, "random / seed 8", policy) for policy in ("bts", "kube"))
    expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert row["difference"] == pytest.approx(first.mean() - second.mean())
    assert (row["low"], row["high"]) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_compare_pairs_over_problems(results):
    table = results.compare()
    assert len(table) == 6 * 2
    row = table.filter((pl.col("group") == "random") & (pl.col("first") == "bts") & (pl.col("second") == "kube"))
    per_problem = results.differences("bts", "kube").filter(pl.col("group") == "random")["difference"].to_numpy()
    expected = stats.ttest_1samp(per_problem, 0.0).confidence_interval(0.95)
    assert row["problems"].item() == 2
    assert row["lower"].item() == (per_problem < 0).sum()
    assert (row["low"].item(), row["high"].item()) == (pytest.approx(expected.low), pytest.approx(expected.high))
    alone = table.filter((pl.col("group") == "inline") & (pl.col("first") == "bts") & (pl.col("second") == "kube"))
    of_problem = results.differences("bts", "kube").filter(pl.col("problem") == "inline")
    assert alone["low"].item() == of_problem["low"].item()


def test_winners_count_every_problem_once(results):
    winners = results.winners()
    assert winners.group_by("group", maintain_order=True).agg(pl.col("problems").sum())["problems"].to_list() == [1, 2]


def test_a_single_run_has_no_interval(tmp_path):
    run(small(runs=1), tmp_path, Workers(count=1))
    row = Results.load(tmp_path).differences("bts", "kube").row(0, named=True)
    assert row["low"] == -np.inf
    assert row["high"] == np.inf


@pytest.mark.parametrize(("hits", "trials"), [(0, 20), (3, 20), (13, 500), (20, 20)])
def test_wilson(hits, trials):
    expected = stats.binomtest(hits, trials).proportion_ci(0.95, method="wilson")
    low, high = wilson(hits, trials)
    assert (low, high) == (pytest.approx(expected.low, abs=1e-12), pytest.approx(expected.high))


def test_other_formats(results, tmp_path):
    frame = results.to_pandas()
    assert frame["regret"].sum() == pytest.approx(results.table["regret"].sum())
    results.write_csv(tmp_path / "t.csv")
    results.write_parquet(tmp_path / "t.parquet")
    assert pl.read_parquet(tmp_path / "t.parquet").equals(results.table)
    assert len(pl.read_csv(tmp_path / "t.csv")) == len(results.table)


def test_what_is_not_there_is_named(results, tmp_path):
    with pytest.raises(StudyError, match="holds no study; run 'budgetbandits run"):
        Results.load(tmp_path)
    with pytest.raises(BadParameter, match="no policy 'moss'; it has bts"):
        results.differences("bts", "moss")
    with pytest.raises(BadParameter, match="no budget 7; it has 5, 20"):
        results.compare(budget=7.0)
    with pytest.raises(BadParameter, match="unknown metric 'joy'"):
        results.summary("joy")


def test_groups_of_several_problems_are_summed_up_over_problems(results):
    rows = results.summary_of_groups().filter(pl.col("budget") == 20)
    random = rows.filter((pl.col("group") == "random") & (pl.col("policy") == "kube"))
    means = [values(results, f"random / seed {seed}", "kube").mean() for seed in (7, 8)]
    assert random["mean"].item() == pytest.approx(np.mean(means))
    assert random["sem"].item() == pytest.approx(np.std(means, ddof=1) / np.sqrt(2))
    alone = rows.filter((pl.col("group") == "inline") & (pl.col("policy") == "kube"))
    assert alone["sem"].item() == pytest.approx(values(results, "inline", "kube").std(ddof=1) / np.sqrt(12))


def test_names_are_text_in_every_output(tmp_path):
    """Marks of HTML, of templates and of mathematics in names stay what they are."""
    name = "<b>a</b> & {{ 7 * 7 }} $\\frac{$ %s"
    named = [dataclasses.replace(problem, name=name, group=name) for problem in small().problems[:1]]
    run(small(runs=2, name="<script>1</script>", problems=tuple(named)), tmp_path, Workers(count=1))
    page = write_report(tmp_path).read_text()
    assert "<script>" not in page
    assert "<b>a</b>" not in page
    assert "{{ 7 * 7 }}" in page
