"""The command ``shared-budget``: one budget over several campaigns, from a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.markup import escape

from budgetbandits.answers import SharedBudgetDetailAnswer, SharedMoney
from budgetbandits.cli.campaign import changed_terms, print_money, print_terms, say_differences
from budgetbandits.cli.remote import ServerAddress
from budgetbandits.cli.screen import AsJson, plain_table, print_json, share_bar, terminal
from budgetbandits.cli.service import ACTOR, DEFAULT_STORE, Address, once, opened_service, opened_store
from budgetbandits.formatting.money import same_decimals
from budgetbandits.terms import MONEY, TERMS

Name = Annotated[str, typer.Argument(help="The shared budget's name.")]
shared_budget_app = typer.Typer(no_args_is_help=True, help="Create, show, change and check budgets over campaigns.")

CHANGEABLE = ("budget", "period", "period_budget", "unspent", "time_zone")
"""Facts of a shared budget that may change."""


@shared_budget_app.command("create")
def create_command(
    name: Annotated[str, typer.Argument(help="A name that no other shared budget has; it never changes.")],
    budget: Annotated[float, typer.Option(help="The most that its campaigns may spend together.")],
    currency: Annotated[str | None, typer.Option(help="The unit of amounts; its campaigns have the same.")] = None,
    period: Annotated[str | None, typer.Option(help=TERMS["period"].full_help)] = None,
    period_budget: Annotated[float | None, typer.Option(help="What each period gets; without it, the budget.")] = None,
    unspent: Annotated[str, typer.Option(help=TERMS["unspent"].help)] = "lapse",
    time_zone: Annotated[str | None, typer.Option(help=TERMS["time_zone"].full_help)] = None,
    store: Address = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Create a budget; campaigns join it by the term shared_budget."""
    terms = {
        "currency": currency, "period": period, "period_budget": period_budget, "unspent": unspent,
        "time_zone": time_zone,
    }  # fmt: skip
    with opened_service(store) as service:
        once(lambda _: service.shared_budgets.create(name, budget, ACTOR, **terms))
        _show(service.shared_budgets.describe(name), as_json)


@shared_budget_app.command("change", help=f"Change it from now on: {', '.join(CHANGEABLE)}.")
def change_command(
    name: Name,
    term: Annotated[list[str], typer.Argument(help="TERM=VALUE, or TERM=none to remove one.")],
    store: Address = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Change a shared budget."""
    changes = changed_terms(term, CHANGEABLE)
    with opened_service(store) as service:
        once(lambda _: service.shared_budgets.change(name, changes, ACTOR))
        _show(service.shared_budgets.describe(name), as_json)


@shared_budget_app.command("reset-clock")
def reset_clock_command(name: Name, store: Address = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Continue in the present period, after a wrong clock began one to come."""
    with opened_service(store) as service:
        once(lambda _: service.shared_budgets.reset_clock(name, ACTOR))
        _show(service.shared_budgets.describe(name), as_json)


@shared_budget_app.command("list")
def list_command(store: Address = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List all shared budgets and their money."""
    with opened_service(store) as service:
        rows = service.shared_budgets.overview()
    if as_json:
        print_json([asdict(row) for row in rows])
    elif rows:
        terminal().print(_table(rows, "shared budget"))
    else:
        print("No shared budgets yet; create one with 'budgetbandits shared-budget create'.")


@shared_budget_app.command("show")
def show_command(name: Name, store: Address = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Show one shared budget and its campaigns."""
    with opened_service(store) as service:
        _show(service.shared_budgets.describe(name), as_json)


@shared_budget_app.command("verify")
def verify_command(name: Name, store: Address = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Replay the events of all its campaigns, and compare the sum of their money."""
    with share_bar(f"replaying the campaigns of {name}"):
        if isinstance(store, ServerAddress):
            with store.client() as client:
                differences = client.verify_shared_budget(name)
        else:
            from budgetbandits.service.shared_budgets.audit import verify_shared_budget

            with opened_store(store) as database:
                differences = verify_shared_budget(database, name)
    say_differences({"shared_budget": name}, differences, f"{name} agrees with the events of its campaigns", as_json)


def _show(budget: SharedBudgetDetailAnswer, as_json: bool) -> None:
    if as_json:
        print_json(asdict(budget))
        return
    console, kinds = terminal(), ("currency", "period", "period_budget", "time_zone")
    given = [TERMS[name] for name in kinds if getattr(budget, name) is not None]
    if budget.period is not None:
        given.append(TERMS["unspent"])
    console.print(f"[bold]{escape(budget.name)}[/]")
    print_money(console, {name: getattr(budget, name) for name in MONEY})
    print_terms(console, [f"{term.label.lower()} {term.text(getattr(budget, term.name))}" for term in given])
    if budget.unreported:
        console.print(f"restored from a copy: {budget.unreported} of its campaigns must say what they have spent since")
    if budget.campaigns:
        console.print(_table(budget.campaigns, "campaign"))
    else:
        console.print("No campaigns yet; create one with --shared-budget, or let one join: campaign change.")


def _table(rows: Sequence[SharedMoney], title: str) -> Any:
    table = plain_table(title, numbers=MONEY)
    for row in rows:
        table.add_row(escape(row.name), *same_decimals([getattr(row, name) for name in MONEY]))
    return table
