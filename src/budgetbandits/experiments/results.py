"""What a study found: one tidy table, a row for each game at each budget, and summaries of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from budgetbandits.arrays import AnyArray
from budgetbandits.errors import BadParameter, StudyError
from budgetbandits.experiments.statistics import (
    LEVEL,
    Moments,
    against_rivals,
    moments,
    student,
    surely,
    welch,
    wilson,
)
from budgetbandits.experiments.study import Study
from budgetbandits.problem import Problem

BTS = "bts"
WHERE = ("group", "problem", "policy", "budget")
METRICS = ("pseudo_regret", "regret", "reward", "spend", "rounds")
BETTER = {"pseudo_regret": "lower", "regret": "lower", "reward": "higher"}
"""Which way is better; spend and rounds are neither good nor bad."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Results:
    """``table`` has group, problem, arms, policy, budget, run and, of that run, regret, pseudo_regret, reward, spend,
    rounds, identified."""

    table: pl.DataFrame
    record: dict[str, Any]

    @classmethod
    def load(cls, folder: str | Path) -> Results:
        """Read a study that is done; a part that is missing is an error that says how to go on."""
        study = Study(Path(folder))
        record = study.asked()
        paths = [study.part(cell["key"]) for cell in record["cells"]]
        there = sum(path.exists() for path in paths)
        if there < len(paths):
            raise StudyError(
                f"{folder} is not finished: {there} of {len(paths)} parts are there; run the experiment again with the "
                f"same --out, and it goes on"
            )
        problems = {problem["name"]: problem for problem in record["problems"]}
        of = [problems[cell["problem"]] for cell in record["cells"]]
        labels = pl.DataFrame(
            {
                "group": [problem["group"] for problem in of],
                "problem": [problem["name"] for problem in of],
                "arms": [problem["arms"] for problem in of],
                "policy": [cell["policy"] for cell in record["cells"]],
                "part": [path.name for path in paths],
            },
            schema_overrides={"arms": pl.Int64},
        )
        return cls(labels.join(_parts(paths), on="part", maintain_order="left_right").drop("part"), record)

    @property
    def policies(self) -> list[str]:
        return list(self.record["policies"])

    @property
    def budgets(self) -> list[float]:
        return [float(budget) for budget in self.record["budgets"]]

    @property
    def groups(self) -> list[str]:
        return list(dict.fromkeys(problem["group"] for problem in self.record["problems"]))

    def problems(self, group: str | None = None, count: int | None = None) -> list[tuple[dict[str, Any], Problem]]:
        """(record, problem) of the first ``count`` problems of a group, or of all groups."""
        records = [record for record in self.record["problems"] if group in (None, record["group"])]
        for record in records[:count]:
            if record["toml"] is None:
                raise StudyError(
                    f"{record['name']!r} has laws from outside the package, which a study does not keep; "
                    f"make the problem anew where its laws are needed"
                )
        return [(record, Problem.from_toml(record["toml"])) for record in records[:count]]

    def summary(self, metric: str = "pseudo_regret", by: Sequence[str] = WHERE) -> pl.DataFrame:
        """Runs, mean, standard deviation and error, quantiles of a metric, and how often the best arm was missed."""
        _known(metric)
        value = pl.col(metric)
        frame = self.table.group_by(*by, maintain_order=True).agg(
            pl.len().alias("runs"),
            value.mean().alias("mean"),
            *_spread(value),
            (~pl.col("identified")).sum().alias("missed"),
            (~pl.col("identified")).mean().alias("miss_rate"),
        )
        low, high = wilson(frame["missed"].to_numpy(), frame["runs"].to_numpy())
        return frame.with_columns(pl.Series("miss_rate_low", low), pl.Series("miss_rate_high", high))

    def summary_of_groups(self, metric: str = "pseudo_regret") -> pl.DataFrame:
        """Like `summary`, group by group: over the runs of a single problem, over the means of several.

        Runs of different problems are not draws from one law, so several problems are judged by their means.
        """
        where = ("group", "policy", "budget")
        pooled = self.summary(metric, by=where)
        means = self.summary(metric).group_by(*where, maintain_order=True).agg(
            pl.len().alias("problems"), *_spread(pl.col("mean"))
        )  # fmt: skip
        both = pooled.join(means, on=where, suffix="_over", maintain_order="left")
        several = pl.col("problems") > 1
        spread = [name for name in means.columns if name in pooled.columns and name not in where]
        return both.with_columns(
            pl.when(several).then(pl.col(f"{name}_over")).otherwise(pl.col(name)).alias(name) for name in spread
        ).drop(f"{name}_over" for name in spread)

    def values(self, metric: str = "pseudo_regret", budget: float | None = None) -> AnyArray:
        """A metric at one budget, problem × policy × run, in the study's order."""
        _known(metric)
        names = [problem["name"] for problem in self.record["problems"]]
        rows = self.table.filter(pl.col("budget") == self.largest(budget)).sort(
            pl.col("problem").cast(pl.Enum(names)), pl.col("policy").cast(pl.Enum(self.policies)), "run"
        )
        return rows[metric].to_numpy().astype(float).reshape(len(names), len(self.policies), -1)

    def differences(
        self, first: str, second: str, budget: float | None = None, metric: str = "pseudo_regret", level: float = LEVEL
    ) -> pl.DataFrame:
        """Problem by problem, mean of ``first`` minus mean of ``second`` with Welch's interval."""
        for policy in (first, second):
            if policy not in self.policies:
                raise BadParameter(f"the study has no policy {policy!r}; it has {', '.join(self.policies)}")
        of = moments(self.values(metric, budget))
        ours, theirs = (
            Moments(*(part[:, self.policies.index(policy)] for part in of)) for policy in (first, second)
        )  # fmt: skip
        found = welch(ours, theirs, level)
        return pl.DataFrame(
            {
                "group": [problem["group"] for problem in self.record["problems"]],
                "problem": [problem["name"] for problem in self.record["problems"]],
                "first": ours.mean, "second": theirs.mean, "difference": found.value, "low": found.low,
                "high": found.high,
            }
        )  # fmt: skip

    def compare(self, budget: float | None = None, metric: str = "pseudo_regret", level: float = LEVEL) -> pl.DataFrame:
        """Every pair of policies in every group: on how many problems the first is better, and the mean difference.

        Better is less regret or more reward. ``wins`` and ``losses`` of the first policy are problems whose interval
        excludes 0. The interval of the mean difference is over problems, paired: Student's t on the differences. With
        one problem it is that problem's own.
        """
        sign = _towards_less(metric)
        of = moments(self.values(metric, budget))
        found = welch(
            Moments(*(part[:, :, None] for part in of)), Moments(*(part[:, None, :] for part in of)), level
        )  # fmt: skip
        member = np.array([problem["group"] for problem in self.record["problems"]])
        rows = []
        for (first, second), group in itertools.product(
            itertools.combinations(range(len(self.policies)), 2), self.groups
        ):
            values, low, high = (part[member == group, first, second] for part in (found.value, found.low, found.high))
            over = student(values, level)
            surely_less, surely_more = int((high < 0).sum()), int((low > 0).sum())
            several = len(values) > 1
            rows.append(
                {
                    "group": group, "first": self.policies[first], "second": self.policies[second],
                    "problems": len(values),
                    "better": int((sign * values < 0).sum()),
                    "wins": surely_less if sign > 0 else surely_more,
                    "losses": surely_more if sign > 0 else surely_less,
                    "difference": float(values.mean()),
                    "low": float(over.low if several else low[0]),
                    "high": float(over.high if several else high[0]),
                }
            )  # fmt: skip
        return pl.DataFrame(rows)

    def best(self, budget: float | None = None, metric: str = "pseudo_regret") -> pl.DataFrame:
        """Problem by problem, the policy with the best mean, and whether that is sure: whether its interval against
        each of the others excludes 0, Welch's with Holm's correction over the others."""
        of = moments(_towards_less(metric) * self.values(metric, budget))
        least = of.mean.argmin(axis=1)
        lower, _ = against_rivals(of, least)
        return pl.DataFrame(
            {
                "group": [problem["group"] for problem in self.record["problems"]],
                "problem": [problem["name"] for problem in self.record["problems"]],
                "policy": [self.policies[place] for place in least],
                "sure": lower.all(axis=1),
            }
        )

    def best_of_groups(self, budget: float | None = None) -> pl.DataFrame:
        """Group by group, the policy with the lowest mean pseudo-regret, against whom that is undecided, and whether it
        is sure: against nobody. Of one problem by Welch's test, over several by Student's t on the paired differences
        of their means; Holm over the others."""
        of = moments(self.values(budget=budget))
        member = np.array([problem["group"] for problem in self.record["problems"]])
        rows = []
        for group in self.groups:
            here = Moments(*(part[member == group] for part in of))
            least = int(here.mean.mean(axis=0).argmin())
            if len(here.mean) == 1:
                lower = against_rivals(here, np.array([least]))[0][0]
            else:
                lower, _ = surely(student((here.mean[:, [least]] - np.delete(here.mean, least, axis=1)).T))
            others = [policy for place, policy in enumerate(self.policies) if place != least]
            undecided = [policy for policy, sure in zip(others, lower, strict=True) if not sure]
            rows.append(
                {"group": group, "policy": self.policies[least], "undecided": undecided, "sure": not undecided}
            )  # fmt: skip
        return pl.DataFrame(rows, schema_overrides={"undecided": pl.List(pl.String)})

    def winners(self, budget: float | None = None, metric: str = "pseudo_regret") -> pl.DataFrame:
        """In each group, on how many problems each policy has the best mean, and on how many of them surely."""
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
            raise BadParameter(
                f"the study has no budget {budget:g}; it has {', '.join(f'{each:g}' for each in self.budgets)}"
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
        from budgetbandits.experiments import figures

        return figures.draw(self, figure, width, dark, ax, **options)

    def write_csv(self, path: str | Path) -> None:
        self.table.write_csv(path)

    def write_parquet(self, path: str | Path) -> None:
        self.table.write_parquet(path)

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        try:
            import pandas as pd
        except ImportError:
            raise BadParameter("to_pandas needs pandas; pip install pandas") from None
        return pd.DataFrame(self.table.to_dict(as_series=False))


def _parts(paths: Sequence[Path]) -> pl.DataFrame:
    """All parts, with the name of its file in each row; read at once, since most of the time goes into opening them."""
    distinct = list(dict.fromkeys(paths))  # cells of equal problems share a part
    try:
        parts = pl.read_parquet(distinct, include_file_paths="part")
    except (OSError, pl.exceptions.PolarsError):
        for path in distinct:
            try:
                pl.read_parquet(path)
            except (OSError, pl.exceptions.PolarsError) as error:
                raise StudyError(f"cannot read {path}: {error}; delete it and run the experiment again") from None
        raise
    return parts.with_columns(pl.col("part").str.extract(r"([^/\\]+)$"))


def _spread(value: pl.Expr) -> list[pl.Expr]:
    """Standard deviation, standard error and quantiles of what is grouped."""
    quantiles = [value.quantile(q, "linear").alias(f"q{round(100 * q):02d}") for q in QUANTILES]
    return [value.std().alias("std"), (value.std() / pl.len().sqrt()).alias("sem"), *quantiles]


def _towards_less(metric: str) -> float:
    """What to multiply a metric by so that less is better."""
    _known(metric)
    if metric not in BETTER:
        raise BadParameter(f"neither more nor less {metric} is better; compare by {', '.join(BETTER)}")
    return 1.0 if BETTER[metric] == "lower" else -1.0


def _known(metric: str) -> None:
    if metric not in METRICS:
        raise BadParameter(f"unknown metric {metric!r}; choose one of {', '.join(METRICS)}")
