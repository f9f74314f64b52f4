"""A progress bar for long work."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PAUSE = 30.0  # seconds between lines


@contextmanager
def progress_bar(unit: str, wanted: bool, lines: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show "unit 3 of 20", a bar and the time left on a terminal's stderr; yield what takes (done, total).

    Elsewhere there is nothing to see, or with `lines` a line now and then, for work that runs for long into a log.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if wanted and lines and not console.is_terminal:
        yield _Lines(unit)
        return
    columns = (TextColumn(unit + " {task.completed} of {task.total}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not (wanted and console.is_terminal)) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class _Lines:
    """Tells progress and the time left in lines on stderr, the first one after a pause."""

    def __init__(self, unit: str) -> None:
        self.unit, self.began = unit, time.monotonic()
        self.told = self.began
        self.before: int | None = None

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self.before is None:
            self.before = done  # what was done in an earlier call says nothing about speed
        if now - self.told < _PAUSE or done == total:
            return
        self.told = now
        left = (now - self.began) / max(done - self.before, 1) * (total - done)
        print(f"{self.unit} {done} of {total}, {left / 60:.1f} min left", file=sys.stderr, flush=True)
