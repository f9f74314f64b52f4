from __future__ import annotations

import threading
from functools import partial

import pytest

from inca._base.threads import Crew


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_crew_does_every_job_once_and_reports_from_the_calling_thread(threads: int) -> None:
    reports: list[tuple[int, int]] = []
    callers = set()

    def report(done: int, total: int) -> None:
        reports.append((done, total))
        callers.add(threading.get_ident())

    with Crew(threads) as crew:
        assert crew.work([partial(pow, number, 2) for number in range(100)], report) == [n * n for n in range(100)]
    assert reports[-1] == (100, 100) and reports == sorted(set(reports))
    assert callers == {threading.get_ident()}
    if threads == 1:
        assert reports == [(done, 100) for done in range(1, 101)]


@pytest.mark.parametrize("threads", [1, 2])
def test_after_an_error_no_further_job_is_begun(threads: int) -> None:
    """What other threads have begun is finished: here each of them waits until the error is on its way."""
    begun, failing = [], threading.Event()

    def job(number: int) -> None:
        begun.append(number)
        if number == 0:
            failing.set()
            raise ArithmeticError("job 0")
        failing.wait()

    with Crew(threads) as crew, pytest.raises(ArithmeticError, match="job 0"):
        crew.work([partial(job, number) for number in range(10_000)])
    assert len(begun) < 10_000
    with Crew(threads) as crew, pytest.raises(ArithmeticError, match="no more"):

        def report(done: int, total: int) -> None:
            raise ArithmeticError("no more")

        crew.work([partial(pow, 2, 2)] * 100_000, report)
