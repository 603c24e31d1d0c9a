"""A table of games that no study has written, taken for the table of a study."""

from __future__ import annotations

from typing import Any

import polars as pl

from budgetbandits.errors import BadParameter
from budgetbandits.simulation.many import COLUMNS


def with_group(table: pl.DataFrame) -> pl.DataFrame:
    """All problems in one group, if the table says nothing of groups."""
    if not isinstance(table, pl.DataFrame):
        raise BadParameter(f"the table is {table!r:.40}; give a polars DataFrame of games, as simulate_many returns")
    if lacking := [name for name in COLUMNS if name not in table.columns]:
        raise BadParameter(
            f"the table has no column {lacking[0]!r}; give one with a row for each game, as simulate_many returns"
        )
    return table if "group" in table.columns else table.select(pl.lit("all problems").alias("group"), pl.all())


def record_of(table: pl.DataFrame, name: str, paired: bool) -> dict[str, Any]:
    """What a study would have written down of these games."""
    where = ("problem", "policy", "budget")
    games = table.group_by(*where).agg(pl.len().alias("runs"), pl.col("run").n_unique().alias("different"))
    parts = [table[column].n_unique() for column in where]
    runs = games["runs"].to_list()
    if not runs or len(runs) != parts[0] * parts[1] * parts[2] or len({*runs, *games["different"]}) > 1:
        raise BadParameter(
            "not every policy has the same runs at every budget on every problem; keep only those that have"
        )
    problems = table.select("problem", "group", "arms").unique(maintain_order=True)
    if len(problems) > parts[0]:
        raise BadParameter("a problem has two groups or two numbers of arms; give every problem a name of its own")
    return {
        "name": name,
        "runs": runs[0],
        "policies": table["policy"].unique(maintain_order=True).to_list(),
        "budgets": table["budget"].unique(maintain_order=True).to_list(),
        "problems": [
            {"name": problem, "group": group, "arms": arms, "gaps": None, "toml": None}
            for problem, group, arms in problems.iter_rows()
        ],
        "paired": paired,
    }
