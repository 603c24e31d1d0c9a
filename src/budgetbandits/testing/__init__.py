"""Checks for a policy of your own: the contract of every policy, and the compiled engines.

from budgetbandits.testing import check_policy

def test_my_policy():
    check_policy(OmegaUCB()).assert_holds()
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from budgetbandits.errors import BudgetBanditsError
from budgetbandits.plugins import add_policy
from budgetbandits.policies import POLICY_REGISTRY, Policy
from budgetbandits.simulation.outcome import Engine
from budgetbandits.testing.contract import CONTRACT, Violation
from budgetbandits.testing.engines import ENGINES, engine_of

__all__ = ["Finding", "Report", "check_policy"]


@dataclass(frozen=True)
class Finding:
    """The finding of one check."""

    check: str
    verdict: Literal["holds", "broken", "does not apply"]
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.verdict}: {self.check}" + (f" ({self.detail})" if self.detail else "")


@dataclass
class Report:
    """The findings of all checks."""

    policy: str
    findings: list[Finding] = field(default_factory=list)
    engine: Engine | None = None
    """The engine that plays the policy in simulations and studies, and why not a faster one; None if that fails."""

    @property
    def broken(self) -> list[Finding]:
        """The findings that are broken."""
        return [finding for finding in self.findings if finding.verdict == "broken"]

    @property
    def holds(self) -> bool:
        """Whether no check is broken."""
        return not self.broken

    def assert_holds(self) -> None:
        """Raise an AssertionError that lists the broken checks, if there are any."""
        if self.broken:
            raise AssertionError("\n".join([self.policy, *(f"  {finding}" for finding in self.broken)]))

    def __str__(self) -> str:
        return "\n".join([self.policy, *(f"  {finding}" for finding in self.findings)])


def check_policy(policy: Policy, tell: Callable[[Finding], None] | None = None) -> Report:
    """Check the whole contract and the engines, in about a minute; ``tell`` is called with each finding."""
    if policy.name not in POLICY_REGISTRY:
        add_policy(type(policy))  # its text must be readable
    report = Report(policy.spec)
    for name, check in {**CONTRACT, **ENGINES}.items():
        finding = Finding(name, "holds")
        try:
            reason = check(policy)
            if reason is not None:
                finding = Finding(name, "does not apply", reason)
        except (Violation, BudgetBanditsError) as error:
            finding = Finding(name, "broken", str(error))
        except Exception as error:  # whatever the policy's own code does
            finding = Finding(name, "broken", f"{type(error).__name__}: {error}")
        report.findings.append(finding)
        if tell is not None:
            tell(finding)
    with contextlib.suppress(BudgetBanditsError):  # it is among what is broken
        report.engine = engine_of(policy)
    return report
