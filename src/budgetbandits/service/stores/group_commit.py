"""Group commit: whatever waits for the same thing is run in one transaction, so that the price of making it durable is
shared.

If a piece fails after it has written something, which is rare, all are undone and run again one by one.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, InvalidStateError
from typing import Any, ClassVar

from budgetbandits.errors import StoreError
from budgetbandits.service.stores.contract import Transaction
from budgetbandits.service.stores.row_cache import WritingTransaction

GROUP = 64
"""At most this many pieces of work share a commit."""

TRIES = 5
"""Of a transaction that the database gave up to end a deadlock."""

Answerable = Future[Any] | asyncio.Future[Any]
Piece = tuple[Callable[[Transaction], Any], Answerable]
Answers = list[tuple[Answerable, Any, BaseException | None]]


class Waiting:
    """Pieces of work that wait, by what they are about. Writers share one.

    A group is about one thing, and one writer at a time has it: what comes meanwhile waits to go together.
    """

    def __init__(self) -> None:
        self._pieces: dict[Hashable, list[Piece]] = {}
        """Whatever has waited longest comes first."""
        self._taken: set[Hashable] = set()
        self._changed = threading.Condition()
        self._over = False

    def put(self, piece: Piece, about: Hashable) -> None:
        with self._changed:
            self._pieces.setdefault(about, []).append(piece)
            if about not in self._taken:
                self._changed.notify()

    def take(self) -> tuple[Hashable, list[Piece]] | None:
        """The next group and what it is about, which is the caller's until `done`; None when all is over."""
        with self._changed:
            while True:
                for about, pieces in self._pieces.items():
                    if about not in self._taken:
                        del self._pieces[about]
                        if len(pieces) > GROUP:
                            self._pieces[about] = pieces[GROUP:]
                        self._taken.add(about)
                        return about, pieces[:GROUP]
                if self._over:  # what is left is taken by whoever is at it
                    return None
                self._changed.wait()

    def done(self, about: Hashable) -> None:
        with self._changed:
            self._taken.discard(about)
            if about in self._pieces:
                self._changed.notify()

    def stop(self) -> None:
        """Nothing more will be put."""
        with self._changed:
            self._over = True
            self._changed.notify_all()


class GroupWriter(ABC):
    """A connection that one thread writes on, group after group; a database supplies how."""

    errors: ClassVar[type[Exception]]
    """Whatever the database may raise."""
    broken: ClassVar[type[Exception] | tuple[type[Exception], ...]]
    """Those of them that are no piece's fault: the disk is full, or the connection gone."""

    def __init__(self, name: str, waiting: Waiting) -> None:
        self._waiting = waiting
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

    def failure(self, error: Exception) -> StoreError:
        """What a group is told that the database has failed so."""
        return StoreError(f"cannot write: {one_line(error)}; nothing was decided")

    def join(self, seconds: float | None = None) -> bool:
        """Wait for the thread to end, after `Waiting.stop`; whether it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _serve(self) -> None:
        while (taken := self._waiting.take()) is not None:
            about, group = taken
            try:
                with self.busy:
                    answers = self.run(group)
            except Exception as error:  # undoing failed, for example: somebody waits, and others will come
                failure = self.failure(error)
                answers = [(future, None, failure) for _, future in group]
            self._waiting.done(about)
            give(answers)

    def run(self, group: Sequence[Piece], tries: int = TRIES) -> Answers:
        """The group in one transaction, which has been committed when this returns what to answer."""
        try:
            self.begin()
            answers = self.run_begun(group)
        except self.errors as error:
            self.undo()
            if self.again(error) and tries > 1:
                return self._one_by_one(group, tries - 1)
            failure = self.failure(error)
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
        try:
            transaction.write_rest()
        except self.broken:
            raise
        except (self.errors, ArithmeticError, TypeError, ValueError) as error:  # whose fault it was is seen one by one
            self.undo()
            return [(group[0][1], None, self._refused(error))] if len(group) == 1 else None
        self.commit()
        return answers

    def _one_by_one(self, group: Sequence[Piece], tries: int = TRIES) -> Answers:
        return [answer for piece in group for answer in self.run([piece], tries)]

    def _named(self, error: BaseException) -> BaseException:
        return self._refused(error) if isinstance(error, self.errors) else error

    def _refused(self, error: BaseException) -> StoreError:
        return StoreError(f"the store refused: {one_line(error)}; nothing was written")


def give(answers: Answers) -> None:
    """Tell everybody who waits."""
    for future, answer, problem in answers:
        # whoever asked may have gone, even just now
        with contextlib.suppress(InvalidStateError, asyncio.InvalidStateError):
            if future.done():
                continue
            if problem is None:
                future.set_result(answer)
            else:
                future.set_exception(problem)


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
