"""The registry of policies: a new policy is one file and one line here.

Whoever writes a policy outside the package needs `Policy`, `IndexPolicy` or `SamplingPolicy`, and what stands beside
them here.
"""

from __future__ import annotations

from dataclasses import fields

from budgetbandits.errors import BadParameter, UnknownPolicy
from budgetbandits.numerics.arrays import either, everywhere, trial
from budgetbandits.policies.base import Policy, State, best, first_pull
from budgetbandits.policies.budget_ucb import BudgetUCB
from budgetbandits.policies.classical import KLUCB, MOSS, UCB1, UCBV, BayesUCB
from budgetbandits.policies.empirical import EmpiricalIMED, NPTSRatio
from budgetbandits.policies.epsilon_first import EpsilonFirst, EpsilonFirstGreedy
from budgetbandits.policies.gaussian import GaussianThompson
from budgetbandits.policies.general_costs import UCBB1, UCBB2, UCBB2C
from budgetbandits.policies.imed_ratio import IMEDFading, IMEDMoss, IMEDRatio, MaillardRatio
from budgetbandits.policies.index import RISING, IndexPolicy, MomentsPolicy, Monotone
from budgetbandits.policies.joint import JointThompson
from budgetbandits.policies.kube import KUBE, FractionalKUBE, KnapsackKUBE
from budgetbandits.policies.omega_ucb import OmegaRising, OmegaStarUCB, OmegaUCB
from budgetbandits.policies.paced.policy import PacedThompson
from budgetbandits.policies.primal_dual import PDBwK, PrimalDualBwK
from budgetbandits.policies.ratio_ucb import CUCB, IUCB, MUCB, BGreedy
from budgetbandits.policies.sampling import Posterior, SamplingPolicy
from budgetbandits.policies.statistics import Tally
from budgetbandits.policies.thompson import BudgetedThompson, Thompson
from budgetbandits.policies.ucb_bv import UCBBV1, UCBBV2
from budgetbandits.policies.ucb_m1 import UCBM1
from budgetbandits.policies.ucb_sc import KLUCBSC, UCBSC, KLUCBSCPlus
from budgetbandits.registry import Registry

__all__ = [
    "KNOWN",
    "POLICIES",
    "RISING",
    "IndexPolicy",
    "MomentsPolicy",
    "Monotone",
    "Policy",
    "Posterior",
    "SamplingPolicy",
    "State",
    "Tally",
    "best",
    "either",
    "everywhere",
    "first_pull",
    "parse_policy",
    "trial",
]

POLICIES: dict[str, type[Policy]] = {
    policy.name: policy
    for policy in (
        BudgetedThompson,
        GaussianThompson,
        JointThompson,
        PacedThompson,
        EpsilonFirst,
        EpsilonFirstGreedy,
        PDBwK,
        PrimalDualBwK,
        UCBBV1,
        UCBBV2,
        KUBE,
        FractionalKUBE,
        KnapsackKUBE,
        Thompson,
        UCB1,
        UCBV,
        MOSS,
        KLUCB,
        BayesUCB,
        OmegaUCB,
        OmegaStarUCB,
        OmegaRising,
        IUCB,
        CUCB,
        MUCB,
        BGreedy,
        BudgetUCB,
        UCBSC,
        KLUCBSC,
        KLUCBSCPlus,
        UCBB1,
        UCBB2,
        UCBB2C,
        UCBM1,
        IMEDRatio,
        IMEDFading,
        IMEDMoss,
        MaillardRatio,
        NPTSRatio,
        EmpiricalIMED,
    )
}

"""The package's own."""

KNOWN: Registry[type[Policy]] = Registry("policy", POLICIES, "budgetbandits.policies")
"""These, and those from outside the package."""


def parse_policy(text: str) -> Policy:
    """A policy from its text: a name and, after a colon, parameters by word.

    >>> parse_policy("epsilon-first:epsilon=0.2")
    EpsilonFirst(epsilon=0.2)
    """
    name, _, rest = text.strip().partition(":")
    if name not in KNOWN:
        raise UnknownPolicy(f"unknown policy {name!r}; choose one of {', '.join(KNOWN)}")
    kind = KNOWN[name]
    defaults = {field.name: field.default for field in fields(kind)}
    allowed = list(defaults)
    values: dict[str, float | str] = {}
    for part in filter(None, rest.split(",")):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in allowed:
            takes = f"takes {', '.join(allowed)}" if allowed else "takes no parameters"
            raise BadParameter(f"{name} has no parameter {key!r}; it {takes}")
        if key in values:
            raise BadParameter(f"{name}: {key} is given twice; give it once")
        if isinstance(defaults[key], tuple):  # a prior: the policy reads its text
            values[key] = value
            continue
        try:
            values[key] = float(value)
        except ValueError:
            raise BadParameter(f"{name}: {key} is {value!r}; write {key}=NUMBER") from None
    return kind(**values)
