from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import inca
from helpers.command_line import NOISE, Capture, call, refused
from inca.protocol.transcript import AgreedGuarantee

Audit = Callable[..., dict[str, Any]]


def write(folder: Path, name: str = "run.json", absent: bool = False, **changes: Any) -> Path:
    """Write an execution of 40 parties and 12 rounds with three colluders."""
    presence = inca.Presence.leaving(40, 12, 0.2, np.random.default_rng(1)) if absent else None
    execution = inca.Execution(inca.RandomReceivers(40, 12, seed=4), inca.incremental_injection(12), presence)
    transcript = inca.Transcript(
        execution, sigma_independent=2.0, sigma_cancelling=15.0, adversary=inca.Adversary((3, 8, 21)), sensitivity=1.0
    )
    inca.write_execution(folder / name, replace(transcript, **changes))
    return folder / name


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)


@pytest.fixture
def audit(capsys: Capture) -> Audit:
    """Run `inca audit --json` in this process; tests/cli/test_terminal.py runs it as a program."""

    def report_of(*words: object, status: int = 0) -> dict[str, Any]:
        code, out, err = call(capsys, "audit", *words, "--json")
        assert (code, err) == (status, ""), err
        report: dict[str, Any] = json.loads(out)
        return report

    return report_of


def test_it_prints_the_certificate_and_the_conditions(audit: Audit, capsys: Capture, tmp_path: Path) -> None:
    path = write(tmp_path)
    report = audit(path, "--certificate", tmp_path / "c.json")
    document = inca.certify(inca.read_execution(path)).document(conditions=True)
    fields = json.loads(json.dumps(document.as_fields()))
    assert report == fields | {"kept": None, "verdict": str(inca.verdict(document))}
    assert json.loads((tmp_path / "c.json").read_text()) == fields
    names = [condition["name"] for condition in report["conditions"]]
    assert {f"Theorem {number}" for number in (2, 3, 4, 5, 6)} <= set(names)
    assert all(condition["why"] for condition in report["conditions"])
    status, out, _ = call(capsys, "audit", path)
    assert status == 0 and out == f"{inca.content(document)}\n"


def test_details_add_parameters_conditions_caveats_and_assumptions(capsys: Capture, tmp_path: Path) -> None:
    path = write(tmp_path)
    brief, details = call(capsys, "audit", path)[1], call(capsys, "audit", path, "--details")[1]
    assert details.startswith(brief.rstrip("\n"))
    for part in (
        "cancelling 15",
        "Colluding          3, 8, 21",
        "Theorem 4",
        "Not covered: ",
        "Assumptions",
        "Gaussian",
    ):
        assert part in details and part not in brief


def test_a_device_is_asked_for_by_name(audit: Audit, capsys: Capture, tmp_path: Path, without_torch: None) -> None:
    path = write(tmp_path)
    assert audit(path, "--device", "cpu") == audit(path)
    status, _, err = call(capsys, "audit", path, "--device", "cuda")
    assert status == 2 and "device cuda cannot be used here: it needs PyTorch (pip install 'inca[torch]')" in err
    status, _, err = call(capsys, "audit", path, "--device", "tpu")
    assert status == 2 and "--device must be cpu or cuda, got 'tpu'" in err


def test_it_says_no_with_status_1(audit: Audit, capsys: Capture, tmp_path: Path) -> None:
    path = write(tmp_path, absent=True)
    certificate = inca.certify(inca.read_execution(path))
    realized, full = float(certificate.epsilon.max()), certificate.worst_epsilon
    assert realized < full  # leavers protect the others by accident
    report = audit(path, "--epsilon", full * 1.001)
    assert report["kept"] is True and report["required"] == full * 1.001
    assert audit(path, "--epsilon", (realized + full) / 2, status=1)["kept"] is False
    status, out, _ = call(capsys, "audit", path, "--epsilon", 0.001)
    assert status == 1 and re.search(
        r" Broken An honest party loses epsilon \S+, more than the required epsilon 0\.001 at delta 1e-05,",
        " ".join(out.split()),
    )


def test_it_takes_another_adversary_noise_domain_and_rule(audit: Audit, tmp_path: Path) -> None:
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


def test_files_say_the_rule_as_the_option_does(audit: Audit, tmp_path: Path) -> None:
    report = audit(write(tmp_path), "--rule", "analytic")
    assert report["rule"] == "analytic" and report["format"] == "inca-certificate/2"


def test_a_run_of_inca_average_can_be_audited(audit: Audit, capsys: Capture, tmp_path: Path) -> None:
    values, path = tmp_path / "v.npy", tmp_path / "run.npz"
    np.save(values, np.random.default_rng(1).random(100) * 240)
    status, _, _ = call(capsys, "average", values, "--domain", 0, 240, *NOISE, "--dropout", 0.1, "--transcript", path)
    assert status == 0
    report = audit(path, "--domain", 0, 240, "--colluding", 0.1)
    assert len(report["honest"]) == 90 and report["full_attendance"]["epsilon"] >= 0


def test_it_plots_all_losses(audit: Audit, capsys: Capture, tmp_path: Path) -> None:
    path, place = write(tmp_path), tmp_path / "l.svg"
    report = audit(path, "--plot", place, "--epsilon", 9)
    drawn = ElementTree.fromstring(place.read_text())  # of which page and dashboard show the same drawing
    titles = [str(part.text) for part in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == len(report["honest"]) + 1 and titles[-1] == "required: 9"
    worst = report["worst"]
    assert f"party {worst['party']}: epsilon {worst['epsilon']:.6g}" in titles
    assert call(capsys, "audit", path, "--plot", place)[1].endswith(f"The figure is in {place}.\n")
    audit(write(tmp_path, "none.json", sigma_independent=0.0, sigma_cancelling=0.0), "--plot", tmp_path / "none.svg")
    assert "infinite: no guarantee" in (tmp_path / "none.svg").read_text()


def test_a_plan_brings_its_adversary_and_its_guarantee(audit: Audit, capsys: Capture, tmp_path: Path) -> None:
    requirements = inca.Requirements(
        parties=20, epsilon=1.0, delta=1e-5, colluding=0.1, messages=10, sensitivity=2.0, dropout=0.0
    )
    plan = inca.plan(requirements, inca.PlanOptions(views=10))
    plan.write(tmp_path / "plan.json")
    levels = plan.noise_levels
    transcript = inca.Transcript(
        plan.execution(seed=1), sigma_independent=levels.independent, sigma_cancelling=levels.cancelling
    )
    inca.write_execution(tmp_path / "run.json", transcript)
    report = audit(tmp_path / "run.json", "--plan", tmp_path / "plan.json", "--seed", 1)
    assert len(report["adversary"]["colluding"]) == 2 and report["sensitivity"] == 2.0
    assert (report["agreed"]["epsilon"], report["kept"]) == (1.0, True)
    other = write(tmp_path, "other.json")
    assert "parties of the execution must be 20" in refused(capsys, "audit", other, "--plan", tmp_path / "plan.json")


@pytest.mark.parametrize("option", ["--epsilon 1", "--delta 1e-5", "--rule classic", "--ball 1", "--domain 0 1"])
def test_what_a_plan_decides_cannot_be_said_again(option: str, capsys: Capture, tmp_path: Path) -> None:
    words = ["audit", write(tmp_path), "--plan", "plan.json", *option.split()]
    assert refused(capsys, *words) == f"{option.partition(' ')[0]} cannot be combined with --plan"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--delta", 2], "delta must be from 0 to 1, got 2.0"),
        (["--epsilon", -1], "--epsilon must be above 0, got -1.0"),
        (["--rule", "renyi"], "--rule must be analytic or classic, got 'renyi'"),
        (["--seed", 1], "--seed must be combined with --colluding or --eavesdropped, which draw an adversary"),
        (["--seed", -1, "--colluding", 0.1], "--seed must be at least 0, got -1"),
        (["--colluding", 1], "the number of colluding parties must be below 40"),
        (["--colluding", "nan"], "colluding must be a finite number, from 0 to 1, got nan"),
        (["--dimensions", 0], "--dimensions must be at least 1, got 0"),
        (["--dimensions", 2], "--dimensions must be combined with --domain or --ball"),
        (["--sensitivity", 2, "--domain", 0, 1], "--domain cannot be combined with --sensitivity"),
        (["--sensitivity", -1], "sensitivity must be at least 1, as the execution says, got -1.0"),
        (["--sigma-cancelling", -1], "sigma_cancelling must be at least 0, got -1.0"),
        (["--ball", 1, "--domain", 0, 1], "--domain cannot be combined with --ball"),
        (["--plot", "x.pdf"], "--plot must be a file name that ends in .svg, got 'x.pdf'"),
        (["--plan", "none.json"], "none.json cannot be read as a plan"),
    ],
)
def test_bad_input_is_one_sentence(words: list[object], sentence: str, tmp_path: Path, capsys: Capture) -> None:
    assert sentence in refused(capsys, "audit", write(tmp_path), *words)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_missing_file_is_one_sentence(capsys: Capture, tmp_path: Path) -> None:
    assert "cannot be read" in refused(capsys, "audit", tmp_path / "none.json")


# --- nothing is promised on a default -------------------------------------------------------------------------------


def test_without_a_sensitivity_nothing_is_said(audit: Audit, capsys: Capture, tmp_path: Path) -> None:
    path = write(tmp_path, sensitivity=None)
    sentence = "the file must say the sensitivity of its values, or --sensitivity, --domain or --ball must, got neither"
    assert sentence in refused(capsys, "audit", path, "--epsilon", 1)
    stated = audit(path, "--sensitivity", 100)
    assert stated["sensitivity"] == 100.0 and stated["mu"] == audit(path, "--domain", 0, 100)["mu"]
    sure = write(tmp_path, "sure.json", sensitivity=100.0)
    assert audit(sure)["mu"] == stated["mu"]
    for less in (["--sensitivity", 1], ["--domain", 0, 1], ["--ball", 2]):
        assert "sensitivity must be at least 100, as the execution says" in refused(capsys, "audit", sure, *less)


def test_without_an_adversary_nothing_is_said(audit: Audit, capsys: Capture, tmp_path: Path) -> None:
    path = write(tmp_path, adversary=None)
    assert "the file must say who colludes, or --colluding must" in refused(capsys, "audit", path, "--epsilon", 1)
    assert audit(path, "--colluding", 0)["adversary"] == {"colluding": [], "eavesdropped": []}


def test_what_was_agreed_is_checked_against_as_many_as_were_agreed(
    audit: Audit, capsys: Capture, tmp_path: Path
) -> None:
    """A file as a node writes it: values between 0 and 100, no adversary. Its loss was told as if they moved by 1."""
    agreed = AgreedGuarantee(epsilon=1.0, delta=1e-6, colluding=0.1)
    levels: dict[str, Any] = {"sigma_independent": 60.0, "sigma_cancelling": 400.0}
    path = write(tmp_path, adversary=None, sensitivity=100.0, agreed=agreed, **levels)
    report = audit(path, "--seed", 1, status=1)
    assert len(report["adversary"]["colluding"]) == 4 and (report["delta"], report["sensitivity"]) == (1e-6, 100.0)
    assert (report["agreed"]["epsilon"], report["kept"]) == (1.0, False) and report["worst"]["epsilon"] > 1.0
    generous = AgreedGuarantee(epsilon=50.0, delta=1e-6, colluding=0.1)
    path = write(tmp_path, adversary=None, sensitivity=100.0, agreed=generous, **levels)
    assert audit(path, "--seed", 1)["agreed"]["epsilon"] == 50.0 and audit(path, "--seed", 1)["kept"] is True
    assert audit(path, "--colluding", 0.1)["kept"] is True
    assert audit(path, "--colluding", 0)["kept"] is None
    status, out, _ = call(capsys, "audit", path, "--colluding", 0.05)
    assert status == 0 and "  Not known          This adversary is smaller than agreed, so whether the agreed" in out
    assert audit(path, "--delta", 1e-3)["kept"] is None  # a larger delta than agreed: no verdict
    assert audit(path, "--delta", 1e-9)["kept"] is True  # a smaller one


@pytest.mark.parametrize("name", ["sigma_independent", "sigma_cancelling"])
def test_an_execution_without_noise_levels_is_refused(name: str, capsys: Capture, tmp_path: Path) -> None:
    unknown: dict[str, Any] = {name: None}
    assert name in refused(capsys, "audit", write(tmp_path, **unknown))
