"""How much a session moves: the sizes, rates and times behind every limit on its traffic.

Each follows from the parties, dimension, rounds and period that were agreed, so that honest parties never meet a
limit, whether a share has 100 bytes or 80 MB, and a peer out of its mind does soon.
"""

from __future__ import annotations

from inca.network.payloads import LARGE_BYTES
from inca.network.protocol.agreement.public_randomness import SECRET_BYTES
from inca.network.protocol.session import SessionConfig

BATCH_BYTES = 2**20
"""Items travel together up to this size; a larger one travels alone."""
_SMALL_BYTES = 2**21  # of a message beside its payload: a full batch, and as much for proofs and signatures
_TRANSFER_BYTES = 64  # of one transfer in an account
_WORD_BYTES = 2**13  # of what a party says beside its payload: its digest, its shares for trustees, its votes
_BACKLOG_BYTES = 2**25  # of small messages that wait for a peer that reads slowly
_REQUEST_BYTES = 2**21  # asked of one peer at once, if that is more than two deposits
_SLOWEST_LINK = 1e6  # bytes a second, unless the period is too short for that: 8 Mbit/s


class Traffic:
    """What honest parties of a session send."""

    def __init__(self, session: SessionConfig) -> None:
        n, rounds, payload = session.parties, session.rounds, session.payload_bytes
        self.sealed_bytes = payload + SECRET_BYTES
        """Of a sealed final message: its numbers and the weight, and the secret for the beacon."""
        self.message_bytes = payload + _SMALL_BYTES + _TRANSFER_BYTES * rounds
        """Of the largest message: one payload, or the accounts and proofs of a batch."""
        self.backlog_bytes = _BACKLOG_BYTES + n * (_WORD_BYTES + min(payload, LARGE_BYTES))
        """Of small messages that may wait for one peer: what every party says, and what nobody has read yet."""
        self.all_payload_bytes = (rounds + n) * self.sealed_bytes + self.message_bytes
        """Of payloads that one party may have for another: its shares of all rounds, and everyone's deposit."""
        self.request_bytes = max(_REQUEST_BYTES, 2 * self.sealed_bytes)
        """To ask of one peer at once: two deposits, so that one is on its way while the other is taken."""
        self.answer_bytes = 2 * self.request_bytes
        """To send one peer at once that asks: two requests may cross, no more."""
        self.payload_seconds = min(session.period, payload / _SLOWEST_LINK)
        """For one payload on a link: at most a period, or nobody could take part in a round."""
