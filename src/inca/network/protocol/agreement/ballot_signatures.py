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
    """Signs as one party, and checks what all have signed.

    Votes and acceptances are about a proposal, by its hash; promises, about the ballot in which their party was locked
    last (0: in none).
    """

    def __init__(self, session: SessionConfig, me: int, sign: Sign, verify: Verify) -> None:
        self.session, self.me = session, me
        self._sign, self._verify = sign, verify
        self._valid: set[tuple[int, bytes, bytes]] = set()  # what was verified lately: party, text, signature

    def sign(self, word: Word, instance: int, ballot: Ballot, about: bytes | Ballot) -> bytes:
        """Sign a word."""
        return self._sign(self._text(word, instance, ballot, about))

    def signed(
        self, party: int, signature: bytes, word: Word, instance: int, ballot: Ballot, about: bytes | Ballot
    ) -> bool:
        """Return whether a party has signed a word."""
        return self._is_valid(party, self._text(word, instance, ballot, about), signature)

    def check_promise(self, party: int, message: Promise) -> None:
        """Refuse a promise that its party has not signed, or a lock in it that is none or not an earlier one."""
        locked = message.lock.ballot if message.lock else 0
        if not self.signed(party, message.signature, "promise", message.instance, message.ballot, locked):
            raise InvalidPeerMessage("a promise that its party has not signed")
        if message.lock is not None:
            if locked >= message.ballot:
                raise InvalidPeerMessage(f"a lock must be of an earlier ballot than {message.ballot}, got {locked}")
            self.check_lock(message.instance, message.lock)

    def check_lock(self, instance: int, lock: Lock) -> None:
        """Refuse a lock for which no quorum has voted."""
        text = self._text("vote", instance, lock.ballot, lock.proposal.hash)
        self._check_quorum("a lock must have the votes", [(party, text, vote) for party, vote in lock.votes])

    def check_decision(self, instance: int, decision: Decision) -> None:
        """Refuse a decision that no quorum has accepted."""
        text = self._text("accept", instance, decision.ballot, decision.proposal.hash)
        signed = [(party, text, signature) for party, signature in decision.signatures]
        self._check_quorum("a decision must have the signatures", signed)

    def check_justified(self, message: Propose) -> bool:
        """Refuse a proposal unless a quorum promised it, and it is the latest lock that any of them knew."""
        instance, ballot = message.instance, message.ballot
        promises = [(p, self._text("promise", instance, ballot, locked), s) for p, locked, s in message.promises]
        self._check_quorum("a proposal must show the promises", promises)
        latest = max(locked for _, locked, _ in message.promises)
        if latest:
            self.check_lock(instance, Lock(latest, message.proposal, message.votes))
        return latest > 0

    def _check_quorum(self, what: str, signed: list[tuple[int, bytes, bytes]]) -> None:
        parties = {party for party, _, _ in signed}
        enough = self.session.quorum <= len(parties) == len(signed)
        if not enough or not all(self._is_valid(*entry) for entry in signed):
            raise InvalidPeerMessage(f"{what} of at least {self.session.quorum} parties")

    def _is_valid(self, party: int, text: bytes, signature: bytes) -> bool:
        """Verify a signature, once: many promises show the same lock, with the same votes."""
        if (known := (party, text, signature)) in self._valid:
            return True
        if not (0 <= party < self.session.parties and self._verify(party, text, signature)):
            return False
        if len(self._valid) >= _MAX_KNOWN_PER_PARTY * self.session.parties:
            self._valid.clear()
        self._valid.add(known)
        return True

    def _text(self, word: Word, instance: int, ballot: Ballot, about: bytes | Ballot) -> bytes:
        subject = about if isinstance(about, bytes) else about.to_bytes(8, "little")
        numbers = instance.to_bytes(4, "little") + ballot.to_bytes(8, "little")
        return b"inca-" + word.encode() + b"/2" + self.session.id + numbers + subject
