"""The page of the champion, written from two small suites that were played here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from budgetbandits.errors import StudyError
from budgetbandits.experiments import leaderboard, score
from budgetbandits.experiments.experiment_file import shipped_text
from budgetbandits.experiments.runner import Workers
from budgetbandits.experiments.suite import Suite
from budgetbandits.plugins import run_file
from budgetbandits.policies import label

champion, fresh = (
    run_file(Path(__file__).parents[2] / f"benchmarks/{name}.py") for name in ("champion", "fresh_problems")
)

SUITE = """
name = "small"
seed = 3
policies = [{policies}]
""" + "".join(
    f"""
[[settings]]
name = "{name}"
title = "{title}"
laws = "bernoulli"
about = "three arms"
runs = 1
engine = "reference"
budgets = [10]
[[settings.problems]]
family = "{family}"
arms = 3
count = 5
"""
    for name, title, family in (
        ("bernoulli-10-long", "Random", "uniform-bernoulli"),
        ("near-ties", "Near ties", "near-ties"),
    )
)
FEW = SUITE.format(policies='"bts"')
CANDIDATES = '"bts", "omega-star-ucb", "kl-ucb-sc-plus", "imed-moss:kappa=2", "gittins-ratio:width=[1.25, 1.5]"'
MEASURED = '"bts", "omega-ucb", "imed-fading", "omega-star-ucb", "ucb1"'


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """The suites of training and test, the second without any of ours, and the folder that they were played in."""
    out = tmp_path_factory.mktemp("champion")
    (out / "figures").mkdir()
    (out / "measurements").mkdir()
    (out / "explanation" / "findings").mkdir(parents=True)
    trained, measured = (Suite.from_toml(SUITE.format(policies=each)) for each in (CANDIDATES, MEASURED))
    rules = [f"{champion.RULES}:{rule}" for rule in champion.HORIZON.values()]
    rules += [f"{champion.RULES}:{champion.WHOLE}:width={width}" for width in champion.WIDTHS]
    leaderboard.play(leaderboard.joined(trained, rules), out / "training", Workers(jobs=1))
    return trained, measured, out


def test_the_page_says_what_was_played(played, monkeypatch):
    monkeypatch.setattr(score, "RESAMPLES", 50)
    trained, measured, out = played
    candidates = [policy.spec for policy in trained.settings[0].experiment.policies]
    chosen = score.scores(*score.scored_games(trained, out / "training"), only=candidates)[0].policy
    ours = ["gittins-ratio:width=[1.25, 1.5]", "imed-moss:kappa=2", "kl-ucb-sc-plus"]
    joined = leaderboard.joined(measured, ours)
    leaderboard.play(joined, out / "board", Workers(jobs=1))
    champion.write_pages(trained, out / "training", joined, out / "board", joined, out / "board", out)
    page = (out / "measurements" / "champion.md").read_text()
    assert f"The choice is `{chosen}`" in page
    pairs = score.margins(score.scored_games(joined, out / "board")[0], chosen)
    said = re.search(r"Of all (\d+) pairs", page)
    assert said is not None
    assert int(said[1]) == len(pairs) >= 8  # two settings; of five in print one may be the choice
    alone = page[page.index("## What the horizon alone gives") : page.index("## The whole budget")]
    assert page.count("| gittins-ratio-whole") == 2
    for name in ("omega-star-horizon", "kl-ucb-sc-horizon", "imed-moss-horizon", "omega-star-ucb", "kl-ucb-sc-plus"):
        assert f"\n| {name}" in alone
    assert "horizon" not in page[page.index("## How it was chosen") : page.index(alone)]  # none is a candidate
    assert page.index("The choice was among 6 candidates") > 0
    assert "100 % of the resamples" not in page
    unseen = page[page.index("## Fresh problems") : page.index("## Adverts")]
    assert "\n| gittins-ratio † |" in unseen
    assert re.search(r"Of \d+ pairs of a setting and a policy in print, gittins-ratio is surely ahead in \d+", unseen)
    assert f"Against {label(chosen)} its mean is surely lower in" in unseen or chosen == "gittins-ratio"
    assert page.index("## Measured on other") < page.index("## Looked at twice") < page.index("## What ships")
    assert (out / "figures" / "champion.png").stat().st_size > 0
    assert chosen.partition(":")[0] in (out / "explanation" / "findings" / "tails.md").read_text()


def test_fresh_problems_are_of_no_other_suite():
    """One setting for each of the leaderboard's with many problems; nobody else's seeds reach so far."""
    text = "".join(map(shipped_text, ("suite", "training")))
    assert max(int(seed.replace("_", "")) for seed in re.findall(r"(?m)^seed = ([\d_]+)", text)) + 10_000 < fresh.FIRST
    pairs = zip(fresh.fresh_suite(FEW).settings, Suite.from_toml(FEW).settings, strict=True)
    seeds = set()
    for own, other in pairs:
        assert (own.name, own.experiment.budgets) == (other.name, other.experiment.budgets)
        assert len(own.experiment.problems) == 2 * len(other.experiment.problems)
        seeds |= {problem.name for problem in own.experiment.problems}
    assert len(seeds) == 20
    assert all(int(name.rpartition(" ")[2]) >= fresh.FIRST for name in seeds)


def test_a_champion_that_the_leaderboard_has_not_played_is_named(played, monkeypatch):
    monkeypatch.setattr(score, "RESAMPLES", 10)
    out = played[2]
    alone = Suite.from_toml(SUITE.format(policies='"bts", "ucb1"'))
    leaderboard.play(alone, out / "without", Workers(jobs=1))
    only = Suite.from_toml(SUITE.format(policies='"omega-star-ucb", "imed-moss:kappa=2"'))
    with pytest.raises(StudyError, match=r"budgetbandits leaderboard --with (omega-star-ucb|imed-moss:kappa=2\.0) "):
        champion.write_pages(only, out / "training", alone, out / "without", alone, out / "without", out)
