"""The decision service from a terminal: ``serve``, and for operators ``campaign`` and ``key``.

``campaign`` and ``key`` work on the store itself, beside the servers that use it: whoever may open the database needs
no key.
"""

from __future__ import annotations

import contextlib
import inspect
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints
from urllib.parse import parse_qs, urlsplit

import typer
from rich.console import Console
from rich.markup import escape

from budgetbandits.amounts import decimals, shown
from budgetbandits.cli.screen import AsJson, filled, fits, plain_table, print_json, share_bar
from budgetbandits.errors import BadParameter, OutcomeUnknown
from budgetbandits.terms import CHANGEABLE, MONEY, Terms

if TYPE_CHECKING:  # the service takes a quarter of a second to import, which other commands need not wait for
    from budgetbandits.service.engine import Engine
    from budgetbandits.service.stores.base import Store


def _without_password(context: typer.Context, store: str) -> str:
    """The store's address, if it gives no password away: every user of a machine may list its processes."""
    source = context.get_parameter_source("store")
    if source is not None and source.name == "COMMANDLINE" and "://" in store:
        address = urlsplit(store)
        if address.password is not None or "password" in parse_qs(address.query):
            raise BadParameter(
                "--store has a password, which the list of processes shows to everybody; leave it out and set "
                "PGPASSWORD or PGPASSFILE, or set BUDGETBANDITS_STORE to the whole address instead"
            )
    return store


Address = Annotated[
    str,
    typer.Option(
        "--store", envvar="BUDGETBANDITS_STORE", help="A SQLite file, or postgresql://… (extra postgres).",
        callback=_without_password,
    ),
]  # fmt: skip
Name = Annotated[str, typer.Argument(help="The campaign's name or id.")]
DATABASE = "budgetbandits.db"
HERE = "command line"
"""Who events say has done what is done here."""
AGAIN_AFTER = (0.5, 1.0, 2.0)
"""Seconds between tries of a change of which nobody knows whether it was made."""
SAID = ("hold_seconds", "on_expire", "reward_max", "daily_cap", "pace_seconds", "lease", "lease_seconds", "horizon",
        "propensity_draws")  # fmt: skip
"""Terms that `campaign show` has a phrase for; others are shown by their name."""

campaign_app = typer.Typer(no_args_is_help=True, help="Open, look at, steer and check campaigns.")
key_app = typer.Typer(no_args_is_help=True, help="Make, list and drop API keys.")


def serve_command(
    store: Address = DATABASE,
    host: Annotated[str, typer.Option(help="Where to listen; this machine alone unless told otherwise.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
    key_file: Annotated[
        Path | None, typer.Option(help="Where the first admin key goes; if not said, to the screen, if there is one.")
    ] = None,
    per_address: Annotated[
        int | None, typer.Option(min=1, help="Connections that one address may have; if not said, half of all.")
    ] = None,
) -> None:
    """Serve campaigns over HTTP; the first time, makes an admin key."""
    from budgetbandits.service.http.listening import listening

    # before the rest is imported, which takes most of a second, and before a key is shown that scrolls away
    with listening(host, port) as listener:
        try:
            from budgetbandits.service.http.server import serve
        except ImportError as error:
            raise BadParameter(f"the service needs {error.name}; pip install 'budgetbandits[service]'") from None
        serve(listener, store, _public(store), key_file, per_address)


# --- campaign --------------------------------------------------------------------------------------------------------


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
    with _opened(store) as (engine, _):
        _once(lambda key: engine.create(name, policy, budget, _arms(arm), known=known, key=key, by=HERE, **terms))
        _show(engine, name, as_json)


@campaign_app.command("list")
def list_command(store: Address = DATABASE, as_json: AsJson = False) -> None:
    """All campaigns and their money."""
    with _opened(store) as (engine, _):
        rows = engine.overview()
    if as_json:
        print_json(rows)
        return
    console, table = Console(), plain_table()
    for title in ("campaign", "status"):
        table.add_column(title, overflow="fold")
    kinds = _kinds(rows)
    for title in kinds:
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(escape(row["name"]), row["status"], *_money(row, kinds))
    if not rows:
        console.print("No campaigns yet; open one with 'budgetbandits campaign create'.")
    elif fits(table, console):
        console.print(table)
    else:
        for row in rows:
            console.print(f"[bold]{escape(row['name'])}[/]  {row['status']}", highlight=False)
            _print_money(console, row)


@campaign_app.command("show")
def show_command(campaign: Name, store: Address = DATABASE, as_json: AsJson = False) -> None:
    """One campaign, its terms and its arms."""
    with _opened(store) as (engine, _):
        _show(engine, campaign, as_json)


@campaign_app.command("top-up")
def top_up_command(campaign: Name, amount: float, store: Address = DATABASE, as_json: AsJson = False) -> None:
    """Raise the budget."""
    with _opened(store) as (engine, _):
        _once(lambda key: engine.top_up(campaign, amount, key, HERE))
        _show(engine, campaign, as_json)


def _status_command(word: str, status: Literal["paused", "active", "closed"], text: str) -> None:
    def command(campaign: Name, store: Address = DATABASE, as_json: AsJson = False) -> None:
        with _opened(store) as (engine, _):
            _once(lambda key: engine.set_status(campaign, status, key, HERE))
        _say({"campaign": campaign, "status": status}, f"{campaign} is {status}", as_json)

    campaign_app.command(word, help=text)(command)


_status_command("pause", "paused", "No decisions until it is resumed; feedback goes on.")
_status_command("resume", "active", "Decide again, after a pause or a freeze.")
_status_command("close", "closed", "For good; what is open can still be told.")


@campaign_app.command("set-back")
def set_back_command(campaign: Name, store: Address = DATABASE, as_json: AsJson = False) -> None:
    """Go on today, after a clock that was far ahead has made decisions of a day to come."""
    with _opened(store) as (engine, _):
        _once(lambda key: engine.set_back(campaign, key, HERE))
    _say({"campaign": campaign}, f"{campaign} goes on today", as_json)


@campaign_app.command("add-arm")
def add_arm_command(
    campaign: Name,
    arm: Annotated[str, typer.Argument(help="NAME=CAP")],
    store: Address = DATABASE,
    as_json: AsJson = False,
) -> None:
    """A new arm, from the next decision on."""
    name, cap = _arm(arm)
    with _opened(store) as (engine, _):
        _once(lambda key: engine.add_arm(campaign, name, cap, key, HERE))
        _show(engine, campaign, as_json)


@campaign_app.command("retire-arm")
def retire_arm_command(campaign: Name, arm: str, store: Address = DATABASE, as_json: AsJson = False) -> None:
    """Choose this arm no more, until it is brought back."""
    with _opened(store) as (engine, _):
        _once(lambda key: engine.retire_arm(campaign, arm, key, HERE))
        _show(engine, campaign, as_json)


@campaign_app.command("bring-back-arm")
def bring_back_arm_command(campaign: Name, arm: str, store: Address = DATABASE, as_json: AsJson = False) -> None:
    """Choose an arm again that was retired, with all that is known of it."""
    with _opened(store) as (engine, _):
        _once(lambda key: engine.bring_back_arm(campaign, arm, key, HERE))
        _show(engine, campaign, as_json)


@campaign_app.command("change")
def change_command(
    campaign: Name,
    term: Annotated[list[str], typer.Argument(help="TERM=VALUE, or TERM=none to take a limit away.")],
    store: Address = DATABASE,
    as_json: AsJson = False,
) -> None:
    """Other terms from now on: daily_cap, pace_seconds, hold_seconds, on_expire, horizon, propensity_draws."""
    changes = dict(map(_changed_term, term))
    with _opened(store) as (engine, _):
        _once(lambda key: engine.change_terms(campaign, changes, key, HERE))
        _show(engine, campaign, as_json)


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
    from budgetbandits.service.export import export

    if table not in ("decisions", "events"):
        raise BadParameter(f"table is {table!r}; use decisions or events")
    with _opened(store) as (_, opened):
        count = export(opened, campaign, file, "decisions" if table == "decisions" else "events")
    _say({"file": str(file), "table": table, "rows": count}, f"{count:,} {table} in {file}", as_json)


@campaign_app.command("verify")
def verify_command(campaign: Name, store: Address = DATABASE, as_json: AsJson = False) -> None:
    """Replay the campaign's events and compare the money, every hold, every choice and everything learnt."""
    from budgetbandits.service.audit import verify

    with _opened(store) as (_, opened), share_bar(f"replaying {campaign}") as progress:
        differences = verify(opened, campaign, progress)
    said = f"{campaign} agrees with its events"
    if differences:
        said = "\n".join([*differences, f"{len(differences)} differences between {campaign} and its events"])
    _say({"campaign": campaign, "agrees": not differences, "differences": differences}, said, as_json)
    raise typer.Exit(1 if differences else 0)


# --- key -------------------------------------------------------------------------------------------------------------


@key_app.command("create")
def create_key_command(
    scope: Annotated[list[str], typer.Option(help="decide, feedback, read or admin; may be given again.")],
    campaign: Annotated[str | None, typer.Option(help="For this campaign only.")] = None,
    store: Address = DATABASE,
    as_json: AsJson = False,
) -> None:
    """Make a key and show it this once."""
    from budgetbandits.service.http.auth import make_key

    with _opened(store) as (_, opened):
        key = make_key(opened, scope, time.time(), campaign, by=HERE)
    _say({"key": key}, key, as_json)


@key_app.command("list")
def list_keys_command(store: Address = DATABASE, as_json: AsJson = False) -> None:
    """All keys, by their public part."""
    with _opened(store) as (_, opened):
        keys = opened.read(lambda tx: tx.keys())
        names = opened.read(lambda tx: {row.id: row.name for row in tx.campaigns()})
    if as_json:
        print_json(
            [
                {
                    "prefix": key.prefix, "scopes": key.scopes, "created_at": key.created_at,
                    "campaign": None if key.campaign is None else names[key.campaign],
                }
                for key in keys
            ]
        )  # fmt: skip
        return
    table = plain_table()
    for title in ("key", "may", "campaign", "made"):
        table.add_column(title, overflow="fold")
    for key in keys:
        only = "all" if key.campaign is None else names[key.campaign]
        table.add_row(f"bb_{key.prefix}_…", " ".join(key.scopes), escape(only), _when(key.created_at))
    Console().print(table)


@key_app.command("drop")
def drop_key_command(
    prefix: Annotated[str, typer.Argument(help="The eight characters after bb_.")],
    store: Address = DATABASE,
    as_json: AsJson = False,
) -> None:
    """Delete a key; servers notice within five seconds."""
    from budgetbandits.service.http.auth import drop_key

    with _opened(store) as (_, opened):
        drop_key(opened, prefix, by=HERE)
    _say({"dropped": prefix}, f"bb_{prefix}_… is dropped", as_json)


# --- what they share -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _opened(address: str) -> Iterator[tuple[Engine, Store]]:
    from budgetbandits.service.engine import Engine
    from budgetbandits.service.stores import open_store

    with open_store(address, must_exist=True) as store:
        yield Engine(store), store


def _once(change: Callable[[str], object]) -> None:
    """Make a change under a key of its own. If the store was lost meanwhile it is asked for again, and made once."""
    key = uuid.uuid4().hex
    for pause in AGAIN_AFTER:
        try:
            change(key)
        except OutcomeUnknown:
            time.sleep(pause)
        else:
            return
    change(key)


def _public(store: str) -> str:
    """An address without the password that may be in it."""
    address = urlsplit(store)
    return store if not address.netloc else f"{address.scheme}://{address.hostname or ''}{address.path}"


def _arms(texts: list[str]) -> dict[str, float]:
    arms: dict[str, float] = {}
    for name, cap in map(_arm, texts):
        if name in arms:
            raise BadParameter(f"arm {name!r} is given twice, with {' and '.join(shown([arms[name], cap]))}; say which")
        arms[name] = cap
    return arms


def _arm(text: str) -> tuple[str, float]:
    name, _, cap = text.rpartition("=")
    try:
        return name, float(cap)
    except ValueError:
        raise BadParameter(f"arm {text!r} is not NAME=CAP; write for example search=2.50") from None


def _say(document: dict[str, Any], text: str, as_json: bool) -> None:
    """What a command has done, for a program or for a person."""
    if as_json:
        print_json(document)
    else:
        print(text)


def _show(engine: Engine, campaign: str, as_json: bool) -> None:
    from budgetbandits.service.campaigns import Total

    row = engine.describe(campaign)
    if as_json:
        print_json(row)
        return
    totals = engine.totals(campaign)
    console = Console()
    console.print(f"[bold]{escape(row['name'])}[/]  {row['status']}  {row['policy']}  since {_when(row['created_at'])}")
    _print_money(console, row)
    terms = [f"holds {row['hold_seconds']:g} s, then {row['on_expire']}", f"rewards up to {row['reward_max']:g}"]
    if row["daily_cap"] is not None:
        terms.append(f"at most {shown([row['daily_cap']])[0]} a day")
    if row["pace_seconds"] is not None:
        terms.append(f"spread over {row['pace_seconds']:g} s")
    if row["lease"] is not None:
        terms.append(f"leases of {shown([row['lease']])[0]} for {row['lease_seconds']:g} s")
    if row["horizon"] is not None:
        terms.append(f"{row['answered']:,} of {row['horizon']:,.0f} requests answered")
    if row["propensity_draws"] is not None:
        terms.append(f"propensities from {row['propensity_draws']:g} draws")
    if row["segments"]:
        terms.append(f"segments {', '.join(row['segments'])}")
    for term in fields(Terms):
        if term.name not in SAID and row[term.name] is not None:
            terms.append(f"{term.name} {row[term.name]}")
    console.print(escape("; ".join(terms)), highlight=False)
    table = plain_table()
    table.add_column("arm", overflow="fold")
    for title in ("cost cap", "pulls", "open", "cost", "reward", "reward per cost"):
        table.add_column(title, justify="right", overflow="fold")
    table.add_column("")
    of_arms = [totals.get(arm["name"], Total()) for arm in row["arms"]]
    caps, costs = decimals(arm["cost_cap"] for arm in row["arms"]), decimals(total.cost for total in of_arms)
    rewards = decimals((total.reward for total in of_arms), fewest=1)
    for arm, total in zip(row["arms"], of_arms, strict=True):
        ratio = f"{total.reward / total.cost:,.4g}" if total.cost else ""
        money = (f"{total.open:,}", f"{total.cost:,.{costs}f}", f"{total.reward:,.{rewards}f}", ratio)
        state = _state(arm)
        table.add_row(escape(arm["name"]), f"{arm['cost_cap']:,.{caps}f}", f"{arm['pulls']:,}", *money, state)
    console.print(table)


def _state(arm: dict[str, Any]) -> str:
    """What is unusual about an arm, if anything."""
    said = [] if arm["active"] else ["retired"]
    if arm["failures"]:
        said.append(f"{arm['failures']:,} failed")
    if arm["rests_until"] is not None:
        said.append(f"rests until {datetime.fromtimestamp(arm['rests_until']).astimezone():%H:%M:%S}")
    return ", ".join(said)


def _print_money(console: Console, row: dict[str, Any]) -> None:
    kinds = _kinds([row])
    parts = [f"{name} {value}" for name, value in zip(kinds, _money(row, kinds), strict=True)]
    for line in filled(parts, console.width):
        console.print(line, highlight=False)


def _kinds(rows: list[dict[str, Any]]) -> list[str]:
    """Which money to show: what is leased only if any of these campaigns lease."""
    return [name for name in MONEY if name != "leased" or any(row["lease"] is not None for row in rows)]


def _money(row: dict[str, Any], kinds: list[str]) -> list[str]:
    """A campaign's money, all of it with as many decimals as any of it needs."""
    return shown([row[name] for name in kinds])


def _when(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M")
