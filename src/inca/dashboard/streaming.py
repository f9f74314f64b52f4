"""Answers that come line by line while a thread works on them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from inca._base.extras import importing
from inca.errors import IncaError

with importing("inca.dashboard", extra="dashboard"):
    from starlette.responses import Response, StreamingResponse

_LOG = logging.getLogger("inca.dashboard")

Emit = Callable[[dict[str, Any]], None]
"""Sends a part of an answer."""


class _ClientGone(Exception):
    """Nobody waits for the answer any more."""


def streamed(work: Callable[[Emit], None]) -> Response:
    """Return a response of one JSON object per line, and stop the work when its reader has gone."""

    async def lines() -> AsyncIterator[bytes]:
        loop, queue, gone = asyncio.get_running_loop(), asyncio.Queue[bytes | None](), threading.Event()

        def emit(part: dict[str, Any]) -> None:
            if gone.is_set():
                raise _ClientGone
            loop.call_soon_threadsafe(queue.put_nowait, msgspec.json.encode(part) + b"\n")

        def run() -> None:
            try:
                _work_or_explain(work, emit)
            except _ClientGone:
                pass
            finally:
                loop.call_soon_threadsafe(queue.put_nowait, None)

        worker = loop.run_in_executor(None, run)
        try:
            while (line := await queue.get()) is not None:
                yield line
            await worker
        finally:
            gone.set()

    return StreamingResponse(lines(), media_type="application/x-ndjson")


def _work_or_explain(work: Callable[[Emit], None], emit: Emit) -> None:
    try:
        work(emit)
    except IncaError as error:
        emit({"error": str(error)})
    except _ClientGone:
        raise
    except Exception:  # a mistake of ours: the page says so, and the terminal where it happened
        _LOG.exception("a question could not be answered")
        emit({"error": "this could not be computed; the terminal of the dashboard says why"})
