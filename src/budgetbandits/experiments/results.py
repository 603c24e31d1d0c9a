"""What a study found: one tidy table, a row for each game at each budget, and summaries of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from budgetbandits.errors import BadParameter, StudyError
from budgetbandits.experiments.study import Study
from budgetbandits.problem import Problem

BTS = "bts"
WHERE = ("group", "problem", "policy", "budget")
METRICS = ("pseudo_regret", "regret", "reward", "spend", "rounds")
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
        problems = {problem["name"]: problem for problem in record["problems"]}
        frames = []
        for cell in record["cells"]:
            path = study.part(cell["key"])
            try:
                part = pl.read_parquet(path)
            except FileNotFoundError:
                there = sum(study.part(each["key"]).exists() for each in record["cells"])
                raise StudyError(
                    f"{folder} is not finished: {there} of {len(record['cells'])} parts are there; run the experiment "
                    f"again with the same --out, and it goes on"
                ) from None
            except (OSError, pl.exceptions.PolarsError) as error:
                raise StudyError(f"cannot read {path}: {error}; delete it and run the experiment again") from None
            problem = problems[cell["problem"]]
            frames.append(
                part.select(
                    pl.lit(problem["group"]).alias("group"),
                    pl.lit(problem["name"]).alias("problem"),
                    pl.lit(problem["arms"]).cast(pl.Int64).alias("arms"),
                    pl.lit(cell["policy"]).alias("policy"),
                    pl.all(),
                )
            )
        return cls(pl.concat(frames).rechunk(), record)

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

    def differences(
        self, first: str, second: str, budget: float | None = None, metric: str = "pseudo_regret", level: float = 0.95
    ) -> pl.DataFrame:
        """Problem by problem, mean of ``first`` minus mean of ``second`` with Welch's interval."""
        budget = self.largest(budget)
        for policy in (first, second):
            if policy not in self.policies:
                raise BadParameter(f"the study has no policy {policy!r}; it has {', '.join(self.policies)}")
        summary = self.summary(metric).filter(pl.col("budget") == budget)
        wanted = ["group", "problem", "runs", "mean", "std"]
        left = summary.filter(pl.col("policy") == first).select(wanted)
        right = summary.filter(pl.col("policy") == second).select(wanted)
        both = left.join(right, on=["group", "problem"], suffix="_second", maintain_order="left")
        difference, half = _welch(
            both["mean"].to_numpy(), both["std"].to_numpy(), both["runs"].to_numpy(),
            both["mean_second"].to_numpy(), both["std_second"].to_numpy(), both["runs_second"].to_numpy(), level,
        )  # fmt: skip
        return both.select(
            "group",
            "problem",
            pl.col("mean").alias("first"),
            pl.col("mean_second").alias("second"),
            pl.Series("difference", difference),
            pl.Series("low", difference - half),
            pl.Series("high", difference + half),
        )

    def compare(self, budget: float | None = None, metric: str = "pseudo_regret", level: float = 0.95) -> pl.DataFrame:
        """Every pair of policies in every group: on how many problems each is lower, and the mean difference.

        ``wins`` and ``losses`` of the first policy are problems whose interval excludes 0. The interval of the mean
        difference is over problems, paired: Student's t on the differences. With one problem it is that problem's own.
        """
        rows = []
        for place, first in enumerate(self.policies):
            for second in self.policies[place + 1 :]:
                frame = self.differences(first, second, budget, metric, level)
                for group in self.groups:
                    part = frame.filter(pl.col("group") == group)
                    values = part["difference"].to_numpy()
                    if len(values) > 1:
                        half = (
                            stats.t.ppf(0.5 + level / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
                        )
                        low, high = values.mean() - half, values.mean() + half
                    else:
                        low, high = part["low"][0], part["high"][0]
                    rows.append(
                        {
                            "group": group, "first": first, "second": second, "problems": len(values),
                            "lower": int((values < 0).sum()), "wins": int((part["high"] < 0).sum()),
                            "losses": int((part["low"] > 0).sum()), "difference": float(values.mean()),
                            "low": float(low), "high": float(high),
                        }
                    )  # fmt: skip
        return pl.DataFrame(rows)

    def winners(self, budget: float | None = None, metric: str = "pseudo_regret") -> pl.DataFrame:
        """In each group, on how many problems each policy has the lowest mean."""
        means = self.summary(metric).filter(pl.col("budget") == self.largest(budget))
        lowest = means.sort("mean").group_by("group", "problem", maintain_order=True).first()
        counts = lowest.group_by("group", "policy").len("problems")
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


def _spread(value: pl.Expr) -> list[pl.Expr]:
    """Standard deviation, standard error and quantiles of what is grouped."""
    quantiles = [value.quantile(q, "linear").alias(f"q{round(100 * q):02d}") for q in QUANTILES]
    return [value.std().alias("std"), (value.std() / pl.len().sqrt()).alias("sem"), *quantiles]


def wilson(hits: Any, trials: Any, level: float = 0.95) -> tuple[Any, Any]:
    """Wilson's interval for a share: right also when the hits are few."""
    z = stats.norm.ppf(0.5 + level / 2)
    share = hits / trials
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * np.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def _welch(mean: Any, std: Any, runs: Any, mean2: Any, std2: Any, runs2: Any, level: float) -> tuple[Any, Any]:
    """(difference of means, half width of its interval); infinitely wide with a single run."""
    if np.any(runs < 2) or np.any(runs2 < 2):
        return mean - mean2, np.full(len(mean), np.inf)
    first, second = std**2 / runs, std2**2 / runs2
    error = np.sqrt(first + second)
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = (first + second) ** 2 / (first**2 / (runs - 1) + second**2 / (runs2 - 1))
    freedom = np.where(np.isfinite(freedom), freedom, runs + runs2 - 2)
    return mean - mean2, stats.t.ppf(0.5 + level / 2, freedom) * error


def _known(metric: str) -> None:
    if metric not in METRICS:
        raise BadParameter(f"unknown metric {metric!r}; choose one of {', '.join(METRICS)}")
