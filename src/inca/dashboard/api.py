"""What the pages ask, answered from the library."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from inca._base.validation import refuse
from inca.dashboard.adversary_view import adversary_view
from inca.dashboard.kept_documents import KeptDocuments
from inca.dashboard.questions import (
    AdversaryQuestion,
    FileQuestion,
    NoiseQuestion,
    RunQuestion,
    SessionQuestion,
)
from inca.dashboard.run_view import run_view
from inca.dashboard.sessions import all_sessions, one_session
from inca.dashboard.shown_run import ShownRun
from inca.errors import InvalidInput
from inca.privacy.calibration import Tradeoff
from inca.privacy.gaussian import mu_for
from inca.privacy.view import View
from inca.protocol.execution_files import write_execution
from inca.protocol.transcript import Transcript

_MAX_RUNS_KEPT = 8


class DashboardApi:
    """Answers to the questions of pages, as objects for JSON."""

    def __init__(self, session_folders: Sequence[Path], files: Iterable[Path]) -> None:
        self._folders, self._documents = list(session_folders), KeptDocuments()
        for path in files:
            self._documents.open(path.name, _content(path))
        self._simulated = lru_cache(maxsize=_MAX_RUNS_KEPT)(ShownRun.simulated)

    def run(self, question: RunQuestion) -> dict[str, Any]:
        """Return a run, round by round."""
        run = self._run(question)
        return run_view(run, run.adversary(question.adversary))

    def adversary(self, question: AdversaryQuestion) -> dict[str, Any]:
        """Return the adversary's view of a run."""
        run = self._run(question)
        return adversary_view(
            run, run.observer(question.adversary), question.delta, run.sensitivity(question.sensitivity)
        )

    def sufficient_noise(self, question: NoiseQuestion) -> dict[str, float | None]:
        """Return the least cancelling noise that keeps every loss below epsilon; null if none does."""
        run = self._run(question)
        if (sigma_independent := run.transcript.sigma_independent) is None:
            refuse("sigma_independent", None, "named in the file")
        tradeoff = Tradeoff(View(run.execution, run.observer(question.adversary)))
        mu, sensitivity = mu_for(question.epsilon, question.delta), run.sensitivity(question.sensitivity)
        level = tradeoff.sigma_cancelling(mu, sigma_independent=sigma_independent, sensitivity=sensitivity)
        return {"sigma_cancelling": level if level < float("inf") else None}

    def execution(self, question: RunQuestion) -> bytes:
        """Return a run as a file in the interchange format, without any value or noise."""
        run = self._run(question)
        transcript = Transcript(
            run.execution,
            sigma_independent=run.transcript.sigma_independent,
            sigma_cancelling=run.transcript.sigma_cancelling,
            adversary=run.adversary(question.adversary),
            sensitivity=run.transcript.sensitivity,
            agreed=run.transcript.agreed,
        )
        with tempfile.TemporaryDirectory() as folder:
            write_execution(Path(folder) / "execution.json", transcript)
            return (Path(folder) / "execution.json").read_bytes()

    def open(self, name: str, content: bytes) -> dict[str, str]:
        """Open a file."""
        return self._documents.open(name, content).summary()

    def files(self) -> dict[str, Any]:
        """Return the files that are open, the last one first, and how many are kept."""
        return self._documents.summary()

    def file(self, question: FileQuestion) -> dict[str, Any]:
        """Return a file that was opened before."""
        return self._documents[question.file].answer()

    def sessions(self) -> dict[str, Any]:
        """Return all sessions, and which folders are watched."""
        return {"sessions": all_sessions(self._folders), "watching": [str(folder) for folder in self._folders]}

    def session(self, question: SessionQuestion) -> dict[str, Any]:
        """Return one session."""
        return one_session(self._folders, question.session)

    def _run(self, question: RunQuestion) -> ShownRun:
        if question.file is None:
            return self._simulated(question.settings)
        if (run := self._documents[question.file].run) is None:
            refuse("file", question.file, "the id of an execution")
        return run


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None
