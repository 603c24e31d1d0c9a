"""Make the package `budgetbandits_client` out of the client's part of `budgetbandits`, under a name of its own.

A name of its own, since two distributions must not install the same files: removing or upgrading one would break the
other. Only imports are rewritten. A source archive has the package already.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PARTS = ("answers.py", "errors.py", "terms.py", "validation.py", "py.typed", "formatting", "client", "adapters")
NAMES = "|".join(part.removesuffix(".py") for part in PARTS)
IMPORT = re.compile(rf"\bbudgetbandits(?=\.(?:{NAMES})\b| import (?:{NAMES})\b)")
FIRST = '''"""Talk to a decision service from Python: `budgetbandits.client` alone, without NumPy and SciPy."""

from budgetbandits_client.client import *

__version__ = "{version}"
'''


def rewritten(text: str) -> str:
    """A module with the imports and the extras of this distribution."""
    return IMPORT.sub("budgetbandits_client", text).replace("'budgetbandits[", "'budgetbandits-client[")


class ClientVersion(MetadataHookInterface):
    """The version of budgetbandits, or in a source archive that of the package in it."""

    def update(self, metadata: dict[str, Any]) -> None:
        made = Path(self.root) / "budgetbandits_client"
        source = made if made.exists() else Path(self.root).parent / "src/budgetbandits"
        text = (source / "__init__.py").read_text(encoding="utf-8")
        [metadata["version"]] = re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)


class ClientSources(BuildHookInterface):  # type: ignore[type-arg]
    """Called by the build."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        source = Path(self.root).parent / "src/budgetbandits"
        if (Path(self.root) / "budgetbandits_client").exists():
            return
        self._folder = tempfile.TemporaryDirectory()
        made = Path(self._folder.name)
        (made / "__init__.py").write_text(FIRST.format(version=self.metadata.version), encoding="utf-8")
        for part in PARTS:
            files = [source / part] if (source / part).is_file() else sorted((source / part).rglob("*.py"))
            for file in files:
                target = made / file.relative_to(source)
                target.parent.mkdir(exist_ok=True)
                target.write_text(rewritten(file.read_text(encoding="utf-8")), encoding="utf-8")
        build_data["force_include"][str(made)] = "budgetbandits_client"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "_folder"):
            self._folder.cleanup()
