"""The keys of files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from budgetbandits.cli import outcomes
from budgetbandits.experiments import experiment_file as study
from budgetbandits.experiments import suite
from budgetbandits.experiments.experiment_file import BUDGET_UNITS, EXPERIMENTS, SUITES, shipped_text
from budgetbandits.off_policy import log
from budgetbandits.problems import linear, problem, records, streams
from reference.markdown import code, first_sentence, plain, table


def file_keys() -> dict[str, Mapping[str, Any]]:
    """The keys of each kind of file, by a title."""
    return {
        "study": study.KEYS,
        "study-family": study.FAMILY_KEYS,
        "study-two-gap": study.GAP_KEYS,
        "study-file": study.FILE_KEYS,
        "study-inline": study.INLINE_KEYS,
        "suite": suite.KEYS,
        "suite-setting": {**suite.OWN_KEYS, **suite.STUDY_KEYS},
        "problem": problem.KEYS,
        "problem-arm": problem.ARM_KEYS,
        "stream-part": streams.KEYS,
        "features": linear.KEYS,
        "features-feature": linear.FEATURE_KEYS,
        "features-arm": linear.ARM_KEYS,
        "features-line": linear.LINE_KEYS,
        "records": records.MEANINGS,
        "log": log.MEANINGS,
        "import": outcomes.MEANINGS,
    }


def keys_part(title: str) -> str:
    rows = [(code(key), about.kind, plain(about.meaning), about.default or "must be given")
            for key, about in file_keys()[title].items()]  # fmt: skip
    return table(("key", "value", "", "default"), rows)


def budget_units_part() -> str:
    return table(
        ("budget_unit", "a budget of 1 is"), [(code(f'"{unit}"'), about) for unit, about in BUDGET_UNITS.items()]
    )


def shipped_part() -> str:
    """The experiments and suites that ship: what they are called, and what the comment at their head says."""
    rows = []
    for name in (*EXPERIMENTS, *SUITES):
        comment = re.match(r"(?:#[^\n]*\n)*", shipped_text(name))
        text = " ".join(line.lstrip("# ") for line in (comment[0] if comment else "").splitlines())
        rows.append((code(name), "suite" if name in SUITES else "study", plain(first_sentence(text))))
    return table(("name", "kind", ""), rows)
