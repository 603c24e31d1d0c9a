"""httpx, which the clients of the service talk with; without it, how to install it."""

from __future__ import annotations

from budgetbandits.errors import MissingExtra

try:
    import httpx
except ModuleNotFoundError as missing:
    if missing.name != "httpx":
        raise
    raise MissingExtra("the client needs httpx; pip install 'budgetbandits[client]'", name="httpx") from None

__all__ = ["httpx"]
