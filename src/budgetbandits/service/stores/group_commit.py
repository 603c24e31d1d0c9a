"""Group commit: whatever waits is run in one transaction, so that the price of making it durable is shared.

If a piece fails after it has written something, which is rare, all are undone and run again one by one.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, ClassVar

from budgetbandits.errors import StoreError
from budgetbandits.service.stores.base import Transaction
from budgetbandits.service.stores.row_cache import WritingTransaction

GROUP = 64
"""At most this many pieces of work share a commit."""

TRIES = 5
"""Of a transaction that the database gave up to end a deadlock."""

Answerable = Future[Any] | asyncio.Future[Any]
Piece = tuple[Callable[[Transaction], Any], Answerable]
Answers = list[tuple[Answerable, Any, BaseException | None]]


class GroupWriter(ABC):
    """A connection that one thread writes on, group after group; a database supplies how."""

    errors: ClassVar[type[Exception]]
    """Whatever the database may raise."""
    broken: ClassVar[type[Exception]]
    """Those of them that are no piece's fault: the disk is full, or the connection gone."""

    def __init__(self, name: str) -> None:
        self._work: queue.SimpleQueue[Piece | None] = queue.SimpleQueue()
        self.busy = threading.Lock()
        """Held while a transaction is open, by the thread that runs it."""
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def transaction(self) -> WritingTransaction: ...

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def undo(self) -> None: ...

    def again(self, error: Exception) -> bool:
        """Whether a group that failed so should be run again, piece by piece."""
        return False

    def put(self, piece: Piece) -> None:
        self._work.put(piece)

    def stop(self) -> None:
        """Finish what was put and end the thread."""
        self._work.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while (first := self._work.get()) is not None:
            group, more = [first], True
            while more and len(group) < GROUP and not self._work.empty():
                piece = self._work.get()
                more = piece is not None
                if piece is not None:
                    group.append(piece)
            with self.busy:
                answers = self.run(group)
            give(answers)
            if not more:
                return

    def run(self, group: Sequence[Piece], tries: int = TRIES) -> Answers:
        """The group in one transaction, which has been committed when this returns what to answer."""
        try:
            self.begin()
            answers = self.run_begun(group)
        except self.errors as error:
            self.undo()
            if self.again(error) and tries > 1:
                return self._one_by_one(group, tries - 1)
            failure = StoreError(f"cannot write: {one_line(error)}; nothing was decided")
            return [(future, None, failure) for _, future in group]
        return self._one_by_one(group) if answers is None else answers

    def run_begun(self, group: Sequence[Piece]) -> Answers | None:
        """The group in a transaction that has begun; None, and it is undone, if each needs one of its own."""
        answers: Answers = []
        for work, future in group:
            transaction = self.transaction()
            try:
                answers.append((future, work(transaction), None))
            except self.broken:
                raise
            except BaseException as error:
                answers.append((future, None, self._named(error)))
                if transaction.wrote or isinstance(error, self.errors):
                    self.undo()
                    # the others must not lose what they wrote
                    return answers if len(group) == 1 else None
        self.commit()
        return answers

    def _one_by_one(self, group: Sequence[Piece], tries: int = TRIES) -> Answers:
        return [answer for piece in group for answer in self.run([piece], tries)]

    def _named(self, error: BaseException) -> BaseException:
        if isinstance(error, self.errors):
            return StoreError(f"the store refused: {one_line(error)}; nothing was written")
        return error


def give(answers: Answers) -> None:
    """Tell everybody who waits."""
    for future, answer, problem in answers:
        if future.done():
            continue  # whoever asked has gone
        if problem is None:
            future.set_result(answer)
        else:
            future.set_exception(problem)


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
