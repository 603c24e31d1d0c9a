"""Summaries of tidy tables of games: a row for each game at each budget, as `Outcome.to_frame` writes them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from budgetbandits.errors import BadParameter, MissingExtra
from budgetbandits.numerics.intervals import wilson

if TYPE_CHECKING:
    import polars as pl

METRICS = ("pseudo_regret", "regret", "reward", "spend", "rounds")
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def need_polars(what: str) -> None:
    """Say in which extra polars is, where it is not installed."""
    if find_spec("polars") is None:
        raise MissingExtra(f"{what} needs polars; pip install 'budgetbandits[lab]'")


def check_metric(metric: str) -> None:
    if metric not in METRICS:
        raise BadParameter(f"unknown metric {metric!r}; choose one of {', '.join(METRICS)}")


def summarise(table: pl.DataFrame, metric: str, by: Sequence[str]) -> pl.DataFrame:
    """Runs, mean, standard deviation and error, quantiles of a metric, and how often the best arm was missed."""
    check_metric(metric)
    import polars as pl

    value, missed = pl.col(metric), ~pl.col("identified")
    frame = table.group_by(*by, maintain_order=True).agg(
        pl.len().alias("runs"),
        value.mean().alias("mean"),
        *spread(value),
        missed.sum().alias("missed"),
        missed.mean().alias("miss_rate"),
    )
    low, high = wilson(frame["missed"].to_numpy(), frame["runs"].to_numpy())
    return frame.with_columns(pl.Series("miss_rate_low", low), pl.Series("miss_rate_high", high))


def spread(value: pl.Expr) -> list[pl.Expr]:
    """Standard deviation, standard error and quantiles of what is grouped."""
    import polars as pl

    quantiles = [value.quantile(q, "linear").alias(f"q{round(100 * q):02d}") for q in QUANTILES]
    return [value.std().alias("std"), (value.std() / pl.len().sqrt()).alias("sem"), *quantiles]
