"""Commands on a server in place of a store: the options ``--url`` and ``--key``.

`RemoteService` has the methods of `DecisionService` that operators' commands call, and does them over HTTP.
"""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from budgetbandits.errors import BadParameter

if TYPE_CHECKING:  # httpx is of the extras client and service
    from budgetbandits.answers import (
        ArmTotalAnswer,
        CampaignAnswer,
        CampaignDetailAnswer,
        SharedBudgetAnswer,
        SharedBudgetDetailAnswer,
        StandingAnswer,
    )
    from budgetbandits.client import Client

STORE_NEEDED = "this works on the store itself; run it where the store is, with --store"
"""Message of commands that cannot work over HTTP."""


class ServerAddress(str):
    """The address of a server in place of a store's, with a key for it."""

    key: str

    def __new__(cls, url: str, key: str) -> ServerAddress:
        instance = super().__new__(cls, url)
        instance.key = key
        return instance

    def client(self) -> Client:
        """A client of this service."""
        from budgetbandits.client import Client

        return Client(str(self), self.key)


URL = Annotated[
    str | None,
    typer.Option(
        "--url", envvar="BUDGETBANDITS_URL", show_envvar=True,
        help="Work on the server at this address in place of a store.",
    ),
]  # fmt: skip
KEY = Annotated[
    str | None,
    typer.Option(
        "--key", envvar="BUDGETBANDITS_KEY", show_envvar=True,
        help="For --url: a file with an API key, or the key itself, which the list of processes then shows.",
    ),
]  # fmt: skip


def on_server(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options ``--url`` and ``--key``; with them its ``store`` is a `ServerAddress`."""
    own = inspect.signature(command, eval_str=True)
    added: dict[str, Any] = {"context": typer.Context, "url": URL, "server_key": KEY}

    @wraps(command)
    def call(context: typer.Context, url: str | None = None, server_key: str | None = None, **given: Any) -> None:
        if _is_chosen(context, url):
            given["store"] = ServerAddress(url or "", _key(server_key))
        command(**given)

    options = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, annotation=kind,
            default=inspect.Parameter.empty if name == "context" else None,
        )
        for name, kind in added.items()
    ]  # fmt: skip
    call.__signature__ = own.replace(parameters=[*own.parameters.values(), *options])  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in own.parameters.values()} | added
    return call


def _is_chosen(context: typer.Context, url: str | None) -> bool:
    """Whether to work on the server: an option counts before a variable of the environment."""
    sources = {name: context.get_parameter_source(name) for name in ("store", "url", "server_key")}
    origins = {name: None if source is None else source.name for name, source in sources.items()}
    if url is None or (origins["store"], origins["url"]) == ("COMMANDLINE", "ENVIRONMENT"):
        if origins["server_key"] == "COMMANDLINE":
            raise BadParameter("--key is for a server; name it with --url, or leave the key out")
        return False
    if origins["store"] == origins["url"]:
        both = "--store and --url are" if origins["url"] == "COMMANDLINE" else "BUDGETBANDITS_STORE and _URL are both"
        raise BadParameter(f"{both} given; say which by one of --store and --url")
    return True


def _key(given: str | None) -> str:
    if not given:
        raise BadParameter("--url needs a key; name its file with --key FILE, or set BUDGETBANDITS_KEY")
    if given.startswith("bb_"):
        return given
    try:
        return Path(given).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError):
        raise BadParameter(
            "the key is neither a key, which begins with bb_, nor a file that can be read; name one with --key FILE"
        ) from None


class RemoteService:
    """The operators' commands over HTTP. The actor of a change is the key, whatever the command says."""

    def __init__(self, client: Client) -> None:
        self._client = client

    # --- read ----------------------------------------------------------------------------------------------------

    def overview(self) -> list[CampaignAnswer]:
        """All campaigns."""
        return self._client.campaigns()

    def standing(self, campaign: str) -> StandingAnswer:
        """The standing of a campaign."""
        return self._client.standing(campaign)

    def standings(self) -> list[StandingAnswer]:
        """The standings of all campaigns."""
        return self._client.standings()

    def describe(self, campaign: str) -> CampaignDetailAnswer:
        """A campaign with its arms and segments."""
        return self._client.campaign(campaign)

    def totals(self, campaign: str) -> dict[str, ArmTotalAnswer]:
        """The totals of a campaign's arms."""
        return self._client.totals(campaign)

    @property
    def retention(self) -> Any:
        """Its archive is a folder next to the store."""
        raise BadParameter(STORE_NEEDED)

    @property
    def shared_budgets(self) -> RemoteSharedBudgets:
        """The commands for shared budgets."""
        return RemoteSharedBudgets(self._client)

    # --- change --------------------------------------------------------------------------------------------------

    def create(
        self, name: str, policy: str | None, budget: float, arms: Mapping[str, float], *, known: Mapping[str, Any],
        history: Mapping[str, Any] | None, key: str, actor: str, **terms: Any,
    ) -> None:  # fmt: skip
        """Create a campaign."""
        others = {"policy": policy, "history": history, **known, **terms}
        sent = {name: value for name, value in others.items() if value is not None}
        self._client.create(name, budget, arms, key=key, **sent)

    def clone(self, campaign: str, name: str, budget: float | None, learned: bool, key: str, actor: str) -> None:
        """Create a campaign like another one."""
        self._client.clone(campaign, name, budget=budget, learned=learned, key=key)

    def top_up(self, campaign: str, amount: float, key: str, actor: str) -> None:
        """Add money to a campaign."""
        self._client.top_up(campaign, amount, key=key)

    def set_status(self, campaign: str, status: str, key: str, actor: str, spent_since: float | None = None) -> None:
        """Pause, resume, freeze or close a campaign."""
        if status == "active":
            self._client.resume(campaign, spent_since=spent_since, key=key)
        else:
            {"paused": self._client.pause, "closed": self._client.close_campaign}[status](campaign, key=key)

    def reset_clock(self, campaign: str, key: str, actor: str) -> None:
        """Let a campaign go on after a wrong clock."""
        self._client.reset_clock(campaign, key=key)

    def add_arm(self, campaign: str, name: str, cap: float, key: str, actor: str) -> None:
        """Add an arm to a campaign."""
        self._client.add_arm(campaign, name, cap, key=key)

    def retire_arm(self, campaign: str, arm: str, key: str, actor: str) -> None:
        """Retire an arm of a campaign."""
        self._client.retire_arm(campaign, arm, key=key)

    def bring_back_arm(self, campaign: str, arm: str, key: str, actor: str) -> None:
        """Bring back a retired arm of a campaign."""
        self._client.bring_back_arm(campaign, arm, key=key)

    def change_terms(self, campaign: str, changes: Mapping[str, Any], key: str, actor: str) -> None:
        """Change terms of a campaign."""
        self._client.change_terms(campaign, key=key, **changes)


class RemoteSharedBudgets:
    """The same for budgets over several campaigns."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def create(self, name: str, budget: float, actor: str, **terms: Any) -> None:
        """Create a shared budget."""
        sent = {name: value for name, value in terms.items() if value is not None}
        self._client.create_shared_budget(name, budget, **sent)

    def change(self, name: str, changes: Mapping[str, Any], actor: str) -> None:
        """Change a shared budget."""
        self._client.change_shared_budget(name, **changes)

    def reset_clock(self, name: str, actor: str) -> None:
        """Let a shared budget go on after a wrong clock."""
        self._client.reset_shared_clock(name)

    def describe(self, name: str) -> SharedBudgetDetailAnswer:
        """A shared budget with its campaigns."""
        return self._client.shared_budget(name)

    def overview(self) -> list[SharedBudgetAnswer]:
        """All shared budgets."""
        return self._client.shared_budgets()


def row_count(path: Path) -> int | None:
    """The rows of an exported file; None where Parquet cannot be read."""
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            return sum(1 for _ in csv.reader(file)) - 1
    try:
        import polars
    except ImportError:
        return None
    return int(polars.scan_parquet(path).select(polars.len()).collect().item())
