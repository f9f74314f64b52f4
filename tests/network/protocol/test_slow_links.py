"""On a slow link an offer travels once: it is sent again only when the connection that carried it has ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from helpers.ledgers import receiver_of
from helpers.parties import PACED, START, N, Room
from inca.network.protocol.context import Effects
from inca.network.protocol.messages import ACKED, Message, Nudge, Offer, decode, encode

WIDE = replace(PACED, dimension=10_000, rounds=3, period=4.0, min_round_duration=0.0, schedule="permutation")
OFFER_S = 1.5  # that an offer takes through a link
BYTES_PER_S = 8 * (WIDE.dimension + 1) / OFFER_S


class SlowRoom(Room):
    """Parties whose links let through so many bytes in a second, one message after the other, and lose nothing."""

    def __init__(self) -> None:
        super().__init__(WIDE)
        self.free_at: dict[tuple[int, int], float] = {}
        self.sent_bytes: Counter[type[Message]] = Counter()

    def perform(self, i: int, effects: Effects) -> None:
        sends, effects.sends = effects.sends, []
        for peer, message in sends:
            frame = encode(message)
            self.sent_bytes[type(message)] += len(frame)
            self.said.append((i, message))
            self.free_at[i, peer] = max(self.now, self.free_at.get((i, peer), 0.0)) + len(frame) / BYTES_PER_S
            self.at(self.free_at[i, peer], self.arrive, i, peer, frame)
        super().perform(i, effects)

    def arrive(self, i: int, j: int, frame: bytes) -> None:
        if j in self.parties and not self.parties[j].finished:
            self.perform(j, self.parties[j].receive(self.now, i, decode(frame)))


def copies(room: Room) -> Counter[tuple[int, int]]:
    """How often each offer was sent, by round and sender."""
    return Counter((message.round, i) for i, message in room.said if isinstance(message, Offer))


def test_an_offer_travels_once_however_slow_the_link_is() -> None:
    room = SlowRoom()
    room.open().run(until=START + 3 * WIDE.period)
    assert set(copies(room).values()) == {1} and len(copies(room)) == WIDE.rounds * N
    needed = WIDE.rounds * N * 8 * (WIDE.dimension + 1)
    assert room.sent_bytes[Offer] < 1.01 * needed
    assert all(fate == ACKED for party in room.parties.values() for fate in party.ledger.fates.values())
    assert any(isinstance(message, Nudge) for _, message in room.said)  # though its receiver has asked for it


def test_an_offer_that_was_lost_with_its_connection_is_made_again() -> None:
    room, lost = Room(PACED), list[Message]()

    def drops(sender: int, receiver: int, message: Message) -> bool:
        if lost or sender != 1 or not isinstance(message, Offer):
            return False
        lost.append(message)
        return True

    room.drops = drops
    room.open().run(until=START + 0.3)
    first = next(message for i, message in room.said if i == 1 and isinstance(message, Offer))
    assert [message for i, message in room.said if i == 1 and message == first] == [first, first]
    assert copies(room).total() == N + 1 and room.parties[1].ledger.fates[1] == ACKED


def test_an_offer_that_was_sent_before_a_restart_is_made_again_when_it_is_asked_for() -> None:
    """The new process knows of no connection that might still carry it."""
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: sender == 1 and isinstance(message, Offer)
    room.open().run(until=START + 0.01)
    receiver = receiver_of(room.parties[1].ledger, 1)
    offer = next(message for i, message in room.said if i == 1 and isinstance(message, Offer))
    room.kill(1)
    room.recover(1)
    party = room.parties[1]
    assert (receiver, offer) in party.receive(room.now, receiver, Nudge(1)).sends
    assert (receiver, offer) not in party.receive(room.now, receiver, Nudge(1)).sends  # it is under way
    assert (receiver, offer) in party.in_doubt(room.now, offer).sends
