"""The doctor where parties are reached through relays: real relays, real doctors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from helpers.pace import allowance
from helpers.rosters import terms
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.node.transport_setup import NetworkAccess
from inca.network.preflight.checks import NETWORK, OURS, Check
from inca.network.preflight.doctor import Diagnosis, examine
from inca.network.testing.local_cluster import free_ports
from inca.network.transport.relay.options import RelayLimits, RelayOptions
from inca.network.transport.relay.server import Relay

pytestmark = pytest.mark.real_time

NAMES = ("anna", "bert", "cleo", "dora")
PATIENCE_S = 6.0


class Hidden:
    """Four parties of which the first `direct` ones have a port of their own; all others are behind a relay."""

    def __init__(self, folder: Path, direct: int = 0) -> None:
        self.folder = folder
        self.identities = [Identity.create(name) for name in NAMES]
        self.port, *ports = free_ports(1 + direct)
        own = [[f"127.0.0.1:{port}"] for port in ports] + [[]] * (len(NAMES) - direct)
        cards = [party.card(*addresses) for party, addresses in zip(self.identities, own, strict=True)]
        self.relay_address = f"wss://127.0.0.1:{self.port}/inca"
        self.roster = Roster("trial", terms(), tuple(cards), (self.relay_address,))
        authority = trustme.CA()
        self.ca, self._certificate = folder / "authority.pem", folder / "relay.pem"
        authority.cert_pem.write_to_path(self.ca)
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(self._certificate)

    @asynccontextmanager
    async def relay(self, **more: Any) -> AsyncIterator[Relay]:
        limits = RelayLimits(max_pending_per_origin=256)
        place: dict[str, Any] = {"host": "127.0.0.1", "port": self.port, "certificate": self._certificate}
        relay = Relay(RelayOptions(**place, limits=limits, **more))
        await relay.start()
        try:
            yield relay
        finally:
            await relay.close()

    async def examine(self, party: int = 0, ca: bool = True, seconds: float = PATIENCE_S) -> Diagnosis:
        access = NetworkAccess(relay_ca=self.ca if ca else None)
        state = self.folder / f"state-{party}"
        return await examine(self.roster, self.identities[party], state, seconds=allowance() * seconds, access=access)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 20 * PATIENCE_S * allowance()))


def named(diagnosis: Diagnosis, what: str) -> Check:
    return next(one for one in diagnosis.checks + diagnosis.peers if one.what == what)


def test_doctors_behind_one_relay_meet_and_say_how(tmp_path: Path) -> None:
    hidden = Hidden(tmp_path, direct=1)

    async def work() -> None:
        async with hidden.relay(allow=frozenset(party.card().fingerprint for party in hidden.identities)):
            first, second, *_ = await asyncio.gather(*map(hidden.examine, range(len(NAMES))))
        assert not first.problems and not second.problems and first.apart == first.absent == ()
        assert named(first, "address").text.startswith("listens on 127.0.0.1:")
        assert named(second, "address").text == "connects outwards only"
        assert named(second, "relay").text == f"registered at {hidden.relay_address}"
        for check in second.peers[1:]:
            assert check.level == "fine" and check.text.startswith(f"through {hidden.relay_address}")
            assert "MB/s, enough for a period of 10 s" in check.text
        assert named(second, "anna").text.startswith("directly")

    run(work())


def test_who_is_not_registered_yet_is_not_there_and_nothing_is_in_the_way(tmp_path: Path) -> None:
    hidden = Hidden(tmp_path)

    async def work() -> None:
        async with hidden.relay():
            diagnosis = await hidden.examine(seconds=1.0)
        assert diagnosis.problems == () and diagnosis.absent == NAMES[1:]
        for check in diagnosis.peers:
            assert (check.level, check.state) == ("note", "not there")
            assert check.text == f"not registered at {hidden.relay_address} yet"

    run(work())


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, status: bytes) -> None:
    """Answer as a proxy does; with an empty status never."""
    if status:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 " + status + b"\r\n\r\n")
        await writer.drain()
        writer.close()


@asynccontextmanager
async def server(port: int, status: bytes) -> AsyncIterator[None]:
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await answer(reader, writer, status)

    listening = await asyncio.start_server(serve, "127.0.0.1", port)
    try:
        yield
    finally:
        listening.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0.05)


def assert_no_relay(diagnosis: Diagnosis, fault: str, *parts: str) -> None:
    relay = named(diagnosis, "relay")
    assert (relay.level, relay.state, relay.fault) == ("problem", "no relay", fault), relay
    for part in parts:
        assert part in relay.text
    for peer in diagnosis.peers:
        assert (peer.level, peer.state) == ("problem", "no relay"), peer
    assert diagnosis.apart == NAMES[1:]


def test_a_relay_that_is_not_running(tmp_path: Path) -> None:
    hidden = Hidden(tmp_path)

    async def work() -> None:
        diagnosis = await hidden.examine(seconds=1.0)
        assert_no_relay(diagnosis, NETWORK, hidden.relay_address, "nothing listens there", "whether the relay runs")

    run(work())


def test_a_relay_that_says_nothing(tmp_path: Path) -> None:
    hidden = Hidden(tmp_path)

    async def work() -> None:
        async with server(hidden.port, b""):
            diagnosis = await hidden.examine(seconds=1.0)
        assert_no_relay(diagnosis, NETWORK, f"{hidden.relay_address} did not answer within ")

    run(work())


def test_a_relay_whose_authority_is_unknown_here(tmp_path: Path) -> None:
    hidden = Hidden(tmp_path)

    async def work() -> None:
        async with hidden.relay():
            diagnosis = await hidden.examine(ca=False, seconds=1.0)
        assert_no_relay(diagnosis, OURS, "shows a wrong certificate", "--relay-ca FILE")

    run(work())


def test_a_relay_whose_allow_list_lacks_us(tmp_path: Path) -> None:
    hidden = Hidden(tmp_path)

    async def work() -> None:
        async with hidden.relay(allow=frozenset({hidden.identities[1].card().fingerprint})):
            diagnosis = await hidden.examine(seconds=1.0)
        relay = named(diagnosis, "relay")
        assert relay.level == "problem" and "does not have our key in its allow-list" in relay.text
        assert "ask whoever runs the relay" in relay.text

    run(work())


@pytest.mark.parametrize(
    ("status", "part"),
    [
        (b"403 Forbidden", "does not let us connect"),
        (b"407 Proxy Authentication Required", "wants a name and a password"),
        (None, "does not answer"),
    ],
)
def test_a_proxy_that_does_not_let_us_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: bytes | None, part: str
) -> None:
    hidden, proxy = Hidden(tmp_path), free_ports(1)[0]
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret@127.0.0.1:{proxy}")

    async def work() -> None:
        async with hidden.relay():
            if status is None:
                diagnosis = await hidden.examine(seconds=1.0)
            else:
                async with server(proxy, status):
                    diagnosis = await hidden.examine(seconds=1.0)
        assert_no_relay(diagnosis, OURS, f"the proxy 127.0.0.1:{proxy} {part}", "HTTPS_PROXY")
        assert all("secret" not in check.text for check in diagnosis.checks + diagnosis.peers)

    run(work())


def test_a_lost_relay_is_no_problem_for_who_is_reached_otherwise(tmp_path: Path) -> None:
    hidden = Hidden(tmp_path, direct=4)

    async def work() -> None:
        diagnosis = await hidden.examine(seconds=1.0)
        relay = named(diagnosis, "relay")
        assert (relay.level, relay.state) == ("note", "no relay") and not diagnosis.problems
        assert diagnosis.absent == NAMES[1:]

    run(work())


def test_a_file_of_authorities_that_is_none_is_refused(tmp_path: Path) -> None:
    hidden = Hidden(tmp_path)
    hidden.ca.write_text("nothing")

    async def work() -> None:
        diagnosis = await hidden.examine(seconds=1.0)
        assert "it holds no certificates in PEM" in named(diagnosis, "address").text and diagnosis.problems

    run(work())
