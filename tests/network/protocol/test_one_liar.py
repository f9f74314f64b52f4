"""One lying member, trick by trick: the others end with one exact result, or with its name and the proof.

No honest party is ever named, and whoever passes on what nobody honest would is counted.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator

import msgspec
import numpy as np
import pytest

from helpers.parties import PACED, N, Room, foreign
from helpers.signatures import sign, verify
from inca.network.protocol.context import Effects
from inca.network.protocol.finalization import Lie
from inca.network.protocol.messages import (
    ConsensusMessage,
    Decisions,
    Item,
    Items,
    Message,
    Prepare,
    Proposal,
    Propose,
    Want,
)
from inca.network.protocol.opening import shamir
from inca.network.protocol.opening.cohort_keys import COHORTS, clamped, public_of, shared_secrets
from inca.network.protocol.opening.deposits import Dealing, Deposit
from inca.network.protocol.opening.trustees import trustees_of
from inca.network.protocol.party import Party
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import KINDS, Body, Digest, Key, Kind, Refusal, read

Says = Callable[[int, Message], Iterable[Message]]
LARGE = 2**21


def faithfully(peer: int, message: Message) -> list[Message]:
    return [message]


class LiarRoom(Room):
    """A room in which one party says something else than it should."""

    def __init__(self, liar: int, session: SessionConfig = PACED) -> None:
        super().__init__(session)
        self.liar = liar
        self.says: Says = faithfully
        self.blamed: list[tuple[int, int]] = []

    def send(self, i: int, peer: int, message: Message) -> None:
        for said in self.says(peer, message) if i == self.liar else [message]:
            super().send(i, peer, said)

    def perform(self, i: int, effects: Effects) -> None:
        self.blamed += [(i, peer) for peer in effects.violations]
        super().perform(i, effects)

    @property
    def honest(self) -> dict[int, Party]:
        return {i: party for i, party in self.parties.items() if i != self.liar}

    def sign(self, kind: Kind, body: Body, sealed: bytes = b"") -> Item:
        return foreign(self.session, self.liar).sign(kind, body, sealed)

    def replaces(self, kind: Kind, other: Callable[[int, Item], Item | None]) -> None:
        """Have the liar say something else in place of its own items of a kind: to each peer what `other` returns."""

        def says(peer: int, message: Message) -> Iterator[Message]:
            if isinstance(message, Items):
                said = [
                    other(peer, item) if (item.kind, item.party) == (kind, self.liar) else item
                    for item in message.items
                ]
                message = Items([item for item in said if item is not None])
            yield message

        self.says = says

    def dealing(self) -> Dealing:
        """How the liar deals for the cohort of now."""
        party = next(party for party in self.parties.values() if party.ledger.cohort)
        cohort, number = party.ledger.cohort, party.ledger.cohorts - 1
        assert cohort is not None
        digests = {item.party: read(item, Digest) for item in party.signed_items.by_kind["digest"].values()}
        trustees = trustees_of(self.session, cohort.parties, party.ledger.seed or b"")
        publics = {trustee: digests[trustee].keys[number] for trustee in trustees.members}
        return Dealing(self.session.id, number, cohort.hash, self.liar, publics, trustees.threshold)

    def nobody_honest_is_named(self) -> None:
        blamed = {peer for blamer, peer in self.blamed if blamer != self.liar}
        assert blamed <= {self.liar}, f"{blamed - {self.liar}} are blamed"
        assert {party.finalization.lie.party for party in self.honest.values() if party.finalization.lie} <= {self.liar}

    def ends_with_one_result(self, *, without: frozenset[int] = frozenset()) -> frozenset[int]:
        """All honest parties hold one exact result, of all of them; return whose."""
        self.nobody_honest_is_named()
        result = self.check(but={self.liar})
        honest = set(self.honest)
        assert honest <= set(self.results) and honest - without <= result.realized.cohort
        return result.realized.cohort

    def ends_with_the_name(self) -> None:
        """No honest party holds a result; each can prove who has lied, with the keys that it has heard of first."""
        self.nobody_honest_is_named()
        assert not set(self.results) - {self.liar}
        for party in self.honest.values():
            assert f"party {self.liar} has lied, which is proven" in party.reason and party.finalization.lie is not None
            proven(self, party.finalization.lie)


def order(session: SessionConfig = PACED) -> list[int]:
    """In which order the parties have their turns."""
    return Room(session).make(0).consensus.order


PLACES = pytest.mark.parametrize("liar", [order()[0], order()[-1]], ids=["first", "last"])


def mute(says: Says) -> Says:
    """Take no part in what is decided."""
    return lambda peer, message: [] if isinstance(message, ConsensusMessage) else says(peer, message)


# --- words ------------------------------------------------------------------------------------------------------------


@PLACES
@pytest.mark.parametrize("votes", [True, False])
@pytest.mark.parametrize("refused", [0, 2, N - 1, *(pytest.param(count, marks=pytest.mark.slow) for count in (1, 3))])
def test_a_word_with_two_faces_stalls_nobody(liar: int, votes: bool, refused: int) -> None:
    """To some a refusal, to the others a deposit, which beats it; and no acceptance of what is proposed."""
    room = LiarRoom(liar)
    told = sorted(set(range(N)) - {liar})[:refused]

    def word(peer: int, deposit: Item) -> Item:
        said = read(deposit, Deposit)
        return room.sign("refusal", Refusal(said.cohort, said.hash, "too much")) if peer in told else deposit

    room.replaces("deposit", word)
    room.says = room.says if votes else mute(room.says)
    cohort = room.open().run().ends_with_one_result()
    assert cohort == (set(range(N)) if refused == 0 else cohort)
    if refused == N - 1:
        assert cohort == set(range(N)) - {liar}  # nobody has heard of a deposit


@PLACES
def test_both_words_to_everyone_are_a_deposit(liar: int) -> None:
    room = LiarRoom(liar)

    def says(peer: int, message: Message) -> Iterator[Message]:
        deposits = [item for item in message.items if item.kind == "deposit"] if isinstance(message, Items) else []
        for own in (item for item in deposits if item.party == liar):
            said = read(own, Deposit)
            yield Items([room.sign("refusal", Refusal(said.cohort, said.hash, "too much"))])
        yield message

    room.says = says
    assert room.open().run().ends_with_one_result() == set(range(N))


@PLACES
def test_a_deposit_without_its_bytes_is_silence(liar: int) -> None:
    room = LiarRoom(liar)
    room.replaces("deposit", lambda peer, deposit: msgspec.structs.replace(deposit, sealed=b""))
    assert room.open().run().ends_with_one_result() == set(range(N)) - {liar}
    assert {blamer for blamer, _ in room.blamed} >= set(room.honest)


@PLACES
def test_a_deposit_with_other_bytes_is_silence_also_before_its_cohort_is_known(liar: int) -> None:
    room = LiarRoom(liar)
    room.replaces("deposit", lambda peer, deposit: msgspec.structs.replace(deposit, sealed=bytes(len(deposit.sealed))))
    assert room.open().run().ends_with_one_result() == set(range(N)) - {liar}
    victim = (liar + 1) % N
    fresh = LiarRoom(liar).open().at_stage(victim, "agreeing")
    early = Deposit(0, bytes(32), bytes(32), public_of(clamped(b"e" * 32)), bytes(N * shamir.SHARE_BYTES))
    sealed = bytes(fresh.parties[victim].signed_items.sealed_bytes)
    assert fresh.hand(liar, victim, Items([foreign(PACED, liar).sign("deposit", early, sealed)])).violations == [liar]
    assert not fresh.parties[victim].signed_items._early


def test_the_deposit_that_is_committed_to_is_admitted_beyond_two_others() -> None:
    liar, victim = order()[1], order()[-1]
    room = LiarRoom(liar)
    room.replaces("deposit", lambda peer, deposit: None if peer == victim else deposit)
    room.open()
    steps = room.steps(until=100.0)
    while room.parties[victim].signed_items.cohort < 0:
        next(steps)
    dealing = room.dealing()
    for secret in (b"1" * 32, b"2" * 32):
        other, sealed = dealing.deal(secret, bytes(room.parties[victim].signed_items.sealed_bytes))
        assert not room.hand(liar, victim, Items([room.sign("deposit", other, sealed)])).violations
    assert room.run().ends_with_one_result() == set(range(N))
    assert len(room.parties[victim].signed_items._variants["deposit", liar]) <= 4


# --- the shrinking liar -----------------------------------------------------------------------------------------------


def less(proposal: Proposal, victim: int, room: LiarRoom) -> Proposal:
    """The cohort less one."""
    party = next(iter(room.honest.values()))
    cohort = party.ledger.cohort
    contents = proposal.contents if proposal.step == "cohort" or cohort is None else cohort.contents
    return Proposal("cohort", [entry for entry in contents if entry[0] != victim])


@PLACES
@pytest.mark.parametrize("deposits", [True, False], ids=["deposits", "withholds its deposit"])
@pytest.mark.parametrize("steps", [("cohort",), ("cohort", "commit")], ids=["first cohort", "all decisions"])
def test_the_cohort_less_one_again_and_again_leaves_out_nobody(
    liar: int, deposits: bool, steps: tuple[str, ...]
) -> None:
    """Before patience ends, and after it, when the liar's own silence makes the others propose a smaller cohort."""
    room = LiarRoom(liar)
    victim = order()[2]

    def says(peer: int, message: Message) -> Iterator[Message]:
        if isinstance(message, Propose) and message.proposal.step in steps:
            message = msgspec.structs.replace(message, proposal=less(message.proposal, victim, room))
        if isinstance(message, Items) and not deposits:
            message = Items([item for item in message.items if item.kind != "deposit" or item.party != liar])
        yield message

    room.says = says
    room.open()
    hammer(room, lambda: propose_less(room, victim))
    cohort = room.run().ends_with_one_result()
    assert cohort == (set(range(N)) if deposits else set(range(N)) - {liar})


def hammer(room: LiarRoom, action: Callable[[], None], every: float = 1 / 16, until: float = 30.0) -> None:
    """Do something again and again from the last round on."""
    when = room.session.start + room.session.rounds * room.session.min_round_duration
    while when < until:
        room.at(when, action)
        when += every


def propose_less(room: LiarRoom, victim: int) -> None:
    """Propose, in the lowest ballot if it is the liar's, the cohort less one."""
    party = room.parties[room.liar]
    ledger, digests = party.ledger, party.signed_items.by_kind["digest"]
    named = ledger.cohort.contents if ledger.cohort else sorted((p, item.hash) for p, item in digests.items())
    smaller = Proposal("cohort", [entry for entry in named if entry[0] != victim])
    for peer in sorted(room.honest):
        room.hand(room.liar, peer, Propose(len(ledger.decided), N, smaller, [], []))


# --- items that are too large -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stage", ["rounds", "digests", "assessing", "opening", "serving"])
def test_large_items_in_anyones_name_are_refused_before_anything_is_worked_out(kind: Kind, stage: str) -> None:
    liar, victim = 0, 2
    room = LiarRoom(liar)
    room.perform_assessments = stage != "assessing"
    room.drops = lambda sender, receiver, message: (
        stage == "opening" and isinstance(message, Items) and any(item.kind == "key" for item in message.items)
    )
    room.open().at_stage(victim, stage)
    verified: list[bytes] = []

    def counted(party: int, text: bytes, signature: bytes) -> bool:
        verified.append(signature)
        return verify(party, text, signature)

    room.parties[victim].signed_items._verify = counted
    before = len(room.blamed)
    for owner in range(N):
        for body, sealed in ((bytes(LARGE), b""), (b"", bytes(LARGE)), (bytes(LARGE), bytes(LARGE))):
            item = Item(kind, owner, body, b"anything", sealed)
            # In memory, so that the very item is looked at.
            effects = room.parties[victim].receive(room.now, liar, Items([item]))
            assert effects.violations == [liar] and "hash" not in item.__dict__
    assert not verified and len(room.blamed) == before


def test_items_that_their_owners_have_not_signed_are_laid_to_who_passes_them_on() -> None:
    """Also those about a cohort that is not decided yet, and keys before commit."""
    liar, victim, owner = 0, 2, 3
    room = LiarRoom(liar).open().at_stage(victim, "agreeing")
    forger = foreign(PACED, owner)
    sealed = bytes(room.parties[victim].signed_items.sealed_bytes)
    early = Deposit(0, bytes(32), bytes(32), public_of(clamped(b"e" * 32)), bytes(N * shamir.SHARE_BYTES))
    made_up = [
        forger.sign("digest", bytes(32)),
        forger.sign("deposit", early, sealed),
        forger.sign("refusal", Refusal(0, bytes(32), "too much")),
        forger.sign("key", Key(0, clamped(b"k" * 32))),
    ]
    for item in made_up:
        unsigned = Items([msgspec.structs.replace(item, signature=sign(liar)(b"something else"))])
        assert room.hand(liar, victim, unsigned).violations == [liar]
    assert not room.parties[victim].signed_items._early
    room.run().ends_with_one_result()


# --- dealers ----------------------------------------------------------------------------------------------------------


def dealt_falsely(room: LiarRoom, lie: Callable[[Deposit], Deposit]) -> None:
    """Have the liar deposit something else than it has dealt."""

    def other(peer: int, item: Item) -> Item:
        return room.sign("deposit", lie(read(item, Deposit)), item.sealed)

    room.replaces("deposit", other)


def garbage(deposit: Deposit) -> Deposit:
    return msgspec.structs.replace(deposit, shares=random.Random(3).randbytes(len(deposit.shares)))


def wrong_share(place: int) -> Callable[[Deposit], Deposit]:
    def wrong(deposit: Deposit) -> Deposit:
        shares = bytearray(deposit.shares)
        shares[place * shamir.SHARE_BYTES] ^= 1
        return msgspec.structs.replace(deposit, shares=bytes(shares))

    return wrong


def other_ephemeral(deposit: Deposit) -> Deposit:
    return msgspec.structs.replace(deposit, ephemeral=public_of(clamped(b"another" + bytes(25))))


LIES = {"garbage": garbage, "another ephemeral key": other_ephemeral} | {
    f"a wrong share for trustee {place}": wrong_share(place) for place in range(N)
}


@pytest.mark.parametrize("lie", LIES)
@PLACES
def test_a_dealer_of_what_nobody_can_have_dealt_is_named_and_it_is_proven(liar: int, lie: str) -> None:
    room = LiarRoom(liar)
    dealt_falsely(room, LIES[lie])
    room.open().run().ends_with_the_name()


def proven(room: LiarRoom, lie: Lie) -> None:
    """Whoever knows the session and is shown the evidence can tell, and there are signatures on all of it."""
    by_kind: dict[str, dict[int, Item]] = {}
    for item in lie.evidence:
        assert foreign(room.session, 0).proves(item.party, item.proof)
        by_kind.setdefault(item.kind, {})[item.party] = item
    assert set(by_kind) == {"deposit", "key", "digest"} and set(by_kind["deposit"]) == {room.liar}
    dealing, (deposit,) = room.dealing(), by_kind["deposit"].values()
    shown = {party: read(item, Key).private for party, item in by_kind["key"].items()}
    publics = {party: read(item, Digest).keys[dealing.cohort] for party, item in by_kind["digest"].items()}
    assert publics.items() >= {party: public_of(key) for party, key in shown.items()}.items()
    assert dealing.proves_lie(read(deposit, Deposit), deposit.sealed, shown)
    honest, sealed = dealing.deal(b"k" * 32, b"a message")
    assert not dealing.proves_lie(honest, sealed, shown)


def test_the_end_is_the_same_whichever_trustees_open() -> None:
    """A wrong share for one trustee is a lie for those, too, who open without that one."""
    for silent in [None, *range(1, N)]:
        room = LiarRoom(0)
        dealt_falsely(room, wrong_share(2))
        room.drops = shows_no_key(silent)
        room.open().run().ends_with_the_name()


def shows_no_key(silent: int | None) -> Callable[[int, int, Message], bool]:
    return lambda sender, receiver, message: (
        sender == silent and isinstance(message, Items) and any(item.kind == "key" for item in message.items)
    )


def test_a_secret_outside_its_range_is_a_lie() -> None:
    room = LiarRoom(1)

    def other(peer: int, item: Item) -> Item:
        dealing, deposit = room.dealing(), read(item, Deposit)
        ephemeral, coefficients = clamped(b"e" * 32), dealing._coefficients(b"c" * 32)
        shares = [
            dealing._encrypted(
                trustee,
                shared_secrets(ephemeral, [public])[0],
                shamir.share(2**256 + 5, coefficients, place).to_bytes(shamir.SHARE_BYTES, "little"),
            )
            for place, (trustee, public) in enumerate(dealing.trustees.items(), start=1)
        ]
        forged = msgspec.structs.replace(deposit, ephemeral=public_of(ephemeral), shares=b"".join(shares))
        return room.sign("deposit", forged, item.sealed)

    room.replaces("deposit", other)
    room.open().run().ends_with_the_name()


@pytest.mark.parametrize("faced", range(1, N - 1))
@PLACES
def test_two_deposits_give_one_end(liar: int, faced: int) -> None:
    """One of them is committed to, by its contents, and everyone opens that one."""
    room = LiarRoom(liar)
    told = sorted(set(range(N)) - {liar})[:faced]

    def other(peer: int, item: Item) -> Item:
        if peer not in told:
            return item
        dealing, secrets = room.dealing(), room.parties[liar].ledger.secrets
        assert secrets is not None
        message = dealing._padded(secrets.dealing, item.sealed)
        return room.sign("deposit", *dealing.deal(b"2" * 32, bytes([message[0] ^ 1]) + message[1:]))

    room.replaces("deposit", other)
    room.open().run()
    room.nobody_honest_is_named()
    ends = {
        (party.result.total.tobytes(), party.result.weight, party.result.beacon)
        for party in room.honest.values()
        if party.result is not None
    }
    committed = {party.ledger.decided[-1].proposal.hash for party in room.honest.values()}
    assert len(ends) == len(committed) == 1 and all(party.result for party in room.honest.values())


@PLACES
def test_a_dealer_with_a_key_that_anyone_could_guess_is_silent(liar: int) -> None:
    room = LiarRoom(liar)
    dealt_falsely(room, lambda deposit: msgspec.structs.replace(deposit, ephemeral=bytes(32)))
    assert room.open().run().ends_with_one_result() == set(range(N)) - {liar}


@PLACES
@pytest.mark.parametrize("numbers", ["all", "coordinates", "weight"])
@pytest.mark.parametrize(
    "size", [2**62 - 1, -(2**63), *(pytest.param(size, marks=pytest.mark.slow) for size in (-(2**62) + 1, 2**63 - 1))]
)
def test_a_final_message_of_impossible_numbers_gives_no_result_and_names_nobody(
    liar: int, numbers: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not refused for its numbers: others may be large because of it; and nobody can tell whose fault it is."""
    room = LiarRoom(liar).open()
    ledger = room.parties[liar].ledger
    settled = ledger.settled

    def huge(cohort: frozenset[int], credited: set[int]) -> np.ndarray:
        message = settled(cohort, credited)
        if numbers != "weight":
            message[:-1] = size
        if numbers != "coordinates":
            message[-1] = size
        return message

    monkeypatch.setattr(ledger, "settled", huge)
    room.run()
    room.nobody_honest_is_named()
    for party in room.honest.values():
        assert party.result is None and party.finalization.lie is None and party.stage == "over"
        assert "someone has lied, and nobody can tell who" in party.reason


# --- trustees ---------------------------------------------------------------------------------------------------------

KEYS: dict[str, Callable[[Key], Key]] = {
    "wrong": lambda key: Key(key.cohort, clamped(b"another" + bytes(25))),
    "unclamped": lambda key: Key(key.cohort, bytes([key.private[0] | 1, *key.private[1:]])),
    "unclamped above": lambda key: Key(key.cohort, bytes([*key.private[:31], key.private[31] | 128])),
    "nothing but zeros": lambda key: Key(key.cohort, bytes(32)),
    "low order": lambda key: Key(key.cohort, (1).to_bytes(32, "little")),
    "short": lambda key: Key(key.cohort, key.private[:31]),
    "empty": lambda key: Key(key.cohort, b""),
}


@pytest.mark.parametrize("kind", KEYS)
@PLACES
def test_a_key_that_is_none_opens_nothing_and_stalls_nobody(liar: int, kind: str) -> None:
    room = LiarRoom(liar)
    room.replaces("key", lambda peer, item: room.sign("key", KEYS[kind](read(item, Key))))
    assert room.open().run().ends_with_one_result() == set(range(N))
    assert (order()[1], liar) in room.blamed
    assert all(liar not in party.signed_items.by_kind["key"] for party in room.honest.values())


def test_a_key_before_the_decision_is_kept_not_passed_on_and_the_decision_asked_for() -> None:
    liar, victim = 0, 2
    room = LiarRoom(liar)
    room.perform_assessments = False
    room.open().at_stage(victim, "assessing").run(until=room.now + 0.1)
    secrets = room.parties[liar].ledger.secrets
    assert secrets is not None
    key = room.sign("key", Key(0, secrets.private_key))
    said = len(room.said)
    effects = room.hand(liar, victim, Items([key]))
    items = room.parties[victim].signed_items
    assert not effects.violations and (liar, Want({}, 1)) in effects.sends
    assert items._early["key", liar] == key and not items.by_kind["key"]
    room.perform_assessments = True
    for i, party in list(room.parties.items()):
        room.perform(i, party.assessed(room.now, "", party.finalization.realized))
    for peer, message in room.said[said:]:
        assert not (peer == victim and isinstance(message, Items) and key in message.items)
        if items.public_keys:
            break
    room.run()
    assert room.ends_with_one_result() == set(range(N))
    assert items.by_kind["key"][liar] == key and not items._early


# --- digests ----------------------------------------------------------------------------------------------------------

FIELD = 2**255 - 19
LOW_ORDER = [0, 1, FIELD - 1, FIELD, FIELD + 1, 2 * FIELD, 2**255 - 1]
LOW_ORDER += [
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
]


@pytest.mark.parametrize("number", LOW_ORDER)
@pytest.mark.parametrize("place", [0, pytest.param(COHORTS - 1, marks=pytest.mark.slow)])
def test_a_digest_with_a_key_of_low_order_is_none(number: int, place: int) -> None:
    """`cryptography` raises ValueError where such a key is used: uncaught, it would crash everyone after commit."""
    liar = order()[0]
    room = LiarRoom(liar)

    def other(peer: int, item: Item) -> Item:
        digest = read(item, Digest)
        keys = [*digest.keys]
        keys[place] = number.to_bytes(32, "little")
        return room.sign("digest", msgspec.structs.replace(digest, keys=keys))

    room.replaces("digest", other)
    assert room.open().run().ends_with_one_result() == set(range(N)) - {liar}
    assert {blamer for blamer, _ in room.blamed} >= set(room.honest)


# --- ballots ----------------------------------------------------------------------------------------------------------


def test_ballots_far_ahead_are_laid_to_their_proposer_and_change_nothing() -> None:
    liar = order()[0]
    room = LiarRoom(liar)
    room.says = mute(room.says)
    room.open()

    def prepare() -> None:
        for peer in sorted(room.honest):
            room.hand(liar, peer, Prepare(len(room.parties[peer].ledger.decided), 2**40 * N))

    hammer(room, prepare)
    room.run().ends_with_one_result()
    assert {peer for _, peer in room.blamed} == {liar}


@pytest.mark.parametrize("ahead", [0, 900, *(pytest.param(count, marks=pytest.mark.slow) for count in (1, 2, 3, 10))])
@pytest.mark.parametrize("turns", [1, 5, 100], ids=["to one after the other", "now and then", "to one"])
@PLACES
def test_ballot_after_ballot_does_not_keep_others_from_deciding(liar: int, ahead: int, turns: int) -> None:
    """Prepared with one honest party at a time, without which there is no quorum: the liar is silent otherwise."""
    room = LiarRoom(liar)
    place, lowest, turn_s = order().index(liar), N, room.session.period / 4
    room.says = mute(room.says)
    room.open()
    honest = sorted(room.honest)
    number = 0

    def prepare() -> None:
        nonlocal number
        number += 1
        victim = honest[number // turns % len(honest)]
        now = int((room.now - room.session.start) / turn_s) + lowest + ahead
        ballot = now - (now - place) % N  # the latest of its own that may be followed
        room.hand(liar, victim, Prepare(len(room.parties[victim].ledger.decided), max(lowest + place, ballot)))

    hammer(room, prepare)
    assert room.run().ends_with_one_result() == set(range(N))


# --- work for a peer --------------------------------------------------------------------------------------------------


def test_decisions_are_told_once_to_who_asks_again_and_again() -> None:
    """In no way is a short question answered with them more often than 32 times a period."""
    liar, victim = 0, 2
    room = LiarRoom(liar)
    room.open().at_stage(victim, "serving")
    party = room.parties[victim]
    lowest = Prepare(0, N + order().index(liar))
    questions: list[Message] = [Want({}, 0), Want({}, 1), lowest, Prepare(1, lowest.ballot)]

    def answers(now: float) -> int:
        sends = [send for question in 50 * questions for send in party.receive(now, liar, question).sends]
        return sum(peer == liar and isinstance(message, Decisions) for peer, message in sends)

    now = room.now + 0.1
    assert answers(now) == 1 and answers(now) == 0
    assert answers(now + room.session.period / 32) == 1
    party.up(now, liar)  # a new connection: what was told on an earlier one may be lost
    assert answers(now) == 1


def test_a_peer_that_asks_for_everything_again_and_again_is_sent_it_once() -> None:
    liar, victim = 0, 2
    room = LiarRoom(liar)
    room.open().at_stage(victim, "serving")
    party = room.parties[victim]
    everything = Want({kind: bytes([2**N - 1]) for kind in KINDS}, 0)
    now, sent = room.now + 0.1, 0
    for _ in range(100):
        effects = party.receive(now, liar, everything)
        sent += sum(len(message.items) for _, message in effects.sends if isinstance(message, Items))
    held = sum(len(items) for items in party.signed_items.by_kind.values())
    assert sent <= held
