"""What a session costs a party: bytes on its links, memory, disk and time: estimates, rather too high than too low.

Everything follows from the number of *vectors*, which have 8 bytes for each coordinate and for the weight. A party
sends one in a round, and its sealed final message to all others; it receives as many.

Example:
    >>> session = SessionConfig(
    ...     id=bytes(32), parties=12, rounds=3, schedule="circle", dimension=10**6, largest_value=2**34,
    ...     sigma_independent=2**30, sigma_cancelling=2**33, min_participants=9, start=0.0, period=10.0,
    ... )
    >>> session_bytes(session).sentence
    '113 MB sent and as much received; 384 MiB of memory, 253 MiB of disk'
    >>> machine = MachineSeconds(draw=0.03, take=0.04, write=0.03, unseal=0.04, verify=2e-4, assess=0.01)
    >>> seconds = session_seconds(session, machine, link=12.5e6, round_trip=0.02)
    >>> f"{seconds.round:.2f} {seconds.deposits:.2f} {seconds.total:.1f}"
    '0.80 7.88 16.6'
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from inca.network.protocol.session import SessionConfig

_BASE_BYTES = 200 * 2**20  # of a process without vectors: libraries and compiled code; measured
_WORKING_VECTORS = 12  # balance, value, a result and its interval; measured
_SAFETY_FACTOR = 1.5  # for further cohorts on the disk, and for all that times leave out
_CHECKS_PER_PARTY = 40  # signatures' worth of work on all small messages about one party; measured at 100 parties
_DELAYS_AT_THE_END = 13  # one after the other: for digests, two decisions, deposits and keys


@dataclass(frozen=True)
class SessionBytes:
    """What a party sends and receives if nothing is lost, and the memory and disk that it needs."""

    traffic: int
    """Sent, and received: the same."""
    memory: int
    disk: int

    @property
    def sentence(self) -> str:
        """What people are told of it."""
        memory, disk = (math.ceil(count / 2**20) for count in (self.memory, self.disk))
        sent = math.ceil(self.traffic / 1e6)
        return f"{sent:,} MB sent and as much received; {memory:,} MiB of memory, {disk:,} MiB of disk"


def session_bytes(session: SessionConfig) -> SessionBytes:
    """Return how many bytes a session takes."""
    n, rounds, vector = session.parties, session.rounds, session.payload_bytes
    kept = 4 + 2 * rounds + n  # the value, shares out and in, final messages of all, the result and its sum
    return SessionBytes(
        traffic=vector * (rounds + n - 1),
        # The masks of all rounds, and later the final messages of all, which arrive at once and then lie on the disk.
        memory=_BASE_BYTES + vector * (max(n, rounds) + _WORKING_VECTORS),
        disk=int(_SAFETY_FACTOR * vector * kept) + 2**20,
    )


@dataclass(frozen=True)
class MachineSeconds:
    """Seconds that a machine takes for the parts of a session's work, for one vector each unless they say otherwise."""

    draw: float  # of the discrete Gaussian
    take: float  # to encode, decode and hash it
    write: float  # durably
    unseal: float  # and check that it was dealt as it must be
    verify: float  # one signature
    assess: float  # the own loss, once


@dataclass(frozen=True)
class SessionSeconds:
    """How long the stages of a session take on a machine and its slowest link, if everyone is there."""

    drawing: float  # before the start
    sending: float  # the shares of a round: to send, take and write them
    round: float  # each, which may have to last longer
    deposits: float  # until the final messages of all are here and durable
    opening: float
    total: float  # from the start of round 1 to the result


def session_seconds(
    session: SessionConfig, machine: MachineSeconds, link: float, round_trip: float = 0.0
) -> SessionSeconds:
    """Return how long the stages take; `link` in bytes a second, of the slowest peer, as it receives from all."""
    n, vector = session.parties, session.payload_bytes
    both, trips = machine.take + machine.write, _DELAYS_AT_THE_END / 2 * round_trip
    sending = vector / link + 2 * both
    one_round = max(session.min_round_duration, sending + round_trip)
    deposits = (n - 1) * vector / link + n * both
    opening = n * machine.unseal + 2 * machine.write
    talking = machine.assess + machine.draw + _CHECKS_PER_PARTY * n * machine.verify + trips
    return SessionSeconds(
        drawing=(session.rounds + 1) * machine.draw,
        sending=sending,
        round=one_round,
        deposits=deposits,
        opening=opening,
        total=_SAFETY_FACTOR * (session.rounds * one_round + talking + deposits + opening),
    )
