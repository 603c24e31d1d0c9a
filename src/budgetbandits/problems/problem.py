"""A problem: the named arms a player may pull, each with its hidden law. Reads and writes TOML."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from budgetbandits.errors import ProblemError
from budgetbandits.fingerprint import fingerprint
from budgetbandits.formatting.tables import MOST_ROWS, EstimateCell, Table, column, left_out
from budgetbandits.numerics.arrays import Array
from budgetbandits.problems.distributions import (
    JOINT_LAWS,
    LAWS,
    Bernoulli,
    Independent,
    JointTable,
    OutcomeLaw,
    check_law,
    checked_sample,
    is_standard,
    joint_table,
    parse_joint,
    parse_law,
)
from budgetbandits.problems.records import Records, read_csv, read_table
from budgetbandits.validation import FileKey, positive, within

T = TypeVar("T")  # what a file is read as

UNITS = {  # keys of a problem for the units of recorded outcomes
    "reward_max": FileKey("number", "A reward of 1, in the units of the recorded outcomes.", "1"),
    "cost_max": FileKey("number", "A cost of 1, in these units.", "1"),
}
# keys of a problem, and of an arm
KEYS = {"arms": FileKey("list of tables", "The arms, each under a line [[arms]]; at least two."), **UNITS}
ARM_KEYS = {
    "name": FileKey("text", "Its name, different from those of the other arms."),
    "reward": FileKey("law", "The law of its rewards, which do not depend on its costs.", "joint is given"),
    "cost": FileKey("law", "The law of its costs; their mean is above 0.", "joint is given"),
    "joint": FileKey("joint law", "The law of reward and cost together.", "reward and cost are given"),
    "cost_max": FileKey("number, up to 1", "The largest cost it can have, if players know it.", "they do not"),
}

SMALLEST_COST = 1e-12
"""Smallest mean cost that is allowed: with less, a game would not end."""


@dataclass(frozen=True)
class Arm:
    """An arm: its name, the law of its rewards and costs, and its largest possible cost if players know it.

    If every arm has a ``cost_max``, policies that are able to do so learn an arm's costs on its own scale.
    """

    name: str
    law: OutcomeLaw
    cost_max: float | None = None

    def __post_init__(self) -> None:
        check_name("arm", self.name)
        if not self.standard:
            check_law(self.name, self.law)
        if self.law.cost_mean < SMALLEST_COST:
            raise ProblemError(
                f"arm {self.name!r}: the mean cost is {self.law.cost_mean:.3g}, so it could be pulled forever; "
                f"give it a mean cost of at least {SMALLEST_COST:g}"
            )
        if self.cost_max is not None:
            self._check_cap(self.cost_max)

    def _check_cap(self, cap: float) -> None:
        within(f"arm {self.name!r}: cost_max", cap, 0.0, 1.0, above=True, error=ProblemError)
        atoms = self.law.cost_atoms()
        top = 1.0 if atoms is None else float(atoms[0].max())
        if top > cap * (1.0 + 1e-12):
            raise ProblemError(f"arm {self.name!r}: costs go up to {top:g}, above cost_max {cap:g}; raise it")

    @cached_property
    def standard(self) -> bool:
        """Whether the law belongs to the package, so that a problem file can hold it and it lies in [0, 1]."""
        return is_standard(self.law)

    def sample(self, rng: np.random.Generator, size: int) -> tuple[Array, Array]:
        """Draw the rewards and the costs of ``size`` pulls; a `ProblemError` if a law of your own leaves [0, 1]."""
        return self.law.sample(rng, size) if self.standard else checked_sample(self.name, self.law, rng, size)


@dataclass(frozen=True, repr=False)
class Problem:
    """A problem: at least two arms with different names.

    arms        each with its law, whose rewards and costs lie in [0, 1]
    reward_max  a reward of 1, in the units of the recorded outcomes
    cost_max    a cost of 1, in these units

    >>> problem = Problem.bernoulli(rewards=[0.3, 0.6], costs=[0.2, 0.8])
    >>> problem.names, problem.reward_means / problem.cost_means
    (('arm-1', 'arm-2'), array([1.5 , 0.75]))
    >>> problem
    Problem(2 arms, best arm-1: 1.5 reward per cost, the next 0.75)
    """

    arms: tuple[Arm, ...]
    reward_max: float = 1.0
    cost_max: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "arms", tuple(self.arms))
        for name in UNITS:
            positive(name, getattr(self, name), error=ProblemError)
        if len(self.arms) < 2:
            raise ProblemError(
                f"a problem needs at least two arms, this one has {len(self.arms)}; add [[arms]] entries"
            )
        check_distinct("arm", self.names)

    def __len__(self) -> int:
        return len(self.arms)

    def __repr__(self) -> str:
        return f"Problem({_headline(self.names, self.reward_means / self.cost_means)})"

    def _repr_html_(self) -> str:
        return _table(self.names, self.reward_means, self.cost_means).to_html()

    @property
    def names(self) -> tuple[str, ...]:
        """The arms by name, in order."""
        return tuple(arm.name for arm in self.arms)

    @cached_property
    def reward_means(self) -> Array:
        """The mean reward of each arm, in [0, 1]."""
        return np.array([arm.law.reward_mean for arm in self.arms])

    @cached_property
    def cost_means(self) -> Array:
        """The mean cost of each arm, in (0, 1]."""
        return np.array([arm.law.cost_mean for arm in self.arms])

    @cached_property
    def scales(self) -> Array | None:
        """The largest cost of each arm, or None unless players know it for every arm."""
        caps = [arm.cost_max for arm in self.arms if arm.cost_max is not None]
        return np.array(caps, dtype=float) if len(caps) == len(self.arms) else None

    @cached_property
    def is_bernoulli(self) -> bool:
        """Whether every reward and cost is 0 or 1, where the paper's lemmas are equalities."""
        return all(
            type(arm.law) is Independent and type(arm.law.reward) is type(arm.law.cost) is Bernoulli
            for arm in self.arms
        )

    @cached_property
    def identity(self) -> int:
        """A number that depends on the content alone, to derive seeds from."""
        return int.from_bytes(hashlib.blake2b(self.content.encode(), digest_size=8).digest(), "little")

    @cached_property
    def content(self) -> str:
        """The problem as text: its TOML, with a fingerprint in the place of a custom law."""
        return "\n".join(_write_arm(arm) if arm.standard else _name_arm(arm) for arm in self.arms)

    @classmethod
    def bernoulli(cls, rewards: Sequence[float], costs: Sequence[float]) -> Problem:
        """Bernoulli arms ``arm-1``, ``arm-2``, … with these mean rewards and costs."""
        if not all(hasattr(means, "__len__") and not isinstance(means, str) for means in (rewards, costs)):
            raise ProblemError("rewards or costs is no list; give the mean of each arm, such as [0.3, 0.6]")
        if len(rewards) != len(costs):
            raise ProblemError(f"{len(rewards)} mean rewards but {len(costs)} mean costs; give one of each per arm")
        return cls.numbered([Independent(Bernoulli(r), Bernoulli(c)) for r, c in zip(rewards, costs, strict=True)])

    @classmethod
    def numbered(cls, laws: Sequence[OutcomeLaw]) -> Problem:
        """Arms ``arm-1``, ``arm-2``, … with these laws."""
        return cls(tuple(Arm(f"arm-{i + 1}", law) for i, law in enumerate(laws)))

    @classmethod
    def from_csv(cls, path: str | Path, columns: Mapping[str, str] | None = None) -> Problem:
        """The arms of a CSV file with an outcome in each row; ``columns`` says how arm, reward and cost are called.

        Each pull of an arm has one of its recorded pairs of reward and cost, all equally likely.
        """
        return cls._from_records(read_csv(path, columns))

    @classmethod
    def from_table(cls, table: Any, columns: Mapping[str, str] | None = None) -> Problem:
        """The arms of a mapping of columns, or of a frame of polars or pandas, with an outcome in each row.

        >>> rows = {"arm": ["a", "a", "b"], "reward": [1, 0, 5], "cost": [0.02, 0.01, 0.04]}
        >>> problem = Problem.from_table(rows)
        >>> problem.cost_means.tolist(), problem.cost_max, problem.reward_max
        ([0.375, 1.0], 0.04, 5.0)
        """
        return cls._from_records(read_table(table, columns))

    @classmethod
    def _from_records(cls, records: Records) -> Problem:
        top = float(records.reward.max()) or 1.0, float(records.cost.max()) or 1.0
        return cls(recorded_arms(records, top), *top)

    @classmethod
    def from_toml(cls, text: str) -> Problem:
        """Read a problem; a `ProblemError` names the arm, what is wrong with it and the remedy."""
        return cls.from_document(parsed(text))

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Problem:
        """Read a problem from a parsed TOML document; see `from_toml`."""
        if "parts" in document:
            raise ProblemError(
                "this is a request stream, with [[parts]]; name a problem file, or call RequestStream.load"
            )
        if "features" in document:
            raise ProblemError("this is a stream with [[features]]; name a problem file, or call LinearStream.load")
        check_keys(document, KEYS, "a problem")
        entries = document.get("arms", [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise ProblemError("arms is not a list of tables; write each arm under a line [[arms]]")
        units = {name: document[name] for name in UNITS if name in document}
        return cls(tuple(_parse_arm(entry, i + 1) for i, entry in enumerate(entries)), **units)

    @classmethod
    def load(cls, path: str | Path) -> Problem:
        """Read a problem from a TOML file."""
        return read_file(path, cls.from_toml)

    @property
    def writable(self) -> bool:
        """Whether `to_toml` can write it: every law is one of the package's."""
        return all(arm.standard for arm in self.arms)

    def to_toml(self) -> str:
        """The problem as TOML; reading it back gives an equal problem. Only the package's own laws can be written.

        >>> print(Problem.bernoulli([0.3, 0.6], [0.2, 0.8]).to_toml().splitlines()[2])
        reward = { law = "bernoulli", mean = 0.3 }
        """
        for arm in self.arms:
            if not arm.standard:
                raise ProblemError(
                    f"arm {arm.name!r}: {arm.law!r:.60} holds a law from outside the package, which no problem file "
                    f"can; use one of {', '.join(LAWS)} or {', '.join(JOINT_LAWS)}"
                )
        units = [f"{name} = {getattr(self, name)!r}\n" for name in UNITS if getattr(self, name) != 1.0]
        return "".join([*units, self.content])

    def plot(self, *, width: str | float = "page", dark: bool = False, ax: Any = None) -> Any:
        """A Matplotlib figure of the arms in the plane of mean cost and mean reward, with lines of equal ratio.

        ``width`` is "paper", "page", "phone" or inches; ``ax`` draws into axes of yours and returns them.
        """
        from budgetbandits.figures import (
            arms,
            style,  # Matplotlib is in the extra lab
        )

        return arms.plane(self.names, self.cost_means, self.reward_means, style.figure_spec(width, dark), ax)


def check_name(what: str, name: Any) -> None:
    """Raise a `ProblemError` unless the name is printable text."""
    if not isinstance(name, str) or not name or not name.isprintable():
        raise ProblemError(f"{what} name {name!r:.40} is not printable text; give every {what} a short name")


def check_distinct(what: str, names: Sequence[str]) -> None:
    """Raise a `ProblemError` if a name occurs twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ProblemError(f"{what} {name!r} is there twice; give every {what} a name of its own")
        seen.add(name)


def check_keys(table: Mapping[str, Any], keys: Collection[str], owner: str) -> None:
    """Raise a `ProblemError` if the table has a key that is not among these."""
    for key in table:
        if key not in keys:
            raise ProblemError(f"unknown key {key!r:.40}; {owner} has {', '.join(keys)}")


def parsed(text: str) -> dict[str, Any]:
    """The document of a TOML text, or a `ProblemError`."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"not TOML: {error}; see 'budgetbandits problem' for an example") from None


def read_file(path: str | Path, parse: Callable[[str], T]) -> T:
    """The result of ``parse`` on a TOML file; an error names the file."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError(f"cannot read {str(path)!r}: {error}; name a readable TOML file") from None
    try:
        return parse(text)
    except ProblemError as error:
        raise ProblemError(f"{path}: {error}") from None


def recorded_arms(records: Records, top: tuple[float, float]) -> tuple[Arm, ...]:
    """The recorded arms; outcomes are divided by ``top``, the largest reward and the largest cost."""
    arms = []
    for number, name in enumerate(records.arms):
        rows = records.arm == number
        if rows.any():
            pairs = np.stack([records.reward[rows] / top[0], records.cost[rows] / top[1]], axis=1)
            different, counts = np.unique(pairs, axis=0, return_counts=True)
            law = JointTable(np.column_stack([different, counts]).tolist())
            arms.append(Arm(name, law, float(pairs[:, 1].max()) or None))
    return tuple(arms)


def _parse_arm(entry: dict[str, Any], position: int) -> Arm:
    if "name" not in entry:
        raise ProblemError(f'arm number {position} has no name; add name = "..."')
    name = entry["name"]
    where = f"arm {name!r}"
    for key in entry:
        if key not in ARM_KEYS:
            raise ProblemError(
                f"{where}: unknown key {key!r}; an arm has name, reward and cost (or joint), perhaps cost_max"
            )
    parts = ("joint",) if "joint" in entry else ("reward", "cost")
    if "joint" in entry and ("reward" in entry or "cost" in entry):
        raise ProblemError(f"{where}: joint stands for both reward and cost; remove one or the other")
    laws: dict[str, Any] = {}
    for part in parts:
        if part not in entry:
            raise ProblemError(f'{where}: no {part}; add {part} = {{ law = "bernoulli", mean = 0.5 }} or another law')
        try:
            laws[part] = parse_joint(entry[part]) if part == "joint" else parse_law(entry[part])
        except ProblemError as error:
            raise ProblemError(f"{where}: {part}: {error}") from None
    return Arm(name, laws["joint"] if "joint" in entry else Independent(**laws), entry.get("cost_max"))


def _name_arm(arm: Arm) -> str:
    cap = "" if arm.cost_max is None else f"cost_max = {_toml(arm.cost_max)}\n"
    return f"[[arms]]\nname = {_toml(arm.name)}\n{cap}law = {fingerprint(arm.law)}\n"


def _write_arm(arm: Arm) -> str:
    lines = ["[[arms]]", f"name = {_toml(arm.name)}"]
    if arm.cost_max is not None:
        lines.append(f"cost_max = {_toml(arm.cost_max)}")
    if isinstance(arm.law, Independent):
        lines += [f"reward = {_toml(arm.law.reward.to_table())}", f"cost = {_toml(arm.law.cost.to_table())}"]
    else:
        lines.append(f"joint = {_toml(joint_table(arm.law))}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """A value of a problem as TOML."""
    if type(value) is float:
        return repr(value)  # what json.dumps writes, in a tenth of the time: problems are mostly numbers
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)  # text and finite numbers are written alike in JSON and TOML


# --- a problem as a table --------------------------------------------------------------------------------------------


def _table(names: Sequence[str], rewards: Array, costs: Array) -> Table:
    """Mean reward, mean cost, ratio and gap of the first arms; the best arms are marked in a column of their own."""
    ratios = rewards / costs
    top = ratios.max()
    best = ratios >= top * (1.0 - 1e-12)
    reward, cost, ratio, gap = (
        column(values[:MOST_ROWS].tolist()) for values in (rewards, costs, ratios, np.where(best, np.nan, top - ratios))
    )
    rows = [
        (
            name,
            reward[arm],
            cost[arm],
            EstimateCell(ratio[arm], best=bool(best[arm])),
            "best" if best[arm] else gap[arm],
        )
        for arm, name in enumerate(names[:MOST_ROWS])
    ]
    columns = ("arm", "mean reward", "mean cost", "ratio", "gap")
    return Table(columns, rows, title=_headline(names, ratios), note=left_out(len(names)))


def _headline(names: Sequence[str], ratios: Array) -> str:
    """The number of arms and the best one, as text.

    >>> _headline(["a", "b", "c"], np.array([1.0, 2.5, 2.0]))
    '3 arms, best b: 2.5 reward per cost, the next 2'
    """
    order = np.argsort(-ratios, kind="stable")[:2]
    best, next_best = ratios[order]
    return f"{len(names):,} arms, best {names[order[0]]}: {best:.4g} reward per cost, the next {next_best:.4g}"
