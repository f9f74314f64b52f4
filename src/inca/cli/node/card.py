"""`inca node card`: a party's card, signed anew for other addresses."""

from __future__ import annotations

from inca.cli.options import CardAddresses, Json, PartyFolder
from inca.cli.printing import print_json, print_text


def card(*, party: PartyFolder, where: CardAddresses = CardAddresses(), output: Json = Json()) -> None:
    """Sign a card with other addresses: the party has moved, or is now reached through a relay. Its key stays the same.

    *card.json* is replaced, with all addresses that are given and no other. It goes to whoever keeps the roster, for
    `inca node roster add`, where it takes the place of the old card: that is another session, and all parties need the
    new roster. The fingerprint is that of before, so nobody needs to compare it again.

    Example:  inca node card --identity anna --relay wss://relay.example.org/inca
    """
    from inca.network.membership.identity import CARD_FILE, Identity

    identity = party.identity
    signed = Identity.read(identity).write_card(identity, *where.addresses)
    if output.json:
        report = {"name": signed.name, "addresses": signed.addresses, "fingerprint": signed.fingerprint}
        print_json(report | {"card": str(identity / CARD_FILE)})
        return
    print_text(f"The card of {signed.name} is {identity / CARD_FILE}, for `inca node roster add`.")
    print_text(reached(signed.addresses))
    print_text(f"Its fingerprint is that of before: {signed.fingerprint}")


def reached(addresses: tuple[str, ...]) -> str:
    """Say where a card's owner is reached.

    >>> reached(("anna.example.org:7001", "wss://relay.example.org/inca"))
    'The others reach it at anna.example.org:7001, then wss://relay.example.org/inca.'
    """
    if not addresses:
        return "It has no address: the roster must name a relay (`inca node roster init --relay`)."
    return f"The others reach it at {', then '.join(addresses)}."
