"""What is said when the code of a policy from outside the package fails."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator

from budgetbandits.errors import BudgetBanditsError, PolicyFailed
from budgetbandits.fingerprint import ours
from budgetbandits.policies.base import Policy
from budgetbandits.simulation.known import EngineUnsupported


@contextlib.contextmanager
def attributed_to(policy: Policy) -> Iterator[None]:
    """Name the policy in whatever its own code raises, and the line of it."""
    try:
        yield
    except (BudgetBanditsError, EngineUnsupported):
        raise
    except Exception as error:
        if ours(type(policy)):
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise PolicyFailed(
            f"{policy.name} fails: {type(error).__name__}: {error} (in {last.name}, {last.filename}, line "
            f"{last.lineno}); repair it, and try it out with 'budgetbandits check'"
        ) from error
