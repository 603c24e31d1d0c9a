"""The command ``simulate``: policies on one problem."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.markup import escape

from budgetbandits import plugins
from budgetbandits.cli.screen import AsJson, plain_table, print_json, run_bar, show_slower, terminal
from budgetbandits.formatting.numbers import count
from budgetbandits.numerics.intervals import half_width
from budgetbandits.policies import label
from budgetbandits.policies.base import Policy
from budgetbandits.problems.linear import LinearStream
from budgetbandits.problems.oracle import best_arms, best_ratio
from budgetbandits.problems.streams import Environment, RequestStream, load
from budgetbandits.simulation.outcome import Outcome, slower_lines
from budgetbandits.simulation.simulate import check_specs, simulate


def simulate_command(
    problem: Annotated[
        Path, typer.Argument(help="A file of a problem or a request stream (TOML); 'budgetbandits problem' prints one.")
    ],
    policy: Annotated[
        list[str],
        typer.Option(
            help="A policy, with parameters as epsilon-first:epsilon=0.1 or epsilon=[0.1,0.2], or FILE.py:CLASS. May "
            "be repeated."
        ),
    ],
    budget: Annotated[list[float], typer.Option(help="A budget. May be repeated.")],
    horizon: Annotated[int | None, typer.Option(min=1, help="How many requests the budget is for.")] = None,
    runs: Annotated[int, typer.Option(help="Independent games of each policy.")] = 200,
    seed: Annotated[int, typer.Option(help="The same seed gives the same figures, whatever --jobs is.")] = 0,
    jobs: Annotated[int, typer.Option(help="Workers; -1 for one per core.")] = 1,
    engine: Annotated[str, typer.Option(help="fast, reference, or auto: fast where there is such an engine.")] = "auto",
    max_rounds: Annotated[int | None, typer.Option(help="Stop with an error when a game gets this long.")] = None,
    as_json: AsJson = False,
) -> None:
    """Simulate policies on a problem: regret, rounds, rewards and pulls at each budget."""
    arms = load(problem)
    policies = [plugins.find_policy(name) for text in policy for name in plugins.sweep(text)]
    check_specs(policies)
    outcomes = simulate_all(arms, policies, budget, runs, seed, jobs, engine, max_rounds, horizon, quiet=as_json)
    if as_json:
        print_json(record(arms, outcomes))
    else:
        show(arms, outcomes, title=str(problem))


def simulate_all(
    problem: Environment,
    policies: list[Policy],
    budgets: list[float],
    runs: int,
    seed: int,
    jobs: int,
    engine: str = "auto",
    max_rounds: int | None = None,
    horizon: int | None = None,
    *,
    quiet: bool = False,
) -> list[Outcome]:
    """The games of all policies, with a bar of progress."""
    outcomes = []
    total = len(policies) * runs
    with run_bar(quiet) as tell:
        if total > 0:
            tell("compiling engines, once", 0, total)
        for i, policy in enumerate(policies):

            def report(finished: int, before: int = i * runs, name: str = policy.spec) -> None:
                tell(name, before + finished, total)

            outcomes.append(
                simulate(
                    problem,
                    policy,
                    budgets,
                    runs,
                    seed,
                    engine=engine,
                    jobs=jobs,
                    max_rounds=max_rounds,
                    horizon=horizon,
                    progress=report,
                )
            )
    return outcomes


def record(problem: Environment, outcomes: list[Outcome]) -> dict[str, Any]:
    """The outcomes as JSON."""
    about: dict[str, Any] = {"arms": problem.names}
    if isinstance(problem, RequestStream):
        about |= {"phases": problem.firsts, "segments": problem.segments}
    elif isinstance(problem, LinearStream):
        about |= {"features": problem.feature_names}
    else:
        about |= {
            "best_arms": [problem.names[arm] for arm in best_arms(problem)], "best_ratio": best_ratio(problem),
        }  # fmt: skip
    return about | {"results": [result for outcome in outcomes for result in summaries(outcome)]}


def summaries(outcome: Outcome) -> list[dict[str, Any]]:
    """One plain record for each budget."""
    regret, pseudo, identified = outcome.regret, outcome.pseudo_regret, outcome.best_arm_identified
    records = []
    for b, budget in enumerate(outcome.budgets.tolist()):
        hits = identified[:, b]
        parts = {} if outcome.part_pulls is None else {"part_pulls": outcome.part_pulls[:, b].mean(axis=0).tolist()}
        records.append(
            {
                "policy": outcome.policy,
                "budget": budget,
                "runs": outcome.runs,
                "regret": spread(regret[:, b]),
                "pseudo_regret": spread(pseudo[:, b]),
                "rounds": spread(outcome.rounds[:, b]),
                "reward": spread(outcome.reward[:, b]),
                "spend": spread(outcome.spend[:, b]),
                "pulls": outcome.pulls[:, b].mean(axis=0).tolist(),
                **parts,
                "best_arm_identified": float(hits.mean()),
                "missed_runs": int((~hits).sum()),
                "regret_when_identified": spread(regret[hits, b]),
                "regret_when_missed": spread(regret[~hits, b]),
                "engine": outcome.engine,
                "engine_reason": outcome.engine_reason,
                "seconds": outcome.seconds,
            }
        )
    return records


def spread(values: np.ndarray[Any, Any]) -> dict[str, float | None]:
    """Mean, standard deviation and standard error; null where there are too few values for them."""
    n = len(values)
    std = float(values.std(ddof=1)) if n > 1 else None
    return {"mean": float(values.mean()) if n else None, "std": std, "sem": None if std is None else std / n**0.5}


def _headline(problem: Environment, outcome: Outcome) -> str:
    requests = f", {outcome.horizon:,.0f} requests" if outcome.horizon < math.inf else ""
    if isinstance(problem, RequestStream):
        many = [f"{len(parts)} {what}" for parts, what in ((problem.firsts, "phases"), (problem.segments, "segments"))
                if len(parts) > 1]  # fmt: skip
        return f"{', '.join([f'{len(problem)} arms', *many])}{requests}"
    if isinstance(problem, LinearStream):
        return f"{len(problem)} arms, {count(len(problem.features), 'feature')}{requests}"
    best = ", ".join(problem.names[arm] for arm in best_arms(problem))
    return f"{len(problem)} arms, best {best} ({best_ratio(problem):.3f} reward per cost){requests}"


def show(problem: Environment, outcomes: list[Outcome], title: str) -> None:
    """Print the outcomes as a table."""
    paced = outcomes[0].horizon < math.inf
    against = "Regret is measured against the best mix of arms, all means known.\n" if paced else ""
    rest = "runs that pulled an arm of that mix most." if paced else "runs that pulled it most."
    pseudo = "the same regret from the pull counts."
    if isinstance(problem, LinearStream):
        against = "Regret is measured against the best player who knows the means for every request.\n"
        rest, pseudo = (
            "runs that pulled most the arm that this player does.",
            "the regret, where requests have features.",
        )
    table = plain_table(
        "policy",
        numbers=("budget", "regret", "std", "pseudo", "rounds", "best arm"),
        title=escape(f"{title}\n{_headline(problem, outcomes[0])}, {outcomes[0].runs} runs"),
        caption=f"{against}± is half of the 95 % interval of the mean, std the deviation from run to run.\n"
        f"pseudo: {pseudo} best arm: {rest}",
    )
    records = [record for outcome in outcomes for record in summaries(outcome)]
    records.sort(key=lambda r: (r["budget"], r["pseudo_regret"]["mean"]))
    for record, following in zip(records, [*records[1:], None], strict=True):
        table.add_row(
            label(record["policy"]),
            f"{record['budget']:,g}",
            _estimate(record["regret"], record["runs"]),
            "–" if record["regret"]["std"] is None else f"{record['regret']['std']:,.1f}",
            _estimate(record["pseudo_regret"], record["runs"]),
            f"{record['rounds']['mean']:,.0f}",
            f"{record['best_arm_identified']:.1%}",
            end_section=following is not None and following["budget"] != record["budget"],
        )
    terminal().print(table)
    show_slower(slower_lines((outcome.policy, outcome.engine, outcome.engine_reason) for outcome in outcomes))


def _estimate(record: dict[str, float | None], runs: int) -> str:
    mean = record["mean"]
    assert mean is not None
    digits = 1 if abs(mean) < 1000 else 0  # a tenth of thousands tells nothing and costs the table its width
    half = "" if record["sem"] is None else f" ± {half_width(record['sem'], runs):,.{digits}f}"
    return f"{mean:,.{digits}f}{half}"
