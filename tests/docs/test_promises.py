"""What the manual says is tested has a test: the files that pages name, and the reports of failures elsewhere."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_test_file_that_a_page_names_is_there():
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    named = {
        (page.name, name)
        for page in (ROOT / "docs").rglob("*.md")
        for name in re.findall(r"`((?:[\w/]+/)?test_\w+\.py)`", page.read_text())
    }
    assert len(named) > 20
    assert [each for each in sorted(named) if not any(f"/{file}".endswith(f"/{each[1]}") for file in files)] == []


def test_every_report_of_a_failure_elsewhere_has_a_test():
    tests = (ROOT / "tests/service/test_published_failures.py").read_text()
    reports = re.findall(r"^\| \[(\d+)\]", (ROOT / "docs/explanation/ledger.md").read_text(), re.MULTILINE)
    assert sorted(set(re.findall(r"def test_(\d+)_", tests))) == sorted(reports)
