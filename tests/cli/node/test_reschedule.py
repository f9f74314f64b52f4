from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.command_line import Capture, call, refused
from helpers.rosters import SEED, terms
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster, read_roster
from inca.network.membership.terms import from_utc

STARTS = ("2090-01-15T08:00:00Z", "2090-01-16T08:00:00Z")


def write(path: Path, **changes: Any) -> Roster:
    cards = [Identity.create(name).card(f"gateway.example.org:{7001 + i}") for i, name in enumerate(("a", "b", "c"))]
    agreed = {"start": from_utc(STARTS[0]), "epsilon": 4.0, "delta": 1e-5} | changes
    roster = Roster("trial", terms(**agreed), tuple(cards))
    roster.write(path)
    return roster


def test_a_roster_is_given_another_start(capsys: Capture, tmp_path: Path) -> None:
    before = write(tmp_path / "roster.json")
    status, out, err = call(capsys, "node", "roster", "reschedule", tmp_path / "roster.json", "--start", STARTS[1])
    again = read_roster(tmp_path / "roster.json")
    assert (status, err) == (0, "") and again == before.at(from_utc(STARTS[1])) and again.session != before.session
    for sentence in (
        f"The roster trial begins at {STARTS[1]} now, in {tmp_path / 'roster.json'}.",
        f"It was session {before.session.hex()}.",
        f"Session {again.session.hex()}\nComplete.\n",
        "All parties need the new file, and must see this id in `inca node roster show`.",
        "values are released a second time: epsilon 4 at delta 1e-05 each becomes epsilon 5.992 for both, and the "
        "probabilities of failure add up. If it had not, nothing was given away.",
    ):
        assert sentence in out


def test_it_prints_json_and_writes_another_file_if_asked_to(capsys: Capture, tmp_path: Path) -> None:
    before = write(tmp_path / "roster.json", seed=SEED)
    words = ["--start", STARTS[1], "--period", "20s", "--public-seed", "ab" * 16, "--out", tmp_path / "second.json"]
    status, out, _ = call(capsys, "node", "roster", "reschedule", tmp_path / "roster.json", *words, "--json")
    again, report = read_roster(tmp_path / "second.json"), json.loads(out)
    assert status == 0 and read_roster(tmp_path / "roster.json") == before
    assert (again.terms.period, again.terms.max_clock_skew, again.terms.seed) == (20.0, 2.0, "ab" * 16)
    assert (report["before"], report["session"]) == (before.session.hex(), again.session.hex())
    assert report["together"] == {"tries": 2, "epsilon": pytest.approx(5.992008, rel=1e-6), "delta": 1e-5}


REFUSED: dict[str, tuple[dict[str, Any], list[object], str]] = {
    "past": ({}, ["--start", "2020-01-01T00:00:00Z"], "--start must be a time to come such as"),
    "the same": ({}, ["--start", STARTS[0]], "the start must be another than before, so that it is another session"),
    "the same in words": ({}, ["--start", "2090-01-15T10:00:00+02:00"], "the start must be another than before"),
    "period": ({}, ["--start", STARTS[1], "--period", "soon"], "--period must be a length of time such as 10s"),
    "old seed": ({"seed": SEED}, ["--start", STARTS[1]], "the seed must be a new one, drawn after the roster was"),
    "a seed for a coin flip": (
        {},
        ["--start", STARTS[1], "--public-seed", SEED],
        "the seed must be left to the parties",
    ),
    "out": ({}, ["--start", STARTS[1], "--out", "roster.json"], "--out must be a file that does not exist yet"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_another_try_is_refused_and_changes_nothing(
    case: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes, words, sentence = REFUSED[case]
    monkeypatch.chdir(tmp_path)
    write(Path("roster.json"), **changes)
    before = Path("roster.json").read_bytes()
    assert sentence in refused(capsys, "node", "roster", "reschedule", "roster.json", *words)
    assert Path("roster.json").read_bytes() == before
