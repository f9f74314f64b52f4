"""Progress of long work on stderr: a bar on a terminal, and now and then a line elsewhere.

Both speak up by themselves, from a thread: work that has not yet said how much of it there is must not look stuck.
"""

from __future__ import annotations

import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

SHOW_AFTER_S = 0.3
"""How long work must have taken for its bar to appear: shorter work ends before anyone could read it."""
FIRST_LINE_S = 5.0
"""After how long there is a first line where there is no terminal."""
LINE_EVERY_S = 30.0

STARTING = "starting"
"""What is shown until the work has said how many steps there are."""


@contextmanager
def progress_bar(unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show "unit 3 of 20", a bar and the time left on a terminal; elsewhere a line now and then."""
    with phase_bar({unit: unit}) as show:
        yield lambda done, total: show(unit, done, total)


@contextmanager
def phase_bar(units: Mapping[str, str]) -> Iterator[Callable[[str, int, int], None]]:
    """Show the progress of work in phases, one bar after the other; `units` says what each phase counts."""
    from rich.console import Console

    console = Console(stderr=True)
    with _Bar(console, units) if console.is_terminal else _Lines(units) as shown:
        yield shown.show


class _Display(ABC):
    """What is shown of the progress: `_look` is called by the work and, four times a second, by a thread."""

    def __init__(self, units: Mapping[str, str]) -> None:
        self._units, self._began = units, time.monotonic()
        self._phase: str | None = None
        self._done, self._total = 0, 0
        self._lock, self._ended = threading.RLock(), threading.Event()
        self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)

    def show(self, phase: str, done: int, total: int) -> None:
        with self._lock:
            self._begin_step(phase, done, total)
            self._look()

    def _begin_step(self, phase: str, done: int, total: int) -> None:
        self._phase, self._done, self._total = phase, done, total

    def _text(self) -> str:
        if self._phase is None:
            return STARTING
        return f"{self._units[self._phase]} {self._done} of {self._total}"

    @abstractmethod
    def _look(self) -> None:
        """Bring what is shown up to date, if it is time."""

    def _watch(self) -> None:
        while not self._ended.wait(0.25):
            with self._lock:
                if not self._ended.is_set():
                    self._look()

    def __enter__(self) -> _Display:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()


class _Bar(_Display):
    def __init__(self, console: Console, units: Mapping[str, str]) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        super().__init__(units)
        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=console, transient=True)
        self._shown = False

    def _begin_step(self, phase: str, done: int, total: int) -> None:
        if phase != self._phase:  # the time left is that of a phase
            for task in self._progress.task_ids:
                self._progress.remove_task(task)
        super()._begin_step(phase, done, total)

    def _look(self) -> None:
        if time.monotonic() - self._began < SHOW_AFTER_S:
            return
        if not self._progress.task_ids:
            self._progress.add_task(self._text(), total=None)
        if not self._shown:
            self._progress.start()
            self._shown = True
        total = None if self._phase is None else self._total
        self._progress.update(self._progress.task_ids[0], description=self._text(), completed=self._done, total=total)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if self._shown:
            self._progress.stop()


class _Lines(_Display):
    def __init__(self, units: Mapping[str, str]) -> None:
        super().__init__(units)
        self._next_line = self._began + FIRST_LINE_S
        self._phase_began = self._stepped = self._began
        self._done_before = 0

    def _begin_step(self, phase: str, done: int, total: int) -> None:
        if phase != self._phase:  # what was done in an earlier call says nothing about speed
            self._phase_began, self._done_before = time.monotonic(), done
        if (phase, done) != (self._phase, self._done):
            self._stepped = time.monotonic()
        super()._begin_step(phase, done, total)

    def _look(self) -> None:
        now = time.monotonic()
        if now < self._next_line or (self._phase is not None and self._done == self._total):
            return
        self._next_line = now + LINE_EVERY_S
        text = self._text()
        if (steps := self._done - self._done_before) > 0:
            left = (self._stepped - self._phase_began) / steps * (self._total - self._done)
            text += f", {left / 60:.1f} min left"
        print(text, file=sys.stderr, flush=True)
