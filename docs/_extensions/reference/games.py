"""Policies, laws and families."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

from budgetbandits import POLICIES
from budgetbandits.policies import label, provenance
from budgetbandits.policies.base import KNOWLEDGE, written
from budgetbandits.problems.distributions import JOINT_LAWS, LAWS
from budgetbandits.problems.families import ARMS_FAMILIES, FAMILIES, two_gap
from budgetbandits.problems.streams import DRIFTS
from reference.docstrings import paragraphs, parameters
from reference.markdown import code, plain, table

LINE = 70
"""Characters of a formula in LaTeX."""


def policies() -> dict[str, type]:
    return dict(POLICIES)


def rule(kind: type) -> list[str]:
    """The paragraphs of a policy's docstring after the first."""
    return list(paragraphs(kind.__doc__ or ""))[1:]


def _displayed(formula: re.Match[str]) -> str:
    """A formula that is too long for a line of a phone on a line of its own."""
    return f"$${formula[1]}{formula[2]}$$" if len(formula[1]) > LINE else formula[0]


def _needs(kind: Any) -> str:
    return ", ".join(sorted(kind().needs)) or "nothing"


def policies_table() -> str:
    rows = []
    for name, kind in policies().items():
        known = provenance(name)
        rows.append((f"[`{name}`](#{name})", label(name), _needs(kind), known.proven, known.reference))
    return table(("name", "in figures", "must know", "proven regret", "from"), rows)


def policies_part() -> str:
    made = []
    for name, kind in policies().items():
        known, about = provenance(name), parameters(kind)
        first = next(paragraphs(kind.__doc__ or ""))
        rules = [re.sub(r"\$([^$]+)\$([.,;]?)", _displayed, text) for text in rule(kind)]
        lines = [f"## {name}\n", f"**{label(name)}.** {first}\n", *(f"{text}\n" for text in rules)]
        fields = dataclasses.fields(kind)  # type: ignore[arg-type]
        if fields:
            rows = [(code(each.name), code(written(each.default)) if each.default is not None else "none",
                     about.get(each.name, "")) for each in fields]  # fmt: skip
            lines.append(table(("parameter", "default", ""), rows))
        lines.append(f"Must know: {_needs(kind)}. Proven: {known.proven}. From: {known.reference}. "
                     f"Class: `{kind.__name__}` of `{kind.__module__.removeprefix('budgetbandits.')}`.\n")  # fmt: skip
        made.append("\n".join(lines))
    return "\n".join(made)


def knowledge_part() -> str:
    return table(("must know", ""), [(code(name), about) for name, about in KNOWLEDGE.items()])


def laws() -> dict[str, type]:
    return {**LAWS, **JOINT_LAWS}


def families() -> dict[str, Callable[..., Any]]:
    return {**FAMILIES, **ARMS_FAMILIES, "two-gap": two_gap}


def drifts() -> dict[str, Callable[..., Any]]:
    return dict(DRIFTS)


def laws_part(joint: bool) -> str:
    rows = [
        (code(name), ", ".join(code(each.name) for each in dataclasses.fields(kind)),  # type: ignore[arg-type]
         plain(next(paragraphs(kind.__doc__ or ""))), code(f"{kind.__name__}"))
        for name, kind in laws().items() if (name in JOINT_LAWS) is joint
    ]  # fmt: skip
    return table(("law", "keys", "", "in Python"), rows)


def families_part(ranged: bool) -> str:
    rows = [(code(name), plain(next(paragraphs(make.__doc__ or "")))) for name, make in families().items()
            if (name in FAMILIES) is ranged]  # fmt: skip
    return table(("family", ""), rows)


def drifts_part() -> str:
    return table(("drift", ""), [(code(name), plain(make.__doc__)) for name, make in drifts().items()])
