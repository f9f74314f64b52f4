"""`inca node keygen`: a party's identity."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from inca.cli.node.card import reached
from inca.cli.options import CardAddresses, NewFile
from inca.cli.printing import print_json, print_next, print_text


def keygen(
    name: Annotated[str, Parameter(help="What the others call this party.")],
    /,
    *,
    output: NewFile,
    where: CardAddresses = CardAddresses(),
) -> None:
    """Create a party's identity: a private key that stays on this machine, and a public card for the others.

    *identity.pem* is the key, readable by its owner alone; nothing is ever overwritten. *card.json* goes to whoever
    keeps the roster. Read the fingerprint to the others over a channel that you trust, such as the telephone: nothing
    else tells them that the card is yours.

    A party that the others can connect to says where, with --host and --port. One that may only connect outwards names
    a relay, with --relay, or nothing if the roster names relays for all.

    Example:  inca node keygen "St. Anna" --host anna.example.org --port 7001 --out anna

    Behind a firewall:  inca node keygen "St. Anna" --relay wss://relay.example.org/inca --out anna
    """
    from inca.network.membership.identity import CARD_FILE, KEY_FILE, Identity

    out = output.out
    card = Identity.create(name).write(out, *where.addresses)
    report = {"name": name, "addresses": card.addresses, "fingerprint": card.fingerprint}
    report |= {"identity": str(out / KEY_FILE), "card": str(out / CARD_FILE)}
    if output.json:
        print_json(report)
        return
    print_text(f"The key of {name} is in {out / KEY_FILE}: keep it here and to yourself.")
    print_text(f"Its card for the others is {out / CARD_FILE}.")
    print_text(reached(card.addresses))
    print_text(f"Its fingerprint, to be compared by telephone: {card.fingerprint}")
    print_next(f"send {out / CARD_FILE} to whoever keeps the roster, for inca node roster add")
