"""A real session whose result is a long vector, and everything that reads what it leaves."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from helpers.command_line import Capture, call, refused
from helpers.pace import allowance
from helpers.sequence_processes import SIZES, agree
from inca._base.types import Array
from inca.dashboard.sessions import all_sessions, one_session
from inca.documents.result import MOST_IN_JSON
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.node.booked_losses import booked_losses
from inca.network.node.node import Node, SessionEnd
from inca.network.node.report import kept_result, write_report
from inca.network.node.session_setup import SessionSetup
from inca.network.node.warm_up import warm_up
from inca.network.sequence.session_sequence import AverageRequest, SessionSequence

pytestmark = pytest.mark.real_time

PARTIES = len(SIZES)
REQUEST = AverageRequest(MOST_IN_JSON + 1, max_norm=20.0, distance=1.0, mu=50.0)
VALUES = np.random.default_rng(1).uniform(-0.5, 0.5, (PARTIES, REQUEST.dimension))


@dataclass
class Held:
    """The first session of a sequence, as its parties have it on their disks; and what they computed in memory."""

    folder: Path
    agreed: Roster
    roster: Roster
    mean: Array

    def sessions(self, i: int) -> Path:
        """Return the folder of a party's sessions of the first number."""
        return self.folder / str(i) / "course" / "0001" / "sessions"

    def place(self, i: int) -> Path:
        return self.sessions(i) / self.roster.session.hex()[:16]

    def sequence(self, i: int, sentences: list[str]) -> SessionSequence:
        identity, folder = Identity.read(self.folder / str(i)), self.folder / str(i) / "course"
        return SessionSequence(self.agreed, identity, folder, notify=sentences.append)


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Held:
    warm_up()
    folder, pace = tmp_path_factory.mktemp("long"), allowance()
    agreed = agree(folder, lead=3.0 * pace, rounds=2, period=0.7 * pace, max_clock_skew=0.2 * pace)
    identities = [Identity.read(folder / str(i)) for i in range(PARTIES)]
    roster = SessionSequence(agreed, identities[0], folder / "0" / "course")._roster_of(1, REQUEST)
    roster.write(folder / "session.json")
    setup, session = SessionSetup(roster), Held(folder, agreed, roster, np.empty(0))

    async def hold() -> list[SessionEnd]:
        nodes = [Node(setup, identities[i], session.place(i), lambda i=i: VALUES[i]) for i in range(PARTIES)]  # type: ignore[misc]
        return await asyncio.gather(*(node.run() for node in nodes))

    for i, end in enumerate(asyncio.run(hold())):
        assert end.result is not None, end.reason
        write_report(session.place(i), setup, i, end)
        session.mean = setup.estimate(end.result.total, end.result.weight)
    return session


def test_all_have_the_same_archive_and_a_small_json(held: Held) -> None:
    assert len({(held.place(i) / "result.npz").read_bytes() for i in range(PARTIES)}) == 1
    for i in range(PARTIES):
        document, place = kept_result(held.place(i)), held.place(i)
        assert document is not None and document.has_result and document.exact
        assert document.vector(place, "estimate").tobytes() == held.mean.tobytes()
        assert (place / "result.json").stat().st_size < 2000
    assert document is not None and document.standard_error is not None
    assert (np.abs(held.mean - VALUES.mean(axis=0)) < 6 * document.standard_error).all()


def test_a_sequence_goes_on_from_the_same_doubles(held: Held) -> None:
    terms = {"max_norm": REQUEST.max_norm, "distance": REQUEST.distance, "mu": REQUEST.mu}
    outcome = held.sequence(2, []).average(VALUES[2], **terms)
    assert outcome.estimate is not None and outcome.estimate.tobytes() == held.mean.tobytes()


def test_a_sequence_without_its_archive_asks_the_others(held: Held) -> None:
    sentences: list[str] = []
    sequence, place = held.sequence(3, sentences), held.place(3)
    document = kept_result(place)
    assert document is not None
    (place / "result.npz").rename(place / "elsewhere.npz")
    try:
        assert sequence._estimate(1, document, place) is None
        assert len(sentences) == 1 and "result.npz cannot be read: No such file or directory" in sentences[0]
    finally:
        (place / "elsewhere.npz").rename(place / "result.npz")


def test_the_report_of_the_session_and_of_the_file_name_the_archive(
    held: Held, capsys: Capture, tmp_path: Path
) -> None:
    shown = ", ".join(f"{number:.6g}" for number in held.mean[:6])
    for path in (held.place(0), held.place(0) / "result.json"):
        status, out, err = call(capsys, "report", path, "--out", tmp_path / "page.html")
        assert (status, err) == (0, "") and f"{shown}, ... (1,001 numbers)" in " ".join(out.split())
        page = re.sub(r"<[^>]+>", " ", (tmp_path / "page.html").read_text())
        assert "The first 12 of 1,001 coordinates." in page and f"{shown}, ... (1,001 numbers), in result.npz" in page
        document = kept_result(held.place(0))
        assert document is not None and document.arrays is not None and document.arrays.sha256 in page


def test_a_report_refuses_another_archive(held: Held, capsys: Capture, tmp_path: Path) -> None:
    for name in ("result.json", "status.json", "certificate.json"):
        (tmp_path / name).write_bytes((held.place(0) / name).read_bytes())
    assert "result.npz cannot be read: No such file or directory. Copy result.json and" in refused(
        capsys, "report", tmp_path
    )
    (tmp_path / "result.npz").write_bytes((held.place(0) / "result.npz").read_bytes()[:-1] + b"!")
    assert "result.npz is not the file that was written" in refused(capsys, "report", tmp_path / "result.json")


def test_a_party_that_is_started_again_says_where_the_numbers_are(held: Held, capsys: Capture) -> None:
    words = ("node", "run", held.folder / "session.json", "--identity", held.folder / "4", "--state", held.sessions(4))
    status, out, _ = call(capsys, *words)
    assert status == 0 and "has 1,001 coordinates; unconstrained, they are in result.npz." in " ".join(out.split())
    status, out, _ = call(capsys, *words, "--json")
    fields = json.loads(out)
    assert status == 0 and fields["arrays"]["coordinates"] == 1001 and "estimate" not in fields


def test_dashboard_and_ledger_need_no_archive(held: Held) -> None:
    (session,) = all_sessions([held.sessions(1)])
    content = one_session([held.sessions(1)], session["id"])["content"]
    assert "has 1,001 coordinates" in content.verdict[0].text and "result.npz" in str(content)
    (booked,) = booked_losses(held.sessions(1))
    assert booked.basis == "own loss, against all coalitions" and booked.party == "party-1"
