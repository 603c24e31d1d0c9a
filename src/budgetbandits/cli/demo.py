"""The command ``demo``: policies on one problem, or, with ``--serve``, a service with campaigns being spent.

The service runs on a temporary store, and a program spends its campaigns at human speed. One campaign has ten days
behind it, the other is new and exhausted in a few minutes; campaigns that are created on the page are spent as well.
Nothing is kept when the command ends.
"""

from __future__ import annotations

import contextlib
import logging
import random
import shutil
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from budgetbandits.cli.screen import AsJson, print_json, terminal
from budgetbandits.cli.simulate import record, show, simulate_all
from budgetbandits.errors import BudgetBanditsError, HoldRefused
from budgetbandits.policies import parse_policy
from budgetbandits.problems.families import family

if TYPE_CHECKING:
    from budgetbandits.client import Client, Decision
    from budgetbandits.service.stores.contract import Store, Transaction

CAPS = {"cedar-70b": 1.2, "atlas-mini": 1.2, "cedar-8b": 0.6, "atlas-large": 4.0}
"""Cost cap of each arm of the demonstration."""

ARM_MEANS = {
    "cedar-70b": (0.78, 0.41),
    "atlas-mini": (0.735, 0.41),
    "cedar-8b": (0.45, 0.30),
    "atlas-large": (0.95, 1.3),
}
"""Probability of a good answer and mean price of each arm."""
DAYS = 10.0
"""Length of the campaign's past in days."""

PAST_DECISIONS = 1500
"""Number of decisions in that past."""
PER_TRANSACTION = 250
"""Number of past decisions that one transaction writes."""

TURN_SECONDS = 0.7
"""Time between two decisions of the present."""
SLOW_TURNS = 5
"""Turns between two decisions of the campaign with a past, and between two reads of the list of campaigns."""

log = logging.getLogger(__name__)


def demo_command(
    runs: Annotated[int, typer.Option(help="Independent games of each policy.")] = 200,
    seed: Annotated[int, typer.Option(help="The seed of the problem and of the games.")] = 0,
    jobs: Annotated[int, typer.Option(help="Workers; -1 for one per core.")] = -1,
    as_json: AsJson = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Show the service's dashboard instead, with campaigns being spent.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --serve: the port; 0 for any free one.")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="With --serve: do not open the page.")] = False,
) -> None:
    """Play Budgeted Thompson Sampling and the paper's baselines on a random problem; or show the dashboard."""
    if serve:
        serve_demo(port, not no_browser)
        return
    problem = family("uniform-bernoulli", arms=10, seed=seed, low=0.1)
    policies = [parse_policy(name) for name in ("bts", "epsilon-first", "pd-bwk", "ucb-bv1", "kube")]
    outcomes = simulate_all(problem, policies, [2000.0, 50_000.0], runs, seed, jobs)
    if as_json:
        print_json(record(problem, outcomes))
        return
    show(problem, outcomes, title=f"uniform-bernoulli, means in [0.1, 1], seed {seed}")
    command = escape(own_command())
    terminal().print(
        f"\nYour own: [bold]{command} problem uniform-bernoulli > my.toml[/bold], then "
        f"[bold]{command} simulate my.toml --policy bts --policy kube --budget 2000[/bold]"
    )


def own_command() -> str:
    """How this command line can be called from here: by its name where that is found, else as it was called."""
    if shutil.which("budgetbandits"):
        return "budgetbandits"
    called = sys.argv[0]
    return f"{sys.executable} -m budgetbandits" if called.endswith(".py") else called


def serve_demo(port: int, open_page: bool) -> None:
    """Serve until Ctrl-C; port 0 takes any free port."""
    from budgetbandits.web.servers import listening

    with listening("127.0.0.1", port) as listener:
        from budgetbandits.service.http.auth import make_first_key
        from budgetbandits.service.http.server import ServerOptions, serve
        from budgetbandits.service.rollups import roll_up
        from budgetbandits.service.stores import open_store

        with tempfile.TemporaryDirectory(prefix="budgetbandits-demo-") as folder:
            address, rng = str(Path(folder) / "demo.db"), random.Random(7)
            with open_store(address) as store:
                key = make_first_key(store, time.time())
                live_through(store, rng)
                roll_up(store)
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            page = f"{url}/sign-in#key={key}"
            print(f"Open {page}\nSpends its campaigns until you press Ctrl-C; nothing is kept.", flush=True)
            logging.getLogger("httpx").setLevel(logging.WARNING)  # it would log every request of the worker
            stop = threading.Event()
            worker = threading.Thread(target=_spend, args=(url, str(key), rng, stop), daemon=True)
            worker.start()
            if open_page:
                threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()
            try:
                serve(listener, ServerOptions(address, "a demo that is not kept"))
            finally:
                stop.set()
                worker.join(5.0)


def live_through(store: Store, rng: random.Random) -> None:
    """Simulate ten days of a campaign with a clock of its own, many decisions per transaction: it takes a second."""
    from budgetbandits.service.feedback import FeedbackReport
    from budgetbandits.service.service import DecisionService

    now = time.time()
    moments = iter(_moments(now, rng))
    at = [now - DAYS * 86_400]
    service = DecisionService(store, lambda: at[0])
    service.create("models", "bts", 900.0, CAPS, pace_seconds=14 * 86_400.0, hold_seconds=1800.0, actor="demo")

    def one(tx: Transaction, number: int) -> None:
        at[0] = next(moments)
        with contextlib.suppress(HoldRefused):  # ahead of the plan
            [decision] = service.decision_task("models", f"past {number}").work(tx)
            at[0] += rng.choice([3.0, 8.0, 20.0, 45.0, 90.0])
            reward, cost = outcome(decision.arm, CAPS[decision.arm], rng)
            service.feedback_task(FeedbackReport(decision.decision, reward, cost), "models").work(tx)

    def many(tx: Transaction, first: int) -> None:
        for more in range(PER_TRANSACTION):
            one(tx, first + more)

    for first in range(0, PAST_DECISIONS, PER_TRANSACTION):
        store.write(partial(many, first=first))
        if first == 3 * PER_TRANSACTION:
            service.top_up("models", 300.0, actor="demo")


def _moments(now: float, rng: random.Random) -> Iterator[float]:
    """The sorted times of past decisions; more of them by day than by night."""
    times: list[float] = []
    while len(times) < PAST_DECISIONS:
        at = now - 120.0 - rng.random() * (DAYS * 86_400 - 600)
        if rng.random() < (1.0 if 7 <= at % 86_400 / 3600 <= 19 else 0.35):
            times.append(at)
    return iter(sorted(times))


def outcome(arm: str, hold: float, rng: random.Random) -> tuple[float, float]:
    """Reward, 0 or 1, and cost, at most the hold; the means of an arm that a visitor added follow from its name."""
    own = random.Random(arm)
    chance, price = ARM_MEANS.get(arm) or (own.uniform(0.3, 0.9), hold * own.uniform(0.2, 0.6))
    return float(rng.random() < chance), round(min(max(rng.gauss(price, price / 4), 0.01), hold), 6)


class Spender:
    """A program that decides and reports over HTTP, whatever is done to its campaigns meanwhile."""

    def __init__(self, client: Client, rng: random.Random) -> None:
        self._client, self._rng = client, rng
        self._turns = 0
        self._reward_max: dict[str, float] = {}
        self._open: list[tuple[float, str, Decision]] = []

    def turn(self, now: float) -> None:
        """Make a decision for each campaign, and report the decisions that are due. A bug ends this turn only: a demo
        that stops shows nothing."""
        try:
            if self._turns % SLOW_TURNS == 0:
                self._reward_max = {campaign.name: campaign.reward_max for campaign in self._client.campaigns()}
            self._turns += 1
            for campaign in self._reward_max:
                if campaign != "models" or self._turns % SLOW_TURNS == 0:
                    with contextlib.suppress(BudgetBanditsError):  # exhausted, paused, ahead of its plan: asked later
                        decision = self._client.decide(campaign)
                        self._open.append((now + self._rng.uniform(0.5, 6.0), campaign, decision))
            due = [entry for entry in self._open if entry[0] <= now]
            self._open = [entry for entry in self._open if entry[0] > now]
            for _, campaign, decision in due:
                good, cost = outcome(decision.arm, decision.hold, self._rng)
                with contextlib.suppress(BudgetBanditsError):
                    self._client.feedback(campaign, decision.id, reward=good * self._reward_max[campaign], cost=cost)
        except BudgetBanditsError:
            pass  # the server is busy or ends
        except Exception:
            log.exception("demo turn failed")


def _spend(url: str, key: str, rng: random.Random, stop: threading.Event) -> None:
    """Spend until ``stop`` is set."""
    from budgetbandits.client import Client

    with Client(url, key) as client:
        client.create("launch", budget=60.0, arms=CAPS, hold_seconds=120.0)
        spender = Spender(client, rng)
        while not stop.wait(TURN_SECONDS):
            spender.turn(time.monotonic())
