from __future__ import annotations

import time

import pytest

from inca.cli.times import duration, future_time
from inca.errors import InvalidInput
from inca.reporting.parts import in_words


@pytest.mark.parametrize(
    ("text", "seconds"), [("10s", 10), ("500ms", 0.5), ("2m", 120), ("1.5h", 5400), ("1d", 86400), (".5", 0.5)]
)
def test_durations(text: str, seconds: float) -> None:
    assert duration("--period", text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "1 week", "-1s", "s", "1e3", "ten"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        duration("--period", text)
    assert str(refusal.value) == f"--period must be a length of time such as 10s, 500ms, 2m, 1h or 1d, got {text!r}"


def test_a_time_to_come() -> None:
    assert future_time("--start", "2090-01-15T08:00:00Z") == future_time("--start", "2090-01-15T10:00:00+02:00")
    assert time.time() + 599 < future_time("--start", "+10m") < time.time() + 602


@pytest.mark.parametrize("text", ["soon", "2020-01-01T00:00:00Z", "2090-01-01T00:00:00"])
def test_what_is_no_time_to_come_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="--start must be a time to come such as 2030-01-15T08:00:00Z, or "):
        future_time("--start", text)


@pytest.mark.parametrize(
    ("seconds", "words"), [(50, "50 s"), (200, "3 min 20 s"), (27_000, "7 h 30 min"), (0.5, "0.5 s"), (3600, "1 h")]
)
def test_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
