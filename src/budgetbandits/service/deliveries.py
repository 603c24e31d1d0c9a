"""Deliveries: what webhooks wait for goes from the store's outbox to their addresses.

A notification is sent until its address accepts it with a status of 200 to 299. So it may come twice, after a crash or
a lost answer, and is never lost: its ``id`` tells doubles apart.

Addresses are strangers, and may do anything with a connection. So each has a thread of its own, which no other address
waits for, and a delivery as a whole has a limit of time: a limit of each read would be met by one byte now and then.

The header ``Budgetbandits-Signature: t=SECONDS,v1=HEX`` has an HMAC-SHA256 of ``SECONDS.BODY`` under the secret that
was shown when the webhook was made.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import Any, Self

import httpx
import structlog
from pydantic_core import to_json

from budgetbandits.service.stores.contract import Store, T, Transaction
from budgetbandits.service.stores.sql.webhooks import LAST_PAUSE_SECONDS, Delivery, Webhook
from budgetbandits.service.webhooks import find_webhook

PROBLEM_LENGTH_MAX = 200
"""Most characters of a reason that is kept."""

TRY_SECONDS = 10.0
"""How long a delivery may take, from looking up the name to the answer's status."""
CLAIM_SECONDS = 60.0
"""How long a delivery is a server's own: if that dies, another one tries after this time."""
DELIVERIES_AT_ONCE = 5
"""Fewer than a server can try in `CLAIM_SECONDS` if none is answered."""
FIRST_PAUSE_SECONDS = 5.0
"""Pause after the first failure; it doubles with each further one, up to `LAST_PAUSE_SECONDS`."""
GIVE_UP_SECONDS = 7 * 86_400.0
"""A notification that was not accepted in this time is dropped, which is logged."""

log = structlog.get_logger("budgetbandits")


class Deliveries:
    """Sends what is due, in one thread per address."""

    def __init__(self, store: Store, sender: Sender) -> None:
        self._store = store
        self._sender = sender
        self._threads: dict[str, threading.Thread] = {}
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._results: Counter[str] = Counter()
        self._errors: SimpleQueue[Exception] = SimpleQueue()

    def start(self) -> None:
        """Begin with each address for which something is due, unless it is being sent to."""
        due = [] if self._stopping.is_set() else self._store.read(lambda tx: tx.webhooks().due(tx.now()))
        self._threads = {webhook: thread for webhook, thread in self._threads.items() if thread.is_alive()}
        for webhook in due:
            if webhook not in self._threads:
                thread = threading.Thread(target=self._run, args=(webhook,), daemon=True)
                self._threads[webhook] = thread
                thread.start()

    def raise_error(self) -> None:
        """Raise the error that has ended a thread, if there was one."""
        if not self._errors.empty():
            raise self._errors.get()

    def results(self) -> tuple[int, int]:
        """How many notifications were accepted, and how many tries were not."""
        with self._lock:
            return self._results["accepted"], self._results["refused"]

    def wait(self) -> None:
        """Return when nothing more is due, or all of it was put off."""
        for thread in self._threads.values():
            thread.join()

    def close(self) -> list[threading.Thread]:
        """Break off what is being sent, and send no more; the threads, which are about to end.

        What was broken off is sent again when its claim is over.
        """
        self._stopping.set()
        self._sender.close()
        return list(self._threads.values())

    def _run(self, webhook: str) -> None:
        try:
            self._deliver(webhook)
        except CancelledError:  # the sender was closed
            pass
        except Exception as error:  # for `raise_error`
            self._errors.put(error)

    def _deliver(self, webhook: str) -> None:
        """Send all that is due to one address; after a failure the rest is put off without a try."""
        failed = False
        while not self._stopping.is_set():
            hook, due = self._store.write(partial(_take, webhook=webhook))
            for delivery in due:
                if self._stopping.is_set():  # the rest is sent when its claim is over
                    return
                problem = "it has just failed" if failed else self._send(hook, delivery)
                self._store.write(partial(_settle, delivery=delivery, hook=hook, problem=problem, tried=not failed))
                failed = problem is not None
                if hook is not None:
                    with self._lock:
                        self._results["refused" if failed else "accepted"] += 1
            if not due:
                return

    def _send(self, hook: Webhook | None, delivery: Delivery) -> str | None:
        if hook is None:
            return "it was dropped"
        problem = self._sender.send(hook, delivery)
        if problem is not None:
            log.warning("notification not accepted", webhook=hook.id, delivery=delivery.id, tries=delivery.tries + 1,
                        error=problem)  # fmt: skip
        return problem


def _take(tx: Transaction, webhook: str) -> tuple[Webhook | None, list[Delivery]]:
    """Claim some of what is due to an address, which is None if it was dropped."""
    now, hooks = tx.now(), tx.webhooks()
    return hooks.get(webhook), hooks.take_due(webhook, now, now + CLAIM_SECONDS, DELIVERIES_AT_ONCE)


def _settle(tx: Transaction, delivery: Delivery, hook: Webhook | None, problem: str | None, tried: bool) -> None:
    """Note how a try went, and have what was not accepted tried again later."""
    now, hooks = tx.now(), tx.webhooks()
    if hook is not None and tried:
        hooks.note_try(hook.id, now, None if problem is None else problem[:PROBLEM_LENGTH_MAX])
    over = now - delivery.made_at > GIVE_UP_SECONDS
    if hook is None or problem is None or over:
        hooks.remove(delivery)
    else:
        hooks.put_off(delivery, now + min(FIRST_PAUSE_SECONDS * 2.0**delivery.tries, LAST_PAUSE_SECONDS))
    if over and problem is not None:
        log.error("notification given up", webhook=delivery.webhook, delivery=delivery.id, error=problem)


def send_test(store: Store, id: str) -> str | None:
    """Send a signed body of the type ``test`` once, at once; why it was not accepted, or None if it was."""
    hook, now = store.read(lambda tx: (find_webhook(tx, id), tx.now()))
    number = uuid.uuid4().hex
    body = to_json({"id": number, "type": "test", "at": now}).decode()
    with Sender() as sender:
        return sender.send(hook, Delivery(number, hook.id, body, now, now))


def signature(secret: str, body: bytes, at: float) -> str:
    """The header that goes with a body.

    >>> signature("secret", b"{}", 1.0)[:17]
    't=1,v1=1122767b19'
    """
    signed = hmac.new(secret.encode(), f"{at:.0f}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at:.0f},v1={signed}"


# --- over the network ------------------------------------------------------------------------------------------------


class Sender:
    """Sends notifications from any thread, each within `TRY_SECONDS`; to use in a ``with`` block, or to `close`.

    Redirects are not followed, since a body is signed for one address.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None) -> None:
        # no limits of its parts: `TRY_SECONDS` is that of the whole
        self._client = httpx.AsyncClient(transport=transport, timeout=None, follow_redirects=False)
        self._lock, self._closed, self._over = threading.Lock(), False, asyncio.Event()
        self._runner = asyncio.Runner(loop_factory=asyncio.SelectorEventLoop)  # uvloop has its own threads for names
        self._loop = self._runner.get_loop()
        self._loop.set_default_executor(_Lookups())
        threading.Thread(target=self._run, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Break off what is being sent, and send no more: who waits for it gets a `CancelledError`."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._loop.call_soon_threadsafe(self._over.set)

    def send(self, hook: Webhook, delivery: Delivery) -> str | None:
        """Why it was not accepted; None if it was."""
        body = delivery.body.encode()
        headers = {
            "Content-Type": "application/json", "Budgetbandits-Delivery": delivery.id,
            "Budgetbandits-Signature": signature(hook.secret, body, time.time()),
        }  # fmt: skip
        with self._lock:
            if self._closed:
                raise CancelledError
            sent = asyncio.run_coroutine_threadsafe(self._post(hook.url, body, headers), self._loop)
        return sent.result()

    async def _post(self, url: str, body: bytes, headers: Mapping[str, str]) -> str | None:
        try:
            async with (
                asyncio.timeout(TRY_SECONDS),
                self._client.stream("POST", url, content=body, headers=headers) as answer,  # its body is not read
            ):
                return None if answer.is_success else f"status {answer.status_code}"
        except TimeoutError:
            return f"no answer within {TRY_SECONDS:g} seconds"
        except Exception as error:  # a stranger's doing, whatever it is, is no reason to stop
            return _reason(error)

    def _run(self) -> None:
        with self._runner:
            self._runner.run(self._until_closed())

    async def _until_closed(self) -> None:
        async with self._client:
            await self._over.wait()
            sent = asyncio.all_tasks() - {asyncio.current_task()}
            for task in sent:
                task.cancel()
            await asyncio.gather(*sent, return_exceptions=True)


def _reason(error: BaseException) -> str:
    """The error of the operating system behind this one, or what this one says: "All connection attempts failed" does
    not say why."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        if isinstance(cause, OSError) and cause.errno is not None:
            return str(cause)
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__


class _Lookups(ThreadPoolExecutor):
    """Looks up names, each in a thread that nobody has to wait for: a resolver may take longer than a delivery."""

    def submit(self, call: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()  # from here on who stops waiting leaves it to its end

        def look_up() -> None:
            try:
                future.set_result(call(*arguments, **named))
            except Exception as error:
                future.set_exception(error)

        threading.Thread(target=look_up, daemon=True).start()
        return future
