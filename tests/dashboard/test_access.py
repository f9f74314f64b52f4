"""Who may ask: pages of this very application, and nobody else's."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from helpers.dashboard_server import CONSORTIUM, Dashboard
from inca.dashboard.access import AccessControl


@pytest.mark.parametrize(
    "path", ["/plan", "/api/files", "/api/sessions", "/static/0123456789abcdef/css/base.css", "/nothing"]
)
def test_another_host_name_is_refused(board: Dashboard, path: str) -> None:
    """A page elsewhere could give this machine's address a name of its own."""
    for host in ("evil.example", f"evil.example:{board.port}", "127.0.0.1", f"127.0.0.1:{board.port + 1}"):
        answer = board.get(path, {"Host": host})
        assert answer.status == 403 and answer.body == b"refused: the request names another host\n"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    ],
)
def test_other_sites_are_refused(board: Dashboard, headers: dict[str, str]) -> None:
    answer = board.get("/api/files", headers)
    assert answer.status == 403 and b"another site" in answer.body
    assert board.post("/api/open", b"{}", headers).status == 403


def test_a_file_from_nowhere_is_refused(board: Dashboard) -> None:
    request = board.post("/api/open?name=x.json", CONSORTIUM.read_bytes(), {"Origin": "http://127.0.0.1"})
    assert request.status == 403


LINK = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.mark.parametrize("question", ["plan?parties=200", "run", "adversary?colluding=1", "files"])
def test_neither_a_link_from_elsewhere_nor_a_frame_starts_work(board: Dashboard, question: str) -> None:
    for headers in (LINK, LINK | {"Sec-Fetch-Dest": "iframe"}):
        answer = board.get(f"/api/{question}", headers)
        assert answer.status == 403 and b"another site" in answer.body
    assert board.get("/run", LINK | {"Sec-Fetch-Dest": "iframe"}).status == 403


def test_a_link_from_elsewhere_may_be_followed_and_its_page_loads_nothing_from_elsewhere(board: Dashboard) -> None:
    answer = board.get("/run", LINK)
    assert answer.status == 200 and b"<main" in answer.body
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "http" not in policy and "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff" and "access-control-allow-origin" not in answer.headers


def answered(method: str, headers: dict[str, str], kind: str = "http") -> tuple[int | None, bytes]:
    """Ask an application behind the control; return the status and the body, None if nobody answered over HTTP."""
    sent: list[Message] = []
    reached: list[str] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        reached.append(scope["type"])
        if scope["type"] == "http":
            await PlainTextResponse("here you are")(scope, receive, send)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": kind, "method": method, "path": "/", "headers": raw}
    control = AccessControl(application, ["127.0.0.1:8000", "localhost:8000"])
    with ThreadPoolExecutor(1) as elsewhere:  # a browser of other tests may have a loop in this thread
        elsewhere.submit(lambda: asyncio.run(control(scope, receive, send))).result()
    if kind != "http":
        assert reached == [kind]
        return None, b""
    status = next(message["status"] for message in sent if message["type"] == "http.response.start")
    assert reached == (["http"] if status == 200 else [])  # what is refused never gets through
    names = {name for message in sent if "headers" in message for name, _ in message["headers"]}
    assert {b"content-security-policy", b"cache-control", b"cross-origin-resource-policy"} <= names
    return status, b"".join(message.get("body", b"") for message in sent)


HERE = {"Host": "127.0.0.1:8000"}
OWN = HERE | {"Origin": "http://127.0.0.1:8000"}
ELSEWHERE = {"Sec-Fetch-Site": "cross-site"}


@pytest.mark.parametrize(
    ("method", "headers", "sentence"),
    [
        ("POST", HERE, "the request does not say where it comes from"),
        ("POST", HERE | {"Origin": "http://localhost:8000"}, "the request comes from another site"),
        ("POST", HERE | ELSEWHERE | {"Sec-Fetch-Mode": "navigate"}, "the request comes from another site"),
        ("POST", OWN | ELSEWHERE, "the request comes from another site"),
        ("GET", HERE | ELSEWHERE, "the request comes from another site"),
        ("GET", HERE | ELSEWHERE | {"Sec-Fetch-Mode": "navigate"}, "the request comes from another site"),
        ("GET", HERE | {"Origin": "https://127.0.0.1:8000"}, "the request comes from another site"),
        ("GET", OWN | {"Host": "evil.example"}, "the request names another host"),
        ("GET", {}, "the request names another host"),
        ("DELETE", HERE | ELSEWHERE | {"Sec-Fetch-Mode": "navigate"}, "the request comes from another site"),
    ],
)
def test_forged_requests_are_refused(method: str, headers: dict[str, str], sentence: str) -> None:
    assert answered(method, headers) == (403, f"refused: {sentence}\n".encode())


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", HERE),
        ("GET", {"Host": "localhost:8000"}),
        ("GET", OWN),
        ("GET", HERE | {"Sec-Fetch-Site": "same-origin"}),
        ("GET", HERE | {"Sec-Fetch-Site": "none"}),
        ("GET", HERE | LINK),
        ("POST", OWN),
        ("POST", HERE | {"Sec-Fetch-Site": "same-origin"}),
        ("POST", OWN | {"Sec-Fetch-Site": "same-origin"}),
        ("HEAD", HERE),
        ("PUT", HERE),
    ],
)
def test_requests_of_the_own_page_are_answered(method: str, headers: dict[str, str]) -> None:
    assert answered(method, headers) == (200, b"here you are")


def test_what_is_no_request_is_handed_on() -> None:
    assert answered("", {}, kind="lifespan") == (None, b"")
