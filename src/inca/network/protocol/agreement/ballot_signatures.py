"""What parties sign in a consensus: that they have promised, voted, accepted; and the quorums that follow.

Every word is bound to the session, to the number of the decision and to the ballot, so that it proves nothing
elsewhere. A quorum of votes for a proposal in a ballot is unique: two quorums have two parties in common
(`SessionConfig.quorum`), one of which is honest if no more than one lies, and an honest party votes once in a ballot.
"""

from __future__ import annotations

from typing import Literal

from inca.errors import InvalidPeerMessage
from inca.network.protocol.messages import Ballot, Decision, Lock, Promise, Propose
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import Sign, Verify

Word = Literal["promise", "vote", "accept"]
_MAX_KNOWN_PER_PARTY = 8  # signatures of each party that are remembered


class BallotSignatures:
    """Signs as one party, and checks what all have signed."""

    def __init__(self, session: SessionConfig, me: int, sign: Sign, verify: Verify) -> None:
        self.session, self.me = session, me
        self._sign, self._verify = sign, verify
        self._valid: set[tuple[int, bytes, bytes]] = set()  # what was verified lately: party, text, signature

    def promise(self, instance: int, ballot: Ballot, locked: Ballot) -> bytes:
        """Sign a promise, and in which ballot this party was locked last (0: in none)."""
        return self._sign(self._text("promise", instance, ballot, locked.to_bytes(8, "little")))

    def vote(self, instance: int, ballot: Ballot, proposal: bytes) -> bytes:
        """Sign a vote for a proposal, known by its hash."""
        return self._sign(self._text("vote", instance, ballot, proposal))

    def acceptance(self, instance: int, ballot: Ballot, proposal: bytes) -> bytes:
        """Sign that this party has accepted a proposal, known by its hash."""
        return self._sign(self._text("accept", instance, ballot, proposal))

    def voted(self, party: int, instance: int, ballot: Ballot, proposal: bytes, signature: bytes) -> bool:
        """Return whether a party has signed that vote."""
        return self._signed(party, self._text("vote", instance, ballot, proposal), signature)

    def accepted(self, party: int, instance: int, ballot: Ballot, proposal: bytes, signature: bytes) -> bool:
        """Return whether a party has signed that acceptance."""
        return self._signed(party, self._text("accept", instance, ballot, proposal), signature)

    def check_promise(self, party: int, message: Promise) -> None:
        """Refuse a promise that its party has not signed, or a lock in it that is none or not an earlier one."""
        locked = message.lock.ballot if message.lock else 0
        text = self._text("promise", message.instance, message.ballot, locked.to_bytes(8, "little"))
        if not self._signed(party, text, message.signature):
            raise InvalidPeerMessage("a promise that its party has not signed")
        if message.lock is not None:
            if locked >= message.ballot:
                raise InvalidPeerMessage(f"a lock must be of an earlier ballot than {message.ballot}, got {locked}")
            self.check_lock(message.instance, message.lock)

    def check_lock(self, instance: int, lock: Lock) -> None:
        """Refuse a lock for which no quorum has voted."""
        self._check_quorum("vote", "a lock must have the votes", instance, lock.ballot, lock.proposal.hash, lock.votes)

    def check_decision(self, instance: int, decision: Decision) -> None:
        """Refuse a decision that no quorum has accepted."""
        what = "a decision must have the signatures"
        self._check_quorum("accept", what, instance, decision.ballot, decision.proposal.hash, decision.signatures)

    def check_justified(self, message: Propose) -> bool:
        """Refuse a proposal unless a quorum promised it, and it is the latest lock that any of them knew."""
        instance, ballot = message.instance, message.ballot
        parties = {party for party, _, _ in message.promises}
        enough = self.session.quorum <= len(parties) == len(message.promises)
        if not enough or not all(
            self._signed(party, self._text("promise", instance, ballot, locked.to_bytes(8, "little")), signature)
            for party, locked, signature in message.promises
        ):
            raise InvalidPeerMessage(f"a proposal must show the promises of at least {self.session.quorum} parties")
        latest = max(locked for _, locked, _ in message.promises)
        if latest:
            self.check_lock(instance, Lock(latest, message.proposal, message.votes))
        return latest > 0

    def _check_quorum(
        self,
        word: Word,
        what: str,
        instance: int,
        ballot: Ballot,
        proposal: bytes,
        signatures: list[tuple[int, bytes]],
    ) -> None:
        text, parties = self._text(word, instance, ballot, proposal), {party for party, _ in signatures}
        enough = self.session.quorum <= len(parties) == len(signatures)
        if not enough or not all(self._signed(party, text, signature) for party, signature in signatures):
            raise InvalidPeerMessage(f"{what} of at least {self.session.quorum} parties")

    def _signed(self, party: int, text: bytes, signature: bytes) -> bool:
        """Verify a signature, once: many promises show the same lock, with the same votes."""
        if (known := (party, text, signature)) in self._valid:
            return True
        if not (0 <= party < self.session.parties and self._verify(party, text, signature)):
            return False
        if len(self._valid) >= _MAX_KNOWN_PER_PARTY * self.session.parties:
            self._valid.clear()
        self._valid.add(known)
        return True

    def _text(self, word: Word, instance: int, ballot: Ballot, about: bytes) -> bytes:
        numbers = instance.to_bytes(4, "little") + ballot.to_bytes(8, "little")
        return b"inca-" + word.encode() + b"/2" + self.session.id + numbers + about
