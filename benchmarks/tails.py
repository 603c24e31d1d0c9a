"""docs/explanation/findings/tails.md and its figure, from a played leaderboard; `champion.py` writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from budgetbandits.experiments.results import Results
from budgetbandits.experiments.standings import SettingGames, quantile_interval
from budgetbandits.experiments.statistics import student
from budgetbandits.figures import profiles
from budgetbandits.figures.layout import Series, save
from budgetbandits.figures.style import figure_spec, series_styles
from budgetbandits.formatting.numbers import estimate, listed, number, open_interval
from budgetbandits.numerics.arrays import Array
from budgetbandits.policies import label

LONG = "bernoulli-10-long"
"""The setting of the tails: the literature's problems, at its budget."""
SHOWN = ("omega-ucb", "bts", "imed-fading")
"""Policies that the figure draws next to the champion."""
LOWEST, ALSO = 12, ("omega-ucb:rho=1.0", "kube", "m-ucb", "ucb1")
"""How many policies the table has, the lowest means first, and those that it has besides."""

TAILS = """\
# A few lost games decide the mean

For researchers who rank policies: why medians, means and tails disagree, and what a study must show.

A policy can have less than half the median regret of another and still the higher mean, because it
loses a few games altogether. A study of a hundred problems often does not see that.

{found}

![Regret over problems, sorted](../../figures/tails.png)

{mark}

## What was played

The setting of the literature (Heyden et al., KDD 2024): ten Bernoulli arms, mean rewards from
$U(0, 1)$, mean costs from $U(0.01, 1)$, a budget of 150,000 times the smallest mean cost; 500 random
problems, one game of each policy on each. The last column is the share of a policy's total regret that
its worst hundredth of the problems makes. The table has the lowest means and a few others; there are
more in [the leaderboard](../../measurements/leaderboard.md).

{table}

{mark}

## Why

The index of ω-UCB is the upper end of Wilson's interval of the mean reward divided by the lower end of
that of the mean cost, with $z^2 = 2\\rho \\ln t$. After one pull that paid 1 and cost 1 these ends are 1
and $1/(1 + z^2)$, so the index is

:::{{math}}
:label: eq-omega-index
1 + 2\\rho \\ln t.
:::

With $\\rho = 1/4$ that is 7.0 at $t = 150{{,}}000$. Where the arm that leads has a ratio above 7, an arm
that is better still and happened to cost 1 at its first pull is never pulled again. With $\\rho = 1$ the
index is 24.8 by then; such losses are rarer, and the median pays for it.

BTS and IMED do not close an arm by its first pull: the posterior of its cost still has mass near 0, and
the evidence against the arm is bounded.

## What a hundred problems show

Drawn with replacement, 100 of these problems would have shown a lower mean for ω-UCB with
$\\rho = 1/4$ than for
{luck}
of the draws. A ranking by means of a hundred games with heavy tails is a matter of luck. So the
leaderboard plays 500 problems a setting, shows quantiles, and says what is not distinguishable; and
[the champion](../../measurements/champion.md) is chosen by a score in which tails count.

This page is written by `python benchmarks/champion.py`; its text is there.
"""


def write_tails(results: Results, champion: str, docs: Path) -> None:
    """Write explanation/findings/tails.md and figures/tails.png under ``docs``."""
    values = SettingGames.of(results)
    policies = list(dict.fromkeys([*SHOWN, champion]))
    at = [values.policies.index(policy) for policy in policies]
    rising = np.sort(values.games[:, at], axis=0)
    worst = len(rising) // 10
    series = [
        Series(place, label(policy), style)
        for place, (policy, style) in enumerate(zip(policies, series_styles(policies), strict=True))
    ]
    groups = {f"all {len(rising)} problems": rising, f"each policy's worst {worst}": rising[-worst:]}
    picture = profiles.quantiles(groups, series, figure_spec())
    assert isinstance(picture, Figure)
    save(picture, docs / "figures" / "tails.png")
    head = "policy | mean, ± half its 95 % interval | median | 90 % | 99 % | its interval | largest"
    lines = [f"| {head} | worst 1 % of the problems in the sum |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    low, high = quantile_interval(values.games, 0.99)
    few = max(1, len(rising) // 100)
    ranked = [place for place in np.argsort(values.games.mean(axis=0)) if values.competing[place]]
    for rank, place in enumerate(ranked):
        games, policy = np.sort(values.games[:, place]), values.policies[place]
        if rank >= LOWEST and policy not in (*policies, *ALSO):
            continue
        middle = student(games[None, :])
        mean, half = estimate(float(middle.value[0]), float(middle.high[0] - middle.value[0]))
        q50, q90, q99 = np.quantile(games, [0.5, 0.9, 0.99])
        lines.append(
            f"| {label(policy)} | {mean} ± {half} | {number(q50)} | {number(q90)} | {number(q99)} | "
            f"{open_interval(float(low[place]), float(high[place]))} | {number(games[-1])} | "
            f"{100 * games[-few:].sum() / games.sum():.0f} % |"
        )
    seed, day = results.record["seed"], results.record["begun"]
    mark = f"Measured by `budgetbandits leaderboard --setting {LONG}`, seed {seed}, {day}."
    text = TAILS.format(found=_found(rising, policies), table="\n".join(lines), mark=mark, luck=luck(values, at))
    (docs / "explanation" / "findings" / "tails.md").write_text(text, encoding="utf-8")


def _found(rising: Array, policies: Sequence[str]) -> str:
    """Medians, means and tails of the policies in the figure."""
    middle, mean, q99 = np.median(rising, axis=0), rising.mean(axis=0), np.quantile(rising, 0.99, axis=0)
    return "\n".join(
        f"- {label(policy)}: a median of {number(middle[at])}, a mean of {number(mean[at])} and a 99 % quantile of "
        f"{number(q99[at])}"
        for at, policy in enumerate(policies)
    )


def luck(values: SettingGames, at: Sequence[int], few: int = 100) -> str:
    """How often a study of a hundred of these problems would show a lower mean for the first than for each other."""
    rng = np.random.default_rng(20240715)
    rows = rng.integers(len(values.games), size=(10_000, few))
    means = [values.games[rows, place].mean(axis=1) for place in at]
    shares = [float(np.mean(means[0] < other)) for other in means[1:]]
    return listed(
        [f"{label(values.policies[place])} in {100 * share:.0f} %" for place, share in zip(at[1:], shares, strict=True)]
    )
