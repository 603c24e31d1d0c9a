"""The manual's numbers say where they are from, and what it shows of the code runs as it is written."""

import re
import sys
import tomllib
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from PIL import Image

from budgetbandits import POLICIES, __version__, cli, errors, family, parse_policy, policies, simulate, theory
from budgetbandits.experiments.experiment_file import EXPERIMENTS, shipped_text
from budgetbandits.policies import provenance

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md"])
def test_the_policies_are_counted(page):
    assert re.findall(r"(\d+) policies", (ROOT / page).read_text()) == [str(len(POLICIES))]


def test_the_policy_of_contributing_is_found_and_plays_as_it_is_written(tmp_path, monkeypatch):
    """Its file is put next to the package's own policies; a name or an import that is wrong there breaks this."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    name, code = re.search(r"```python\n\s*# (\w+)\.py\n(.*?)```", page, flags=re.DOTALL).groups()
    (tmp_path / f"{name}.py").write_text(dedent(code))
    monkeypatch.setattr(policies, "__path__", [*policies.__path__, str(tmp_path)])
    (kind,) = [kind for found, kind in policies._own_policies().items() if found not in POLICIES]
    del sys.modules[kind.__module__]
    assert kind.__module__ == f"budgetbandits.policies.{name}"
    monkeypatch.setitem(POLICIES, kind.name, kind)
    assert provenance(kind.name).reference == kind.reference
    outcome = simulate(family("uniform-bernoulli", 3, seed=1, low=0.1), f"{kind.name}:width=0.5", [20.0], runs=2)
    assert outcome.engine == "index blocks"
    with pytest.raises(errors.BadParameter, match="use a positive number"):
        parse_policy(f"{kind.name}:width=0")


def test_every_dependency_has_its_reason():
    project = (ROOT / "pyproject.toml").read_text()
    table = (ROOT / "docs/explanation/dependencies.md").read_text()
    for name in re.findall(r'"([a-z-]+)(?:\[[a-z,]+\])?>=', project):
        if name not in ("hatchling",) and not name.endswith("-stubs"):
            assert name in table, name


def test_every_theory_function_stands_beside_its_formula():
    page = (ROOT / "docs/explanation/theory.md").read_text()
    for name in theory.__all__:
        if name[0].islower():
            assert f"`{name}`" in page, name


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} -> {target}"


# --- numbers -----------------------------------------------------------------------------------------------------

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MARK = re.compile(r"[Mm]easured by\s`([^`]+)`(?: \([^)]*\))?,\s(seeds? \d+(?: to \d+)?|no seed),\s(\d{4}-\d\d-\d\d)")


def sections(page):
    """The page, cut at its headings; each figure and table stands in one of the pieces."""
    return re.split(r"^#+ ", page.read_text(), flags=re.MULTILINE)


def measurements(section):
    """Tables with a row of two or more cells that begin with a number, and figures."""
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    tables = [row for row in rows if sum(bool(re.match(r"[−-]?\d", cell.strip())) for cell in row) > 1]
    return tables, re.findall(r"!\[[^]]*\]\(([^)]*)\)", section)


def test_every_table_of_measurements_and_every_figure_says_where_it_came_from():
    """In its section: Measured by `command`, seed 1, 2026-01-31. The README's figures stand elsewhere, too."""
    for page in PAGES[1:]:
        for section in sections(page):
            tables, figures = measurements(section)
            if tables or figures:
                assert MARK.search(section), f"{page.name}: {section.splitlines()[0]}: {[*tables[:1], *figures]}"


def test_the_readmes_figures_are_marked_elsewhere():
    _, figures = measurements((ROOT / "README.md").read_text())
    pages = "".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    assert [figure.removeprefix("docs/") in pages for figure in figures] == [True, True]


def marks():
    return [(page.name, *found) for page in PAGES for found in MARK.findall(page.read_text())]


def test_there_are_marks():
    assert len(marks()) >= 10


def test_what_a_mark_names_is_there():
    commands = {info.name or info.callback.__name__ for info in cli.app.registered_commands}
    for page, command, _, day in marks():
        assert date.fromisoformat(day) >= date(2026, 1, 1), page
        word, *rest = command.split()
        if word == "make":
            assert re.search(rf"^{rest[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), (page, command)
        elif word == "budgetbandits":
            assert rest[0] in commands, (page, command)
            assert rest[0] != "run" or rest[1] in EXPERIMENTS, (page, command)
        elif rest[0] == "-m":
            assert find_spec(rest[1]), (page, command)
        else:
            assert word in ("python", "bash"), (page, command)
            assert all((ROOT / file).exists() for file in rest if file.endswith((".py", ".sh"))), (page, command)


def test_the_seed_of_a_shipped_experiment_is_the_one_that_is_marked():
    files = {"make paper": "paper"} | {f"budgetbandits run {name}": name for name in ("growth", "worst-case")}
    for page, command, seed, _ in marks():
        if command in files:
            text = shipped_text(files[command])
            assert seed == f"seed {re.search(r'^seed = (.*)$', text, re.MULTILINE).group(1)}", (page, command)


def test_the_readme_is_as_fast_as_what_was_measured():
    """The least and the most times of the NumPy loop in the table of docs/measurements/performance.md."""
    page = (ROOT / "docs/measurements/performance.md").read_text()
    header, rows = re.search(r"^(\| BTS, B = 50,000 .*)\n\|[-|]+\n((?:\|.*\n)+)", page, re.MULTILINE).groups()
    column = [cell.strip() for cell in header.split("|")].index("NumPy loop")
    times = [re.match(r"[\d,]+", row.split("|")[column].strip()).group() for row in rows.splitlines()]
    least, most = (pick(times, key=lambda text: int(text.replace(",", ""))) for pick in (min, max))
    assert f"{least} to {most} times" in " ".join((ROOT / "README.md").read_text().split())


def test_the_figure_of_random_problems_says_what_the_page_says():
    """Its panels' titles are in the file: the words for those who cannot see it, and the sums of the table."""
    page = (ROOT / "docs/measurements/paper.md").read_text()
    said = Image.open(ROOT / "docs/figures/ensemble.png").text["Description"]
    assert f"![Who wins on random problems: {said}](../figures/ensemble.png)" in page
    counts = np.array(re.findall(r"BTS lowest on (\d+), not on (\d+), unsure on (\d+)", said), dtype=int)
    holds, fails, unsure = counts.sum(axis=0)
    lowest = next(
        line for line in page.splitlines() if line.startswith("| BTS has the lowest regret in all four panels")
    )
    assert re.search(rf"holds on {holds} .*, fails on {fails}, undecided on {unsure} ", lowest)


def test_the_constants_of_the_growth_table():
    """The column that is computed, against a fresh computation."""
    page = (ROOT / "docs/measurements/theory.md").read_text()
    rows = re.findall(r"^\| (\d+) arms, seed (\d+) \| ([\d.]+) \|", page, re.MULTILINE)
    assert len(rows) == 9
    for arms, seed, constant in rows:
        assert f"{theory.lower_constant(family('uniform-bernoulli', int(arms), int(seed), low=0.1)):.2f}" == constant


def test_the_constants_of_remark_one_lie_in_the_range_that_is_stated():
    """A tenth of the problems; a tenth cannot show that the ends are reached, but that they are not passed."""
    parts = ("measurements", "explanation")
    measured, explained = (" ".join((ROOT / "docs" / part / "theory.md").read_text().split()) for part in parts)
    first, second = map(float, re.search(r"UCB-BV2 are at least ([\d.]+) and ([\d.]+) times", measured).groups())
    least, most = map(float, re.search(r"a constant ([\d.]+) to ([\d.]+) times that of the", measured).groups())
    assert f"[at least {min(first, second)} times that of BTS]" in explained
    assert f"a constant {least} to {most:.0f} times the lower bound's" in explained
    for arms in (2, 10, 100):
        for seed in range(100):
            problem = family("uniform-bernoulli", arms, seed, low=0.01)
            ours = theory.bts_constant(problem)
            assert theory.ucb_bv1_constant(problem) / ours > first - 0.005
            assert theory.ucb_bv2_constant(problem) / ours > second - 0.005
            by_lower = theory.bts_constant(problem, gamma=1.0) / theory.lower_constant(problem)
            assert least - 0.05 <= by_lower <= most + 0.5


def test_nothing_is_installed_from_an_index():
    """No index has the package, so nothing may be installed by its name alone."""
    for page in PAGES:
        assert not re.search(r"pip install '?budgetbandits", page.read_text()), page.name


def test_the_readme_names_the_extras():
    said = re.findall(r"pip install '?\.(?:\[(\w+)\])?", (ROOT / "README.md").read_text())
    assert said == ["", "lab", "service"]
    assert (
        set(said[1:]) <= tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"].keys()
    )


def test_the_project_has_one_address():
    """In the metadata, in what the build makes of the README, and in what programs cite."""
    home = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Homepage"]
    assert f'HOME = "{home}"' in (ROOT / "hatch_build.py").read_text()
    assert f'repository-code: "{home}"' in (ROOT / "CITATION.cff").read_text()


def test_the_citation_is_of_this_version():
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    for page in ("README.md", "docs/howto/cite.md"):
        assert f"version = {{{__version__}}}" in (ROOT / page).read_text(), page
