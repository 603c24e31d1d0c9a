"""The addresses that pages write: links, forms, redirects and streams have theirs from here.

A name may have any printable character; a campaign's has no slash, and an arm's stands in queries. Quoted segment by
segment, every name leads to itself: the address of the campaign `summer%20sale` is not that of `summer sale`.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request


def address(*segments: str, **query: Any) -> str:
    """The address of a page of this server, by the segments of its path as they are called.

    >>> address(), address("campaigns", "50% off?", "retire-arm", arm="a & b")
    ('/', '/campaigns/50%25%20off%3F/retire-arm?arm=a%20%26%20b')
    """
    path = "/" + "/".join(quote(each, safe="") for each in segments)
    return f"{path}?{urlencode(query, quote_via=quote)}" if query else path


def campaign_address(name: str, *segments: str, **query: Any) -> str:
    """The address of a campaign's page, or of one below it."""
    return address("campaigns", name, *segments, **query)


def path_of(request: Request) -> str:
    """The path that was asked for, as an address: servers hand it over unquoted."""
    return address(*request.scope["path"].split("/")[1:])


def address_of(request: Request) -> str:
    """All of the address that was asked for."""
    query = request.scope["query_string"].decode("latin-1")
    return path_of(request) + (f"?{query}" if query else "")
