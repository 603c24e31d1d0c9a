"""The application itself on any store, called without a network."""

import asyncio

import httpx

from budgetbandits.service.http.app import create_app
from budgetbandits.service.http.auth import make_key
from budgetbandits.service.service import DecisionService
from reads_here import ReadsHere


class Service:
    """``service(method, path, body)`` is an answer, by default to a key that may do everything."""

    def __init__(self, store):
        self.store = store
        self.engine = DecisionService(self.store)
        self.transport = httpx.ASGITransport(
            create_app(self.engine, self.store, reads=ReadsHere(self.store)), raise_app_exceptions=False
        )
        self.admin = make_key(self.store, ["admin"], 0.0)

    def __call__(self, method, path, body=None, key=None, content=None, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        headers.setdefault("Authorization", f"Bearer {key or self.admin}")
        if content is not None:
            headers["Content-Type"] = "application/json"

        async def send():
            async with httpx.AsyncClient(transport=self.transport, base_url="http://service") as client:
                return await client.request(method, path, json=body, content=content, headers=headers)

        return asyncio.run(send())
