"""The page of a problem that is known before any route is: nobody has been asked who they are yet."""

from __future__ import annotations

from starlette.responses import Response

from budgetbandits.service.dashboard.forms import secured
from budgetbandits.service.dashboard.pages import render


def problem_page(status: int, kind: str, detail: str) -> Response:
    """As every page says what is wrong, without what only somebody who has signed in sees."""
    fields = {"status": status, "title": kind, "detail": detail}
    page = render("problem.html", session=None, live="", path="/", inline=False, problem=fields)
    return secured(Response(page, status, media_type="text/html"))
