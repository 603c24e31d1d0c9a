"""The players: rules that choose arms, each in a file of its own, and the registry that finds them by name.

Read first: `base` (the contract of a policy), `thompson` (the paper's algorithm), then `sampling` and `index`, the two
shapes that most policies have. `statistics` holds the sums that policies keep, `posteriors` other posteriors for the
paper's rule and what a state says of an arm, `paced/` the policy for a budget that must last, `files` policies in files
of your own.

A new policy is one file: a class with a `name` in a module of this package is found by itself. What is known of it
(`label`, `reference`, `proven`, `needs`) stands in its class. Authors of policies use the names in ``__all__``.
"""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

from budgetbandits.errors import BadParameter, UnknownPolicy
from budgetbandits.numerics.arrays import all_true, trial, where
from budgetbandits.policies.base import NOTHING_KNOWN, Knowledge, Policy, State, best, first_pull
from budgetbandits.policies.index import RISING_INDEX, IndexPolicy, MomentsPolicy, MoneyPolicy, Monotonicity
from budgetbandits.policies.prior import PriorPolicy
from budgetbandits.policies.sampling import Posterior, SamplingPolicy
from budgetbandits.policies.statistics import Tally
from budgetbandits.registry import Registry

__all__ = [
    "NOTHING_KNOWN",
    "PAPER_POLICIES",
    "POLICIES",
    "POLICY_REGISTRY",
    "RISING_INDEX",
    "IndexPolicy",
    "Knowledge",
    "MomentsPolicy",
    "MoneyPolicy",
    "Monotonicity",
    "Policy",
    "Posterior",
    "PriorPolicy",
    "SamplingPolicy",
    "State",
    "Tally",
    "all_true",
    "best",
    "first_pull",
    "label",
    "parse_policy",
    "trial",
    "where",
]

POLICIES: dict[str, type[Policy]] = {}
"""The policies of the package by name: the paper's first, then the others in alphabetical order."""

POLICY_REGISTRY: Registry[type[Policy]] = Registry("policy", POLICIES, "budgetbandits.policies")
"""All policies by name: these, and those from outside the package."""

PAPER_POLICIES = ("bts", "epsilon-first", "pd-bwk", "ucb-bv1", "kube")
"""The policies that the paper simulates; they look the same in every figure."""

UNPROVEN_PARAMETERS = frozenset({"kappa", "forget", "hope", "prior_reward", "prior_cost"})
"""Parameters that take any policy out of its proof: counts times κ, outcomes that are forgotten, means that are hoped
for, and priors other than the uniform ones of the proofs."""

FORGETTING_OFF = ("forget=0", "forget=0.0")
"""Parameters of `bts-paced` with which its proof holds: nothing is forgotten."""


def parse_policy(text: str) -> Policy:
    """A policy from its text: a name and, after a colon, parameters by word.

    >>> parse_policy("epsilon-first:epsilon=0.2")
    EpsilonFirst(epsilon=0.2)
    """
    name, _, rest = text.strip().partition(":")
    if name not in POLICY_REGISTRY:
        raise UnknownPolicy(f"unknown policy {name!r}; choose one of {', '.join(POLICY_REGISTRY)}")
    kind = POLICY_REGISTRY[name]
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


class Provenance(NamedTuple):
    """The origin of a policy, and what is proven of its regret."""

    reference: str
    proven: str


def provenance(spec: str) -> Provenance:
    """The provenance of a policy by its spec, which leaves out the defaults.

    >>> provenance("bts").proven, provenance("bts:kappa=1.5").proven, provenance("bts-paced:forget=0.002").proven
    ('O(ln B)', 'nothing', 'nothing')
    >>> provenance("bts-paced:forget=0.0").proven
    "with forget=0, O(√T) in Bayes' mean, for outcomes 0 and 1 and one segment"
    """
    name, _, parameters = spec.partition(":")
    given = {part.partition("=")[0].strip() for part in parameters.split(",") if part.strip() not in FORGETTING_OFF}
    proven = _declared(name, "proven", "yours to say")
    if name in POLICIES and given & UNPROVEN_PARAMETERS:
        proven = "nothing"
    return Provenance(_declared(name, "reference", "yours"), proven)


def published(spec: str) -> bool:
    """Whether the rule of this policy is in print elsewhere; counts times κ are not.

    >>> published("bts"), published("bts:kappa=1.5"), published("imed-ratio")
    (True, False, False)
    """
    return not provenance(spec).reference.startswith(("not in print", "future work", "yours")) and "kappa=" not in spec


def label(spec: str) -> str:
    """A policy for figures and tables, from its spec: the name as its paper writes it, and its parameters.

    >>> label("epsilon-first"), label("epsilon-first:epsilon=0.05"), label("mine:a=1.0,b=2.0")
    ('ε-first', 'ε-first epsilon=0.05', 'mine a=1 b=2')
    """
    name, _, parameters = spec.partition(":")
    words = [part.removesuffix(".0") for part in parameters.split(",") if part]
    return " ".join([_declared(name, "label", name), *words])


def _declared(name: str, attribute: str, otherwise: str) -> str:
    """An attribute of a policy's own class: a subclass is another policy, so it inherits none of this."""
    return str(vars(POLICY_REGISTRY[name]).get(attribute, otherwise)) if name in POLICY_REGISTRY else otherwise


def _own_policies() -> dict[str, type[Policy]]:
    """Each class with a name of its own in the modules of this package."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    kinds = [kind for module in modules for kind in vars(module).values() if isinstance(kind, type)]
    named = {kind.name: kind for kind in kinds if issubclass(kind, Policy) and "name" in vars(kind)}
    return dict(sorted(named.items(), key=lambda item: (item[0] not in PAPER_POLICIES, item[0])))


POLICIES.update(_own_policies())  # last, because some modules import from this one
