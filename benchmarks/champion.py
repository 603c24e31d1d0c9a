"""Choose a policy on the training problems, measure it on the leaderboard's, and write both down:
docs/measurements/champion.md, docs/explanation/findings/tails.md and their figures.

budgetbandits leaderboard --out out/leaderboard
python benchmarks/fresh_problems.py out/fresh
python benchmarks/champion.py out/training out/leaderboard out/fresh

The training is played into its folder first, with the rules of horizon_policies.py, if it is not there (about ten
minutes on two cores). A champion that the leaderboard's suite does not name joins it by --with.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from fresh_problems import fresh_suite
from tails import LONG, write_tails

from budgetbandits import plugins
from budgetbandits.errors import StudyError
from budgetbandits.experiments import leaderboard
from budgetbandits.experiments.results import Results
from budgetbandits.experiments.score import RESAMPLES, Margin, Score, margins, scored_games, scores
from budgetbandits.experiments.standings import SettingGames
from budgetbandits.experiments.statistics import student
from budgetbandits.experiments.suite import Setting, Suite
from budgetbandits.figures import axes as scales
from budgetbandits.figures.layout import finish, name_axes, note, panels, save
from budgetbandits.figures.style import figure_spec, settings
from budgetbandits.formatting.numbers import count, estimate, interval, listed, number
from budgetbandits.policies import label, provenance, published

DOCS = Path(__file__).parent.parent / "docs"
RULES = Path(__file__).parent / "horizon_policies.py"
HORIZON = {
    "omega-star-ucb": "OmegaStarHorizon",
    "kl-ucb-sc-plus": "KLUCBSCHorizon",
    "imed-moss:kappa=2.0": "IMEDMossHorizon",
}
"""Rules that watch the time, and the same with the money left."""
WHOLE, WIDTHS = "GittinsRatioWhole", (1.25, 1.5)
"""The policy that watches the whole budget instead of the money left, and the widths that are compared."""
DEFAULT = "gittins-ratio"
"""Default policy of `Allocation`."""
BARS, INCHES = 6, 7.3
"""Policies in the figure, and its width: 700 pixels of a page."""
ROWS = 15
"""Policies in a table of scores."""
SURE = 0.975
"""The share of resamples from which on a policy is surely ahead."""


INTRO = """\
# A search for a champion

For those who know no more than that there is a budget: which policy to take, how it was chosen, and
how it does on other problems.

The lowest mean on some hundred problems [is misleading](../explanation/findings/tails.md). So one
policy is chosen on training problems by a score in which tails count, then measured on the problems of
the [leaderboard](leaderboard.md), [which are not unseen](#looked-at-twice), on
[fresh ones](#fresh-problems) and on [adverts of a real campaign](#adverts-of-a-real-campaign). What
[ships as the default](#what-ships) is not the choice, but plain `gittins-ratio`. `budgetbandits
leaderboard --score` gives the score for policies and suites of your own.

{verdict}

![Mean and 99 % quantile of the regret divided by the lower bound: {shown}](../figures/champion.png)

Mean and 99 % quantile of the regret divided by the lower bound, averaged over the settings of the leaderboard
that have many problems, with 95 % intervals: the choice, BTS and the best of the other rules by the
score, each with its best parameters.
"""
TRAINED = """\
The training set is the suite `training`, which ships: families of the leaderboard's suite with other
seeds (below 100,000 there, above here), few and many arms, short and long budgets, tight and easy
problems. Candidates are the policies in print that need to know nothing but the budget and do well
somewhere, and our own, many of them with several parameters."""
SCORE = """\
For every setting the mean, the median, the 90 % and the 99 % quantile of the regret over its problems
are taken, each divided by the setting's lower bound $C \\ln B$. A policy's score is the mean of all of them; less
is better. The last columns are the means of each statistic alone. *First in* is the share of 1,000
resamples of the problems in which a policy has the lowest score: how much of the choice is luck. It
knows nothing of games that are lost so rarely that none is among the problems.
† is not in print for ratios, as far as known."""
OTHERWISE = """\
**The score matters.** With geometric means in place of sums the choice would have been {other}
({score:.3f}, {champion} {own:.3f}): a few per cent in each of many settings outweigh there that one of
them is lost. We take sums, because regret is paid in sums."""
MEASURED = """\
{champion} on the settings of the leaderboard that have many problems, one game of each policy on
each. Differences of means are taken problem by problem, with Student's interval; the factor between
99 % quantiles has a bootstrap interval. The rivals named are the policies in print with the lowest mean
and with the lowest 99 % quantile, chosen after the fact: it is compared with the best of them in each
setting. Policies that must know more than the budget do not compete."""
HORIZON_ALONE = """\
## What the horizon alone gives

A policy that is given the budget can look at the money left where others look at the time. Is that all
there is to {champion}?
Here are three rules with the number of pulls that the money left would buy in the place of the time
(`benchmarks/horizon_policies.py`), on the training problems; they were no candidates:
"""
WHOLE_BUDGET = """\
## The whole budget, or what is left?

Gittins-ratio looks at the money left, so its hope fades towards the end. With the whole budget in its
place (`gittins-ratio-whole`) it would hope to the last. On the training problems, game by game:
"""
TWICE = """\
## Looked at twice

The problems above had been seen when `lead=1000` was chosen. On 2026-11-16 the first choice of a
smaller training set was measured on them. On 2026-11-17 three of their families joined the training,
with other seeds, and `lead=1000` the candidates; then it was chosen and measured on them again. What
the section above says of it may therefore flatter it.
"""
FRESH = """\
## Fresh problems

The same settings with problems that nobody has played, twice as many, and other games. Who plays was
fixed before the first game, they were played once, and this came out:
"""
ADVERTS = """\
## Adverts of a real campaign

The study of ω-UCB has a real case: adverts of a public file, the chance of a conversion by click as
the reward and the price of a click as the cost. 608 adverts of one campaign make eight settings, one
for each age and gender, of 57 to 102 arms; outcomes are 0 and 1, and the budget is a number of steps
times the smallest mean cost. Mean regret, ± half its 95 % interval over 50 games of each setting:

| policy | 400 steps | 3,000 steps | 15,000 steps |
|---|---|---|---|
| gittins-ratio width=1 † | 103.7 ± 4.3 | 160.9 ± 7.3 | 238.8 ± 8.8 |
| c-ucb | 102.6 ± 4.0 | 142 ± 15 | 289 ± 67 |
| gittins-ratio † | 108.9 ± 4.3 | 190.2 ± 5.7 | 294.4 ± 8.3 |
| gittins-ratio width=1.5 † | 110.9 ± 3.8 | 231.6 ± 7.3 | 352 ± 11 |
| m-ucb | 103.8 ± 4.2 | 163 ± 19 | 426 ± 93 |
| omega-ucb | 242.1 ± 3.2 | 449 ± 13 | 537 ± 13 |
| omega-star-ucb | 241.9 ± 3.2 | 449 ± 12 | 540 ± 14 |
| b-greedy | 184.4 ± 4.5 | 363 ± 18 | 606 ± 65 |
| gittins-ratio lead=1000 † | 207.6 ± 3.5 | 478 ± 12 | 662 ± 17 |
| BTS | 252.1 ± 3.0 | 597 ± 16 | 781 ± 23 |
| Thompson | 108.2 ± 4.1 | 250 ± 24 | 886 ± 119 |
| KUBE | 260.1 ± 2.7 | 1,066 ± 16 | 1,597 ± 31 |

Most adverts seldom lead to a conversion. A prior fitted to the arms that were pulled says so of the
others; with `lead=1000` it stays uniform, and each arm must be found out by itself.

Measured by `python benchmarks/adverts.py KAG_conversion_data.csv`, seeds 0 to 7, 2026-11-19.
"""
SHIPS = """\
## What ships

Without a policy named, `Allocation` takes plain `gittins-ratio`. By the score it is second in the
training. On the adverts `lead=1000` has about twice its regret, and more than ω-UCB from 3,000 steps
on. `lead=1000` stays an option: its 99 % quantile is surely lower on five-valued outcomes, to about half
with 50 and 100 arms. This was decided on the adverts, before the fresh problems were played.
"""
LIMITS = """\
## What this does not say

- The settings of training and test, and the fresh problems, are of the same families. On problems of
  another kind the choice may be another, as on the adverts; `budgetbandits recommend` looks up the
  settings most like a given problem.
- 500 problems hold five in the last 1 %, so a 99 % quantile is known to a third or so; its interval is
  in the [leaderboard](leaderboard.md).
- Nothing is proven of these tails. Proven of the regret of {champion}: {proven}.
- The choice is behind where money is short for that many arms (A thousand arms; Five values, 100 arms)
  and where all arms cost the same (Every pull costs 1): its prior is uniform, whatever other arms have
  shown. With a prior fitted to all arms (`gittins-ratio` without `lead`) means are lower there, and
  overall, and 99 % quantiles higher, which the score of the training counted for more.
- The choice was among {candidates}, {alike} the same rule with other parameters, on one training set.

This page is written by `python benchmarks/champion.py`; its text is there.
"""


def main(training: Path, board: Path, fresh: Path) -> None:
    trained, measured = Suite.load("training"), Suite.load()
    whole = [f"{RULES}:{WHOLE}:width={width}" for width in WIDTHS]
    both = leaderboard.joined(trained, [*(f"{RULES}:{rule}" for rule in HORIZON.values()), *whole])
    leaderboard.play(
        both, training, progress=lambda doing, finished, total: print(doing, finished, total, file=sys.stderr)
    )
    write_pages(trained, training, measured, board, fresh_suite(), fresh, DOCS)


def write_pages(
    trained: Suite, training: Path, measured: Suite, board: Path, unseen: Suite, fresh: Path, docs: Path
) -> None:  # fmt: skip
    """Both pages and their figures under ``docs``, from folders in which the suites were played."""
    candidates = [policy.spec for policy in trained.settings[0].experiment.policies]
    played = scored_games(trained, training)
    chosen, otherwise = scores(*played, only=candidates), scores(*played, geometric=True, only=candidates)
    champion = chosen[0].policy
    values, bounds = scored_games(measured, board)
    again, every = scores(values, bounds), margins(values, champion)
    if champion not in {score.policy for score in again}:
        raise StudyError(
            f"{champion} was chosen and is not in every setting of {board}; add it: budgetbandits leaderboard "
            f"--with {champion} --out {board}"
        )
    shown = figure_scores(again, champion)
    draw(shown, champion, docs / "figures" / "champion.png")
    alone = horizon_scores(*played, champion)
    printed = scores(values, bounds, only=[champion, *(score.policy for score in again if published(score.policy))])
    day = _day(board / measured.settings[0].name)
    mark_of_training = mark("python benchmarks/champion.py", trained, training)
    page = [
        INTRO.format(
            verdict=verdict(champion, printed, every, alone), shown=listed([label(score.policy) for score in shown])
        ),
        mark("budgetbandits leaderboard", measured, board),
        "",
        *training_part(trained, chosen, otherwise, _day(training / trained.settings[0].name)),
        *horizon_part(champion, alone),
        mark_of_training,
        "",
        *whole_part(*played),
        mark_of_training,
        "",
        *measured_part(measured.settings, values, champion, every, again, day),
        TWICE,
        *fresh_part(scored_games(unseen, fresh), champion),
        mark("python benchmarks/fresh_problems.py", unseen, fresh),
        "",
        ADVERTS,
        SHIPS,
        limits(champion, candidates),
    ]
    (docs / "measurements" / "champion.md").write_text("\n".join(page), encoding="utf-8")
    write_tails(Results.load(board / LONG), champion, docs)


def mark(command: str, suite: Suite, folder: Path) -> str:
    """Where a table or a figure comes from."""
    first = suite.settings[0]
    return f"Measured by `{command}`, seed {first.experiment.seed}, {_day(folder / first.name)}."


def figure_scores(again: Sequence[Score], champion: str) -> list[Score]:
    """The champion, BTS, and the best of the other rules, each with its best parameters, the lowest score first."""
    rules: dict[str, Score] = {}
    for score in again:
        rules.setdefault(_rule(score.policy), score)
    always = {_rule(champion): next(score for score in again if score.policy == champion)}
    if "bts" in rules:
        always.setdefault("bts", rules["bts"])
    others = [score for rule, score in rules.items() if rule not in always][: BARS - len(always)]
    return sorted([*always.values(), *others], key=lambda score: score.score)


def draw(shown: Sequence[Score], champion: str, path: Path) -> None:
    """Bars with intervals, the champion's in colour: one panel for the mean, one for the 99 % quantile."""
    spec, rows = figure_spec(INCHES), range(len(shown))
    colours = [spec.colours["series-1" if score.policy == champion else "ink3"] for score in shown]
    shades = [1.0 if score.policy == champion else 0.45 for score in shown]
    with matplotlib.rc_context(settings(spec)):
        figure, axes = panels(["mean", "99 % quantile"], spec, columns_max=2)
        figure.set_size_inches(INCHES, 0.28 * len(shown) + 0.75)
        for panel, at in zip(axes, (0, 3), strict=True):
            values, ends = [score.statistics[at] for score in shown], [score.intervals[at] for score in shown]
            for bar, shade in zip(panel.barh(rows, values, height=0.66, color=colours), shades, strict=True):
                bar.set_alpha(shade)
            panel.hlines(rows, *zip(*ends, strict=True), color=spec.colours["ink"], linewidth=1.2)
            for row, value in enumerate(values):
                note(panel, row, f"{value:.2f}", spec)
            panel.grid(visible=False, axis="y")
            panel.set_xlim(0.0, 1.05 * max(*values, *(high for _, high in ends)))
            panel.set_ylim(len(shown) - 0.5, -0.5)
            panel.set_yticks(rows, [label(score.policy) for score in shown] if at == 0 else [""] * len(shown))
            scales.straight(panel.xaxis, 4)
        name_axes(axes, "regret divided by the lower bound")
        save(finish(figure), path)


def horizon_scores(values: Mapping[str, SettingGames], bounds: Mapping[str, float], champion: str) -> list[Score]:
    """The rules with time, with the money left, and the champion, the lowest score first."""
    rules = [plugins.find_policy(f"{RULES}:{rule}").spec for rule in HORIZON.values()]
    return scores(values, bounds, only=[*HORIZON, *rules, champion])


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
    lines += ["", SCORE, "", *score_table(chosen, ROWS), "", mark, ""]
    if len(chosen) > ROWS:
        lines += [f"Of {count(len(chosen), 'candidate')} these are the first {ROWS}, and BTS.", ""]
    own = next(score for score in otherwise if score.policy == chosen[0].policy)
    other = otherwise[0]
    words = {"other": label(other.policy), "score": other.score, "champion": label(own.policy), "own": own.score}
    return [*lines, OTHERWISE.format(**words), ""] if other is not own else lines


def verdict(champion: str, printed: Sequence[Score], every: Sequence[Margin], alone: Sequence[Score]) -> str:
    """Whether the choice stands on problems that it was not chosen by: against the best in print (``printed`` are the
    scores of those and its own), all in print, BTS, and rules that look at the money left."""
    own = next(score for score in printed if score.policy == champion)
    best = next(score for score in printed if score.policy != champion)
    words = (
        f"{own.score:.2f} ({interval(own.low, own.high)}) against {best.score:.2f} ({interval(best.low, best.high)})"
    )
    stands = "it stands" if own.first >= SURE else "it is not surely the best"
    if best.first >= SURE:
        stands = "it does not stand"
    where = "in print" if published(champion) else "not in print for ratios, as far as known"
    ahead, behind = sum(margin.ahead for margin in every), sum(margin.behind for margin in every)
    share = [f"{100 * part / len(every):.0f} %" for part in (ahead, len(every) - ahead - behind, behind)]
    lines = [
        f"The choice is `{champion}`, which is {where}. On the other problems {stands}: a score of {words} for "
        f"{label(best.policy)}, the best of the others in print; it is ahead of all in print in {resampled(own.first)} "
        "of the problems.",
        f"Of all {len(every)} pairs of a setting and a policy in print that needs to know nothing but the budget, it "
        f"is surely ahead in {share[0]}, tied in {share[1]} and surely behind in {share[2]} (means; Holm, 95 %).",
    ]
    bts = [margin for margin in every if margin.rival == "bts"]
    if bts:
        lines.append(
            f"Against BTS: a mean surely below in {sum(margin.ahead for margin in bts)} of "
            f"{count(len(bts), 'setting')} and surely above in {sum(margin.behind for margin in bts)}; a 99 % quantile "
            f"no worse in {sum(margin.factor >= 1.0 for margin in bts)}."
        )
    rules = [score for score in alone if score.policy != champion and score.policy not in HORIZON]
    trained = next(score for score in alone if score.policy == champion)
    lines.append(
        f"With the money left in the place of the time, the best of three other rules has {rules[0].score:.2f} on the "
        f"training problems; `{champion}` has {trained.score:.2f} and is ahead of these in {resampled(trained.first)}."
    )
    return "\n".join(["**In short.**", "", *(_filled(f"- {line}", "  ") for line in lines)])


def resampled(share: float) -> str:
    """The share of resamples. All of them is not certainty: they know no game that is not among the problems."""
    return f"all {RESAMPLES:,} resamples" if share == 1.0 else f"{100 * share:.0f} % of the resamples"


def fresh_part(played: tuple[Mapping[str, SettingGames], Mapping[str, float]], champion: str) -> list[str]:
    """The scores on fresh problems, and there the default against all in print and against the choice."""
    values, bounds = played
    every = margins(values, DEFAULT)
    ahead, behind = sum(margin.ahead for margin in every), sum(margin.behind for margin in every)
    sentence = (
        f"Of {count(len(every), 'pair')} of a setting and a policy in print, {DEFAULT} is surely ahead in {ahead} and "
        f"surely behind in {behind}."
    )
    pairs = [margin for margin in margins(values, DEFAULT, [champion]) if champion != DEFAULT]
    if pairs:
        lower, higher = sum(pair.ahead for pair in pairs), sum(pair.behind for pair in pairs)
        shorter = sum(pair.factor_low > 1.0 for pair in pairs)
        longer = sum(pair.factor_high < 1.0 for pair in pairs)
        sentence += (
            f" Against {label(champion)} its mean is surely lower in {lower} of {count(len(pairs), 'setting')} and "
            f"surely higher in {higher} (Holm, 95 %); its 99 % quantile is surely lower in {shorter} and surely higher "
            f"in {longer} (95 % each)."
        )
    return [FRESH, *score_table(scores(values, bounds), ROWS), "", _filled(sentence), ""]


def _named(settings: Sequence[str]) -> str:
    return f" ({'; '.join(settings)})" if settings else ""


def score_table(score_list: Sequence[Score], first: int | None = None) -> list[str]:
    """The lowest scores; BTS is there in any case."""
    lines = ["| policy | score | 95 % | first in | mean | median | 90 % | 99 % |", "|---|---|---|---|---|---|---|---|"]
    for row in [score for at, score in enumerate(score_list) if first is None or at < first or score.policy == "bts"]:
        parts = " | ".join(f"{part:.2f}" for part in row.statistics)
        share = f"{100 * row.first:.0f} %" if row.first else "–"
        star = "" if published(row.policy) else " †"
        lines.append(
            f"| {label(row.policy)}{star} | {row.score:.2f} | {interval(row.low, row.high)} | {share} | {parts} |"
        )
    return lines


def measured_part(
    settings: Sequence[Setting], values: Mapping[str, SettingGames], champion: str, every: Sequence[Margin],
    again: Sequence[Score], day: str,
) -> list[str]:  # fmt: skip
    lines = ["## Measured on other problems", "", MEASURED.format(champion=label(champion)), ""]
    lines += [
        "| setting | its mean | lowest mean in print | rival's mean less its own | its 99 % | lowest 99 % in print | "
        "÷ its own | rivals surely above, tied, below |",
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
        text, half = estimate(float(middle.value[0]), float(middle.high[0] - middle.value[0]))
        above = sum(margin.ahead for margin in rivals)
        below = sum(margin.behind for margin in rivals)
        lines.append(
            f"| {setting.title} | {text} ± {half} | {label(mean.rival)} | {interval(mean.low, mean.high)} | "
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
        _filled(
            f"Its mean and its 99 % quantile are both below those of all in print in {len(both)} of {of} settings"
            f"{_named(both)}. Its mean is surely the lowest (Holm over all rivals and settings, 95 %) in {len(surely)}"
            f"{_named(surely)}."
        ),
        "",
        "The score of the training over these settings, the lowest first; policies that some setting leaves out have "
        "none:",
        "",
        *score_table(again, ROWS),
        "",
        f"Measured by `budgetbandits leaderboard`, seed {settings[0].experiment.seed}, {day}.",
        "",
        *by_rival(every),
    ]
    return lines


def by_rival(every: Sequence[Margin]) -> list[str]:
    """Each rival over the settings."""
    lines = [
        ":::{dropdown} Rival by rival",
        _filled(
            "In how many of the settings where both play its mean is surely above, tied or surely below, and in how "
            "many its 99 % quantile is above and its interval too:"
        ),
        "",
        "| in print | settings | mean above | tied | below | 99 % above | surely |", "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for rival in dict.fromkeys(margin.rival for margin in every):
        own = [margin for margin in every if margin.rival == rival]
        above = sum(margin.ahead for margin in own)
        below = sum(margin.behind for margin in own)
        tail, sure = sum(margin.factor > 1 for margin in own), sum(margin.factor_low > 1 for margin in own)
        lines.append(
            f"| {label(rival)} | {len(own)} | {above} | {len(own) - above - below} | {below} | {tail} | {sure} |"
        )
    return [*lines, ":::", ""]


def horizon_part(champion: str, alone: Sequence[Score]) -> list[str]:
    score_by_policy = {score.policy: score.score for score in alone}
    pairs = [(rule, plugins.find_policy(f"{RULES}:{HORIZON[rule]}").spec) for rule in HORIZON]
    sentence = listed(
        [
            f"from {score_by_policy[rule]:.2f} to {score_by_policy[other]:.2f} for {label(rule)}"
            for rule, other in pairs
            if rule in score_by_policy and other in score_by_policy
        ]
    )
    text = (
        f"With the money left the score goes {sentence}; that of {label(champion)} is {score_by_policy[champion]:.2f}."
    )
    return [HORIZON_ALONE.format(champion=label(champion)), *score_table(alone), "", _filled(text), ""]


def whole_part(values: Mapping[str, SettingGames], bounds: Mapping[str, float]) -> list[str]:
    """Gittins-ratio with the money left and with the whole budget, width by width."""
    lines, sentences = [WHOLE_BUDGET, *score_table([])], []
    for width in WIDTHS:
        names = "gittins-ratio", f"{RULES}:{WHOLE}"
        left, whole = pair = [plugins.find_policy(f"{name}:width={width}").spec for name in names]
        pair_scores = scores(values, bounds, only=pair)
        lines += score_table(pair_scores)[2:]
        more = []  # what the whole budget adds to the regret of every game, setting by setting
        for games in values.values():
            places = games.policies.index(whole), games.policies.index(left)
            more.append(student(games.games[:, places[0]] - games.games[:, places[1]]))
        ahead = next(score.first for score in pair_scores if score.policy == left)
        lower, higher = sum(float(row.low) > 0.0 for row in more), sum(float(row.high) < 0.0 for row in more)
        sentences.append(
            f"With A = {width:g} the money left has the lower score in {100 * ahead:.0f} % of the resamples, and a "
            f"mean that is surely lower in {lower} of {len(more)} settings and surely higher in {higher} (95 % each)."
        )
    return [*lines, "", _filled(" ".join(sentences)), ""]


def limits(champion: str, candidates: Sequence[str]) -> str:
    alike = sum(_rule(policy) == _rule(champion) for policy in candidates) - 1
    return LIMITS.format(
        champion=f"`{champion}`", proven=provenance(champion).proven,
        candidates=count(len(candidates), "candidate"), alike=f"{alike or 'none'} of them",
    )  # fmt: skip


def _filled(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 100, subsequent_indent=indent, break_on_hyphens=False)


def _rule(policy: str) -> str:
    """The name without the parameters."""
    return policy.partition(":")[0]


def _difference(margin: Margin) -> float:
    return margin.difference


def _day(study: Path) -> str:
    return str(Results.load(study).record["begun"])


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
