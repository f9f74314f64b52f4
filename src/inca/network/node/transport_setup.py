"""The transport of a session: whom it trusts and what it allows follow from the roster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from inca.errors import InvalidInput
from inca.network.addresses import Address
from inca.network.keys import raw_key
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.membership.tls import client_context, server_context
from inca.network.node.session_clock import Clock, session_clock
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.traffic import Traffic
from inca.network.transport.interface import TransportConfig, TransportEvents
from inca.network.transport.limits import Limits
from inca.network.transport.relay.access import RelayAccess
from inca.network.transport.transport import Transport

# Times that follow from the period, as (periods, seconds at most): rounds of hours are no reason to wait for strangers.
_HANDSHAKE = (0.5, 60.0)  # for TLS, and again for hellos: a peer counts as gone only after a period
_STALL = (1.0, 120.0)
_IDLE = (4.0, 600.0)  # as nobody need have anything to say in one


@dataclass(frozen=True, kw_only=True)
class NetworkAccess:
    """How this machine takes part in the network, which is no concern of the other parties.

    Attributes:
        listen: Host and port to listen at, if not those of the roster: behind a tunnel, or a router that forwards.
        relay_ca: A file of certificates (PEM) of authorities that may vouch for relays, besides those of this machine.

    Example:
        >>> NetworkAccess(listen=("127.0.0.1", 7001)).listen
        ('127.0.0.1', 7001)
    """

    listen: tuple[str, int] | None = None
    relay_ca: Path | None = None


def transport_for(
    roster: Roster,
    identity: Identity,
    limits: Limits,
    events: TransportEvents,
    access: NetworkAccess,
    *,
    session: bytes | None = None,
    clock: Clock | None = None,
) -> Transport:
    """Return a transport to all parties of a roster, which trusts exactly their certificates."""
    server, client = server_context(identity, roster), client_context(identity, roster)
    addresses = [roster.addresses_of(party) for party in range(len(roster.parties))]
    relay = None
    if any(address.relayed for party in addresses for address in party):
        key, names = raw_key(identity.key.public_key()), [card.fingerprint for card in roster.parties]
        relay = RelayAccess(key=key, sign=identity.sign, names=names, ca=access.relay_ca)
    config = TransportConfig(
        me=roster.party_of(identity),
        addresses=addresses,
        session=session or roster.session,
        server=server,
        client=client,
        identify=roster.index,
        limits=limits,
        clock=clock or session_clock(),
        relay=relay,
    )
    return Transport(config, events)


async def start_transport(transport: Transport, own: Sequence[Address], access: NetworkAccess) -> str:
    """Listen where the party should, if it has an address of its own, and register at its relays; say where."""
    direct = [address for address in own if not address.relayed]
    if access.listen is not None and not direct:
        raise InvalidInput(
            f"--listen {':'.join(map(str, access.listen))}: nobody would connect there, as this party has no address "
            "of its own in the roster; leave the option out"
        )
    host, port = access.listen or ((direct[0].host, direct[0].port) if direct else (None, None))
    try:
        await transport.start(host, port)
    except OSError as error:
        raise InvalidInput(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    return f"listens on {host}:{port}" if direct else "connects outwards only"


def limits_for(session: SessionConfig) -> Limits:
    """Return limits that a session of this size keeps easily, and a peer out of its mind does not.

    Parties that agree on long rounds have slow machines or links, or many on one: a handshake may take longer there.
    And all parties may connect to one at the same time, from one address even.
    """
    usual, n, traffic = Limits(), session.parties, Traffic(session)
    handshake_s = max(usual.handshake_timeout_s, _seconds(session, *_HANDSHAKE))
    return Limits(
        max_frame_bytes=traffic.message_bytes,
        max_queue_bytes=traffic.backlog_bytes,
        max_queue_shared_bytes=traffic.all_payload_bytes,
        handshake_timeout_s=handshake_s,
        hello_timeout_s=handshake_s,
        ping_timeout_s=handshake_s + 2 * traffic.payload_seconds,  # one may be in the way there, and one back
        stall_timeout_s=max(usual.stall_timeout_s, _seconds(session, *_STALL)),
        idle_timeout_s=max(usual.idle_timeout_s, _seconds(session, *_IDLE)),
        bytes_per_second=max(usual.bytes_per_second, traffic.all_payload_bytes / session.period),
        burst_bytes=max(usual.burst_bytes, traffic.all_payload_bytes),  # an honest peer is never held back
        max_pending=max(usual.max_pending, 2 * n),
        max_pending_per_address=max(usual.max_pending_per_address, n),
    )


def _seconds(session: SessionConfig, periods: float, most: float) -> float:
    return min(periods * session.period, most)
