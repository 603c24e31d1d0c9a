"""The page of a study in a browser: what its script adds."""

import re

import pytest

from budgetbandits.report import page, study
from made_up import GROUPS, POLICIES
from made_up import study as made_up

pytestmark = pytest.mark.browser
LEVELS = dict(zip(POLICIES, (1.0, 2.0, 3.0, 4.0, 500.0), strict=True))


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    results = made_up(lambda _g, _n, policy, budget: LEVELS[policy] * budget / 100.0, groups=GROUPS[:1])
    results.record.update(
        seed=0,
        command="",
        file=None,
        begun="",
        engine="auto",
        versions={"budgetbandits": "0", "python": "3"},
        parameters=[{}] * 5,
    )
    for problem in results.record["problems"]:
        problem.update(gaps=None, origin="", names=["a", "b", "c"], reward_means=[0.5] * 3, cost_means=[0.4, 0.5, 0.6])
    (folder / "report.html").write_text(page.render(study.content(results, folder)), encoding="utf-8")
    return (folder / "report.html").as_uri()


def test_a_linear_axis_fits_the_policies_that_are_left(chromium, address):
    shown, complaints = chromium.new_page(viewport={"width": 1280, "height": 900}), []
    shown.on("pageerror", lambda error: complaints.append(str(error)))
    shown.goto(address)
    shown.locator("#regret label", has_text="Linear").click()
    drawn = shown.locator("#regret .plot.wide.linear svg")
    line = drawn.locator(".policy-3.line > path")
    before = line.bounding_box()["height"]
    shown.locator("#regret .keys button", has_text="KUBE").click()
    assert line.bounding_box()["height"] > 50 * before  # 4 instead of 500 is now the highest
    texts = [text for text in drawn.locator(".rescaled-tick text").all_text_contents() if text != "0"]
    assert all(re.fullmatch(r"\d+", text) and int(text) <= 212 for text in texts)
    shown.locator("#regret .keys button", has_text="KUBE").click()
    assert line.bounding_box()["height"] == pytest.approx(before)
    assert drawn.locator(".rescaled, .rescaled-tick, .unscaled-tick").count() == 0
    assert complaints == []
    shown.close()
