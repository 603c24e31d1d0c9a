"""The page itself: one file without a network, whole without a script, safe whatever names are in it."""

import base64
import dataclasses
import hashlib
import html
import re
from html.parser import HTMLParser

import pytest

from budgetbandits.experiments import Experiment, Results, run
from budgetbandits.experiments.runner import Workers
from budgetbandits.formatting.numbers import estimate, exact
from budgetbandits.report import figures as drawings
from budgetbandits.report import page, study, tables
from budgetbandits.report.page import write_report
from made_up import study as made_up
from studies import SMALL, small

VOID = {"meta", "link", "br", "input"}
NAME = """<b>a</b> & {{ 7 * 7 }} "quoted" 'twice' $\\frac{$ %s"""


class Reader(HTMLParser):
    """Checks that elements are closed in order; collects ids, what points to them, and the words."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.wanted, self.attributes, self.words = [], [], [], set(), []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs, closed=False):
        if tag not in VOID and not closed:
            self.open.append(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(value)
            if name == "for" or (name == "href" and value.startswith("#")):
                self.wanted.append(value.removeprefix("#"))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs, closed=True)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """A study with a problem and a group of problems, with signs of HTML in its names; figures in one format."""
    folder = tmp_path_factory.mktemp("study")
    first, *others = small().problems
    problems = (dataclasses.replace(first, name=NAME, group=NAME), *others)
    run(small(runs=2, name="<script>1</script>", problems=problems, file=SMALL), folder, Workers(jobs=1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawings, "FORMATS", ("svg",))
        text = write_report(folder).read_text()
    return folder, text, Reader(text)


def test_it_is_whole_and_every_id_is_there_once(reported):
    _, _, read = reported
    assert len(read.ids) == len(set(read.ids))
    assert set(read.wanted) <= set(read.ids)
    assert {"regret-wide-linear", "regret-narrow-log", "wins-wide"} <= set(read.ids)


def test_it_needs_no_network_and_runs_only_its_own_script(reported):
    _, text, read = reported
    for address in re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]+)""", text):
        assert address.startswith(("#", "data:")), address
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == 1
    hashed = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{hashed}'" in text
    assert not [name for name in read.attributes if name.startswith("on")]


def test_it_says_where_no_faster_engine_played(reported):
    _, _, read = reported
    assert (
        "Slower engines BTS, ε-first, ε-first epsilon=0.2, KUBE: the reference simulator played (asked for)"
        in read.text
    )


def test_names_are_text(reported):
    """Marks of HTML, of templates and of mathematics in names stay what they are."""
    _, text, read = reported
    assert "<b>a</b>" not in text
    assert "<script>1" not in text
    assert NAME in read.text
    assert "<script>1</script>" in read.text


def test_without_a_script_every_number_is_there(reported):
    folder, _, read = reported
    results = Results.load(folder)
    for row in tables.regrets(results).rows(named=True):
        mean, half = estimate(row["mean"], row["half"])
        assert f"{mean} ± {half}" in read.text
        assert exact(row["budget"]) in read.text
    for row in tables.differences(results)["random"][0][1:]:
        assert estimate(row["difference"], (row["high"] - row["low"]) / 2)[0] in read.text


def test_it_says_what_was_run(reported):
    folder, text, read = reported
    record = Results.load(folder).record
    assert html.escape(SMALL, quote=False) in text.replace("&#34;", '"')
    for words in (record["begun"], record["versions"]["numpy"], "epsilon-first:epsilon=0.2", "(epsilon 0.2)"):
        assert words in read.text
    best = asked_best(record["problems"][0])
    assert f"{best[0]} 0.9 0.3 3 0" in read.text
    assert "2 problems: family uniform-bernoulli, means from 0.2 to 1, seeds 7 to 8" in read.text


def asked_best(problem):
    ratios = [r / c for r, c in zip(problem["reward_means"], problem["cost_means"], strict=True)]
    return problem["names"][ratios.index(max(ratios))], max(ratios)


@pytest.mark.deep
def test_eleven_policies_on_three_problems_at_eight_budgets_stay_small(tmp_path, monkeypatch):
    """The page has two widths of each scale; one is drawn here, and counted twice."""
    monkeypatch.setattr(drawings, "WIDTHS", {"wide": 12.0})
    monkeypatch.setattr(drawings, "FORMATS", ())
    policies = ["bts", "kube", "pd-bwk", *(f"epsilon-first:epsilon=0.{digit}" for digit in range(1, 9))]
    budgets = [100.0 * 1.8**step for step in range(8)]
    results = made_up(
        lambda g, _n, policy, budget: (1 + g + policies.index(policy)) * budget**0.5, 1.0, 1, policies,
        ["a", "b", "c"], budgets,
    )  # fmt: skip
    results.record.update(command="", seed=1, versions={"budgetbandits": "0"})
    content = study.content(results, tmp_path)
    drawn = sum(len(drawing.svg) for drawing in content["figures"][0].drawings)
    assert len(content["figures"][0].drawings) == 2
    text = page.render(content)
    Reader(text)
    assert len(text) + drawn < 2_500_000


def test_regret_that_is_not_positive_has_no_logarithm(tmp_path, monkeypatch):
    monkeypatch.setattr(drawings, "WIDTHS", {"wide": 12.0})
    monkeypatch.setattr(drawings, "FORMATS", ())
    results = made_up(
        lambda _g, _n, policy, _b: -1.0 if policy == "kube" else 1.0, policies=["bts", "kube"], groups=["a"]
    )
    (figure,) = drawings.of_study(results, tmp_path)
    assert figure.scales == ["linear"]


def test_an_experiment_as_read_keeps_its_text():
    assert Experiment.from_toml(SMALL).file == SMALL
    assert small(runs=3).file is None
    assert small().file == SMALL
