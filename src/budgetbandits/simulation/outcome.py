"""The result of a simulation: arrays over (run, budget) or (run, budget, arm), its summaries and its figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadParameter, MissingExtra, install
from budgetbandits.formatting.numbers import count
from budgetbandits.formatting.tables import Cell, Table, estimate
from budgetbandits.numerics.arrays import AnyArray, Array
from budgetbandits.numerics.intervals import half_width, wilson
from budgetbandits.policies import PAPER_POLICIES, label
from budgetbandits.problems import oracle, oracle_horizon
from budgetbandits.problems.linear import LinearStream
from budgetbandits.problems.problem import Problem
from budgetbandits.problems.streams import Environment, RequestStream

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from budgetbandits.figures.layout import PaperFigure
    from budgetbandits.figures.style import FigureSpec


# --- the outcome -----------------------------------------------------------------------------------------------------


PLANNED_PULLS_MIN = 1e-6
"""Pulls in a plan: fewer are rounding."""


@dataclass(frozen=True)
class Engine:
    """The engine that plays a policy's games, and why no faster one does.

    name     "thompson", "sampling plain loop", "paced plain loop", "epsilon-first", "index blocks", "index bounds",
             "index plain loop" or "reference"
    reason   why no faster engine plays; empty where there is none
    """

    name: str
    reason: str = ""

    @property
    def compiled(self) -> bool:
        """Whether the engine is compiled."""
        return self.name != "reference"


def slower_lines(played: Iterable[tuple[str, str, str]]) -> list[str]:
    """The lines that commands and pages show where no faster engine played, one for each engine and reason, from
    (policy, engine, reason) of each game.

    >>> slower_lines([("bts", "reference", "asked for"), ("kube", "reference", "asked for"), ("ucb1", "thompson", "")])
    ['BTS, KUBE: the reference simulator played (asked for)']
    """
    policies_by_reason: dict[tuple[str, str], dict[str, None]] = {}
    for policy, engine, reason in played:
        if reason:
            policies_by_reason.setdefault((engine, reason), {})[label(policy)] = None
    return [
        f"{', '.join(policies)}: {'the reference simulator' if engine == 'reference' else f'the engine {engine!r}'} "
        f"played ({reason})"
        for (engine, reason), policies in policies_by_reason.items()
    ]


@dataclass(frozen=True, repr=False)
class Outcome:
    """The games of one policy on one problem. The last pull counts as a pull even when it overdraws the budget; its
    reward is then not earned and its cost not paid.

    >>> from budgetbandits import simulate
    >>> problem = Problem.bernoulli(rewards=[0.9, 0.2], costs=[0.3, 0.6])
    >>> simulate(problem, "bts", budgets=[10, 50], runs=10, engine="reference")
    Outcome(BTS on 2 arms, 10 runs at budgets 10 to 50; engine reference, seed 0
      at 50: pseudo-regret 7.8 ± 2.3 (95 %), best arm missed in 0 of 10)
    """

    problem: Environment
    policy: str
    budgets: Array
    reward: Array
    spend: Array
    rounds: NDArray[np.int64]
    pulls: NDArray[np.int64]
    engine: str
    """The name of the engine that played, as in `Engine`."""
    engine_reason: str
    """Why no faster engine did; empty where there is none."""
    seconds: float
    seed: int
    """The seed of the games: they can be played again with it."""
    first_run: int = 0
    """The number of the first run."""
    horizon: float = math.inf
    """How many requests the budget was for; infinite if there was no horizon."""
    part_pulls: NDArray[np.int64] | None = None
    """Pulls by part of a stream, as (run, budget, part, arm)."""

    @property
    def runs(self) -> int:
        """How many games were played."""
        return len(self.reward)

    @property
    def regret(self) -> Array:
        """ρ*B − reward, run by run; ρ*B is R* for Bernoulli arms and whole budgets, and within ρ* of it otherwise.
        With a horizon, the fluid bound less the reward."""
        if self.horizon < math.inf:
            return np.asarray(self._fluid - self.reward)
        return np.asarray(oracle.best_ratio(self._arms) * self.budgets - self.reward)

    @property
    def pseudo_regret(self) -> Array:
        """Σ μc Δ pulls, run by run: the same mean on Bernoulli problems (Lemma 2), within 2ρ* on others, and far
        less noise. With a horizon, what the pulls fall short of the best at the price λ of the fluid bound, and λ for
        the money left: the fluid bound less Σ μr pulls, without the luck of the costs. In a stream, the fluid bound
        less Σ μr pulls; where requests have features, the regret itself."""
        if isinstance(self.problem, LinearStream):
            return self.regret
        if self.part_pulls is not None:
            return np.asarray(self._fluid - (self.part_pulls * self.problem.reward_means).sum(axis=(2, 3)))
        if self.horizon < math.inf:
            return np.stack([self._shortfall(place) for place in range(len(self.budgets))], axis=1)
        return np.asarray(self.pulls @ (self._arms.cost_means * oracle.gaps(self._arms)))

    @property
    def best_arm_identified(self) -> NDArray[np.bool_]:
        """Whether a best arm was pulled most: for ε-first the arm it settles on. A tie with another is a miss. With a
        horizon, whether it was an arm of the best mix; in a stream, in every part an arm of the best plan for it; where
        requests have features, the arm that the best player pulls most."""
        if isinstance(self.problem, RequestStream):
            assert self.part_pulls is not None
            plans = [oracle_horizon.fluid_plan(self.problem, budget, self.horizon) for budget in self.budgets.tolist()]
            wrong = ~(np.array(plans) > PLANNED_PULLS_MIN) & self.problem.available_arms
            wrong = wrong & (self.part_pulls > 0)  # of a part that never came, all arms were pulled most
            return np.asarray(~np.any(_most(self.part_pulls) & wrong, axis=(2, 3)))
        best = np.zeros((1, len(self.budgets), len(self.problem)), dtype=bool)
        if isinstance(self.problem, LinearStream):
            for place, budget in enumerate(self.budgets.tolist()):
                plan = oracle_horizon.fluid_requests(self.problem, budget, self.horizon)
                best[0, place] = _most(np.array(plan.pulls))
        elif self.horizon < math.inf:
            for place, budget in enumerate(self.budgets.tolist()):
                mix = oracle_horizon.fluid_mix(self._arms, budget, self.horizon)
                best[0, place, [mix.arms[0], mix.upgrade]] = True
        else:
            best[:, :, oracle.best_arms(self._arms)] = True
        return np.asarray(~np.any(_most(self.pulls) & ~best, axis=2))

    # --- shown and handed on -------------------------------------------------------------------------------------

    def to_frame(self) -> pl.DataFrame:
        """A row for each run at each budget: policy, run, budget and, of that game, regret, pseudo_regret, reward,
        spend, rounds, identified. The table of a study has the same columns, behind those of the problem."""
        need_polars("a table of games")
        import polars as pl

        return pl.DataFrame({"policy": [self.policy] * self.reward.size, **self.columns()})

    def columns(self) -> dict[str, AnyArray]:
        """The columns of `to_frame`, as arrays."""
        runs, budgets = self.reward.shape
        return {
            "run": np.repeat(np.arange(self.first_run, self.first_run + runs), budgets),
            "budget": np.tile(self.budgets, runs),
            "regret": self.regret.ravel(),
            "pseudo_regret": self.pseudo_regret.ravel(),
            "reward": self.reward.ravel(),
            "spend": self.spend.ravel(),
            "rounds": self.rounds.ravel(),
            "identified": self.best_arm_identified.ravel(),
        }

    def summary(self, metric: str = "pseudo_regret") -> pl.DataFrame:
        """A row for each budget: runs, mean, standard deviation and error, quantiles of a metric, and how often the
        best arm was missed, with its interval."""
        return summarise(self.to_frame(), metric, ("policy", "budget"))

    def plot(
        self, figure: str = "pulls", *, width: str | float = "page", dark: bool = False, ax: Any = None, **options: Any
    ) -> Any:
        """A Matplotlib figure: "pulls", each arm's share of the pulls next to its ratio, or "regret" against budget.

        ``width`` is "paper", "page", "phone" or inches. "pulls" takes ``budget``; "regret" takes ``deviations``,
        ``log`` and ``ax``, and returns the axes it was given.
        """
        return _draw(self, figure, width, dark, ax, **options)

    def __repr__(self) -> str:
        least, most = self.budgets.min(), self.budgets.max()
        budgets = f"a budget of {most:,g}" if least == most else f"budgets {least:,g} to {most:,g}"
        place = int(self.budgets.argmax())
        mean = estimate(*_mean_and_half(self.pseudo_regret[:, place]))
        error = f" ± {mean.error} (95 %)" if mean.error else ""
        return (
            f"Outcome({label(self.policy)} on {len(self.problem):,} arms, {count(self.runs, 'run')} at {budgets}; "
            f"engine {self.engine}, seed {self.seed}\n  at {most:,g}: pseudo-regret {mean.value}{error}, best arm "
            f"missed in {self._missed[place]:,} of {self.runs:,})"
        )

    def _repr_html_(self) -> str:
        rows: list[tuple[Cell, ...]] = []
        for place in np.argsort(self.budgets, kind="stable"):
            shown = (self.reward, self.regret, self.pseudo_regret, self.rounds)
            cells = [estimate(*_mean_and_half(values[:, place])) for values in shown]
            rows.append((f"{self.budgets[place]:,g}", *cells, f"{self._missed[place]:,}"))
        why = f" ({self.engine_reason})" if self.engine_reason else ""
        meaning = "Means ± half of a 95 % interval; missed: another arm was pulled as often or more. "
        return Table(
            columns=("budget", "reward", "regret", "pseudo-regret", "rounds", "best arm missed"),
            rows=rows,
            title=f"{label(self.policy)} on {len(self.problem):,} arms, {count(self.runs, 'run')}",
            note=f"{meaning if self.runs > 1 else ''}Engine {self.engine}{why}, seed {self.seed}.",
            names=0,
        ).to_html()

    def _shortfall(self, place: int) -> Array:
        """The pseudo-regret at one budget with a horizon. By duality the fluid bound is λB + T max (μr − λμc)."""
        budget = float(self.budgets[place])
        price = oracle_horizon.fluid_mix(self._arms, budget, self.horizon).price
        values = self._arms.reward_means - price * self._arms.cost_means
        unanswered = self.horizon - self.rounds[:, place]
        short = self.pulls[:, place] @ (values.max() - values) + unanswered * values.max()
        return np.asarray(short + price * (budget - self.spend[:, place]))

    @property
    def _arms(self) -> Problem:
        """The problem, where it is no stream."""
        assert isinstance(self.problem, Problem)
        return self.problem

    @property
    def _fluid(self) -> Array:
        """The fluid bound at each budget."""
        bounds = [oracle_horizon.fluid_reward(self.problem, budget, self.horizon) for budget in self.budgets.tolist()]
        return np.array(bounds)

    @property
    def _missed(self) -> NDArray[np.int64]:
        return np.asarray((~self.best_arm_identified).sum(axis=0))


def _most(pulls: NDArray[Any]) -> NDArray[np.bool_]:
    """Which arms were pulled most."""
    return np.asarray(pulls == pulls.max(axis=-1, keepdims=True))


def _mean_and_half(values: Any) -> tuple[Any, Any]:
    """The mean over runs and half of its 95 % interval; NaN with a single run."""
    runs, mean = len(values), values.mean(axis=0)
    if runs == 1:
        return mean, np.full_like(mean, np.nan)
    return mean, half_width(values.std(axis=0, ddof=1) / runs**0.5, runs)


# --- summaries of tidy tables ----------------------------------------------------------------------------------------


METRICS = ("pseudo_regret", "regret", "reward", "spend", "rounds")
"""Metrics of a game."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Levels of the quantiles in a summary."""


def need_polars(purpose: str) -> None:
    """Say in which extra polars is, where it is not installed."""
    if find_spec("polars") is None:
        raise MissingExtra(f"{purpose} needs polars; {install('lab')}")


def check_metric(metric: str) -> None:
    """Refuse a metric that there is not."""
    if metric not in METRICS:
        raise BadParameter(f"unknown metric {metric!r}; choose one of {', '.join(METRICS)}")


def summarise(table: pl.DataFrame, metric: str, columns: Sequence[str]) -> pl.DataFrame:
    """Runs, mean, standard deviation and error, quantiles of a metric, and how often the best arm was missed."""
    check_metric(metric)
    import polars as pl

    value, missed = pl.col(metric), ~pl.col("identified")
    frame = table.group_by(*columns, maintain_order=True).agg(
        pl.len().alias("runs"),
        value.mean().alias("mean"),
        *spread(value),
        missed.sum().alias("missed"),
        missed.mean().alias("miss_rate"),
    )
    low, high = wilson(frame["missed"].to_numpy(), frame["runs"].to_numpy())
    return frame.with_columns(pl.Series("miss_rate_low", low), pl.Series("miss_rate_high", high))


def spread(value: pl.Expr) -> list[pl.Expr]:
    """Standard deviation, standard error and quantiles of what is grouped."""
    import polars as pl

    quantiles = [value.quantile(q, "linear").alias(f"q{round(100 * q):02d}") for q in QUANTILES]
    return [value.std().alias("std"), (value.std() / pl.len().sqrt()).alias("sem"), *quantiles]


# --- figures ---------------------------------------------------------------------------------------------------------


def _draw(outcome: Outcome, figure: str, width: str | float, dark: bool, ax: Axes | None, **options: Any) -> Any:
    """One of `FIGURES`, on a sheet of this width, or in ``ax`` if it has a single panel."""
    if ax is not None:
        if figure == "pulls":
            raise BadParameter("figure 'pulls' has two panels; leave out ax")
        options["ax"] = ax
    from budgetbandits.figures.layout import chosen  # Matplotlib is in the extra lab
    from budgetbandits.figures.style import figure_spec

    return chosen(FIGURES, figure, options)(outcome, figure_spec(width, dark), **options)


def _draw_pulls(outcome: Outcome, spec: FigureSpec, *, budget: float | None = None) -> PaperFigure:
    """Each arm's share of the pulls at one budget, the largest if none is given, next to its true ratio."""
    from budgetbandits.figures import arms

    if not isinstance(outcome.problem, Problem):
        pulls = "pulls" if outcome.part_pulls is None else "part_pulls"
        raise BadParameter(f"'pulls' shows one ratio for each arm, which in a stream changes; see outcome.{pulls}")
    budgets = outcome.budgets.tolist()
    if budget is not None and budget not in budgets:
        raise BadParameter(f"no budget {budget!r:.40} was played; choose one of {', '.join(f'{b:g}' for b in budgets)}")
    place = budgets.index(max(budgets) if budget is None else budget)
    games = outcome.pulls[:, place]
    share = games / games.sum(axis=1, keepdims=True)
    mean, half = _mean_and_half(share)
    title = f"{label(outcome.policy)}, B = {budgets[place]:,g}, {outcome.runs} runs"
    names, ratios = outcome.problem.names, oracle.ratios(outcome.problem)
    return arms.pulls(arms.PullShares(names, ratios, games.mean(axis=0), mean, mean - half, mean + half), title, spec)


def _draw_regret(
    outcome: Outcome, spec: FigureSpec, *, deviations: bool = False, log: bool | None = None, ax: Axes | None = None
) -> PaperFigure | Axes:
    """Mean pseudo-regret against budget with its 95 % interval, or with bars of the standard deviation."""
    from budgetbandits.figures import regret as curves
    from budgetbandits.figures.layout import Series
    from budgetbandits.figures.style import series_styles

    order = np.argsort(outcome.budgets)
    values = outcome.pseudo_regret[:, order]
    mean, half = _mean_and_half(values)
    std = values.std(axis=0, ddof=1) if outcome.runs > 1 else np.full(len(order), np.nan)
    curve = curves.Curve(outcome.budgets[order], mean, mean - half, mean + half, std)
    series = Series(0, label(outcome.policy), series_styles([outcome.policy], PAPER_POLICIES)[0])
    return curves.regret({"": [curve]}, [series], spec, curves.RegretOptions(deviations, log, "pseudo-regret"), ax)


FIGURES: dict[str, Callable[..., Any]] = {"pulls": _draw_pulls, "regret": _draw_regret}
"""Figures of an outcome, by name."""
