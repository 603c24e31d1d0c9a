"""The command line, run as a user runs it: its words in, what it prints and its exit code out."""

import contextlib
import io
import json
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest
import typer

import budgetbandits
from budgetbandits import POLICIES, Problem, family
from budgetbandits.__main__ import LAB_COMMANDS, SERVICE_COMMANDS, main
from budgetbandits.cli import app
from budgetbandits.cli.demo import own_command
from budgetbandits.errors import EXTRAS, MissingExtra
from budgetbandits.problems.families import linear


def run(*arguments):
    """In this process, which has imported everything already; only `test_version` starts one of its own."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", ["budgetbandits", *map(str, arguments)])
        patch.setenv("COLUMNS", "80")
        try:
            main()
        except SystemExit as end:
            code = end.code
    return subprocess.CompletedProcess(sys.argv, code or 0, out.getvalue(), err.getvalue())


@pytest.fixture
def problem(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text(family("uniform-bernoulli", 4, seed=3, low=0.2).to_toml())
    return path


def test_simulate_prints_one_json_document(problem):
    done = run(
        "simulate", problem, "--policy", "bts", "--policy", "epsilon-first:epsilon=0.2",
        "--budget", 50, "--budget", 100, "--runs", 6, "--seed", 1, "--json",
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stderr == "" or "compiling" in done.stderr
    results = json.loads(done.stdout)["results"]
    assert [(r["policy"], r["budget"]) for r in results] == [
        ("bts", 50), ("bts", 100), ("epsilon-first:epsilon=0.2", 50), ("epsilon-first:epsilon=0.2", 100)
    ]  # fmt: skip
    for r in results:
        assert r["runs"] == 6
        assert r["engine"] in ("thompson", "epsilon-first")
        assert r["engine_reason"] == ""
        assert r["seconds"] > 0
        assert len(r["pulls"]) == 4
        assert sum(r["pulls"]) == pytest.approx(r["rounds"]["mean"])
        assert r["missed_runs"] == round(6 * (1 - r["best_arm_identified"]))
        for key in ("regret", "pseudo_regret", "rounds", "reward"):
            assert set(r[key]) == {"mean", "std", "sem"}
        hits, misses = r["regret_when_identified"]["mean"] or 0, r["regret_when_missed"]["mean"] or 0
        share = r["best_arm_identified"]
        assert share * hits + (1 - share) * misses == pytest.approx(r["regret"]["mean"])


def test_workers_do_not_change_the_figures(problem):
    one, two = (
        json.loads(
            run("simulate", problem, "--policy", "bts", "--budget", 40, "--runs", 5, "--jobs", jobs, "--json").stdout
        )
        for jobs in (1, 2)
    )
    for document in (one, two):
        document["results"][0].pop("seconds")
    assert one == two


def test_simulate_prints_a_table_that_fits(problem):
    done = run("simulate", problem, "--policy", "bts", "--budget", 50, "--runs", 3)
    assert done.returncode == 0
    assert "BTS" in done.stdout
    assert "…" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_simulate_says_where_no_faster_engine_played(problem):
    done = run(
        "simulate", problem, "--policy", "ucb1", "--policy", "kube", "--budget", 9, "--runs", 2, "--engine", "reference"
    )
    assert done.stdout.endswith("UCB1, KUBE: the reference simulator played (asked for)\n")


def test_simulate_plays_requests_with_features(tmp_path):
    path = tmp_path / "stream.toml"
    path.write_text(linear(features=2, arms=3, seed=1).to_toml())
    asked = "simulate", path, "--policy", "bts-linear", "--policy", "bts", "--budget", 2, "--runs", 2, "--horizon", 30
    shown, written = run(*asked), json.loads(run(*asked, "--json").stdout)
    assert "3 arms, 2 features, 30 requests, 2 runs" in shown.stdout
    assert "the reference simulator played (no compiled engine knows requests with features)" in " ".join(
        shown.stdout.split()
    )
    assert max(map(len, shown.stdout.splitlines())) <= 120
    assert (written["features"], len(written["results"])) == (["x1", "x2"], 2)


def test_policies_are_listed_with_what_they_must_know():
    listing = run("policies").stdout
    for name in POLICIES:
        assert name in listing
    assert "cost_floor" in listing


def test_problem_prints_a_problem():
    done = run("problem", "uniform-multinomial", "--arms", 10, "--seed", 3)
    assert Problem.from_toml(done.stdout) == family("uniform-multinomial", 10, seed=3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["simulate", "none.toml", "--policy", "bts", "--budget", "10"], "none.toml"),
        (["simulate", "PROBLEM", "--policy", "thomson", "--budget", "10"], "choose one of bts"),
        (["simulate", "PROBLEM", "--policy", "kube:x=1", "--budget", "10"], "no parameters"),
        (["simulate", "PROBLEM", "--policy", "bts", "--budget", "-10"], "positive"),
        (["simulate", "PROBLEM", "--policy", "bts", "--budget", "ten"], "--budget"),
        (["simulate", "PROBLEM", "--policy", "bts"], "--budget"),
        (["simulate", "PROBLEM", "--policy", "bts", "--budget", "10", "--runs", "0"], "from 1 upwards"),
        (["simulate", "PROBLEM", "--policy", "bts", "--budget", "10", "--jobs", "-2"], "jobs"),
        (["simulate", "PROBLEM", "--policy", "bts", "--budget", "10", "--max-rounds", "3"], "--max-rounds"),
        (["simulate", "PROBLEM", "--policy", "bts", "--budget", "10", "--engine", "slow"], "auto, fast, reference"),
        (["simulate", "PROBLEM", "--policy", "bayes-ucb", "--budget", "10", "--engine", "fast"], "no fast engine"),
        (["simulate", "PROBLEM", "--polcy", "bts"], "--polcy"),
        (["problem", "normal"], "choose one of uniform-bernoulli"),
        (["problem", "uniform-bernoulli", "--arms", "1"], "from 2 upwards"),
        (["paint"], "paint"),
        ([], "--help"),
    ],
)
def test_errors_are_one_line_and_exit_code_2(problem, arguments, words):
    done = run(*[problem if a == "PROBLEM" else a for a in arguments])
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert len([line for line in done.stderr.strip().splitlines() if not line.startswith("compiling")]) == 1


def test_names_are_not_markup(tmp_path):
    path = tmp_path / "odd.toml"
    path.write_text(Problem.bernoulli([0.5, 0.9], [0.5, 0.5]).to_toml().replace("arm-2", "[/x]"))
    done = run("simulate", path, "--policy", "ucb1", "--budget", 5, "--runs", 2)
    assert done.returncode == 0
    assert "[/x]" in done.stdout


def test_help_is_there():
    done = run("--help")
    assert done.returncode == 0
    for command in ("simulate", "policies", "problem", "demo"):
        assert command in done.stdout


def test_version():
    command = [sys.executable, "-m", "budgetbandits", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"budgetbandits {version('budgetbandits')}\n"


@pytest.mark.parametrize(
    ("start", "without"),
    [
        ("from budgetbandits.cli import app", {"scipy.special", "numba", "polars"}),
        ("import budgetbandits.service.http.server", {"jinja2", "scipy.special"}),
    ],
)
def test_what_takes_long_to_import_is_imported_late(start, without):
    code = f"{start}; import sys; print({without!r} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def forget(monkeypatch, *modules):
    """Have these modules, and those in them, imported again."""
    for name in [each for each in sys.modules if f"{each}.".startswith(tuple(f"{module}." for module in modules))]:
        monkeypatch.delitem(sys.modules, name)


def test_what_a_server_imports_late_is_missed_at_once(monkeypatch):
    forget(monkeypatch, "budgetbandits.service.http.app")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError) as missed:
        import_module("budgetbandits.service.http.app")
    assert missed.value.name == "jinja2"


WITHOUT = """
import sys
for name in {missing!r}:
    sys.modules[name] = None
from budgetbandits.cli import main
for command in {commands!r}:
    sys.argv = ["budgetbandits", *command]
    try: main()
    except SystemExit as end: print(command[0], "ends with", end.code, file=sys.stderr)
"""


def said_without(missing, commands, folder):
    """What these commands say on stderr where the packages are not installed; a traceback ends them all."""
    code = WITHOUT.format(missing=list(missing), commands=[[str(word) for word in command] for command in commands])
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_command_whose_extra_is_not_installed_says_which(problem, tmp_path):
    only_lab = set(EXTRAS["lab"]) - set(EXTRAS["service"])
    commands = [
        ["run", "paper", "--out", "a"], ["paper", "--out", "b"], ["leaderboard", "--out", "c"], ["report", "d"],
        ["recommend", "--arms", 3, "--budget", 100], ["compare", "d"], ["plot", "d", "--out", "f.png"], ["view", "d"],
    ]  # fmt: skip
    # what needs no extra but the command line's goes on
    others = [["policies"], ["simulate", problem, "--policy", "bts", "--budget", 10, "--runs", 2]]
    said = said_without(only_lab, commands + others, tmp_path)
    assert (
        said.count("; pip install 'budgetbandits[lab]', or '.[lab]' in a clone\n")
        == said.count("ends with 2")
        == len(commands)
    )
    assert said.count("ends with") == len(commands)
    only_service = set(EXTRAS["service"]) - set(EXTRAS["lab"])
    said = said_without(only_service, [["serve", "--port", 18_731], ["demo", "--serve", "--port", 18_731]], tmp_path)
    assert (
        said.count("not installed; pip install 'budgetbandits[service]', or '.[service]' in a clone\n")
        == said.count("ends with 2")
        == 2
    )


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ("serve --port 1", "service"), ("campaign list", "service"), ("key create", "service"),
        ("webhook list", "service"), ("shared-budget list", "service"), ("backup f", "service"), ("restore", "service"),
        ("demo --serve", "service"), ("--plugin mine.py serve", "service"), ("--plugin=mine.py key", "service"),
        ("demo", "lab"), ("run serve", "lab"), ("demo --help", "lab"), ("--plugin", "lab"),
    ],
)  # fmt: skip
def test_without_the_command_line_the_extra_of_the_command_is_named(words, extra, monkeypatch, capsys):
    forget(monkeypatch, "budgetbandits.cli")
    monkeypatch.delattr(budgetbandits, "cli", raising=False)
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.setattr(sys, "argv", ["budgetbandits", *words.split()])
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr().err
    assert (end.value.code, said) == (
        2,
        f"error: this command is in an extra; pip install 'budgetbandits[{extra}]', or '.[{extra}]' in a clone\n",
    )


@pytest.mark.parametrize(("words", "code"), [(["--help"], 0), ([], 2), (["--version"], 0)])
def test_the_core_alone_has_help_and_a_version(words, code, tmp_path):
    """As after `pip install .`: no package of any extra can be imported."""
    hidden = ", ".join(repr(name) for name in sorted({name for names in EXTRAS.values() for name in names}))
    script = (
        f"import sys; sys.modules |= dict.fromkeys([{hidden}]); sys.argv = ['budgetbandits', *{words!r}]; "
        "from budgetbandits.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (code, "")
    if words == ["--version"]:
        assert done.stdout == f"budgetbandits {budgetbandits.__version__}\n"
    else:
        assert "pip install 'budgetbandits[lab]', or '.[lab]' in a clone:\n  demo, simulate" in done.stdout
        assert max(map(len, done.stdout.splitlines())) < 90


def test_the_help_of_the_core_names_every_command():
    top = typer.main.get_command(app)
    assert sorted((*LAB_COMMANDS, *SERVICE_COMMANDS)) == sorted(top.commands)


def test_the_demo_names_the_command_as_it_can_be_called(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/home/me/env/bin/budgetbandits"])
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert own_command() == "budgetbandits"
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert own_command() == "/home/me/env/bin/budgetbandits"
    monkeypatch.setattr(sys, "argv", ["/home/me/env/lib/budgetbandits/__main__.py"])
    assert own_command() == f"{sys.executable} -m budgetbandits"
    monkeypatch.setattr("budgetbandits.cli.demo.own_command", lambda: "env/bin/budgetbandits")
    for name in ("simulate_all", "show"):
        monkeypatch.setattr(f"budgetbandits.cli.demo.{name}", lambda *given, **more: None)
    said = " ".join(run("demo").stdout.split())
    assert "Your own: env/bin/budgetbandits problem uniform-bernoulli > my.toml, then env/bin/budgetbandits" in said


def test_the_client_says_which_extra_it_is_in(monkeypatch):
    forget(monkeypatch, "budgetbandits.client")
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(
        MissingExtra,
        match=r"^the client needs httpx; pip install 'budgetbandits\[client\]', or '\.\[client\]' in a clone$",
    ):
        import_module("budgetbandits.client")


def test_the_packages_of_the_extras_are_those_of_the_project():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    for extra, packages in EXTRAS.items():
        wanted = [re.match(r"[\w-]+", text).group() for text in project["optional-dependencies"][extra]]
        assert {name.replace("-", "_") for name in wanted} <= set(packages), extra


def test_bounds_as_json_and_as_a_table(problem):
    done = run("bounds", problem, "--budget", 50_000, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    record = json.loads(done.stdout)
    assert [arm["arm"] for arm in record["arms"]] == list(Problem.load(problem).names)
    worse = [arm for arm in record["arms"] if not arm["best"]]
    assert len(worse) == 3
    for arm in worse:
        assert arm["pulls"] == pytest.approx(arm["first_pulls"] + arm["lucky_samples"] + arm["waiting"])
    assert record["upper"]["paper"] == pytest.approx(sum(arm["regret"] for arm in worse))
    assert 0 < record["constants"]["lower"] < record["constants"]["bts"] < record["constants"]["ucb_bv1"]
    assert record["optimum"]["low"] == record["optimum"]["high"] == pytest.approx(record["best_ratio"] * 50_000)
    table = run("bounds", problem, "--budget", 50_000, "--chain", "sharp").stdout
    assert "sharp chain" in table
    assert f"{record['upper']['sharp']:,.0f}" in table


def test_the_lower_bound_is_a_slope_and_has_no_value_at_a_budget(problem):
    """The growth per ln B is the same text at any budget; nothing is multiplied by ln B."""
    growth = []
    for budget in (1_000, 1_000_000):
        said = run("bounds", problem, "--budget", budget).stdout
        growth.append(said[said.index("growth per ln B, as B → ∞") :])
    assert growth[0] == growth[1]
    lower = json.loads(run("bounds", problem, "--budget", 1_000, "--json").stdout)["constants"]["lower"]
    assert re.search(rf"any good policy, at least +{lower:.1f}\n", growth[0])


def test_a_bound_that_says_nothing_says_so(problem):
    assert "says nothing" in run("bounds", problem, "--budget", 100).stdout
    assert "says nothing" not in run("bounds", problem, "--budget", 100_000_000).stdout


def test_bounds_at_the_end_of_gamma_are_null(problem):
    record = json.loads(run("bounds", problem, "--budget", 100, "--gamma", 1, "--json").stdout)
    assert record["upper"] == {"paper": None, "sharp": None}
    assert "∞" in run("bounds", problem, "--budget", 100, "--gamma", 0).stdout


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (("--budget", 0.5), "from 1 upwards"),
        (("--budget", 100, "--gamma", 2), "from 0 to 1"),
        (("--budget", 100, "--chain", "best"), "paper or sharp"),
    ],
)
def test_bounds_say_what_is_wrong(problem, options, remedy):
    done = run("bounds", problem, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert remedy in done.stderr


def test_a_file_that_cannot_be_read_is_not_called_output(problem, monkeypatch):
    def unreadable(*_):
        raise FileNotFoundError(2, "No such file or directory", "its-data.json")

    monkeypatch.setattr(Problem, "load", unreadable)
    done = run("bounds", problem, "--budget", 100)
    assert done.stderr == "error: cannot read or write its-data.json: No such file or directory\n"
