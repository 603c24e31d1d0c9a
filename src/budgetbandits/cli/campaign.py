"""The command ``campaign``: what operators do with campaigns, from a terminal.

It works on the store itself, next to the servers that use it: access to the database replaces an API key. With
``--url`` it works on a server instead (`remote`).
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from budgetbandits.answers import ArmAnswer, ArmTotalAnswer, CampaignAnswer, CampaignDetailAnswer, StandingAnswer
from budgetbandits.cli.outcomes import read_history
from budgetbandits.cli.remote import ServerAddress, row_count
from budgetbandits.cli.screen import AsJson, filled, fits, local_time, plain_table, print_json, share_bar, terminal
from budgetbandits.cli.service import ACTOR, DEFAULT_STORE, Address, once, opened_service, opened_store, say
from budgetbandits.errors import BadParameter
from budgetbandits.formatting.money import decimals, same_decimals
from budgetbandits.formatting.numbers import count
from budgetbandits.terms import CHANGEABLE, MONEY, TERMS

if TYPE_CHECKING:  # the service takes a quarter of a second to import, which other commands need not wait for
    from budgetbandits.service.service import DecisionService

Name = Annotated[str, typer.Argument(help="The campaign's name or id.")]
ArmName = Annotated[str, typer.Argument(help="The arm's name.")]
campaign_app = typer.Typer(no_args_is_help=True, help="Create, show, change and check campaigns.")


def _change(store: str, campaign: str, as_json: bool, change: Callable[[DecisionService, str], None]) -> None:
    """Make a change under a new idempotency key, and show the campaign."""
    with opened_service(store) as service:
        once(lambda key: change(service, key))
        show(service, campaign, as_json)


def _with_terms(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each term of a campaign instead of ``**terms``."""
    given = [
        option for option in inspect.signature(command, eval_str=True).parameters.values() if option.name != "terms"
    ]
    for term in TERMS.values():
        kind: Any = str if term.kind in ("choice", "text", "names") else float
        help = f"{term.full_help} Separate them by commas." if term.kind == "names" else term.full_help
        about = typer.Option(help=help, rich_help_panel=term.group)
        kind = kind | None if term.optional else kind
        option = Annotated[kind, about]
        given.append(given[-1].replace(name=term.name, default=term.default, annotation=option))
    command.__signature__ = inspect.Signature(given)  # type: ignore[attr-defined]
    command.__annotations__ = {option.name: option.annotation for option in given}
    return command


@campaign_app.command("create")
@_with_terms
def create_command(
    name: Annotated[str, typer.Argument(help="A name that no other campaign has.")],
    budget: Annotated[float, typer.Option(help="The most that may be spent.")],
    arm: Annotated[
        list[str],
        typer.Option(help="NAME=CAP, an arm and the most that one pull of it can cost. Repeat it for each arm."),
    ],
    policy: Annotated[
        str | None,
        typer.Option(
            help="Any policy of 'budgetbandits policies'. Without it, bts-linear if there are features, bts-paced if "
            "there is a horizon, else bts."
        ),
    ] = None,
    cost_floor: Annotated[
        float | None, typer.Option(help="The least mean cost, for policies that must know it.")
    ] = None,
    cost: Annotated[
        list[str] | None, typer.Option(help="NAME=COST, the mean cost of an arm, for policies that must know it.")
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(
            help="Past outcomes to learn from: a .csv or .parquet file with the columns arm, reward and cost."
        ),
    ] = None,
    store: Address = DEFAULT_STORE,
    as_json: AsJson = False,
    **terms: Any,
) -> None:
    """Create a campaign."""
    past = None if history is None else read_history(history)
    knowledge: dict[str, Any] = {} if cost_floor is None else {"cost_floor": cost_floor}
    if cost:
        knowledge["costs"] = _arms(cost)
    for term in ("features", "tags"):
        if terms[term] is not None:
            terms[term] = tuple(name.strip() for name in terms[term].split(","))
    with opened_service(store) as service:
        arms = _arms(arm)
        once(lambda key: service.create(
            name, policy, budget, arms, known=knowledge, history=past, key=key, actor=ACTOR, **terms
        ))  # fmt: skip
        show(service, name, as_json)


@campaign_app.command("clone")
def clone_command(
    campaign: Name,
    name: Annotated[str, typer.Argument(help="The name of the new campaign.")],
    budget: Annotated[float | None, typer.Option(help="Its budget; without it, as much as the other's.")] = None,
    learned: Annotated[bool, typer.Option(help="Whether it begins with what the other has learned.")] = True,
    store: Address = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Create a campaign like another one."""
    with opened_service(store) as service:
        once(lambda key: service.clone(campaign, name, budget, learned, key, ACTOR))
        show(service, name, as_json)


@campaign_app.command("list")
def list_command(store: Address = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List all campaigns: how they do, and their money."""
    with opened_service(store) as service:
        campaigns, standings = service.overview(), {standing.id: standing for standing in service.standings()}
    show_all([(campaign, standings.get(campaign.id)) for campaign in campaigns], as_json)


@campaign_app.command("show")
def show_command(campaign: Name, store: Address = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Show one campaign, its terms and its arms."""
    with opened_service(store) as service:
        show(service, campaign, as_json)


@campaign_app.command("top-up")
def top_up_command(
    campaign: Name,
    amount: Annotated[float, typer.Argument(help="What the budget is raised by.")],
    store: Address = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Raise the budget."""
    _change(store, campaign, as_json, lambda service, key: service.top_up(campaign, amount, key, ACTOR))


def _status_command(word: str, status: Literal["paused", "closed"], text: str) -> None:
    def command(campaign: Name, store: Address = DEFAULT_STORE, as_json: AsJson = False) -> None:
        with opened_service(store) as service:
            once(lambda key: service.set_status(campaign, status, key, ACTOR))
        say({"campaign": campaign, "status": status}, f"{campaign} is {status}", as_json)

    campaign_app.command(word, help=text)(command)


_status_command("pause", "paused", "Make no decisions until it is resumed; feedback is still accepted.")


@campaign_app.command("resume")
def resume_command(
    campaign: Name,
    spent_since: Annotated[
        float | None, typer.Option(help="After a restore: what it has spent since the copy was made.")
    ] = None,
    store: Address = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Make decisions again, after a pause, a freeze or a restore."""
    with opened_service(store) as service:
        once(lambda key: service.set_status(campaign, "active", key, ACTOR, spent_since))
    say({"campaign": campaign, "status": "active"}, f"{campaign} is active", as_json)


_status_command("close", "closed", "Close for good; feedback for open decisions is still accepted.")


@campaign_app.command("reset-clock")
def reset_clock_command(campaign: Name, store: Address = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Continue with today's date, after decisions that a wrong clock dated in the future."""
    with opened_service(store) as service:
        once(lambda key: service.reset_clock(campaign, key, ACTOR))
    say({"campaign": campaign}, f"{campaign} continues today", as_json)


@campaign_app.command("add-arm")
def add_arm_command(
    campaign: Name,
    arm: Annotated[str, typer.Argument(help="NAME=CAP, the arm and the most that one pull of it can cost.")],
    store: Address = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Add an arm, from the next decision on."""
    name, cap = _arm(arm)
    _change(store, campaign, as_json, lambda service, key: service.add_arm(campaign, name, cap, key, ACTOR))


@campaign_app.command("retire-arm")
def retire_arm_command(campaign: Name, arm: ArmName, store: Address = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Choose this arm no more, until it is brought back."""
    _change(store, campaign, as_json, lambda service, key: service.retire_arm(campaign, arm, key, ACTOR))


@campaign_app.command("bring-back-arm")
def bring_back_arm_command(
    campaign: Name, arm: ArmName, store: Address = DEFAULT_STORE, as_json: AsJson = False
) -> None:
    """Choose a retired arm again, with all that is known of it."""
    _change(store, campaign, as_json, lambda service, key: service.bring_back_arm(campaign, arm, key, ACTOR))


_CHANGEABLE = ("name", "policy", "budget", *CHANGEABLE)


@campaign_app.command("change", help=f"Change terms from now on: {', '.join(_CHANGEABLE)}.")
def change_command(
    campaign: Name,
    term: Annotated[list[str] | None, typer.Argument(help="TERM=VALUE, or TERM=none to remove a limit.")] = None,
    cap: Annotated[
        list[str] | None, typer.Option(help="NAME=CAP, another cap of an arm. Repeat it for each arm.")
    ] = None,
    store: Address = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Change terms of a campaign."""
    changes = changed_terms(term or [], _CHANGEABLE)
    if cap:
        changes["caps"] = _arms(cap)
    with opened_service(store) as service:
        once(lambda key: service.change_terms(campaign, changes, key, ACTOR))
        show(service, changes.get("name", campaign), as_json)


def changed_terms(texts: list[str], names: Sequence[str]) -> dict[str, Any]:
    """The new values of terms, from TERM=VALUE with one of these names."""
    return dict(_changed_term(text, names) for text in texts)


def _changed_term(text: str, names: Sequence[str]) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or name not in names:
        near = [] if name in (*TERMS, *names) else difflib.get_close_matches(name, names, 1)
        meant = f"did you mean {near[0]}?" if near else f"write TERM=VALUE with one of {', '.join(names)}"
        raise BadParameter(f"{text!r:.60} is no change; {meant}")
    if name in ("name", "policy"):
        return name, value
    if value == "none":
        return name, None
    if name in TERMS and TERMS[name].kind in ("choice", "text"):
        return name, value
    if name == "tags":
        return name, [part.strip() for part in value.split(",")]
    try:
        return name, float(value)
    except ValueError:
        raise BadParameter(f"{text!r:.60}: {value!r:.40} is no number; write TERM=NUMBER, or TERM=none") from None


@campaign_app.command("export")
def export_command(
    campaign: Name,
    file: Annotated[Path, typer.Argument(help="The file to write; its name ends in .csv or .parquet.")],
    table: Annotated[str, typer.Option(help="decisions or events.")] = "decisions",
    store: Address = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Write all decisions, or all events, to a file."""
    if table not in ("decisions", "events"):
        raise BadParameter(f"table is {table!r}; use decisions or events")
    which: Literal["decisions", "events"] = "decisions" if table == "decisions" else "events"
    rows: int | None
    if isinstance(store, ServerAddress):
        with store.client() as client:
            left = client.export(campaign, file, table)
        rows = row_count(file)
    else:
        from budgetbandits.service.audit.export import archived_rows, export

        with opened_store(store) as database:
            rows, left = export(database, campaign, file, which), archived_rows(database, campaign, which)
    message = f"{table if rows is None else f'{rows:,} {table}'} in {file}" + (
        f"; {left:,} earlier ones are in the archive" if left else ""
    )
    say({"file": str(file), "table": table, "rows": rows, "archived": left}, message, as_json)


@campaign_app.command("prune")
def prune_command(
    campaign: Name,
    days: Annotated[float, typer.Option(min=1.0, help="Keep what is younger than this many days.")],
    archive: Annotated[Path, typer.Option(help="The folder for Parquet files.")],
    store: Address = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Move old events and decisions to an archive of Parquet files. They take no more feedback."""
    with opened_service(store) as service, terminal(stderr=True).status(f"pruning {campaign}"):
        moved = service.retention.prune(campaign, archive, days, ACTOR)
    text = f"{moved.events:,} events and {moved.decisions:,} decisions of {campaign} are in {archive} now"
    if not moved.events:
        text = f"nothing of {campaign} that can be archived is older than {days:g} days"
    say({"campaign": campaign, "archive": str(archive)} | asdict(moved), text, as_json)


@campaign_app.command("delete")
def delete_command(
    campaign: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    archive: Annotated[Path | None, typer.Option(help="Delete its files in this archive folder, too.")] = None,
    store: Address = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Delete a closed campaign with everything that the store has of it."""
    if not yes:
        typer.confirm(f"Delete {campaign} for good?", abort=True)
    with opened_service(store) as service:
        service.retention.delete(campaign, archive, ACTOR)
    say({"deleted": campaign}, f"{campaign} is deleted", as_json)


@campaign_app.command("verify")
def verify_command(
    campaign: Name,
    archive: Annotated[
        Path | None, typer.Option(help="The archive folder: replay a pruned campaign from the beginning.")
    ] = None,
    store: Address = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Replay the campaign's events, and compare money, holds, choices and everything learned."""
    if isinstance(store, ServerAddress) and archive is None:
        with store.client() as client:
            differences = client.verify(campaign)
    else:
        from budgetbandits.service.audit.audit import verify

        with opened_store(store) as database, share_bar(f"replaying {campaign}") as progress:
            differences = verify(database, campaign, progress, archive)
    say_differences({"campaign": campaign}, differences, f"{campaign} agrees with its events", as_json)


def say_differences(audited: dict[str, str], differences: list[str], agrees: str, as_json: bool) -> NoReturn:
    """Print what an audit has found, and exit with 1 if it is anything."""
    [name] = audited.values()
    summary = f"{count(len(differences), 'difference')} between {name} and its events"
    lines = [*differences, summary] if differences else [agrees]
    say({**audited, "agrees": not differences, "differences": differences}, "\n".join(lines), as_json)
    raise typer.Exit(1 if differences else 0)


def _arms(texts: list[str]) -> dict[str, float]:
    arms: dict[str, float] = {}
    for name, cap in map(_arm, texts):
        if name in arms:
            raise BadParameter(
                f"arm {name!r} is given twice, with {' and '.join(same_decimals([arms[name], cap]))}; give it once"
            )
        arms[name] = cap
    return arms


def _arm(text: str) -> tuple[str, float]:
    name, _, cap = text.rpartition("=")
    try:
        return name, float(cap)
    except ValueError:
        raise BadParameter(f"arm {text!r} is not NAME=CAP; write for example search=2.50") from None


# --- on the screen ---------------------------------------------------------------------------------------------------


def show_all(rows: list[tuple[CampaignAnswer, StandingAnswer | None]], as_json: bool) -> None:
    """Print all campaigns, how they do and their money."""
    if as_json:
        print_json([
            asdict(campaign) | {"outlook": None if standing is None else asdict(standing)}
            for campaign, standing in rows
        ])  # fmt: skip
        return
    console, kinds = terminal(), _kinds([campaign for campaign, _ in rows])
    table = plain_table("campaign", "standing", numbers=kinds)
    for campaign, standing in rows:
        amounts = same_decimals([_amount(campaign, standing, kind) for kind in kinds])
        table.add_row(escape(campaign.name), _standing(campaign, standing), *amounts)
    if not rows:
        console.print("No campaigns yet; create one with 'budgetbandits campaign create'.")
    elif fits(table, console):
        console.print(table)
    else:
        for campaign, standing in rows:
            console.print(f"[bold]{escape(campaign.name)}[/]  {_standing(campaign, standing)}")
            kinds = _kinds([campaign])
            print_money(console, {kind: _amount(campaign, standing, kind) for kind in kinds})


def _amount(campaign: CampaignAnswer, standing: StandingAnswer | None, kind: str) -> float:
    """An amount of a campaign; what is left is what new decisions can have."""
    amount: float = getattr(campaign if kind != "left" or standing is None else standing, kind)
    return amount


def _standing(campaign: CampaignAnswer, standing: StandingAnswer | None) -> str:
    """How a campaign does, in words, and when its money is likely to end."""
    if standing is None:  # its account cannot be read
        return campaign.status
    text, out = standing.standing.replace("_", " "), standing.runs_out
    return text if out is None else f"{text}, until {local_time(out.median)}"


def show(service: DecisionService, name: str, as_json: bool) -> None:
    """Print one campaign, its terms and its arms."""
    campaign = service.describe(name)
    if as_json:
        print_json(asdict(campaign))
        return
    totals, standing, console = service.totals(name), service.standing(name), terminal()
    text, since = _standing(campaign, standing), local_time(campaign.created_at)
    console.print(f"[bold]{escape(campaign.name)}[/]  {text}  {campaign.policy}  since {since}")
    if standing.cause:
        console.print(standing.cause, markup=False)
    print_money(console, {kind: _amount(campaign, standing, kind) for kind in _kinds([campaign])})
    print_terms(console, _terms(campaign))
    table = plain_table("arm")
    for title in ("cost cap", "pulls", "open", "cost", "reward", "reward per cost"):
        table.add_column(title, justify="right", overflow="fold")
    table.add_column("")
    sums = [totals.get(arm.name, ArmTotalAnswer(arm.name, 0, 0.0, 0.0)) for arm in campaign.arms]
    caps, costs = decimals(arm.cost_cap for arm in campaign.arms), decimals(total.cost for total in sums)
    rewards = decimals((total.reward for total in sums), fewest=1)
    for arm, total in zip(campaign.arms, sums, strict=True):
        ratio = f"{total.reward / total.cost:,.4g}" if total.cost else ""
        money = (f"{total.open:,}", f"{total.cost:,.{costs}f}", f"{total.reward:,.{rewards}f}", ratio)
        table.add_row(escape(arm.name), f"{arm.cost_cap:,.{caps}f}", f"{arm.pulls:,}", *money, _state(arm))
    console.print(table)


def _terms(campaign: CampaignDetailAnswer) -> list[str]:
    """A campaign's terms in words, and how many of its requests are answered."""
    given = [term for term in TERMS.values() if getattr(campaign, term.name) is not None]
    if campaign.lease is None:
        given.remove(TERMS["lease_seconds"])
    if campaign.on_limit == "refuse":
        given.remove(TERMS["on_limit"])
    if campaign.period is None:
        given.remove(TERMS["unspent"])
    terms = [f"{term.label.lower()} {term.text(getattr(campaign, term.name))}" for term in given]
    if campaign.horizon is not None:
        answered, used = campaign.requests_answered, campaign.requests_used
        terms.append(f"{answered:,} requests answered" + (f", {used:,} used" if used != answered else ""))
    if campaign.segments:
        terms.append(f"segments {', '.join(campaign.segments)}")
    return terms


def _state(arm: ArmAnswer) -> str:
    """Notes on an arm: retired, failed, down, cooling down."""
    facts = [] if arm.active else ["retired"]
    if arm.failures:
        facts.append(f"{arm.failures:,} failed")
    if arm.down_since is not None:
        facts.append(f"down since {datetime.fromtimestamp(arm.down_since).astimezone():%H:%M:%S}")
    if arm.cooldown_until is not None:
        facts.append(f"cools down until {datetime.fromtimestamp(arm.cooldown_until).astimezone():%H:%M:%S}")
    return ", ".join(facts)


def print_money(console: Console, amounts: dict[str, float]) -> None:
    """Print these amounts by name, all with as many decimals as any of them needs."""
    values = same_decimals(list(amounts.values()))
    for line in filled([f"{name} {value}" for name, value in zip(amounts, values, strict=True)], console.width):
        console.print(line)


def print_terms(console: Console, terms: list[str]) -> None:
    """Print terms as text that fills the lines of the terminal."""
    for line in filled(terms, console.width - 1, "; "):
        console.print(line, markup=False)


def _kinds(campaigns: Sequence[CampaignAnswer]) -> list[str]:
    """The amounts to show: leased ones only if any of these campaigns lease."""
    leased = any(campaign.lease is not None for campaign in campaigns)
    return [name for name in MONEY if name != "leased" or leased]
