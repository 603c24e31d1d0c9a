"""Security of forms and pages: no other site can send a form or frame a page."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from budgetbandits.errors import BadParameter, NotAllowed
from budgetbandits.service.dashboard.sessions import Session
from budgetbandits.service.http.request_checks import read_body
from budgetbandits.service.names import check_text

FORM_BYTES_MAX = 800_000
"""Bytes of a form after sign-in: a new campaign may have thousands of arms ..."""
OPEN_FORM_BYTES_MAX = 10_000
"""... and of a form without sign-in."""

SECURITY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def secured(response: Response) -> Response:
    for name, value in SECURITY.items():
        response.headers.setdefault(name, value)
    return response


def check_origin(request: Request) -> None:
    """Refuse requests that another site makes a browser send; browsers say where a request comes from."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise NotAllowed("another site has sent this form; open the page itself", known=True)


async def sent(request: Request, session: Session) -> dict[str, str]:
    """The fields that were sent, if the session may make changes and the form is its own."""
    session.check_admin()
    if request.method == "GET":
        return dict(request.query_params)
    check_origin(request)
    form = await read_form(
        request, FORM_BYTES_MAX, "create a campaign with this many arms with the API or the command line"
    )
    session.check_form(form.get("code", ""))
    return form


async def read_form(
    request: Request, max_bytes: int = OPEN_FORM_BYTES_MAX, remedy: str = "use the page"
) -> dict[str, str]:
    """The fields of a form of at most ``max_bytes``; of fields with the same name the last."""
    try:
        content = await read_body(request, max_bytes)
    except HTTPException:
        raise BadParameter(f"this form has more than {max_bytes:,} bytes; {remedy}") from None
    try:
        fields = dict(parse_qsl(content.decode(), keep_blank_values=True, max_num_fields=1000))
    except ValueError:
        raise BadParameter("this is not a form; use the page") from None
    for name, value in fields.items():
        check_text("the form", name + value)
    return fields
