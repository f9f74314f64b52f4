"""A real dashboard for tests: a server of its own on a free port, and ways to ask it."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import uvicorn

import inca
from helpers.paths import ROOT
from inca.dashboard.api import DashboardApi
from inca.dashboard.app import application
from inca.dashboard.serve import host_names, listen

CONSORTIUM = ROOT / "examples" / "consortium.json"
"""A file with an execution."""
RUN: dict[str, object] = {
    "parties": 7,
    "rounds": 6,
    "seed": 5,
    "sigma_independent": 2.0,
    "sigma_cancelling": 12.0,
    "absent": "2:3-4 5:5-",
}
"""The parameters of a run; the values of its parties are means of 60 waiting times from 0 to 240 minutes."""


def run_execution() -> inca.Execution:
    """Return the execution of RUN."""
    present = np.ones((7, 7), dtype=bool)
    present[3:5, 2] = False
    present[5:, 5] = False
    schedule = inca.PermutationReceivers(7, rounds=6, seed=5)
    return inca.Execution(schedule, inca.incremental_injection(6, quiet=2), inca.Presence.explicit(present)).settled()


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.body.splitlines()]


class Dashboard:
    """A server that runs, and how to ask it."""

    def __init__(self, port: int) -> None:
        self.port, self.root = port, f"http://127.0.0.1:{port}"

    def get(self, path: str, headers: Mapping[str, str] | None = None, /, **params: object) -> Answer:
        query = f"?{urllib.parse.urlencode(params)}" if params else ""
        return self._send(urllib.request.Request(self.root + path + query, headers=dict(headers or {})))

    def ask(self, name: str, **params: object) -> Any:
        answer = self.get(f"/api/{name}", **params)
        assert answer.status == 200, answer.body
        return answer.json

    def refusal(self, name: str, **params: object) -> str:
        """Return the sentence with which a question is refused."""
        answer = self.get(f"/api/{name}", **params)
        assert answer.status == 400, answer.body
        return str(answer.json["error"])

    def post(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> Answer:
        sent = {"Origin": self.root, **(headers or {})}
        return self._send(urllib.request.Request(self.root + path, data=body, headers=sent, method="POST"))

    @staticmethod
    def _send(request: urllib.request.Request) -> Answer:
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return Answer(answer.status, dict(answer.headers), answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, dict(error.headers), error.read())


@contextmanager
def running(sessions: Sequence[Path] = (), opened: Sequence[Path] = ()) -> Iterator[Dashboard]:
    """Serve as `inca dashboard` does, in a thread."""
    listening = listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    config = uvicorn.Config(
        application(DashboardApi(sessions, opened), host_names("127.0.0.1", port)),
        log_level="error",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield Dashboard(port)
    finally:
        server.should_exit = True
        thread.join(timeout=20)
        listening.close()
        assert not thread.is_alive()
