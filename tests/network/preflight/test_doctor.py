from __future__ import annotations

import asyncio
import json
import socket
import stat
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from helpers.command_line import call
from helpers.rosters import SEED, terms
from inca._base.validation import InputError
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.membership.tls import client_context, server_context
from inca.network.node.journal import Journal
from inca.network.preflight.checks import EITHER, NETWORK, OURS, THEIRS, Finding
from inca.network.preflight.doctor import Diagnosis, examine
from inca.network.testing.local_cluster import free_ports
from inca.network.transport.frames import Limits
from inca.network.transport.transport import Transport

NAMES = ("anna", "bert", "cleo", "dora")
Capture = pytest.CaptureFixture[str]


class Deaf:
    """A listener that does nothing."""

    def received(self, peer: int, frame: bytes) -> None: ...

    def unsent(self, peer: int, token: object) -> None: ...

    def down(self, peer: int, reason: str) -> None: ...

    def up(self, peer: int) -> None: ...

    def note(self, event: str, **fields: object) -> None: ...


class World:
    """Four identities with addresses on this machine, and their roster; `state` belongs to anna."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.identities = [Identity.create(name) for name in NAMES]
        self.ports = free_ports(len(NAMES))
        cards = [each.card("127.0.0.1", port) for each, port in zip(self.identities, self.ports, strict=True)]
        self.roster = Roster("trial", terms(**changes), tuple(cards))
        self.folder, self.state = folder, folder / "state"

    @asynccontextmanager
    async def peer(
        self, i: int, roster: Roster | None = None, identity: Identity | None = None, ahead: float = 0.0, me: int = -1
    ) -> AsyncIterator[Transport]:
        """Listen at party i's address: as that party, or with whatever is given instead."""
        roster, identity = roster or self.roster, identity or self.identities[i]
        transport = Transport(
            me=i if me < 0 else me,
            addresses=[(card.host, card.port) for card in roster.parties],
            session=roster.session,
            server=server_context(identity, roster),
            client=client_context(identity, roster),
            identify=roster.index,
            limits=Limits(),
            listener=Deaf(),
            clock=lambda: time.time() + ahead,
        )
        await transport.start("127.0.0.1", self.ports[i])
        try:
            yield transport
        finally:
            await transport.close()

    async def examine(self, seconds: float = 0.8, **more: Any) -> Diagnosis:
        return await examine(self.roster, self.identities[0], self.state, seconds=seconds, **more)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else has questions, except where doctors meet."""
    monkeypatch.setattr("inca.network.preflight.peer_checks._STAY", 0.1)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 20.0))


def check(found: Diagnosis, what: str) -> Finding:
    return next(each for each in found.checks + found.peers if each.what == what)


def test_a_fine_peer_and_absent_ones(world: World) -> None:
    async def work() -> None:
        async with world.peer(1):
            found = await world.examine()
        assert found.problems == () and found.party == "anna"
        bert, cleo, _ = found.peers
        assert (bert.level, bert.state, bert.fault) == ("fine", "fine", "")
        assert abs(bert.figures["offset"] or 0.0) < 0.1 and 0.0 < (bert.figures["round_trip"] or 0.0) < 0.5
        assert (cleo.level, cleo.state, cleo.fault) == ("note", "not there", THEIRS)
        assert f"127.0.0.1:{world.ports[2]}" in cleo.text
        assert check(found, "address").text == f"listens on 127.0.0.1:{world.ports[0]}"
        assert check(found, "period").level == "fine" and check(found, "start").text == "in 1 h 0 min"

    run(work())


@pytest.mark.parametrize("pause", [0.0, 0.7])
def test_doctors_meet_even_if_one_comes_later(world: World, pause: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inca.network.preflight.peer_checks._STAY", 1.0)

    async def work() -> None:
        async def later(party: int) -> Diagnosis:
            await asyncio.sleep(pause)
            folder = world.folder / str(party)
            return await examine(world.roster, world.identities[party], folder, seconds=2.0)

        four = await asyncio.gather(world.examine(seconds=2.0), later(1), later(2), later(3))
        assert all(peer.state == "fine" for each in four for peer in each.peers)

    run(work())


def test_wrong_certificates(world: World) -> None:
    """Another party of the roster at bert's address, and a stranger with a roster of its own at cleo's."""

    async def work() -> None:
        stranger = Identity.create("cleo")
        cards = [*world.roster.parties[:2], stranger.card("127.0.0.1", world.ports[2]), world.roster.parties[3]]
        theirs = replace(world.roster, parties=tuple(cards))
        async with world.peer(1, identity=world.identities[3], me=3), world.peer(2, theirs, stranger):
            found = await world.examine()
        for name in ("bert", "cleo"):
            peer = check(found, name)
            assert (peer.level, peer.state, peer.fault) == ("problem", "wrong certificate", THEIRS)
            assert "compare fingerprints" in peer.text
        assert [each.what for each in found.problems] == ["bert", "cleo"]

    run(work())


def test_another_roster_is_another_session_and_most_decide_whose_fault_it_is(world: World) -> None:
    async def work() -> None:
        changed = replace(world.roster, terms=terms(period=11.0))
        async with world.peer(1, changed):
            found = await world.examine()
            assert (check(found, "bert").state, check(found, "bert").fault) == ("other session", EITHER)
            assert "compare the session's id" in check(found, "bert").text
            async with world.peer(2), world.peer(3):
                assert check(await world.examine(), "bert").fault == THEIRS
            async with world.peer(2, changed), world.peer(3):
                assert check(await world.examine(), "bert").fault == OURS

    run(work())


def test_a_peer_whose_roster_lacks_us_refuses(world: World) -> None:
    async def work() -> None:
        async with world.peer(1, replace(world.roster, parties=world.roster.parties[1:]), me=0):
            found = await world.examine()
        assert (check(found, "bert").level, check(found, "bert").state) == ("problem", "refused")

    run(work())


def test_clocks(world: World) -> None:
    async def work() -> None:
        async with world.peer(1, ahead=3.0):
            bert = check(await world.examine(), "bert")
            assert (bert.level, bert.state, bert.fault) == ("problem", "clock off", EITHER)
            assert "+3.0" in bert.text and abs((bert.figures["offset"] or 0.0) - 3.0) < 0.2
            async with world.peer(2), world.peer(3):
                assert check(await world.examine(), "bert").fault == THEIRS
            async with world.peer(2, ahead=3.1), world.peer(3):
                assert check(await world.examine(), "cleo").fault == OURS

    run(work())


def test_who_does_not_answer_timed_out(world: World) -> None:
    async def work() -> None:
        with socket.create_server(("127.0.0.1", world.ports[1])):
            began = time.monotonic()
            found = await world.examine()
            assert time.monotonic() - began < 10.0
        assert (check(found, "bert").level, check(found, "bert").state) == ("problem", "timed out")
        assert check(found, "bert").fault in (THEIRS, NETWORK)

    run(work())


def test_a_stranger_that_knocks_is_told_of(world: World) -> None:
    async def work() -> None:
        doctor = asyncio.create_task(world.examine())
        await asyncio.sleep(0.3)
        _, writer = await asyncio.open_connection("127.0.0.1", world.ports[0])
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        await writer.drain()
        found = await doctor
        writer.close()
        assert [each.state for each in found.peers] == ["not there"] * 3 + ["stranger"] and not found.problems

    run(work())


def test_an_address_in_use_is_ours_to_mend(world: World) -> None:
    async def work() -> None:
        async with world.peer(0), world.peer(1):
            found = await world.examine()
        assert check(found, "address").level == "problem" and found.peers == ()
        assert f"cannot listen on 127.0.0.1:{world.ports[0]}" in check(found, "address").text
        other = free_ports(1)[0]
        async with world.peer(1):
            found = await world.examine(listen=("127.0.0.1", other))
        assert not found.problems and check(found, "bert").state == "fine"

    run(work())


def test_a_period_that_is_too_short(tmp_path: Path) -> None:
    world = World(tmp_path, period=0.0003, clock_bound=0.0001, dimension=2000, sigma_independent=1e4)

    async def work() -> None:
        async with world.peer(1):
            period = check(await world.examine(), "period")
        assert period.level == "problem" and "agree on" in period.text
        assert (period.figures["suggested"] or 0.0) > (period.figures["needed"] or 0.0) > 0.0003

    run(work())


def test_the_journal_is_tried_where_it_will_be_and_nothing_is_left(world: World) -> None:
    async def work() -> None:
        found = await world.examine(seconds=0.3)
        journal = check(found, "journal")
        assert journal.figures["commits"] == 200 and (journal.figures["commits_per_second"] or 0) > 1
        assert (journal.figures["slowest"] or 0) >= (journal.figures["median"] or 0) > 0
        assert stat.S_IMODE(world.state.stat().st_mode) == 0o700 and list(world.state.iterdir()) == []
        world.state.chmod(0o777)
        assert "others can replace" in check(await world.examine(seconds=0.3), "space").text

    run(work())


def test_too_little_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(folder: Path, setting: object) -> None:
        raise InputError(f"{folder} has 0.1 MiB left, but 2.0 MiB may be needed")

    monkeypatch.setattr("inca.network.preflight.doctor.check_room", full)
    world = World(tmp_path)

    async def work() -> None:
        assert [each.what for each in (await world.examine(seconds=0.3)).problems] == ["space"]

    run(work())


BUSY: dict[str, tuple[Callable[[World, Path], object], str]] = {
    "ended": (lambda world, folder: (folder / "ended.json").write_text("{}"), "has ended here before"),
    "in use": (
        lambda world, folder: Journal(folder / "journal.db", session=world.roster.session, party=0),
        "is in use by another process",
    ),
    "begun": (
        lambda world, folder: setattr(
            world, "roster", replace(world.roster, terms=msgspec.structs.replace(world.roster.terms, start=1e9))
        ),
        "the session began",
    ),
}


@pytest.mark.parametrize("case", BUSY)
def test_peers_are_left_in_peace_when_a_session_is_on(case: str, world: World) -> None:
    prepare, sentence = BUSY[case]
    folder = world.state / world.roster.session.hex()[:16]
    folder.mkdir(mode=0o700, parents=True)
    world.state.chmod(0o700)
    kept = prepare(world, folder)

    async def work() -> None:
        async with world.peer(1) as bert:
            found = await world.examine()
            assert [each.what for each in found.problems] == ["start"] and sentence in found.problems[0].text
            assert found.peers == () and not bert.connected

    run(work())
    if isinstance(kept, Journal):
        kept.close()


def test_the_planned_loss_needs_a_seed(world: World) -> None:
    async def work() -> None:
        assert "tossed" in check(await world.examine(seconds=0.3), "loss").text
        for epsilon, level in ((50.0, "fine"), (0.001, "problem")):
            world.roster = replace(world.roster, terms=terms(seed=SEED, epsilon=epsilon))
            loss = check(await world.examine(seconds=0.3), "loss")
            assert loss.level == level and loss.figures["allowed"] == epsilon

    run(work())


def test_a_roster_that_is_not_complete_and_an_identity_that_is_not_in_it(world: World) -> None:
    async def work() -> None:
        world.roster = replace(world.roster, parties=world.roster.parties[1:3])
        found = await world.examine()
        assert [each.what for each in found.problems] == ["roster", "roster", "identity"]
        assert all(each.fault == OURS for each in found.problems) and not world.state.exists()

    run(work())


# --- the command ----------------------------------------------------------------------------------------------------


def prepare(world: World) -> list[object]:
    world.roster.write(world.folder / "roster.json")
    world.identities[0].write(world.folder / "anna", "127.0.0.1", world.ports[0])
    folders: list[object] = ["--identity", world.folder / "anna", "--state", world.state]
    return ["node", "doctor", world.folder / "roster.json", *folders]


def test_the_command_prints_a_table_and_json(capsys: Capture, world: World) -> None:
    words = prepare(world)
    status, out, err = call(capsys, *words, "--seconds", 0.4)
    assert (status, err) == (0, "")
    for part in (f"session {world.roster.session.hex()}", "this machine\n", "\npeers\n", "bert  not there"):
        assert part in out
    assert out.endswith("3 of 3 peers are not there yet.\nNothing is in the way of the session.\n")
    status, out, err = call(capsys, *words, "--seconds", 0.4, "--json")
    report = json.loads(out)
    assert (status, err, report["well"], report["problems"]) == (0, "", True, [])
    assert [each["state"] for each in report["peers"]] == ["not there"] * 3
    assert {each["what"] for each in report["checks"]} == {
        "roster", "start", "address", "space", "journal", "loss", "period"
    }  # fmt: skip


def test_the_command_names_what_is_in_the_way(capsys: Capture, world: World) -> None:
    world.roster = replace(world.roster, terms=terms(seed=SEED, epsilon=0.001))
    words = prepare(world)
    status, out, _ = call(capsys, *words, "--seconds", 0.4)
    assert status == 1 and "The session would not work:\n  loss: even with everyone present its loss would be" in out
    assert out.endswith("(it looks like our fault)\n")
    status, out, _ = call(capsys, *words, "--seconds", 0.4, "--json")
    assert status == 1 and json.loads(out)["well"] is False and "loss: even" in json.loads(out)["problems"][0]


def test_the_command_refuses_bad_input(capsys: Capture, world: World) -> None:
    words = prepare(world)
    for more, sentence in (
        (["--seconds", 0], "seconds is 0.0, but a finite number above 0"),
        (["--listen", "7001"], "--listen is '7001', but HOST:PORT"),
        (["--identity", world.folder], "identity.pem cannot be read"),
    ):
        status, out, err = call(capsys, *words, *more)
        assert (status, out) == (2, "") and sentence in err and err.count("\n") == 1
