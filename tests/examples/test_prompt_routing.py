"""The example that needs a package which is no dependency of this one."""

import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/prompt_routing.py"


def test_without_scikit_learn_it_says_how_to_install_it(monkeypatch):
    for name in ("sklearn", "sklearn.decomposition"):
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    with pytest.raises(SystemExit, match="pip install scikit-learn"):
        runpy.run_path(str(EXAMPLE))


@pytest.mark.examples
@pytest.mark.skipif(find_spec("sklearn") is None, reason="make examples installs scikit-learn")
def test_features_make_more_answers_right_and_stay_in_the_budget(capsys):
    """The world's own figures: 0.90 right at most, and nothing but features to tell prompts apart."""
    made = runpy.run_path(str(EXAMPLE))
    assert made["spend"].spent <= made["DOLLARS"]
    assert made["spend"].earned / made["REQUESTS"] > 0.78
    assert "bts-linear, knowing 9 features" in capsys.readouterr().out
    large = {kind: counts["large"] / sum(counts.values()) for kind, counts in made["shares"].items()}
    assert large["mathematics"] > 2 * large["translation"]
