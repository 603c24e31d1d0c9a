"""An export of a campaign is a log that other policies can be evaluated on."""

import csv
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetbandits import off_policy
from budgetbandits.service.audit.export import export
from budgetbandits.service.feedback import FeedbackReport
from budgetbandits.service.request import checked_options
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore
from clock import Clock

BRINGS = {"small": 0.5, "large": 0.8}
COSTS = {"small": 0.1, "large": 0.5}


FIRST = st.sampled_from("'=+-@") | st.sampled_from("a“")
NAMES = st.lists(
    st.builds(lambda first, rest: first + rest, st.text(FIRST, min_size=1, max_size=3), st.text("'-=% x", max_size=4)),
    min_size=2, max_size=4, unique=True,
).filter(lambda names: all(name == name.strip() for name in names))  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(names=NAMES)
def test_an_export_gives_the_names_of_arms_and_segments_back_exactly(names):
    """Also those that a spreadsheet would compute, or that begin as cells do that were kept from it. A name stands in
    the list of arms that could be chosen as well, which must be the same name."""
    with tempfile.TemporaryDirectory() as folder, SQLiteStore(f"{folder}/money.db") as store:
        engine = DecisionService(store, Clock(1e9))
        engine.create("ads", "bts-paced", 100.0, dict.fromkeys(names, 1.0), propensity_draws=1)

        def play(tx):
            for number, name in enumerate(names):
                request = checked_options(segment=name, arms=[name])
                [made] = engine.decision_task("ads", f"{number}", options=request).work(tx)
                engine.feedback_task(FeedbackReport(made.decision, 0.5, 0.5), "ads").work(tx)

        store.write(play)
        logs = []
        for ending in ("csv", "parquet"):
            export(store, "ads", Path(folder, f"decisions.{ending}"))
            logs.append(off_policy.read_log(Path(folder, f"decisions.{ending}")))
        lines = Path(folder, "decisions.csv").read_text(encoding="utf-8").splitlines()
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in csv.reader(lines) for cell in row)
    for log in logs:
        assert set(log.arms) == set(log.segments) == set(names)
    assert logs[0].arms == logs[1].arms
    assert logs[0].situations == logs[1].situations


def test_an_export_says_what_another_policy_would_have_earned(tmp_path):
    """With money for half of the requests to be answered by the dearer arm, both are chosen again and again. Ids are
    drawn anew each time; an estimate five standard errors away is a false alarm in 1 of a million runs."""
    rng, requests = random.Random(3), 400
    with SQLiteStore(tmp_path / "money.db") as store:
        engine, expected = DecisionService(store, Clock(1e9)), requests + 100
        engine.create("routed", "bts-paced", 0.3 * expected, {"small": 0.2, "large": 1.0}, horizon=expected,
                      propensity_draws=20)  # fmt: skip

        def play(tx):
            for number in range(requests - 2):
                [made] = engine.decision_task("routed", f"{number}").work(tx)
                reward, cost = float(rng.random() < BRINGS[made.arm]), COSTS[made.arm]
                engine.feedback_task(FeedbackReport(made.decision, reward, cost), "routed").work(tx)

        store.write(play)
        engine.feedback(engine.decide("routed", "failed").decision, failed=True)
        engine.decide("routed", "not told")
        for ending in ("csv", "parquet"):
            assert export(store, "routed", tmp_path / f"decisions.{ending}") == requests
    log, same = (off_policy.read_log(tmp_path / f"decisions.{ending}") for ending in ("csv", "parquet"))
    assert (len(log), log.left_out, set(log.arms)) == (requests - 1, 1, set(BRINGS))
    assert (log.reward == same.reward).all()
    assert (log.propensity == same.propensity).all()
    for arm in BRINGS:
        found = off_policy.evaluate(log, off_policy.one_arm(log, arm))
        assert found.problem == ""
        for value, true in ((found.reward, BRINGS[arm]), (found.cost, COSTS[arm])):
            assert value.doubly_robust.value == pytest.approx(true, abs=5 * value.doubly_robust.error + 0.01)
