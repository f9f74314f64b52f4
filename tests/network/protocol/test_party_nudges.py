"""Nudges and wishes: whoever lacks an offer or an item asks for it, and is answered."""

from __future__ import annotations

from dataclasses import replace

from helpers.ledgers import receiver_of
from helpers.parties import PACED, START, N, Room
from inca.network.protocol.context import Effects
from inca.network.protocol.messages import (
    ACKED,
    Ack,
    Decisions,
    Fetch,
    Have,
    Item,
    Items,
    Message,
    Nudge,
    Offer,
    Skipped,
    Want,
    bits,
)
from inca.network.protocol.party import Party

# --- nudges -------------------------------------------------------------------------------------------------------


def offers_in(effects: Effects, peer: int) -> list[Offer]:
    return [message for to, message in effects.sends if to == peer and isinstance(message, Offer)]


def skips_in(effects: Effects, peer: int) -> list[Skipped]:
    return [message for to, message in effects.sends if to == peer and isinstance(message, Skipped)]


def test_a_nudge_has_the_same_offer_made_again_after_a_restart() -> None:
    """Before that it is under way, on a connection that may be slow."""
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: sender == 1 and isinstance(message, Offer)
    room.open().run(until=START + 0.01)
    receiver = receiver_of(room.parties[1].ledger, 1)
    first = [message for i, message in room.said if i == 1 and isinstance(message, Offer)]
    assert not offers_in(room.parties[1].receive(room.now, receiver, Nudge(1)), receiver)
    room.kill(1)
    room.recover(1)
    effects = room.parties[1].receive(room.now, receiver, Nudge(1))
    assert offers_in(effects, receiver) == first[:1] and not skips_in(effects, receiver) and not effects.records
    assert {to for to, message in effects.sends if isinstance(message, Offer)} == {receiver}
    others = set(range(N)) - {1, receiver}
    assert not any(offers_in(room.parties[1].receive(room.now, peer, Nudge(1)), peer) for peer in others)


def test_whoever_waits_for_an_offer_nudges_its_sender() -> None:
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: sender == 1 and isinstance(message, Offer)
    room.open().run(until=START + 0.3)
    receiver = receiver_of(room.parties[1].ledger, 1)
    assert (receiver, Nudge(1)) in room.said and room.parties[receiver].transfers.awaited()
    assert all(i == receiver for i, message in room.said if isinstance(message, Nudge))


def test_a_nudge_about_a_round_that_was_missed_is_answered() -> None:
    """Party 3 was away in round 2: nobody who is still there has to wait for it."""
    room = Room(replace(PACED, min_round_duration=1.0)).open()
    room.at(START + 0.9, room.kill, 3)
    room.at(START + 2.5, room.recover, 3)
    room.run(until=START + 2.6)
    assert room.parties[3].ledger.account.present == [1, 3]
    asker = (set(range(N)) - {3}).pop()
    assert skips_in(room.parties[3].receive(room.now, asker, Nudge(2)), asker) == [Skipped(2)]
    for t in (0, 1, 4, PACED.rounds + 1):  # never, attended, not yet, never
        assert not skips_in(room.parties[3].receive(room.now, asker, Nudge(t)), asker) or t == 1


def test_a_share_that_was_taken_back_is_not_offered_again() -> None:
    room = Room(PACED)
    room.open().run(until=START + 0.01)
    receiver = receiver_of(room.parties[1].ledger, 1)
    assert room.parties[1].ledger.fates[1] == ACKED
    effects = room.parties[1].receive(room.now, receiver, Nudge(1))
    assert not offers_in(effects, receiver) and skips_in(effects, receiver) == [Skipped(1)]


def test_whoever_is_still_asking_is_not_waited_for() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    room.kill(1)
    room.drops = lambda sender, receiver, message: 1 in (sender, receiver)
    room.recover(1)
    assert room.parties[1].stage == "asking" and room.parties[1].ledger.round == 2
    effects = room.parties[1].receive(room.now, 0, Nudge(3))
    assert skips_in(effects, 0) == [Skipped(3)] and not effects.records


def test_nobody_waits_for_an_offer_that_was_skipped_and_yet_takes_it() -> None:
    session = replace(PACED, min_round_duration=0.0, schedule="permutation")
    room = Room(session)
    room.drops = lambda sender, receiver, message: sender == 1 and isinstance(message, Offer)
    room.open().run(until=START + 0.01)
    receiver = receiver_of(room.parties[1].ledger, 1)
    waiting = room.parties[receiver]
    assert waiting.ledger.round == 1 and waiting.transfers.awaited()
    for other in set(range(N)) - {receiver, 1}:
        room.hand(other, receiver, Skipped(1))  # it does not speak for party 1
    assert waiting.transfers.awaited()
    room.hand(1, receiver, Skipped(2))  # another round
    assert waiting.transfers.awaited() and waiting.ledger.round == 1
    sent = next(message for i, message in room.said if i == 1 and isinstance(message, Offer))
    again = Room(replace(session, min_round_duration=0.4))
    again.drops = room.drops
    again.open().run(until=START + 0.01)
    effects = again.hand(1, receiver, Skipped(1))
    assert not effects.records and not again.parties[receiver].transfers._owing()
    assert (1, Ack(1)) in again.hand(1, receiver, sent).sends  # a hint: the offer came all the same
    room.hand(1, receiver, Skipped(1))
    assert waiting.ledger.round == 2


def test_whoever_is_on_time_does_not_say_that_it_is_not_there() -> None:
    """The peer's clock is ahead: it has begun round 1 already, and would go on without this party's offer."""
    room = Room(PACED).open().run(until=START - 0.1)
    assert not skips_in(room.parties[1].receive(room.now, 0, Nudge(1)), 0)


# --- items --------------------------------------------------------------------------------------------------------


def test_an_item_is_asked_of_one_peer_at_a_time() -> None:
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: True
    room.open().at_stage(1, "digests")
    party, now = room.parties[1], room.now
    have = Have({"digest": bits({0, 2}, N), "deposit": bits({0}, N)}, 0, True)

    def wants(peer: int, when: float) -> list[Message]:
        return [message for _, message in party.receive(when, peer, have).sends if isinstance(message, Want)]

    assert wants(0, now) == [Want({"digest": bits({0, 2}, N), "deposit": bits({0}, N)}, 0)]
    assert not wants(2, now) and not wants(0, now + PACED.period / 4 - 0.01)
    assert wants(2, now + PACED.period / 4 + 0.01) == [Want({"digest": bits({0, 2}, N), "deposit": bits({0}, N)}, 0)]


def test_a_member_that_claims_items_and_does_not_deliver_them_gives_way_to_others() -> None:
    """Party 0 speaks before everyone else, whenever something may be asked for again."""
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: True
    room.open().at_stage(1, "digests")
    party, now, again = room.parties[1], room.now, PACED.period / 4 + 0.001
    have = Have({"digest": bits({2}, N)}, 0, True)

    def asks(peer: int, when: float) -> bool:
        return any(isinstance(message, Want) for _, message in party.receive(when, peer, have).sends)

    assert asks(0, now)
    for k, honest in enumerate((3, 2, 4), 1):
        assert not asks(0, now + k * again) and asks(honest, now + k * again)
    assert not asks(0, now + 4 * again) and asks(0, now + 5 * again)  # nobody else has it either


def wants_answered(party: Party, now: float, peer: int, times: int) -> list[Item]:
    """Ask for all items, so many times in a row; return those that come."""
    want = Want({kind: bits(set(range(N)), N) for kind in ("digest", "deposit", "done")}, 0)
    sends = [send for _ in range(times) for send in party.receive(now, peer, want).sends]
    return [item for to, message in sends if to == peer and isinstance(message, Items) for item in message.items]


def test_items_are_not_sent_again_and_again_to_whoever_asks_in_a_loop() -> None:
    room = Room(PACED).open().at_stage(1, "serving")
    party, now, period = room.parties[1], room.now, PACED.period
    for peer in (0, 2):
        party.up(now, peer)  # it may have been sent some on an earlier connection
    first = wants_answered(party, now, 0, 50)
    deposits = [item for item in first if item.kind == "deposit"]
    assert len(deposits) == N and len({(item.kind, item.party) for item in first}) == len(first)
    small = wants_answered(party, now + period / 4, 0, 50)  # as often as an honest party asks
    assert {item.kind for item in small} == {"digest", "done"} and len(small) == len(first) - N
    party.up(now + period / 4, 0)
    assert sorted(map(repr, wants_answered(party, now + period / 4, 0, 50))) == sorted(map(repr, first))
    assert sorted(map(repr, wants_answered(party, now + period / 4, 2, 50))) == sorted(map(repr, first))
    assert len(wants_answered(party, now + 5 * period / 4 + 0.01, 0, 50)) == len(first)


def test_decisions_are_not_sent_again_and_again_to_whoever_asks_in_a_loop() -> None:
    room = Room(PACED).open().at_stage(1, "serving")
    party = room.parties[1]
    sends = [message for _ in range(50) for _, message in party.receive(room.now, 0, Want({}, 1)).sends]
    assert [message.first for message in sends if isinstance(message, Decisions)] == [1]


def test_an_answer_holds_no_more_than_an_honest_party_asks_for() -> None:
    """A member that asks for everything at once, and reads nothing, must not fill the memory."""
    session = replace(PACED, dimension=150_000, rounds=1)
    room = Room(session).open().at_stage(1, "serving")
    room.parties[1].up(room.now, 0)
    items = wants_answered(room.parties[1], room.now, 0, 1)
    assert 0 < sum(item.size for item in items if item.kind == "deposit") < 2**22 + 9 * session.dimension


def test_wanted_items_are_sent_and_nothing_else() -> None:
    room = Room(PACED).open().at_stage(1, "serving")
    party = room.parties[1]
    sends = party.receive(room.now, 0, Want({"deposit": bits({0, 3}, N), "digest": bits({2}, N)}, 2)).sends
    sent = [item for _, message in sends if isinstance(message, Items) for item in message.items]
    assert {(item.kind, item.party) for item in sent} == {("deposit", 0), ("deposit", 3), ("digest", 2)}
    assert all(item == party.signed_items.by_kind[item.kind][item.party] for item in sent)


def test_items_are_fetched_by_their_contents_once_however_often_they_are_named() -> None:
    room = Room(PACED).open().at_stage(1, "serving")
    party = room.parties[1]
    held = party.signed_items.by_kind["deposit"][3]
    contents = [(3, held.hash), (3, bytes(32)), (99, held.hash)]
    for fetched in (contents, 50 * contents):
        party.up(room.now, 0)  # on one connection it would be sent once
        sends = party.receive(room.now, 0, Fetch("deposit", fetched)).sends
        assert [item for _, message in sends if isinstance(message, Items) for item in message.items] == [held]
    for kind in ("digest", "gift"):
        sends = party.receive(room.now, 0, Fetch(kind, contents)).sends
        assert not [message for _, message in sends if isinstance(message, Items)]


def test_decisions_are_sent_to_whoever_lacks_them() -> None:
    room = Room(PACED).open().at_stage(1, "serving")
    party = room.parties[1]
    assert [decision.proposal.step for decision in party.ledger.decided] == ["cohort", "commit"]
    for known in range(3):
        room.now += room.session.period / 16  # at once, it would be told nothing again
        sends = party.receive(room.now, 0, Want({}, known)).sends
        told = [message for _, message in sends if isinstance(message, Decisions)]
        assert told == ([Decisions(known, party.ledger.decided[known:])] if known < 2 else [])
    asked = party.receive(room.now, 0, Have({}, 3, True)).sends  # it knows one more
    assert (0, Want({}, 2)) in asked
