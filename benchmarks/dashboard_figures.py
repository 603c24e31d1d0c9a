"""The manual's pictures of the dashboard: of the demo, and from the screens that the browser's tests keep.

    BUDGETBANDITS_SCREENS=out/screens make browser && python benchmarks/dashboard_figures.py out/screens

Pillow comes with Matplotlib, Playwright with the extra browser; Chromium is Debian's.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
GROUND, GAP = "#dde3df", 24
SHEETS = {
    "dashboard-overview": (["overview-1280-light"], 1240),
    "dashboard-phones": (["running-412-light", "frozen-412-dark", "blocked-412-light"], 900),
    "dashboard-states": (["disconnected-412-light", "store-error-412-dark", "empty-412-light"], 640),
}
"""Each from these screens, next to each other, down to this many pixels."""
SETTLE_MS = 8_000
"""Time for the demo's page to be drawn with what is going on."""


def main(folder: str) -> None:
    for name, (screens, height) in SHEETS.items():
        pictures = [Image.open(Path(folder) / f"{screen}.png").convert("RGB") for screen in screens]
        width = sum(picture.width for picture in pictures) + GAP * (len(pictures) - 1)
        sheet, x = Image.new("RGB", (width, height), GROUND), 0
        for picture in pictures:
            sheet.paste(picture.crop((0, 0, picture.width, min(picture.height, height))), (x, 0))
            x += picture.width + GAP
        keep(name, sheet)
    keep("dashboard", demo())


def keep(name: str, picture: Image.Image) -> None:
    picture.quantize(256, dither=Image.Dither.NONE).save(FIGURES / f"{name}.png", optimize=True)


def demo() -> Image.Image:
    """The page of the campaign that has ten days behind it, down to its arms."""
    command = [sys.executable, "-m", "budgetbandits", "demo", "--serve", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            page_address = program.stdout.readline().removeprefix("Open ").strip()
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
                page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
                page.goto(page_address)
                page.wait_for_selector("h1:has-text('Campaigns')")
                page.goto(re.sub(r"/sign-in.*", "/campaigns/models", page_address))
                page.wait_for_timeout(SETTLE_MS)
                arms = page.locator("section[aria-labelledby=arms]").bounding_box()
                assert arms is not None
                shot = page.screenshot(full_page=True)
                browser.close()
        finally:
            program.terminate()
    return Image.open(io.BytesIO(shot)).convert("RGB").crop((0, 0, 1280, round(arms["y"] + arms["height"])))


if __name__ == "__main__":
    main(*sys.argv[1:])
