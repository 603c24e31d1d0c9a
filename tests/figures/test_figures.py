"""Figures of studies: what is drawn is what was found, and nothing of Matplotlib is changed by it."""

import json
import re
import sys
from functools import cache
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from budgetbandits.__main__ import main
from budgetbandits.errors import BadParameter
from budgetbandits.experiments import Results, plots
from budgetbandits.experiments.statistics import student
from budgetbandits.figures import profiles, style, svg
from budgetbandits.figures.layout import Series, save
from budgetbandits.policies import label
from made_up import GROUPS, POLICIES, study

LEVELS = dict(zip(POLICIES, (10.0, 40.0, 20.0, 15.0, 12.0), strict=True))


def growing(_group, number, policy, budget):
    return LEVELS[policy] * (1.0 + 0.1 * number) * np.log(budget)


@pytest.fixture(scope="module")
def one():
    return study(growing, std=3.0, groups=GROUPS[:1])


@pytest.fixture(scope="module")
def several():
    return study(growing, std=lambda _g, number, policy, _b: 1.0 + number, problems=4, groups=GROUPS[:2])


@pytest.fixture(scope="module")
def drawn(one, several):
    """Figures of both studies, each drawn once for all tests that only look at it."""
    studies = {"one": one, "several": several}
    return cache(lambda study, figure, **options: studies[study].plot(figure, **options))


def marks(figure):
    """The points of a figure by policy, panel and place."""
    text = svg.to_svg(figure, "f").replace(' xmlns="http://www.w3.org/2000/svg"', "")
    uses = ElementTree.fromstring(text).iter("use")
    return {element.get("id"): element for element in uses if element.get("class", "").endswith("point")}


def test_points_and_their_words_are_the_means_and_intervals(one, drawn):
    points = marks(drawn("one", "regret"))
    assert len(points) == len(POLICIES) * len(one.budgets)
    for place, policy in enumerate(POLICIES):
        for i, budget in enumerate(one.budgets):
            point = points[f"f-panel-0-point-{place}-{i}"]
            values = one.values(budget=budget)[0, place]
            interval = student(values)
            told = [float(point.get(f"data-{name}")) for name in ("x", "y", "low", "high")]
            assert told == pytest.approx([budget, values.mean(), float(interval.low), float(interval.high)], rel=1e-5)
            assert point[0].text.startswith(f"{label(policy)}, budget ")


def test_over_several_problems_the_interval_is_that_of_their_means(several, drawn):
    means = several.values().mean(axis=-1)[:4, 0]
    point = marks(drawn("several", "regret", width="page"))["f-panel-0-point-0-2"]
    assert float(point.get("data-high")) == pytest.approx(float(student(means).high), rel=1e-5)


def test_lines_are_where_the_means_are(one, drawn):
    (panel,) = drawn("one", "regret").axes
    line = next(line for line in panel.lines if line.get_label() == "KUBE")
    assert line.get_ydata() == pytest.approx([one.values(budget=b)[0, 4].mean() for b in one.budgets])


def test_an_axis_is_logarithmic_or_not_as_asked(one):
    for log, scale in ((True, "log"), (False, "linear")):
        assert one.plot("regret", width="paper", log=log).axes[0].get_yscale() == scale


def test_axes_are_logarithmic_where_one_policy_is_ten_times_another(drawn):
    worse = study(lambda g, n, policy, b: growing(g, n, policy, b) * (20 if policy == "kube" else 1), 3.0,
                  groups=GROUPS[:2])  # fmt: skip
    (panel,) = drawn("one", "regret").axes
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "linear")
    assert [panel.get_yscale() for panel in worse.plot(width="phone").axes] == ["log", "log"]


def test_the_legend_names_every_policy_once_the_lowest_first(one):
    legend = one.plot("regret", width="paper").legends[0]
    assert [text.get_text() for text in legend.get_texts()] == ["BTS", "KUBE", "UCB-BV1", "PD-BwK", "ε-first"]


def test_the_legend_fits_the_width_with_eleven_long_names():
    names = [f"some-policy-of-ours:width=0.{i}" for i in range(1, 12)]
    results = study(lambda _g, _n, policy, b: b * (1 + names.index(policy)), 1.0, policies=names, groups=GROUPS[:1])
    figure = results.plot("regret", width="paper")
    assert figure.size_of(figure.legends[0])[0] <= figure.get_size_inches()[0]
    assert len(figure.legends[0].get_texts()) == 11


@pytest.mark.parametrize("width", ["paper", "phone"])
@pytest.mark.parametrize("figure", ["dots", "wins", "regret", "profile"])
def test_very_long_names_leave_room_for_the_figure(figure, width):
    """They lose their middle and stay different; a layout that collapsed would warn, and a warning is an error here."""
    names = ["bts", *(f"a-policy-whose-name-is-far-too-long-for-any-table:width=0.{i},other_width=17" for i in (1, 2))]
    results = study(lambda _g, n, policy, b: b + n + names.index(policy), 1.0, 2, policies=names, groups=GROUPS[:1])
    drawn = results.plot(figure, width=width)
    drawn.draw_without_rendering()
    assert drawn.axes[0].get_position().width > 0.2
    labels = drawn.legends[0].get_texts() if figure in ("regret", "profile") else drawn.axes[0].get_yticklabels()
    assert len({text.get_text() for text in labels}) == 3


def test_pulls_of_a_policy_that_is_not_loaded_say_what_to_load():
    results = study(1.0, policies=["bts", "nobody-knows-me"], groups=GROUPS[:1])
    results.record.update(seed=0, engine="auto")
    with pytest.raises(BadParameter, match=r"nobody-knows-me is no policy of the package; load .* --plugin mine.py"):
        results.plot("pulls")


def test_one_problem_is_not_called_several(one):
    assert one.plot("wins", width="phone").axes[0].get_title(loc="left").endswith("arms, 1 problem")


def test_the_lower_bounds_slope_is_drawn_as_it_is(one, drawn):
    slope = plots.lower_bound_of(one, GROUPS[0])
    (panel,) = one.plot("regret", lower_bound=True).axes
    rise = panel.lines[-1]
    x, y = rise.get_xdata(), rise.get_ydata()
    assert (y[-1] - y[0]) / np.log(x[-1] / x[0]) == pytest.approx(slope)
    assert len(drawn("one", "regret").axes[0].lines) == len(panel.lines) - 1


def test_dots_are_sorted_by_their_means(one, drawn):
    (panel,) = drawn("one", "dots", width="paper").axes
    assert [text.get_text() for text in panel.get_yticklabels()] == ["BTS", "KUBE", "UCB-BV1", "PD-BwK", "ε-first"]
    point = marks(drawn("one", "dots", width="paper"))["f-panel-0-point-1-0"]
    assert float(point.get("data-x")) == pytest.approx(one.values()[0, 1].mean(), rel=1e-5)


def test_one_budget_is_drawn_as_dots(one):
    single = study(growing, 3.0, groups=GROUPS[:1], budgets=[200.0]).plot(width="phone")
    assert len(marks(single)) == len(POLICIES)
    assert len(marks(one.plot(width="phone"))) == len(POLICIES) * len(one.budgets)


def test_standings_agree_with_who_is_best(several):
    standing, best = plots.standing(several), several.best()
    for row, (policy, sure) in enumerate(best.select("policy", "sure").iter_rows()):
        assert standing[row, POLICIES.index(policy)] == (plots.SURELY if sure else plots.UNSURELY)
        assert (standing[row] <= plots.UNSURELY).sum() == 1
    close = study(lambda _g, _n, policy, _b: 10.0 + 0.01 * POLICIES.index(policy), 5.0, groups=GROUPS[:1])
    assert plots.standing(close).tolist() == [[plots.UNSURELY, *[plots.CLOSE] * 4]]
    assert plots.standing(close, "reward").tolist() == [[plots.UNSURELY, *[plots.CLOSE] * 4]]


def test_wins_are_counted_in_the_bars(drawn):
    for panel in drawn("several", "wins", width="phone").axes:
        widths = np.array([bar.get_width() for bar in panel.patches]).reshape(len(POLICIES), 3)
        assert widths[:, :2].sum() == pytest.approx(100.0)


def test_a_profile_counts_problems_within_a_factor():
    times = profiles.factors(np.array([[1.0, 2.0, 4.0], [6.0, 3.0, 3.0], [0.0, 1.0, 0.0]]))
    assert times.tolist() == [[1.0, 2.0, 4.0], [2.0, 1.0, 1.0], [1.0, np.inf, 1.0]]
    assert profiles.within(times[:, 1], np.array([1.0, 1.99, 2.0, 1e9])) == pytest.approx(
        np.array([1, 1, 2, 2]) * 100 / 3
    )


def test_sorted_values_are_those_of_the_problems(several):
    (panel, _) = several.plot("quantiles", width=7).axes
    line = next(line for line in panel.lines if line.get_label() == "BTS")
    assert line.get_ydata() == pytest.approx(np.sort(several.values().mean(axis=-1)[:4, 0]))


def test_sorted_values_apart_are_logarithmic_and_what_is_0_is_left_out():
    low, high = np.array([0.0, 4.0, 5.0, 50.0, 500.0]), np.array([20.0, 40.0, 60.0, 80.0, 900.0])
    series = [Series(place, name, style.series_style(place)) for place, name in enumerate("ab")]
    figure = profiles.quantiles({"all": np.column_stack([low, high])}, series, style.figure_spec("page"))
    (panel,) = figure.axes
    assert panel.get_yscale() == "log"
    drawn = np.concatenate([line.get_ydata() for line in panel.lines])
    assert drawn[np.isfinite(drawn)].min() == pytest.approx(3.0)  # of a quarter of the problems
    figure.canvas.draw()
    assert panel.get_position().width > 0.5  # no mark at 0 is so far away that the panel shrinks


@pytest.mark.parametrize("figure", ["dots", "wins", "profile"])
def test_a_policy_keeps_its_number_and_looks_in_every_figure(drawn, figure):
    text = svg.to_svg(drawn("several", figure, width="phone"))
    for place, look in enumerate(style.series_styles(POLICIES, POLICIES)):
        assert re.search(rf'class="policy-{place} (line|fill)"', text)
        assert f"var(--{look.series}, " in text


@pytest.mark.parametrize(("figure", "width"), [("regret", "page"), ("dots", "paper"), ("wins", "phone")])
def test_figures_have_the_width_and_stay_inside_it(drawn, figure, width):
    figure_drawn = drawn("several", figure, width=width)
    assert figure_drawn.get_size_inches()[0] == pytest.approx(style.WIDTHS[width])
    whole = figure_drawn.get_tightbbox()
    assert whole.x0 >= -0.02
    assert whole.x1 <= style.WIDTHS[width] + 0.02


def test_nothing_of_matplotlib_is_changed(one, tmp_path):
    before, backend = dict(matplotlib.rcParams), matplotlib.get_backend()
    save(one.plot(dark=True, width="paper"), tmp_path / "a.png")
    shown, size = one.plot("dots", width="paper")._repr_png_()
    assert dict(matplotlib.rcParams) == before
    assert matplotlib.get_backend() == backend
    assert shown.startswith(b"\x89PNG")
    assert size["width"] == round(3.3 * 96)


def test_the_same_figure_is_the_same_file(one, tmp_path):
    first, second = (save(one.plot("dots", width="paper"), tmp_path / f"{i}.svg") for i in range(2))
    assert first.read_bytes() == second.read_bytes()
    assert b"CreationDate" not in save(Figure(), tmp_path / "a.pdf").read_bytes()  # without text, whose fonts take long


def test_a_single_panel_may_be_drawn_into_axes_of_the_users(one, several):
    axes = Figure().subplots()
    assert one.plot("regret", ax=axes) is axes
    assert len(axes.get_legend().get_texts()) == len(POLICIES)
    with pytest.raises(BadParameter, match="2 groups of problems, a panel each; leave out ax"):
        several.plot(ax=axes)
    with pytest.raises(BadParameter, match="a figure of its own"):
        one.plot("wins", ax=axes)


@pytest.mark.parametrize(
    ("figure", "options", "message"),
    [
        ("pie", {}, "unknown figure 'pie'; choose one of regret"),
        ("regret", {"budget": 200.0}, "does not take budget; it takes metric, deviations, log, lower_bound"),
        ("profile", {"metric": "reward"}, "use regret"),
        ("wins", {"metric": "spend"}, "compare by"),
        ("dots", {"budget": 3.0}, "no budget 3"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_remedy(one, figure, options, message):
    with pytest.raises(BadParameter, match=message):
        one.plot(figure, **options)


def test_plot_writes_a_figure(one, tmp_path, monkeypatch, capsys):
    def plot(*words):
        monkeypatch.setattr(sys, "argv", ["budgetbandits", "plot", str(tmp_path), *map(str, words)])
        monkeypatch.setattr(Results, "load", lambda folder: one)
        try:
            main()
        except SystemExit:
            return capsys.readouterr().err
        return capsys.readouterr().out

    out = tmp_path / "regret.svg"
    assert f"The figure is {out}" in plot("--out", out, "--width", "paper", "--deviations")
    assert out.stat().st_size > 3_000
    assert json.loads(plot("--out", out, "--figure", "dots", "--width", "paper", "--json")) == {"figure": str(out)}
    assert "end its name in .pdf, .svg, .png" in plot("--out", "regret.gif")
    assert "choose paper, page, phone, or a number of inches" in plot("--out", out, "--width", "poster")
    assert "figure 'dots' does not take deviations" in plot("--out", out, "--figure", "dots", "--deviations")


def test_the_command_names_every_figure():
    from budgetbandits.cli import study as command

    text = str(command.plot_command.__annotations__["figure"])
    assert all(name in text for name in plots.FIGURES)
