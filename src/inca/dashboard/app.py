"""The application: pages, and the questions that they ask."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from inca._base.validation import InputError, positive, real
from inca._base.version import __version__
from inca.dashboard import estimates
from inca.dashboard.access import Guard
from inca.dashboard.adversary_view import eyes_view
from inca.dashboard.documents import MOST_BYTES, Documents
from inca.dashboard.runs import run_view
from inca.dashboard.scene import INJECTIONS, MOST_PARTIES, MOST_ROUNDS, SCHEDULES, Description, Scene, number
from inca.dashboard.sessions import all_sessions, one_session
from inca.privacy.calibration import Tradeoff
from inca.privacy.gaussian import mu_for
from inca.privacy.view import View
from inca.protocol.transcript import Transcript, write_execution

_LOG = logging.getLogger("inca.dashboard")
_STATIC = Path(__file__).parent / "static"
_TOGETHER = 4  # questions worked on at the same time; more would only wait for each other
PAGES = ("plan", "run", "eyes", "sessions", "file")


class _Gone(Exception):
    """Nobody waits for the answer any more."""


class Answers:
    """What the pages ask, answered from the library."""

    def __init__(self, sessions: Sequence[Path], opened: Iterable[Path]) -> None:
        """Watch these `--state` folders, and open these files."""
        self._folders, self._documents = list(sessions), Documents()
        self.opened = [self._documents.open(path.name, _content(path)) for path in opened]
        self._described = lru_cache(maxsize=8)(Scene.described)

    def about(self, given: Mapping[str, str]) -> dict[str, Any]:
        """What the application can do."""
        return {
            "version": __version__,
            "schedules": SCHEDULES,
            "injections": INJECTIONS,
            "most_parties": MOST_PARTIES,
            "most_rounds": MOST_ROUNDS,
            "watching": [str(folder) for folder in self._folders],
            "opened": [each.as_dict() for each in self.opened],
        }

    def run(self, given: Mapping[str, str]) -> dict[str, Any]:
        """A run, round by round."""
        return run_view(self._scene(given), given)

    def eyes(self, given: Mapping[str, str]) -> dict[str, Any]:
        """A run through an adversary's eyes."""
        return eyes_view(self._scene(given), given)

    def enough(self, given: Mapping[str, str]) -> dict[str, Any]:
        """How much cancelling noise is enough for (epsilon, delta) against this adversary, in this run."""
        scene, wanted = self._scene(given), {"epsilon": "1", "delta": "1e-5"} | dict(given)
        if scene.sigma_independent is None:
            raise InputError("the file names no level of independent noise, but one was expected")
        epsilon, delta = (number(name, wanted[name], float) for name in ("epsilon", "delta"))
        mu = mu_for(positive("epsilon", epsilon), real("delta", delta, 0.0, 1.0))
        view = View(scene.execution, scene.seen_by(given))
        level = Tradeoff(view).sigma_cancelling(mu, scene.sigma_independent)
        return {"sigma_cancelling": level if level < float("inf") else None, "mu": mu}

    def open(self, name: str, content: bytes) -> dict[str, Any]:
        """A file, read."""
        return self._documents.open(name, content).as_dict()

    def file(self, given: Mapping[str, str]) -> dict[str, Any]:
        """A file that was opened before."""
        return self._documents[given.get("file", "")].as_dict()

    def execution(self, given: Mapping[str, str]) -> bytes:
        """The execution of a run in the interchange format, without any value or noise."""
        import tempfile

        scene = self._scene(given)
        adversary = scene.seen_by(given)
        levels = scene.sigma_independent, scene.sigma_cancelling
        transcript = Transcript(scene.execution, *levels, adversary.colluding, adversary.eavesdropped)
        with tempfile.TemporaryDirectory() as folder:
            write_execution(Path(folder) / "execution.json", transcript)
            return (Path(folder) / "execution.json").read_bytes()

    def sessions(self, given: Mapping[str, str]) -> dict[str, Any]:
        """All sessions, or one of them."""
        if "session" in given:
            return one_session(self._folders, given["session"])
        return {"sessions": all_sessions(self._folders), "watching": [str(folder) for folder in self._folders]}

    def _scene(self, given: Mapping[str, str]) -> Scene:
        if "file" not in given:
            return self._described(Description.read(given))
        if (scene := self._documents[given["file"]].scene) is None:
            raise InputError(f"file is {given['file']!r}, but an execution was expected")
        return scene


def application(answers: Answers, hosts: Iterable[str]) -> Starlette:
    """Return the application that answers to these hosts (with port) only."""
    asked: dict[str, Callable[[Mapping[str, str]], Any]] = {
        "about": answers.about,
        "run": answers.run,
        "eyes": answers.eyes,
        "enough": answers.enough,
        "file": answers.file,
        "sessions": answers.sessions,
    }

    busy = asyncio.Semaphore(_TOGETHER)

    def question(name: str) -> Route:
        async def answer(request: Request) -> Response:
            async with busy:
                if await request.is_disconnected():  # while it waited: a slider moves faster than an accountant
                    return Response(status_code=204)
                return _json(await run_in_threadpool(asked[name], dict(request.query_params)))

        return Route(f"/api/{name}", answer)

    async def open_file(request: Request) -> Response:
        content = bytearray()
        async for chunk in request.stream():
            content += chunk
            if len(content) > MOST_BYTES:
                raise InputError(f"the file has more than {MOST_BYTES >> 20} MiB, but a smaller one was expected")
        name = request.query_params.get("name", "file.json")
        return _json(await run_in_threadpool(answers.open, name, bytes(content)))

    async def download(request: Request) -> Response:
        content = await run_in_threadpool(answers.execution, dict(request.query_params))
        headers = {"Content-Disposition": 'attachment; filename="execution.json"'}
        return Response(content, media_type="application/json", headers=headers)

    async def page(request: Request) -> Response:
        return FileResponse(_STATIC / "index.html")

    return Starlette(
        routes=[
            Route("/", lambda request: RedirectResponse("/plan")),
            *(Route(f"/{name}", page) for name in PAGES),
            *(question(name) for name in asked),
            Route("/api/open", open_file, methods=["POST"]),
            Route("/api/execution", download),
            *(_streamed(name, work) for name, work in _LONG.items()),
            Mount("/static", StaticFiles(directory=_STATIC)),
        ],
        middleware=[Middleware(Guard, hosts=hosts)],
        exception_handlers={InputError: _refused},
    )


Told = Callable[[dict[str, Any]], None]


def _estimates(given: Mapping[str, str], tell: Told) -> None:
    for each in estimates.estimate(given):
        tell(each)


def _plan(given: Mapping[str, str], tell: Told) -> None:
    tell(estimates.full(given, lambda done, total: tell({"progress": [done, total]})))


def _rivals(given: Mapping[str, str], tell: Told) -> None:
    for make in estimates.slow_rivals(given):
        tell(make())


_LONG: dict[str, Callable[[Mapping[str, str], Told], None]] = {
    "estimate": _estimates,
    "plan": _plan,
    "rivals": _rivals,
}


def _streamed(name: str, work: Callable[[Mapping[str, str], Told], None]) -> Route:
    async def answer(request: Request) -> Response:
        return await _stream(request, work)

    return Route(f"/api/{name}", answer)


async def _stream(request: Request, work: Callable[[Mapping[str, str], Told], None]) -> Response:
    """Answer line by line while the work goes on in a thread, and stop it when the page has gone."""
    loop, lines, gone = asyncio.get_running_loop(), asyncio.Queue[bytes | None](), threading.Event()

    def tell(each: dict[str, Any]) -> None:
        if gone.is_set():
            raise _Gone
        loop.call_soon_threadsafe(lines.put_nowait, msgspec.json.encode(each) + b"\n")

    def do() -> None:
        try:
            work(dict(request.query_params), tell)
        except InputError as error:
            loop.call_soon_threadsafe(lines.put_nowait, msgspec.json.encode({"error": str(error)}) + b"\n")
        except _Gone:
            pass
        except Exception:  # a mistake of ours: the page should say so, and the terminal how it came about
            _LOG.exception("a question could not be answered")
            failed = {"error": "this could not be worked out; the terminal of the dashboard says why"}
            loop.call_soon_threadsafe(lines.put_nowait, msgspec.json.encode(failed) + b"\n")
        finally:
            loop.call_soon_threadsafe(lines.put_nowait, None)

    async def body() -> AsyncIterator[bytes]:
        done = loop.run_in_executor(None, do)
        try:
            while (line := await lines.get()) is not None:
                yield line
            await done
        finally:
            gone.set()

    return StreamingResponse(body(), media_type="application/x-ndjson")


def _json(answer: Any) -> Response:
    return Response(msgspec.json.encode(answer), media_type="application/json")


def _refused(request: Request, error: Exception) -> Response:
    return Response(msgspec.json.encode({"error": str(error)}), 400, media_type="application/json")


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
