from __future__ import annotations

import json
import re
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.command_line import Capture, call, refused
from helpers.documents import certificate
from helpers.paths import ROOT
from inca.cli.demo import served
from inca.network.testing import demo
from inca.reporting.content import content
from inca.reporting.terminal import text
from inca.reporting.verdict import verdict

SESSION = ROOT / "tests" / "fixtures" / "version-0.1" / "session" / "party-001" / "sessions"

ROWS = [
    {"party": "Aachen", "process": "ended", "presence": "####", "estimate": 71.5, "epsilon": 2.5},
    {"party": "Bergen", "process": "killed", "presence": "#...", "estimate": None, "epsilon": None},
]
REPORT: dict[str, Any] = {
    "parties": 12,
    "rounds": 4,
    "rows": ROWS,
    "truth": 70.0,
    "holders": 10,
    "agreed": True,
    "reason": "none",
    "folder": "",
    "estimate": 71.5,
    "interval": [40.0, 103.0],
    "confidence": 0.95,
    "remarks": ["The noise took it there."],
    "standard_error": 9.25,
    "execution": "sha256:00",
    "exact": True,
    "stayed": 72.25,
    "cohort": 10,
    "sealed": ["Cork"],
    "seconds": 4.5,
    "lattice": "equal, to the last unit",
    "certificate": certificate(),
}


class Pretended:
    """A demonstration without processes; it keeps how it was asked for."""

    report_fields = REPORT
    asked: dict[str, object]

    def __init__(self, parties: int, **options: object) -> None:
        type(self).asked = {"parties": parties, **options}

    def __enter__(self) -> Pretended:
        return self

    def __exit__(self, *error: object) -> None: ...

    def follow(self, pulse: bool = False) -> Iterator[str]:
        yield "12 processes start"

    def report(self) -> dict[str, Any]:
        return self.report_fields


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> type[Pretended]:
    monkeypatch.setattr(demo, "Demo", Pretended)
    return Pretended


def test_it_prints_what_happens_and_the_result(capsys: Capture, pretended: type[Pretended]) -> None:
    status, out, err = call(capsys, "demo", "--parties", 12, "--kill", 3, "--restart", 2, "--keep-files")
    assert status == 0 and err == "12 processes start\n"
    assert pretended.asked["parties"] == 12 and pretended.asked["kill"] == 3 and pretended.asked["keep"] is True
    assert 2 in pretended.asked.values() and pretended.asked["relay"] is False
    means = "72.2 min is the mean of the 10 whose values count", "70.0 min that of all 12", "Cork was killed"
    for part in ("71.5 min, the same for all 10", "9.2 min standard error", *means, "Aachen", "it there.\n"):
        assert part in out
    expected = "interval     40.0 to 103.0 min for all, whatever those who left held, with a probability of 95%\n"
    assert expected in out and verdict(certificate()).text in out
    assert out.index("71.5 min, the same") < out.index("Bergen")  # the result comes before the table
    assert str(content(certificate())) not in out and "--details" in out.splitlines()[-1]


def test_the_certificate_is_a_detail(capsys: Capture, pretended: type[Pretended]) -> None:
    status, out, _ = call(capsys, "demo", "--details")
    assert status == 0 and out.endswith(f"\n\n{text(content(certificate()), 100, details=True)}\n")


def test_it_prints_json(capsys: Capture, pretended: type[Pretended]) -> None:
    status, out, _ = call(capsys, "demo", "--json")
    assert (
        status == 0
        and json.loads(out) == REPORT | {"certificate": json.loads(json.dumps(certificate().as_fields()))}
        and pretended.asked["kill"] == 3
    )


def test_no_common_result_is_status_1(
    capsys: Capture, pretended: type[Pretended], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pretended, "report_fields", REPORT | {"agreed": False, "reason": "no majority"})
    status, out, _ = call(capsys, "demo")
    assert status == 1 and out.startswith("no common result: no majority\n") and "Bergen" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--kill", 6],
            "--kill must be at most 5, as 7 of 12 parties must agree on a result, got 6",
        ),
        (["--kill", 1, "--restart", 2], "--restart must be at most --kill (1), got 2"),
        (["--parties", 3], "--parties"),
        (["--restart", -1], "--restart"),
    ],
)
def test_bad_input_is_refused(words: list[object], sentence: str, capsys: Capture) -> None:
    assert sentence in refused(capsys, "demo", *words)


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["--relay"]])
def test_real_processes_agree(capsys: Capture, words: list[object]) -> None:
    status, out, err = call(capsys, "demo", "--parties", 5, "--kill", 1, "--restart", 0, "--json", *words)
    report = json.loads(out)
    assert ("5 processes and a relay start" in err) == bool(words)
    assert status == 0 and report["agreed"] and report["holders"] == 4 and "is killed (SIGKILL)" in err
    assert report["cohort"] == 4 and report["exact"]
    assert report["lattice"].startswith("equal, to the last unit")
    assert abs(report["estimate"] - report["stayed"]) < 6 * report["standard_error"]


def test_a_dashboard_of_the_session_is_served_and_ends_with_it(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER", "true")  # the command: nothing is to open here
    (folder,) = SESSION.iterdir()
    shutil.copytree(folder, tmp_path / "anna" / "sessions" / folder.name)
    said, deadline = "", time.monotonic() + 120.0
    with served(tmp_path) as process:
        while not (address := re.search(r"http://\S+/", said)) and time.monotonic() < deadline:
            assert process.poll() is None, "the dashboard has ended by itself"
            time.sleep(0.05)
            said += capfd.readouterr().out
        assert address is not None, said
        with urllib.request.urlopen(f"{address[0]}api/sessions", timeout=60.0) as answer:
            assert len(json.load(answer)["sessions"]) == 1
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{address[0]}api/sessions", timeout=60.0)
