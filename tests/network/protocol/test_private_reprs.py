"""The `repr` of anything that holds values, noise, shares or secrets shows sizes, never bytes or numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from helpers.network_faults import without_faults
from helpers.parties import PACED, START, Room, masks, noisy, secret
from helpers.simulated_network import SimulatedNetwork
from inca.network.lattice.discrete_gaussian import Keystream
from inca.network.protocol.context import Effects
from inca.network.protocol.messages import Item, Items, Lock, Offer, Proposal, encode, pack
from inca.network.protocol.opening.cohort_keys import CohortSecrets
from inca.network.protocol.opening.deposits import Deposit
from inca.network.protocol.records import Accepted, Began, Credited, Opened, Secret, Signed
from inca.network.protocol.signed_items import Key

PRIVATE = b"private!"
NUMBER = int.from_bytes(PRIVATE, "little")
ITEM = Item("key", 1, PRIVATE, b"signature", PRIVATE)
THINGS: dict[str, tuple[Callable[[], object], str]] = {
    "an opening": (
        lambda: Opened(PRIVATE, 4 * PRIVATE, 4 * PRIVATE),
        "Opened(noisy=<8 bytes>, masks=<32 bytes>, secret=<32 bytes>, late=False)",
    ),
    "the beginning of a round": (lambda: Began(2, PRIVATE), "Began(round=2, share=<8 bytes>)"),
    "a credit": (
        lambda: Credited(2, PRIVATE),
        "Credited(round=2, payload=<8 bytes>, proof=None)",
    ),
    "an offer": (lambda: Offer(2, PRIVATE), "Offer(round=2, payload=<8 bytes>, signature=<0 bytes>)"),
    "an item": (lambda: ITEM, "Item(kind='key', party=1, body=<8 bytes>, signature=<9 bytes>, sealed=<8 bytes>)"),
    "an acceptance": (
        lambda: Accepted(1, Lock(7, Proposal("cohort", []), []), [ITEM]),
        "Accepted(instance=1, lock=Lock(ballot=7, proposal=Proposal(step='cohort', contents=[]), votes=[]), "
        f"items=[{ITEM}])",
    ),
    "a signed item": (lambda: Signed(ITEM, 2), f"Signed(item={ITEM}, cohort=2)"),
    "items": (lambda: Items([ITEM]), f"Items(items=[{ITEM}])"),
    "a deposit": (
        lambda: Deposit(1, PRIVATE, PRIVATE, PRIVATE, PRIVATE),
        "Deposit(cohort=1, hash=<8 bytes>, sealed=<8 bytes>, ephemeral=<8 bytes>, shares=<8 bytes>)",
    ),
    "a trustee's key": (lambda: Key(1, PRIVATE), "Key(cohort=1, private=<8 bytes>)"),
    "the secrets of a cohort, written down": (lambda: Secret(1, PRIVATE), "Secret(cohort=1, state=<8 bytes>)"),
    "the secrets of a cohort": (lambda: CohortSecrets(4 * PRIVATE, 1), "CohortSecrets(cohort 1)"),
    "a keystream": (lambda: Keystream(4 * PRIVATE, b"masks"), "Keystream(label=b'masks', 0 words read)"),
    "effects": (
        lambda: Effects([Began(2, PRIVATE)], [(1, Offer(2, PRIVATE))]),
        "Effects(records=[Began(round=2, share=<8 bytes>)], "
        "sends=[(1, Offer(round=2, payload=<8 bytes>, signature=<0 bytes>))], "
        "log_events=[], violations=[], assess=None, plan=False)",
    ),
}


@pytest.mark.parametrize("name", THINGS)
def test_the_repr_shows_sizes_only(name: str) -> None:
    make, expected = THINGS[name]
    assert repr(make()) == str(make()) == expected
    assert "private!" not in expected and str(NUMBER) not in expected


def test_a_running_party_shows_neither_its_balance_nor_its_secrets() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    party = room.parties[2]
    ledger = party.ledger
    hidden = [ledger.balance, ledger.injected, noisy(PACED, 2), *map(ledger.share, ledger.began), *ledger._drawn]
    numbers = {str(number) for vector in hidden for number in np.abs(vector).tolist() if number > 10}
    kept = party.ledger.secrets
    assert kept is not None
    of_cohort = [kept.state, kept.private_key, kept.dealing, kept.topup]
    private_bytes = [masks(2), secret(2), *of_cohort, *(pack(vector) for vector in hidden)]
    secrets = {repr(private)[2:-1] for private in private_bytes}
    for shown in (
        repr(ledger),
        repr(party),
        repr(party.context),
        repr(party),
        repr(room.journals[2]),
        repr(kept),
    ):
        assert not [number for number in numbers if number in shown]
        assert not [private for private in secrets if private in shown]
    assert repr(ledger) == "Ledger(party 2, round 2, 3 numbers, 0 open offers)"


def test_a_simulated_machine_shows_no_value() -> None:
    network = SimulatedNetwork(1, faults=without_faults())
    network.run()
    machine = network.machines[0]
    assert "noisy=<" in repr(machine) and str(abs(int(machine.noisy[0]))) not in repr(machine)


def test_the_bytes_are_still_there() -> None:
    assert PRIVATE in encode(Offer(2, PRIVATE))
