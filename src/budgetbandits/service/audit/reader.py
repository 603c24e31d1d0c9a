"""The program that a server starts for what takes long, an audit, an export or a pruning: a process of its own.

Python runs one thread at a time. A thread that reads a million rows in the server's process would take turns with the
decisions, and each turn takes longer than a decision. Here it takes turns with nobody, gives way to all who need the
processor, and can be ended at any moment.

Standard input has the job, one line of JSON, and is closed when nobody wants the answer any more. Standard output has
one line of JSON, ``{}`` or an error's title and detail, and then the bytes that were asked for.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from budgetbandits.errors import BudgetBanditsError

if TYPE_CHECKING:  # what else is needed is imported after this process has given way
    from budgetbandits.service.audit.export import Format, Table
    from budgetbandits.service.stores.contract import Store

PRIORITY = 15
"""Nice value of the process (19 is the lowest priority): the three processes that a server may run take a tenth of a
processor that others could use, and whatever others leave."""

JobKind = Literal["verify", "verify shared budget", "export", "prune"]


@dataclass(frozen=True)
class Job:
    """An audit, an export, or a pruning of all campaigns, and its arguments."""

    kind: JobKind
    campaign: str = ""
    """Or the name of a shared budget."""
    table: Table = "decisions"
    format: Format = "csv"
    archive: str = ""
    days: float = 0.0

    def line(self, address: str) -> bytes:
        """This job on the store at this address, as standard input has it."""
        return json.dumps(asdict(self) | {"address": address}).encode() + b"\n"


def answer(store: Store, job: Job) -> Iterator[bytes]:
    """The bytes that were asked for: a table, or as JSON the differences, or what was archived of each campaign."""
    from budgetbandits.service.audit.audit import verify
    from budgetbandits.service.audit.export import pieces
    from budgetbandits.service.stores.contract import named_damage

    if job.kind == "prune":
        from budgetbandits.service.service import DecisionService

        results = DecisionService(store).retention.prune_all(Path(job.archive), job.days)
        yield json.dumps([
            {"campaign": name, "error": str(result)} if isinstance(result, BudgetBanditsError) else
            {"campaign": name, **asdict(result)}
            for name, result in results.items()
        ]).encode()  # fmt: skip
        return
    with named_damage(job.campaign):
        if job.kind == "verify shared budget":
            from budgetbandits.service.shared_budgets.audit import verify_shared_budget

            yield json.dumps(verify_shared_budget(store, job.campaign)).encode()
        elif job.kind == "export":
            yield from pieces(store, job.campaign, job.table, job.format)
        else:
            yield json.dumps(verify(store, job.campaign)).encode()


def main() -> None:
    """Do the job that standard input has."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which closes our input
    if hasattr(os, "nice"):
        os.nice(PRIORITY)
    with os.fdopen(0, "rb", buffering=0, closefd=False) as asked:
        given = json.loads(asked.readline())
    threading.Thread(target=_leave_when_unwanted, daemon=True).start()
    from budgetbandits.policies.files import load_inherited
    from budgetbandits.service.stores import open_store

    address, out = given.pop("address"), sys.stdout.buffer
    begun = False
    try:
        load_inherited()
        with open_store(address, must_exist=True) as store:
            for piece in answer(store, Job(**given)):
                _write(out, piece if begun else b"{}\n" + piece)
                begun = True
    except BudgetBanditsError as error:
        if begun:
            raise
        _write(out, json.dumps({"title": type(error).__name__, "detail": str(error)}).encode() + b"\n")


def _write(out: BinaryIO, data: bytes) -> None:
    try:
        out.write(data)
        out.flush()
    except BrokenPipeError:
        os._exit(1)


def _leave_when_unwanted() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)  # at once: nothing is written that anybody reads, and temporary files have no names


if __name__ == "__main__":
    main()
