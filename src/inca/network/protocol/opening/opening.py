"""What a party deposits for a cohort and shows after commit; and how the deposits of all are opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from inca.network.lattice import Numbers
from inca.network.payloads import contents
from inca.network.protocol.agreement.public_randomness import SECRET_BYTES
from inca.network.protocol.context import PartyContext
from inca.network.protocol.messages import Item, Proposal
from inca.network.protocol.opening.cohort_keys import shared_secrets
from inca.network.protocol.opening.deposits import Dealing, Deposit
from inca.network.protocol.signed_items import Digest, Key, Refusal, read


@dataclass(frozen=True)
class OpenedDeposits:
    """What the keys of enough trustees have opened: the sum of the messages of those who have not lied.

    It is modulo 2^64, as shares cancel whatever they are; the secrets for the beacon are at the messages' ends.
    """

    total: Numbers = field(repr=False)
    secrets: dict[int, bytes] = field(repr=False)
    liars: frozenset[int]  # whose deposits nobody can have dealt
    keys: list[Item]


class Opening:
    """A cohort's trustees, and this party's part in it; `number` tells how many cohorts were decided before."""

    def __init__(self, context: PartyContext, cohort: Proposal, number: int, digests: Mapping[int, Digest]) -> None:
        self._context, self._cohort, self.number = context, cohort, number
        trustees = context.trustees(cohort.parties)
        self.threshold = trustees.threshold
        self.publics = {trustee: digests[trustee].keys[number] for trustee in trustees.members}

    def _dealing(self, dealer: int) -> Dealing:
        session, hash_ = self._context.session.id, self._cohort.hash
        return Dealing(session, self.number, hash_, dealer, self.publics, self.threshold)

    @property
    def word(self) -> Item | None:
        """What this party has said of the cohort, if anything: its deposit, or its refusal."""
        own = self._context.ledger.own_items
        return own.get(("deposit", self.number)) or own.get(("refusal", self.number))

    def deposit(self, message: bytes) -> None:
        """Deposit the final message; it cannot be withdrawn."""
        secrets = self._context.ledger.secrets
        assert secrets is not None and secrets.cohort == self.number
        deposit, sealed = self._dealing(self._context.me).deal(secrets.dealing, message)
        self._context.publish_once("deposit", deposit, sealed=sealed, cohort=self.number)

    def refuse(self, reason: str) -> None:
        """Say that this party will not be in the cohort, and why."""
        self._context.publish_once("refusal", Refusal(self.number, self._cohort.hash, reason), cohort=self.number)

    def show_key(self) -> None:
        """Show this party's key, if it is a trustee; only ever once commit is decided, and all deposits are held."""
        context, secrets = self._context, self._context.ledger.secrets
        assert context.ledger.committed
        mine = secrets is not None and secrets.cohort == self.number and context.me in self.publics
        if mine and context.me not in context.signed_items.by_kind["key"]:
            assert secrets is not None
            context.publish("key", Key(self.number, secrets.private_key))

    @property
    def keys_lacking(self) -> int:
        """How many more trustees must show their keys."""
        return max(0, self.threshold - len(self._context.signed_items.by_kind["key"]))

    @property
    def missing_keys(self) -> set[int]:
        """The trustees that may still show their keys, while that matters."""
        return self.publics.keys() - set(self._context.signed_items.by_kind["key"]) if self.keys_lacking else set()

    def open(self, committed: Proposal) -> OpenedDeposits | None:
        """Open the deposits that commit names, all of which are held; None while there are too few keys."""
        items = self._context.signed_items
        if self.keys_lacking:
            return None
        shown = dict(sorted(items.by_kind["key"].items())[: self.threshold])
        deposits = [(item, read(item, Deposit)) for item in items.with_contents("deposit", committed.contents)]
        ephemeral = [deposit.ephemeral for _, deposit in deposits]
        common = {trustee: shared_secrets(read(item, Key).private, ephemeral) for trustee, item in shown.items()}
        total, secrets = np.zeros(self._context.session.dimension + 1, dtype=np.int64), dict[int, bytes]()
        liars = set[int]()
        for number, (item, deposit) in enumerate(deposits):
            dealing = self._dealing(item.party)
            sealed = contents(item.sealed)
            message = dealing.opened(deposit, sealed, {trustee: keys[number] for trustee, keys in common.items()})
            if message is None:
                liars.add(item.party)
            else:
                total += np.frombuffer(message, dtype="<i8", count=total.size)
                secrets[item.party] = message[-SECRET_BYTES:]
        return OpenedDeposits(total, secrets, frozenset(liars), list(shown.values()))
