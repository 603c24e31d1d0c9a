"""The README as a package index shows it: links that are relative in the repository lead to its home."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

HOME = "https://github.com/budgetbandits/budgetbandits"
IMAGES = "https://raw.githubusercontent.com/budgetbandits/budgetbandits/main/"
LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?:|#)([^)]+)\)")


def absolute(text: str) -> str:
    """The text with every relative link as an address."""
    return LINK.sub(lambda link: f"{link[1]}{link[2]}({IMAGES if link[1] else f'{HOME}/blob/main/'}{link[3]})", text)


class ReadmeWithAddresses(MetadataHookInterface):
    """Called by the build."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text)}
