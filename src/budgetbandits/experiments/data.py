"""The table of games: of a finished study, read from its parts, or from elsewhere, checked.

A study's table is kept in one file, results.parquet, because opening a thousand parts takes long. Next to it is
results.blake2b, the digest of its ingredients: the labels of its rows, and the size, time and inode of every part and
of the table itself. A table with another digest is not read: parts were lost or replaced, the study was changed,
another program wrote results.parquet, or a writer was killed between the two files.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Iterable
from typing import Any

import polars as pl

import budgetbandits
from budgetbandits.errors import BadParameter, StudyError
from budgetbandits.experiments.study import Study
from budgetbandits.simulation.game_table import COLUMNS

TABLE, DIGEST = "results.parquet", "results.blake2b"
PLACE = "place"
"""The column of a part that says which of its cell's problems a row is of; a part of one problem has none."""


def load(study: Study, record: dict[str, Any], keep: bool = True) -> pl.DataFrame:
    """The table of a study: as an earlier reader kept it, or part by part and then kept, unless ``keep`` is false."""
    made_of = _ingredients(study, record)
    table = _kept(study, made_of)
    if table is None:
        labels = _labels(study, record)
        keys = ["part", PLACE]
        table = labels.join(_parts(labels), on=keys, maintain_order="left_right").drop(keys)
        if keep and _ingredients(study, record) == made_of:  # else a part was replaced while it was read
            _keep(study, made_of, table)
    return table


def _ingredients(study: Study, record: dict[str, Any]) -> bytes:
    """The ingredients of a table: the version that makes it, its labels and the files of its parts."""
    stored = study.there()
    keys = [cell["key"] for cell in record["cells"]]
    count = sum(key in stored for key in keys)
    if count < len(keys):
        raise StudyError(
            f"{study.folder} is not finished: {count} of {len(keys)} parts are there; run the experiment again with "
            f"the same --out, and it goes on"
        )
    labels = [[problem["name"], problem["group"], problem["arms"]] for problem in record["problems"]]
    files = [_identity(stored[key]) for key in keys]
    return json.dumps([budgetbandits.__version__, labels, record["cells"], files]).encode()


def _labels(study: Study, record: dict[str, Any]) -> pl.DataFrame:
    """The labels of the rows of each part, problem by problem of its cell, and the part's path."""
    problems = pl.DataFrame(
        {
            "group": [problem["group"] for problem in record["problems"]],
            "problem": [problem["name"] for problem in record["problems"]],
            "arms": [problem["arms"] for problem in record["problems"]],
        },
        schema_overrides={"arms": pl.Int64},
    )
    cells = pl.DataFrame(
        {
            "problem": [cell["problems"] for cell in record["cells"]],
            "policy": [cell["policy"] for cell in record["cells"]],
            "part": [str(study.part(cell["key"])) for cell in record["cells"]],
        }
    ).with_columns(pl.int_ranges(pl.col("problem").list.len()).alias(PLACE))
    labels = cells.explode("problem", PLACE).join(problems, on="problem", maintain_order="left")
    return labels.select("group", "problem", "arms", "policy", PLACE, "part")


def _parts(labels: pl.DataFrame) -> pl.DataFrame:
    """All parts, with the path of its file and the place in its cell in each row."""
    alone = pl.col(PLACE).max().over("part") == 0
    tables = [_read(labels.filter(alone)["part"]), _read(labels.filter(~alone)["part"])]
    placed = [part if PLACE in part.columns else part.with_columns(pl.lit(0, pl.Int64).alias(PLACE)) for part in tables]
    return pl.concat([part for part in placed if part.height], how="diagonal")


def _read(paths: Iterable[str]) -> pl.DataFrame:
    """These parts at once, since most of the time goes into opening them."""
    distinct = list(dict.fromkeys(paths))  # cells of equal problems share a part
    if not distinct:
        return pl.DataFrame()
    try:
        return pl.read_parquet(distinct, include_file_paths="part")
    except (OSError, pl.exceptions.PolarsError):
        for path in distinct:
            try:
                pl.read_parquet(path)
            except (OSError, pl.exceptions.PolarsError) as error:
                raise StudyError(f"cannot read {path}: {error}; delete it and run the experiment again") from None
        raise


def _kept(study: Study, made_of: bytes) -> pl.DataFrame | None:
    """The table that was kept, if it is there, whole, and made of this."""
    with contextlib.suppress(OSError, pl.exceptions.PolarsError), (study.folder / TABLE).open("rb") as table:
        if (study.folder / DIGEST).read_text(encoding="utf-8") == _digest(made_of, os.fstat(table.fileno())):
            return pl.read_parquet(table)
    return None


def _keep(study: Study, made_of: bytes, table: pl.DataFrame) -> None:
    """Write the table for the next reader; where nothing can be written, that one reads the parts again."""
    buffer = io.BytesIO()
    table.write_parquet(buffer, compression="zstd")
    with contextlib.suppress(StudyError):
        written = study.write(study.folder / TABLE, buffer.getvalue())
        study.write(study.folder / DIGEST, _digest(made_of, written).encode())


def _digest(made_of: bytes, table: os.stat_result) -> str:
    return hashlib.blake2b(made_of + json.dumps(_identity(table)).encode(), digest_size=16).hexdigest()


def _identity(file: os.stat_result) -> tuple[int, int, int]:
    """A file that replaces another differs from it in its inode, even if time and size are the same."""
    return file.st_size, file.st_mtime_ns, file.st_ino


# --- a table of games that no study has written -----------------------------------------------------------------------


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
    """The record that a study would have of these games."""
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
