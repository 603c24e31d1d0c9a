"""The command for budgets over several campaigns."""

import json

from served import pull
from stores import tamper


def test_a_shared_budgets_life(say, engine, tmp_path):
    assert "No shared budgets yet" in say("shared-budget", "list")
    made = say("shared-budget", "create", "marketing", "--budget", "3", "--period", "month", "--unspent", "carry")
    assert "left 3.00" in made
    assert "unspent money carries over" in made
    assert "No campaigns yet" in made
    arms = ["--arm", "search=1", "--arm", "mail=0.5"]
    assert "shared budget marketing" in say("campaign", "create", "ads", "--budget", "5", *arms,
                                            "--shared-budget", "marketing")  # fmt: skip
    pull(engine, "ads", "1", cost=0.75, reward=1.0, arms=["search"])
    assert json.loads(say("shared-budget", "show", "marketing", "--json"))["campaigns"][0]["spent"] == 0.75
    assert "budget 8.00" in say("shared-budget", "change", "marketing", "budget=8")
    assert "budget 8.00" in say("shared-budget", "reset-clock", "marketing")
    assert "7.25" in say("shared-budget", "list")
    say("shared-budget", "change", "marketing", "budget=x", fails="is no number")
    say("shared-budget", "change", "marketing", "currency=EUR", fails="is no change")
    say("shared-budget", "show", "sales", fails="no shared budget 'sales'")
    assert "agrees with the events of its campaigns" in say("shared-budget", "verify", "marketing")
    tamper(tmp_path / "budgetbandits.db", "UPDATE shared_budget SET spent = 1")
    assert "1 difference between" in say("shared-budget", "verify", "marketing", code=1)
    tamper(tmp_path / "budgetbandits.db", "UPDATE shared_budget SET spent = 750000")
    assert "shared budget" not in say("campaign", "change", "ads", "shared_budget=none")
    assert "No campaigns yet" in say("shared-budget", "show", "marketing")
