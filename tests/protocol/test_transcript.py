from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import inca
from helpers.strategies import executions, interrupted
from inca.protocol.execution_files import digest
from inca.protocol.execution_files import read_execution as read
from inca.protocol.execution_files import write_execution as write
from inca.protocol.schedules import Round
from inca.protocol.transcript import AgreedGuarantee, Transcript


def same(a: inca.Execution, b: inca.Execution) -> bool:
    rounds = range(1, a.rounds + 1)
    return (
        (a.parties, a.rounds) == (b.parties, b.rounds)
        and a.presence == b.presence
        and np.array_equal(a.published, b.published)
        and a.undelivered == b.undelivered
        and np.array_equal(a.injection.value, b.injection.value)
        and np.array_equal(a.injection.noise, b.injection.noise)
        and all(np.array_equal(a.weights(t).toarray(), b.weights(t).toarray()) for t in rounds)
    )


@given(executions(), st.sampled_from(["run.json", "run.npz"]), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read(tmp_path: Path, execution: inca.Execution, name: str, lose: bool) -> None:
    if lose:
        execution = execution.without_finals(np.arange(execution.parties) == 0)
    written = Transcript(
        execution,
        sigma_independent=1.5,
        sigma_cancelling=0.0,
        adversary=inca.Adversary((1, 0), eavesdropped=((0, 1), (execution.rounds, 0))),
    )
    write(tmp_path / name, written)
    again = read(tmp_path / name)
    assert same(execution, again.execution)
    assert (again.sigma_independent, again.sigma_cancelling) == (1.5, 0.0)
    assert again.adversary == written.adversary
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


AGREED = AgreedGuarantee(epsilon=1.0, delta=1e-6, colluding=0.1)


@pytest.mark.parametrize("name", ["run.json", "run.npz"])
@pytest.mark.parametrize(
    ("more", "version"),
    [
        ({}, 1),
        ({"sigma_independent": 2.0, "sigma_cancelling": 1.0, "adversary": inca.Adversary([1])}, 1),
        ({"adversary": inca.Adversary()}, 2),  # nobody colludes, and that is known
        ({"sensitivity": 240.0}, 2),
        ({"agreed": AGREED}, 2),
    ],
)
def test_the_first_version_that_can_say_it_is_written(
    tmp_path: Path, name: str, more: dict[str, Any], version: int
) -> None:
    execution = inca.Execution(inca.RandomReceivers(5, 3, seed=1), inca.incremental_injection(3))
    written = Transcript(execution, **more)
    write(tmp_path / name, written)
    again = read(tmp_path / name)
    assert (again.adversary, again.sensitivity, again.agreed) == (
        written.adversary,
        written.sensitivity,
        written.agreed,
    )
    assert digest(again) == digest(written)
    if name == "run.json":
        assert json.loads((tmp_path / name).read_text())["format"] == f"inca-execution/{version}"


RUN = inca.Execution(inca.RandomReceivers(5, 3, seed=1), inca.incremental_injection(3))


@pytest.mark.parametrize(
    ("levels", "missing"),
    [
        ({"sigma_independent": 2.0}, "sigma_cancelling"),
        ({"sigma_cancelling": 2.0}, "sigma_independent"),
        ({}, "sigma_independent"),
    ],
)
def test_a_level_that_is_not_known_is_never_assumed(levels: dict[str, Any], missing: str) -> None:
    with pytest.raises(inca.InvalidInput, match=f"^{missing} must be known to account for an execution, got None"):
        _ = Transcript(RUN, **levels).noise_levels


def test_an_adversary_that_is_not_known_is_not_taken_for_nobody() -> None:
    with pytest.raises(inca.InvalidInput, match="adversary must be known to account for an execution"):
        _ = Transcript(RUN).known_adversary
    assert Transcript(RUN, adversary=inca.Adversary()).known_adversary == inca.Adversary()


def test_the_delta_is_the_agreed_one_or_one_in_a_hundred_thousand() -> None:
    assert Transcript(RUN, agreed=AGREED).delta == 1e-6
    assert Transcript(RUN).delta == 0.00001


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_an_agreement_on_less_than_an_epsilon_of_1_is_one(epsilon: float) -> None:
    assert AgreedGuarantee(epsilon, 1e-5).epsilon == epsilon
    with pytest.raises(inca.InvalidInput, match=r"agreed\.epsilon must be at least 0, got -0\.5"):
        AgreedGuarantee(-0.5, 1e-5)


@pytest.mark.parametrize("name", ["colluding", "eavesdropped", "failure"])
@pytest.mark.parametrize("fraction", [-0.1, 1.1])
def test_an_agreement_is_on_fractions(name: str, fraction: float) -> None:
    fields: dict[str, Any] = {name: fraction}
    with pytest.raises(inca.InvalidInput, match=rf"agreed\.{name} must be from 0 to 1, got {fraction}"):
        AgreedGuarantee(1.0, 1e-5, **fields)


def test_an_agreement_is_against_an_adversary_of_its_size() -> None:
    assert AgreedGuarantee(1.0, 1e-5).adversary == inca.RandomAdversary(colluding=0.0, eavesdropped=0.0)
    agreed = AgreedGuarantee(1.0, 1e-5, colluding=0.1, eavesdropped=0.2)
    assert agreed.adversary == inca.RandomAdversary(colluding=0.1, eavesdropped=0.2)


def test_an_agreement_that_names_no_adversary_is_against_nobody(tmp_path: Path) -> None:
    agreed = {"epsilon": 1.0, "delta": 1e-6}
    (tmp_path / "run.json").write_text(json.dumps(document(format="inca-execution/2", agreed=agreed)))
    again = read(tmp_path / "run.json").agreed
    assert again == AgreedGuarantee(1.0, 1e-6, colluding=0.0, eavesdropped=0.0, failure=None)
    assert again.adversary == inca.RandomAdversary(colluding=0.0, eavesdropped=0.0)


def test_the_digest_is_that_of_the_file_with_its_fields_in_alphabetical_order(tmp_path: Path) -> None:
    written = Transcript(RUN, sigma_independent=1.5, sigma_cancelling=0.25, adversary=inca.Adversary([1], [(0, 2)]))
    write(tmp_path / "run.json", written)
    fields = json.loads((tmp_path / "run.json").read_text())
    canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    assert list(fields) != sorted(fields)  # else the order would not matter
    assert digest(written) == hashlib.sha256(canonical.encode()).hexdigest()


def test_quiet_rounds_of_version_2(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(document(format="inca-execution/2", injection={"kind": "incremental", "quiet": 1})))
    assert read(path).execution.injection == inca.incremental_injection(2, quiet=1)


@given(interrupted(), st.sampled_from(["run.json", "run.npz"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_undelivered_offers_are_written_and_read(tmp_path: Path, execution: inca.Execution, name: str) -> None:
    written = Transcript(execution)
    write(tmp_path / name, written)
    again = read(tmp_path / name)
    assert same(execution, again.execution) and digest(again) == digest(written)
    assert np.array_equal(again.execution.message_weights, execution.message_weights)
    silent = Transcript(inca.Execution(execution.schedule, execution.injection, execution.presence))
    assert (digest(silent) == digest(written)) == (execution.undelivered == ())
    write(tmp_path / "run.json", silent)
    assert b"undelivered" not in (tmp_path / "run.json").read_bytes()


@pytest.mark.parametrize("name", ["run.json", "run.npz"])
def test_shares_that_change_from_round_to_round_are_written(tmp_path: Path, name: str) -> None:
    class Fading(inca.Schedule):
        parties, rounds, slots = 3, 3, 1

        def round(self, t: int) -> Round:
            weights = np.array([[0.5], [0.0], [0.25]]) if t == 3 else None
            return Round(np.array([[1], [-1], [0]], dtype=np.int32), 0.5**t, weights)

    execution = inca.Execution(Fading(), inca.incremental_injection(3))
    write(tmp_path / name, Transcript(execution))
    assert same(execution, read(tmp_path / name).execution)


def document(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "format": "inca-execution/1",
        "parties": 3,
        "rounds": 2,
        "receivers": [[[1], [2], [0]], [[2], [0], [1]]],
        "injection": {"kind": "incremental"},
    }
    return {name: value for name, value in (base | changes).items() if value is not None}


def test_defaults(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(document()))
    transcript = read(tmp_path / "run.json")
    assert transcript.execution.presence.all_present
    assert transcript.execution.weights(1).toarray()[1, 0] == 0.5
    assert transcript.sigma_independent is None and transcript.adversary is None and transcript.sensitivity is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": "inca-execution/3"}, "format: must be a value that the format knows, got 'inca-execution/3'"),
        (
            {"sensitivity": 1.0},
            "format: must be inca-execution/2 with sensitivity, agreed, rounding, injection.quiet or a settlement, got",
        ),
        ({"format": "inca-execution/2", "sensitivity": -1.0}, "sensitivity: must be at least 0"),
        ({"format": "inca-execution/2", "agreed": {"epsilon": 1.0}}, "agreed.delta: is missing"),
        (
            {"format": "inca-execution/2", "agreed": {"epsilon": 1.0, "delta": 1.5}},
            "agreed.delta: must be at most 1",
        ),
        (
            {"format": "inca-execution/2", "injection": {"kind": "early", "quiet": 1}},
            "injection: quiet needs kind incremental",
        ),
        (
            {"format": "inca-execution/2", "injection": {"kind": "late", "quiet": 1}},
            "injection.kind: must be a value that the format knows, got 'late'",
        ),
        (
            {"format": "inca-execution/2", "injection": {"quiet": 1, "value": [1, 0, 0], "noise": [[1], [-1], [0]]}},
            "injection: quiet needs kind incremental",
        ),
        ({"format": None}, "format: is missing"),
        ({"parties": 4}, "parties must be 3, as receivers says, got 4"),
        ({"rounds": 3}, "rounds must be 2, as receivers says, got 3"),
        ({"parties": "three"}, r"parties: must be a whole number, got text"),
        ({"receivers": "none"}, "receivers must be a nested list of integers, got 'none'"),
        (
            {"receivers": [[[1], [2], [3]], [[2], [0], [1]]]},
            "receiver 0 of party 2 in round 1 must be a party id from 0 to 2, or -1 for nobody, got 3",
        ),
        (
            {"receivers": [[[0], [2], [0]], [[2], [0], [1]]]},
            "receiver 0 of party 0 in round 1 must be another party than the sender, got 0",
        ),
        ({"receivers": [[[1], [2]], [[2], [0], [1]]]}, "rows of different lengths"),
        ({"receivers": [[["1"], ["2"], ["0"]]]}, "type of receivers"),
        ({"receivers": [[[10**30], [2], [0]]]}, "type of receivers"),
        ({"share": 0.75, "weights": [[[0.5]] * 3] * 2}, "share cannot be combined with weights"),
        ({"share": 1.75}, r"share: must be at most 1"),
        ({"weights": [[[0.5]] * 3]}, "shape of weights"),
        (
            {"weights": [[["x"]] * 3] * 2},
            r"weights must be an array of numbers, \(T, n, k\), got a list that is not one",
        ),
        (
            {"present": [[1, 1, 0], [1, 1, 1], [1, 1, 1]]},
            r"present\[0\]\[2\] must be 1, as everyone is present in round 0, got 0",
        ),
        ({"present": [[1, 1, 1], [1, 1, 1]]}, "rounds"),
        ({"present": [[1, 1, 1], [1, 1, 1], [1, 5, 1]]}, r"present\[2\]\[1\] must be 0 or 1, got 5"),
        ({"present": 1}, "present must be a nested list of integers, got 1"),
        ({"published": [1, 1, 2]}, r"published must be a list of 0 and 1, got \[1, 1, 2\]"),
        ({"published": [1, 1]}, r"published must be bool of shape \(3,\), got 'bool of shape \(2,\)'"),
        ({"injection": {"kind": "late"}}, r"injection.kind: must be a value that the format knows, got 'late'"),
        ({"injection": {}}, "injection: needs a kind, or both value and noise"),
        (
            {"injection": {"kind": "early", "value": [1, 0, 0]}},
            r"injection: kind cannot be combined with value or noise",
        ),
        (
            {"injection": {"value": [1, 0], "noise": [[1], [-1]]}},
            r"the number of rounds of the injection must be that of the schedule \(2\), got 1",
        ),
        ({"injection": {"value": [1, 1, 0], "noise": [[1, 0], [-1, 1], [0, -1]]}}, r"condition \(i\) fails"),
        ({"injection": {"kind": "early", "extra": 1}}, "injection.extra: is not a field of this format"),
        ({"presnt": [[1, 1, 1]]}, "presnt: is not a field of this format"),
        ({"adversary": {"colluding": [3]}}, "an id in colluding must be a party id from 0 to 2, got 3"),
        ({"adversary": {"colluding": [1, 1]}}, "every id at most once"),
        (
            {"adversary": {"eavesdropped": [[3, 0]]}},
            r"a message in eavesdropped must be a message \(t, i\) with t from 0 to 2 and i from 0 to 2, got \(3, 0\)",
        ),
        ({"adversary": {"eavesdropped": [[0]]}}, "length"),
        ({"sigma_independent": -1.0}, r"sigma_independent: must be at least 0"),
        ({"undelivered": 1}, "undelivered must be a nested list of integers, got 1"),
        ({"undelivered": "none"}, "undelivered must be a nested list of integers, got 'none'"),
        ({"undelivered": [1]}, r"an entry of undelivered must be \(round, sender, receiver, back\), got 1"),
        (
            {"undelivered": [[1, 0, 1]]},
            r"an entry of undelivered must be \(round, sender, receiver, back\), got \[1, 0, 1\]",
        ),
        (
            {"undelivered": [[1, 0, 1, "2"]]},
            "a round of return in undelivered must be an integer, from 0 to 2, got '2'",
        ),
        (
            {"undelivered": [[1, 0, 10**30, 0]]},
            "a receiver in undelivered must be from 0 to 2, got 1000000000000000000000000000000",
        ),
        (
            {"undelivered": [[1, 0, 2, 0]]},
            "the number of undelivered offers of party 0 in round 1 must be at most 0, the number of its "
            "slots with -1, got 1",
        ),
    ],
)
def test_bad_documents_are_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(document(**changes)))
    with pytest.raises(inca.InvalidInput, match=f"run.json cannot be read as an execution: .*{words}") as error:
        read(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["run.json", "run.npz"])
def test_truncated_and_foreign_files_are_refused(tmp_path: Path, name: str) -> None:
    execution = inca.Execution(inca.RandomReceivers(5, 4, seed=1), inca.incremental_injection(4))
    path = tmp_path / name
    write(path, Transcript(execution))
    whole = path.read_bytes()
    for part in (
        b"",
        whole[:1],
        whole[: len(whole) // 2],
        whole[:-3],
        b"\x80\x04random bytes",
        b"[" * 100_000,
    ):
        path.write_bytes(part)
        with pytest.raises(inca.InvalidInput, match="cannot be read as an execution"):
            read(path)


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(inca.InvalidInput, match="cannot be read as an execution: No such file"):
        read(tmp_path / "none.json")
    execution = inca.Execution(inca.RandomReceivers(5, 4, seed=1), inca.incremental_injection(4))
    with pytest.raises(inca.InvalidInput, match="cannot be written: No such file"):
        write(tmp_path / "no" / "run.json", Transcript(execution))
    with pytest.raises(inca.InvalidInput, match="cannot be written: Not a directory"):
        write(Path(__file__) / "run.json", Transcript(execution))
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(inca.InvalidInput, match="cannot be written"):
        write(tmp_path / "folder.json", Transcript(execution))
    assert [path.name for path in tmp_path.iterdir()] == ["folder.json"]


def test_pickles_are_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    np.savez(path, format=np.array("inca-execution/1"), receivers=np.array([{"a": 1}], dtype=object))
    with pytest.raises(inca.InvalidInput, match="damaged"):
        read(path)
