"""docs/measurements/leaderboard.md, its figures and the data of `budgetbandits recommend`, from leaderboards.

budgetbandits leaderboard --out out/leaderboard
budgetbandits leaderboard --suite examples/paced-suite.toml --setting two-resources-3 … --out out/paced
python benchmarks/leaderboard_page.py out/leaderboard [out/paced]
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from budgetbandits.experiments.experiment_file import SUITE, shipped_text
from budgetbandits.experiments.leaderboard import PACED_SUMMARY, SUMMARY, read_summary
from budgetbandits.formatting.numbers import estimate, exact, interval, number, open_interval
from budgetbandits.policies import label
from budgetbandits.report.leaderboard import efforts, facts, matrix, sentences

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "measurements" / "leaderboard.md"
SHIPPED = ROOT / "src" / "budgetbandits" / "experiments" / "shipped"
FIRST = 5
"""Policies of each setting that the page shows; standings.csv has all."""

INTRO = """\
# The leaderboard, setting by setting

For researchers: who wins where, with 95 % intervals. [What it says](../explanation/leaderboard.md) in
short is a page of its own.

The suite (`src/budgetbandits/experiments/shipped/suite.toml`) plays [every
policy](../reference/policies.md) on the settings of the literature, the paper's problems and hard
cases. Tails count: with 500 problems in a setting the 99 % quantile rests on five games.

- `budgetbandits leaderboard --out DIR` plays all of it; stopped, the same command goes on.
- `--setting near-ties --setting rare-cheap` plays some settings, `--problems 50` a tenth of each.
- `--with mypolicies.py:Mine` lets a policy of yours join, `--suite mine.toml` plays a suite of yours.
- `--score` also ranks by the score of [the champion](champion.md), in which tails count.

The folder then has `leaderboard.html` with every policy of every setting, what each must know, what is
proven of it and how long a decision takes; `standings.csv` and `leaderboard.json` as data; and a
[study](../howto/studies.md) for each setting.
"""

RULES = """\
## How to read it

- Measured is the pseudo-regret. $B = N \\min \\mu^c$ means that the budget of each problem is $N$ times
  the smallest mean cost of its arms, as in the literature. Its $N$ is 150,000; here it is that in one
  setting and less in the others.
- Differences are taken problem by problem, and Student's interval of their mean is over the problems;
  on a single problem Welch's is over the runs. *Not distinguishable* means that Holm's test at 95 % over
  all that compete does not reject a tie with the best. Means of 500 games with heavy tails are less
  certain than their intervals say; the 99 % quantile shows where that is.
- Policies that must know more than the budget, marked *, are handed the truth. They do not compete.
- The interval of the 99 % quantile is by order statistics and holds for any law.
- *÷ bound* is the mean divided by $C \\ln B$, $C$ the constant of the asymptotic [lower
  bound](../explanation/theory.md). Below 1 is no contradiction: the bound holds in the long run only.

## What is left out

- Budgets that must last for a number of requests, arms that change, and recorded answers of language
  models have [a suite of their own](pacing.md#a-leaderboard-with-a-horizon): the goal is another one.
- Slow policies play where they can: each setting names those that it leaves out. `start` has every one.
- One game of each policy on each problem: what differs between games of one problem is part of the
  scatter over problems.
"""


def main(folder: Path, paced: Path | None = None) -> None:
    summary = read_summary(folder) | {"command": "budgetbandits leaderboard"}  # wherever the folder was
    (ROOT / "docs" / "figures").mkdir(exist_ok=True)
    for name in ("profile", "quantiles"):
        shutil.copy(folder / "figures" / f"{name}.png", ROOT / "docs" / "figures" / f"leaderboard-{name}.png")
    PAGE.write_text("\n".join([INTRO, *found(summary), RULES, *time_taken(summary)]), encoding="utf-8")
    shipped = {SUMMARY: summary}
    if paced is not None:
        command = "budgetbandits leaderboard --suite examples/paced-suite.toml"
        shipped[PACED_SUMMARY] = read_summary(paced) | {"command": command}
    for name, data in shipped.items():
        text = json.dumps(_rounded(data), ensure_ascii=False, separators=(",", ":"))
        (SHIPPED / name).write_text(text + "\n", encoding="utf-8")


def found(summary: dict[str, Any]) -> list[str]:
    lines = ["## In short", "", *[_filled(f"- {sentence}", "  ") for sentence in sentences(summary)], ""]
    lines += [_filled(f"{facts(summary)}. {mark(summary)}"), ""]
    if unplayed := _unplayed(summary):
        lines += [f"Of the suite's settings these are not in the data yet: {', '.join(unplayed)}.", ""]
    lines += ["![How far from the best](../figures/leaderboard-profile.png)", ""]
    lines += [
        "## Over all settings",
        "",
        "Mean regret divided by that of each setting's best, geometric mean over settings. Who plays in few comes "
        "last.",
        "",
    ]
    lines += [
        "| policy | times the best | 95 % | settings | best, or not distinguishable from it, in |",
        "|---|---|---|---|---|",
    ]
    for row in matrix(summary):
        close = sum(cell is not None and cell["close"] for cell in row["cells"])
        star = "" if row["competes"] else " *"
        where = f"{close}" if row["competes"] else ""
        lines.append(
            f"| {label(row['policy'])}{star} | {row['times']:.2f} | {interval(row['low'], row['high'])} | "
            f"{row['settings']} | {where} |"
        )
    lines += ["", mark(summary), "", "## Setting by setting", "", "![Tails](../figures/leaderboard-quantiles.png)", ""]
    lines += [mark(summary), ""]
    for setting in summary["settings"]:
        lines += [*_setting(setting), mark(summary, [setting]), ""]
    return lines


def _unplayed(summary: dict[str, Any]) -> list[str]:
    """Settings of the suite that ships which the leaderboard does not have."""
    played = {setting["name"] for setting in summary["settings"]}
    every = tomllib.loads(shipped_text(SUITE))["settings"]
    return [f"`{entry['name']}`" for entry in every if entry["name"] not in played]


def mark(summary: dict[str, Any], settings: Sequence[dict[str, Any]] = ()) -> str:
    """Where the numbers of some settings, or of all, come from."""
    of = [setting for setting in settings or summary["settings"] if setting["problems"] > 1]
    counts = {
        entry["name"]: entry["problems"][0].get("count", 1) for entry in tomllib.loads(shipped_text(SUITE))["settings"]
    }
    short = [setting["problems"] for setting in of if setting["problems"] < counts[setting["name"]]]
    full = [setting["title"] for setting in of if setting["problems"] == counts[setting["name"]]]
    option = f" --problems {min(short)}" if short else ""
    besides = f" ({', '.join(full)}: all of them)" if option and full else ""
    seed, day = summary["settings"][0]["seed"], max(setting["begun"] for setting in settings or summary["settings"])
    return f"Measured by `budgetbandits leaderboard{option}`{besides}, seed {seed}, {day}."


def _setting(setting: dict[str, Any]) -> list[str]:
    at = setting["budgets"][-1]
    unit = "" if setting["budget_unit"] == "1" else " × min μc"
    games = f"{setting['problems']} problems" if setting["problems"] > 1 else f"one problem, {setting['runs']} runs"
    about = f"{setting['about'][:1].upper()}{setting['about'][1:]}; {games}, B = {exact(at['budget'])}{unit}."
    left_out = ", ".join(f"`{policy}`" for policy in setting["without"])
    rows = [row for row in at["standings"] if row["competes"]]
    close = [row for row in rows if row["best"] or not row["apart"]]
    lines = [f"### {setting['title']}", "", about, ""]
    lines += [
        "| policy | mean | behind the best | median | 90 % | 99 % | its interval | largest | ÷ bound |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows[:FIRST]:
        mean, half = estimate(row["mean"], row["high"] - row["mean"])
        behind = (
            "–"
            if row["best"]
            else interval(row["behind_low"], row["behind_high"]) + ("" if row["apart"] else ", a tie")
        )
        lines.append(
            f"| {label(row['policy'])} | {mean} ± {half} | {behind} | {number(row['median'])} | {number(row['q90'])} | "
            f"{number(row['q99'])} | {open_interval(row['q99_low'], row['q99_high'])} | {number(row['largest'])} | "
            f"{number(row['times_bound'])} |"
        )
    more = [label(row["policy"]) for row in close if row not in rows[:FIRST]]
    if more:
        lines += ["", f"Not distinguishable from the best either: {', '.join(more)}."]
    if left_out:
        lines += ["", f"Left out: {left_out}."]
    return [*lines, ""]


def time_taken(summary: dict[str, Any]) -> list[str]:
    taken = efforts(summary)
    share = 100.0 * taken["reference"] / taken["total"]
    longest = sorted(taken["rows"], key=lambda row: row["seconds"], reverse=True)[:3]
    text = (
        f"{taken['total'] / 60:.0f} minutes of processor time, {share:.1f} % of them in the reference simulator ("
        + ", ".join(f"`{policy}` {seconds:.1f} s" for policy, seconds in taken["slow"])
        + "). The longest: " + "; ".join(f"{row['title']} ({row['seconds']:.0f} s)" for row in longest) + "."
    )  # fmt: skip
    end = "This page and its figures are written by `python benchmarks/leaderboard_page.py`; its text is there."
    return ["## What it took", "", _filled(text), "", mark(summary), "", _filled(end), ""]


def _filled(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 100, subsequent_indent=indent, break_on_hyphens=False)


def _rounded(value: Any) -> Any:
    """Five digits, which are more than the intervals are worth."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, float) and value and math.isfinite(value):
        return float(f"{value:.5g}")
    return value


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
