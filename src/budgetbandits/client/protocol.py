"""The common part of both clients, which sends nothing: what a call is, and what becomes of its answer."""

from __future__ import annotations

import hashlib
import hmac
import math
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from numbers import Integral, Real
from pathlib import Path
from typing import Any, BinaryIO, Generic, Literal, ParamSpec, TypeVar, get_args
from urllib.parse import quote, urlencode

import httpx

from budgetbandits import errors
from budgetbandits.answers import CampaignAnswer, StandingAnswer
from budgetbandits.errors import (
    BadParameter,
    BudgetBanditsError,
    HoldRefused,
    NotAllowed,
    NotFound,
    ServiceError,
    ServiceUnreachable,
)
from budgetbandits.validation import number

T = TypeVar("T")
"""Type of the result of a call."""

R = TypeVar("R")
"""Type of the result of a decorated function."""

Listed = TypeVar("Listed", CampaignAnswer, StandingAnswer)
"""Type of the rows of a list that comes in pages."""

P = ParamSpec("P")
"""Parameters of a decorated function."""

Context = Mapping[str, Any] | None
OnError = Literal["leave", "fail", "void"]


@dataclass
class BaseDecision:
    """A decision: the arm to pull, and the money that is held for it.

    ``resolved`` once its cost is reported, or it failed or was voided; until then its money is held. ``on_error`` says
    what a block that ends in an exception does with a decision that is not resolved: leave its hold until it expires,
    fail it, or void it.
    """

    id: str
    campaign: str
    arm: str
    hold: float
    expires_at: float
    resolved: bool = field(default=False, init=False)
    on_error: OnError = field(default="leave", kw_only=True)

    def reported_after(self, error: BaseException | None) -> OnError:
        """The report of a block that ends with this error; one that ends without an error and a report warns.

        Ctrl-C and a cancelled task say nothing of the call: its hold stays.
        """
        if isinstance(error, Exception) and not self.resolved:
            return self.on_error
        if error is None and not self.resolved:
            warnings.warn(
                f"decision {self.id} was left without settle(cost=…) or void(); its hold stays until it expires",
                RuntimeWarning, stacklevel=3,
            )  # fmt: skip
        return "leave"

    def note(self, error: BaseException | None, unreported: BudgetBanditsError) -> None:
        """Add to the error that ended a block that it could not be reported; it is the one to raise."""
        assert error is not None
        message = f"decision {self.id} could not be reported ({self.on_error}), so its hold stays until it expires"
        error.add_note(f"{message}: {unreported}")


@dataclass(frozen=True)
class FeedbackResult:
    """The result of one outcome in a batch: ``problem`` is None if it was accepted."""

    decision: str
    overrun: float
    problem: BudgetBanditsError | None = None


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request that is safe to send twice, and how to read its answer; ``takes_long`` waits for it without a limit."""

    method: str
    path: str
    read: Callable[[Any], T]
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    takes_long: bool = False


def check_signature(secret: str, header: str, body: bytes, tolerance: float = 300.0) -> None:
    """Refuse a notification that was not signed with this secret, or more than ``tolerance`` seconds ago.

    ``header`` is Budgetbandits-Signature, ``body`` the bytes that came.
    """
    at, _, signed = header.removeprefix("t=").partition(",v1=")
    wanted = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(signed.encode(), wanted.encode()):
        raise NotAllowed("the signature is not of this body and secret; refuse it with status 401", key_valid=False)
    if abs(time.time() - float(at)) > tolerance:
        raise NotAllowed("the signature is too old, or a clock is wrong; refuse it with status 401", key_valid=False)


def quoted(name: str) -> str:
    """A name as one segment of a path, whatever characters it has."""
    return quote(name, safe="")


def query(values: Mapping[str, Any]) -> str:
    """The values that are given as the query of an address."""
    return f"?{urlencode({name: value for name, value in values.items() if value is not None})}"


def path_of(campaign: str, *rest: str) -> str:
    """The path of a campaign, or of something below it."""
    return "/".join(["/v1/campaigns", quoted(campaign), *rest])


def on_error_of(value: str) -> OnError:
    """The way to report a failed block, checked to be one of `OnError`."""
    if value not in get_args(OnError):
        raise BadParameter(f"on_error is {value!r:.40}; use {', '.join(get_args(OnError))}")
    return value  # type: ignore[return-value]


def address(url: str) -> str:
    """The address of the service, checked to begin with http:// or https://, without a slash at the end."""
    if not url.startswith(("http://", "https://")):
        raise BadParameter(f"the service's address is {url!r:.60}; it begins with http:// or https://")
    return url


def keyed(key: str | None) -> dict[str, str]:
    """The header with this idempotency key, or with a new one."""
    key = uuid.uuid4().hex if key is None else key
    if not (
        isinstance(key, str) and 0 < len(key) <= 200 and key.isascii() and key.isprintable() and key == key.strip()
    ):
        raise BadParameter(f"key is {key!r:.60}; use 1 to 200 printable ASCII characters, no space at either end")
    return {"Idempotency-Key": key}


def finite(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with NumPy's numbers made Python's, for JSON; infinite ones and NaN are refused.

    A reward may also be True or False, as in `Allocation.tell`.
    """
    plain_values = {name: plain(value) for name, value in values.items()}
    if plain_values.get("reward") is not None:
        plain_values["reward"] = number(plain_values["reward"], truth=True)
    for name, value in plain_values.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise BadParameter(f"{name} is {values[name]!r:.60}; pass a finite number")
    return plain_values


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, int | float):  # as JSON has them; those of NumPy that are also Python's become so
        return value if type(value) in (bool, int, float) else float(value)
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def headers(key: str) -> dict[str, str]:
    """The headers of a request with this key."""
    return {"Authorization": f"Bearer {key}"}


# --- answers and errors ----------------------------------------------------------------------------------------------


def retry_after(answer: httpx.Response) -> float | None:
    """The seconds to wait by the header Retry-After, which may also be a date."""
    text = answer.headers.get("retry-after")
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except ValueError:
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def check_open(http: httpx.Client | httpx.AsyncClient) -> None:
    """Raise a `ServiceUnreachable` if the client is closed."""
    if http.is_closed:
        raise ServiceUnreachable("this client is closed; make a new one, or ask inside its 'with' block")


def result(call: Call[T], answer: httpx.Response) -> T:
    """The result of a call by its answer; an error if the answer is one."""
    if not answer.is_success:
        raise error_of(answer)
    try:
        return call.read(answer.json())
    except (ValueError, KeyError, TypeError, AttributeError):
        raise unexpected_response(answer) from None


def archived(answer: httpx.Response) -> int:
    """The number of earlier rows in the archive, by the header of an export."""
    return int(answer.headers.get("budgetbandits-archived", 0))


@contextmanager
def export_file(path: Path) -> Iterator[BinaryIO]:
    """A file that takes this one's place once it is written whole."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            yield file
        partial.replace(path)
    except httpx.TransportError as error:
        raise ServiceUnreachable(f"the export broke off: {error or type(error).__name__}; ask again") from error
    finally:
        partial.unlink(missing_ok=True)


def error_of(answer: httpx.Response) -> BudgetBanditsError:
    """The error that an answer stands for."""
    try:
        return named(answer.json(), retry_after(answer))
    except (ValueError, KeyError, TypeError, AttributeError):
        return unexpected_response(answer)


def unexpected_response(answer: httpx.Response) -> ServiceError:
    """The error for an answer that the service never gives."""
    return ServiceError(f"status {answer.status_code}: {answer.text[:200]!r}; is this the address of a service?")


def named(problem: Mapping[str, Any], retry_after: float | None = None) -> BudgetBanditsError:
    """The error that the service raised, found by its name."""
    title, detail, status = problem["title"], problem["detail"], problem["status"]
    kind = getattr(errors, title, None)
    if isinstance(kind, type) and issubclass(kind, BudgetBanditsError) and kind not in (HoldRefused, NotAllowed):
        return kind(detail)
    if status in (401, 403):
        return NotAllowed(detail, key_valid=status == 403)
    if status == 404:
        return NotFound(detail)
    if status == 422:
        return BadParameter(detail)
    if status in (402, 409):
        return HoldRefused(title, detail, retry_after)
    return ServiceError(f"{title}: {detail}")
