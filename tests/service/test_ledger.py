"""The rules of money, each by hand, and all together against a model that only adds and subtracts."""

import math
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from budgetbandits.errors import AlreadyResolved, BadParameter, HoldRefused
from budgetbandits.service.ledger import (
    DAY,
    LARGEST,
    Account,
    Hold,
    Limits,
    expire,
    place,
    settle,
    to_micros,
    to_units,
    top_up,
    void,
)

money = st.integers(0, 1000)


def test_a_hold_is_settled_for_what_it_cost():
    account, hold = place(Account(budget=100), 40)
    assert (account.held, account.spent, account.left) == (40, 0, 60)
    account, hold = settle(account, hold, 25)
    assert account == Account(budget=100, spent=25, today=25, requests_used=1)
    assert (hold.state, hold.charged, hold.overrun) == ("settled", 25, 0)


def test_a_voided_hold_is_free_again():
    account, hold = place(Account(budget=100), 40)
    account, hold = void(account, hold)
    assert (account, hold.state) == (Account(budget=100), "voided")


def test_the_whole_cap_or_nothing():
    account, _ = place(Account(budget=100), 70)
    with pytest.raises(HoldRefused, match="next to open holds") as refused:
        place(account, 31)
    assert refused.value.reason == "blocked_by_holds"
    with pytest.raises(HoldRefused, match="top up") as refused:
        place(Account(budget=100, spent=70), 31)
    assert refused.value.reason == "exhausted"
    assert place(account, 30)[0].left == 0


def test_refusals_lose_no_micro():
    """Amounts are shown as the campaign's money is: with as many decimals as any of it needs."""
    account = Account(budget=to_micros(100_000.5), spent=to_micros(100_000.4) - 1)
    with pytest.raises(HoldRefused, match=r"^0\.100001 left, 2\.000000 needed"):
        place(account, to_micros(2.0))
    with pytest.raises(HoldRefused, match=r"^0\.100001 left next to"):
        place(replace(account, spent=account.spent - 5, held=5), to_micros(2.0))
    limits = Limits(daily_cap=to_micros(1_234_567.25))
    with pytest.raises(HoldRefused, match=r"^1,234,567\.25 of the day's 1,234,567\.25 left, 1,234,568\.00 needed"):
        place(Account(budget=to_micros(2e6)), to_micros(1_234_568), 0.0, limits)


@pytest.mark.parametrize("status", ["paused", "frozen", "closed"])
def test_only_an_active_campaign_decides(status):
    with pytest.raises(HoldRefused, match=status) as refused:
        place(Account(budget=100, status=status), 1)
    assert refused.value.reason == status


def test_a_cost_above_the_cap_is_an_overrun_and_freezes():
    account, hold = place(Account(budget=100), 40)
    account, hold = settle(account, hold, 55)
    assert account == Account(budget=100, spent=40, overrun=15, status="frozen", today=40, requests_used=1)
    assert (hold.charged, hold.overrun) == (40, 15)


def test_a_cost_between_hold_and_cap_is_paid_from_what_is_free():
    account, hold = place(Account(budget=100), 40)
    account, hold = settle(account, hold, 55, cap=60)
    assert account == Account(budget=100, spent=55, today=55, requests_used=1)
    assert (hold.amount, hold.charged, hold.overrun) == (40, 55, 0)


def test_what_is_above_the_cap_or_not_there_is_an_overrun_however_small_the_hold():
    account, hold = place(Account(budget=100), 40)
    above, told = settle(account, hold, 65, cap=60)
    assert (above.spent, above.overrun, above.status, told.charged) == (60, 5, "frozen", 60)
    account, other = place(account, 50)
    short, told = settle(account, hold, 55, cap=60)
    assert (short.spent, short.held, short.overrun, short.status, told.charged) == (50, 50, 5, "frozen", 50)
    assert settle(short, other, 50)[0].spent == 100


@pytest.mark.parametrize("charge", [True, False])
def test_a_cost_above_a_hold_that_has_expired_is_paid_from_what_is_free_as_well(charge):
    account, hold = expire(*place(Account(budget=100), 40), charge=charge)
    account, hold = settle(account, hold, 55, cap=60)
    assert account == Account(budget=100, spent=55, today=55, requests_used=1)
    assert (hold.state, hold.charged, hold.overrun) == ("expired", 55, 0)


def test_what_costs_more_than_its_hold_counts_for_its_day_and_the_next_decision_waits():
    limits, noon = Limits(daily_cap=100), 1.5 * DAY
    account, hold = place(Account(budget=1000), 90, noon, limits)
    account, _ = settle(account, hold, 120, cap=150)
    assert (account.today, account.overrun, account.status) == (120, 0, "active")
    with pytest.raises(HoldRefused) as refused:
        place(account, 1, noon, limits)
    assert refused.value.reason == "daily_cap"
    assert place(account, 90, noon + DAY, limits)[0].today == 90


def test_an_expired_hold_is_charged_and_late_feedback_corrects_it():
    account, hold = place(Account(budget=100), 40)
    account, hold = expire(account, hold)
    assert (account.spent, account.held, hold.state, hold.charged) == (40, 0, "expired", 40)
    account, hold = settle(account, hold, 25)
    assert account == Account(budget=100, spent=25, today=25, requests_used=1)
    assert (hold.state, hold.reported) == ("expired", True)
    with pytest.raises(AlreadyResolved, match="counts once"):
        settle(account, hold, 25)


def test_late_feedback_for_a_charged_hold_fits_although_the_money_is_gone():
    """What was charged when it expired pays for it: no overrun, no freeze."""
    account, hold = expire(*place(Account(budget=100), 40))
    account, other = place(account, 60)
    account, hold = settle(account, hold, 40)
    assert account == Account(budget=100, spent=40, held=60, today=100, requests_used=1)
    assert hold.overrun == 0
    assert settle(account, other, 60)[0].status == "active"


def test_a_cost_that_no_book_can_hold_is_refused_before_anything_changes():
    account = Account(budget=100, overrun=LARGEST - 10)
    account, hold = place(account, 40)
    with pytest.raises(BadParameter, match="more than the books can hold"):
        settle(account, hold, 51)
    assert settle(account, hold, 50)[0].overrun == LARGEST


def test_days_do_not_go_backwards():
    account, hold = place(Account(budget=100), 10, DAY * 5 + 1.0)
    later, slow = place(account, 10, DAY * 5 - 1.0, Limits(daily_cap=20))
    assert (later.day, later.today, slow.placed_at) == (5 * DAY, 20, 5 * DAY)
    with pytest.raises(HoldRefused):
        place(later, 10, DAY * 5 - 1.0, Limits(daily_cap=20))
    assert void(*void(later, hold)[:1], slow)[0].today == 0


def test_a_released_hold_that_did_cost_something():
    """The soft mode: what still fits is spent, what does not is an overrun; never more than the budget."""
    account, hold = expire(*place(Account(budget=100), 40), charge=False)
    assert account == Account(budget=100)
    assert settle(account, hold, 30)[0] == Account(budget=100, spent=30, today=30, requests_used=1)
    account, other = place(account, 80)
    account, hold = settle(account, hold, 30)
    assert account == Account(budget=100, spent=20, held=80, overrun=10, status="frozen", today=100, requests_used=1)
    assert settle(account, other, 80)[0].spent == 100


@pytest.mark.parametrize("resolve", [void, expire, lambda account, hold: settle(account, hold, 1)])
@pytest.mark.parametrize("state", ["settled", "voided"])
def test_once(resolve, state):
    with pytest.raises(AlreadyResolved):
        resolve(Account(budget=100, spent=10), Hold(10, state=state))


def test_a_closed_campaign_stays_closed_whatever_it_cost():
    account, hold = place(Account(budget=100), 40)
    assert settle(Account(100, held=40, status="closed"), hold, 55)[0].status == "closed"
    assert account.status == "active"


def test_accounts_that_cannot_be():
    for wrong in ({"spent": 101}, {"spent": 60, "held": 41}, {"held": -1}, {"spent": 60, "leased": 41}, {"leased": -1}):
        with pytest.raises(ArithmeticError, match="spent \\+ held \\+ leased <= budget"):
            Account(budget=100, **wrong)


@pytest.mark.parametrize("amount", [-0.1, float("nan"), float("inf"), 1e300, "3", None, True])
def test_amounts_that_are_no_money(amount):
    with pytest.raises(BadParameter, match="cost is"):
        to_micros(amount, "cost")


@given(st.floats(0, 1e9))
def test_money_survives_the_round_trip(amount):
    micros = to_micros(amount)
    assert -0.5000001e-6 - amount * 1e-15 <= to_units(micros) - amount <= 1.0000001e-6 + amount * 1e-15
    assert to_micros(to_units(micros)) == micros


@given(st.floats(0, 1e12), st.floats(0, 1e12))
def test_rounding_up_keeps_the_order(one, other):
    assert to_micros(min(one, other)) <= to_micros(max(one, other))
    assert (to_micros(one) > 0) == (one > 0)


@given(st.integers(0, 10**12), st.floats(-1e-13, 1e-13))
def test_noise_is_no_money(micros, noise):
    assert to_micros(to_units(micros) * (1.0 + noise)) == micros


@given(st.floats(1e-9, 1e3))
@example(43.742453000044065)
def test_whoever_rounds_a_cost_it_is_at_most_its_cap(cap):
    above = cap * 1e6 - math.floor(cap * 1e6)
    if above and to_micros(cap) == math.floor(cap * 1e6):
        # what is left off is noise, and nothing that anybody would round up
        assert above <= 1.001 * (1e-6 + 1e-12 * cap * 1e6)
        return
    for rounded in (cap, round(cap, 6), math.ceil(cap * 1e6) / 1e6, math.floor(cap * 1e6) / 1e6):
        assert to_micros(rounded) <= to_micros(cap)


def test_top_ups():
    assert top_up(Account(budget=100, spent=90), 5).left == 15
    for amount in (0, -5, LARGEST):
        with pytest.raises(BadParameter, match="positive amount"):
            top_up(Account(budget=100), amount)


def test_a_days_decisions_stay_under_the_daily_cap():
    limits, noon = Limits(daily_cap=100), 1.5 * DAY
    account, early = place(Account(budget=1000), 60, noon, limits)
    with pytest.raises(HoldRefused, match="next day") as refused:
        place(account, 41, noon, limits)
    assert (refused.value.reason, refused.value.retry_after) == ("daily_cap", DAY / 2)
    account, _ = settle(account, early, 20)
    account, other = place(account, 80, noon, limits)
    account, late = place(account, 100, noon + DAY, limits)  # a new day
    before = account.today
    account, _ = settle(account, other, 10)  # counts for the day before
    assert account.today == before == 100
    account, _ = void(account, late)
    assert account.today == 0


def test_a_paced_campaign_is_never_ahead_of_its_share():
    limits = Limits(pace_seconds=1000.0, begun=50.0, slack=10)
    account, _ = place(Account(budget=100), 10, 50.0, limits)
    with pytest.raises(HoldRefused, match="pace") as refused:
        place(account, 10, 60.0, limits)
    assert (refused.value.reason, refused.value.retry_after) == ("paced", 90.0)
    account, _ = place(account, 10, 150.0, limits)
    assert place(account, 80, 1050.0, limits)[0].left == 0  # when the time is over, all of it


@given(
    st.lists(st.tuples(st.integers(1, 40), st.floats(0, 0.4), st.integers(0, 40)), max_size=60),
    st.integers(40, 120),
    st.floats(0.5, 9.0),
)
def test_whatever_happens_neither_limit_is_broken(steps, daily_cap, days):
    """Holds placed, and settled or kept, at any time: what each day's decisions take is added up anew."""
    limits = Limits(daily_cap, days * DAY, 0.0, 40)
    account, now, taken, early = Account(budget=1000), 0.0, {}, []
    for amount, later, cost in steps:
        now += later * DAY
        try:
            account, hold = place(account, amount, now, limits)
        except HoldRefused as refused:
            early.append(refused)
            continue
        assert account.spent + account.held <= 40 + 1000 * now / (days * DAY) + 1e-6
        if cost <= amount:
            account, hold = settle(account, hold, cost)
        day = int(now // DAY)
        taken[day] = taken.get(day, 0) + (cost if cost <= amount else amount)
        assert account.today == taken[day] <= daily_cap
    assert all(refused.reason in ("daily_cap", "paced") and refused.retry_after > 0.0 for refused in early)


def test_a_request_is_gone_with_its_money_and_once():
    """Its cost is told, or it is charged; told after that it is gone already. One that is released is gone when told,
    also for nothing, and one that is voided never."""
    account, hold = place(Account(budget=100), 40)
    assert (account.requests_used, hold.request_used, void(account, hold)[0].requests_used) == (0, False, 0)
    for cost in (0, 25, 55):
        told, settled = settle(account, hold, cost)
        assert (told.requests_used, settled.request_used) == (1, True)
        for charge, requests_used in ((True, 1), (False, 0)):
            late, expired = expire(account, hold, charge)
            assert (late.requests_used, expired.request_used) == (requests_used, charge)
            told, settled = settle(late, expired, cost)
            assert (told.requests_used, settled.request_used) == (1, True)


class Campaign(RuleBasedStateMachine):
    """Anything in any order. The model: every hold's share of the money, added up anew after every step."""

    open, late = Bundle("open"), Bundle("late")

    @initialize(budget=money, charge=st.booleans())
    def begin(self, budget, charge):
        self.account, self.charge = Account(budget=budget), charge
        self.held, self.cost, self.unreported = {}, {}, {}
        self.number = 0

    @rule(target=open, amount=money)
    def decide(self, amount):
        free = self.account.budget - sum(self.held.values()) - self._spent()
        try:
            self.account, hold = place(self.account, amount)
        except HoldRefused:
            assert amount > free or self.account.status != "active"
            return multiple()
        assert amount <= free
        self.number += 1
        self.held[self.number] = amount
        return self.number, hold

    @rule(pair=consumes(open), cost=money, above=st.integers(0, 200))
    def feedback(self, pair, cost, above):
        """The arm's cap is as much above its hold."""
        number, hold = pair
        free, frozen = self.account.left, self.account.status == "frozen"
        cap = hold.amount + above
        self.account, hold = settle(self.account, hold, cost, cap)
        del self.held[number]
        self.cost[number] = (hold.charged, cost)
        assert hold.charged + hold.overrun == cost
        assert hold.charged == min(cost, hold.amount + min(above, free))
        assert (self.account.status == "frozen") == (frozen or cost > cap or cost > hold.amount + free)

    @rule(pair=consumes(open))
    def take_back(self, pair):
        self.account, _ = void(self.account, pair[1])
        del self.held[pair[0]]

    @rule(target=late, pair=consumes(open))
    def time_out(self, pair):
        number, hold = pair
        self.account, hold = expire(self.account, hold, self.charge)
        self.unreported[number] = hold.charged
        del self.held[number]
        return number, hold

    @rule(pair=consumes(late), cost=money, above=st.integers(0, 200))
    def late_feedback(self, pair, cost, above):
        number, hold = pair
        before = self.account
        self.account, hold = settle(self.account, hold, cost, hold.amount + above)
        del self.unreported[number]
        self.cost[number] = (hold.charged, cost)
        assert self.account.spent + self.account.overrun - before.spent - before.overrun == cost - pair[1].charged

    @rule(amount=st.integers(1, 500))
    def more_money(self, amount):
        self.account = top_up(self.account, amount)

    @rule()
    def look_at_it(self):
        if self.account.status == "frozen":
            self.account = replace(self.account, status="active")

    @invariant()
    def the_books_agree(self):
        account = self.account
        assert account.spent + account.held <= account.budget
        assert account.held == sum(self.held.values())
        assert account.spent == self._spent()
        assert account.overrun == sum(cost - charged for charged, cost in self.cost.values())
        assert account.requests_used == len(self.cost) + sum(charged > 0 for charged in self.unreported.values())

    def _spent(self):
        return sum(charged for charged, _ in self.cost.values()) + sum(self.unreported.values())


TestCampaign = Campaign.TestCase
