"""What two parties of a sequence of four sessions left on disk in version 0.1 is read, and means the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from helpers.paths import ROOT
from helpers.sequence_processes import CLIPPING, EPSILON, SIZES, STEPS, datasets, model
from inca.learn.averagers.network import NetworkAverager
from inca.learn.budget import Budget
from inca.learn.statistics.moments import moments
from inca.learn.statistics.records import Records
from inca.learn.training.optimizers import SGD
from inca.learn.training.train import train
from inca.network.membership.identity import Identity
from inca.network.membership.roster import read_roster
from inca.network.sequence.catch_up import AverageSent, AverageWanted, KnownOutcomes
from inca.network.sequence.outcome_log import OutcomeLog
from inca.network.sequence.session_sequence import AverageRequest, SessionSequence

FIXTURE = ROOT / "tests" / "fixtures" / "version-0.1" / "sequence"
PARTIES = (0, 3)
SESSIONS = 4
INTERVAL_S, GATHERING_S = 5.0, 1.5  # as it was agreed then
DIGEST = "8e2e645ff4fc43f65ac028478ab916d250dfeea550720452dec6b58230e5ba89"  # of the four outcomes, as named then


def sequence_in(folder: Path, party: int) -> SessionSequence:
    """Return a party's sequence that goes on from a folder."""
    home = folder.parent / f"identity-{party}"
    home.mkdir(exist_ok=True)
    for name in ("identity.pem", "card.json"):
        shutil.copy(FIXTURE / str(party) / name, home / name)
    (home / "identity.pem").chmod(0o600)  # which git does not keep
    identity, roster = Identity.read(home), read_roster(FIXTURE / "roster.json")
    return SessionSequence(roster, identity, folder, interval=INTERVAL_S, gathering=GATHERING_S)


def copy_sessions(folder: Path, party: int, count: int) -> Path:
    """Copy what a party had on disk after so many sessions."""
    for number in range(1, count + 1):
        shutil.copytree(FIXTURE / str(party) / "course" / f"{number:04}", folder / f"{number:04}")
    return folder


@pytest.mark.parametrize("party", PARTIES)
def test_the_outcomes_are_read(party: int) -> None:
    log = OutcomeLog(FIXTURE / str(party) / "course")
    assert len(log) == SESSIONS and log.digest().hex() == DIGEST
    for number in range(1, SESSIONS + 1):
        (result,) = (log.session_folder(number) / "sessions").glob("*/result.json")
        fields = json.loads(result.read_text())
        known = log.result(number)
        assert known is not None and np.array_equal(known.average, fields["estimate"])
        assert known.standard_error == fields["standard_error"] and known.beacon == b""


@pytest.mark.parametrize("party", PARTIES)
def test_the_program_is_given_the_same_averages_and_learns_the_same(party: int, tmp_path: Path) -> None:
    """Every request is compared with the one on disk; what is learned must be equal to the last digit but one."""
    averager = NetworkAverager(sequence_in(copy_sessions(tmp_path / "course", party, SESSIONS), party))
    features, targets = datasets()[party]
    budget, rng = Budget(EPSILON, 1e-5), np.random.default_rng(0)
    held: list[Any] = averager.with_others((features, targets), SIZES)
    mu = budget.part(1.0 / (STEPS + 1))
    result = train(model(), held, averager, budget, STEPS, rng, clipping=CLIPPING, optimizer=SGD(2.0), mu=mu)
    tables: list[Any] = averager.with_others(features, SIZES)
    mean = moments(Records.of(tables, ([-1.0] * 3, [1.0] * 3)), averager, budget, rng).mean
    learned = json.loads((FIXTURE / str(party) / "learned.json").read_text())
    assert result.parameters.tolist() == pytest.approx(learned["parameters"], rel=1e-12)
    assert [step.skipped for step in result.history] == learned["skipped"]
    assert np.ravel(mean.estimate).tolist() == pytest.approx(learned["means"], rel=1e-12)
    assert np.ravel(mean.standard_error).tolist() == pytest.approx(learned["errors"], rel=1e-12)
    assert budget.epsilon_spent == pytest.approx(learned["epsilon"], rel=1e-12)


@pytest.mark.parametrize("party", PARTIES)
def test_the_loss_of_all_sessions_is_the_same(party: int, tmp_path: Path) -> None:
    report = sequence_in(copy_sessions(tmp_path / "course", party, SESSIONS), party).report()
    expected = json.loads((FIXTURE / str(party) / "course" / "course.json").read_text())
    rows, expected_rows = report.pop("sessions"), expected.pop("sessions")
    assert list(report) == list(expected)
    assert report == expected | {name: pytest.approx(expected[name], rel=1e-9) for name in ("epsilon", "own_epsilon")}
    assert [list(row) for row in rows] == [list(row) for row in expected_rows]
    for row, expected_row in zip(rows, expected_rows, strict=True):
        assert row == expected_row | {"own_mu": pytest.approx(expected_row["own_mu"], rel=1e-9)}


@pytest.mark.parametrize("number", range(1, SESSIONS + 1))
def test_a_session_has_the_same_id(number: int, tmp_path: Path) -> None:
    """Parties of both versions would be in the same session: terms, seed and name are derived alike."""
    sequence = sequence_in(copy_sessions(tmp_path, 0, number - 1), 0)
    place = FIXTURE / "0" / "course" / f"{number:04}"
    asked = (place / "asked.json").read_bytes()
    request = msgspec.json.decode(asked, type=AverageRequest)
    (session,) = (place / "sessions").iterdir()
    assert sequence._roster_of(number, request).session.hex()[:16] == session.name
    sequence._remember(number, request)
    assert (tmp_path / f"{number:04}" / "asked.json").read_bytes() == asked


def test_messages_have_the_same_bytes() -> None:
    digest = bytes(range(32))
    for message, plain in (
        (KnownOutcomes([digest, b""], ask=True), ["tell", [digest, b""], True]),
        (AverageWanted(3), ["want", 3]),
        (AverageSent(3, b"npy", None, b"beacon"), ["give", 3, b"npy", None, b"beacon"]),
    ):
        assert msgspec.msgpack.encode(message) == msgspec.msgpack.encode(plain)
