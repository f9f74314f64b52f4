from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import inca
from helpers.command_line import NOISE, call, run
from helpers.paths import ROOT
from inca.protocol.transcript import read_execution as read

EXAMPLE = ROOT / "examples" / "waiting-times.csv"


def average(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    status, out, err = call(capsys, "average", *words, *NOISE, "--json")
    assert (status, err) == (0, "")
    report: dict[str, Any] = json.loads(out)
    return report


def test_average_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    report = average(capsys, EXAMPLE, "--domain", 0, 240, "--show-truth")
    assert report["present"] == report["parties"] == 1000
    assert report["weight"] == pytest.approx(1000) and report["epsilon"] is report["delta"] is None
    assert report["standard_error"] == pytest.approx(2 / 1000**0.5)
    # Ten standard errors: false alarms 1e-23; this run takes the system's randomness.
    assert abs(report["estimate"] - report["mean"]) < 10 * report["standard_error"]


def test_a_seed_repeats_the_run_and_nothing_else_does(capsys: pytest.CaptureFixture[str]) -> None:
    words = [EXAMPLE, "--domain", 0, 240, "--dropout", 0.1, "--quiet-rounds", 3, "--schedule", "permutation"]
    first, second = average(capsys, *words, "--seed", 5), average(capsys, *words, "--seed", 5)
    assert first == second and first["present"] == 900
    assert average(capsys, *words)["estimate"] != average(capsys, *words)["estimate"]


def test_the_transcript_is_the_execution(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in ("run.json", "run.npz"):
        path = tmp_path / name
        report = average(
            capsys, EXAMPLE, "--domain", 0, 240, "--rounds", 5, "--absence", 0.1, 0.5, "--transcript", path
        )
        transcript = read(path)
        assert transcript.execution.rounds == 5 and transcript.sigma_cancelling == 20
        assert int(transcript.execution.published.sum()) == report["present"]
        assert transcript.execution.weight == pytest.approx(report["weight"])
        budget = inca.expected_error(transcript.execution, 2, 20)
        assert budget.total**0.5 == pytest.approx(report["standard_error"])


def test_values_from_csv_parquet_and_numpy(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = np.random.default_rng(1).random((50, 2)).round(6)
    np.save(tmp_path / "v.npy", table)
    np.savetxt(tmp_path / "bare.csv", table, delimiter=",", fmt="%.6f")
    (tmp_path / "names.csv").write_text("a,b\n" + "\n".join(f"{a},{b}" for a, b in table) + "\n\n")
    pq.write_table(pa.table({"a": table[:, 0], "b": table[:, 1]}), tmp_path / "v.parquet")
    reports = [
        average(capsys, tmp_path / name, "--domain", 0, 1, "--seed", 3)
        for name in ("v.npy", "bare.csv", "names.csv", "v.parquet")
    ]
    assert len(reports[0]["estimate"]) == 2
    assert all(report == reports[0] for report in reports[1:])
    one = [
        average(capsys, tmp_path / name, "--domain", 0, 1, "--seed", 3, "--column", "b")
        for name in ("names.csv", "v.parquet")
    ]
    assert isinstance(one[0]["estimate"], float) and one[0] == one[1]


def test_clipping_and_balls(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.full((20, 2), 3.0))
    noise = ["--sigma-independent", 0, "--sigma-cancelling", 9]
    _, out, _ = call(capsys, "average", tmp_path / "v.npy", "--ball", 1, *noise, "--clip", "--json")
    assert json.loads(out)["estimate"] == pytest.approx([0.5**0.5] * 2)


def test_a_trace_drives_absence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("party,leaves,returns\n0,1,\n1,2,3\n")
    report = average(capsys, EXAMPLE, "--domain", 0, 240, "--rounds", 4, "--trace", tmp_path / "trace.csv")
    assert report["present"] == 999


def test_nobody_left_is_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "average", EXAMPLE, "--domain", 0, 240, *NOISE, "--dropout", 1)
    assert status == 1 and out == "no estimate: none of the parties was present at the end\n"
    status, out, _ = call(capsys, "average", EXAMPLE, "--domain", 0, 240, *NOISE, "--dropout", 1, "--json")
    report = json.loads(out)
    assert status == 1 and report["estimate"] is None and report["present"] == 0 and report["weight"] == 0


def test_the_table_for_people() -> None:
    done = run("average", EXAMPLE, "--domain", 0, 240, *NOISE, "--seed", 1, "--show-truth")
    assert done.returncode == 0
    for words in ("estimate of the mean", "exact mean", "standard error", "1000 of 1000", "not private"):
        assert words in done.stdout


CASES: dict[str, tuple[list[object], str]] = {
    "no such file": (["none.csv", "--domain", 0, 1], "VALUES is 'none.csv', but there is no such file"),
    "no domain": ([EXAMPLE], "--domain LOW HIGH or --ball RADIUS is needed"),
    "two domains": ([EXAMPLE, "--domain", 0, 1, "--ball", 1], "and only one"),
    "outside": ([EXAMPLE, "--domain", 0, 100], "but a number in [0, 100] was expected"),
    "empty interval": ([EXAMPLE, "--domain", 1, 0], "high is 0.0, but a number above low"),
    "rounds 0": ([EXAMPLE, "--domain", 0, 240, "--rounds", 0], "rounds is 0"),
    "k >= n": ([EXAMPLE, "--domain", 0, 240, "--receivers", 1000], "receivers is 1000, but fewer than"),
    "schedule": ([EXAMPLE, "--domain", 0, 240, "--schedule", "star"], "schedule is 'star'"),
    "injection": ([EXAMPLE, "--domain", 0, 240, "--injection", "late"], "--injection is 'late'"),
    "quiet": ([EXAMPLE, "--domain", 0, 240, "--quiet-rounds", 30], "quiet is 30"),
    "quiet early": (
        [EXAMPLE, "--domain", 0, 240, "--injection", "early", "--quiet-rounds", 3],
        "--quiet-rounds is 3, but 0 was expected",
    ),
    "dropout": ([EXAMPLE, "--domain", 0, 240, "--dropout", 1.5], "fraction is 1.5"),
    "dropout nan": ([EXAMPLE, "--domain", 0, 240, "--dropout", "nan"], "fraction is nan"),
    "alternatives": (
        [EXAMPLE, "--domain", 0, 240, "--dropout", 0.5, "--absence", 0.1, 0.1],
        "are alternatives",
    ),
    "seed": ([EXAMPLE, "--domain", 0, 240, "--seed", -1], "--seed is -1"),
    "column": ([EXAMPLE, "--domain", 0, 240, "--column", "hours"], "--column is 'hours', but"),
    "transcript": (
        [EXAMPLE, "--domain", 0, 240, "--transcript", "/no/such/folder/run.json"],
        "cannot be written",
    ),
    "trace": ([EXAMPLE, "--domain", 0, 240, "--trace", "none.csv"], "cannot be read as a presence trace"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_sentence_and_status_2(
    case: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, sentence = CASES[case]
    monkeypatch.chdir(tmp_path)
    status, out, err = call(capsys, "average", *words, *NOISE)
    assert (status, out) == (2, "")
    assert sentence in err and err.count("\n") == 1 and "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("case", ["no such file", "transcript"])  # before any work, and after all of it
def test_a_process_of_its_own_refuses_in_the_same_way(case: str, tmp_path: Path) -> None:
    words, sentence = CASES[case]
    done = run("average", *words, *NOISE, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert sentence in done.stderr and done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


USAGE: dict[str, tuple[list[str], str]] = {
    "missing option": (["plan", "--parties", "10"], "Missing option '--epsilon'"),
    "missing argument": (["average", *NOISE], "Missing argument"),
    "unknown option": (["average", "x.csv", *NOISE, "--foo"], "--foo"),
    "unknown command": (["averge"], "'averge'"),
    "not a number": (
        ["average", "x.csv", "--sigma-independent", "abc", "--sigma-cancelling", "1"],
        "--sigma-independent",
    ),
    "half a domain": (["average", "x.csv", *NOISE, "--domain", "1"], "--domain"),
}


@pytest.mark.parametrize("case", USAGE)
def test_bad_usage_is_one_sentence_and_status_2(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, sentence = USAGE[case]
    status, out, err = call(capsys, *words)
    assert (status, out) == (2, "")
    assert err.startswith("inca: ") and sentence in err and err.count("\n") == 1


def test_a_call_without_arguments_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert "average" in call(capsys)[1]


FILES: dict[str, tuple[str, bytes, str]] = {
    "empty": ("v.csv", b"", "v.csv is empty"),
    "only a header": ("v.csv", b"minutes\n", "values is empty"),
    "text": ("v.csv", b"minutes\n3\nfour\n", "line 3 of v.csv has 'four' in cell 1, but a number"),
    "ragged": ("v.csv", b"1,2\n3\n", "line 2 of v.csv has 1 cells, but 2"),
    "nan": ("v.csv", b"minutes\n3\nnan\n", "values[1] is nan"),
    "infinite": ("v.csv", b"minutes\n3\ninf\n", "values[1] is inf"),
    "one party": ("v.csv", b"minutes\n3\n", "parties is 1"),
    "not text": ("v.csv", b"\xff\xfe\x00", "cannot be read"),
    "bad numpy": ("v.npy", b"\x93NUMPY nonsense", "is not a NumPy file of numbers"),
    "bad parquet": ("v.parquet", b"PAR1 nonsense", "is not a Parquet file"),
}


@pytest.mark.parametrize("case", FILES)
def test_bad_files_are_refused(
    case: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, content, sentence = FILES[case]
    (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    status, _, err = call(capsys, "average", name, "--domain", 0, 10, *NOISE)
    assert status == 2 and sentence in err and err.count("\n") == 1, err


def test_help_teaches_and_is_quick_to_import() -> None:
    done = run("average", "--help", env=os.environ | {"COLUMNS": "120"})
    assert done.returncode == 0
    for words in ("--sigma-cancelling", "Example:", "NOT private", "leaves for good"):
        assert words in done.stdout
    assert run("--version").stdout == f"inca {inca.__version__}\n"
    code = "import sys; sys.argv[1:] = ['--help']\ntry:\n import inca.cli; inca.cli.main()\nexcept SystemExit: pass\n"
    done = subprocess.run(
        [sys.executable, "-c", code + "print('numba' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "False"


def test_progress_is_shown_on_a_terminal(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.zeros((1000, 1000)))
    main, side = pty.openpty()
    command = [sys.executable, "-c", "from inca.cli import main; main()", "average", str(tmp_path / "v.npy")]
    with subprocess.Popen([*command, "--domain", "0", "1", *NOISE], stdout=subprocess.PIPE, stderr=side) as process:
        os.close(side)
        seen, limit = b"", time.monotonic() + 100
        while time.monotonic() < limit:
            try:
                part = os.read(main, 65536)
            except OSError:  # the terminal is gone with the process
                break
            seen += part
        out, _ = process.communicate(timeout=100)
    os.close(main)
    assert process.returncode == 0 and b"estimate of the mean" in out
    assert b"of 20" in seen
