"""Campaigns of the decision service from a terminal: ``campaign``, for operators.

It works on the store itself, beside the servers that use it: whoever may open the database needs no key.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from budgetbandits.cli.campaign_screen import show, show_all
from budgetbandits.cli.screen import AsJson, share_bar
from budgetbandits.cli.store_option import DATABASE, HERE, Address, once, opened_engine, opened_store, say
from budgetbandits.errors import BadParameter
from budgetbandits.formatting.money import same_decimals
from budgetbandits.terms import CHANGEABLE, Terms

Name = Annotated[str, typer.Argument(help="The campaign's name or id.")]
campaign_app = typer.Typer(no_args_is_help=True, help="Open, look at, steer and check campaigns.")


def _with_terms(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each of a campaign's terms instead of its ``**terms``."""
    given = [each for each in inspect.signature(command, eval_str=True).parameters.values() if each.name != "terms"]
    for term in fields(Terms):
        kind = str if isinstance(term.default, str) else get_type_hints(Terms)[term.name]
        option = Annotated[kind, typer.Option(help=term.metadata["help"])]  # type: ignore[valid-type]
        given.append(given[-1].replace(name=term.name, default=term.default, annotation=option))
    command.__signature__ = inspect.Signature(given)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in given}
    return command


@campaign_app.command("create")
@_with_terms
def create_command(
    name: Annotated[str, typer.Argument(help="A name that no other campaign has.")],
    budget: Annotated[float, typer.Option(help="What may be spent in all.")],
    arm: Annotated[list[str], typer.Option(help="NAME=CAP, the most that one pull can cost; twice or more.")],
    policy: Annotated[str, typer.Option(help="Any policy of 'budgetbandits policies'.")] = "bts",
    cost_floor: Annotated[float | None, typer.Option(help="For policies that must know a least mean cost.")] = None,
    cost: Annotated[list[str] | None, typer.Option(help="NAME=COST, for policies that must know all costs.")] = None,
    store: Address = DATABASE,
    as_json: AsJson = False,
    **terms: Any,
) -> None:
    """Open a campaign."""
    known: dict[str, Any] = {} if cost_floor is None else {"cost_floor": cost_floor}
    if cost:
        known["costs"] = _arms(cost)
    with opened_engine(store) as engine:
        once(lambda key: engine.create(name, policy, budget, _arms(arm), known=known, key=key, by=HERE, **terms))
        show(engine, name, as_json)


@campaign_app.command("list")
def list_command(store: Address = DATABASE, as_json: AsJson = False) -> None:
    """All campaigns and their money."""
    with opened_engine(store) as engine:
        rows = engine.overview()
    show_all(rows, as_json)


@campaign_app.command("show")
def show_command(campaign: Name, store: Address = DATABASE, as_json: AsJson = False) -> None:
    """One campaign, its terms and its arms."""
    with opened_engine(store) as engine:
        show(engine, campaign, as_json)


@campaign_app.command("top-up")
def top_up_command(campaign: Name, amount: float, store: Address = DATABASE, as_json: AsJson = False) -> None:
    """Raise the budget."""
    with opened_engine(store) as engine:
        once(lambda key: engine.top_up(campaign, amount, key, HERE))
        show(engine, campaign, as_json)


def _status_command(word: str, status: Literal["paused", "active", "closed"], text: str) -> None:
    def command(campaign: Name, store: Address = DATABASE, as_json: AsJson = False) -> None:
        with opened_engine(store) as engine:
            once(lambda key: engine.set_status(campaign, status, key, HERE))
        say({"campaign": campaign, "status": status}, f"{campaign} is {status}", as_json)

    campaign_app.command(word, help=text)(command)


_status_command("pause", "paused", "No decisions until it is resumed; feedback goes on.")
_status_command("resume", "active", "Decide again, after a pause or a freeze.")
_status_command("close", "closed", "For good; what is open can still be told.")


@campaign_app.command("set-back")
def set_back_command(campaign: Name, store: Address = DATABASE, as_json: AsJson = False) -> None:
    """Go on today, after a clock that was far ahead has made decisions of a day to come."""
    with opened_engine(store) as engine:
        once(lambda key: engine.set_back(campaign, key, HERE))
    say({"campaign": campaign}, f"{campaign} goes on today", as_json)


@campaign_app.command("add-arm")
def add_arm_command(
    campaign: Name,
    arm: Annotated[str, typer.Argument(help="NAME=CAP")],
    store: Address = DATABASE,
    as_json: AsJson = False,
) -> None:
    """A new arm, from the next decision on."""
    name, cap = _arm(arm)
    with opened_engine(store) as engine:
        once(lambda key: engine.add_arm(campaign, name, cap, key, HERE))
        show(engine, campaign, as_json)


@campaign_app.command("retire-arm")
def retire_arm_command(campaign: Name, arm: str, store: Address = DATABASE, as_json: AsJson = False) -> None:
    """Choose this arm no more, until it is brought back."""
    with opened_engine(store) as engine:
        once(lambda key: engine.retire_arm(campaign, arm, key, HERE))
        show(engine, campaign, as_json)


@campaign_app.command("bring-back-arm")
def bring_back_arm_command(campaign: Name, arm: str, store: Address = DATABASE, as_json: AsJson = False) -> None:
    """Choose an arm again that was retired, with all that is known of it."""
    with opened_engine(store) as engine:
        once(lambda key: engine.bring_back_arm(campaign, arm, key, HERE))
        show(engine, campaign, as_json)


@campaign_app.command("change")
def change_command(
    campaign: Name,
    term: Annotated[list[str], typer.Argument(help="TERM=VALUE, or TERM=none to take a limit away.")],
    store: Address = DATABASE,
    as_json: AsJson = False,
) -> None:
    """Other terms from now on: daily_cap, pace_seconds, hold_seconds, on_expire, horizon, propensity_draws."""
    changes = dict(map(_changed_term, term))
    with opened_engine(store) as engine:
        once(lambda key: engine.change_terms(campaign, changes, key, HERE))
        show(engine, campaign, as_json)


def _changed_term(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or name not in CHANGEABLE:
        raise BadParameter(f"{text!r:.60} is no change; write TERM=VALUE with one of {', '.join(CHANGEABLE)}")
    if value == "none":
        return name, None
    if name == "on_expire":
        return name, value
    try:
        return name, float(value)
    except ValueError:
        raise BadParameter(f"{text!r:.60}: {value!r:.40} is no number; write TERM=NUMBER, or TERM=none") from None


@campaign_app.command("export")
def export_command(
    campaign: Name,
    file: Annotated[Path, typer.Argument(help="Ends in .csv or .parquet.")],
    table: Annotated[str, typer.Option(help="decisions or events.")] = "decisions",
    store: Address = DATABASE,
    as_json: AsJson = False,
) -> None:
    """Write all decisions, or all events, to a file."""
    from budgetbandits.service.audit.export import export

    if table not in ("decisions", "events"):
        raise BadParameter(f"table is {table!r}; use decisions or events")
    with opened_store(store) as database:
        count = export(database, campaign, file, "decisions" if table == "decisions" else "events")
    say({"file": str(file), "table": table, "rows": count}, f"{count:,} {table} in {file}", as_json)


@campaign_app.command("verify")
def verify_command(campaign: Name, store: Address = DATABASE, as_json: AsJson = False) -> None:
    """Replay the campaign's events and compare the money, every hold, every choice and everything learnt."""
    from budgetbandits.service.audit.audit import verify

    with opened_store(store) as database, share_bar(f"replaying {campaign}") as progress:
        differences = verify(database, campaign, progress)
    said = f"{campaign} agrees with its events"
    if differences:
        said = "\n".join([*differences, f"{len(differences)} differences between {campaign} and its events"])
    say({"campaign": campaign, "agrees": not differences, "differences": differences}, said, as_json)
    raise typer.Exit(1 if differences else 0)


def _arms(texts: list[str]) -> dict[str, float]:
    arms: dict[str, float] = {}
    for name, cap in map(_arm, texts):
        if name in arms:
            raise BadParameter(
                f"arm {name!r} is given twice, with {' and '.join(same_decimals([arms[name], cap]))}; say which"
            )
        arms[name] = cap
    return arms


def _arm(text: str) -> tuple[str, float]:
    name, _, cap = text.rpartition("=")
    try:
        return name, float(cap)
    except ValueError:
        raise BadParameter(f"arm {text!r} is not NAME=CAP; write for example search=2.50") from None
