"""Offers that were not credited: on a network, a share may fail to arrive, and come back late or never."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from inca._base.kernels import Ids
from inca._base.validation import integer, refuse

_ENTRY = "an entry of undelivered"


class Undelivered(NamedTuple):
    """An offer that was not credited: in `round`, `sender` offered a share of its last message to `receiver`.

    `back` is the round in which the share was with its sender again: `round` itself, a later one, or 0 for never.
    """

    round: int
    sender: int
    receiver: int
    back: int

    @property
    def late(self) -> bool:
        """Whether the share was missing at the end of the round, for a while or for good."""
        return self.back != self.round


def undelivered_entry(entry: Sequence[int], parties: int, rounds: int) -> Undelivered:
    """Return an entry of `undelivered`, or refuse it for what it says by itself."""
    try:
        t, sender, receiver, back = entry
    except (TypeError, ValueError):
        refuse(_ENTRY, entry, "(round, sender, receiver, back)")
    offer = Undelivered(
        integer("a round in undelivered", t, 1, rounds),
        integer("a sender in undelivered", sender, 0, parties - 1),
        integer("a receiver in undelivered", receiver, 0, parties - 1),
        integer("a round of return in undelivered", back, 0, rounds),
    )
    if 0 < offer.back < offer.round:
        refuse(_ENTRY, tuple(offer), "back in the round of the offer, in a later one, or 0 for never")
    if offer.sender == offer.receiver:
        refuse(_ENTRY, tuple(offer), "an offer to another party than the sender")
    return offer


def check_slots(offers: Sequence[Undelivered], receivers: Ids) -> None:
    """Refuse offers of one sender in one round for which its row of the schedule has no slots."""
    t, sender, row = offers[0].round, offers[0].sender, receivers[offers[0].sender].tolist()
    if len(offers) > (free := row.count(-1)):
        name = f"the number of undelivered offers of party {sender} in round {t}"
        refuse(name, len(offers), f"at most {free}, the number of its slots with -1")
    offered = [offer.receiver for offer in offers]
    if len({*offered, *row} - {-1}) < len(offered) + len(row) - free:
        name = f"the receivers of party {sender} in round {t}, undelivered ones included,"
        refuse(name, sorted([*offered, *row])[free:], "different from each other")


def refuse_late(offers: Sequence[Undelivered], why: str) -> None:
    """Refuse the first of several late or lost shares; `why` says why they cannot be."""
    if offers:
        refuse(_ENTRY, tuple(offers[0]), f"back in its own round, as {why}")
