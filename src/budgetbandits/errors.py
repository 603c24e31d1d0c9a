"""Every exception of the package. Each message says what is wrong, where, and what to do about it.

BudgetBanditsError
│
│   what was passed in
├── BadParameter (ValueError)
│   ├── BadFeature
│   ├── TooManySegments
│   └── TooMuchWork
├── ProblemError (ValueError)
├── PluginError (ValueError)
├── UnknownPolicy (ValueError)
├── UnknownArm (KeyError)
├── MissingKnowledge (ValueError)
├── NotALattice (ValueError)
├── NotIndependent (ValueError)
├── ExperimentError (ValueError)
│
│   asking and telling
├── RewardOutOfRange (ValueError)
├── CostOutOfRange (ValueError)
├── CostOverrun (UserWarning)
├── UnknownAsk (ValueError)
├── BudgetExhausted (RuntimeError)
├── NoArmLeft (RuntimeError)
├── BadState (ValueError)
│
│   policies and simulation
├── PolicyFailed (RuntimeError)
├── NotANumber (ValueError)
├── RoundLimit (RuntimeError)
├── StudyError (RuntimeError)
│
│   the decision service and its client
├── HoldRefused (RuntimeError)
├── AlreadyResolved (RuntimeError)
├── NotFound (LookupError)
│   └── DecisionArchived
├── Conflict (RuntimeError)
├── NotAllowed (PermissionError)
├── TooManyWrongKeys (PermissionError)
├── TooManyRequests (RuntimeError)
├── Disagreement (RuntimeError)
├── StoreError (RuntimeError)
│   ├── OutcomeUnknown
│   └── DiskFull
├── WrongClock (RuntimeError)
├── ServerBusy (RuntimeError)
├── ServiceUnreachable (ConnectionError)
├── ServiceError (RuntimeError)
│
│   the installation
├── MissingExtra (ImportError)
└── BrokenInstallation (RuntimeError)
"""

from __future__ import annotations


class BudgetBanditsError(Exception):
    """The common ancestor: catch this to catch all of them."""


# --- what was passed in -----------------------------------------------------------------------------------------------


class BadParameter(BudgetBanditsError, ValueError):
    """A hyper-parameter or an argument is out of its range, misspelt or unreadable."""


class BadFeature(BadParameter):
    """A feature of a request that is missing, unknown or no finite number, or features where none are looked at."""


class TooManySegments(BadParameter):
    """A new segment would be one too many for the campaign or for its arms, or a new arm for its segments."""


class TooMuchWork(BadParameter):
    """The arms, features, segments and draws of a campaign would make a choice take longer than any may."""


class ProblemError(BudgetBanditsError, ValueError):
    """A law, an arm or a problem file that cannot be played."""


class PluginError(BudgetBanditsError, ValueError):
    """A file or a package that offers policies, laws or families, and cannot be used."""


class UnknownPolicy(BudgetBanditsError, ValueError):
    """No policy of that name is registered."""


class UnknownArm(BudgetBanditsError, KeyError):
    """No arm of that name."""

    def __str__(self) -> str:  # KeyError would print the message in quotes
        return str(self.args[0])


class MissingKnowledge(BudgetBanditsError, ValueError):
    """A policy must know something (its ``needs``) that the driver was not given."""


class NotALattice(BudgetBanditsError, ValueError):
    """The exact optimum needs costs that are multiples of one step."""


class NotIndependent(BudgetBanditsError, ValueError):
    """The bounds hold for arms whose reward and cost are independent."""


class ExperimentError(BudgetBanditsError, ValueError):
    """An experiment file that cannot be run: a key is missing, misspelt or out of range."""


# --- asking and telling -----------------------------------------------------------------------------------------------


class RewardOutOfRange(BudgetBanditsError, ValueError):
    """A reward that is not a number in [0, reward_max]."""


class CostOutOfRange(BudgetBanditsError, ValueError):
    """A cost that is no amount of money, or one known beforehand that is not in [0, cost_max]."""


class CostOverrun(BudgetBanditsError, UserWarning):
    """A warning, not an error: a pull has cost more than ``cost_max``. All of it is booked: `Allocation.overrun`."""


class UnknownAsk(BudgetBanditsError, ValueError):
    """Feedback for an ask that was never made, or that has its feedback already."""


class BudgetExhausted(BudgetBanditsError, RuntimeError):
    """The budget is spent: nothing can be asked any more. Feedback of open asks is still taken."""


class NoArmLeft(BudgetBanditsError, RuntimeError):
    """Retiring this arm would leave nothing to choose from."""


class BadState(BudgetBanditsError, ValueError):
    """A saved state that cannot be read: damaged, or from another version or policy."""


# --- policies and simulation ------------------------------------------------------------------------------------------


class PolicyFailed(BudgetBanditsError, RuntimeError):
    """The code of a policy from outside the package raised an error, which is the cause of this one."""


class NotANumber(BudgetBanditsError, ValueError):
    """A policy scores an arm by something that is not a number (NaN), so no arm is the best."""


class RoundLimit(BudgetBanditsError, RuntimeError):
    """A simulated game went on past the cap on rounds."""


class StudyError(BudgetBanditsError, RuntimeError):
    """The folder of a study cannot be read or written, or does not hold what was asked for."""


# --- the decision service and its client ------------------------------------------------------------------------------


class HoldRefused(BudgetBanditsError, RuntimeError):
    """No decision now: the money is spent, held or not yet due, or the campaign is not active. ``reason`` says which.

    ``retry_after`` is when to ask again, in seconds; None if asking again will not help.
    """

    def __init__(self, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after = retry_after


REFUSALS = {
    "exhausted": "No arm's cap fits what is left, and nothing is held or leased: top up.",
    "blocked_by_holds": "What is left is held for open decisions, or leased: ask again.",
    "period_spent": "The budget of this week or month is spent: ask again when the next one begins.",
    "daily_cap": "The decisions of this day may cost no more: ask again tomorrow.",
    "paced": "The money is spread over time, and more is not due yet: ask again.",
    "paused": "An operator has paused the campaign.",
    "frozen": "A cost overran, and no operator has resumed the campaign since.",
    "closed": "An operator has closed the campaign.",
    "policy_stopped": "The policy chooses no arm any more.",
}
"""Every ``reason`` of a `HoldRefused`, and what to do about it."""


class AlreadyResolved(BudgetBanditsError, RuntimeError):
    """A hold that was settled, voided or expired before; that happens once."""


class NotFound(BudgetBanditsError, LookupError):
    """No such campaign or decision."""


class DecisionArchived(NotFound):
    """A decision that is too old for feedback: it has left the store for the archive, or is about to."""


class Conflict(BudgetBanditsError, RuntimeError):
    """A name or key was used already for something else, or something was reported twice with different numbers."""


class NotAllowed(BudgetBanditsError, PermissionError):
    """No key, a wrong key, or a key that may not do this. ``key_valid`` says whether the key itself is right."""

    def __init__(self, message: str, key_valid: bool) -> None:
        super().__init__(message)
        self.key_valid = key_valid


class TooManyWrongKeys(BudgetBanditsError, PermissionError):
    """Too many wrong keys from one address. ``retry_after`` is when to try again, in seconds."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TooManyRequests(BudgetBanditsError, RuntimeError):
    """More requests than a key may make. ``retry_after`` is when to try again, in seconds."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Disagreement(BudgetBanditsError, RuntimeError):
    """An event of a campaign that does not follow from those before it; the audit lists them."""


class StoreError(BudgetBanditsError, RuntimeError):
    """The store of the service cannot be opened, read or written; nothing was decided."""


class OutcomeUnknown(StoreError):
    """The store was lost while it was asked to commit: what was asked may have been done, or not.

    Ask again under the same idempotency key: nothing is done twice.
    """


class DiskFull(StoreError):
    """A file could not be written because its disk is full."""


class WrongClock(BudgetBanditsError, RuntimeError):
    """A campaign's latest decision or period is of a day to come: a clock is wrong, or was; nothing was decided."""


class ServerBusy(BudgetBanditsError, RuntimeError):
    """The server does as much of this as it may at once; ask again after ``retry_after`` seconds."""

    def __init__(self, message: str, retry_after: float = 5.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ServiceUnreachable(BudgetBanditsError, ConnectionError):
    """The service does not answer."""


class ServiceError(BudgetBanditsError, RuntimeError):
    """An unexpected answer of the service, such as an internal error, or a page of another server."""


# --- the installation -------------------------------------------------------------------------------------------------


class MissingExtra(BudgetBanditsError, ImportError):
    """A package is needed that comes with an extra, and the extra is not installed."""


class BrokenInstallation(BudgetBanditsError, RuntimeError):
    """A file that ships with the package is not there."""


EXTRAS = {
    "lab": ("numba", "joblib", "cloudpickle", "psutil", "polars", "matplotlib", "jinja2", "typer", "rich"),
    "service": (
        "starlette", "pydantic", "uvicorn", "httpx", "jinja2", "prometheus_client", "structlog", "typer",
        "rich",
    ),
    "client": ("httpx",),
    "litellm": ("litellm",),
    "postgres": ("psycopg", "psycopg_pool"),
    "archive": ("polars",),
    "dask": ("distributed", "dask"),
}  # fmt: skip
"""The packages of each extra of pyproject.toml, by the names that are imported."""


def install(extra: str) -> str:
    """How to install an extra.

    >>> install("lab")
    "pip install 'budgetbandits[lab]', or '.[lab]' in a clone"
    """
    return f"pip install 'budgetbandits[{extra}]', or '.[{extra}]' in a clone"


def missing_extra(missing: ImportError) -> MissingExtra | None:
    """The error that says what to install if a missing package belongs to an extra, else None.

    >>> missing_extra(ModuleNotFoundError("No module named 'numba'", name="numba"))
    MissingExtra("this needs numba, which is not installed; pip install 'budgetbandits[lab]', or '.[lab]' in a clone")
    >>> missing_extra(ModuleNotFoundError("No module named 'mine'", name="mine"))
    """
    package = (missing.name or "").partition(".")[0]
    extras = [extra for extra, packages in EXTRAS.items() if package in packages]
    if not extras:
        return None
    return MissingExtra(f"this needs {package}, which is not installed; {install(extras[0])}", name=package)
