"""One game of an index policy: its rule, where it stands, and where its arrays are.

Compiled functions take the record, and what they decide about, and nothing else; a record is passed as one address, so
this costs nothing. Functions that evaluate the index take it, too, as ``index``. One record serves all runs of a
problem.

Rewards and money are counted in the units of `laws.Tables`. All arms but the leader stand in groups (`groups`) or in
the pool of arms whose index is infinite; a group has a number below that of the arms.

A call costs a few nanoseconds, a round of many arms about a hundred. So what is called once in a round's path is
inlined by Numba (``inline="always"``), which spares compiling it on its own; small functions with several callers are
inlined by LLVM (``forceinline=True``); the rest is called. Loops that evaluate indices keep in variables what they look
at in every step: nothing read from a record stays in a register across the call of an index.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from budgetbandits.policies.index import MONEY_STEPS, SMALLEST_MONEY
from budgetbandits.policies.prior import MOST_ARMS, fitted_beta
from budgetbandits.simulation.engines.plain.loop import PlainRecord
from budgetbandits.simulation.engines.runtime.draws import new_stream
from budgetbandits.simulation.engines.runtime.laws import LawFields
from budgetbandits.simulation.engines.runtime.records import (
    Floats,
    Wholes,
    Words,
    float_pointer,
    largest_budget,
    whole_pointer,
)

FIRST_PATIENCE = 48
"""Evaluations, or as many as there are arms, after which the lazy engine looks whether sweeps would be faster."""

SumRow = Floats
FloatRow = Floats
WholeRow = Wholes
LinkRow = Wholes
"""Kinds of fields with a number for each arm; sums begin a game at 0, links at -1."""

Counter = int
"""How often the engine did what, for tests."""


class IndexRecord(PlainRecord, LawFields):
    """The record of a game and its arrays, with tapes of ``chunk`` outcomes and room for ``more`` extras."""

    opened: int  # arms whose first pull is behind
    pool_size: int  # arms whose index is infinite
    groups: int  # how many there are, and how many more there could be
    frees: int
    waste: int  # evaluations counted, to find out which way of playing is cheaper, as the next four
    since: int
    evaluated_before: int
    counted_from: int
    patience: int
    rounds_before: int
    kind: int  # of the first extra argument of the index
    forced: int  # whether every arm is pulled once first
    rounds_matter: int
    cost_matters: int
    blocks: int
    sweeps: int
    softmax: int
    slots: int
    leaves: int
    money: float  # what is left, as the index sees it
    floor: float  # the smallest mean cost, or cost of a unit of reward, and the window in which bounds hold
    floor_low: float
    floor_high: float
    window: float
    turn: float
    price_paid: float
    fraction: float  # lengths that adapt, as the next four
    stride: float
    reach: float
    share: float
    lazy_price: float
    reward_before: float
    spent_before: float
    shortfall: float  # the region in which the leader is pulled in blocks (`blocks`), as the next three
    excess: float
    short: float  # how near to the edges of the region the leader is
    over: float
    mean_reward: float
    mean_cost: float
    per_shortfall: float
    per_excess: float
    first: float  # extra arguments of the index; ``more`` holds the others
    second: float
    third: float
    slack: float  # the error of rounding of the index
    exploration: float
    lead: float  # what a prior must gain to be fitted (`policies.prior`), 0 if there is none
    affordable: float  # the slack of the policy, in money
    rewards: SumRow
    squares: SumRow
    costs: SumRow
    cost_squares: SumRow
    products: SumRow
    luck: SumRow
    rate: SumRow
    own: FloatRow
    price: FloatRow
    rewards_before: FloatRow
    squares_before: FloatRow
    costs_before: FloatRow
    bound: FloatRow
    cap: FloatRow
    bound_key: FloatRow
    expiry_key: FloatRow
    value: FloatRow
    left: LinkRow
    right: LinkRow
    pulls_before: WholeRow
    used_before: WholeRow
    root: WholeRow
    size: WholeRow
    bound_order: WholeRow
    bound_place: WholeRow
    expiry_order: WholeRow
    expiry_place: WholeRow
    free: WholeRow
    stack: WholeRow
    candidate: WholeRow
    pool: WholeRow
    more: Floats
    table: Wholes
    tree: Floats
    stream: Words
    evaluations: Counter
    swept: Counter  # rounds played in sweeps, and sweeps taken back
    taken_back: Counter

    def __init__(self, arms: int, budgets: int, chunk: int, more: int = 0) -> None:
        super().__init__(arms, arms, budgets, chunk)
        sums, links = self.fields_of_kind("SumRow"), self.fields_of_kind("LinkRow")
        floats, wholes = [*sums, *self.fields_of_kind("FloatRow")], [*links, *self.fields_of_kind("WholeRow")]
        float_rows, whole_rows = np.zeros((len(floats), arms)), np.zeros((len(wholes), arms), dtype=np.int64)
        self._sums, self._links = float_rows[: len(sums)], whole_rows[: len(links)]
        self.point_to(**dict(zip(floats, float_rows, strict=True)))
        self.point_to(**dict(zip(wholes, whole_rows, strict=True)))
        # a table twice as long as there can be groups keeps probes short
        slots = max(4, 1 << (2 * arms - 1).bit_length())
        leaves = 1 << max(0, (arms - 1).bit_length())
        self.point_to(table=np.full(slots, -1, dtype=np.int64), tree=np.full(2 * leaves, np.inf))
        self.point_to(stream=np.zeros(4, dtype=np.uint64), more=np.zeros(more))
        self.set(
            stage=OPENING, slots=slots, leaves=leaves, patience=max(FIRST_PATIENCE, arms), fraction=0.25, stride=1.0, window=1e-4, turn=2.0, price_paid=np.inf, reach=1.0, share=1.0 / arms,
        )  # fmt: skip

    def begin(self, start: Wholes, words: Words) -> None:
        """Make everything ready for a game that starts with these fields and is seeded by these words."""
        self._start = start
        self.clear()
        self._sums[:] = 0.0
        self._links[:] = -1
        self.table[:] = -1
        self.tree[:] = np.inf
        self.stream[:] = new_stream(words)


EXTRAS = ("first", "second", "third")
"""Fields of the record for the first extras."""

OPENING = 2
"""The stage of a game with first pulls, before CHOOSING and PULLING."""

CONSTANT, OWN, VARIANCE, MOMENTS, MONEY, FLOOR_SEEN, BEST_RATIO = 0, 1, 2, 3, 4, 5, 6
"""Kinds of the first extra argument of an index: a constant, a number of the arm's own, the variance of its rewards (and,
with all moments, that of its costs and their covariance behind it; with money, that of its costs and the money left, in
steps), the smallest mean cost of all arms, or the best
ratio of mean reward by mean cost. From FLOOR_SEEN on it is one number for all arms: ``floor`` is the smallest mean cost,
or the smallest cost of a unit of reward."""


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def pulls_of(game, arm):
    """The number of pulls of an arm."""
    return whole_pointer(game.pulls_at)[arm]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def root_of(game, group):
    """The luckiest arm of a group, which stands for all of them."""
    return whole_pointer(game.root_at)[group]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def highest_bound(game):
    """The highest bound of a group; there must be one."""
    return -float_pointer(game.bound_key_at)[0]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def money_left(game):
    """The highest price that the policy can afford."""
    return largest_budget(game) - game.spent + game.affordable


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def can_pay(game, arm):
    """Whether the policy thinks it can afford the arm."""
    return float_pointer(game.price_at)[arm] <= money_left(game)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def knows_variances(game):
    """Whether the index is given the variances of both rewards and costs."""
    return game.kind == MOMENTS or game.kind == MONEY


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def offered(game, arm):
    """Whether the arm has an index: from its pulls, or, where none is forced, from the start."""
    return pulls_of(game, arm) > 0 or not game.forced


@njit(cache=True, nogil=True, error_model="numpy")
def money_moved(game):
    """Note the money that the index sees; whether it is another step of `policies.index.rounded_money` than before."""
    if game.kind != MONEY:
        return False
    left = (largest_budget(game) - game.spent) * game.cost_unit
    if left >= game.money > 0.0:
        return False
    before = game.money
    step = np.floor(MONEY_STEPS * np.log2(max(left, SMALLEST_MONEY)) + 1e-9)
    game.money = np.exp2(step / MONEY_STEPS)
    return game.money != before


@njit(cache=True, nogil=True, error_model="numpy")
def fitted_prior(game, sums_at, squares_at, unit):
    """The prior of the means whose sums and squares stand at these addresses."""
    pulls, sums, squares = whole_pointer(game.pulls_at), float_pointer(sums_at), float_pointer(squares_at)
    seen = np.empty((3, MOST_ARMS))
    count = 0
    for arm in range(game.arms):
        if pulls[arm] > 0 and count < MOST_ARMS:
            seen[0, count], seen[1, count], seen[2, count] = sums[arm] * unit, squares[arm] * unit * unit, pulls[arm]
            count += 1
    return fitted_beta(seen[0, :count], seen[1, :count], seen[2, :count], game.lead)


@njit(cache=True, nogil=True, error_model="numpy")
def prior_moved(game):
    """Fit the prior where the rounds have reached a power of two; whether it is another than before."""
    if game.lead == 0.0 or game.rounds == 0 or game.rounds & (game.rounds - 1):
        return False
    prior = float_pointer(game.more_at)
    good, bad = fitted_prior(game, game.rewards_at, game.squares_at, game.reward_unit)
    costly, free = fitted_prior(game, game.costs_at, game.cost_squares_at, game.cost_unit)
    moved = prior[0] != good or prior[1] != bad or prior[2] != costly or prior[3] != free
    prior[0], prior[1], prior[2], prior[3] = good, bad, costly, free
    return moved


# --- an arm's index: now, later, or at its lowest --------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def means(game, arm):
    """(pulls, mean reward, mean cost), in the units of the index."""
    pulls = float(pulls_of(game, arm))
    divisor = max(pulls, 1.0)
    reward = float_pointer(game.rewards_at)[arm] * game.reward_unit / divisor
    return pulls, reward, float_pointer(game.costs_at)[arm] * game.cost_unit / divisor


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def first_extra(game, arm, floor):
    """The first extra argument of the arm's index; ``floor`` is what it has in common with all arms."""
    if game.kind == CONSTANT:
        return game.first
    if game.kind == OWN:
        return float_pointer(game.own_at)[arm]
    if game.kind == VARIANCE:
        pulls, mean_reward, _ = means(game, arm)
        square = float_pointer(game.squares_at)[arm] * (game.reward_unit * game.reward_unit)
        return max(square / pulls - mean_reward * mean_reward, 0.0)
    if game.kind == BEST_RATIO:
        return 1.0 / floor
    return floor


@njit(cache=True, nogil=True, error_model="numpy")
def moments(game, arm):
    """(variance of the arm's rewards, variance of its costs, their covariance)."""
    pulls, mean_reward, mean_cost = means(game, arm)
    divisor = max(pulls, 1.0)
    rewards = float_pointer(game.squares_at)[arm] * (game.reward_unit * game.reward_unit) / divisor
    costs = float_pointer(game.cost_squares_at)[arm] * (game.cost_unit * game.cost_unit) / divisor
    products = float_pointer(game.products_at)[arm] * (game.reward_unit * game.cost_unit) / divisor
    return (
        max(rewards - mean_reward * mean_reward, 0.0),
        max(costs - mean_cost * mean_cost, 0.0),
        products - mean_reward * mean_cost,
    )


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def evaluate(game, index, arm, rounds, floor):
    """The arm's index as if ``rounds`` rounds had been played and ``floor`` were what all arms have in common."""
    pulls, mean_reward, mean_cost = means(game, arm)
    if knows_variances(game):
        rewards, costs, both = moments(game, arm)
        if game.kind == MONEY:
            both = game.money
        return index(mean_reward, mean_cost, pulls, float(rounds), rewards, costs, both, game.more_at)
    first = first_extra(game, arm, floor)
    return index(mean_reward, mean_cost, pulls, float(rounds), first, game.second, game.third, game.more_at)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def score(game, index, arm, rounds, floor):
    """The same as `evaluate`, counted: the lazy engine goes by how many evaluations its rounds take."""
    game.evaluations += 1
    return evaluate(game, index, arm, rounds, floor)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def now(game, index, arm):
    """The arm's index in this round."""
    return score(game, index, arm, game.rounds, game.floor)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def lowest_index(game, index, arm, count, shortfall, excess):
    """The lowest index the arm can come to within ``count`` pulls whose rewards fall short of their mean so far by at
    most ``shortfall`` and whose costs exceed theirs by at most ``excess``."""
    game.evaluations += 1
    pulls, mean_reward, mean_cost = means(game, arm)
    later = pulls + float(count)
    first = first_extra(game, arm, game.floor)
    if game.kind == VARIANCE:
        first *= pulls / later  # the sum of squared deviations from the mean never falls
    return index(
        max(mean_reward - shortfall / pulls, float_pointer(game.reward_floor_at)[arm] * game.reward_unit),
        min(mean_cost + excess / pulls, float_pointer(game.cost_top_at)[arm] * game.cost_unit),
        later, float(game.rounds), first, game.second, game.third, game.more_at,
    )  # fmt: skip
