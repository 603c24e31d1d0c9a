"""Registries: the package's own things by name, those that were added, and those of installed packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from budgetbandits.errors import PluginError

T = TypeVar("T")  # what is registered


class Registry(Mapping[str, T], Generic[T]):
    """A mapping that looks into the package first, then among added things, then at entry points.

    An entry point of ``group`` is imported when its name is first asked for.

    >>> numbers = Registry("number", {"one": 1}, group="")
    >>> numbers.add("two", 2)
    >>> list(numbers), numbers["two"]
    (['one', 'two'], 2)
    """

    def __init__(self, noun: str, own: Mapping[str, T], group: str) -> None:
        self.noun = noun
        self.own = own
        self._added: dict[str, T] = {}
        self._group = group
        self._offered: dict[str, EntryPoint] | None = None

    def add(self, name: str, thing: T) -> None:
        """Add one from outside the package; it replaces one that was added under the same name."""
        if name in self.own:
            raise PluginError(f"the package has a {self.noun} {name!r} of its own; give yours another name")
        self._added[name] = thing

    def __getitem__(self, name: str) -> T:
        if name in self.own:
            return self.own[name]
        if name not in self._added:
            offer = self._offers()[name]
            try:
                self._added[name] = offer.load()
            except Exception as error:  # whatever the other package does when it is imported
                raise PluginError(
                    f"{self.noun} {name!r} of {offer.value} cannot be imported: {error!r}; repair that package"
                ) from error
        return self._added[name]

    def __contains__(self, name: object) -> bool:
        """Whether the name is there; imports nothing."""
        return name in self.own or name in self._added or name in self._offers()

    def __iter__(self) -> Iterator[str]:
        return iter({**self.own, **self._added, **self._offers()})

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _offers(self) -> dict[str, EntryPoint]:
        if self._offered is None:
            offered = entry_points(group=self._group) if self._group else ()
            self._offered = {offer.name: offer for offer in offered if offer.name not in self.own}
        return self._offered
