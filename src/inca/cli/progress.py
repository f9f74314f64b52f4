"""Progress of long work on stderr: a bar on a terminal, and now and then a line in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

SHOW_AFTER_S = 0.3
"""How long work must have taken for its bar to appear: shorter work ends before anyone could read it."""
LINE_EVERY_S = 30.0


@contextmanager
def progress_bar(unit: str, *, lines: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show "unit 3 of 20", a bar and the time left on a terminal.

    Elsewhere there is nothing to see, or with `lines` a line now and then, for long work that runs into a log.

    Yields:
        What is to be called with (steps done, steps in all).
    """
    with phase_bar({unit: unit}, lines=lines) as show:
        yield lambda done, total: show(unit, done, total)


@contextmanager
def phase_bar(units: Mapping[str, str], *, lines: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """Show the progress of work in phases, one bar after the other; `units` says what each phase counts.

    Yields:
        What is to be called with (phase, steps done, steps in all).
    """
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        with _Bar(console, units) as bar:
            yield bar.show
    elif lines:
        yield _Lines(units).show
    else:
        yield lambda phase, done, total: None


class _Bar:
    def __init__(self, console: Console, units: Mapping[str, str]) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        counted = TextColumn("{task.description} {task.completed} of {task.total}")
        self._units, self._began = units, time.monotonic()
        self._progress = Progress(counted, BarColumn(), TimeRemainingColumn(), console=console, transient=True)
        self._phase: str | None = None

    def show(self, phase: str, done: int, total: int) -> None:
        if time.monotonic() - self._began < SHOW_AFTER_S:
            return
        if self._phase is None:
            self._progress.start()
        if self._phase != phase:
            for task in self._progress.task_ids:
                self._progress.remove_task(task)
            self._progress.add_task(self._units[phase], total=total)
            self._phase = phase
        self._progress.update(self._progress.task_ids[0], completed=done, total=total)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *error: object) -> None:
        if self._phase is not None:
            self._progress.stop()


class _Lines:
    def __init__(self, units: Mapping[str, str]) -> None:
        self._units, self._began = units, time.monotonic()
        self._last_line = self._began
        self._done_before: int | None = None

    def show(self, phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        if self._done_before is None:
            self._done_before = done  # what was done in an earlier call says nothing about speed
        if now - self._last_line < LINE_EVERY_S or done == total:
            return
        self._last_line = now
        left = (now - self._began) / max(done - self._done_before, 1) * (total - done)
        print(f"{self._units[phase]} {done} of {total}, {left / 60:.1f} min left", file=sys.stderr, flush=True)
