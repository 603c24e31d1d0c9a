"""Results of a study: one tidy table, a row for each game at each budget, and summaries of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from budgetbandits.errors import BadParameter, StudyError
from budgetbandits.experiments.data import load as load_table
from budgetbandits.experiments.data import record_of, with_group
from budgetbandits.experiments.statistics import (
    LEVEL,
    Difference,
    against_rivals,
    moments,
    paired_rivals,
    student,
    surely,
    welch,
)
from budgetbandits.experiments.study import Study
from budgetbandits.formatting.numbers import count
from budgetbandits.formatting.tables import Cell, Table, estimate
from budgetbandits.numerics.arrays import AnyArray
from budgetbandits.numerics.intervals import half_width
from budgetbandits.policies import label
from budgetbandits.problems.problem import Problem
from budgetbandits.problems.streams import from_toml
from budgetbandits.simulation.outcome import check_metric, spread, summarise

BTS = "bts"
"""The paper's policy."""

WHERE = ("group", "problem", "policy", "budget")
"""Columns that identify a row of the summary."""

BETTER = {"pseudo_regret": "lower", "regret": "lower", "reward": "higher"}
"""The better direction of each metric; spend and rounds have none."""


@dataclass(frozen=True, repr=False)
class Results:
    """``table`` has group, problem, arms, policy, budget, run and, of that run, regret, pseudo_regret, reward, spend,
    rounds, identified."""

    table: pl.DataFrame
    record: dict[str, Any]

    @classmethod
    def load(cls, folder: str | Path, *, keep: bool = True) -> Results:
        """Read a study that is done; a part that is missing is an error that says how to go on.

        ``keep`` writes the table into the folder if it is not there yet, for the next reader of the study.
        """
        study = Study(Path(folder))
        record = study.asked()
        return cls(load_table(study, record, keep), record | {"slower": study.slower(record)})

    @classmethod
    def so_far(cls, folder: str | Path) -> Results | None:
        """The results so far of a study that is still running, or None before its first part.

        Not every policy has played on every problem then, so only summaries and the figures "regret" and "dots"
        make sense. Writes nothing.
        """
        study = Study(Path(folder))
        record = study.asked()
        stored = study.there()
        partial = record | {"cells": [cell for cell in record["cells"] if cell["key"] in stored]}
        if not partial["cells"]:
            return None
        table = load_table(study, partial, keep=False)
        names = set(table["problem"].unique())
        problems = [problem for problem in record["problems"] if problem["name"] in names]
        return cls(table, partial | {"problems": problems, "slower": study.slower(partial)})

    @classmethod
    def of(cls, table: pl.DataFrame, name: str = "games", *, paired: bool = False) -> Results:
        """The same summaries and comparisons of a table of games, such as `simulate_many` returns.

        Without a column ``group`` its problems are one group. ``paired`` says that run by run all policies met the same
        outcomes (``common=True``): then policies are compared by the differences of their runs.

        >>> from budgetbandits import family, simulate_many
        >>> problems = {f"seed {seed}": family("uniform-bernoulli", arms=5, seed=seed, low=0.2) for seed in range(4)}
        >>> games = simulate_many(problems, ["bts", "kube"], [200.0], runs=20, common=True)
        >>> Results.of(games, paired=True)
        Results('games': 4 problems, 2 policies, 1 budget, 20 runs)
        """
        return cls(with_group(table), record_of(with_group(table), name, paired))

    def __repr__(self) -> str:
        counts = {
            "group": len(self.groups), "problem": len(self.record["problems"]),
            "policy": len(self.policies), "budget": len(self.budgets), "run": self.record["runs"],
        }  # fmt: skip
        words = [count(many, word) for word, many in counts.items() if word != "group" or many > 1]
        return f"Results({self.record['name']!r}: {', '.join(words)})"

    def _repr_html_(self) -> str:
        return self.to_table().to_html()

    def to_table(self, metric: str = "pseudo_regret", budgets: Sequence[float] | None = None) -> Table:
        """Policies down; across the groups of problems at these budgets, or at the largest. Mean ± half of its 95 %
        interval, the best in bold where that is sure. `to_markdown`, `to_latex` and `to_html` of it write it."""
        asked = [self.largest(budget) for budget in budgets] if budgets else [self.largest()]
        frame = self.summary_of_groups(metric)
        judged = metric in BETTER and len(self.policies) > 1
        best = {budget: _surely_best(self, metric, budget) if judged else {} for budget in asked}
        what = metric.replace("_", "-")
        columns, cells = [], []
        for group in self.groups:
            for budget in asked:
                rows = frame.filter((pl.col("group") == group) & (pl.col("budget") == budget))
                of = {row["policy"]: row for row in rows.iter_rows(named=True)}
                sure = best[budget].get(group)
                columns.append(_heading(what, group, budget, len(self.groups), len(asked)))
                cells.append([_cell(of[name], name == sure) for name in self.policies])
        several = frame["sem"].is_not_null().any()
        at = f" at a budget of {asked[0]:,g}" if len(asked) == 1 else ""
        meaning = f"Mean {what}{at} ± half of its 95 % interval." if several else f"The {what}{at} of a single run."
        return Table(
            columns=("policy", *columns),
            rows=[(label(policy), *row) for policy, row in zip(self.policies, zip(*cells, strict=True), strict=True)],
            title=f"{self.record['name']}: {'mean ' if several else ''}{what}{at}",
            note=meaning + (" Bold: surely the best of its column (95 %, Holm)." if judged else ""),
        )

    def to_markdown(self, metric: str = "pseudo_regret", budgets: Sequence[float] | None = None) -> str:
        """`to_table` as Markdown."""
        return self.to_table(metric, budgets).to_markdown()

    def to_latex(self, metric: str = "pseudo_regret", budgets: Sequence[float] | None = None) -> str:
        """`to_table` as LaTeX, with the rules of the package booktabs."""
        return self.to_table(metric, budgets).to_latex()

    @property
    def slower(self) -> list[str]:
        """Where no faster engine played, and why, a line for each engine and reason."""
        return list(self.record.get("slower", ()))

    @property
    def paired(self) -> bool:
        """Whether all policies met the same outcomes, run by run."""
        return bool(self.record.get("paired"))

    @property
    def test(self) -> str:
        """The test by which two policies are compared on a problem, in words."""
        return "Student's test of the differences run by run" if self.paired else "Welch's test"

    @property
    def policies(self) -> list[str]:
        """The policies of the study, as texts."""
        return list(self.record["policies"])

    @property
    def budgets(self) -> list[float]:
        """The budgets, as the experiment file has them."""
        return [float(budget) for budget in self.record["budgets"]]

    @property
    def groups(self) -> list[str]:
        """The groups of problems that are averaged together, in order."""
        return list(dict.fromkeys(problem["group"] for problem in self.record["problems"]))

    def problems(self, group: str | None = None, count: int | None = None) -> list[tuple[dict[str, Any], Problem]]:
        """(record, problem) of the first ``count`` problems of a group, or of all groups."""
        records = [record for record in self.record["problems"] if group in (None, record["group"])]
        for record in records[:count]:
            if record["toml"] is None:
                raise StudyError(
                    f"{record['name']!r} has laws from outside the package, which a study does not keep; "
                    f"make the problem again where its laws are needed"
                )
        problems = [(record, from_toml(record["toml"])) for record in records[:count]]
        for record, problem in problems:
            if not isinstance(problem, Problem):
                raise StudyError(f"{record['name']!r} is a request stream; this is for problems alone")
        return [(record, problem) for record, problem in problems if isinstance(problem, Problem)]

    def summary(self, metric: str = "pseudo_regret", keys: Sequence[str] = WHERE) -> pl.DataFrame:
        """Runs, mean, standard deviation and error, quantiles of a metric, and how often the best arm was missed."""
        return summarise(self.table, metric, keys)

    def summary_of_groups(self, metric: str = "pseudo_regret") -> pl.DataFrame:
        """The summary by group: over the runs of a single problem, over the means of several.

        Runs of different problems are not draws from one law, so several problems are judged by their means.
        """
        where = ("group", "policy", "budget")
        pooled = self.summary(metric, keys=where)
        means = self.summary(metric).group_by(*where, maintain_order=True).agg(
            pl.len().alias("problems"), *spread(pl.col("mean"))
        )  # fmt: skip
        both = pooled.join(means, on=where, suffix="_over", maintain_order="left")
        several = pl.col("problems") > 1
        both_have = [name for name in means.columns if name in pooled.columns and name not in where]
        return both.with_columns(
            pl.when(several).then(pl.col(f"{name}_over")).otherwise(pl.col(name)).alias(name) for name in both_have
        ).drop(f"{name}_over" for name in both_have)

    def values(self, metric: str = "pseudo_regret", budget: float | None = None) -> AnyArray:
        """A metric at one budget, problem × policy × run, in the study's order."""
        check_metric(metric)
        names = [problem["name"] for problem in self.record["problems"]]
        rows = self.table.filter(pl.col("budget") == self.largest(budget)).sort(
            pl.col("problem").cast(pl.Enum(names)), pl.col("policy").cast(pl.Enum(self.policies)), "run"
        )
        return rows[metric].to_numpy().astype(float).reshape(len(names), len(self.policies), -1)

    def differences(
        self, first: str, second: str, budget: float | None = None, metric: str = "pseudo_regret", level: float = LEVEL
    ) -> pl.DataFrame:
        """Problem by problem, mean of ``first`` minus mean of ``second`` with Welch's interval; with Student's for the
        differences run by run if the games are `paired`."""
        for policy in (first, second):
            if policy not in self.policies:
                raise BadParameter(f"the study has no policy {policy!r}; it has {', '.join(self.policies)}")
        values = self.values(metric, budget)
        ours, theirs = (values[:, self.policies.index(policy)] for policy in (first, second))
        difference = self._between(ours, theirs, level)
        return pl.DataFrame(
            {
                "group": [problem["group"] for problem in self.record["problems"]],
                "problem": [problem["name"] for problem in self.record["problems"]],
                "first": ours.mean(axis=-1), "second": theirs.mean(axis=-1),
                "difference": difference.value, "low": difference.low, "high": difference.high,
            }
        )  # fmt: skip

    def compare(self, budget: float | None = None, metric: str = "pseudo_regret", level: float = LEVEL) -> pl.DataFrame:
        """Every pair of policies in every group: on how many problems the first is better, and the mean difference.

        Better is less regret or more reward. ``wins`` and ``losses`` of the first policy are problems whose interval
        excludes 0. The interval of the mean difference is over problems, paired: Student's t on the differences. With
        one problem it is that problem's own.
        """
        sign = towards_less(metric)
        values = self.values(metric, budget)
        difference = self._between(values[:, :, None], values[:, None, :], level)
        member = np.array([problem["group"] for problem in self.record["problems"]])
        rows = []
        for (first, second), group in itertools.product(
            itertools.combinations(range(len(self.policies)), 2), self.groups
        ):
            gaps, low, high = (
                part[member == group, first, second] for part in (difference.value, difference.low, difference.high)
            )
            over = student(gaps, level)
            surely_less, surely_more = int((high < 0).sum()), int((low > 0).sum())
            several = len(gaps) > 1
            rows.append(
                {
                    "group": group, "first": self.policies[first], "second": self.policies[second],
                    "problems": len(gaps),
                    "better": int((sign * gaps < 0).sum()),
                    "wins": surely_less if sign > 0 else surely_more,
                    "losses": surely_more if sign > 0 else surely_less,
                    "difference": float(gaps.mean()),
                    "low": float(over.low if several else low[0]),
                    "high": float(over.high if several else high[0]),
                }
            )  # fmt: skip
        return pl.DataFrame(rows)

    def best(self, budget: float | None = None, metric: str = "pseudo_regret") -> pl.DataFrame:
        """Problem by problem, the policy with the best mean, and whether that is sure: whether its interval against
        each of the others excludes 0, as in `differences`, with Holm's correction over the others."""
        values = towards_less(metric) * self.values(metric, budget)
        least = values.mean(axis=-1).argmin(axis=1)
        lower = self.below_rivals(values, least)
        return pl.DataFrame(
            {
                "group": [problem["group"] for problem in self.record["problems"]],
                "problem": [problem["name"] for problem in self.record["problems"]],
                "policy": [self.policies[place] for place in least],
                "sure": lower.all(axis=1),
            }
        )

    def best_of_groups(self, budget: float | None = None, metric: str = "pseudo_regret") -> pl.DataFrame:
        """Group by group, the policy with the best mean, the policies against which that is undecided, and whether
        there are none, so that it is sure. Of one problem as `best` says, over several by Student's t on the paired
        differences of their means; Holm over the others."""
        values = towards_less(metric) * self.values(metric, budget)
        member = np.array([problem["group"] for problem in self.record["problems"]])
        rows = []
        for group in self.groups:
            group_values = values[member == group]
            means = group_values.mean(axis=-1)
            least = int(means.mean(axis=0).argmin())
            if len(group_values) == 1:
                lower = self.below_rivals(group_values, np.array([least]))[0]
            else:
                lower, _ = surely(student((means[:, [least]] - np.delete(means, least, axis=1)).T))
            others = [policy for place, policy in enumerate(self.policies) if place != least]
            undecided = [policy for policy, sure in zip(others, lower, strict=True) if not sure]
            rows.append(
                {"group": group, "policy": self.policies[least], "undecided": undecided, "sure": not undecided}
            )  # fmt: skip
        return pl.DataFrame(rows, schema_overrides={"undecided": pl.List(pl.String)})

    def _between(self, first: AnyArray, second: AnyArray, level: float = LEVEL) -> Difference:
        """The mean of the first less the mean of the second, over the runs along the last axis."""
        return student(first - second, level) if self.paired else welch(moments(first), moments(second), level)

    def below_rivals(self, values: AnyArray, own: AnyArray) -> AnyArray:
        """Whether on each problem the policy in column ``own`` is surely lower than each of the others."""
        return (paired_rivals(values, own) if self.paired else against_rivals(moments(values), own))[0]

    def winners(self, budget: float | None = None, metric: str = "pseudo_regret") -> pl.DataFrame:
        """The number of problems on which each policy has the best mean, by group, and how many significantly."""
        counts = (
            self.best(budget, metric)
            .group_by("group", "policy")
            .agg(pl.len().alias("problems"), pl.col("sure").sum())
        )  # fmt: skip
        every = pl.DataFrame({"group": self.groups}).join(pl.DataFrame({"policy": self.policies}), how="cross")
        return every.join(counts, on=["group", "policy"], how="left", maintain_order="left").fill_null(0)

    def largest(self, budget: float | None = None) -> float:
        """The budget asked for, or the largest one."""
        if budget is None:
            return max(self.budgets)
        if budget not in self.budgets:
            asked = f"{budget:g}" if isinstance(budget, int | float) else f"{budget!r:.40}"
            raise BadParameter(
                f"the study has no budget {asked}; it has {', '.join(f'{own:g}' for own in self.budgets)}"
            )
        return budget

    def plot(
        self, figure: str | None = None, *, width: str | float = "page", dark: bool = False, ax: Any = None,
        **options: Any,
    ) -> Any:  # fmt: skip
        """A Matplotlib figure: "regret" against budget, "dots" at one budget, "wins", "profile" and "quantiles" over
        problems, or "pulls" by arm, for which runs are played again; "regret" if there are several budgets, or "dots".

        ``width`` is "paper", "page", "phone" or inches. All but "pulls" take ``metric``, all but "regret" take
        ``budget``; "regret" takes ``deviations``, ``log`` and ``lower_bound``. ``ax`` is for figures of one panel, and
        is returned.
        """
        from budgetbandits.experiments import plots

        return plots.draw(self, figure, width, dark, ax, **options)

    def write_csv(self, path: str | Path) -> None:
        """Write the table of all games as CSV."""
        self.table.write_csv(path)

    def write_parquet(self, path: str | Path) -> None:
        """Write the table of all games as Parquet."""
        self.table.write_parquet(path)

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        try:
            import pandas as pd
        except ImportError:
            raise BadParameter("to_pandas needs pandas; pip install pandas") from None
        return pd.DataFrame(self.table.to_dict(as_series=False))


def towards_less(metric: str) -> float:
    """The sign that turns a metric into one of which less is better."""
    check_metric(metric)
    if metric not in BETTER:
        raise BadParameter(f"neither more nor less {metric} is better; compare by {', '.join(BETTER)}")
    return 1.0 if BETTER[metric] == "lower" else -1.0


# --- cells of its table -----------------------------------------------------------------------------------------------


def _cell(row: dict[str, Any], best: bool) -> Cell:
    """A mean with its interval: over the runs of a single problem, over the means of several."""
    count = row["problems"] if row["problems"] > 1 else row["runs"]
    half = None if row["sem"] is None else float(half_width(row["sem"], count))
    return estimate(row["mean"], half, best)


def _surely_best(results: Results, metric: str, budget: float) -> dict[str, str]:
    """The policy that is significantly the best, for the groups that have one."""
    best = results.best_of_groups(budget, metric).filter("sure")
    return dict(zip(best["group"], best["policy"], strict=True))


def _heading(title: str, group: str, budget: float, groups: int, budgets: int) -> str:
    if budgets == 1:
        return group if groups > 1 else title
    return f"{budget:,g}" if groups == 1 else f"{group}, {budget:,g}"
