"""The manual's pictures of the dashboard, from the screens that the browser's tests keep.

    BUDGETBANDITS_SCREENS=out/screens make browser && python benchmarks/dashboard_figures.py out/screens

Pillow comes with Matplotlib.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
GROUND, GAP = "#dde3df", 24
SHEETS = {
    "dashboard-overview": (["overview-1280-light"], 1190),
    "dashboard-phones": (["running-412-light", "frozen-412-dark", "blocked-412-light"], 900),
    "dashboard-states": (["disconnected-412-light", "store-error-412-dark", "empty-412-light"], 640),
}
"""Each from these screens, next to each other, down to this many pixels."""


def main(folder: str) -> None:
    for name, (screens, height) in SHEETS.items():
        pictures = [Image.open(Path(folder) / f"{screen}.png").convert("RGB") for screen in screens]
        width = sum(each.width for each in pictures) + GAP * (len(pictures) - 1)
        sheet, x = Image.new("RGB", (width, height), GROUND), 0
        for each in pictures:
            sheet.paste(each.crop((0, 0, each.width, min(each.height, height))), (x, 0))
            x += each.width + GAP
        sheet.quantize(256, dither=Image.Dither.NONE).save(FIGURES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
