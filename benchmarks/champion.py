"""Choose a policy on the training problems, measure it on the leaderboard's, and write both down:
docs/champion.md, docs/findings/tails.md and their figure.

budgetbandits leaderboard --out out/leaderboard
python benchmarks/champion.py out/training out/leaderboard

The training is played into its folder first, if it is not there (about ten minutes on two cores).
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from budgetbandits.experiments import leaderboard
from budgetbandits.experiments.experiment_file import SUITE, TRAINING, shipped_text
from budgetbandits.experiments.results import Results
from budgetbandits.experiments.score import Margin, Score, margins, scored_games, scores
from budgetbandits.experiments.standings import SettingGames, quantile_interval
from budgetbandits.experiments.statistics import student
from budgetbandits.experiments.suite import Setting, Suite
from budgetbandits.figures import profiles
from budgetbandits.figures.layout import Series, save
from budgetbandits.figures.style import figure_spec, series_styles
from budgetbandits.formatting.numbers import estimate, interval, listed, number, open_interval
from budgetbandits.numerics.arrays import Array
from budgetbandits.policies import label, published

DOCS = Path(__file__).parent.parent / "docs"
LONG = "bernoulli-10-long"
"""The setting of the tails: the literature's problems, at its budget."""
SHOWN = ("omega-ucb", "bts", "imed-fading")


INTRO = """\
# A search for a champion

This page is written by `python benchmarks/champion.py`; its text is there.

Which policy would one take, not knowing more than that there is a budget? Not the one with the lowest
mean on some hundred problems: [findings/tails.md](findings/tails.md) shows how misleading that is. Here
one is chosen on training problems by a score in which tails count, then measured on the problems of the
[leaderboard](leaderboard.md), which the choice has never seen.

{verdict}
"""
TRAINED = """\
The training set is the suite `training`, which ships: the families of the suite with other seeds (the suite's
lie below 100,000, the training's above), and a mixture of few and many arms, short and long budgets,
tight and easy problems. Candidates are the policies in print that need to know nothing but the budget
and do well somewhere, counts times κ, the indices from the lower bound, and ω*-UCB made careful in the
long run, each with several parameters."""
SCORE = """\
For every setting four statistics of the regret over its problems are taken, the mean, the median, the
90 % and the 99 % quantile, each by the setting's lower bound C ln B. A policy's score is the mean of all of
them; less is better. The last columns are the means of each statistic alone. *First in* is the share of
1,000 resamples of the problems in which a policy has the lowest score: how much of the choice is luck.
† is not in print for ratios, as far as known."""
OTHERWISE = """\
**The score matters.** With geometric means in place of sums the choice would have been {other}
({score:.3f}, {champion} {own:.3f}): a few per cent in each of many settings outweigh there that one of
them is lost. We take sums, because regret is paid in sums."""
MEASURED = """\
{champion} on the settings of the leaderboard that have many problems, one game of each policy on each
problem. Differences of means are taken problem by problem, with Student's interval; the factor
between 99 % quantiles has a bootstrap interval. The two columns of rivals name the policy in print with
the lowest mean, and the one with the lowest 99 % quantile: chosen after the fact, so that it is compared
with the best of all of them in each setting. Policies that must know more than the budget do not compete.
± is half of a 95 % interval."""
LIMITS = """\
## What this does not say

- The settings of training and test are of the same families. On problems of another kind the choice may
  be another; `budgetbandits recommend` looks up the settings most like a given problem.
- 500 problems hold five in the last 1 %, so a 99 % quantile is known to a third or so; its interval is in
  the [leaderboard](leaderboard.md).
- Nothing is proven of these tails, nor of the regret of `omega-rising`; what is proven of each policy is in
  the leaderboard's table. If you want a proof, use `imed-ratio` ([imed_ratio.md](imed_ratio.md)).
- Its one parameter, w, was chosen among four values on the training problems.
"""
TAILS = """\
# Means, medians and tails

This page is written by `python benchmarks/champion.py`; its text is there.

The setting of the literature (Heyden et al., KDD 2024): ten Bernoulli arms, mean rewards from U(0, 1),
mean costs from U(0.01, 1), a budget of 150,000 times the smallest mean cost; 500 random problems, one
game of each policy on each.

![Regret over problems, sorted](../figures/tails.png)

{found}

{table}

{mark}

The last column is the share of a policy's total regret that its worst hundredth of the problems makes.

## Why

The index of ω-UCB is the upper end of Wilson's interval of the mean reward by the lower end of that of the
mean cost, with z² = 2ρ ln t. After one pull that paid 1 and cost 1 these ends are 1 and 1/(1 + z²), so the
index is 1 + 2ρ ln t. With ρ = ¼ that is 7.0 at t = 150,000: where the arm that leads has a ratio above 7,
an arm that is better still and happened to cost 1 at its first pull is never pulled again. With ρ = 1 the
index is 24.8 by then, and such losses are rarer; the median pays for it. BTS and IMED do not close an
arm by its first pull: after it the posterior of the cost has mass near 0 still, and the evidence
against the arm is bounded.

## What a hundred problems show

Drawn with replacement, 100 of these problems would have shown a lower mean for ω-UCB with ρ = ¼ than for
{luck} of the draws.
A ranking by means of a hundred games with heavy tails is a matter of luck; the leaderboard plays 500
problems a setting, shows the quantiles, and says what is not distinguishable.
"""


def main(training: Path, board: Path) -> None:
    trained, measured = Suite.from_toml(shipped_text(TRAINING)), Suite.from_toml(shipped_text(SUITE))
    leaderboard.play(trained, training, progress=lambda doing, done, total: print(doing, done, total, file=sys.stderr))
    played = scored_games(trained, training)
    chosen, otherwise = scores(*played), scores(*played, geometric=True)
    champion = chosen[0].policy
    values, bounds = scored_games(measured, board)
    again = scores(values, bounds)
    page = [
        INTRO.format(verdict=verdict(champion, again)),
        *training_part(trained, chosen, otherwise, _day(training / LONG)),
        *measured_part(measured.settings, values, champion, again, _day(board / LONG)),
    ]  # fmt: skip
    (DOCS / "champion.md").write_text("\n".join(page), encoding="utf-8")
    tails(Results.load(board / LONG), values[LONG], champion)


def training_part(trained: Suite, chosen: Sequence[Score], otherwise: Sequence[Score], day: str) -> list[str]:
    lines = ["## How it was chosen", "", TRAINED, ""]
    lines += ["| setting | problems | arms | budget |", "|---|---|---|---|"]
    for setting in trained.settings:
        asked = setting.experiment
        unit = "" if asked.budget_unit == "1" else " × min μc"
        lines.append(
            f"| {setting.title} | {len(asked.problems)} | {len(asked.problems[0].problem)} | "
            f"{asked.budgets[-1]:,.0f}{unit} |"
        )
    seed = trained.settings[0].experiment.seed
    mark = f"Measured by `python benchmarks/champion.py`, seed {seed}, {day}."
    lines += ["", SCORE, "", *score_table(chosen), "", mark, ""]
    own = next(score for score in otherwise if score.policy == chosen[0].policy)
    other = otherwise[0]
    said = {"other": label(other.policy), "score": other.score, "champion": label(own.policy), "own": own.score}
    return [*lines, OTHERWISE.format(**said), ""] if other is not own else lines


def verdict(champion: str, again: Sequence[Score]) -> str:
    """Whether what was chosen stands, against the best in print on the problems that it was not chosen by."""
    own = next(score for score in again if score.policy == champion)
    best = next(score for score in again if published(score.policy) and score.policy != champion)
    said = f"{own.score:.2f} ({interval(own.low, own.high)}) against {best.score:.2f} ({interval(best.low, best.high)})"
    if published(champion):
        return f"**In short.** The choice is {label(champion)}, which is in print. There is no champion of our own."
    if own.high < best.low:
        return f"**In short.** The choice is `{champion}`, and it stands: {said} for {label(best.policy)}."
    text = (
        f"**In short.** The choice is `{champion}`, and on the other problems it is not surely better than "
        f"{label(best.policy)}, which is in print: {said}. So there is no champion. Both do well over all settings; in "
        "a long game, where single losses make the mean, the `imed` policies have the shorter tails."
    )
    return textwrap.fill(text, 105, break_on_hyphens=False)


def _named(settings: Sequence[str]) -> str:
    return f" ({listed(list(settings))})" if settings else ""


def score_table(found: Sequence[Score]) -> list[str]:
    lines = ["| policy | score | 95 % | first in | mean | median | 90 % | 99 % |", "|---|---|---|---|---|---|---|---|"]
    for row in found:
        parts = " | ".join(f"{part:.2f}" for part in row.statistics)
        first = f"{100 * row.first:.0f} %" if row.first else "–"
        star = "" if published(row.policy) else " †"
        lines.append(
            f"| {label(row.policy)}{star} | {row.score:.2f} | {interval(row.low, row.high)} | {first} | {parts} |"
        )
    return lines


def measured_part(
    settings: Sequence[Setting], values: Mapping[str, SettingGames], champion: str, again: Sequence[Score], day: str
) -> list[str]:
    every = margins(values, champion)
    lines = ["## Measured on other problems", "", MEASURED.format(champion=label(champion)), ""]
    lines += [
        "| setting | its mean | lowest mean in print | rival's mean less its own | its 99 % | lowest 99 % in print | "
        "by its own | rivals surely above, tied, below |",
        "|---|---|---|---|---|---|---|---|",
    ]
    both, surely = [], []
    for setting in settings:
        rivals = [margin for margin in every if margin.setting == setting.name]
        if not rivals:
            continue
        mean, tail = min(rivals, key=_difference), min(rivals, key=lambda margin: margin.factor)
        own = values[setting.name].games[:, values[setting.name].policies.index(champion)]
        middle = student(own[None, :])
        said, half = estimate(float(middle.value[0]), float(middle.high[0] - middle.value[0]))
        above = sum(margin.apart and margin.difference > 0 for margin in rivals)
        below = sum(margin.apart and margin.difference < 0 for margin in rivals)
        lines.append(
            f"| {setting.title} | {said} ± {half} | {label(mean.rival)} | {interval(mean.low, mean.high)} | "
            f"{number(float(np.quantile(own, 0.99)))} | {label(tail.rival)} | {tail.factor:.2f} "
            f"({interval(tail.factor_low, tail.factor_high)}) | {above}, {len(rivals) - above - below}, {below} |"
        )
        if mean.difference > 0 and tail.factor > 1:
            both.append(setting.title)
        if above == len(rivals):
            surely.append(setting.title)
    of = len({margin.setting for margin in every})
    lines += [
        "",
        f"The lowest mean and the lowest 99 % quantile of all in print: in {len(both)} of {of} settings{_named(both)}. "
        f"Surely the lowest mean (Holm over all rivals and settings, 95 %): in {len(surely)}{_named(surely)}.",
        "",
        "The score of the training, over these settings; policies that some setting leaves out have none:",
        "",
        *score_table(again),
        "",
        f"Measured by `budgetbandits leaderboard`, seed {settings[0].experiment.seed}, {day}.",
        "",
        *by_rival(every),
        LIMITS,
    ]
    return lines


def by_rival(every: Sequence[Margin]) -> list[str]:
    """Each rival over the settings."""
    lines = [
        "Rival by rival, in how many of the settings where both play its mean is surely above, tied or surely below, "
        "and in how many its 99 % quantile is above and its interval too:",
        "",
        "| in print | settings | mean above | tied | below | 99 % above | surely |", "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for rival in dict.fromkeys(margin.rival for margin in every):
        own = [margin for margin in every if margin.rival == rival]
        above = sum(margin.apart and margin.difference > 0 for margin in own)
        below = sum(margin.apart and margin.difference < 0 for margin in own)
        tail, sure = sum(margin.factor > 1 for margin in own), sum(margin.factor_low > 1 for margin in own)
        lines.append(
            f"| {label(rival)} | {len(own)} | {above} | {len(own) - above - below} | {below} | {tail} | {sure} |"
        )
    return [*lines, ""]


def tails(results: Results, values: SettingGames, champion: str) -> None:
    """docs/findings/tails.md and its figure."""
    policies = [*SHOWN, champion]
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
    save(picture, DOCS / "figures" / "tails.png")
    head = "policy | mean, ± half its 95 % interval | median | 90 % | 99 % | its interval | largest"
    lines = [f"| {head} | worst 1 % of the problems in the sum |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    low, high = quantile_interval(values.games, 0.99)
    few = max(1, len(rising) // 100)
    for place in np.argsort(values.games.mean(axis=0)):
        games, policy = np.sort(values.games[:, place]), values.policies[place]
        if not values.competing[place]:
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
    (DOCS / "findings" / "tails.md").write_text(text, encoding="utf-8")


def _found(rising: Array, policies: Sequence[str]) -> str:
    """Who has the lowest median, and what a hundredth of the problems make of it."""
    middle, mean, q99 = np.median(rising, axis=0), rising.mean(axis=0), np.quantile(rising, 0.99, axis=0)
    said = [
        f"{label(policy)} has a median of {number(middle[at])}, a mean of {number(mean[at])} and a 99 % quantile of "
        f"{number(q99[at])}"
        for at, policy in enumerate(policies)
    ]
    return textwrap.fill(f"**In short.** {'; '.join(said)}.", 105)


def luck(values: SettingGames, at: Sequence[int], few: int = 100) -> str:
    """How often a study of a hundred of these problems would show a lower mean for the first than for each other."""
    rng = np.random.default_rng(20240715)
    rows = rng.integers(len(values.games), size=(10_000, few))
    means = [values.games[rows, place].mean(axis=1) for place in at]
    shares = [float(np.mean(means[0] < other)) for other in means[1:]]
    return listed(
        [f"{label(values.policies[place])} in {100 * share:.0f} %" for place, share in zip(at[1:], shares, strict=True)]
    )


def _difference(margin: Margin) -> float:
    return margin.difference


def _day(study: Path) -> str:
    return str(Results.load(study).record["begun"])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
