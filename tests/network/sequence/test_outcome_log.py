"""Outcomes of a sequence of sessions on disk."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.examples import examples
from helpers.outcome_logs import BEACON, A, B, C, Outcomes, digest_of, log_of, result_of, vector
from inca.errors import InvalidInput
from inca.network.sequence.outcome_log import NO_RESULT, OutcomeLog, SessionResult, from_bytes, last_result, to_bytes


def test_a_log_is_found_again_and_goes_on(tmp_path: Path) -> None:
    first = log_of(tmp_path, [A, None, C])
    again = OutcomeLog(tmp_path)
    assert again.outcomes == first.outcomes == [digest_of(A), NO_RESULT, digest_of(C)]
    assert again.digest() == first.digest()
    one, three = again.result(1), again.result(3)
    assert one is not None and three is not None and again.result(2) is None
    assert np.array_equal(one.average, A) and np.array_equal(three.average, C)
    assert (one.standard_error, three.standard_error) == pytest.approx((0.1, 0.3))
    assert one.beacon == three.beacon == BEACON
    again.append(4, None)
    assert len(again) == 4 and last_result(again.outcomes) == 3


def test_outcomes_come_one_after_the_other(tmp_path: Path) -> None:
    log = log_of(tmp_path, [A])
    with pytest.raises(InvalidInput, match="number must be 2, the first session without an outcome, got 3"):
        log.append(3, result_of(B))
    with pytest.raises(InvalidInput, match="number must be from 1 to 1, got 2"):
        log.result(2)
    (tmp_path / "0002").mkdir()  # a session that was begun has no outcome yet
    assert len(OutcomeLog(tmp_path)) == 1


@pytest.mark.parametrize("beacon", ["", "00" * 31, "00" * 33, None])
def test_an_outcome_without_a_whole_beacon_is_refused(tmp_path: Path, beacon: str | None) -> None:
    log_of(tmp_path, [A])
    (tmp_path / "0001" / "noise.json").write_text("{}" if beacon is None else json.dumps({"beacon": beacon}))
    with pytest.raises(InvalidInput, match="the number of bytes of a beacon must be 32, got"):
        OutcomeLog(tmp_path)


def test_a_beacon_does_not_pass_for_a_part_of_the_average() -> None:
    longer = np.append(A, np.frombuffer(BEACON))
    assert hashlib.sha256(longer.tobytes()).digest() == digest_of(A)  # so an empty beacon would do
    with pytest.raises(InvalidInput, match="bytes of a beacon"):
        SessionResult(longer, None, b"")


def test_digests_differ_whenever_outcomes_do(tmp_path: Path) -> None:
    logs: list[Outcomes] = [[], [A], [B], [None], [A, None], [None, A], [A, B], [None, None]]
    digests = {log_of(tmp_path / str(i), outcomes).digest() for i, outcomes in enumerate(logs)}
    assert len(digests) == len(logs)


@settings(parent=examples(20, 60), deadline=None)
@given(st.lists(st.booleans(), max_size=6), st.lists(st.booleans(), max_size=6))
def test_taking_over_a_later_log_makes_them_equal_up_to_its_last_result(
    tmp_path_factory: pytest.TempPathFactory, mine: list[bool], theirs: list[bool]
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    own = log_of(folder / "own", [vector(i) if has else None for i, has in enumerate(mine)])
    other = log_of(folder / "other", [vector(i) if has else None for i, has in enumerate(theirs)])
    last = last_result(other.outcomes)
    before = own.outcomes
    averages = {number: known for number in range(1, last + 1) if (known := other.result(number)) is not None}
    changed = own.adopt(other.outcomes[:last], averages)
    assert own.outcomes[:last] == other.outcomes[:last] and own.outcomes[last:] == before[last:]
    assert changed == (before[:last] != other.outcomes[: len(before[:last])])
    assert OutcomeLog(folder / "own").outcomes == own.outcomes


def test_an_average_that_is_not_what_was_said_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="the digest of a result must be"):
        OutcomeLog(tmp_path).adopt([digest_of(A)], {1: result_of(B)})
    assert len(OutcomeLog(tmp_path)) == 0


@pytest.mark.parametrize("payload", [b"", b"nonsense", to_bytes(np.ones((2, 2))), to_bytes(np.array([np.nan]))])
def test_bytes_that_are_no_average_are_refused(payload: bytes) -> None:
    with pytest.raises((ValueError, EOFError)):
        from_bytes(payload)


def test_an_average_costs_no_more_than_its_bytes_whatever_its_header_says() -> None:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
    for payload in (file.getvalue(), file.getvalue() + bytes(16), b"", b"\x93NUMPY\x01\x00", to_bytes(A)[:-8]):
        with pytest.raises((ValueError, EOFError)):
            from_bytes(payload)
    assert from_bytes(to_bytes(A)).tolist() == A.tolist()
