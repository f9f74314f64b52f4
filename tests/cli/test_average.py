from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inca
from helpers.command_line import NOISE, Capture, call, instead, refused
from helpers.paths import ROOT

EXAMPLE = ROOT / "examples" / "waiting-times.csv"
DOMAIN: list[object] = ["--domain", 0, 240]


def average(capsys: Capture, *words: object) -> dict[str, Any]:
    status, out, err = call(capsys, "average", *words, "--json")
    assert (status, err) == (0, "")
    report: dict[str, Any] = json.loads(out)
    return report


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    inca.plan(inca.Requirements(parties=20, epsilon=1.0, sensitivity=2.0)).write(path)
    return path


@pytest.fixture
def values(tmp_path: Path) -> Path:
    np.save(tmp_path / "v.npy", np.random.default_rng(1).random(20) * 2)
    return tmp_path / "v.npy"


# --- with noise by hand ---------------------------------------------------------------------------------------------


def test_average_of_a_file(capsys: Capture) -> None:
    report = average(capsys, EXAMPLE, *DOMAIN, *NOISE, "--show-truth")
    assert report["present"] == report["parties"] == 1000
    assert report["weight"] == pytest.approx(1000) and report["epsilon"] is report["delta"] is None
    assert report["standard_error"] == pytest.approx(2 / 1000**0.5)
    # Ten standard errors: false alarms 1e-23; this run takes the system's randomness.
    assert abs(report["estimate"] - report["mean"]) < 10 * report["standard_error"]
    low, high = report["interval"]
    assert low < report["estimate"] < high and report["confidence"] == 0.95
    assert high - low == pytest.approx(2 * 1.959964 * report["standard_error"])


def test_the_command_is_the_library(capsys: Capture) -> None:
    words = [EXAMPLE, *DOMAIN, *NOISE, "--dropout", 0.1, "--seed", 5]
    report = average(capsys, *words)
    mean = inca.average(
        np.loadtxt(EXAMPLE, skiprows=1),
        inca.Interval(0, 240),
        inca.ByHand(sigma_independent=2.0, sigma_cancelling=20.0),
        absences=0.1,
        rng=np.random.default_rng(5),
    )
    assert report["estimate"] == mean.estimate and report["standard_error"] == mean.standard_error
    assert report["interval"] == list(mean.interval or ()) and report["present"] == mean.present


def test_a_seed_repeats_the_run_and_nothing_else_does(capsys: Capture) -> None:
    words = [EXAMPLE, *DOMAIN, *NOISE, "--dropout", 0.1, "--quiet-rounds", 3, "--schedule", "permutation"]
    first, second = average(capsys, *words, "--seed", 5), average(capsys, *words, "--seed", 5)
    assert first == second and first["present"] == 900
    assert average(capsys, *words)["estimate"] != average(capsys, *words)["estimate"]


def test_the_transcript_is_the_execution(capsys: Capture, tmp_path: Path) -> None:
    for name in ("run.json", "run.npz"):
        path = tmp_path / name
        words = [EXAMPLE, *DOMAIN, *NOISE, "--rounds", 5, "--absence", 0.1, 0.5, "--transcript", path]
        report = average(capsys, *words)
        transcript = inca.read_execution(path)
        assert transcript.execution.rounds == 5 and transcript.sigma_cancelling == 20
        assert int(transcript.execution.published.sum()) == report["present"]
        assert transcript.execution.weight == pytest.approx(report["weight"])
        error = inca.expected_error(transcript.execution, inca.NoiseLevels(independent=2, cancelling=20))
        assert error.total**0.5 == pytest.approx(report["standard_error"])


def test_the_protocol_by_hand(capsys: Capture, tmp_path: Path) -> None:
    words = [EXAMPLE, *DOMAIN, *NOISE, "--rounds", 4, "--receivers", 2, "--transcript", tmp_path / "run.json"]
    for schedule, injection in (("random", "early"), ("distinct", "incremental")):
        average(capsys, *words, "--schedule", schedule, "--injection", injection)
        execution = inca.read_execution(tmp_path / "run.json").execution
        assert (execution.rounds, execution.schedule.slots) == (4, 2)
        early = inca.early_injection(4)
        assert (execution.injection == early) is (injection == "early")


def test_the_circle_by_hand(capsys: Capture, tmp_path: Path) -> None:
    words = [EXAMPLE, *DOMAIN, *NOISE, "--rounds", 3, "--schedule", "circle", "--transcript", tmp_path / "run.json"]
    average(capsys, *words)
    schedule = inca.read_execution(tmp_path / "run.json").execution.schedule
    n = schedule.parties
    assert [schedule.round(r).receivers[n - 1, 0] for r in (1, 2, 3)] == [0, 1, 2]


def test_vectors_from_columns(capsys: Capture, tmp_path: Path) -> None:
    table = np.random.default_rng(1).random((50, 2))
    (tmp_path / "v.csv").write_text("a,b\n" + "\n".join(f"{a},{b}" for a, b in table))
    words = [tmp_path / "v.csv", "--domain", 0, 1, *NOISE, "--seed", 3]
    both, one = average(capsys, *words), average(capsys, *words, "--column", "b")
    assert len(both["estimate"]) == len(both["interval"][0]) == 2 and isinstance(one["estimate"], float)
    assert average(capsys, *words, "--column", "a", "--column", "b") == both


def test_columns_keep_their_names(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("age,size\n" + "0.5,0.25\n" * 50)
    words = [tmp_path / "v.csv", "--domain", 0, 1, *NOISE, "--seed", 3]
    assert average(capsys, *words)["columns"] == ["age", "size"]
    assert average(capsys, *words, "--column", "size")["columns"] == ["size"]
    np.save(tmp_path / "v.npy", np.full((50, 2), 0.5))
    assert average(capsys, tmp_path / "v.npy", *words[1:])["columns"] is None
    shown = " ".join(call(capsys, "average", *words)[1].split())
    assert re.search(r"Mean age \S+, size \S+ Interval age \S+ to \S+, size \S+ to \S+ for the exact mean, ", shown)
    shown = " ".join(call(capsys, "average", *words, "--column", "size")[1].split())
    assert re.search(r"Mean size \S+ Interval size", shown)


def test_ids_are_not_averaged(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("id,minutes\n" + "".join(f"{i},0.5\n" for i in range(1, 50)))
    sentence = refused(capsys, "average", tmp_path / "v.csv", "--domain", 0, 100, *NOISE)
    assert "'id'" in sentence and sentence.endswith("with --column, of id, minutes")


def test_clipping_and_balls(capsys: Capture, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.full((20, 2), 3.0))
    words = [tmp_path / "v.npy", "--ball", 1, "--sigma-independent", 0, "--sigma-cancelling", 9]
    report = average(capsys, *words, "--clip", "--show-truth")
    assert report["estimate"] == pytest.approx([0.5**0.5] * 2) == report["mean"]
    assert "values[0] must be at most 1, got a longer one" in refused(capsys, "average", *words)


def test_a_trace_drives_absence(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("party,leaves,returns\n0,1,\n1,2,3\n")
    report = average(capsys, EXAMPLE, *DOMAIN, *NOISE, "--rounds", 4, "--trace", tmp_path / "trace.csv")
    assert report["present"] == 999


def test_nobody_left_is_an_answer(capsys: Capture) -> None:
    words = ["average", EXAMPLE, *DOMAIN, *NOISE, "--dropout", 1]
    status, out, _ = call(capsys, *words)
    assert status == 1 and "  No estimate        None of the parties was present at the end.\n" in out
    assert "Mean  " not in out and "Interval" not in out and "Noise" not in out
    status, out, _ = call(capsys, *words, "--json")
    report = json.loads(out)
    assert status == 1 and report["estimate"] is None and report["present"] == 0 and report["weight"] == 0
    assert (report["unconstrained"], report["remarks"], report["says_nothing"]) == (None, [], True)
    assert report["interval"] is report["standard_error"] is report["worst_case_error"] is report["variance"] is None


def test_an_estimate_outside_the_domain_is_moved_in_and_the_table_says_so(capsys: Capture, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", [20.0, 60.0, 90.0, 130.0])
    words = [tmp_path / "v.npy", *DOMAIN, "--sigma-independent", 400, "--sigma-cancelling", 4000, "--seed", 25]
    report = average(capsys, *words)
    assert (report["estimate"], report["interval"]) == (0.0, [0.0, 240.0]) and report["says_nothing"] is True
    assert report["unconstrained"] == pytest.approx(-253.56, abs=0.01) and len(report["remarks"]) == 2
    _, out, _ = call(capsys, "average", *words)
    shown = " ".join(out.split())
    assert "Mean 0 Interval 0 to 240 for the exact mean, probability 0.95" in shown
    for remark in report["remarks"]:
        assert f"Remark {remark}" in shown
    assert "guessing 120, the middle, would do as well." in shown


def test_vectors_come_with_their_intervals(capsys: Capture, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.full((200, 8), 0.5))
    words = ["average", tmp_path / "v.npy", "--domain", 0, 1, "--sigma-independent", 0.1, "--sigma-cancelling", 1]
    _, out, _ = call(capsys, *words, "--seed", 1)
    assert re.search(r"Interval 0\.4\d+ to 0\.5\d+, 0\.4.*, \.\.\. \(8 intervals\)", " ".join(out.split()))
    assert "would do as well" not in out


def test_the_table_for_people(capsys: Capture) -> None:
    status, out, _ = call(capsys, "average", EXAMPLE, *DOMAIN, *NOISE, "--seed", 1, "--show-truth")
    assert status == 0
    private, exact = "No guarantee was asked for: the noise was chosen by hand.", "shown on request: NOT private\n"
    for part in (
        private,
        "  Mean  ",
        exact,
        "probability 0.95\n",
        "standard error",
        "1,000 of 1,000",
        "not private.\n",
    ):
        assert part in out
    assert "Assumptions" not in out
    _, details, _ = call(capsys, "average", EXAMPLE, *DOMAIN, *NOISE, "--seed", 1, "--show-truth", "--details")
    for part in (
        "Worst case  ",
        "Weight             1000 values",
        "Unconstrained  ",
        "Assumptions\n",
        "Noise is Gaussian",
    ):
        assert part in details and part not in out


def test_the_table_of_vectors_is_short(capsys: Capture, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.zeros((20, 1000)))
    _, out, _ = call(capsys, "average", tmp_path / "v.npy", "--ball", 1, *NOISE)
    assert "... (1,000 numbers)" in " ".join(out.split()) and len(out) < 2000


# --- with a guarantee -----------------------------------------------------------------------------------------------


def test_a_plan_drives_a_run_its_certificate_and_its_audit(
    capsys: Capture, plan_file: Path, values: Path, tmp_path: Path
) -> None:
    path, certificate = tmp_path / "run.json", tmp_path / "certificate.json"
    words = [values, "--domain", 0, 2, "--plan", plan_file, "--dropout", 0.1, "--transcript", path]
    words += ["--certificate", certificate]
    report = average(capsys, *words)
    assert report["present"] == 18 and report["met"] is True and 0 < report["epsilon"] <= 1.0
    assert report["agreed"]["epsilon"] == 1.0 and report["format"] == "inca-average/1"
    assert json.loads(certificate.read_text())["worst"]["epsilon"] <= report["epsilon"]
    assert report["plan"]["wish"]["parties"] == 20 and report["delta"] == 1e-5
    assert len(inca.read_execution(path).known_adversary.colluding) == 2
    status, out, _ = call(capsys, "audit", path, "--plan", plan_file)
    assert status == 0 and "within the agreed epsilon 1 at delta 1e-05, against this adversary" in " ".join(out.split())
    status, out, _ = call(capsys, "average", *words, "--seed", 1)
    words_printed = " ".join(out.split())  # whatever the width of the terminal
    assert status == 0 and "or less in this run, within the required epsilon 1 at delta 1e-05" in words_printed
    assert "2 of 20 parties collude, drawn at random" in words_printed
    assert out.endswith(f"The execution is in {path}.\nThe certificate is in {certificate}.\n")


def test_an_epsilon_is_planned_for(capsys: Capture, values: Path) -> None:
    words = [values, "--domain", 0, 2, "--epsilon", 2, "--messages", 16, "--receivers", 1]
    report = average(capsys, *words)
    assert report["epsilon"] <= 2.0 and report["delta"] == 1e-5 and report["plan"]["receivers"] == 1
    assert (report["present"], report["colluding"], report["plan"]["wish"]["dropout"]) == (20, 2, 0.1)  # by default
    requirements = inca.Requirements(parties=20, epsilon=2.0, delta=1e-5, sensitivity=2.0)
    # Nobody leaves and two collude: the error of Central DP, but for their noise and the factor of 1.005.
    least = requirements.central_mse * 20 / 18
    assert report["standard_error"] == pytest.approx(least**0.5, rel=0.003)


def test_the_adversary_is_planned_for_and_shown(capsys: Capture, values: Path) -> None:
    words = [values, "--domain", 0, 2, "--epsilon", 4, "--colluding", 0.1, "--eavesdropped", 0.05]
    status, out, _ = call(capsys, "average", *words)
    shown = " ".join(out.split())
    assert status == 0 and "2 of 20 parties collude, drawn at random, 6 messages eavesdropped" in shown


def test_a_guarantee_that_an_execution_breaks_is_status_1(
    capsys: Capture, plan_file: Path, values: Path, tmp_path: Path
) -> None:
    """Four of twenty stay, too far apart on the circle to have exchanged anything: far fewer than planned for."""
    left = [party for party in range(20) if party % 5]
    (tmp_path / "trace.csv").write_text("party,leaves,returns\n" + "".join(f"{party},1,\n" for party in left))
    words = ["average", values, "--domain", 0, 2, "--plan", plan_file, "--trace", tmp_path / "trace.csv"]
    status, out, _ = call(capsys, *words)
    assert status == 1 and "  No estimate        The guarantee does not hold for this execution.\n" in out
    assert "  Broken             An honest party loses epsilon " in out
    status, out, _ = call(capsys, *words, "--json")
    report = json.loads(out)
    assert status == 1 and report["estimate"] is report["interval"] is None
    assert report["met"] is False and report["epsilon"] > 1.0


def test_what_no_plan_meets_is_status_1(capsys: Capture, values: Path) -> None:
    words = [values, "--domain", 0, 2, "--epsilon", 1, "--colluding", 0.1, "--messages", 2]
    status, out, err = call(capsys, "average", *words)
    assert (status, out) == (1, "") and err.startswith("inca: 1 round is too few ") and err.count("\n") == 1


def test_a_plan_for_others_is_refused(capsys: Capture, plan_file: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "few.npy", np.ones(15))
    np.save(tmp_path / "wide.npy", np.ones(20))
    for name, domain, sentence in (
        ("few.npy", (0, 2), "the number of parties of the plan must be one per row of values (15), got 20"),
        ("wide.npy", (0, 3), "the sensitivity of the plan must be at least that of the domain (3), got 2.0"),
    ):
        words = [tmp_path / name, "--domain", *domain, "--plan", plan_file]
        assert refused(capsys, "average", *words) == sentence


# --- what is refused ------------------------------------------------------------------------------------------------


CASES: dict[str, tuple[list[object], str]] = {
    "no such file": (["none.csv", "--domain", 0, 1], "VALUES must be an existing file, got 'none.csv'"),
    "no domain": ([EXAMPLE], "--domain LOW HIGH or --ball RADIUS is required: they say where values may lie"),
    "two domains": ([EXAMPLE, "--domain", 0, 1, "--ball", 1], "--ball cannot be combined with --domain"),
    "outside": ([EXAMPLE, "--domain", 0, 100], "must be in [0, 100], got one outside"),
    "empty interval": ([EXAMPLE, "--domain", 1, 0], "high must be above low (1.0), got 0.0"),
    "rounds 0": ([EXAMPLE, *DOMAIN, "--rounds", 0], "rounds must be at least 1, got 0"),
    "k >= n": ([EXAMPLE, *DOMAIN, "--receivers", 1000], "receivers must be "),
    "schedule": ([EXAMPLE, *DOMAIN, "--schedule", "star"], "schedule must be "),
    "injection": ([EXAMPLE, *DOMAIN, "--injection", "late"], "--injection must be incremental or early, got 'late'"),
    "quiet": ([EXAMPLE, *DOMAIN, "--quiet-rounds", 30], "quiet must be from 0 to 20, got 30"),
    "quiet early": (
        [EXAMPLE, *DOMAIN, "--injection", "early", "--quiet-rounds", 3],
        "quiet_rounds cannot be combined with early injection",
    ),
    "dropout": ([EXAMPLE, *DOMAIN, "--dropout", 1.5], "fraction must be from 0 to 1, got 1.5"),
    "dropout nan": ([EXAMPLE, *DOMAIN, "--dropout", "nan"], "fraction must be a finite number, from 0 to 1, got nan"),
    "alternatives": (
        [EXAMPLE, *DOMAIN, "--dropout", 0.5, "--absence", 0.1, 0.1],
        "--absence cannot be combined with --dropout",
    ),
    "two absences": (
        [EXAMPLE, *DOMAIN, "--trace", "x.csv", "--absence", 0.1, 0.1],
        "--trace cannot be combined with --absence",
    ),
    "absence": ([EXAMPLE, *DOMAIN, "--absence", 0.1, 2], "rejoin must be from 0 to 1, got 2.0"),
    "seed": ([EXAMPLE, *DOMAIN, "--seed", -1], "--seed must be at least 0, got -1"),
    "column": ([EXAMPLE, *DOMAIN, "--column", "hours"], "--column must be one of minutes, got 'hours'"),
    "negative noise": (
        [EXAMPLE, *DOMAIN, "--sigma-independent", -1],
        "sigma_independent must be at least 0, got -1",
    ),
    "certificate": (
        [EXAMPLE, *DOMAIN, "--certificate", "c.json"],
        "--certificate cannot be combined with --sigma-independent",
    ),
    "colluding": ([EXAMPLE, *DOMAIN, "--colluding", 0.1], "--colluding cannot be combined with --sigma-independent"),
    "transcript": ([EXAMPLE, *DOMAIN, "--transcript", "/no/such/folder/run.json"], "cannot be written"),
    "trace": ([EXAMPLE, *DOMAIN, "--trace", "none.csv"], "cannot be read as a presence trace"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_sentence_and_status_2(
    case: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, sentence = CASES[case]
    monkeypatch.chdir(tmp_path)
    assert sentence in refused(capsys, "average", *instead(NOISE, *words))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(  # before any work, and after all of it
    "case", [pytest.param("no such file", marks=pytest.mark.slow), "transcript"]
)
def test_a_process_of_its_own_refuses_in_the_same_way(case: str, tmp_path: Path, programs: Path) -> None:
    words, sentence = CASES[case]
    command = [str(programs / "inca"), "average", *map(str, [*words, *NOISE])]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2 and done.stdout == ""
    assert sentence in done.stderr and done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


COMBINATIONS: dict[str, tuple[list[object], str]] = {
    "no noise": ([], "choose the noise with --epsilon, --plan, or both --sigma-independent and --sigma-cancelling"),
    "half of the noise": (["--sigma-independent", 1], "choose the noise with --epsilon"),
    "epsilon and noise": (
        ["--epsilon", 1, "--sigma-independent", 1],
        "--sigma-independent cannot be combined with --epsilon",
    ),
    "epsilon and schedule": (
        ["--epsilon", 1, "--schedule", "random"],
        "--schedule cannot be combined with --epsilon",
    ),
    "rounds": (["--plan", "PLAN", "--rounds", 5], "--rounds cannot be combined with --plan"),
    "epsilon and plan": (["--plan", "PLAN", "--epsilon", 1], "--epsilon cannot be combined with --plan"),
    "noise and plan": (["--plan", "PLAN", *NOISE], "--sigma-independent cannot be combined with --plan"),
    "a default that is typed": (["--plan", "PLAN", "--delta", 1e-5], "--delta cannot be combined with --plan"),
    "rule": (["--epsilon", 1, "--rule", "renyi"], "--rule must be analytic or classic, got 'renyi'"),
    "colluding": (["--epsilon", 1, "--colluding", 2], "colluding must be from 0 to 1, got 2.0"),
    "delta": (["--epsilon", 1, "--delta", 0], "delta must be between 0 and 1"),
    "no plan": (["--plan", "none.json"], "none.json cannot be read as a plan"),
}


@pytest.mark.parametrize("case", COMBINATIONS)
def test_options_that_do_not_go_together_are_refused(case: str, capsys: Capture, values: Path, plan_file: Path) -> None:
    words, sentence = COMBINATIONS[case]
    words = [plan_file if word == "PLAN" else word for word in words]
    assert sentence in refused(capsys, "average", values, "--domain", 0, 2, *words)


def test_a_certificate_of_too_many_parties_is_refused_at_once(capsys: Capture, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.zeros(5001))
    words = [tmp_path / "v.npy", "--domain", 0, 1, "--epsilon", 1, "--certificate", tmp_path / "c.json"]
    assert refused(capsys, "average", *words) == "--certificate needs a run of at most 5000 parties, got 5001"


VALUES_REFUSED: dict[str, tuple[bytes, str]] = {
    "only a header": (b"minutes\n", "the number of values must be at least 1, got 0"),
    "nan": (b"minutes\n3\nnan\n", "values[1] must be a finite number, got nan"),
    "infinite": (b"minutes\n3\ninf\n", "values[1] must be a finite number, got inf"),
    "one party": (b"minutes\n3\n", "parties must be "),
    "text": (b"minutes\n3\nfour\n", "cell 1 in line 3 of v.csv must be a number, got something that is not"),
}


@pytest.mark.parametrize("case", VALUES_REFUSED)
def test_bad_values_are_refused(case: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content, sentence = VALUES_REFUSED[case]
    (tmp_path / "v.csv").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    assert refused(capsys, "average", "v.csv", "--domain", 0, 10, *NOISE).startswith(sentence)


def test_help_teaches(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    status, out, _ = call(capsys, "average", "--help")
    assert status == 0
    for part in ("--sigma-cancelling", "Example:", "NOT private", "leave for good"):
        assert part in out
