"""The transport of a session: whom it trusts and what it allows follow from the roster."""

from __future__ import annotations

from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.membership.tls import client_context, server_context
from inca.network.node.session_clock import Clock, session_clock
from inca.network.protocol.session import SessionConfig
from inca.network.transport.interface import TransportConfig, TransportEvents
from inca.network.transport.limits import Limits
from inca.network.transport.transport import Transport

_ITEMS_BYTES = 2**21  # a message holds signed items up to a mebibyte, or a single one of any size
_ACCOUNT_BYTES = 64  # of one transfer in an account
# Times that follow from the period, as (periods, seconds at most): rounds of hours are no reason to wait for strangers.
_HANDSHAKE = (0.5, 60.0)  # for TLS, and again for hellos: a peer counts as gone only after a period
_STALL = (1.0, 120.0)
_IDLE = (4.0, 600.0)  # as nobody need have anything to say in one


def transport_for(
    roster: Roster,
    identity: Identity,
    limits: Limits,
    events: TransportEvents,
    *,
    session: bytes | None = None,
    clock: Clock | None = None,
) -> Transport:
    """Return a transport to all parties of a roster, which trusts exactly their certificates."""
    server, client = server_context(identity, roster), client_context(identity, roster)
    me = roster.index(identity.certificate)
    assert me is not None  # or there would be no contexts
    config = TransportConfig(
        me=me,
        addresses=[(card.host, card.port) for card in roster.parties],
        session=session or roster.session,
        server=server,
        client=client,
        identify=roster.index,
        limits=limits,
        clock=clock or session_clock(),
    )
    return Transport(config, events)


def limits_for(session: SessionConfig) -> Limits:
    """Return limits that a session of this size keeps easily, and a peer out of its mind does not.

    Parties that agree on long rounds have slow machines or links, or many on one: a handshake may take longer there.
    And all parties may connect to one at the same time, from one address even.
    """
    usual, n = Limits(), session.parties
    payload = 8 * (session.dimension + 1)
    frame = 2 * payload + _ITEMS_BYTES + _ACCOUNT_BYTES * session.rounds * session.receivers
    return Limits(
        max_frame_bytes=frame,
        max_queue_bytes=16 * frame,  # honest parties ask for a little at a time
        handshake_timeout_s=max(usual.handshake_timeout_s, _seconds(session, *_HANDSHAKE)),
        hello_timeout_s=max(usual.hello_timeout_s, _seconds(session, *_HANDSHAKE)),
        stall_timeout_s=max(usual.stall_timeout_s, _seconds(session, *_STALL)),
        idle_timeout_s=max(usual.idle_timeout_s, _seconds(session, *_IDLE)),
        max_pending=max(usual.max_pending, 2 * n),
        max_pending_per_address=max(usual.max_pending_per_address, n),
    )


def _seconds(session: SessionConfig, periods: float, most: float) -> float:
    return min(periods * session.period, most)
