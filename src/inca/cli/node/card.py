"""`inca node card`: a party's card, signed anew for another address."""

from __future__ import annotations

from inca.cli.options import Address, Json, PartyFolder
from inca.cli.printing import print_json, print_text


def card(*, party: PartyFolder, address: Address, output: Json = Json()) -> None:
    """Sign a card with another address: the party has moved, or its card is of version 0.1. Its key stays the same.

    *card.json* is replaced. It goes to whoever keeps the roster, for `inca node roster add`, where it takes the place
    of the old card: that is another session, and all parties need the new roster. The fingerprint is that of before,
    so nobody needs to compare it again.

    Example:  inca node card --identity anna --host anna.example.org --port 7002
    """
    from inca.network.membership.identity import CARD_FILE, Identity

    identity = party.identity
    signed = Identity.read(identity).write_card(identity, address.host, address.port)
    if output.json:
        report = {"name": signed.name, "host": signed.host, "port": signed.port, "fingerprint": signed.fingerprint}
        print_json(report | {"card": str(identity / CARD_FILE)})
        return
    print_text(f"The card of {signed.name} at {signed.address} is {identity / CARD_FILE}, for `inca node roster add`.")
    print_text(f"Its fingerprint is that of before: {signed.fingerprint}")
