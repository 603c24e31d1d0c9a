"""The program that makes long choices for a server: a process of its own, which reads the store and never writes.

Python runs one thread at a time: a choice made by a thread of the server would delay every other request by a turn for
each of its steps. Standard input has a line of JSON for each question: the inputs of choices (`choices_ahead`), how
many there may be and for how many seconds. Standard output has a line for each answer: the choices, or null if the
campaign has changed since. The process ends when its input does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what is needed is imported after this process has given way
    from budgetbandits.service.choices_ahead import ChoiceInputs
    from budgetbandits.service.session_cache import SessionCache
    from budgetbandits.service.stores.contract import Store

PRIORITY = 5
"""Nice value of the process, so that the server itself goes first (19 is the lowest priority)."""


def answer(store: Store, sessions: SessionCache, inputs: ChoiceInputs, count: int, seconds: float) -> object:
    """The choices that were asked for, or None if the campaign has changed since, as JSON has them."""
    from budgetbandits.service.choices_ahead import make_choices
    from budgetbandits.service.stores.contract import find_campaign

    try:
        session = store.read(lambda tx: sessions.of(tx, find_campaign(tx, inputs.campaign)))
        if session.tag != inputs.tag:
            return None
        segments = len(session.segments)
        choices = make_choices(session, inputs, count, seconds)
        if session.learner.kind != "plain" or len(session.segments) != segments:
            del sessions.kept[inputs.campaign]  # it is ahead of what is committed
    except Exception as error:  # the server makes it an answer, and this process goes on
        sessions.kept.pop(inputs.campaign, None)
        return {"error": f"{type(error).__name__}: {error}"}
    return choices


def main() -> None:
    """Answer until standard input ends; its first line is the store's address."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which closes our input
    if hasattr(os, "nice"):
        os.nice(PRIORITY)
    from budgetbandits.policies.files import load_inherited
    from budgetbandits.service.choices_ahead import ChoiceInputs
    from budgetbandits.service.session_cache import SessionCache
    from budgetbandits.service.stores import open_store

    load_inherited()
    sessions = SessionCache()
    with open_store(json.loads(sys.stdin.readline()), must_exist=True) as store:
        for line in sys.stdin:
            given, count, seconds = json.loads(line)
            print(json.dumps(answer(store, sessions, ChoiceInputs(*given), count, seconds)), flush=True)


if __name__ == "__main__":
    main()
