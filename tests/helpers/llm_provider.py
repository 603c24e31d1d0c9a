"""A provider of language models on this machine: OpenAI's protocol, streams included, failures by plan, and a bill."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import threading
import time

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from servers import free_port


class Provider:
    """Answers calls; each failure is one of ``kinds`` with this probability.

    ``prices`` are for a million tokens, by model. ``billed`` is what it charges for: all that was answered, whether the
    answer arrived or not. ``asked`` has the body of each call, ``asked_at`` its time. No call is answered before
    ``gate`` of them wait. ``usage`` may be "each": streams have one in each chunk. ``id`` is that of all answers.
    ``refusals`` are statuses and messages by model.
    """

    def __init__(
        self, prices, failing=0.0, kinds=("500", "429", "lost", "cut"), seed=1, usage=True, gate=0, id=None,
        refusals=None, headers=None,
    ):  # fmt: skip
        self.prices, self.failing, self.kinds, self.usage, self.gate = prices, failing, kinds, usage, gate
        self.id, self.refusals, self.headers, self.asked_at = id, refusals or {}, headers, []
        self.billed, self.asked, self.at_once, self.most_at_once = 0.0, [], 0, 0
        self.failed = dict.fromkeys(kinds, 0)
        self._random = random.Random(seed)
        self._open = asyncio.Event()
        self.app = Starlette(
            routes=[Route(f"{at}/chat/completions", self._answer, methods=["POST"]) for at in ("", "/v1")]
        )

    async def _answer(self, request):
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        try:
            if self.at_once >= self.gate:
                self._open.set()
            await asyncio.wait_for(self._open.wait(), 60)
            return self._answered(json.loads(await request.body()))
        finally:
            self.at_once -= 1

    def _answered(self, body):
        self.asked.append(body)
        self.asked_at.append(time.monotonic())
        model = body["model"]
        if model in self.refusals:
            return _error(*self.refusals[model], self.headers)
        if model not in self.prices:
            return _error(404, f"no model {model}")
        if not body["messages"]:
            return _error(400, "no messages")
        kind = self._random.choice(self.kinds) if self._random.random() < self.failing else None
        if kind is not None:
            self.failed[kind] += 1
        if kind in ("400", "500", "429"):
            return _error(int(kind), "not now", self.headers)
        words = min(body.get("max_tokens") or 40, self._random.randint(1, 40))
        prompt = sum(len(str(each["content"])) for each in body["messages"]) // 4 + 5
        usage = {"prompt_tokens": prompt, "completion_tokens": words, "total_tokens": prompt + words}
        input, output = self.prices[model]
        self.billed += (prompt * input + words * output) / 1e6
        id = self.id or f"chatcmpl-{len(self.asked)}-{time.time_ns()}"
        head = {"id": id, "created": int(time.time()), "model": model}
        if body.get("stream"):
            with_usage = usage if (body.get("stream_options") or {}).get("include_usage") and self.usage else None
            chunks = _chunks(head, words, with_usage, kind, self.usage == "each")
            return StreamingResponse(chunks, media_type="text/event-stream")
        if kind == "broken":
            return Response('{"id": "chatcmpl-1", "choi', media_type="application/json")
        if kind == "no completion":
            return JSONResponse({"id": "chatcmpl-1", "object": "chat.completion"})
        message = {"role": "assistant", "content": "word " * words}
        content = head | {
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        }
        return _Lost(content) if kind in ("lost", "cut") else JSONResponse(content | self._with(usage))

    def _with(self, usage):
        return {"usage": usage} if self.usage else {}

    @contextlib.contextmanager
    def serving(self):
        """Its address, while it is served by a thread."""
        port = free_port()
        server = uvicorn.Server(uvicorn.Config(self.app, port=port, log_level="critical", lifespan="off"))
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.should_exit = True
            thread.join()


class _Lost(JSONResponse):
    """An answer that never arrives: the connection ends in the middle of it."""

    async def __call__(self, scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9999")]})
        await send({"type": "http.response.body", "body": self.body[:10]})


async def _chunks(head, words, usage, kind, in_each):
    head = head | {"object": "chat.completion.chunk"}
    for number in range(words):
        if kind in ("lost", "cut", "silent") and number >= words // 2:
            if kind == "silent":
                return
            raise ConnectionAbortedError
        part = (
            {"usage": usage | {"completion_tokens": number + 1, "total_tokens": usage["prompt_tokens"] + number + 1}}
            if in_each
            else {}
        )
        yield _event(head | {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "word "}}]} | part)
    yield _event(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if usage is not None:
        yield _event(head | {"choices": [], "usage": usage})
    yield "data: [DONE]\n\n"


def _event(content):
    return f"data: {json.dumps(content)}\n\n"


def _error(status, message, headers=None):
    return JSONResponse({"error": {"message": message, "type": "error", "code": str(status)}}, status, headers)
