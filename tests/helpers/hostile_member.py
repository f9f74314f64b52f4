"""A member of a session that lies: contradictory, random and forged messages of every type, at their limits."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, TypeVar

import msgspec
import numpy as np

from helpers.ledger_sums import Violation
from helpers.network_faults import Faults
from helpers.simulated_network import SimulatedNetwork, plain_party
from inca.network.protocol.agreement.ballot_signatures import BallotSignatures
from inca.network.protocol.context import Effects
from inca.network.protocol.ledger import Ledger
from inca.network.protocol.messages import (
    Accept,
    Account,
    Ack,
    Ask,
    Decision,
    Decisions,
    Fetch,
    Goodbye,
    Have,
    Item,
    ItemProof,
    Items,
    Lock,
    Message,
    Nudge,
    OfferProof,
    Prepare,
    Promise,
    Proposal,
    Propose,
    Seen,
    Skipped,
    Step,
    Voided,
    Vote,
    Want,
    Yes,
    pack,
)
from inca.network.protocol.offer_signatures import OfferSignatures
from inca.network.protocol.opening.cohort_keys import COHORTS, CohortSecrets, clamped
from inca.network.protocol.opening.deposits import Deposit
from inca.network.protocol.party import Party
from inca.network.protocol.records import Record
from inca.network.protocol.session import WEIGHT, SessionConfig
from inca.network.protocol.signed_items import KINDS, Digest, Key, Kind, Refusal, Sign, SignedItems, Verify, read

LIMITS = (0, 1, 2, 3, 7, 2**31, 2**32 - 1)
NUMBERS = (0, 1, -1, WEIGHT, -WEIGHT, 2**61, 2**62 - 1, -(2**62) + 1)
Heard = TypeVar("Heard", Prepare, Propose, Accept)
TEXTS = ("", "too much", 200 * "x", 201 * "x", "\x1b[2J", "\n", "\u202e", 5000 * "y")


def foreign_items(session: SessionConfig, me: int, sign: Sign, verify: Verify) -> SignedItems:
    """Something that signs items as a party does, whatever its ledger says."""
    return SignedItems(session, me, Ledger(session, me), sign, verify)


class HostileParty(Party):
    """Follows the protocol as far as that helps it, and says something else besides, or instead."""

    def __init__(self, session: SessionConfig, me: int, sign: Sign, verify: Verify, rng: random.Random) -> None:
        super().__init__(session, me, sign=sign, verify=verify, rng=rng)
        self._liar, self._signer = random.Random(rng.random()), foreign_items(session, me, sign, verify)
        self._ballots = BallotSignatures(session, me, sign, verify)
        self._offers = OfferSignatures(session, me, sign, verify)
        self._zeal = self._liar.choice([0.2, 0.6, 1.0])
        self._two_faced = self._liar.random() < 0.5
        self._heard: list[Message] = []
        self._signed: list[tuple[int, Promise | Vote | Yes]] = []
        self._dealer = self._liar.choice(["plain", "false", "two-faced"])
        self._kept_secrets: CohortSecrets | None = None
        self._now = 0.0
        self.told: list[Message] = []
        self._lies_left = 1000  # answers to lies would be lied about without end
        lies: list[Callable[[int], Message]] = [
            self._offer,
            self._answer,
            self._have,
            self._fetch,
            self._items,
            self._items,
            self._words,
            self._words,
            self._key,
            self._prepare,
            self._promise,
            self._propose,
            self._propose,
            self._vote,
            self._accept,
            self._yes,
            self._decisions,
            self._seen,
        ]
        self._junk = self._liar.sample(lies, self._liar.choice([3, 6, len(lies)]))

    def receive(self, now: float, peer: int, message: Message) -> Effects:
        self._heard, self._now = [*self._heard[-20:], message], now
        if isinstance(message, Promise | Vote | Yes):
            self._signed = [*self._signed[-20:], (peer, message)]
        return self._lie(super().receive(now, peer, message), extra=self._liar.random() < self._zeal)

    def tick(self, now: float) -> Effects:
        self._now = now
        return self._lie(super().tick(now), extra=True)

    def unsent(self, now: float, message: Message) -> Effects:
        return Effects()  # it may never have made that offer

    def in_doubt(self, now: float, message: Message) -> Effects:
        return Effects()

    def _leave(self, now: float, reason: str) -> None:
        """Stay, whatever it has signed."""

    def _lie(self, effects: Effects, *, extra: bool) -> Effects:
        rng, sends = self._liar, list[tuple[int, Message]]()
        self._kept_secrets = self._kept_secrets or self.ledger.secrets  # it erases nothing
        for peer, meant in effects.sends:
            choice, message = rng.random(), meant
            if self._dealer != "plain" and isinstance(meant, Items):
                message = Items([self._dealt(item) for item in meant.items])
            sends += [] if choice < 0.1 else [(peer, message)]
            if choice > 0.8:
                sends.append((peer, self._mutated(message)))
        lying = extra and self._lies_left > 0 and self.ledger.topology is not None
        for _ in range(rng.randint(0, 3) if lying else 0):
            self._lies_left -= 1
            peer = rng.choice(sorted(self.context.others))
            junk = rng.choice(self._junk)(peer)
            others = self.context.others if rng.random() < 0.3 else {peer}
            sends += [(other, junk) for other in sorted(others)]
        effects.sends = sends
        self.told += [message for _, message in sends]
        return effects

    def _mutated(self, message: Message) -> Message:
        """Change one field of a message to something else that can be sent."""
        rng = self._liar
        name = rng.choice(message.__struct_fields__ or ("",))
        value: Any = getattr(message, name, None)
        match value:
            case bool():
                changed: Any = not value
            case int():
                changed = rng.choice([value + 1, max(0, value - 1), *LIMITS])
            case bytes():
                changed = rng.choice([b"", value[:-1], value[::-1], bytes(len(value)), value + b"x"])
            case list():
                changed = rng.choice([[], value[:-1], value[::-1], 30 * value[:3]])
            case Proposal():
                changed = self._proposal()
            case _:
                return message
        return msgspec.structs.replace(message, **{name: changed})

    # --- what it makes up -----------------------------------------------------------------------------------------

    def _offer(self, peer: int) -> Message:
        rng, session, topology = self._liar, self.session, self.context.topology
        mine = [t for t in range(1, session.rounds + 1) if topology.has(t, self.me, peer)]
        to = rng.choice([peer, peer, peer, self.me])  # mostly as it should be
        return self._offers.offer(rng.choice(mine or [1]), to, self._payload())

    def _payload(self) -> bytes:
        weight = self._liar.choice([0, 1, -1, WEIGHT // 3, self.session.parties * WEIGHT, -3 * WEIGHT, 2**62 - 1])
        numbers = [self._liar.choice(NUMBERS) for _ in range(self.session.dimension)]
        return pack(np.array([*numbers, weight], dtype=np.int64))

    def _answer(self, peer: int) -> Message:
        rng, t = self._liar, self._liar.randint(0, self.session.rounds + 1)
        kinds: tuple[Message, ...] = (
            Ack(t),
            Voided(t),
            Nudge(t),
            Skipped(t),
            Goodbye(),
            Ask(),
            Voided(LIMITS[-1]),
        )
        return rng.choice(kinds)

    def _bits(self) -> dict[str, bytes]:
        size = -(-self.session.parties // 8)
        everyone = ((1 << self.session.parties) - 1).to_bytes(size, "little")
        return {kind: self._liar.choice([everyone, everyone, bytes(size), b"\xff" * 9]) for kind in (*KINDS, "gift")}

    def _have(self, peer: int) -> Message:
        rng = self._liar
        decided = rng.choice([len(self.ledger.decided), *LIMITS])
        choices: list[Message] = [Have(self._bits(), decided, rng.random() < 0.5), Want(self._bits(), decided)]
        return rng.choice(choices)

    def _fetch(self, peer: int) -> Message:
        kind = self._liar.choice([*KINDS, "gift"])
        held = self.signed_items.by_kind.get(kind, {})
        contents = [(party, item.hash) for party, item in held.items()]
        return Fetch(kind, self._liar.choice([40 * contents, contents, [(99, b""), (0, bytes(32))]]))

    def _digest(self) -> Item:
        rng, account = self._liar, self.ledger.account
        genuine = self.ledger.own_items.get(("digest", None))
        if not self._two_faced and genuine is not None:
            return genuine
        fates = [rng.randint(0, 3) for _ in account.fates]
        credited = [t for t in account.credited if rng.random() < 0.7]
        keys = self._own_keys
        keys = rng.choice([keys, keys, keys[::-1], keys[1:], [bytes(32), *keys[1:]], [rng.randbytes(32) for _ in keys]])
        return self._signer.sign("digest", Digest(Account(account.present, fates, credited), rng.randbytes(32), keys))

    @cached_property
    def _own_keys(self) -> list[bytes]:
        return (self._kept_secrets or CohortSecrets(bytes(32), 0)).public_keys(COHORTS)

    def _cohort_now(self) -> tuple[int, bytes]:
        """The number and the hash of the cohort that words are about, or of none."""
        rng, cohort = self._liar, self.ledger.cohort
        now = (max(0, self.ledger.cohorts - 1), bytes(32) if cohort is None else cohort.hash)
        return rng.choice([now, now, now, (now[0] + 1, now[1]), (rng.choice(LIMITS), rng.randbytes(32))])

    def _deposit(self) -> Item:
        """A deposit that anyone could have dealt, or one with something wrong."""
        rng, opening, size = self._liar, self.finalization._opening, self.signed_items.sealed_bytes
        message = self._payload() + rng.randbytes(32)
        if opening is None or rng.random() < 0.1:
            public = self._own_keys[0]
            shares = rng.randbytes(33 * rng.choice([self.session.parties, self.signed_items.trustees, 0]))
            return self._signer.sign(
                "deposit", Deposit(*self._cohort_now(), rng.randbytes(32), public, shares), message
            )
        deposit, sealed = opening._dealing(self.me).deal(rng.randbytes(32), message)
        garbage = rng.randbytes(len(deposit.shares))
        wrong: dict[str, Any] = rng.choice(
            [
                {},
                {},
                {},
                {"shares": garbage},
                {"shares": deposit.shares[:-33] + garbage[:33]},
                {"shares": garbage[:-1]},
                {"ephemeral": bytes(32)},
                {"ephemeral": garbage[:31] + b"\x01"},
                {"sealed": garbage[:32]},
                {"cohort": deposit.cohort + 1},
                {"hash": garbage[:32]},
            ]
        )
        sealed = rng.choice([sealed, sealed, sealed, b"", rng.randbytes(size), sealed + b"x"])
        return self._signer.sign("deposit", msgspec.structs.replace(deposit, **wrong), sealed)

    def _dealt(self, item: Item) -> Item:
        """What it deposits in place of its own deposit: nothing that can be opened; or to everyone something else."""
        if (item.kind, item.party) != ("deposit", self.me):
            return item
        if self._dealer == "two-faced":
            return self._deposit()
        deposit = read(item, Deposit)
        return self._signer.sign("deposit", msgspec.structs.replace(deposit, shares=deposit.shares[::-1]), item.sealed)

    def _words(self, peer: int) -> Message:
        """Deposits and refusals, also both."""
        refusal = self._signer.sign("refusal", Refusal(*self._cohort_now(), self._liar.choice(TEXTS)))
        return Items(
            self._liar.choice([[self._deposit()], [refusal], [self._deposit(), refusal], [self._deposit()] * 2])
        )

    def _key(self, peer: int) -> Message:
        """A key of its own, mostly before commit, or something like one; or that of another trustee."""
        rng, secrets = self._liar, self._kept_secrets or CohortSecrets(bytes(32), 0)
        number = self._cohort_now()[0]
        own = secrets.advanced(min(number, COHORTS)).private_key
        private = rng.choice(
            [own, own, rng.randbytes(32), clamped(rng.randbytes(32)), bytes([own[0] | 1, *own[1:]]), bytes(32), b""]
        )
        item = self._signer.sign("key", Key(number, private))
        others = rng.choice([item, item, msgspec.structs.replace(item, party=peer)])
        return Items([others, *rng.choice([[], list(self.signed_items.by_kind["key"].values())])])

    def _items(self, peer: int) -> Message:
        rng, signer = self._liar, self._signer
        kind: Kind = rng.choice(list(KINDS))
        other = rng.choice([item for items in self.signed_items.by_kind.values() for item in items.values()] or [None])
        made_up = [
            self._digest(),
            self._digest(),
            self._deposit(),
            signer.sign("refusal", Refusal(*self._cohort_now(), rng.choice(["", "too much"]))),
            signer.sign("done", b""),
            signer.sign(kind, rng.randbytes(32)),
            Item(kind, rng.choice([*range(self.session.parties), 99]), rng.randbytes(8), rng.randbytes(16)),
            Item(kind, rng.randrange(self.session.parties), bytes(2**21), rng.randbytes(16)),
            *([] if other is None else [msgspec.structs.replace(other, body=other.body + b"x")]),
            *([] if other is None else [msgspec.structs.replace(other, sealed=rng.randbytes(len(other.sealed)))]),
        ]
        return Items(rng.sample(made_up, rng.randint(1, 4)))

    def _proposal(self) -> Proposal:
        rng, cohort = self._liar, self.ledger.cohort
        step: Step = rng.choice(["cohort", "commit"])
        items = self.signed_items.by_kind["deposit" if step == "commit" else "digest"]
        contents = sorted((party, item.hash) for party, item in items.items())
        if step == "cohort" and cohort is not None and rng.random() < 0.7:
            contents = list(cohort.contents)
        match rng.random():
            case chance if chance < 0.4:
                contents = [entry for entry in contents if rng.random() < 0.8]
            case chance if chance < 0.5:
                contents = [(party, rng.randbytes(32)) for party, _ in contents]
            case chance if chance < 0.7:
                own = self._digest() if step == "cohort" else self._deposit()
                contents = sorted({**dict(contents), self.me: own.hash}.items())
            case chance if chance < 0.75:
                contents = 30 * contents
        return Proposal(step, contents)

    def _instance(self) -> int:
        return self._liar.choice([*3 * [len(self.ledger.decided)], *LIMITS[:4]])

    def _ballot(self) -> int:
        """A ballot of its own: the lowest, that of its last turn, or one that comes before its turn."""
        n, consensus = self.session.parties, self.consensus
        turn = consensus._turn(self._now) + self._liar.choice([0, 0, 1, 2, 2, 3, 10, 999, 10**6, 2**40])
        place = consensus.order.index(self.me)
        return self._liar.choice([n + place, turn - (turn - place) % n, turn - (turn - place) % n])

    def _prepare(self, peer: int) -> Message:
        return Prepare(self._instance(), self._ballot())

    def _asked(self, default: Heard) -> Heard:
        """What it was asked last, of one kind, or something that nobody has asked."""
        heard = [message for message in self._heard if isinstance(message, type(default))]
        return self._liar.choice(heard) if heard else default

    def _made_up_lock(self, ballot: int) -> Lock:
        rng, proposal, instance = self._liar, self._proposal(), self._instance()
        own = (self.me, self._ballots.sign("vote", instance, ballot, proposal.hash))
        made_up = Lock(ballot, proposal, rng.choice([[], [own], self.session.quorum * [own], self._spoken(own)]))
        heard = [message.lock for message in self._heard if isinstance(message, Accept)]
        return rng.choice([made_up, *heard])

    def _spoken(self, own: tuple[int, bytes]) -> list[tuple[int, bytes]]:
        """Signatures of others, of whatever they have signed, and an own one."""
        known = [(peer, message.signature) for peer, message in self._signed]
        return [own, *self._liar.sample(known, min(len(known), self.session.quorum))]

    def _promise(self, peer: int) -> Message:
        asked = self._asked(Prepare(0, 7))
        locked = self._liar.choice([0, 0, max(0, asked.ballot - 1), asked.ballot, 2**61])
        lock = self._made_up_lock(locked) if locked else None
        said = self._liar.choice([locked, lock.ballot if lock else 0])
        return Promise(
            asked.instance, asked.ballot, lock, self._ballots.sign("promise", asked.instance, asked.ballot, said)
        )

    def _propose(self, peer: int) -> Message:
        rng, instance, ballot = self._liar, self._instance(), self._ballot()
        own = [
            (self.me, locked, self._ballots.sign("promise", instance, ballot, locked))
            for locked in (0, max(0, ballot - 1))
        ]
        promises = [(p, 0, m.signature) for p, m in self._signed if isinstance(m, Promise) and m.ballot == ballot]
        shown = rng.choice([[], own, own[:1] + promises, self.session.quorum * own[:1]])
        return Propose(
            instance, ballot, self._proposal(), shown, rng.choice([[], self._made_up_lock(max(0, ballot - 1)).votes])
        )

    def _vote(self, peer: int) -> Message:
        asked = self._asked(Propose(0, 7, self._proposal(), [], []))
        signature = self._ballots.sign("vote", asked.instance, asked.ballot, asked.proposal.hash)
        return Vote(asked.instance, asked.ballot, self._liar.choice([signature, b"", signature[::-1]]))

    def _accept(self, peer: int) -> Message:
        return Accept(self._instance(), self._made_up_lock(self._ballot()))

    def _yes(self, peer: int) -> Message:
        asked = self._asked(Accept(0, Lock(7, self._proposal(), [])))
        ballot, hash_ = asked.lock.ballot, asked.lock.proposal.hash
        signature = self._ballots.sign("accept", asked.instance, ballot, hash_)
        return Yes(asked.instance, ballot, self._liar.choice([signature, b"", signature[::-1]]))

    def _decisions(self, peer: int) -> Message:
        rng, proposal, instance = self._liar, self._proposal(), self._instance()
        own = (self.me, self._ballots.sign("accept", instance, 9, proposal.hash))
        known = [decision.signatures for decision in self.ledger.decided] or [[]]
        signatures = rng.choice([[], [own], self.session.quorum * [own], rng.choice(known), [own, *rng.choice(known)]])
        return Decisions(instance, rng.choice([1, 1, 50]) * [Decision(rng.choice([9, 2**61]), proposal, signatures)])

    def _seen(self, peer: int) -> Message:
        rng = self._liar
        t, body_hash, signature = (
            rng.choice([1, 2, LIMITS[-1]]),
            rng.randbytes(32),
            rng.choice([b"", rng.randbytes(16)]),
        )
        offers = rng.choice([0, 1, 500]) * [OfferProof(t, rng.choice([b"", bytes(8)]), body_hash, signature)]
        kind = rng.choice([*KINDS, "\x1b[2J"])
        shown = [*(item.proof for item in self.signed_items.by_kind.get(kind, {}).values()), None]
        proof = rng.choice(shown) or ItemProof(kind, body_hash, signature)
        return Seen(offers, rng.choice(LIMITS), rng.choice(LIMITS), rng.choice([0, 1, 99]) * [proof])


Make = Callable[[SessionConfig, int, Sign, Verify, random.Random], Party]


class HostileNetwork(SimulatedNetwork):
    """A simulated session with a hostile member. Its own ledger means nothing, so only honest parties are looked at."""

    def __init__(self, seed: int, faults: Faults, hostile: Make = HostileParty) -> None:
        self.hostile, self._hostile_party = 0, hostile
        super().__init__(seed, faults=faults, make=self._make_party)
        self.hostile = self.rng.randrange(self.session.parties)

    def _make_party(self, session: SessionConfig, me: int, sign: Sign, verify: Verify, rng: random.Random) -> Party:
        if me == self.hostile:
            return self._hostile_party(session, me, sign, verify, rng)
        return plain_party(session, me, sign, verify, rng)

    def _perform(self, i: int, effects: Effects) -> None:
        """No honest party takes another one for a liar."""
        if i != self.hostile and (wrongly := set(effects.violations) - {self.hostile}):
            raise Violation(f"party {i} blames {wrongly}: {effects.log_events}")
        super()._perform(i, effects)

    def _check_key(self, i: int, message: Message) -> None:
        if i != self.hostile:
            super()._check_key(i, message)

    def check(self) -> None:
        """Shares of the hostile member are what it says they are: there is nothing to add up."""

    @property
    def honest(self) -> dict[int, Party]:
        """The honest parties that run."""
        return {i: m.party for i, m in enumerate(self.machines) if m.party is not None and i != self.hostile}

    def honest_ledgers(self) -> Iterable[tuple[int, Ledger]]:
        return [(i, ledger) for i, ledger in self.ledgers() if i != self.hostile]

    def journal(self, i: int) -> list[Record]:
        return self.machines[i].journal
