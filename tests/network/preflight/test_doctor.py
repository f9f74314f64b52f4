from __future__ import annotations

import asyncio
import stat
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from helpers.relays import Absence, relay
from helpers.rosters import SEED, terms
from inca.errors import InvalidInput
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.membership.tls import client_context, server_context
from inca.network.node.journal import Journal
from inca.network.node.transport_setup import NetworkAccess
from inca.network.preflight.advice import ADVICE
from inca.network.preflight.checks import EITHER, NETWORK, OURS, THEIRS, Check
from inca.network.preflight.doctor import Diagnosis, examine
from inca.network.preflight.machine import available_memory
from inca.network.testing.local_cluster import free_ports
from inca.network.transport.failures import FailureCause
from inca.network.transport.interface import TransportConfig, TransportEvents
from inca.network.transport.limits import Limits
from inca.network.transport.transport import Transport

NAMES = ("anna", "bert", "cleo", "dora")
PATIENCE_S = 60.0  # for peers that are there and answer within milliseconds on an idle machine


class FourParties:
    """Four identities with addresses on this machine, and their roster; `state` belongs to anna."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.identities = [Identity.create(name) for name in NAMES]
        self.ports = free_ports(len(NAMES))
        cards = [party.card(f"127.0.0.1:{port}") for party, port in zip(self.identities, self.ports, strict=True)]
        self.roster = Roster("trial", terms(**changes), tuple(cards))
        self.folder, self.state = folder, folder / "state"

    @asynccontextmanager
    async def peer(
        self, i: int, roster: Roster | None = None, identity: Identity | None = None, ahead: float = 0.0, me: int = -1
    ) -> AsyncIterator[Transport]:
        """Listen at party i's address: as that party, or with whatever is given instead."""
        roster, identity = roster or self.roster, identity or self.identities[i]
        config = TransportConfig(
            me=i if me < 0 else me,
            addresses=[roster.addresses_of(i) for i in range(len(roster.parties))],
            session=roster.session,
            server=server_context(identity, roster),
            client=client_context(identity, roster),
            identify=roster.index,
            limits=Limits(),
            clock=lambda: time.time() + ahead,
        )
        transport = Transport(config, TransportEvents())
        await transport.start("127.0.0.1", self.ports[i])
        try:
            yield transport
        finally:
            await transport.close()

    async def examine(self, seconds: float = PATIENCE_S, **more: Any) -> Diagnosis:
        return await examine(self.roster, self.identities[0], self.state, seconds=seconds, **more)


@pytest.fixture(autouse=True)
def do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask each peer once, and stay for nobody: those who are there have been there all the time."""
    monkeypatch.setattr("inca.network.preflight.peer_checks._RETRY_S", 1e9)
    monkeypatch.setattr("inca.network.preflight.peer_checks._LINGER_S", 0.1)


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask those who are not there again and again, as it is done in earnest."""
    monkeypatch.setattr("inca.network.preflight.peer_checks._RETRY_S", 0.2)
    monkeypatch.setattr("inca.network.preflight.peer_checks._LINGER_S", 3.0)


@pytest.fixture
def four(tmp_path: Path) -> FourParties:
    return FourParties(tmp_path)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 3 * PATIENCE_S))


def check(diagnosis: Diagnosis, what: str) -> Check:
    return next(one for one in diagnosis.checks + diagnosis.peers if one.what == what)


def test_a_fine_peer_and_absent_ones(four: FourParties) -> None:
    async def work() -> None:
        async with four.peer(1):
            diagnosis = await four.examine()
        assert diagnosis.problems == () and diagnosis.party == "anna"
        bert, cleo, _ = diagnosis.peers
        assert (bert.level, bert.state, bert.fault) == ("fine", "fine", "")
        assert abs(bert.figures["offset"] or 0.0) < 0.1 and 0.0 < (bert.figures["round_trip"] or 0.0) < 0.5
        assert (cleo.level, cleo.state, cleo.fault) == ("note", "not there", THEIRS)
        assert f"127.0.0.1:{four.ports[2]}" in cleo.text
        assert check(diagnosis, "address").text == f"listens on 127.0.0.1:{four.ports[0]}"
        assert check(diagnosis, "period").level == "fine" and check(diagnosis, "start").text.startswith("in 1 h ")

    run(work())


@pytest.mark.usefixtures("wait")
@pytest.mark.parametrize("pause", [pytest.param(0.0, marks=pytest.mark.slow), 0.7])
def test_doctors_meet_even_if_one_comes_later(four: FourParties, pause: float) -> None:
    async def work() -> None:
        async def later(party: int) -> Diagnosis:
            await asyncio.sleep(pause)
            folder = four.folder / str(party)
            return await examine(four.roster, four.identities[party], folder, seconds=PATIENCE_S)

        diagnoses = await asyncio.gather(four.examine(), later(1), later(2), later(3))
        assert all(peer.state == "fine" for diagnosis in diagnoses for peer in diagnosis.peers)

    run(work())


def test_wrong_certificates(four: FourParties) -> None:
    """Another party of the roster at bert's address, and a stranger with a roster of its own at cleo's."""

    async def work() -> None:
        stranger = Identity.create("cleo")
        cards = [
            *four.roster.parties[:2],
            stranger.card(f"127.0.0.1:{four.ports[2]}"),
            four.roster.parties[3],
        ]
        theirs = replace(four.roster, parties=tuple(cards))
        async with four.peer(1, identity=four.identities[3], me=3), four.peer(2, theirs, stranger):
            diagnosis = await four.examine()
        for name in ("bert", "cleo"):
            peer = check(diagnosis, name)
            assert (peer.level, peer.state, peer.fault) == ("problem", "wrong certificate", THEIRS)
            assert "compare fingerprints" in peer.text
        assert [problem.what for problem in diagnosis.problems] == ["bert", "cleo"]

    run(work())


def test_another_roster_is_another_session_and_most_decide_whose_fault_it_is(four: FourParties) -> None:
    async def work() -> None:
        changed = replace(four.roster, terms=terms(period=11.0))
        async with four.peer(1, changed):
            diagnosis = await four.examine()
            assert (check(diagnosis, "bert").state, check(diagnosis, "bert").fault) == ("other session", EITHER)
            assert "compare the session's id" in check(diagnosis, "bert").text
            async with four.peer(2), four.peer(3):
                assert check(await four.examine(), "bert").fault == THEIRS
            async with four.peer(2, changed), four.peer(3):
                assert check(await four.examine(), "bert").fault == OURS

    run(work())


def test_a_peer_whose_roster_lacks_us_refuses(four: FourParties) -> None:
    async def work() -> None:
        async with four.peer(1, replace(four.roster, parties=four.roster.parties[1:]), me=0):
            diagnosis = await four.examine()
        assert (check(diagnosis, "bert").level, check(diagnosis, "bert").state) == ("problem", "refused")

    run(work())


def test_clocks(four: FourParties) -> None:
    async def work() -> None:
        async with four.peer(1, ahead=3.0):
            bert = check(await four.examine(), "bert")
            assert (bert.level, bert.state, bert.fault) == ("problem", "clock off", EITHER)
            assert "+3.0" in bert.text and abs((bert.figures["offset"] or 0.0) - 3.0) < 0.2
            async with four.peer(2), four.peer(3):
                assert check(await four.examine(), "bert").fault == THEIRS
            async with four.peer(2, ahead=3.1), four.peer(3):
                assert check(await four.examine(), "cleo").fault == OURS

    run(work())


def test_who_agrees_on_tls_and_then_says_nothing_timed_out(four: FourParties) -> None:
    held: list[asyncio.StreamWriter] = []

    async def keep(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)

    async def work() -> None:
        context = server_context(four.identities[1], four.roster)
        server = await asyncio.start_server(keep, "127.0.0.1", four.ports[1], ssl=context)
        diagnosis = await four.examine(seconds=0.8)
        server.close()
        for writer in held:
            writer.transport.abort()
        await asyncio.sleep(0.05)
        assert (check(diagnosis, "bert").level, check(diagnosis, "bert").state) == ("problem", "timed out")
        assert check(diagnosis, "bert").fault in (THEIRS, NETWORK)

    run(work())


@pytest.mark.parametrize("absence", ["closes", "resets", "says nothing"])
def test_a_peer_behind_a_tunnel_is_not_there_before_it_has_started(four: FourParties, absence: Absence) -> None:
    async def work() -> None:
        behind = free_ports(1)[0]
        async with relay(four.ports[1], behind, absence):
            diagnosis = await four.examine(seconds=0.8)
            bert, cleo, _ = diagnosis.peers
            assert (bert.level, bert.state, bert.fault) == ("note", "not there", THEIRS)
            assert "behind" in bert.text and f"127.0.0.1:{four.ports[1]}" in bert.text
            assert "behind" not in cleo.text and cleo.state == "not there"
            assert diagnosis.problems == ()
            four.ports[1] = behind
            async with four.peer(1):
                assert check(await four.examine(), "bert").state == "fine"

    run(work())


@pytest.mark.usefixtures("wait")
def test_a_peer_that_starts_behind_its_tunnel_meanwhile_is_seen(four: FourParties) -> None:
    async def work() -> None:
        behind = free_ports(1)[0]
        async with relay(four.ports[1], behind):
            doctor = asyncio.create_task(four.examine(seconds=PATIENCE_S))
            await asyncio.sleep(0.5)
            four.ports[1] = behind
            async with four.peer(1), four.peer(2), four.peer(3):
                assert check(await doctor, "bert").state == "fine"

    run(work())


def test_a_period_too_short_for_the_slowest_link_and_the_vector_is_refused(tmp_path: Path) -> None:
    """At 40 kB/s, shares of 160 kB take four seconds; the others' links are those of this machine."""
    period = 3.0
    four = FourParties(tmp_path, period=period, max_clock_skew=0.3, dimension=20_000, sigma_independent=1e5)

    async def work() -> None:
        async with four.peer(2), four.peer(3):
            async with four.peer(1):
                fine = check(await four.examine(), "period")
            behind = free_ports(1)[0]
            async with relay(four.ports[1], behind, rate=4e4):
                four.ports[1] = behind
                async with four.peer(1):
                    diagnosis = await four.examine(seconds=10.0)
        assert fine.level == "fine" and (fine.figures["shares"] or 9.0) < 3.0
        slow = check(diagnosis, "period")
        assert slow.level == "problem" and "MB/s to bert" in slow.text and "agree on" in slow.text
        assert 4e3 < (slow.figures["bytes_per_second"] or 0.0) < 4.8e4  # it sleeps longer than told, never shorter
        assert 3.0 < (slow.figures["shares"] or 0.0) < (slow.figures["needed"] or 0.0)
        # Final messages of the three others must arrive over that link, too, and have two and a half periods for it.
        assert "final messages of all take" in slow.text
        assert 9.0 < (slow.figures["deposits"] or 0.0) < 2.5 * (slow.figures["needed"] or 0.0)
        estimate = check(diagnosis, "estimate")
        assert (estimate.figures["seconds"] or 0.0) > (slow.figures["deposits"] or 0.0)
        assert "1 MB sent and as much received" in estimate.text and "without the links" not in estimate.text
        assert (slow.figures["suggested"] or 0.0) > period
        assert all(peer.level == "fine" for peer in diagnosis.peers)

    run(work())


@pytest.mark.usefixtures("wait")
def test_a_stranger_that_connects_is_told_of(four: FourParties) -> None:
    async def work() -> None:
        doctor = asyncio.create_task(four.examine(seconds=3.0))
        writer = None
        while writer is None:
            with suppress(ConnectionRefusedError):
                _, writer = await asyncio.open_connection("127.0.0.1", four.ports[0])
            await asyncio.sleep(0.01)
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        await writer.drain()
        diagnosis = await doctor
        writer.close()
        assert [peer.state for peer in diagnosis.peers] == ["not there"] * 3 + ["stranger"]
        assert "does not speak TLS" in diagnosis.peers[-1].text and not diagnosis.problems

    run(work())


def test_an_address_in_use_is_ours_to_mend(four: FourParties) -> None:
    async def work() -> None:
        async with four.peer(0), four.peer(1):
            diagnosis = await four.examine()
        assert check(diagnosis, "address").level == "problem" and diagnosis.peers == ()
        assert f"cannot listen on 127.0.0.1:{four.ports[0]}" in check(diagnosis, "address").text
        other = free_ports(1)[0]
        async with four.peer(1):
            diagnosis = await four.examine(access=NetworkAccess(listen=("127.0.0.1", other)))
        assert not diagnosis.problems and check(diagnosis, "bert").state == "fine"

    run(work())


def test_a_period_that_is_too_short(tmp_path: Path) -> None:
    four = FourParties(tmp_path, period=0.0003, max_clock_skew=0.0001, dimension=2000, sigma_independent=1e4)

    async def work() -> None:
        async with four.peer(1):
            period = check(await four.examine(), "period")
        assert period.level == "problem" and "agree on" in period.text
        assert (period.figures["suggested"] or 0.0) > (period.figures["needed"] or 0.0) > 0.0003

    run(work())


def test_the_journal_is_tried_where_it_will_be_and_nothing_is_left(four: FourParties) -> None:
    async def work() -> None:
        diagnosis = await four.examine()
        journal = check(diagnosis, "journal")
        assert journal.figures["commits"] == 200 and (journal.figures["commits_per_second"] or 0) > 1
        assert (journal.figures["slowest"] or 0) >= (journal.figures["median"] or 0) > 0
        assert stat.S_IMODE(four.state.stat().st_mode) == 0o700 and list(four.state.iterdir()) == []
        four.state.chmod(0o777)
        assert "must keep others from replacing what is in it, got 0777" in check(await four.examine(), "space").text

    run(work())


def test_too_little_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(folder: Path, session: object) -> None:
        raise InvalidInput(f"{folder} must have at least 2.0 MiB free for the session, got 0.1 MiB")

    monkeypatch.setattr("inca.network.preflight.doctor.check_disk_space", full)
    four = FourParties(tmp_path)

    async def work() -> None:
        assert [problem.what for problem in (await four.examine()).problems] == ["space"]

    run(work())


def test_too_little_memory(four: FourParties, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        for available, problems in ((10**8, ["memory"]), (10**12, [])):
            monkeypatch.setattr("inca.network.preflight.doctor.available_memory", partial(int, available))
            diagnosis = await four.examine()
            assert [problem.what for problem in diagnosis.problems] == problems
        assert "without the links" in check(diagnosis, "estimate").text

    assert 10**8 < (available_memory() or 0) < 2**50
    run(work())


BUSY: dict[str, tuple[Callable[[FourParties, Path], object], str]] = {
    "ended": (lambda four, folder: (folder / "ended.json").write_text("{}"), "has ended here before"),
    "in use": (
        lambda four, folder: Journal(folder / "journal.db", session=four.roster.session, party=0),
        "is in use by another process",
    ),
    "begun": (
        lambda four, folder: setattr(
            four,
            "roster",
            replace(four.roster, terms=msgspec.structs.replace(four.roster.terms, start=1e9)),
        ),
        "the session began",
    ),
}


@pytest.mark.parametrize("case", BUSY)
def test_peers_are_left_in_peace_when_a_session_is_on(case: str, four: FourParties) -> None:
    prepare, sentence = BUSY[case]
    folder = four.state / four.roster.session.hex()[:16]
    folder.mkdir(mode=0o700, parents=True)
    four.state.chmod(0o700)
    kept = prepare(four, folder)

    async def work() -> None:
        async with four.peer(1) as bert:
            diagnosis = await four.examine()
            assert [problem.what for problem in diagnosis.problems] == ["start"]
            assert sentence in diagnosis.problems[0].text
            assert diagnosis.peers == () and not bert.connected

    run(work())
    if isinstance(kept, Journal):
        kept.close()


@pytest.mark.parametrize("seed", [SEED, None])
def test_the_loss_is_tried_beforehand_with_the_seed_or_a_sample_of_one(four: FourParties, seed: str | None) -> None:
    async def work() -> None:
        for epsilon, level in ((50.0, "fine"), (0.001, "problem")):
            four.roster = replace(four.roster, terms=terms(seed=seed, epsilon=epsilon))
            loss = check(await four.examine(), "loss")
            assert loss.level == level and loss.figures["allowed"] == epsilon
            assert 0.001 < (loss.figures["epsilon"] or 0.0) < 50.0
            assert ("a sample" in loss.text) == (seed is None)

    run(work())


def test_a_roster_that_is_not_complete_and_an_identity_that_is_not_in_it(four: FourParties) -> None:
    async def work() -> None:
        four.roster = replace(four.roster, parties=four.roster.parties[1:3])
        diagnosis = await four.examine()
        assert [problem.what for problem in diagnosis.problems] == ["roster", "roster", "identity"]
        assert all(problem.fault == OURS for problem in diagnosis.problems) and not four.state.exists()

    run(work())


@pytest.mark.parametrize("cause", FailureCause)
def test_there_is_advice_for_every_failure(cause: FailureCause) -> None:
    advice = ADVICE[cause]
    assert advice.state and advice.fault in (OURS, THEIRS, NETWORK, EITHER) and advice.text
