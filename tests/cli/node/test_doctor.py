from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.command_line import Capture, call, instead, refused
from helpers.rosters import SEED, terms
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.testing.local_cluster import free_ports

NAMES = ("anna", "bert", "cleo", "dora")
SOON = ["--timeout", 0.4]


@pytest.fixture
def roster(tmp_path: Path) -> Roster:
    """A roster of four, with the identity of the first in the folder of her name."""
    cards = []
    for name, port in zip(NAMES, free_ports(len(NAMES)), strict=True):
        cards.append(Identity.create(name).write(tmp_path / name, f"127.0.0.1:{port}"))
    return Roster("trial", terms(), tuple(cards))


def words(folder: Path, roster: Roster) -> list[object]:
    roster.write(folder / "roster.json")
    return ["node", "doctor", folder / "roster.json", "--identity", folder / "anna", "--state", folder / "state"]


def test_it_prints_a_table_and_json(capsys: Capture, tmp_path: Path, roster: Roster) -> None:
    status, out, err = call(capsys, *words(tmp_path, roster), *SOON)
    assert (status, err) == (0, "")
    for part in (f"session {roster.session.hex()}", "this machine\n", "\npeers\n", "bert  not there"):
        assert part in out
    assert out.endswith(
        "3 of 3 peers are not there yet.\nNothing is in the way here. No peer was there to try the links with.\n"
    )
    status, out, err = call(capsys, *words(tmp_path, roster), *SOON, "--json")
    report = json.loads(out)
    assert (status, err, report["well"], report["problems"]) == (0, "", True, [])
    assert [peer["state"] for peer in report["peers"]] == ["not there"] * 3
    assert (report["absent"], report["apart"]) == ([peer["what"] for peer in report["peers"]], [])
    assert {check["what"] for check in report["checks"]} == {
        "roster", "start", "address", "space", "journal", "memory", "loss", "period", "estimate"
    }  # fmt: skip


def test_it_names_what_is_in_the_way(capsys: Capture, tmp_path: Path, roster: Roster) -> None:
    roster = replace(roster, terms=terms(seed=SEED, epsilon=0.001))
    status, out, _ = call(capsys, *words(tmp_path, roster), *SOON)
    assert (
        status == 1
        and "The session would not work:\n  loss: even with everyone present its loss must be at most epsilon 0.001"
        in out
    )
    assert out.endswith("(it looks like our fault)\n")
    status, out, _ = call(capsys, *words(tmp_path, roster), *SOON, "--json")
    assert status == 1 and json.loads(out)["well"] is False and "loss: even" in json.loads(out)["problems"][0]


def test_a_roster_that_is_not_complete_is_a_problem(capsys: Capture, tmp_path: Path, roster: Roster) -> None:
    status, out, _ = call(capsys, *words(tmp_path, replace(roster, parties=roster.parties[:2])), *SOON)
    assert status == 1 and "not complete: the number of parties must be at least 3, got 2" in out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--timeout", 0], "--timeout must be above 0, got 0.0"),
        (["--listen", "7001"], "--listen must be HOST:PORT, got '7001'"),
        (["--identity", "nobody"], "identity.pem cannot be read"),
    ],
)
def test_bad_input_is_refused(
    options: list[object], sentence: str, capsys: Capture, tmp_path: Path, roster: Roster
) -> None:
    assert sentence in refused(capsys, *instead(words(tmp_path, roster), *options))
