"""Settled executions as files; tests/protocol/test_transcript.py has the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import inca
from helpers.strategies import settled
from inca.protocol.execution_files import digest

LEAVES = [[1, 1, 1], [1, 1, 1], [1, 1, 0]]


def document(**changes: Any) -> dict[str, Any]:
    """Three parties in a ring, two rounds; party 2 leaves in the second, and the others settle."""
    fields: dict[str, Any] = {"format": "inca-execution/2", "parties": 3, "rounds": 2, "share": 0.5}
    fields |= {"receivers": [[[1], [2], [0]], [[1], [2], [0]]], "injection": {"kind": "early"}}
    return fields | {"present": LEAVES, "settlement": "settled"} | changes


def read(folder: Path, **changes: Any) -> inca.Transcript:
    (folder / "run.json").write_text(json.dumps(document(**changes)))
    return inca.read_execution(folder / "run.json")


@given(settled(all_publish=False), st.sampled_from(["run.json", "run.npz"]), st.sampled_from([0.0, 2.5]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read(tmp_path: Path, execution: inca.Execution, name: str, topup: float) -> None:
    written = inca.Transcript(execution, sigma_independent=1.0, sigma_cancelling=3.0, sigma_topup=topup)
    inca.write_execution(tmp_path / name, written)
    again = inca.read_execution(tmp_path / name)
    assert execution.cohort is not None and again.execution.cohort is not None
    assert np.array_equal(again.execution.cohort, execution.cohort)
    assert np.array_equal(again.execution.published, execution.published)
    assert again.execution.undelivered == execution.undelivered
    assert again.noise_levels == inca.NoiseLevels(independent=1.0, cancelling=3.0, topup=topup)
    assert digest(again) == digest(written)


def test_the_cohort_is_everyone_present_at_the_end_if_the_file_names_none(tmp_path: Path) -> None:
    execution = read(tmp_path).execution
    assert execution.cohort is not None and execution.cohort.tolist() == [True, True, False]
    assert execution.message_weights.tolist() == [0.0, 2.0, 1.0]


def test_what_is_undone_is_missing_until_it_is_settled(tmp_path: Path) -> None:
    receivers = [[[-1], [2], [0]], [[1], [2], [0]]]
    changes: dict[str, Any] = {"receivers": receivers, "present": [[1, 1, 1]] * 3, "undone": [[1, 0, 1]]}
    execution = read(tmp_path, **changes).execution
    assert [tuple(entry) for entry in execution.undelivered] == [(1, 0, 1, 0)]
    assert [weights.sum() for weights in execution.weight_history()] == [3.0, 2.5, 2.5]
    assert execution.message_weights.sum() == execution.weight == 3.0


def test_only_version_2_can_say_that_someone_settled(tmp_path: Path) -> None:
    execution = inca.Execution(inca.RandomReceivers(5, 3, seed=1), inca.incremental_injection(3))
    for run, version in ((execution, 1), (execution.settled(), 2)):
        inca.write_execution(tmp_path / "run.json", inca.Transcript(run))
        assert json.loads((tmp_path / "run.json").read_text())["format"] == f"inca-execution/{version}"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": "inca-execution/1"}, "format: must be inca-execution/2 with .* or a settlement, got inca-exec"),
        ({"settlement": "half"}, "settlement: must be a value that the format knows, got 'half'"),
        ({"settlement": "none", "cohort": [0]}, "cohort: needs settlement settled"),
        ({"settlement": "none", "undone": []}, "undone: needs settlement settled"),
        ({"settlement": "none", "sigma_topup": 1.0}, "sigma_topup must be 0, as nobody settles, got 1.0"),
        ({"cohort": [0, 2]}, "a party of the cohort must be present in round T, got 2"),
        ({"cohort": [3]}, "a party of the cohort must be from 0 to 2, got 3"),
        ({"cohort": "all"}, "cohort: must be a list or null, got text"),
        ({"cohort": [0], "published": [1, 1, 0]}, "a published party must be in the cohort, got 1"),
        ({"undone": [[1, 0]]}, "Expected `array` of length 3, got 2"),
        ({"undone": [[1, 0, 1]]}, "the number of undelivered offers of party 0 in round 1 must be at most 0"),
        ({"sigma_topup": -1.0}, "sigma_topup: must be at least 0"),
        (
            {"receivers": [[[-1], [2], [0]], [[1], [2], [0]]], "undelivered": [[1, 0, 1, 2]]},
            "back in its own round, as with a cohort no share comes back later",
        ),
    ],
)
def test_bad_documents_are_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(inca.InvalidInput, match=f"run.json cannot be read as an execution: .*{words}"):
        read(tmp_path, **changes)
