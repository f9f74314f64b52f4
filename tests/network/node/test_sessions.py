"""Sessions of twelve parties without faults, and beside peers that are silent, forged or of yesterday."""

from __future__ import annotations

import asyncio
import json
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
    Scene,
    agreed,
    dial,
    hold,
    leave_after,
    load,
    nodes,
    ready,
)
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.membership.tls import client_context, server_context
from inca.network.node import node as node_module
from inca.network.node.node import Node, limits_for
from inca.network.node.report import write_report
from inca.network.node.session_setup import Setting
from inca.network.protocol.messages import Ask, Items, Offer, decode, encode
from inca.protocol.transcript import digest, read_execution


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    load()


# --- nothing goes wrong ---------------------------------------------------------------------------------------------


class Recording(Node):
    """A node that keeps all frames it hears."""

    def received(self, peer: int, frame: bytes) -> None:
        self.__dict__.setdefault("frames", []).append((peer, frame))
        super().received(peer, frame)


class Quiet:
    """A session without faults, and the frames of it."""

    def __init__(self, folder: Path) -> None:
        self.scene = Scene(folder)
        parties = {i: self.scene.node(i, Recording) for i in range(N)}
        self.ended = asyncio.run(hold(self.scene, {i: node.run() for i, node in parties.items()}))
        self.heard: dict[int, list[tuple[int, bytes]]] = {i: vars(node)["frames"] for i, node in parties.items()}


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Quiet:
    return Quiet(tmp_path_factory.mktemp("quiet"))


def test_without_faults_everyone_has_the_exact_result(quiet: Quiet) -> None:
    scene = quiet.scene
    result = agreed(scene, quiet.ended)
    assert result.finals == frozenset(range(N))
    assert not result.realised.doubts
    assert result.weight == N * 2**40
    reports = {i: write_report(scene.place(i), scene.setting, i, ended) for i, ended in quiet.ended.items()}
    one = reports[0]
    assert all(
        each["estimate"] == one["estimate"] and each["execution"] == one["execution"] for each in reports.values()
    )
    assert one["present"] == one["weight"] == N
    # Six standard errors: by chance about once in 10^8 coordinates.
    difference = np.abs(np.array(one["estimate"]) - scene.values.mean(axis=0))
    assert (difference < 6 * one["standard_error"]).all()
    transcript = read_execution(scene.place(3) / "execution.json")
    assert f"sha256:{digest(transcript)}" == one["execution"]
    certificate = json.loads((scene.place(3) / "certificate.json").read_text())
    assert certificate["epsilon"][3] == pytest.approx(reports[3]["epsilon"])


# --- peers that do not take part ------------------------------------------------------------------------------------


async def mute(scene: Scene, i: int, *, tls: bool) -> None:
    """Listen at the address of a party, take connections, agree on TLS if told so, and say nothing."""
    held: list[asyncio.StreamWriter] = []

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)
        with suppress(OSError):
            while await reader.read(1 << 16):
                pass

    context = server_context(scene.identities[i], scene.setting.roster) if tls else None
    server = await asyncio.start_server(keep, *scene.addresses[i], ssl=context)
    try:
        await asyncio.Event().wait()
    finally:
        server.close()
        for writer in held:
            writer.transport.abort()
        await asyncio.sleep(0.05)


def impatient(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let all nodes wait less for others: what they do then is the same."""
    monkeypatch.setattr(
        node_module, "limits_for", lambda setting: replace(limits_for(setting), handshake=seconds, hello=seconds)
    )


@pytest.mark.parametrize("tls", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_silent_peer_is_named_and_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: bool) -> None:
    impatient(monkeypatch, 1.5)
    scene = Scene(tmp_path, rounds=6)
    result = agreed(scene, asyncio.run(hold(scene, nodes(scene, range(LAST)), mute(scene, LAST, tls=tls))))
    assert result.finals == frozenset(range(LAST))
    what = "said no hello" if tls else "did not agree on TLS"
    assert all(scene.told(i, "down", LAST, what) for i in range(LAST))


@pytest.mark.slow
@pytest.mark.parametrize("tls", [False, True])
def test_silent_peer_with_the_usual_patience(tmp_path: Path, tls: bool) -> None:
    scene = Scene(tmp_path, period=1.5, lead=5.0)
    result = agreed(scene, asyncio.run(hold(scene, nodes(scene, range(LAST)), mute(scene, LAST, tls=tls))))
    assert result.finals == frozenset(range(LAST))
    assert any(scene.told(i, "down", LAST, "timed out") for i in range(LAST))


async def stranger(scene: Scene, i: int) -> None:
    """Take the place of a party with another certificate: listen at its address, and dial everyone."""
    roster = scene.setting.roster
    identity = Identity.create(scene.identities[i].name)
    # Its own roster has it in the party's place, else it could not begin.
    cards = list(roster.parties)
    cards[i] = identity.card(cards[i].host, cards[i].port)
    forged = Roster(roster.name, roster.terms, tuple(cards))

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    context = client_context(identity, forged)
    server = await asyncio.start_server(listen, *scene.addresses[i], ssl=server_context(identity, forged))
    try:
        await ready(scene)
        while True:
            for peer in range(N):
                if peer != i:
                    with suppress(OSError, asyncio.IncompleteReadError):
                        reader, writer = await dial(scene, peer, context)
                        with suppress(OSError):
                            await reader.read(1)
                        writer.transport.abort()
            await asyncio.sleep(0.1)
    finally:
        server.close()
        await asyncio.sleep(0.05)


@pytest.mark.slow
def test_stranger_in_the_place_of_a_party_is_refused(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    result = agreed(scene, asyncio.run(hold(scene, nodes(scene, range(LAST)), stranger(scene, LAST))))
    assert result.finals == frozenset(range(LAST))
    for i in range(LAST):
        assert scene.told(i, "down", LAST, "wrong certificate")
        assert scene.told(i, "fault", OUTSIDE)


# --- yesterday's messages -------------------------------------------------------------------------------------------


async def of_another_session(rogue: Rogue, me: int) -> None:
    """Say hello to everyone, again and again, in a session that is over."""
    async with rogue.open() as transport:
        while True:
            for peer in range(N):
                if peer != me:
                    transport.send(peer, encode(Ask()))
            await asyncio.sleep(0.2)


async def repeat_all(rogue: Rogue, me: int, frames: dict[int, list[bytes]]) -> None:
    """Say in this session what was heard in an earlier one."""
    async with rogue.open() as transport:
        while True:
            for peer, old in frames.items():
                if peer != me:
                    for frame in old:
                        transport.send(peer, frame)
            await asyncio.sleep(0.5)


def again(folder: Path, before: Scene, seed: str, **sizes: Any) -> Scene:
    """Return a session of the same parties on other terms: their certificates are still good."""
    scene = Scene(folder, seed=seed, **sizes)
    scene.identities[:] = before.identities
    cards = [identity.card(*place) for identity, place in zip(scene.identities, scene.addresses, strict=True)]
    scene.setting = Setting(replace(scene.setting.roster, parties=tuple(cards)))
    return scene


@pytest.mark.parametrize("seconds", [0.7, pytest.param(1000.0, marks=pytest.mark.slow)])
def test_replayed_session_is_refused(tmp_path: Path, quiet: Quiet, seconds: float) -> None:
    seed, replayer = "cd" * 16, LAST - 1
    scene = again(tmp_path, quiet.scene, seed)
    new = scene.setting.session
    receivers = new.topology(bytes.fromhex(seed)).receivers

    def stale(peer: int, frame: bytes) -> bool:
        # A party may offer anything that the schedule has: an offer that happens to fit would be its own word today.
        match decode(frame):
            case Offer(round=t):
                return receivers[t][replayer][0] != peer
            case message:
                return isinstance(message, Items)

    frames = {peer: [frame for _, frame in heard if stale(peer, frame)] for peer, heard in quiet.heard.items()}
    assert sum(len(each) for each in frames.values()) > 100
    late, parrot = Rogue(scene, LAST, session=quiet.scene.setting.session.id), Rogue(scene, replayer)
    troubles = of_another_session(late, LAST), leave_after(seconds, scene, repeat_all(parrot, replayer, frames))
    result = agreed(scene, asyncio.run(hold(scene, nodes(scene, range(replayer)), *troubles)))
    assert result.finals == frozenset(range(replayer))
    execution = result.realised.execution
    assert not any(execution.presence.row(t)[[replayer, LAST]].any() for t in range(1, new.rounds + 1))
    assert any("another session" in reason for reason in late.downs)
    for i in range(replayer):
        assert scene.told(i, "fault", LAST, "another session")
        assert scene.told(i, "nonsense", replayer)
