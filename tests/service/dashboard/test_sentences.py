"""Sentences and sums of the pages that must be true in the rarer cases: late costs, leases, many arms, filters."""

import re
from itertools import pairwise

import pytest

from browsing import Browser, seen
from budgetbandits.formatting.datetimes import Times
from budgetbandits.service.http.auth import make_key
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.standing import pace
from served import pull

# --- overruns ---------------------------------------------------------------------------------------------------------


def overrun(store, cost, hold=None, caps=(1.0, 1.0), **terms):
    """A campaign that is frozen by this cost of its arm b."""
    store.engine.create("ads", "bts", 1.0 + sum(caps), dict(zip("ab", caps, strict=True)), **terms)
    made = store.engine.decide("ads", "1", arms=["b"], holds=None if hold is None else {"b": hold})
    others = 0 if hold is None else int(sum(caps))  # what they hold cannot pay for it
    open = [store.engine.decide("ads", f"other {number}", arms=["a"]).decision for number in range(others)]
    store.engine.feedback(made.decision, cost=cost, reward=1.0)
    for other in open:
        store.engine.void(other)
    return made.decision[:8]


def test_a_cost_below_the_cap_that_came_too_late_is_not_said_to_be_above_it(store, admin):
    engine = store.engine
    engine.create("ads", "bts", 1.0, {"a": 1.0, "b": 1.0}, hold_seconds=60.0, on_expire="release")
    late = engine.decide("ads", "1", arms=["b"])
    store.clock.now += 61.0
    engine.expire_due()
    engine.feedback(engine.decide("ads", "2").decision, cost=1.0, reward=1.0)
    engine.feedback(late.decision, cost=0.5, reward=1.0)
    page = seen(admin("GET", "/campaigns/ads"))
    assert (
        f"Decision {late.decision[:8]} of arm b cost 0.5000. It was reported after its hold had been released" in page
    )
    assert "0.5000 is booked apart, as overrun" in page
    assert "Frozen by an overrun of b, 0.5000 booked apart" in page
    assert "0.5000 booked apart as overrun" in seen(admin("GET", "/"))
    assert "0.5000 stays booked apart; another overrun freezes again" in seen(admin("GET", "/campaigns/ads/resume"))
    engine.set_status("ads", "active")
    engine.top_up("ads", 9.0)
    again = seen(admin("GET", "/campaigns/ads?range=day"))
    assert "report costs before holds expire, or change the terms : hold for longer, or charge what expires" in again
    for text in (page, again, seen(admin("GET", "/campaigns/ads/events")), seen(admin("GET", "/"))):
        assert "above" not in text
        assert "higher cap" not in text


@pytest.mark.parametrize(
    ("hold", "caps", "remedy"),
    [
        (None, (2.0, 1.0), "If the arm can cost that much, raise its cap ."),
        (None, (1.0, 1.0), "If the arm can cost that much, raise its cap ."),
        (0.25, (1.0, 3.0), "If requests can cost that much, hold more for them, up to the arm's cap of 3.0000"),
    ],
)
def test_the_remedy_for_an_overrun_is_one_that_can_help(store, admin, hold, caps, remedy):
    id, held = overrun(store, 1.5, hold, caps), hold or caps[1]
    said = f"Decision {id} of arm b cost 1.5000, more than the {held:.4f} that was held for it"
    frozen = seen(admin("GET", "/campaigns/ads"))
    assert said in frozen
    assert remedy in frozen
    store.engine.set_status("ads", "active")
    again = seen(admin("GET", "/campaigns/ads?range=day"))
    assert said in again
    assert remedy in again
    if "raise its cap" in remedy:
        assert "change-cap?arm=b&amp;cap=1.5000" in admin("GET", "/campaigns/ads?range=day").text
        store.engine.change_terms("ads", {"caps": {"b": 1.5}, "budget": 20.0})
        made = store.engine.decide("ads", "again", arms=["b"])
        store.engine.feedback(made.decision, cost=1.5, reward=1.0)
        assert (store.engine.account("ads").status, store.engine.account("ads").spent) == ("active", 2_500_000)


# --- leases -----------------------------------------------------------------------------------------------------------


def test_money_that_leases_have_spent_is_counted_once(store, admin):
    store.engine.create("ads", "bts", 40.0, {"a": 1.0, "b": 1.0}, lease=10.0, lease_seconds=1000.0)
    for number in range(8):
        store.engine.feedback(store.engine.decide("ads", f"{number}").decision, cost=1.0, reward=1.0)
    assert "Spent 8.00 of 40.00 20.0 % of the budget Held, leased 2.00 0 open decisions Left 30.00" in seen(
        admin("GET", "/campaigns/ads")
    )
    listed = seen(admin("GET", "/"))
    assert "Spent 8.00 of 40.00 in 1 campaign Held 2.00 until feedback comes, or leased Left 30.00" in listed
    assert "8.00 of 40.00 30.00 left" in listed
    told = admin("GET", "/?format=json").json()
    assert [each["spent_with_leases"] for each in (*told["sums"], *told["campaigns"])] == [8.0, 8.0]
    only = Browser(store.app, make_key(store, ["read"], 0.0, campaign="ads"))
    store.engine.create("other", "bts", 40.0, {"a": 1.0, "b": 1.0}, lease=10.0, lease_seconds=1000.0)
    store.engine.feedback(store.engine.decide("other", "1").decision, cost=1.0, reward=1.0)
    assert admin("GET", "/?format=json").json()["sums"][0]["spent_with_leases"] == 9.0
    assert only("GET", "/?format=json").json()["sums"][0]["spent_with_leases"] == 8.0


def test_nobody_is_blocked_while_a_lease_has_money(store, admin):
    """All but a lease's 2.00 is held: two more decisions are made under it, and then none."""
    store.engine.create("ads", "bts", 40.0, {"a": 1.0, "b": 1.0}, lease=10.0, lease_seconds=1000.0)
    for number in range(8):
        store.engine.feedback(store.engine.decide("ads", f"{number}").decision, cost=1.0, reward=1.0)
    store.engine.decide_many("ads", "batch", 30)
    page, listed = (seen(admin("GET", path)) for path in ("/campaigns/ads", "/"))
    assert "Nearly exhausted. 0.00 left next to leases, one of which has 2.00. Only that lease makes decisions" in page
    assert "No decision is made until the cost" not in page
    assert "Nearly exhausted 0.00 left next to leases, one of which has 2.00" in listed
    for number in range(2):
        assert store.engine.decide("ads", f"more {number}").arm in "ab"
    assert "No decision is made until the cost" in seen(admin("GET", "/campaigns/ads?range=day"))
    assert "Blocked by holds" in seen(admin("GET", "/?order=name"))


# --- shares, filters, pages of the list -------------------------------------------------------------------------------


def test_shares_of_spend_are_of_all_that_was_spent(store, admin, monkeypatch):
    """Arms that are not compared with the others have spent as well."""
    monkeypatch.setattr("budgetbandits.service.dashboard.arms.ARMS_COMPARED_MAX", 1)
    store.engine.create("ads", "bts", 40.0, {"a": 3.0, "b": 3.0})
    for number, (arm, cost) in enumerate([("a", 0.5), ("a", 0.5), ("b", 3.0)]):
        store.engine.feedback(store.engine.decide("ads", f"{number}", arms=[arm]).decision, cost=cost, reward=1.0)
    page = admin("GET", "/campaigns/ads").text
    assert re.findall(r'data-label="Share of spend">.*?<span>([^<]*)</span>', page, re.S) == ["25.0 %"]


@pytest.mark.parametrize(
    ("pulls", "words"),
    [
        ({"a": (8, 2), "b": (8, 2)}, r"Not known For the same reward an even split would have cost between \d"),
        ({"a": (60, 1), "b": (20, 10)}, r"What this saved \d+\.\d\d is what an even split would have cost on top"),
        ({"a": (20, 1), "b": (60, 10)}, r"What this saved Nothing An even split would have cost \d+\.\d\d less"),
    ],
    ids=["alike", "saved", "lost"],
)
def test_a_saving_is_said_only_where_it_can_be_told(store, admin, pulls, words):
    """Arms that bring 1 once in so many pulls."""
    store.engine.create("ads", "bts", 400.0, {"a": 1.0, "b": 1.0})
    for arm, (count, seldom) in pulls.items():
        for number in range(count):
            pull(store.engine, "ads", f"{arm}{number}", arms=[arm], cost=0.5, reward=float(number % seldom == 0))
    page = seen(admin("GET", "/campaigns/ads"))
    assert re.search(words, page)
    assert "the saving is estimated too high: by 5 to 9 % of the spend where all arms are the same" in page
    assert "Ratios are as if an arm's reward and price did not depend on each other." in page


def test_a_file_of_a_filtered_list_says_so(store, admin):
    store.engine.create("ads", "bts-paced", 40.0, {"a": 1.0, "b": 1.0})
    for number in range(3):
        store.engine.decide("ads", f"{number}", arms=["b"], segment="code")
    words = "Decisions Only held Only arm b Only segment code Earlier ones Time"
    assert words in seen(admin("GET", "/campaigns/ads/file?arm=b&segment=code&show=held&before=9"))
    assert "Decisions Time Decision" in seen(admin("GET", "/campaigns/ads/file"))


def test_a_page_beyond_the_last_says_so(store, admin):
    store.engine.create("ads", "bts", 40.0, {"a": 1.0, "b": 1.0})
    assert "The list has one page, and this is page 5. Show the last" in seen(admin("GET", "/?page=5"))
    assert "No campaign is in this group" in seen(admin("GET", "/?group=stopped"))


def test_a_head_is_answered_as_the_page_it_is_of(store, admin):
    stranger = Browser(store.app)
    assert [stranger("HEAD", path).status_code for path in ("/sign-in", "/", "/campaigns/ads")] == [200, 303, 303]
    assert admin("HEAD", "/").status_code == 200


@pytest.mark.parametrize("days", [3, 399, 401, 5000])
@pytest.mark.parametrize("zone", ["", "Europe/Berlin"])
def test_a_time_axis_has_dates_up_to_its_end(days, zone):
    times, begin = Times.of(zone, 0.0), 1_700_000_000.0
    made = times.midnights(begin, begin + 86_400.0 * days, 8)
    assert 2 <= len(made) <= 8
    assert {f"{times.local(at):%H:%M}" for at in made} == {"00:00"}
    assert begin < made[0] < begin + 86_400.0 * (1 + days / 8)
    assert made[-1] > begin + 86_400.0 * days * 6 / 8 - 86_400.0
    assert all(later > at for at, later in pairwise(made))


# --- what is not known is not said ------------------------------------------------------------------------------------


def test_an_arm_without_feedback_has_no_chance_of_being_best(store, admin):
    engine = store.engine
    engine.create("ads", "bts", 40.0, {"a": 1.0, "b": 2.0})
    page, told = admin("GET", "/campaigns/ads").text, admin("GET", "/campaigns/ads?format=json").json()
    assert page.count('data-label="Chance of being best"><span class="zero">–</span>') == 2
    for arm in told["arms"]:
        assert [arm[name] for name in ("chance_of_best", "ratio", "price", "mean_reward")] == [None] * 4
    engine.feedback(engine.decide("ads", "1", arms=["b"]).decision, cost=0.5, reward=1.0)
    a, b = admin("GET", "/campaigns/ads?format=json").json()["arms"]
    assert a["chance_of_best"] is None
    assert 0.0 < b["chance_of_best"] < 1.0


PACED = [
    # seconds since it was created, decisions told of 1 unit each, words on the list
    (60.0, 0, "Just begun"),
    (60.0, 1, "Just begun"),  # one largest cap ahead, as it may be
    (3600.0, 8, "4.4 % ahead"),
    (50_000.0, 50, "On plan"),
    (50_000.0, 10, "40.0 % behind"),
    (90_000.0, 10, "80.0 % behind"),
]


@pytest.mark.parametrize(("seconds", "decisions", "words"), PACED)
def test_the_pace_is_said_as_a_share_of_the_budget_and_not_before_it_means_anything(store, seconds, decisions, words):
    """1 unit a decision, 100 units over 100,000 seconds: the first minute's plan is nearly nothing."""
    engine, now = store.engine, store.clock.now
    engine.create("ads", "bts", 100.0, {"a": 1.0, "b": 1.0})
    for number in range(decisions):
        engine.feedback(engine.decide("ads", str(number)).decision, cost=1.0, reward=1.0)
    engine.change_terms("ads", {"pace_seconds": 100_000.0})
    [glance] = store.read(lambda tx: tx.pages().summaries([tx.campaign("ads").id], now))
    made = pace(glance, now + seconds)
    assert made.words == words
    assert -1.0 <= made.share <= 1.0


# --- a budget for so many requests ------------------------------------------------------------------------------------


def answered(engine, budget, small, large):
    """A campaign for 200 requests; ``small`` has the better ratio, 0.1 for 0.05, and ``large`` brings 0.9 for 0.5."""
    engine.create("ads", "bts-paced", budget, {"small": 0.1, "large": 1.0}, horizon=200)
    for arm, count, reward, cost in (("small", small, 0.1, 0.05), ("large", large, 0.9, 0.5)):
        for number in range(count):
            engine.feedback(engine.decide("ads", f"{arm} {number}", arms=[arm]).decision, cost=cost, reward=reward)


def test_a_budget_for_requests_has_a_pace_and_an_end(store, admin):
    answered(store.engine, 10.0, 0, 19)
    page, told = seen(admin("GET", "/campaigns/ads")), admin("GET", "/campaigns/ads?format=json").json()
    assert "Pace 8.55 ahead 95.0 % of the money for 9.5 % of the requests" in page
    assert "Money lasts for 20 of 200 requests at what each has cost" in page
    assert told["pace"] == {"plan": pytest.approx(0.95), "behind_share": pytest.approx(-0.855)}
    assert told["requests"]["money_lasts_for"]["median"] == pytest.approx(20.0)
    assert "85.5 % ahead of the budget 20 of 200 requests" in seen(admin("GET", "/"))
    [line] = admin("GET", "/?format=json").json()["campaigns"]
    assert line["money_lasts_for"] == pytest.approx(20.0)


def test_the_list_and_the_page_count_the_same_requests_when_costs_differ(store, admin):
    """Nine requests for 1 and one for 91 leave 1,000 for about 80 more, not for 100 as their mean alone says."""
    store.engine.create("ads", "bts-paced", 1100.0, {"small": 1.0, "large": 100.0}, horizon=1000)
    for number in range(10):
        arm, cost = ("large", 91.0) if number == 9 else ("small", 1.0)
        pull(store.engine, "ads", f"{number}", cost=cost, reward=1.0, arms=[arm])
    roll_up(store)
    [line] = admin("GET", "/?format=json").json()["campaigns"]
    page = admin("GET", "/campaigns/ads?format=json").json()
    assert line["money_lasts_for"] == pytest.approx(page["requests"]["money_lasts_for"]["median"])
    assert line["money_lasts_for"] == pytest.approx(89.5, abs=0.05)


def test_a_budget_that_lasts_for_all_requests_says_what_is_left_over(store, admin):
    answered(store.engine, 100.0, 20, 20)  # 11 for 40 requests
    page = seen(admin("GET", "/campaigns/ads"))
    assert "Money lasts for All 200 requests 45.00 would be left over; 95 %: 2" in page
    assert "All 200 requests" in seen(admin("GET", "/"))


@pytest.mark.parametrize(("budget", "first"), [(150.0, "large"), (8.0, "small")])
def test_arms_are_ranked_by_what_a_budget_for_requests_is_spent_by(store, admin, budget, first):
    """With money for large in every request it is worth most, though its ratio is the smaller one; with so little that
    requests are not scarce, the ratio decides."""
    answered(store.engine, budget, 30, 10)
    page = admin("GET", "/campaigns/ads").text
    told = {arm["name"]: arm for arm in admin("GET", "/campaigns/ads?format=json").json()["arms"]}
    assert told["small"]["ratio"]["median"] > told["large"]["ratio"]["median"]
    assert re.findall(r'<span class="name">(\w+)</span>', page)[0] == first
    assert told[first]["chance_of_best"] == max(arm["chance_of_best"] for arm in told.values()) > 0.6
    assert sum(arm["chance_of_best"] for arm in told.values()) == pytest.approx(1.0)
    assert told[first]["worth"]["low"] < told[first]["worth"]["median"] < told[first]["worth"]["high"]
    for words in ("Worth of a request", "Chance of being worth most"):
        assert words in page
    assert "Reward per unit" not in page
