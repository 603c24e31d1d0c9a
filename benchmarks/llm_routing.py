"""Policies on recorded answers of three language models, next to the source's figures.

    python benchmarks/llm_routing.py [ORDERS] [segments | none | features]

Each policy learns on the table `online` and is then played on `test` (warm), or is played on `test` alone (cold), at
five budgets, with and without the segments (which benchmark a prompt comes from). With `features` there are also the
rows of `bts-linear`, which sees 25 numbers made from the words of each prompt, alone and with the segments, and with
those of `request_features`, for which nothing was fitted. All processors are used. Twenty orders take some minutes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # processes share the processors already

import joblib
import numpy as np

from budgetbandits.adapters.request_features import request_features
from budgetbandits.policies import parse_policy
from budgetbandits.problems.records import ReplayTable, csv_columns, read_csv
from budgetbandits.simulation.replay import ReplayResult, fluid_reward_of, hindsight_reward_of, replay

DATA = Path(__file__).parent.parent / "examples/data"
COLUMNS = {"request": "prompt", "arm": "model", "reward": "reward", "cost": "cost_usd", "segment": "source"}
BUDGETS = [8.3e-5, 2.3e-4, 6.6e-4, 1.9e-3, 5.3e-3]
SOURCE = [0.813, 0.859, 0.898, 0.917, 0.924]
"""Results that the source of the data reports for its router, which learns on `online` from embeddings of prompts."""


class Row(NamedTuple):
    """A policy on a table, after learning on another if there is one."""

    title: str
    policy: str
    table: ReplayTable
    learn_on: ReplayTable | None


def built_in_tables() -> tuple[ReplayTable, ReplayTable]:
    """The table to learn on and the table to play, with the features that adapters fill in and no segments."""
    tables: list[ReplayTable] = []
    for name in ("online", "test"):
        texts = csv_columns(DATA / f"llm-routing-{name}-texts.csv")
        rows = [request_features({"messages": [{"role": "user", "content": text}]}) for text in texts["text"]]
        features = {"prompt": texts["prompt"]} | {key: [row[key] for row in rows] for key in rows[0]}
        records = read_csv(DATA / f"llm-routing-{name}.csv", COLUMNS, features)
        names = {"arms": tables[0].arms, "segments": tables[0].segments} if tables else {}
        tables.append(ReplayTable.from_records(records, **names))
    return tables[0].without_segments(), tables[1].without_segments()


def tables() -> tuple[ReplayTable, ReplayTable]:
    """The table to learn on and the table to play, with segments and features."""
    online, test = (DATA / f"llm-routing-{name}" for name in ("online", "test"))
    first = ReplayTable.from_csv(f"{online}.csv", COLUMNS, f"{online}-features.csv")
    names = {"arms": first.arms, "segments": first.segments}
    return first, ReplayTable.from_csv(f"{test}.csv", COLUMNS, f"{test}-features.csv", **names)


def rows(which: str) -> Iterator[Row]:
    """The rows of one of the tables; the slowest first, so that processes end together."""
    online, test = tables()
    plain, plain_test = online.without_segments(), test.without_segments()
    kinds = {
        "segments": [("bts-paced:forget=0", ", segments", online, test)],
        "none": [("bts-paced:forget=0", "", plain, plain_test), ("primal-dual-bwk", "", plain, plain_test)],
        "features": [
            ("bts-linear:forget=0", ", features and segments", online, test),
            ("bts-linear:forget=0", ", features", plain, plain_test),
            ("bts-linear:forget=0", ", features of `request_features`", *built_in_tables()),
            ("bts-linear", ", features of `request_features`", *built_in_tables()),
            ("bts-paced:forget=0", ", segments", online, test),
            ("bts-paced:forget=0", "", plain, plain_test),
        ],
    }
    for name, names, first, second in kinds[which] if which else [*kinds["segments"], *kinds["none"]]:
        for learn_on in (first, None):
            yield Row(f"`{name}`{names}, {'cold' if learn_on is None else 'warm'}", name, second, learn_on)


def main(*words: str) -> None:
    orders = next((int(word) for word in words if word.isdigit()), 20)
    which = next((word for word in words if not word.isdigit()), "")
    _, test = tables()
    line("dollars a request", (f"{rate:g}" for rate in BUDGETS))
    print("|---" * (len(BUDGETS) + 1) + "|")
    line("the source's router, warm", (f"{reward:.3f}" for reward in SOURCE))
    if which != "segments":
        line("best mix, means known", (f"{fluid_reward_of(test.without_segments(), rate):.3f}" for rate in BUDGETS))
    if which != "none":
        line("best mix for each segment, means known", (f"{fluid_reward_of(test, rate):.3f}" for rate in BUDGETS))
    if which == "features":
        line("best arm for each prompt, outcomes known", (f"{hindsight_reward_of(test, rate):.3f}" for rate in BUDGETS))
    kinds = list(rows(which))
    plays = (
        joblib.delayed(replay)(row.table, parse_policy(row.policy), rate, orders, learn_on=row.learn_on)
        for row in kinds
        for rate in BUDGETS
    )
    results = iter(joblib.Parallel(n_jobs=-1, return_as="generator")(plays))
    for row in kinds:
        played = [next(results) for _ in BUDGETS]
        line(row.title, map(cell, played))
        line(
            "– share of the budget used",
            (f"{result.used.mean():.3f}, at most {result.used.max():.4f}" for result in played),
        )


def line(title: str, cells: Iterator[str]) -> None:
    print("|", " | ".join([title, *cells]), "|", flush=True)


def cell(played: ReplayResult) -> str:
    """Mean reward and, in brackets, its standard error over the orders."""
    error = np.std(played.reward, ddof=1) / np.sqrt(len(played.reward)) if len(played.reward) > 1 else np.nan
    return f"{played.reward.mean():.4f} ({error:.4f})"


if __name__ == "__main__":
    main(*sys.argv[1:])
