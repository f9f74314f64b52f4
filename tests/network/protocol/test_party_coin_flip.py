"""The coin flip for the public seed: nobody can bend it, and whoever stops it is named."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import msgspec
import pytest

from helpers.parties import COIN_FLIP, PACED, START, N, Room, foreign, masks, noisy, offer_of, reasons, secret
from helpers.trustee_keys import sealing
from inca.network.protocol.agreement.public_randomness import commitment
from inca.network.protocol.context import Effects
from inca.network.protocol.messages import Items, Offer


def test_all_know_the_same_seed_before_the_start() -> None:
    room = Room(COIN_FLIP).open().run(until=START - 1.0)
    seeds = {party.ledger.seed for party in room.parties.values()}
    assert len(seeds) == 1 and seeds != {None}
    other = Room(replace(COIN_FLIP, id=b"other session".ljust(32))).open().run(until=START - 1.0)
    assert {party.ledger.seed for party in other.parties.values()}.isdisjoint(seeds)


def test_nobody_reveals_before_all_have_committed() -> None:
    room = Room(COIN_FLIP).open(0, 1, 2, 3).run(until=START - 5.0)
    assert not any(party.signed_items.by_kind["reveal"] for party in room.parties.values())
    room.open(4).run(until=START - 1.0)
    assert all(len(party.signed_items.by_kind["reveal"]) == N for party in room.parties.values())


def cheated() -> Room:
    """Party 3 reveals another secret than it has committed to."""
    room = Room(COIN_FLIP).open()
    cheat = room.parties[3].ledger
    assert cheat.opened is not None
    cheat.opened = msgspec.structs.replace(cheat.opened, secret=b"x" * 32)
    return room.run()


def test_a_false_secret_ends_the_session_for_everyone() -> None:
    room = cheated()
    honest = {i: reason for i, reason in reasons(room).items() if i != 3}
    assert set(honest) == set(range(N)) - {3} and not room.results
    words = "the secret that was committed to was not revealed by party 3"
    assert set(honest.values()) == {f"the coin flip for the public seed failed: {words}"}
    assert not any(isinstance(message, Offer) for party, message in room.said if party != 3)


def test_everyone_names_who_revealed_a_false_secret() -> None:
    left = reasons(cheated())
    assert all("party 3" in left[i] for i in (0, 1, 2, 4))


def test_whoever_does_not_reveal_is_named() -> None:
    room = Room(COIN_FLIP)
    room.drops = lambda sender, receiver, message: (
        isinstance(message, Items) and any((item.kind, item.party) == ("reveal", 3) for item in message.items)
    )
    room.open().run()
    left = reasons(room)
    assert set(left) >= {0, 1, 2, 4}
    assert all(left[i].endswith("was not revealed by party 3") for i in (0, 1, 2, 4))


def test_whoever_does_not_commit_is_named() -> None:
    room = Room(COIN_FLIP).open(0, 1, 2, 4).run()
    left = reasons(room)
    assert set(left) == {0, 1, 2, 4}
    assert all(reason.endswith("nothing was committed to by party 3") for reason in left.values())


def test_a_silent_party_ends_the_coin_flip_at_the_deadline() -> None:
    room = Room(COIN_FLIP).open(0, 1, 2, 4).run(until=START + PACED.period - 0.1)
    assert not reasons(room)
    room.run(until=START + PACED.period + 0.1)
    assert set(reasons(room)) == {0, 1, 2, 4} and all("3" in reason for reason in reasons(room).values())


def test_an_offer_that_comes_before_the_seed_is_known_is_kept() -> None:
    """Its sender may know the seed already, and does not make it again; only the latest of each peer is kept."""
    room = Room(COIN_FLIP)
    room.drops = lambda sender, receiver, message: True
    party = room.open().parties[1]
    assert party.ledger.topology is None
    for t in (1, 2):
        assert not party.receive(room.now, 0, offer_of(room, t, 0, to=1)).log_events
    assert list(party.transfers._early) == [(2, 0)]
    for t in (0, COIN_FLIP.rounds + 1):
        assert party.receive(room.now, 0, offer_of(room, t, 0, to=1)).log_events
    assert list(party.transfers._early) == [(2, 0)]


# --- a party that commits twice ---------------------------------------------------------------------------------------


def two_faced(naming: bool) -> Room:
    """Party 3 has shown one commitment to parties 0 and 1, and another to 2 and 4; it confirms what each holds."""
    room, liar = Room(COIN_FLIP).open(0, 1, 2, 4), foreign(COIN_FLIP, 3)
    secrets = [b"one secret".ljust(32), b"another".ljust(32)]
    commits = [liar.sign("commit", commitment(COIN_FLIP.id, 3, each)) for each in secrets]
    faces = {0: 0, 1: 0, 2: 1, 4: 1}
    if not naming:  # the others never hear of the second one
        room.drops = lambda sender, receiver, message: (
            isinstance(message, Items) and any((item.kind, item.party) == ("commit", 3) for item in message.items)
        )
    for i, face in faces.items():
        room.hand(3, i, Items([commits[face]]))
    room.run(until=START - 1.0)
    for i, face in faces.items():
        confirmed = room.parties[i].signed_items.by_kind["confirm"][i]
        room.hand(3, i, Items([liar.sign("confirm", confirmed.body), liar.sign("reveal", secrets[face])]))
    return room


def test_whoever_commits_to_two_secrets_learns_nobody_elses() -> None:
    """Else it would choose the seed of one half when it knows the secrets of all."""
    room = two_faced(naming=True).run()
    revealed = {item.party for _, m in room.said if isinstance(m, Items) for item in m.items if item.kind == "reveal"}
    assert revealed <= {3}
    left = reasons(room)
    assert set(left) == {0, 1, 2, 4} and not any(party.ledger.seed for party in room.parties.values())
    words = "the coin flip for the public seed failed: party 3 committed to two different secrets"
    assert set(left.values()) == {words}


def test_parties_that_hold_other_commitments_are_named_if_it_is_not_known_whose() -> None:
    left = reasons(two_faced(naming=False).run())
    assert left[0].endswith("party 2, party 4 hold other commitments than this party")
    assert left[4].endswith("party 0, party 1 hold other commitments than this party")


def test_nobody_reveals_before_all_have_said_that_they_hold_the_same_commitments() -> None:
    room = Room(COIN_FLIP)
    room.drops = lambda sender, receiver, message: (
        isinstance(message, Items)
        and any(item.kind in ("confirm", "reveal") and item.party == 2 for item in message.items)
    )
    room.open().run()
    left = reasons(room)
    assert all(left[i].endswith("the commitments were not confirmed by party 2") for i in (0, 1, 3, 4))
    said = {item.party for _, m in room.said if isinstance(m, Items) for item in m.items if item.kind == "reveal"}
    assert said <= {2}  # it has heard of all others


def test_an_agreed_seed_needs_no_coin_flip_and_the_loss_is_asked_for_at_once() -> None:
    room = Room(PACED)
    room.perform_plans = False
    effects = room.make(0).open(room.now, noisy(PACED, 0), masks(0), secret(0), sealing(0))
    assert room.parties[0].ledger.seed == PACED.seed and effects.plan
    assert not any(room.parties[0].signed_items.by_kind[kind] for kind in ("commit", "confirm", "reveal"))


def test_the_loss_is_asked_for_once_the_seed_is_drawn_and_again_after_a_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room = Room(COIN_FLIP)
    assert not room.make(0).open(room.now, noisy(COIN_FLIP, 0), masks(0), secret(0), sealing(0)).plan
    asked: list[int] = []
    room = Room(COIN_FLIP)
    perform = room.perform

    def noting(i: int, effects: Effects) -> None:
        asked.extend([i] * effects.plan)
        perform(i, effects)

    monkeypatch.setattr(room, "perform", noting)
    room.open().run(until=START - 1.0)
    assert sorted(asked) == list(range(N))
    room.kill(2)
    room.recover(2)
    assert sorted(asked) == sorted([*range(N), 2])


def test_whoever_comes_back_with_the_seed_still_owes_its_part_to_the_others() -> None:
    room = Room(COIN_FLIP).open().run(until=START - 1.0)
    room.kill(2)
    room.recover(2)
    items = room.parties[2].signed_items.by_kind
    assert items["commit"][2].body == commitment(COIN_FLIP.id, 2, secret(2)) and items["reveal"][2].body == secret(2)


def test_what_is_confirmed_is_the_hash_of_the_session_and_all_commitments_in_order() -> None:
    room = Room(COIN_FLIP).open().run(until=START - 1.0)
    listed = b"".join(commitment(COIN_FLIP.id, party, secret(party)) for party in range(N))
    expected = sha256(b"inca-commitments/1" + COIN_FLIP.id + listed).digest()
    for party in room.parties.values():
        assert {item.body for item in party.signed_items.by_kind["confirm"].values()} == {expected}
