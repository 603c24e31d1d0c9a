"""Colours that every eye tells apart, and looks that no two policies share."""

import itertools
import random

import numpy as np
import pytest

from budgetbandits.errors import BadParameter
from budgetbandits.figures import style
from budgetbandits.policies import PAPER_POLICIES
from budgetbandits.web.assets import DARK, LIGHT, SERIES

# Machado, Oliveira, Fernandes (2009): what is left of linear RGB without one kind of cone.
EYES = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colour):
    value = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIE L*a*b* of linear sRGB, white D65."""
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    xyz = np.clip(to_xyz @ rgb, 0, None) / [0.95047, 1.0, 1.08883]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(first, second):
    """WCAG's contrast of two colours."""
    light = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) + 0.05 for colour in (first, second))
    return light[1] / light[0]


def test_lab_agrees_with_published_values():
    assert lab(linear("#ffffff")) == pytest.approx([100, 0, 0], abs=0.02)
    assert lab(linear("#ff0000")) == pytest.approx([53.24, 80.09, 67.20], abs=0.02)


@pytest.mark.parametrize("colours", [LIGHT, DARK])
@pytest.mark.parametrize("eye", EYES)
def test_every_eye_tells_the_colours_apart(colours, eye):
    seen = {name: lab(np.array(EYES[eye]) @ linear(colours[name])) for name in SERIES}
    for first, second in itertools.combinations(SERIES, 2):
        assert np.linalg.norm(seen[first] - seen[second]) >= 14, (first, second)


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_colours_stand_out_from_the_page(colours):
    assert all(contrast(colours[name], colours["bg"]) >= 2.95 for name in SERIES)
    assert all(contrast(colours[name], colours["bg"]) >= 4.5 for name in ("ink", "ink2", "ink3"))


def test_light_and_dark_name_the_same_colours_and_share_none():
    assert list(LIGHT) == list(DARK)
    assert not set(LIGHT.values()) & set(DARK.values())
    for colours in (LIGHT, DARK):
        assert len(set(colours.values())) == len(colours)


def test_no_two_of_thirty_policies_share_colour_and_line_and_none_of_330_everything():
    styles = style.series_styles([f"policy-{i}" for i in range(30)])
    assert len({(look.series, str(look.line)) for look in styles}) == 30
    assert len({str(style.series_style(place)) for place in range(330)}) == 330
    assert len({look.marker for look in styles[:11]}) == 11


def test_neighbours_differ_in_colour_and_line_wherever_the_papers_policies_stand():
    rng = random.Random(16)
    for _ in range(200):
        policies = [*PAPER_POLICIES, *(f"mine-{i}" for i in range(rng.randrange(12)))]
        rng.shuffle(policies)
        policies = policies[: rng.randrange(2, 14)]
        styles = style.series_styles(policies, PAPER_POLICIES)
        for first, second in itertools.pairwise(styles):
            assert first.series != second.series
            assert first.line != second.line
        assert len({(look.series, str(look.line)) for look in styles}) == len(styles)


@pytest.mark.parametrize("count", range(1, 7))
def test_up_to_six_policies_of_a_figure_have_a_colour_each(count):
    """Whichever of the paper's are among them, and wherever they stand."""
    own = [f"own-{number}" for number in range(count)]
    for size in range(min(count, len(PAPER_POLICIES)) + 1):
        for policies_known in itertools.combinations(PAPER_POLICIES, size):
            for at in range(count - size + 1):
                policies = [*own[:at], *policies_known, *own[at : count - size]]
                assert (
                    len({policy_style.series for policy_style in style.series_styles(policies, PAPER_POLICIES)})
                    == count
                ), policies


def test_the_papers_policies_look_the_same_in_every_study():
    alone = style.series_styles(["kube"], PAPER_POLICIES)[0]
    among = style.series_styles(["mine", "bts", "yours", "kube"], PAPER_POLICIES)[3]
    assert alone == among == style.series_style(PAPER_POLICIES.index("kube"))


def test_a_policy_added_behind_changes_no_other():
    few = style.series_styles(["mine", "bts", "yours"], PAPER_POLICIES)
    assert style.series_styles(["mine", "bts", "yours", "theirs"], PAPER_POLICIES)[:3] == few


@pytest.mark.parametrize("width", ["poster", 1.0, float("nan")])
def test_widths_that_cannot_be_are_refused(width):
    with pytest.raises(BadParameter, match=r"choose paper, page, phone|at least 2"):
        style.figure_spec(width)
