"""A suite (TOML): settings that share their policies, each a study of its own. One ships: shipped/suite.toml.

name = "my suite"
seed = 1
policies = ["bts", "kube", "mine.py:Mine"]

[[settings]]
name = "shop"
title = "Our shop"
laws = "bernoulli"
about = "what the problems are, in a line"
runs = 100
budgets = [1_000, 10_000]
without = ["kube"]
[[settings.problems]]
file = "shop.toml"
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from budgetbandits import plugins
from budgetbandits.errors import BadParameter, ExperimentError
from budgetbandits.experiments import experiment_file
from budgetbandits.experiments.experiment_file import SUITE, SUITES, find, no_others, parsed, shipped_text, text_in
from budgetbandits.experiments.plan import Experiment
from budgetbandits.policies.base import Policy
from budgetbandits.validation import FileKey, integer

LAWS = ("bernoulli", "lattice", "beta", "unknown")
"""Kinds of laws that a setting may name, for users who look for a setting like their own problem."""
KEYS = {
    "name": FileKey("text", "What the suite is called on its page."),
    "settings": FileKey("list of tables", "The settings, each under a line [[settings]]."),
    **{name: experiment_file.KEYS[name] for name in ("seed", "policies", "plugins")},
}
"""Keys of a suite."""

OWN_KEYS = {
    "name": FileKey("text", "The name of its folder: small letters, digits and hyphens."),
    "title": FileKey("text", "What it is called on the page."),
    "laws": FileKey("text", f"What the outcomes are like: {', '.join(LAWS)}."),
    "about": FileKey("text", "What the problems are, in a line."),
    "without": FileKey("list of texts", "Policies of the suite that it leaves out.", "none"),
}
"""Keys of a setting that an experiment file does not have."""

STUDY_KEYS = {
    name: experiment_file.KEYS[name]
    for name in ("runs", "budgets", "budget_unit", "horizon", "problems", "max_rounds", "engine")
}
"""Keys of a setting that an experiment file has, too; ``problems`` has one entry."""
QUICK = 10
"""Problems, or runs on a single one, of each setting that a quick look takes."""


@dataclass(frozen=True)
class Setting:
    """Problems of one kind and the study of them; ``without`` are the suite's policies that it leaves out."""

    name: str
    title: str
    laws: str
    about: str
    without: tuple[str, ...]
    experiment: Experiment

    def first(self, count: int) -> Setting:
        """Its first problems, or of a single one its first runs; the games are those of the whole setting."""
        asked = self.experiment
        if len(asked.problems) > 1:
            return replace(self, experiment=asked.changed(problems=asked.problems[:count]))
        return replace(self, experiment=asked.changed(runs=min(asked.runs, count)))

    def quick(self) -> Setting:
        """A look at it: few problems, the smallest budget."""
        few = self.first(QUICK)
        return replace(few, experiment=few.experiment.changed(budgets=few.experiment.budgets[:1]))

    def joined_by(self, policies: Sequence[Policy]) -> Setting:
        """This setting with these policies added to its own."""
        return replace(self, experiment=self.experiment.changed(policies=(*self.experiment.policies, *policies)))


@dataclass(frozen=True)
class Suite:
    """The content of a suite file, with every problem made."""

    name: str
    settings: tuple[Setting, ...]

    @classmethod
    def load(cls, path: str | Path | None = None, only: Sequence[str] = ()) -> Suite:
        """Read a suite file, or one of those that ship (`SUITES`), by its name; without a path the leaderboard's.

        Of its settings those that are named, or all.
        """
        if path is None:
            return cls.from_toml(shipped_text(SUITE), only=only)
        text, folder = find(path, SUITES)
        try:
            return cls.from_toml(text, folder, only)
        except ExperimentError as error:
            raise ExperimentError(f"{path}: {error}") from None

    @classmethod
    def from_toml(cls, text: str, folder: Path | None = None, only: Sequence[str] = ()) -> Suite:
        """Read a suite; files are looked for in ``folder``. An `ExperimentError` names the setting and the key."""
        document = parsed(text)
        if "problems" in document:
            raise ExperimentError("this is an experiment; run it by 'budgetbandits run FILE'")
        no_others(document, KEYS, "a suite")
        entries = document.get("settings")
        if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
            raise ExperimentError("no settings; write each under a line [[settings]]")
        if not isinstance(document.get("name"), str):
            raise ExperimentError('the suite has no name; write name = "..." in its first lines')
        names = [entry.get("name") for entry in entries]
        for name in names:
            if names.count(name) > 1:
                raise ExperimentError(f"two settings are called {name!r}; give each a name of its own")
        for name in only:
            if name not in names:
                raise BadParameter(f"the suite has no setting {name!r}; it has {', '.join(map(str, names))}")
        settings = []
        for place, entry in enumerate(entries, start=1):
            if only and entry.get("name") not in only:
                continue
            try:
                settings.append(_setting(document, entry, folder or Path()))
            except ExperimentError as error:
                raise ExperimentError(f"setting {entry.get('name', place)}: {error}") from None
        return cls(document["name"], tuple(settings))

    def first(self, count: int) -> Suite:
        """The first problems of every setting."""
        integer("problems", count, 2, hint=", or no policies can be compared")
        return replace(self, settings=tuple(setting.first(count) for setting in self.settings))

    def quick(self) -> Suite:
        """A look at the machinery: few games of every setting."""
        return replace(self, settings=tuple(setting.quick() for setting in self.settings))


def _setting(document: dict[str, Any], entry: dict[str, Any], folder: Path) -> Setting:
    no_others(entry, (*OWN_KEYS, *STUDY_KEYS), "a setting")
    for key in ("name", "title", "laws", "about"):
        text_in(entry, key)
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", entry["name"]):
        raise ExperimentError(f"name is {entry['name']!r}; use small letters, digits and hyphens: it names a folder")
    if entry["laws"] not in LAWS:
        raise ExperimentError(f"laws is {entry['laws']!r}; write one of {', '.join(LAWS)}")
    shared: dict[str, Any] = {key: document[key] for key in document if key in ("seed", "policies", "plugins")}
    study = {key: entry[key] for key in STUDY_KEYS if key in entry}
    if isinstance(entry.get("problems"), list) and len(entry["problems"]) != 1:
        raise ExperimentError("a setting has exactly one entry of problems; make a setting of each")
    asked = Experiment(**experiment_file.read_document({"name": entry["title"], **shared, **study}, folder))
    without = _left_out(entry.get("without", []), [policy.spec for policy in asked.policies])
    return Setting(
        entry["name"], entry["title"], entry["laws"], entry["about"], without,
        asked.changed(policies=tuple(policy for policy in asked.policies if policy.spec not in without)),
    )  # fmt: skip


def _left_out(wanted: Any, specs: Sequence[str]) -> tuple[str, ...]:
    """Policies by their text, each of which the suite must have."""
    if not isinstance(wanted, list) or not all(isinstance(text, str) for text in wanted):
        raise ExperimentError(f"without is {wanted!r}; write a list of policies")
    settings = []
    for text in wanted:
        spec = plugins.find_policy(text).spec
        if spec not in specs:
            raise ExperimentError(f"without names {text!r}, which the suite does not have; remove it")
        settings.append(spec)
    if len(settings) == len(specs):
        raise ExperimentError("without names every policy; leave at least one")
    return tuple(settings)
