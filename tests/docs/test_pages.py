"""Every page says at its head for whom it is, and every figure and page is used."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if "generated" not in page.parts]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_says_for_whom_it_is(page):
    if page == DOCS / "index.md":
        return
    lines = [line for line in page.read_text().splitlines() if line.strip()]
    assert lines[0].startswith("# "), "a page begins with its title"
    assert lines[1].startswith("For "), "the line after the title says for whom the page is"


def test_every_figure_is_shown():
    shown = "".join(page.read_text() for page in [*PAGES, DOCS.parent / "README.md"])
    unused = [path.name for path in (DOCS / "figures").iterdir() if not re.search(rf"figures/{path.name}\b", shown)]
    assert unused == []
