from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inca
from helpers.command_line import NOISE, call, run
from inca.privacy.certificate import ASSUMPTIONS, FORMAT
from inca.protocol.transcript import digest


def transcript(absent: Any = False, **more: Any) -> inca.Transcript:
    presence = inca.Presence.leaving(40, 12, 0.2, np.random.default_rng(1)) if absent else None
    execution = inca.Execution(inca.RandomReceivers(40, 12, seed=4), inca.incremental(12), presence)
    return replace(inca.Transcript(execution, 2.0, 15.0, colluding=(3, 8, 21)), **more)


def write(folder: Path, name: str = "run.json", **more: Any) -> Path:
    inca.write_execution(folder / name, transcript(**more))
    return folder / name


Audit = Callable[..., dict[str, Any]]


@pytest.fixture
def audit(capsys: pytest.CaptureFixture[str]) -> Audit:
    """Run `inca audit --json` in this process; `test_a_run_of_inca_average_can_be_audited` runs it as a program."""

    def told(*words: object, status: int = 0) -> dict[str, Any]:
        code, out, err = call(capsys, "audit", *words, "--json")
        assert (code, err) == (status, ""), err
        report: dict[str, Any] = json.loads(out)
        return report

    return told


def test_a_certificate_holds_what_the_accountant_found() -> None:
    given = transcript()
    made = inca.certify(given, sensitivity=3.0, delta=1e-6)
    losses = inca.account(inca.View(given.execution, inca.Adversary(given.colluding)), 2.0, 15.0, 3.0)
    fields = made.as_dict()
    assert fields["format"] == FORMAT and fields["assumptions"] == list(ASSUMPTIONS)
    assert fields["honest"] == [i for i in range(40) if i not in (3, 8, 21)]
    assert fields["mu"] == losses.mu.tolist()
    assert fields["epsilon"] == losses.epsilon(1e-6).tolist()
    assert fields["worst"] == {"party": losses.worst[0], "mu": losses.worst[1], "epsilon": max(fields["epsilon"])}
    assert fields["full_attendance"] is None and made.worst_epsilon == max(fields["epsilon"])
    assert fields["execution"] == f"sha256:{digest(given)}"
    assert fields["rank"] == {"hidden": 36, "needed": 36, "met": True}
    assert fields["total_weight"] == 40.0
    assert json.loads(json.dumps(fields, allow_nan=False)) == fields


def test_with_absences_it_also_says_what_full_attendance_would_give() -> None:
    made = inca.certify(transcript(absent=True))
    assert made.full_attendance is not None
    full = inca.certify(transcript())
    np.testing.assert_array_equal(made.full_attendance.mu, full.losses.mu)
    assert made.worst_epsilon == max(float(made.epsilon.max()), full.worst_epsilon)
    assert made.as_dict()["full_attendance"]["epsilon"] == pytest.approx(full.worst_epsilon)
    assert "full attendance" in str(made)


def test_the_digest_names_the_execution_the_adversary_and_the_noise(tmp_path: Path) -> None:
    given = transcript(absent=True)
    for name in ("a.json", "a.npz"):
        inca.write_execution(tmp_path / name, given)
        assert digest(inca.read_execution(tmp_path / name)) == digest(given)
    others = [replace(given, sigma_cancelling=15.5), replace(given, colluding=(3, 8)), transcript()]
    assert len({digest(each) for each in (given, *others)}) == 4


def test_infinite_losses_are_null_in_json_and_said_in_words() -> None:
    made = inca.certify(transcript(sigma_independent=0.0))
    assert math.isinf(made.worst_epsilon)
    assert made.as_dict()["epsilon"] == [None] * 37
    assert "epsilon infinite at delta 1e-05" in str(made)


def test_a_certificate_is_written_whole(tmp_path: Path) -> None:
    made = inca.certify(transcript())
    made.write(tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text()) == made.as_dict()
    with pytest.raises(inca.InputError, match="cannot be written"):
        made.write(tmp_path / "nowhere" / "c.json")
    assert [path.name for path in tmp_path.iterdir()] == ["c.json"]


@pytest.mark.parametrize("name", ["sigma_independent", "sigma_cancelling"])
def test_missing_levels_are_refused(name: str) -> None:
    with pytest.raises(inca.InputError, match=f"{name} is missing"):
        inca.certify(transcript(**{name: None}))


def test_audit_prints_the_certificate_and_the_conditions(
    audit: Audit, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = write(tmp_path)
    report = audit(path, "--certificate", tmp_path / "c.json")
    fields = inca.certify(inca.read_execution(path)).as_dict()
    assert {name: report[name] for name in fields} == fields
    assert json.loads((tmp_path / "c.json").read_text()) == fields
    names = [each["name"] for each in report["conditions"]]
    assert {f"Theorem {number}" for number in (2, 3, 4, 5, 6)} <= set(names)
    assert all(each["why"] for each in report["conditions"])
    status, out, _ = call(capsys, "audit", path)
    assert status == 0 and str(inca.certify(inca.read_execution(path))) in out
    assert "Theorem 4" in out


def test_audit_says_no_with_status_1(audit: Audit, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write(tmp_path, absent=True)
    made = inca.certify(inca.read_execution(path))
    realised, full = float(made.epsilon.max()), made.worst_epsilon
    assert realised < full  # leavers protect the others by accident
    assert audit(path, "--epsilon", full * 1.001)["wanted"]["met"] is True
    assert audit(path, "--epsilon", (realised + full) / 2, status=1)["wanted"]["met"] is False
    status, out, _ = call(capsys, "audit", path, "--epsilon", 0.001)
    assert status == 1 and "does NOT hold" in out


def test_audit_takes_another_adversary_noise_domain_and_rule(audit: Audit, tmp_path: Path) -> None:
    path = write(tmp_path)
    base = audit(path)
    more = audit(path, "--colluding", 0.5, "--eavesdropped", 0.1, "--seed", 3)
    assert len(more["adversary"]["colluding"]) == 20 and len(more["adversary"]["eavesdropped"]) == 12 * 4
    assert more == audit(path, "--colluding", 0.5, "--eavesdropped", 0.1, "--seed", 3)
    assert more["worst"]["mu"] > base["worst"]["mu"]
    assert audit(path, "--domain", 0, 3)["worst"]["mu"] == pytest.approx(3 * base["worst"]["mu"])
    assert audit(path, "--ball", 2, "--dimensions", 5)["worst"]["mu"] == pytest.approx(4 * base["worst"]["mu"])
    assert audit(path, "--domain", 0, 1, "--dimensions", 4)["worst"]["mu"] == pytest.approx(2 * base["worst"]["mu"])
    assert audit(path, "--sigma-independent", 4, "--sigma-cancelling", 30)["worst"]["mu"] == pytest.approx(
        base["worst"]["mu"] / 2
    )
    classic = audit(path, "--rule", "classic")["worst"]
    expected = base["worst"]["mu"] * math.sqrt(2 * math.log(1.25e5))
    assert classic["epsilon"] == (pytest.approx(expected) if expected < 1 else None)


def test_a_run_of_inca_average_can_be_audited(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    values, path = tmp_path / "v.npy", tmp_path / "run.npz"
    np.save(values, np.random.default_rng(1).random(100) * 240)
    status, _, _ = call(capsys, "average", values, "--domain", 0, 240, *NOISE, "--dropout", 0.1, "--transcript", path)
    assert status == 0
    done = run("audit", path, "--domain", 0, 240, "--colluding", 0.1, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert len(report["honest"]) == 90 and report["full_attendance"]["epsilon"] >= 0


def test_audit_draws_all_losses(audit: Audit, tmp_path: Path) -> None:
    path = write(tmp_path)
    for name, magic in (("l.png", b"\x89PNG"), ("l.svg", b"<?xml")):
        audit(path, "--picture", tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(magic)
    audit(write(tmp_path, "none.json", sigma_independent=0.0), "--picture", tmp_path / "none.png")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--delta", 2], "delta is 2.0, but a number from 0 to 1 was expected"),
        (["--epsilon", -1], "--epsilon is -1.0, but a finite number of at least 0 was expected"),
        (["--rule", "renyi"], "--rule is 'renyi', but exact or classic was expected"),
        (["--seed", 1], "--seed is 1, but --colluding or --eavesdropped beside it, for a random adversary,"),
        (["--colluding", 1], "the number of colluding parties is 40, but at least one honest party to protect"),
        (["--colluding", "nan"], "colluding is nan, but a number from 0 to 1 was expected"),
        (["--dimensions", 0], "--dimensions is 0, but a whole number of at least 1 was expected"),
        (["--sigma-cancelling", -1], "sigma_cancelling is -1.0, but a finite number of at least 0 was expected"),
        (["--picture", "x.pdf"], "--picture is 'x.pdf', but a name that ends in .png or .svg was expected"),
    ],
)
def test_audit_refuses_with_one_sentence(
    words: list[object], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = call(capsys, "audit", write(tmp_path), *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"inca: {message}") and err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_missing_file_is_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, _, err = call(capsys, "audit", tmp_path / "none.json")
    assert status == 2 and err.count("\n") == 1 and "cannot be read" in err


def test_with_undelivered_offers_it_says_what_would_be_had_they_arrived() -> None:
    whole = transcript()
    meant = np.stack([step.receivers for step in whole.execution.intended()])
    torn = meant.copy()
    torn[[0, 3], [7, 9]] = -1
    offers = [(1, 7, int(meant[0, 7, 0]), 1), (4, 9, int(meant[3, 9, 0]), 0)]
    execution = inca.Execution(inca.ExplicitSchedule(torn), inca.incremental(12), undelivered=offers)
    full = inca.certify(whole).losses
    for intended in (None, whole.execution.schedule):
        made = inca.certify(replace(whole, execution=execution), intended=intended)
        assert made.full_attendance is not None
        np.testing.assert_allclose(made.full_attendance.mu, full.mu, rtol=1e-9)
        assert made.worst_epsilon == max(float(made.epsilon.max()), float(made.full_attendance.epsilon(1e-5).max()))
        assert "had nobody been absent and all shares arrived" in str(made)
    other = inca.certify(whole, intended=inca.RandomReceivers(40, 12, seed=5))
    assert other.full_attendance is not None and not np.allclose(other.full_attendance.mu, full.mu)
    with pytest.raises(inca.InputError, match=r"of intended is \(39, 12\), but that of the execution \(40, 12\) was"):
        inca.certify(whole, intended=inca.RandomReceivers(39, 12, seed=5))
