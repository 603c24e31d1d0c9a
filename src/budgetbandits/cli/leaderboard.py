"""The commands ``leaderboard`` and ``recommend``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from budgetbandits.cli.screen import AsJson, plain_table, print_json, show_slower, terminal
from budgetbandits.cli.study import Cluster, Jobs, bar, show_report
from budgetbandits.errors import BadParameter
from budgetbandits.formatting.numbers import count, interval, listed, number, open_interval, short
from budgetbandits.policies import label

POLICIES_SHOWN_MAX = 12
"""Policies shown on the terminal; the page has all."""

ScoreFlag = Annotated[bool, typer.Option("--score", help="Also rank by a score in which tails count as much as means.")]
Champion = Annotated[
    str | None,
    typer.Option(help="The policy that --score compares with those in print, instead of the first by the score."),
]


def leaderboard_command(
    out: Annotated[Path, typer.Option(help="The folder; given again, the run continues.")] = Path("leaderboard"),
    setting: Annotated[list[str] | None, typer.Option(help="Only this setting. May be repeated.")] = None,
    own_policies: Annotated[
        list[str] | None, typer.Option("--with", help="Your own policy, mypolicies.py:Mine. May be repeated.")
    ] = None,
    suite: Annotated[
        str | None, typer.Option(help="Your own suite (TOML), or the name of another shipped one: training.")
    ] = None,
    problems: Annotated[
        int | None,
        typer.Option(
            help="Only the first problems of each setting, this many; a later run without it continues from them."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A quick trial: few games, small budgets.")] = False,
    score: ScoreFlag = False,
    champion: Champion = None,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Run all policies on all settings of a suite and write one page; if stopped, the same command continues."""
    from budgetbandits.experiments import leaderboard
    from budgetbandits.experiments.runner import Workers, command_line
    from budgetbandits.experiments.score import champion_of, score_document
    from budgetbandits.experiments.suite import Suite
    from budgetbandits.report.leaderboard import write_page

    if (out / "study.json").exists():
        raise BadParameter(f"{out} holds a study of its own; choose another --out")
    asked = leaderboard.joined(Suite.load(suite, setting or ()), own_policies or ())
    if problems is not None:
        asked = asked.first(problems)
    if quick:
        asked = asked.quick()
    favourite = champion_of(asked, champion) if score or champion else None  # before anything is played
    with bar(quiet=as_json) as tell:
        leaderboard.play(asked, out, Workers(jobs, cluster), tell, command_line())

    def say(doing: str) -> None:
        if not as_json:
            print(f"summing up: {doing}", file=sys.stderr)

    summary = leaderboard.summarise(asked, out, say, command_line())
    page = write_page(asked, summary, out, quick)
    scored = None
    if score or favourite is not None:
        say("score")
        scored = score_document(asked, out, favourite)
    if as_json:
        parts = {key: summary[key] for key in ("overall", "settings")}
        print_json({"report": str(page), **parts, "slower": leaderboard.slower(summary), "score": scored})
        return
    _show_overall(summary)
    if scored is not None:
        _show_score(scored, len(asked.settings))
    show_slower(leaderboard.slower(summary))
    show_report(page)


def _show_overall(summary: dict[str, Any]) -> None:
    from budgetbandits.experiments.standings import given_knowledge

    ranked = [row for row in summary["overall"] if row["competes"] and row["comparable"]]
    table = plain_table("policy", numbers=("times the best", "95 % interval", "settings"))
    for row in ranked[:POLICIES_SHOWN_MAX]:
        table.add_row(
            label(row["policy"]), f"{row['times']:.2f}", interval(row["low"], row["high"]), str(row["settings"])
        )
    terminal().print(table)
    terminal().print(
        f"Mean regret divided by that of each setting's best policy, geometric mean over the settings that a policy "
        f"plays; the first {min(POLICIES_SHOWN_MAX, len(ranked))} of {count(len(ranked), 'policy')} that need to know "
        f"nothing but {given_knowledge(summary)}."
    )


def _show_score(scored: dict[str, Any], settings: int) -> None:
    columns = ("score", "95 % interval", "first in", "mean", "median", "90 %", "99 %")
    table, rows = plain_table("policy", numbers=columns), scored["policies"]
    for row in rows[:POLICIES_SHOWN_MAX]:
        table.add_row(
            label(row["policy"]), number(row["score"]), interval(row["low"], row["high"]),
            f"{100 * row['first']:.0f} %", *(number(row[key]) for key in ("mean", "median", "q90", "q99")),
        )  # fmt: skip
    terminal().print(table)
    pairs = scored["pairs"]
    sentence = ", ".join(
        f"{word} in {pairs[key]} ({100 * pairs[key] / max(pairs['all'], 1):.0f} %)"
        for word, key in (("surely ahead", "ahead"), ("tied", "tied"), ("surely behind", "behind"))
    )
    terminal().print(
        f"Score: mean, median, 90 % and 99 % quantile of the regret divided by the lower bound, averaged over "
        f"{len(scored['settings'])} of {count(settings, 'setting')} (those with several problems and a known bound); "
        f"the first {min(POLICIES_SHOWN_MAX, len(rows))} of {count(len(rows), 'policy')} that play in all of them and "
        f"need to know nothing but the budget. First in: the share of resamples in which a policy has the lowest.\n"
        f"{label(scored['champion'])} against each policy in print that needs to know nothing but the budget, setting "
        f"by setting: of {count(pairs['all'], 'pair')} {sentence} by its mean (95 %, Holm over all pairs)."
    )


def recommend_command(
    problem: Annotated[Path | None, typer.Argument(help="A problem file (TOML).")] = None,
    arms: Annotated[int | None, typer.Option(help="How many arms, instead of a problem file.")] = None,
    budget: Annotated[float | None, typer.Option(help="The budget, in units of the largest cost of one pull.")] = None,
    horizon: Annotated[int | None, typer.Option(help="How many requests the budget is for, if it must last.")] = None,
    laws: Annotated[str | None, typer.Option("--distribution", help="bernoulli, lattice, beta or unknown.")] = None,
    knows: Annotated[
        list[str] | None, typer.Option(help="What else you know: costs or cost_floor. May be repeated.")
    ] = None,
    leaderboard: Annotated[
        Path | None, typer.Option(help="The folder of your own leaderboard, instead of the shipped data.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recommend a policy, by what the leaderboard measured in the settings most like yours."""
    from budgetbandits.experiments.leaderboard import read_summary, shipped_summary
    from budgetbandits.experiments.recommend import Case, laws_of, recommend
    from budgetbandits.experiments.standings import FREE
    from budgetbandits.problems.problem import Problem

    if (problem is None) == (arms is None):
        raise BadParameter("name either a problem file or --arms; see 'budgetbandits recommend --help'")
    if budget is None:
        raise BadParameter("--budget is missing; which policy is best depends on it")
    if problem is not None:
        loaded = Problem.load(problem)
        arms, laws = len(loaded), laws or laws_of(loaded)
    assert arms is not None
    case = Case(arms, budget, laws or "unknown", horizon, FREE | frozenset(knows or ()))
    data = read_summary(leaderboard) if leaderboard else shipped_summary(paced=horizon is not None)
    advice = recommend(data, case)
    if as_json:
        print_json(advice)
    else:
        _show_recommendation(terminal(), advice)


def _show_recommendation(console: Console, tip: dict[str, Any]) -> None:
    nearest = tip["settings"][0]

    def say(text: str) -> None:
        console.print(text, markup=False)

    say(f"Use {tip['policy']}.")
    say(
        f"It has the lowest mean regret in {nearest['title']!r}, the setting most like yours: "
        f"{count(nearest['arms'], 'arm')}, a budget of {short(nearest['money'])}{_lasting(nearest)}, {_size(nearest)}."
    )
    if tip["alternatives"]:
        say(f"Not significantly different (95 %, Holm): {listed(tip['alternatives'][:6])}"
            + (f" and {len(tip['alternatives']) - 6} more." if len(tip["alternatives"]) > 6 else "."))  # fmt: skip
    else:
        say("It is significantly better than every other policy there (95 %, Holm).")
    if tip["tail"] != tip["policy"]:
        say(f"If bad games hurt more than the mean: {tip['tail']} has the lowest 99 % quantile of these.")
    table = plain_table("policy", numbers=("mean regret", "95 % interval", "median", "99 %", "its interval"))
    for row in tip["standings"]:
        table.add_row(
            row["policy"], number(row["mean"]), interval(row["low"], row["high"]), number(row["median"]),
            number(row["q99"]), open_interval(row["q99_low"], row["q99_high"]),
        )  # fmt: skip
    console.print(table)
    say(f"It must know: {', '.join(tip['needs']) or 'nothing'}. Proven of its regret: {tip['proven']}.")
    others = ", ".join(f"{setting['title']} (best: {setting['best']})" for setting in tip["settings"][1:])
    say(f"The next most similar settings: {others}." if others else "The leaderboard has no other setting.")
    for warning in tip["warnings"]:
        say(f"Note: {warning}.")


def _lasting(setting: dict[str, Any]) -> str:
    return f" for {setting['requests']:,} requests" if setting["requests"] else ""


def _size(setting: dict[str, Any]) -> str:
    if setting["problems"] == 1:
        return f"{count(setting['runs'], 'run')} on one problem"
    return f"{count(setting['problems'], 'problem')}, {count(setting['runs'], 'run')} each"
