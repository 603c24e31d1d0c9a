"""The benchmark of adverts: a table worked by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from budgetbandits.plugins import run_file

adverts = run_file(Path(__file__).parents[2] / "benchmarks/adverts.py")

TABLE = """\
ad_id,xyz_campaign_id,fb_campaign_id,age,gender,interest,Impressions,Clicks,Spent,Total_Conversion,Approved_Conversion
1,1178,7,30-34,M,15,7350,10,20.0,5,1
2,1178,7,30-34,M,16,7350,4,2.0,0,0
3,1178,7,30-34,M,17,7350,4,0.0,1,0
4,1178,7,30-34,M,18,7350,1,3.0,2,0
5,1178,7,30-34,F,15,7350,2,1.0,1,0
6,1178,7,30-34,F,15,7350,4,4.0,1,0
"""


def test_arms_are_the_adverts_of_one_age_and_gender_by_click(tmp_path):
    """The third advert cost nothing, the fourth has more conversions than clicks."""
    (tmp_path / "adverts.csv").write_text(TABLE)
    men, women = adverts.settings(tmp_path / "adverts.csv")
    assert men.reward_means == pytest.approx([0.99, 0.99 * 0.01 / 0.5])
    assert men.cost_means == pytest.approx([0.99, 0.99 * 0.5 / 2.0])
    assert women.reward_means == pytest.approx([0.99, 0.99 * 0.25 / 0.5])
    assert women.cost_means == pytest.approx([0.99 * 0.5, 0.99])
    assert adverts.measured([men, women], "thompson", steps=3, games=2).shape == (4,)
