"""Whether the others can reach a party at its relays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inca.network.addresses import Address
from inca.network.preflight.advice import ADVICE
from inca.network.preflight.checks import Check, fine
from inca.network.transport.failures import Failure, FailureCause


def check_relays(
    own: Sequence[Address], registered: set[Address], failures: Mapping[Address, Failure], seconds: float
) -> list[Check]:
    """Say of each relay of a party whether it is registered there, and if not, why.

    A relay is in the way only where it leaves the others no way to the party: another one, or an address of its own.

    Example:
        >>> relay = Address.parse("wss://relay.example.org/inca")
        >>> [check.text for check in check_relays([relay], {relay}, {}, 5.0)]
        ['registered at wss://relay.example.org/inca']
    """
    relays = [address for address in own if address.relayed]
    reachable = len(relays) < len(own) or bool(registered)
    checks = []
    for relay in relays:
        if relay in registered:
            checks.append(fine("relay", f"registered at {relay}"))
            continue
        failure = failures.get(relay, silence(relay, seconds))
        advice = ADVICE[failure.cause]
        text = f"not registered: {failure.detail}; {advice.text}"
        checks.append(Check("relay", "note" if reachable else "problem", text, advice.state, advice.fault))
    return checks


def silence(relay: Address, seconds: float) -> Failure:
    """Return what a relay says that has said nothing."""
    return Failure(FailureCause.RELAY_UNREACHABLE, f"the relay {relay} did not answer within {seconds:g} s")
