"""How a party's session ends: its digest, the execution that came about, its final message, the result.

A party publishes its final message only after it has worked out its own loss on the execution that the digests tell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inca.network.protocol.context import Desk
from inca.network.protocol.ledger import Sealed
from inca.network.protocol.messages import Account, Item, Numbers, members, pack, unpack
from inca.network.protocol.realized_execution import Realised, check_account, realise
from inca.network.protocol.signed_items import Digest, Final, Vote, read


@dataclass(frozen=True, eq=False)
class Result:
    """What a session has come to: sums of the final messages and of their weights, and the execution behind them."""

    total: Numbers
    weight: int
    finals: frozenset[int]
    realised: Realised


class Ending:
    """What a party does after the last round."""

    def __init__(self, desk: Desk) -> None:
        """Begin with nothing said."""
        self._desk = desk
        self.result: Result | None = None
        self._cohort: set[int] = set()
        self._seen = 0  # digests of which the cohort is made
        self.finished = False
        self._withheld = ""
        self.reason = ""
        """Why there is no result, or why the own final message was withheld."""

    @property
    def present(self) -> bool:
        """Whether this party was there in the last round, so that its final message counts."""
        return self._desk.session.rounds in self._desk.ledger.account.present

    @property
    def cohort(self) -> set[int]:
        """Whoever was there in the last round, as far as digests tell."""
        if self._seen != (count := len(self._desk.gossip.items["digest"])):
            last, digests = self._desk.session.rounds, self._desk.gossip.bodies("digest", Digest)
            self._cohort = {party for party, digest in digests.items() if last in digest.account.present}
            self._seen = count
        return self._cohort

    def seal(self, heard: dict[int, Account]) -> None:
        """Make the balance final, and the digest with it: both once.

        Whoever came late and was there in no round has nothing to tell, and may have told it in an earlier life, with a
        journal that is lost: it makes no digest.
        """
        ledger = self._desk.ledger
        if not ledger.sealed:
            self._desk.record(Sealed())
        silent = ledger.opened is not None and ledger.opened.late and ledger.round == 0
        if "digest" not in ledger.signed and not silent:
            self._desk.publish("digest", Digest(ledger.account, sorted(heard.items())), once=True)

    def assess(self) -> bool:
        """Ask for the own loss to be worked out; return whether there is anything to wait for."""
        if "final" in self._desk.ledger.signed or not self.present:
            return False
        digests = self._desk.gossip.bodies("digest", Digest)
        self._desk.out.assess = realise(self._desk.session, self._desk.topology, digests)
        return True

    def conclude(self, refusal: str) -> None:
        """Publish the final message, or withhold it for a reason."""
        least = self._desk.session.least_cohort
        if not refusal and (count := len(self.cohort)) < least:
            refusal = f"only {count} parties are there at the end, but at least {least} were agreed"
        if refusal:
            self.reason = self._withheld = refusal
            self._desk.note("withheld", reason=refusal)
        self._desk.publish("final", Final(b"" if refusal else pack(self._desk.ledger.balance), refusal), once=True)

    def recover(self) -> None:
        """Remember what was said in an earlier life."""
        for item in self._desk.ledger.signed.values():
            self._desk.gossip.add(item)
            if item.kind == "final":
                self.reason = self._withheld = read(item, Final).withheld

    def check(self, item: Item) -> None:
        """Refuse a digest whose account of its own party cannot be."""
        if item.kind == "digest" and item.party not in self._desk.gossip.items["digest"]:
            check_account(self._desk.session, self._desk.topology, item.party, read(item, Digest).account)

    def decided(self) -> bool:
        """Make the result once it is decided and all its parts are there; return whether that has just happened."""
        gossip, session = self._desk.gossip, self._desk.session
        if self.finished or not gossip.items["decision"]:
            return False
        chosen = next(iter(gossip.bodies("decision", Vote).values()))
        digests, finals = members(chosen.digests, session.parties), members(chosen.finals, session.parties)
        if not (digests <= set(gossip.items["digest"]) and finals <= set(gossip.items["final"])):
            return False
        self.finished = True
        said = gossip.bodies("final", Final)
        given = {party: said[party].payload for party in sorted(finals & digests) if said[party].payload}
        if len(given) >= session.least_cohort:
            total = np.sum([unpack(payload, session.dimension + 1) for payload in given.values()], axis=0)
            accounts = gossip.bodies("digest", Digest)
            realised = realise(session, self._desk.topology, {p: accounts[p] for p in sorted(digests)}, set(given))
            self.result = Result(total[:-1], int(total[-1]), frozenset(given), realised)
            self.reason = self._withheld
        elif not self.reason:
            reasons = sorted({said[party].withheld for party in finals if said[party].withheld})
            self.reason = "; ".join(
                [f"only {len(given)} final messages, but at least {session.least_cohort} were agreed", *reasons[:1]]
            )
        return True
