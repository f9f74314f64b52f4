"""A relay that flips, drops, repeats, delays, cuts and misroutes bytes changes nothing but time."""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Callable
from typing import Any

import pytest

from helpers.blind_relays import RelayNetwork, registered
from helpers.transports import RecordedEvents, run, until
from inca.network.transport.relay.link import WebSocketLink
from inca.network.transport.relay.server import Relay
from inca.network.transport.relay.server_link import ServerLink
from inca.network.transport.relay.switchboard import Switchboard
from inca.network.transport.transport import Transport

pytestmark = pytest.mark.real_time
FRAMES = 300
TRICKS = 25  # of the relay, at most


class EvilSwitchboard(Switchboard):
    """Does something to some of what it passes on."""

    trick: Callable[[EvilSwitchboard, ServerLink, bytes], None]

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.rng, self.tricks = random.Random(5), 0

    def pass_on(self, to: ServerLink, data: bytes | bytearray) -> None:
        if self.tricks < TRICKS and self.rng.random() < 0.2:
            self.tricks += 1
            type(self).trick(self, to, bytes(data))
        else:
            to.send_data(data)

    def flip(self, to: ServerLink, data: bytes) -> None:
        at = self.rng.randrange(max(1, len(data)))
        to.send_data(
            data[:at] + bytes(byte ^ 1 << self.rng.randrange(8) for byte in data[at : at + 1]) + data[at + 1 :]
        )

    def drop(self, to: ServerLink, data: bytes) -> None:
        pass

    def repeat(self, to: ServerLink, data: bytes) -> None:
        to.send_data(data)
        to.send_data(data)

    def replay(self, to: ServerLink, data: bytes) -> None:
        """Also what was said on other connections long ago."""
        self.heard = [*getattr(self, "heard", []), data][-50:]
        to.send_data(self.rng.choice(self.heard))

    def delay(self, to: ServerLink, data: bytes) -> None:
        """What follows comes first."""
        asyncio.get_running_loop().call_later(0.02, to.send_data, data)

    def cut(self, to: ServerLink, data: bytes) -> None:
        self.rng.choice((WebSocketLink.abort, WebSocketLink.abort, lambda link: link.close(1000, 1.0)))(to)

    def end(self, to: ServerLink, data: bytes) -> None:
        to.send_data(b"")

    def misroute(self, to: ServerLink, data: bytes) -> None:
        self.rng.choice(sorted(self.data, key=id)).send_data(data)

    def cross(self, to: ServerLink, data: bytes) -> None:
        """From now on, two calls have each other's ends."""
        ends = [link for link in self.data if link.partner is not None and link.partner.open]
        one, other = self.rng.choice(ends), self.rng.choice(ends)
        one.partner, other.partner = other.partner, one.partner

    def all(self, to: ServerLink, data: bytes) -> None:
        self.rng.choice(EVERY)(self, to, data)


EVERY = [
    getattr(EvilSwitchboard, name)
    for name in ("flip", "drop", "repeat", "replay", "delay", "cut", "end", "misroute", "cross")
]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> RelayNetwork:
    return RelayNetwork(tmp_path_factory.mktemp("certificates"))


def content(sender: int, to: int, number: int) -> bytes:
    rng = random.Random(f"{sender} {to} {number}")
    return struct.pack(">BBH", sender, to, number) + rng.randbytes(rng.choice((0, 50, 5000, 90_000)))


def numbers(log: RecordedEvents, sender: int, to: int) -> list[int]:
    """Return the numbers of the frames that came, each as it was sent."""
    came = []
    for peer, frame in log.frames:
        if peer == sender:
            number = struct.unpack_from(">H", frame, 2)[0]
            assert frame == content(sender, to, number)
            came.append(number)
    return came


@pytest.mark.parametrize(
    "trick", [pytest.param(one, id=one.__name__, marks=pytest.mark.slow) for one in EVERY] + [EvilSwitchboard.all]
)
def test_frames_come_as_they_were_sent_or_are_known_to_be_in_doubt(
    network: RelayNetwork, trick: Callable[[EvilSwitchboard, ServerLink, bytes], None]
) -> None:
    class Evil(EvilSwitchboard):
        pass

    Evil.trick = trick

    class EvilRelay(Relay):
        switchboard_type: type[Switchboard] = Evil

    impatient: dict[str, Any] = {
        "hello_timeout_s": 2.0,
        "handshake_timeout_s": 3.0,
        "idle_timeout_s": 4.0,
        "stall_timeout_s": 4.0,
    }

    async def main() -> None:
        async with (
            network.relay(0, 1, 2, kind=EvilRelay) as relay,
            network.node(0, **impatient) as (a, log_a),
            network.node(1, **impatient) as (b, log_b),
            network.node(2, **impatient) as (c, log_c),
        ):
            nodes: dict[int, tuple[Transport, RecordedEvents]] = {0: (a, log_a), 1: (b, log_b), 2: (c, log_c)}
            await registered(relay, 3)
            pairs = [(i, j) for i in nodes for j in nodes if i != j]
            for number in range(FRAMES):
                for i, j in pairs:
                    nodes[i][0].send(j, content(i, j, number), (j, number))
                await asyncio.sleep(0.002)
                if isinstance(relay.switchboard, EvilSwitchboard) and relay.switchboard.tricks >= TRICKS:
                    break
            assert isinstance(relay.switchboard, EvilSwitchboard) and relay.switchboard.tricks >= 5
            relay.switchboard.tricks, last = TRICKS, number  # it is honest from now on

            def settled(i: int, j: int) -> bool:
                came = set(numbers(nodes[j][1], i, j))
                log = nodes[i][1]
                told = {token for token in [*log.unsent_tokens, *log.doubtful_tokens] if isinstance(token, tuple)}
                return all(number in came or (j, number) in told for number in range(last + 1))

            await until(lambda: all(settled(i, j) for i, j in pairs))
            for i, j in pairs:
                came = numbers(nodes[j][1], i, j)
                assert len(came) == len(set(came)), "a frame came twice"
            for node, _ in nodes.values():
                blamed = [culprit for culprit in node._connections._violations._culprits if isinstance(culprit, int)]
                assert not blamed, "a party is blamed for what a relay does"
            for i, j in pairs:  # and then all is as it was
                while not any(number > last for number in numbers(nodes[j][1], i, j)):
                    nodes[i][0].send(j, content(i, j, last + 1))
                    await asyncio.sleep(0.1)

    run(main())
