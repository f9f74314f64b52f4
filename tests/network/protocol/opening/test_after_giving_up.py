"""Commit may be decided when some have given up already: they still come to know the outcome."""

from __future__ import annotations

from helpers.parties import PACED, N, Room
from inca.network.protocol.messages import Items, Message


def test_whoever_ends_without_commit_does_not_say_that_it_needs_nothing_more() -> None:
    room = Room(PACED).open().at_stage(0, "agreeing")
    for i in (2, 3, 4):
        room.kill(i)
    room.run()
    assert {party.stage for party in room.parties.values()} == {"over"}
    for party in room.parties.values():
        assert party.result is None and not party.finalization.unfinished and not party.signed_items.by_kind["done"]


def test_keys_are_sent_to_everyone_at_once_also_to_those_who_are_not_in_the_cohort() -> None:
    room, shown = Room(PACED), set[tuple[int, int]]()

    def watch(sender: int, receiver: int, message: Message) -> bool:
        if isinstance(message, Items):
            own = [item for item in message.items if item.kind == "key" and item.party == sender]
            shown.update((item.party, receiver) for item in own)
        return False

    room.drops = watch
    room.refusals[N - 1] = "its loss is too large"
    room.open().run()
    assert set(room.results) == set(range(N)) and room.results[0].realized.cohort == set(range(N - 1))
    assert shown == {(i, j) for i in range(N - 1) for j in range(N) if i != j}
