"""The statements on other libraries are read from code: a library that has changed is found out."""

from pathlib import Path

import pytest

from budgetbandits.plugins import run_file

comparison = run_file(Path(__file__).parents[2] / "benchmarks/comparison.py")

CODE = """
class Learner:
    def __init__(self, arms, *, cost_model=None): self.arms = arms
    def update(self, arm, reward): self.means[arm] += reward
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "learner.py").write_text(CODE)
    info = tmp_path / "other-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.2\n")
    (info / "RECORD").write_text("other/learner.py,,\nother-1.2.dist-info/METADATA,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return comparison.Library("other")


def test_names_and_parameters_are_read(library):
    assert library.version == "1.2"
    assert library.named(["cost", "budget"]) == ["cost_model"]
    assert library.named(["cost"], under="elsewhere/") == []
    assert library.parameters("other/learner.py", "Learner.update") == ["arm", "reward"]
    assert library.assigned("other/learner.py", "Learner.update") == ["self.means[arm]"]


def test_a_statement_that_the_code_does_not_bear_out_is_wrong(library, monkeypatch, capsys):
    with pytest.raises(comparison.Wrong, match="cost_model"):
        comparison.no_money()(library)
    says = [("knows prices", comparison.takes("other/learner.py", "Learner.update", "cost")),
            ("learns rewards", comparison.takes("other/learner.py", "Learner.update", "reward"))]  # fmt: skip
    statements = tuple(comparison.Statement("other", *each) for each in says)
    missing = comparison.Statement("nobody-has-this", "anything", comparison.no_money())
    monkeypatch.setattr(comparison, "STATEMENTS", (*statements, missing))
    assert comparison.main() == 1
    said = capsys.readouterr().out
    assert "WRONG: knows prices" in said
    assert "  learns rewards\n      Learner.update(arm, reward)" in said
    assert "nobody-has-this: not installed" in said
