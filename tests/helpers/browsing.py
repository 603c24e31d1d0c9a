"""A person at a browser, without one."""

import asyncio
import html
import re

import httpx


def button(page):
    """What the button of a confirmation sends; None if the page has none."""
    form = re.search(r"<form[^>]* data-confirm>.*?</form>", page, re.S)
    hidden = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form[0] if form else "")
    return {html.unescape(name): html.unescape(value) for name, value in hidden} or None


def seen(answer):
    """What a page says, without its drawings."""
    page = re.sub(r"<(script|style|svg).*?</\1>", " ", answer.text, flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


class Browser:
    """A person at a browser, without one: keeps cookies, follows redirects if told to."""

    def __init__(self, app, key=None):
        self.app, self.cookies, self._codes = app, httpx.Cookies(), {}
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

    def check(self, path, fields):
        """What is said below a form while it is filled in."""
        return self("POST", path, {"code": self.code("/"), **fields}, X_Part="check")

    def confirm(self, path, fields=None):
        """Send a form, and press the button that it leads to, if there is one: the last answer."""
        shown = self("POST", path, {"code": self.code("/"), **(fields or {})})
        pressed = button(shown.text)
        return shown if pressed is None else self("POST", path, pressed)

    def code(self, page="/campaigns/plain/pause"):
        """The code that all forms of the session carry, as the first page says that is asked for it."""
        session = self.cookies.get("budgetbandits_session")
        if session not in self._codes:
            self._codes[session] = re.search(r'name="code" value="(\w+)"', self("GET", page).text)[1]
        return self._codes[session]
