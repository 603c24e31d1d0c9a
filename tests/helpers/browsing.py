"""A person at a browser, without one."""

import asyncio
import re

import httpx


class Browser:
    """A person at a browser, without one: keeps cookies, follows redirects if told to."""

    def __init__(self, app, key=None):
        self.app, self.cookies = app, httpx.Cookies()
        if key is not None:
            answer = self("POST", "/sign-in", {"key": key})
            assert answer.status_code == 303, answer.text

    def __call__(self, method, path, form=None, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}

        async def send():
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://service", cookies=self.cookies
            ) as client:
                answer = await client.request(method, path, data=form, headers=headers)
                self.cookies = client.cookies
                return answer

        return asyncio.run(send())

    def code(self, page="/campaigns/plain/pause"):
        return re.search(r'name="code" value="(\w+)"', self("GET", page).text)[1]
