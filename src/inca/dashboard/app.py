"""The application: pages, and the routes of their questions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from inca._base.extras import importing
from inca._base.files import files_digest
from inca.dashboard.access import AccessControl
from inca.dashboard.api import DashboardApi
from inca.dashboard.documents import MAX_BYTES
from inca.dashboard.plan_view import plan_view, slow_mechanisms
from inca.dashboard.questions import (
    AdversaryQuestion,
    FileQuestion,
    NoiseQuestion,
    Params,
    PlanQuestion,
    RunQuestion,
    SessionQuestion,
)
from inca.dashboard.streaming import Emit, streamed
from inca.errors import IncaError, InvalidInput
from inca.reporting.svg import FIGURE_STYLE

with importing("inca.dashboard", extra="dashboard"):
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, RedirectResponse, Response
    from starlette.routing import BaseRoute, Mount, Route
    from starlette.staticfiles import StaticFiles

_STATIC = Path(__file__).parent / "static"
_MAX_CONCURRENT_QUESTIONS = 4  # more would only wait for each other
_MAX_LONG_JOBS = 8  # of pages that are left, work goes on until it next says how far it is
_PAGES = ("story", "plan", "run", "adversary", "sessions", "file")


def application(api: DashboardApi, hosts: Iterable[str]) -> Starlette:
    """Return the application."""
    place = f"/static/{_digest(_STATIC)}"
    page = (_STATIC / "index.html").read_text(encoding="utf-8").replace("/static", place)
    return Starlette(
        routes=[
            Route("/", lambda request: RedirectResponse("/story")),
            *(Route(f"/{name}", lambda request: HTMLResponse(page)) for name in _PAGES),
            *_question_routes(api),
            _slow_route(),
            Route("/api/open", _open_route(api), methods=["POST"]),
            Route("/api/execution", _download_route(api)),
            Route("/figures.css", lambda request: Response(FIGURE_STYLE, media_type="text/css")),
            Mount(place, _UnchangingFiles(directory=_STATIC)),
        ],
        middleware=[Middleware(AccessControl, hosts=hosts)],
        exception_handlers={IncaError: _refused},
    )


def _digest(folder: Path) -> str:
    """Return a short digest of all files in a folder."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return files_digest(folder, names)[:16]


class _UnchangingFiles(StaticFiles):
    """Files that browsers keep, as their address has the digest of their contents: others have another address.

    A view consists of 40 of them, and to ask for them again takes as long as to show it.
    """

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "max-age=31536000, immutable"
        return response


def _question_routes(api: DashboardApi) -> list[BaseRoute]:
    answers: dict[str, Callable[[Params], Any]] = {
        "run": lambda params: api.run(RunQuestion.parse(params)),
        "adversary": lambda params: api.adversary(AdversaryQuestion.parse(params)),
        "sufficient-noise": lambda params: api.sufficient_noise(NoiseQuestion.parse(params)),
        "plan": lambda params: plan_view(PlanQuestion.parse(params)),
        "files": lambda params: api.files(),
        "file": lambda params: api.file(FileQuestion.parse(params)),
        "sessions": lambda params: api.sessions(),
        "session": lambda params: api.session(SessionQuestion.parse(params)),
    }
    busy = asyncio.Semaphore(_MAX_CONCURRENT_QUESTIONS)

    def route(name: str) -> Route:
        async def answer(request: Request) -> Response:
            async with busy:
                if await request.is_disconnected():  # while it waited: a slider moves faster than an accountant
                    return Response(status_code=204)
                return _json(await run_in_threadpool(answers[name], dict(request.query_params)))

        return Route(f"/api/{name}", answer)

    return [route(name) for name in answers]


def _slow_route() -> BaseRoute:
    places = threading.Semaphore(_MAX_LONG_JOBS)

    def work_in_turn(params: Params, emit: Emit) -> None:
        question = PlanQuestion.parse(params)
        if not places.acquire(blocking=False):
            raise InvalidInput(f"at most {_MAX_LONG_JOBS} long computations can be under way, got one more: cancel one")
        try:
            for entry in slow_mechanisms(question):
                emit(entry)
        finally:
            places.release()

    async def answer(request: Request) -> Response:
        params = dict(request.query_params)
        return streamed(lambda emit: work_in_turn(params, emit))

    return Route("/api/slow-mechanisms", answer)


def _open_route(api: DashboardApi) -> Callable[[Request], Any]:
    async def open_file(request: Request) -> Response:
        content = bytearray()
        async for chunk in request.stream():
            content += chunk
            if len(content) > MAX_BYTES:
                raise InvalidInput(f"the file must have at most {MAX_BYTES >> 20} MiB, got more")
        name = request.query_params.get("name", "file.json")
        return _json(await run_in_threadpool(api.open, name, bytes(content)))

    return open_file


def _download_route(api: DashboardApi) -> Callable[[Request], Any]:
    async def download(request: Request) -> Response:
        question = RunQuestion.parse(dict(request.query_params))
        content = await run_in_threadpool(api.execution, question)
        headers = {"Content-Disposition": 'attachment; filename="execution.json"'}
        return Response(content, media_type="application/json", headers=headers)

    return download


def _json(answer: Any) -> Response:
    return Response(msgspec.json.encode(answer), media_type="application/json")


def _refused(request: Request, error: Exception) -> Response:
    return Response(msgspec.json.encode({"error": str(error)}), 400, media_type="application/json")
