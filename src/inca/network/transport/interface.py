"""What a transport needs, and what it tells whoever uses it."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inca._base.validation import integer, refuse
from inca.errors import InvalidInput
from inca.network.addresses import Address
from inca.network.transport.failures import Failure
from inca.network.transport.frames import Received
from inca.network.transport.limits import Limits
from inca.network.transport.relay.access import RelayAccess


@dataclass(frozen=True)
class TransportConfig:
    """What a transport needs to know.

    `addresses` are those of each party, in order of preference. Only a party with an address of its own listens; it is
    registered at each relay among its addresses, and `relay` says who it is there.
    """

    me: int
    addresses: Sequence[Sequence[Address]]
    session: bytes
    server: ssl.SSLContext
    client: ssl.SSLContext
    identify: Callable[[bytes], int | None]
    limits: Limits
    clock: Callable[[], float] = time.time
    relay: RelayAccess | None = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if len(self.session) != 32:
            refuse("session", self.session, "an id of 32 bytes")
        integer("me", self.me, min=0, max=len(self.addresses) - 1)
        if self.relay is None and any(address.relayed for party in self.addresses for address in party):
            raise InvalidInput("relay: parties are reached at relays, so it must say who we are there")
        if self.relay is not None and len(self.relay.names) != len(self.addresses):
            refuse("relay.names", len(self.relay.names), f"a name for each of the {len(self.addresses)} parties")

    def party(self, certificate: bytes | None) -> int | None:
        """Return whose certificate (DER) this is, None if it is nobody's."""
        party = None if certificate is None else self.identify(certificate)
        return None if party is None or not 0 <= party < len(self.addresses) else party


class TransportEvents:
    """Whoever uses a transport overrides what it wants to know; called in the event loop, so nothing here may block."""

    def received(self, peer: int, frame: Received) -> None:
        """Take a frame of `peer`, and with it its buffer."""

    def unsent(self, peer: int, token: object) -> None:
        """Learn that, for certain, no byte of the frame sent with this token ever left."""

    def in_doubt(self, peer: int, token: object) -> None:
        """Learn that the connection on which the frame with this token was written has ended: it may be lost."""

    def up(self, peer: int) -> None:
        """Learn that there is a connection to `peer`."""

    def lost(self, peer: int, failure: Failure) -> None:
        """Learn that the connection to `peer` has ended; it is dialled again when there is something to send."""

    def down(self, peer: int, failure: Failure) -> None:
        """Learn that `peer` cannot be reached."""

    def violated(self, peer: int | None, address: str, failure: Failure, violations: int) -> None:
        """Learn that somebody broke the rules: a peer, or, before it proved who it is, None; and how often so far."""

    def registered(self, relay: Address) -> None:
        """Learn that the others can reach us at this relay from now on."""

    def unregistered(self, relay: Address, failure: Failure) -> None:
        """Learn that the others cannot reach us at this relay: it is lost, or it or a proxy refuses; tried again."""

    def contested(self, relay: Address) -> None:
        """Learn that somebody else with our key wanted to register there, and was refused: a second process, a copy."""

    def log_event(self, event: str, **fields: object) -> None:
        """Log what else happens, never with contents of frames.

        Events: connected, throttled, refused (times in a second), accepting failed.
        """
