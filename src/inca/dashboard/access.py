"""Who may ask: pages of this very application, and nobody else's.

A browser shows any page from anywhere, and such a page can send requests to this machine. So a request must name this
server as its host (or a page could reach it under a name of its own, "DNS rebinding"), and must not come from another
site; only opening a page by a link from elsewhere is allowed, since it shows something to its user and to nobody else.
An answer is not a page: a link to one, or a frame, could start long work here.
"""

from __future__ import annotations

from collections.abc import Iterable

from inca._base.extras import importing

with importing("inca.dashboard", extra="dashboard"):
    from starlette.datastructures import Headers, MutableHeaders
    from starlette.responses import PlainTextResponse
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


_RESPONSE_HEADERS = {
    # Everything comes from this server; pictures are also made in the page (blob:, data:).
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob: data:; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class AccessControl:
    """ASGI middleware: refuse requests to other hosts or from other sites; browsers load nothing from elsewhere."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self._app, self._hosts = app, frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or hand on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_RESPONSE_HEADERS)
                headers.setdefault("Cache-Control", "no-store")  # but for files that are the same for everyone
            await send(message)

        if why := self._refusal(scope["method"], scope["path"], Headers(scope=scope)):
            response = PlainTextResponse(f"refused: {why}\n", 403)
            await response(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)

    def _refusal(self, method: str, path: str, headers: Headers) -> str:
        host, origin = headers.get("host", ""), headers.get("origin")
        if host not in self._hosts:
            return "the request names another host"
        if origin is not None and origin != f"http://{host}":
            return "the request comes from another site"
        navigates = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        opens_page = method == "GET" and navigates and not path.startswith("/api/")  # answers take work, pages none
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not opens_page:
            return "the request comes from another site"
        if method == "POST" and origin is None and "sec-fetch-site" not in headers:
            return "the request does not say where it comes from"
        return ""
