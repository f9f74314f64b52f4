"""From the parties' accounts to the execution that really happened, in the form that the accountant reads.

Each transfer was credited in its round, or kept (it never left), or came back, or is known to be lost, or is
unresolved: then neither end is left to tell. Whatever was offered and not credited counts as seen by its receiver; and
if its share was not back in its own round, as known to the adversary, which makes it irrelevant where the share is (see
the page on accounting).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from inca.errors import InvalidPeerMessage
from inca.network.protocol.messages import ACKED, BACK, NOBODY, OPEN, Account
from inca.network.protocol.session import SessionConfig, Topology
from inca.network.protocol.signed_items import Digest
from inca.protocol.execution import Execution
from inca.protocol.presence import Presence
from inca.protocol.schedules import ExplicitSchedule
from inca.protocol.undelivered import Undelivered


@dataclass(frozen=True, eq=False)
class RealizedExecution:
    """The realized execution, as the digests of a session report it.

    Args:
        execution: Everything public about the run, for the accountant.
        unresolved: The transfers whose fate nobody who is left can tell, as (round, sender, slot, receiver).
        intended: The schedule as it was drawn.
        reported: The parties that gave a digest.
        last_known_rounds: For the others, the last round of which peers have an account.
        exact: False if a vanished party's share turned up of which there is no account.
    """

    execution: Execution
    unresolved: tuple[tuple[int, int, int, int], ...]
    intended: Topology
    reported: frozenset[int]
    last_known_rounds: dict[int, int]
    exact: bool

    @property
    def unresolved_weight(self) -> float:
        """The weight of the unresolved transfers, in units of one party's value."""
        share = self.intended.schedule.even_share or 0.0
        history = list(self.execution.weight_history()) if self.unresolved else []
        return sum(float(history[t - 1][sender]) * share for t, sender, _, _ in self.unresolved)


def realize(
    session: SessionConfig, topology: Topology, digests: Mapping[int, Digest], published: set[int] | None = None
) -> RealizedExecution:
    """Put the digests together.

    Args:
        session: The terms of the session.
        topology: The schedule as it was drawn.
        digests: The digests by party.
        published: The parties whose final message counts; by default all that were present at the end.

    Returns:
        The realized execution, and what the digests leave open.
    """
    accounts = {party: digest.account for party, digest in digests.items()}
    vanished = _last_known_accounts(session, topology, digests)
    credited = {entry: j for j, account in (accounts | vanished).items() for entry in account.credited}
    everyone, exact = _completed(topology, accounts, vanished, credited)
    receivers = np.full((session.rounds, session.parties, session.receivers), -1, dtype=np.int32)
    present = np.zeros((session.rounds + 1, session.parties), dtype=bool)
    present[0] = True
    undelivered: list[Undelivered] = []
    unresolved: list[tuple[int, int, int, int]] = []

    for i, account in everyone.items():
        for t, fates in zip(account.present, account.fates, strict=True):
            present[t, i] = True
            for slot, fate in enumerate(fates):
                j = topology.receivers[t][i][slot]
                if (t, i, slot) in credited:
                    receivers[t - 1, i, slot] = j
                elif fate > OPEN:
                    undelivered.append(Undelivered(t, i, j, fate - BACK))
                elif fate == ACKED and j not in accounts:
                    receivers[t - 1, i, slot] = j  # the receiver said so before it vanished
                    present[t, j] = True
                elif fate != NOBODY:
                    undelivered.append(Undelivered(t, i, j, 0))
                    if not (j in accounts or (j in vanished and vanished[j].last > t)):
                        unresolved.append((t, i, slot, j))
    for (t, i, _), j in sorted(credited.items()):
        if not present[t, i]:
            # A vanished sender, of whose rounds before this one nobody knows: a known message, wherever its share is.
            present[t, i] = True
            undelivered.append(Undelivered(t, i, j, 0))
    last = present[session.rounds]
    counted = np.zeros(session.parties, dtype=bool)
    counted[list(published if published is not None else set(accounts))] = True
    execution = Execution(
        ExplicitSchedule(receivers),
        session.injection,
        Presence.explicit(present),
        published=last & counted,
        undelivered=undelivered,
    )
    last_known_rounds = {party: account.last for party, account in vanished.items()}
    reported = frozenset(accounts)
    return RealizedExecution(execution, tuple(sorted(unresolved)), topology, reported, last_known_rounds, exact)


def _last_known_accounts(
    session: SessionConfig, topology: Topology, digests: Mapping[int, Digest]
) -> dict[int, Account]:
    """Return the latest account that anyone has of each party without a digest; impossible ones are left out."""
    latest: dict[int, Account] = {}
    for _, digest in sorted(digests.items()):
        for party, account in digest.last_known_accounts:
            if party in digests or (party in latest and account.last <= latest[party].last):
                continue
            with suppress(InvalidPeerMessage):
                check_account(session, topology, party, account)
                latest[party] = account
    return latest


def _completed(
    topology: Topology,
    accounts: Mapping[int, Account],
    vanished: Mapping[int, Account],
    credited: Mapping[tuple[int, int, int], int],
) -> tuple[dict[int, Account], bool]:
    """Add the rounds of vanished parties that follow their last account and of which a receiver was credited.

    Return also whether that tells all about what they sent: not if rounds before are missing, nor if it is unknown
    what they were credited, or whether an open share came back, since their last account.
    """
    completed, exact = {**accounts, **vanished}, True
    for t, i, _ in sorted(credited):
        account = completed.get(i, Account([], [], []))
        if t in account.present:
            continue
        open_since = any(
            fate == OPEN and (r, i, slot) not in credited
            for r, fates in zip(account.present, account.fates, strict=True)
            for slot, fate in enumerate(fates)
        )
        exact &= (
            t == account.last + 1 and not open_since and _inflow_known(topology, accounts, credited, i, account.last)
        )
        if t == account.last + 1:
            fates = [ACKED if (t, i, slot) in credited else OPEN for slot in range(topology.schedule.slots)]
            completed[i] = Account([*account.present, t], [*account.fates, fates], account.credited)
    return completed, exact


def _inflow_known(
    topology: Topology,
    accounts: Mapping[int, Account],
    credited: Mapping[tuple[int, int, int], int],
    i: int,
    t: int,
) -> bool:
    """Whether everyone who was to send to party i in round t has reported what became of it."""
    for sender, slot in topology.senders[t][i] if t else ():
        if (t, sender, slot) in credited:
            continue
        account = accounts.get(sender)
        if account is None or (t in account.present and account.fates[account.present.index(t)][slot] == OPEN):
            return False
    return True


def check_account(session: SessionConfig, topology: Topology, party: int, account: Account) -> None:
    """Refuse an account that no party following the protocol could have.

    Args:
        session: The terms of the session.
        topology: The schedule as it was drawn.
        party: Whose account it is.
        account: The account.

    Raises:
        InvalidPeerMessage: The account contradicts the session, the schedule, or itself.
    """
    rounds = account.present
    if party >= session.parties:
        raise InvalidPeerMessage(f"an account must be of a party from 0 to {session.parties - 1}, got {party}")
    whose = f"an account of party {party}"
    if sorted(set(rounds)) != rounds or (rounds and not 1 <= rounds[0] <= rounds[-1] <= session.rounds):
        raise InvalidPeerMessage(f"{whose} must list rounds from 1 to {session.rounds} in increasing order")
    if len(account.fates) != len(rounds) or any(len(fates) != session.receivers for fates in account.fates):
        raise InvalidPeerMessage(f"{whose} must have {session.receivers} offers in each of its rounds")
    for t, fates in zip(rounds, account.fates, strict=True):
        if any(fate > OPEN and not (t <= fate - BACK and fate - BACK in rounds) for fate in fates):
            raise InvalidPeerMessage(f"{whose} has a share that was back before it was sent, or in a round it missed")
    if len(set(account.credited)) < len(account.credited) or any(t not in rounds for t, _, _ in account.credited):
        raise InvalidPeerMessage(f"{whose} has a transfer that was credited twice, or in a round it missed")
    for t, sender, slot in account.credited:
        if sender >= session.parties or topology.receiver(t, sender, slot) != party:
            raise InvalidPeerMessage(f"{whose} has a credited transfer that the schedule does not have")
