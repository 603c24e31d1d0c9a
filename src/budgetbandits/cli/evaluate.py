"""The command ``evaluate``: off-policy evaluation from a log of decisions with their propensities."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.markup import escape
from rich.table import Table

from budgetbandits import plugins
from budgetbandits.cli.screen import AsJson, fits, plain_table, print_json, terminal
from budgetbandits.errors import BadParameter
from budgetbandits.formatting.numbers import count
from budgetbandits.off_policy import Estimate, Evaluation, Log, Target, evaluate, even, held_still, mix, one_arm
from budgetbandits.off_policy.estimates import Value, mean_of
from budgetbandits.off_policy.log import MEANINGS, read_log
from budgetbandits.off_policy.targets import DRAWS, DRAWS_WITH_FEATURES
from budgetbandits.policies import label
from budgetbandits.problems.records import parse_columns

WEIGHT_ERRORS_MAX = 4.0
"""Standard errors by which the mean weight may differ from its expected value."""


def evaluate_command(
    log: Annotated[Path, typer.Argument(help="An export of decisions with propensities: .parquet or .csv.")],
    policy: Annotated[
        list[str] | None,
        typer.Option(help="A policy, as for simulate; it learns first and is then fixed. May be repeated."),
    ] = None,
    arm: Annotated[list[str] | None, typer.Option(help="Always this arm. May be repeated.")] = None,
    shares: Annotated[
        list[str] | None, typer.Option("--mix", help="Arms with these shares: NAME=SHARE,NAME=SHARE. May be repeated.")
    ] = None,
    even_mix: Annotated[bool, typer.Option("--even", help="All arms equally often.")] = False,
    columns: Annotated[str, typer.Option(help="The names of columns that differ from an export's: arm=…,….")] = "",
    learn_on: Annotated[
        Path | None,
        typer.Option(help="Another log for policies to learn from. Without it, the first half of this one."),
    ] = None,
    budget_per_request: Annotated[
        float | None, typer.Option(help="Money for each request, for policies that plan with a budget.")
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Draws for a policy's probabilities of choice, in each situation."
            f" Without it, {DRAWS:,}, or {DRAWS_WITH_FEATURES} if there are features.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same figures.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Estimate what other policies would have earned and spent per request of a log."""
    if not (policy or arm or shares or even_mix):
        raise BadParameter("nothing to evaluate; name a --policy, an --arm or a --mix, or say --even")
    if not policy and (learn_on is not None or budget_per_request is not None):
        raise BadParameter("--learn-on and --budget-per-request are for a --policy; name one, or leave them out")
    named = parse_columns(columns, MEANINGS)
    whole = read_log(log, named)
    before, rest = _learn_and_look(whole, learn_on, named, bool(policy))
    targets = list(_targets(rest, arm, shares, even_mix))
    for text in policy or ():
        for name in plugins.sweep(text):
            targets.append(
                held_still(rest, plugins.find_policy(name), before, budget_per_request, draws, seed)
            )  # fmt: skip
    values = [evaluate(rest, target) for target in targets]
    if as_json:
        print_json(_record(whole, rest, values, targets))
    else:
        _show(str(log), whole, rest, values)


def _learn_and_look(whole: Log, learn_on: Path | None, columns: dict[str, str], learn: bool) -> tuple[Log, Log]:
    """The log that policies learn from, and the log that all targets are evaluated on."""
    if not learn:
        return whole, whole
    if learn_on is not None:
        return read_log(learn_on, columns), whole
    half = len(whole) // 2
    if half < 1:
        raise BadParameter("the log has a single decision; collect more")
    return whole.part(slice(half)), whole.part(slice(half, None))


def _targets(log: Log, arms: list[str] | None, shares: list[str] | None, even_mix: bool) -> Iterator[Target]:
    for name in arms or ():
        yield one_arm(log, name)
    for text in shares or ():
        yield mix(log, dict(_share(part, text) for part in text.split(",") if part.strip()))
    if even_mix:
        yield even(log)


def _share(part: str, text: str) -> tuple[str, float]:
    name, equals, share = part.rpartition("=")
    try:
        if equals and name.strip():
            return name.strip(), float(share)
    except ValueError:
        pass
    raise BadParameter(f"mix is {text!r:.60}; write NAME=SHARE,NAME=SHARE")


def _record(whole: Log, log: Log, values: list[Evaluation], targets: list[Target]) -> dict[str, Any]:
    return {
        "decisions": len(log),
        "left_out": whole.left_out,
        "arms": log.arms,
        "segments": log.segments,
        "features": log.feature_names,
        "logged": {name: mean_of(values).as_json() for name, values in (("reward", log.reward), ("cost", log.cost))},
        "results": [
            {
                "target": value.target, "draws": target.draws, "problem": value.problem or None,
                "effective_sample_size": value.effective, "unseen": value.unseen, "unanswered": value.unanswered,
                "mean_weight": value.weight.as_json(), "reward": _value(value.reward), "cost": _value(value.cost),
            }
            for value, target in zip(values, targets, strict=True)
        ],
    }  # fmt: skip


def _value(value: Value | None) -> dict[str, Any] | None:
    if value is None:
        return None
    return {name: number.as_json() if isinstance(number, Estimate) else number for name, number in vars(value).items()}


def _show(title: str, whole: Log, log: Log, values: list[Evaluation]) -> None:
    console = terminal()
    head = f"{escape(title)}\n{len(log):,} decisions" + (f", {len(log.segments)} segments" if log.segments else "")
    head += f", {count(len(log.feature_names), 'feature')}" if log.feature_names else ""
    if len(log) < len(whole):
        head += f"; policies have learned from the {len(whole) - len(log):,} before them"
    if whole.left_out:
        head += f"\n{whole.left_out:,} rows without reward, cost or propensity are left out"
    wide, narrow = (_table(head, log, values, gains) for gains in (True, False))
    console.print(wide if fits(wide, console) else narrow)
    for value in values:
        if value.problem:
            console.print(f"{escape(label(value.target))}: {escape(value.problem)}.", soft_wrap=True)
        elif abs(value.weight.value - (1.0 - value.unanswered)) > WEIGHT_ERRORS_MAX * max(value.weight.error, 1e-12):
            console.print(
                f"{escape(label(value.target))}: its weights have the mean {_said(value.weight)} (95 %), not "
                f"{1.0 - value.unanswered:.3g}: the log's propensities are not those of its choices.",
                soft_wrap=True,
            )  # fmt: skip


def _table(head: str, log: Log, values: list[Evaluation], gains: bool) -> Table:
    lines = plain_table(
        "target",
        numbers=("reward", *(["gain"] if gains else []), "cost", "effective"),
        title=head,
        caption="for each request: doubly robust, ± as far as the farther end of its 95 % interval.\n"
        + ("gain: reward above that of the policy that ran.\n" if gains else "")
        + "effective: how many decisions of the target's own would say as much.",
    )
    ran = [_said(mean_of(values)) for values in (log.reward, log.cost)]
    lines.add_row("what ran", ran[0], *([""] if gains else []), ran[1], f"{len(log):,}", end_section=True)
    for value in values:
        if value.reward is None or value.cost is None:
            cells = ["too little overlap", *([""] if gains else []), ""]
        else:
            gain = [_said(value.reward.more, "+")] if gains else []
            cells = [_said(value.reward.doubly_robust), *gain, _said(value.cost.doubly_robust)]
        lines.add_row(escape(label(value.target)), *cells, f"{value.effective:,.0f}")
    return lines


def _said(estimate: Estimate, sign: str = "") -> str:
    """The value and half the width of its interval, to two digits of the latter."""
    reach = max(estimate.high - estimate.value, estimate.value - estimate.low)
    if not reach > 0.0:
        return f"{estimate.value:{sign}.4g}"
    digits = int(np.clip(1 - np.floor(np.log10(reach)), 0, 12))
    if digits > 5:
        return f"{estimate.value:{sign}.4g} ± {reach:.2g}"
    return f"{estimate.value:{sign}.{digits}f} ± {reach:.{digits}f}"
