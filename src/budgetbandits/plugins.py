"""Policies, laws and families from outside the package.

They come from a file that the user names (``mine.py:OmegaUCB``, or the whole file by `load`), or from the entry points
of an installed package (groups ``budgetbandits.policies``, ``.laws`` and ``.families``). A file is run, so only the
user of the program may name one: on the command line, in an experiment file, in code. Text from a network is never
taken for one.
"""

from __future__ import annotations

import inspect
import itertools
from pathlib import Path

from budgetbandits.errors import BadParameter, PluginError
from budgetbandits.policies.files import add_policy, classes_in, find_policy, policies_in, run_file, split
from budgetbandits.problems.distributions import KNOWN_LAWS, Law
from budgetbandits.problems.families import KNOWN_FAMILIES

__all__ = ["add_policy", "find_policy", "load", "run_file", "split", "sweep"]


def sweep(text: str) -> list[str]:
    """The policies that a policy with lists of parameters stands for.

    >>> sweep("epsilon-first:epsilon=[0.05, 0.1]")
    ['epsilon-first:epsilon=0.05', 'epsilon-first:epsilon=0.1']
    """
    name, rest = split(text)
    choices: list[list[str]] = []
    while rest:
        key, equals, rest = rest.partition("=")
        if rest.lstrip().startswith("["):
            values, closed, rest = rest.lstrip()[1:].partition("]")
            if not closed:
                raise BadParameter(f"{text!r} opens a list and does not close it; add a ]")
            listed = [value.strip() for value in values.split(",")]
            if not all(listed):
                raise BadParameter(f"{text!r} has an empty value in a list; write {key.strip()}=[0.1, 0.2]")
            rest = rest.lstrip().removeprefix(",")
        else:
            value, _, rest = rest.partition(",")
            listed = [value.strip()]
        choices.append([f"{key.strip()}{equals}{value}" for value in listed])
    return [":".join(filter(None, (name, ",".join(parts)))) for parts in itertools.product(*choices)]


def load(path: str | Path) -> dict[str, list[str]]:
    """Run a file, add its policies, laws and families, and return their names by kind.

    Every policy and every law that the file defines, by its ``name`` or ``kind``; and what a mapping ``FAMILIES`` in it
    holds, functions of a generator and a range that draw a law.
    """
    module = run_file(path)
    policies, families = policies_in(module), getattr(module, "FAMILIES", {})
    laws = [kind for kind in classes_in(module) if issubclass(kind, Law) and not inspect.isabstract(kind)]
    if not (policies or laws or families):
        raise PluginError(f"{path} has no policy, no law and no FAMILIES; define one, or name another file")
    for kind in policies:
        add_policy(kind)
    for law in laws:
        KNOWN_LAWS.add(law.kind, law)
    for name, family in families.items():
        KNOWN_FAMILIES.add(name, family)
    return {"policies": [kind.name for kind in policies], "laws": [law.kind for law in laws], "families": [*families]}
