"""The application itself on any store, called without a network."""

import asyncio

import httpx

from budgetbandits.client import Client
from budgetbandits.service.http.app import create_app
from budgetbandits.service.http.auth import make_key
from budgetbandits.service.service import DecisionService
from reads_here import ReadsHere


class Service(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """``service(method, path, body)`` is an answer, by default to a key that may do everything.

    It is also what clients need in the place of a network. ``more`` are options of `create_app`.
    """

    def __init__(self, store, **more):
        self.store = store
        self.engine = DecisionService(self.store)
        self.reads = more.pop("reads", None) or ReadsHere(self.store)
        self.app = create_app(self.engine, self.store, reads=self.reads, **more)
        self.transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        self.admin = make_key(self.store, ["admin"], 0.0)

    def __call__(self, method, path, body=None, key=None, content=None, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        headers.setdefault("Authorization", f"Bearer {key or self.admin}")
        if content is not None:
            headers.setdefault("Content-Type", "application/json")
        headers = {name: value for name, value in headers.items() if value is not None}

        async def send():
            async with httpx.AsyncClient(transport=self.transport, base_url="http://service") as client:
                return await client.request(method, path, json=body, content=content, headers=headers)

        return asyncio.run(send())

    def client(self):
        return Client("http://service", self.admin, transport=self)

    async def handle_async_request(self, request):
        return await self.transport.handle_async_request(request)

    def handle_request(self, request):
        async def run():
            answer = await self.handle_async_request(request)
            return httpx.Response(answer.status_code, headers=answer.headers, content=await answer.aread())

        return asyncio.run(run())


def sent(app, method, path, *messages, headers=()):
    """What an application sends when its server hands it these messages, and then nothing more."""
    coming, sent = list(messages), []
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers], "root_path": "", "scheme": "http",
        "http_version": "1.1",
    }  # fmt: skip

    async def receive():
        return coming.pop(0) if coming else await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    asyncio.run(asyncio.wait_for(app(scope, receive, send), 10.0))
    return sent
