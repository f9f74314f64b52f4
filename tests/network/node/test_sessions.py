"""Sessions of twelve parties without faults, and beside peers that are silent, forged or of yesterday."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.session_processes import (
    LAST,
    OUTSIDE,
    N,
    Rogue,
    TwelveParties,
    common_result,
    dial,
    hold,
    leave_after,
    nodes,
    ready,
)
from inca.documents.certificate import CertificateDocument
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.membership.tls import client_context, server_context
from inca.network.node import node as node_module
from inca.network.node.node import Node
from inca.network.node.report import write_report
from inca.network.node.transport_setup import limits_for
from inca.network.node.warm_up import warm_up
from inca.network.protocol.messages import Ask, Items, Offer, decode, encode
from inca.network.protocol.session import SessionConfig
from inca.network.transport.failures import FailureCause
from inca.network.transport.frames import Received
from inca.network.transport.limits import Limits
from inca.protocol.execution_files import digest, read_execution

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    warm_up()


# --- nothing goes wrong ---------------------------------------------------------------------------------------------


class Recording(Node):
    """A node that keeps all frames it hears."""

    def received(self, peer: int, frame: Received) -> None:
        self.__dict__.setdefault("frames", []).append((peer, frame))
        super().received(peer, frame)


class Quiet:
    """A session without faults, and the frames of it."""

    def __init__(self, folder: Path) -> None:
        self.parties = TwelveParties(folder, rounds=6)
        running = {i: self.parties.node(i, Recording) for i in range(N)}
        self.ends = asyncio.run(hold(self.parties, {i: node.run() for i, node in running.items()}))
        self.frames: dict[int, list[tuple[int, bytes]]] = {i: vars(node)["frames"] for i, node in running.items()}
        self.result = common_result(self.parties, self.ends)
        assert self.result.weight == N * 2**40  # nobody has missed a round


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Quiet:
    return Quiet(tmp_path_factory.mktemp("quiet"))


def test_without_faults_everyone_has_the_exact_result(quiet: Quiet) -> None:
    parties, result = quiet.parties, quiet.result
    assert result.realized.cohort == frozenset(range(N))
    assert result.realized.cohort == frozenset(range(N)) and not result.realized.contradictions
    reports = {i: write_report(parties.session_folder(i), parties.setup, i, end) for i, end in quiet.ends.items()}
    first = reports[0]
    for other in reports.values():
        assert other.estimate == first.estimate and other.execution == first.execution
    assert first.present == first.weight == N
    # Six standard errors: exceeded by chance about once in 10^8 coordinates.
    assert first.standard_error is not None
    difference = np.abs(np.array(first.estimate) - parties.values.mean(axis=0))
    assert first.standard_error is not None and (difference < 6 * first.standard_error).all()
    transcript = read_execution(parties.session_folder(3) / "execution.json")
    assert f"sha256:{digest(transcript)}" == first.execution
    certificate = CertificateDocument.read(parties.session_folder(3) / "certificate.json")
    certified, bound = certificate.epsilon[3], reports[3].epsilon
    assert certified is not None and bound is not None and 0.0 < certified <= bound


# --- peers that do not take part ------------------------------------------------------------------------------------


async def mute(parties: TwelveParties, i: int, *, tls: bool) -> None:
    """Listen at the address of a party, take connections, agree on TLS if told so, and say nothing."""
    held: list[asyncio.StreamWriter] = []

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)
        with suppress(OSError):
            while await reader.read(1 << 16):
                pass

    context = server_context(parties.identities[i], parties.setup.roster) if tls else None
    server = await asyncio.start_server(keep, *parties.addresses[i], ssl=context)
    try:
        await asyncio.Event().wait()
    finally:
        server.close()
        for writer in held:
            writer.transport.abort()
        await asyncio.sleep(0.05)


def impatient(monkeypatch: pytest.MonkeyPatch, **timeouts: Any) -> None:
    """Let all nodes wait less for others: what they do then is the same."""

    def limits(session: SessionConfig) -> Limits:
        return replace(limits_for(session), **timeouts)

    monkeypatch.setattr(node_module, "limits_for", limits)


@pytest.mark.parametrize("tls", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_silent_peer_is_named_and_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: bool) -> None:
    parties = TwelveParties(tmp_path, rounds=6)
    impatient(monkeypatch, **{"hello_timeout_s" if tls else "handshake_timeout_s": 2.0 * parties.slowness})
    result = common_result(
        parties, asyncio.run(hold(parties, nodes(parties, range(LAST)), mute(parties, LAST, tls=tls)))
    )
    assert result.realized.cohort == frozenset(range(LAST))
    what = "said no hello" if tls else "did not agree on TLS"
    assert all(parties.logged(i, "down", LAST, what) for i in range(LAST))


@pytest.mark.slow
@pytest.mark.parametrize("tls", [False, True])
def test_silent_peer_with_the_usual_patience(tmp_path: Path, tls: bool) -> None:
    parties = TwelveParties(tmp_path, period=1.5, lead=5.0)
    result = common_result(
        parties, asyncio.run(hold(parties, nodes(parties, range(LAST)), mute(parties, LAST, tls=tls)))
    )
    assert result.realized.cohort == frozenset(range(LAST))
    cause = FailureCause.UNRESPONSIVE if tls else FailureCause.NO_ANSWER
    assert any(parties.logged(i, "down", LAST, cause) for i in range(LAST))


async def stranger(parties: TwelveParties, i: int) -> None:
    """Take the place of a party with another certificate: listen at its address, and dial everyone."""
    roster = parties.setup.roster
    identity = Identity.create(parties.identities[i].name)
    # Its own roster has it in the party's place, else it could not begin.
    cards = list(roster.parties)
    cards[i] = identity.card(*cards[i].addresses)
    forged = Roster(roster.name, roster.terms, tuple(cards))

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    context = client_context(identity, forged)
    server = await asyncio.start_server(listen, *parties.addresses[i], ssl=server_context(identity, forged))
    try:
        await ready(parties)
        while True:
            for peer in range(N):
                if peer != i:
                    with suppress(OSError, asyncio.IncompleteReadError):
                        reader, writer = await dial(parties, peer, context)
                        with suppress(OSError):
                            await reader.read(1)
                        writer.transport.abort()
            await asyncio.sleep(0.1)
    finally:
        server.close()
        await asyncio.sleep(0.05)


@pytest.mark.slow
def test_stranger_in_the_place_of_a_party_is_refused(tmp_path: Path) -> None:
    parties = TwelveParties(tmp_path)
    result = common_result(parties, asyncio.run(hold(parties, nodes(parties, range(LAST)), stranger(parties, LAST))))
    assert result.realized.cohort == frozenset(range(LAST))
    for i in range(LAST):
        assert parties.logged(i, "down", LAST, FailureCause.WRONG_CERTIFICATE)
        assert parties.logged(i, "violation", OUTSIDE)


# --- yesterday's messages -------------------------------------------------------------------------------------------


async def of_another_session(rogue: Rogue, me: int) -> None:
    """Say hello to everyone, again and again, in a session that is over."""
    async with rogue.open() as transport:
        while True:
            for peer in range(N):
                if peer != me:
                    transport.send(peer, encode(Ask()))
            await asyncio.sleep(0.6)


async def repeat_all(rogue: Rogue, me: int, frames: dict[int, list[bytes]]) -> None:
    """Say in this session what was heard in an earlier one."""
    async with rogue.open() as transport:
        while True:
            for peer, old in frames.items():
                if peer != me:
                    for frame in old:
                        transport.send(peer, frame)
            await asyncio.sleep(0.5)


@pytest.mark.parametrize("periods", [0.7, pytest.param(1000.0, marks=pytest.mark.slow)])
def test_replayed_session_is_refused(tmp_path: Path, quiet: Quiet, periods: float) -> None:
    seed, replayer = "cd" * 16, LAST - 1
    parties = TwelveParties(
        tmp_path, rounds=6, seed=seed, identities=quiet.parties.identities
    )  # certificates are still good
    new = parties.setup.session
    receivers = new.topology(bytes.fromhex(seed)).receivers

    def stale(peer: int, frame: bytes) -> bool:
        # A party may offer anything that the schedule has: an offer that happens to fit would be its own word today.
        match decode(frame):
            case Offer(round=t):
                return receivers[t][replayer] != peer
            case message:
                return isinstance(message, Items)

    frames = {peer: [frame for _, frame in old if stale(peer, frame)] for peer, old in quiet.frames.items()}
    assert sum(map(len, frames.values())) > 100
    late, parrot = Rogue(parties, LAST, session=quiet.parties.setup.session.id), Rogue(parties, replayer)
    troubles = of_another_session(late, LAST), leave_after(periods, parties, repeat_all(parrot, replayer, frames))
    result = common_result(parties, asyncio.run(hold(parties, nodes(parties, range(replayer)), *troubles)))
    assert result.realized.cohort == frozenset(range(replayer))
    execution = result.realized.execution
    assert not any(execution.presence.row(t)[[replayer, LAST]].any() for t in range(1, new.rounds + 1))
    assert any(failure.cause is FailureCause.OTHER_SESSION for failure in late.downs)
    for i in range(replayer):
        assert parties.logged(i, "violation", LAST, FailureCause.OTHER_SESSION)
        assert parties.logged(i, "invalid message", replayer)
