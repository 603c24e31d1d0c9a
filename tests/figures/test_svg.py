"""SVG for a page: names, points that speak, colours that a style sheet can change, the same bytes twice."""

import re
from xml.etree import ElementTree

import matplotlib
import pytest
from matplotlib.figure import Figure

from budgetbandits.figures import style, svg
from budgetbandits.web.assets import DARK, LIGHT, custom_properties


@pytest.fixture
def figure():
    spec = style.figure_spec("phone")
    with matplotlib.rc_context(style.settings(spec)):
        figure = Figure(figsize=(spec.width, 2))
        axes = figure.subplots()
        (line,) = axes.plot([1, 2], [3, 4], marker="o", color=spec.colours["series-1"])
        svg.tag(line, "line", 3, 0, points=[svg.Point(1, 3, 2.5, 3.5, "BTS <1>"), svg.Point(2, 4, None, None, "BTS 2")])
        band = axes.fill_between([1, 2], [2, 3], [4, 5], color=spec.colours["series-1"], alpha=0.2)
        svg.tag(band, "band", 3, 0)
    return figure


def elements(text):
    return list(ElementTree.fromstring(text).iter())


def test_a_policys_artists_and_points_carry_their_names_and_numbers(figure):
    elements_by_id = {
        element.get("id"): element for element in elements(svg.to_svg(figure, "here")) if element.get("id")
    }
    assert elements_by_id["here-panel-0-policy-3-line"].get("class") == "policy-3 line"
    assert elements_by_id["here-panel-0-policy-3-band"].get("data-policy") == "3"
    first, second = elements_by_id["here-panel-0-point-3-0"], elements_by_id["here-panel-0-point-3-1"]
    assert [first.get(f"data-{name}") for name in ("x", "y", "low", "high")] == ["1", "3", "2.5", "3.5"]
    assert first[0].text == "BTS <1>"
    assert second.get("class") == "policy-3 point"
    assert second.get("data-low") is None


def test_two_figures_in_a_page_share_no_id_and_refer_to_their_own(figure):
    texts = {prefix: svg.to_svg(figure, prefix) for prefix in ("one", "two")}
    for prefix, text in texts.items():
        ids = [element.get("id") for element in elements(text) if element.get("id")]
        assert len(set(ids)) == len(ids)
        assert all(name.startswith(prefix) for name in ids)
        used = re.findall(r'(?:href="|url\()#([^")]+)', text)
        assert used
        assert set(used) <= set(ids)


def test_every_colour_can_be_changed_by_the_page(figure):
    text = svg.to_svg(figure)
    assert f"var(--series-1, {LIGHT['series-1']})" in text
    assert not re.findall(r"(?<!, )#[0-9a-f]{6}", text)
    assert "font-family: var(--figure-font, 'DejaVu Sans')" in text
    spec = custom_properties()
    for name in set(re.findall(r"var\(--([a-z0-9-]+)", text)) - {"figure-font"}:
        assert f"--{name}: {LIGHT[name]};" in spec
        assert f"--{name}: {DARK[name]};" in spec


def test_the_element_is_whole_sized_in_pixels_and_the_same_each_time(figure):
    text = svg.to_svg(figure, label="regret & more")
    assert text.startswith("<svg ")
    assert "<metadata" not in text
    assert "<?xml" not in text
    root = ElementTree.fromstring(text)
    assert (root.get("width"), root.get("height")) == ("380", "192")
    assert root.get("aria-label") == "regret & more"
    assert text == svg.to_svg(figure, label="regret & more")
