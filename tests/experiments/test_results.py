"""Tables, summaries and comparisons against the same figures worked out by NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from budgetbandits.errors import BadParameter, StudyError
from budgetbandits.experiments import Results, run
from budgetbandits.experiments.runner import Workers
from made_up import study
from studies import small


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    run(small(runs=12), folder, Workers(jobs=1))
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
    assert row["better"].item() == (per_problem < 0).sum()
    assert (row["low"].item(), row["high"].item()) == (pytest.approx(expected.low), pytest.approx(expected.high))
    alone = table.filter((pl.col("group") == "inline") & (pl.col("first") == "bts") & (pl.col("second") == "kube"))
    of_problem = results.differences("bts", "kube").filter(pl.col("problem") == "inline")
    assert alone["low"].item() == of_problem["low"].item()


def test_winners_count_every_problem_once(results):
    winners = results.winners()
    assert winners.group_by("group", maintain_order=True).agg(pl.col("problems").sum())["problems"].to_list() == [1, 2]
    assert (winners["sure"] <= winners["problems"]).all()


def two_policies(wide):
    """BTS loses 10 and KUBE 20, so BTS earns the more."""
    return study(
        lambda _g, _p, policy, _b: 10.0 if policy == "bts" else 20.0, wide, problems=3, policies=["bts", "kube"]
    )


def test_more_reward_is_better():
    """What is lower in regret is higher in reward, and wins by both."""
    results = two_policies(1.0)
    for metric, difference in (("regret", -10.0), ("reward", 10.0)):
        row = results.compare(metric=metric).row(0, named=True)
        assert (row["first"], row["better"], row["wins"], row["losses"]) == ("bts", 3, 3, 0)
        assert row["difference"] == pytest.approx(difference)
        first = results.winners(metric=metric).filter(pl.col("problems") > 0)
        assert (first["policy"].unique().to_list(), first["sure"].to_list()) == (["bts"], [3, 3, 3, 3])


def test_the_best_is_sure_only_if_a_tie_is_excluded():
    assert two_policies(1.0).best()["sure"].all()
    assert two_policies(1.0).best_of_groups()["sure"].all()
    unsure = two_policies(100.0).best()
    assert unsure["policy"].unique().to_list() == ["bts"]
    assert not unsure["sure"].any()


def test_a_group_is_judged_over_its_problems():
    """BTS is lower by 10 on two problems of three and higher by 18 on one: the runs are sure, the group is not."""

    def mean(_group, problem, policy, _budget):
        return 100.0 + (0.0 if policy == "kube" else (-10.0, -10.0, 18.0)[problem])

    results = study(mean, problems=3, policies=["bts", "kube"])
    assert results.best()["sure"].all()
    found = results.best_of_groups()
    assert found["policy"].unique().to_list() == ["bts"]
    assert not found["sure"].any()


@pytest.mark.parametrize("metric", ["spend", "rounds"])
def test_what_is_neither_good_nor_bad_has_no_winner(results, metric):
    for compared in (results.compare, results.winners):
        with pytest.raises(BadParameter, match=f"neither more nor less {metric} is better; compare by pseudo_regret"):
            compared(metric=metric)


def test_a_single_run_has_no_interval(tmp_path):
    run(small(runs=1), tmp_path, Workers(jobs=1))
    row = Results.load(tmp_path).differences("bts", "kube").row(0, named=True)
    assert row["low"] == -np.inf
    assert row["high"] == np.inf


def test_other_formats(results, tmp_path):
    assert results.to_pandas()["regret"].sum() == pytest.approx(results.table["regret"].sum())
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
