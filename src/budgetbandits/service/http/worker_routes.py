"""Routes of workers and load balancers: decisions, feedback, health."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Any

import structlog

from budgetbandits.answers import (
    DecisionAnswer,
    DecisionBatchAnswer,
    FeedbackAnswer,
    FeedbackBatchAnswer,
    FeedbackBatchResult,
    HealthAnswer,
)
from budgetbandits.errors import BudgetBanditsError, HoldRefused, StoreError
from budgetbandits.service.feedback import BookedFeedback, FeedbackReport
from budgetbandits.service.http.problem_json import describe
from budgetbandits.service.http.route import CheckedRequest, Route
from budgetbandits.service.http.schemas import (
    DecisionBatchRequest,
    DecisionRequest,
    FeedbackBatchRequest,
    FeedbackRequest,
)

READY_SECONDS_MAX = 2.0
"""Time within which a server that is ready answers."""

log = structlog.get_logger("budgetbandits")


async def decide(call: CheckedRequest[DecisionRequest]) -> DecisionAnswer:
    """Choose an arm and hold its cost cap, or what the request says."""
    key, asked = call.key or "", call.content
    deciding = call.server.decisions.decide_in_loop(call.campaign, key, asked.context, asked.options())
    return (await _counted(call, deciding))[0]


async def decide_many(call: CheckedRequest[DecisionBatchRequest]) -> DecisionBatchAnswer:
    """Make many decisions under one key: all of them or none."""
    key, asked = call.key or "", call.content
    deciding = call.server.decisions.decide_many_in_loop(
        call.campaign, key, asked.count, asked.context, asked.options()
    )
    return DecisionBatchAnswer(tuple(await _counted(call, deciding)))


async def tell(call: CheckedRequest[FeedbackRequest]) -> FeedbackAnswer:
    """Report the reward of a decision, its cost, or both; in any order, any number of times."""
    decision, sent = call.path["decision"], call.content
    report = FeedbackReport(decision, sent.reward, sent.cost, bool(sent.failed), call.actor)
    task = call.server.reports.feedback_task(report, call.campaign)
    booked = await call.server.decisions.scheduler.perform(call.campaign, task)
    _count(call, booked)
    if booked.refused is not None:
        raise booked.refused
    return FeedbackAnswer(decision, booked.overrun)


async def tell_many(call: CheckedRequest[FeedbackBatchRequest]) -> FeedbackBatchAnswer:
    """Report the outcomes of many decisions; one that is refused says why and does not stop the others."""
    outcomes = call.content.outcomes
    reports = [FeedbackReport(o.decision, o.reward, o.cost, bool(o.failed), call.actor) for o in outcomes]
    booked: list[BookedFeedback | BudgetBanditsError] = []
    part: list[BookedFeedback | BudgetBanditsError]
    while len(booked) < len(reports):  # each counts by itself: others may come between
        task = call.server.reports.feedback_slice_task(reports[len(booked) :], call.campaign)
        part = await call.server.decisions.scheduler.perform(call.campaign, task, sliced=True)
        booked += part
    results = []
    for report, result in zip(reports, booked, strict=True):
        refused, overrun = (result, 0.0) if isinstance(result, BudgetBanditsError) else (result.refused, result.overrun)
        if not isinstance(result, BudgetBanditsError):
            _count(call, result)
        problem = None if refused is None else describe(refused)
        results.append(FeedbackBatchResult(report.decision, overrun, problem))
    return FeedbackBatchAnswer(tuple(results))


async def void(call: CheckedRequest[None]) -> FeedbackAnswer:
    """Report that the call was never made: its money is free again."""
    decision = call.path["decision"]
    task = call.server.reports.void_task(decision, call.campaign, call.actor)
    await call.server.decisions.scheduler.perform(call.campaign, task)
    return FeedbackAnswer(decision)


async def health(_: CheckedRequest[None]) -> HealthAnswer:
    """Whether the server is up."""
    return HealthAnswer("ok")


async def ready(call: CheckedRequest[None]) -> HealthAnswer:
    """Whether decisions can be made: a row was written and committed just now; 503 if not within two seconds."""
    beat = asyncio.ensure_future(call.server.store.perform(lambda tx: tx.write_heartbeat(time.time())))
    finished, _ = await asyncio.wait([beat], timeout=READY_SECONDS_MAX)
    problem = beat.exception() if finished else f"nothing could be written for {READY_SECONDS_MAX:g} seconds"
    if problem is not None:
        beat.add_done_callback(lambda late: late.exception())  # nobody awaits it any more
        log.warning("not ready", error=str(problem))
        # the caller has no key, so the reason stays in the log
        raise StoreError("the store cannot write; the server's log says why")
    return HealthAnswer("ready")


async def _counted(call: CheckedRequest[Any], deciding: Awaitable[list[DecisionAnswer]]) -> list[DecisionAnswer]:
    server = call.server
    try:
        answers = await (deciding if server.tracing is None else server.tracing.decided(call.campaign, deciding))
    except HoldRefused as error:
        server.metrics.refusals[error.reason] += 1
        server.metrics.refused.count(call.campaign, error.reason, time.time())
        raise
    server.metrics.decisions += len(answers)
    return answers


def _count(call: CheckedRequest[Any], booked: BookedFeedback) -> None:
    metrics = call.server.metrics
    metrics.feedback += 1
    metrics.failures += booked.failed
    if booked.overrun and booked.cost_is_new:
        metrics.overruns += 1
        log.warning(
            "campaign frozen by overrun", campaign=call.campaign, decision=booked.decision, overrun=booked.overrun,
            actor=call.actor,
        )  # fmt: skip


DECISIONS = "/v1/campaigns/{campaign}/decisions"
"""Path of a campaign's decisions."""

DECISION = f"{DECISIONS}/{{decision}}"
"""Path of a decision."""

ROUTES: tuple[Route[Any], ...] = (
    Route("POST", DECISIONS, "decide", decide, DecisionAnswer, DecisionRequest, keyed="must", status=201, decides=True),
    Route("POST", f"{DECISION}/feedback", "feedback", tell, FeedbackAnswer, FeedbackRequest),
    Route(
        "POST", f"{DECISIONS}/batch", "decide", decide_many, DecisionBatchAnswer, DecisionBatchRequest,
        keyed="must", status=201, decides=True,
    ),
    Route(
        "POST", "/v1/campaigns/{campaign}/feedback", "feedback", tell_many, FeedbackBatchAnswer, FeedbackBatchRequest
    ),
    Route("POST", f"{DECISION}/void", "feedback", void, FeedbackAnswer),
    Route("GET", "/healthz", None, health, HealthAnswer),
    Route("GET", "/readyz", None, ready, HealthAnswer),
)  # fmt: skip
