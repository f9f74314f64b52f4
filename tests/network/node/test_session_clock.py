from __future__ import annotations

import time
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inca.network.node.session_clock import session_clock

START = 1_894_694_400.0


@given(st.lists(st.tuples(st.floats(0.0, 1e4), st.floats(-1e6, 1e6)), min_size=1, max_size=20))
def test_it_tells_the_seconds_that_pass_whatever_is_done_to_the_wall_clock(
    moments: list[tuple[float, float]],
) -> None:
    """Each moment comes some seconds after the one before, and then somebody sets the wall clock."""
    passed = list(accumulate(seconds for seconds, _ in moments))
    wall, steady = [START], [5.0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: wall[0])
        clock = session_clock(lambda: steady[0])
        assert clock() == pytest.approx(START, abs=1e-3)
        read = [clock()]
        for seconds, (_, change) in zip(passed, moments, strict=True):
            steady[0], wall[0] = 5.0 + seconds, START + seconds + change
            read.append(clock())
    assert [now - START for now in read[1:]] == pytest.approx(passed, abs=1e-3)
    assert all(before <= after for before, after in pairwise(read))


def test_by_default_it_agrees_with_a_wall_clock_that_nobody_sets() -> None:
    clock = session_clock()
    before, now, after = time.time(), clock(), time.time()
    assert before - 1.0 < now < after + 1.0
    time.sleep(0.02)
    assert clock() > now


def test_it_goes_on_where_the_system_does_not_count_suspended_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    monkeypatch.setattr(time, "monotonic", lambda: 7.0)
    clock = session_clock()
    monkeypatch.setattr(time, "monotonic", lambda: 9.0)
    before = session_clock(lambda: 9.0)()
    assert clock() - before == pytest.approx(2.0, abs=1.0)
