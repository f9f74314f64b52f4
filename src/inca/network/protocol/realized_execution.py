"""From the parties' accounts to the execution that really happened, in the form that the accountant reads.

Each transfer was credited in its round, or kept (it never left), or came back, or is known to be lost, or is in doubt:
then neither end is left to tell. Whatever was offered and not credited counts as seen by its receiver; and if its
share was not back in its own round, as known to the adversary, which makes it irrelevant where the share is (see the
page on accounting).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from inca.network.protocol.messages import ACKED, BACK, NOBODY, OPEN, Account, Nonsense
from inca.network.protocol.session import Session, Topology
from inca.network.protocol.signed_items import Digest
from inca.protocol.execution import Execution, Undelivered
from inca.protocol.presence import Presence
from inca.protocol.schedules import ExplicitSchedule


@dataclass(frozen=True, eq=False)
class Realised:
    """The execution, and the transfers whose fate nobody who is left can tell, as (round, sender, slot, receiver).

    `told` gave a digest; of the others, `heard` has the last round of which peers have an account. `exact` is false
    if a vanished party's share turned up of which there is no account.
    """

    execution: Execution
    doubts: tuple[tuple[int, int, int, int], ...]
    intended: Topology
    told: frozenset[int]
    heard: dict[int, int]
    exact: bool

    @property
    def doubtful_weight(self) -> float:
        """The weight that is in doubt, in units of one party's value."""
        share = self.intended.schedule.even_share or 0.0
        history = list(self.execution.weight_history()) if self.doubts else []
        return sum(float(history[t - 1][sender]) * share for t, sender, _, _ in self.doubts)


def realise(
    session: Session, topology: Topology, digests: Mapping[int, Digest], published: set[int] | None = None
) -> Realised:
    """Put the digests together. `published` are those whose final message counts (default: all present at the end)."""
    accounts = {party: digest.account for party, digest in digests.items()}
    vanished = _last_heard(session, topology, digests)
    credited = {entry: j for j, account in (accounts | vanished).items() for entry in account.credited}
    everyone, exact = _completed(topology, accounts, vanished, credited)
    receivers = np.full((session.rounds, session.parties, session.receivers), -1, dtype=np.int32)
    present = np.zeros((session.rounds + 1, session.parties), dtype=bool)
    present[0] = True
    undelivered: list[Undelivered] = []
    doubts: list[tuple[int, int, int, int]] = []

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
                        doubts.append((t, i, slot, j))
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
    heard = {party: account.last for party, account in vanished.items()}
    return Realised(execution, tuple(sorted(doubts)), topology, frozenset(accounts), heard, exact)


def _last_heard(session: Session, topology: Topology, digests: Mapping[int, Digest]) -> dict[int, Account]:
    """Return the latest account that anyone has of each party without a digest; nonsense is left out."""
    found: dict[int, Account] = {}
    for _, digest in sorted(digests.items()):
        for party, account in digest.heard:
            if party in digests or (party in found and account.last <= found[party].last):
                continue
            with suppress(Nonsense):
                check_account(session, topology, party, account)
                found[party] = account
    return found


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
    found, exact = {**accounts, **vanished}, True
    for t, i, _ in sorted(credited):
        account = found.get(i, Account([], [], []))
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
            found[i] = Account([*account.present, t], [*account.fates, fates], account.credited)
    return found, exact


def _inflow_known(
    topology: Topology,
    accounts: Mapping[int, Account],
    credited: Mapping[tuple[int, int, int], int],
    i: int,
    t: int,
) -> bool:
    """Whether everyone who was to send to party i in round t has told what became of it."""
    for sender, slot in topology.senders[t][i] if t else ():
        if (t, sender, slot) in credited:
            continue
        told = accounts.get(sender)
        if told is None or (t in told.present and told.fates[told.present.index(t)][slot] == OPEN):
            return False
    return True


def check_account(session: Session, topology: Topology, party: int, account: Account) -> None:
    """Refuse an account that no party following the protocol could have."""
    rounds = account.present
    if party >= session.parties:
        raise Nonsense(f"an account of party {party}, whom there is not")
    if sorted(set(rounds)) != rounds or (rounds and not 1 <= rounds[0] <= rounds[-1] <= session.rounds):
        raise Nonsense(f"an account of party {party} with rounds that there are not")
    if len(account.fates) != len(rounds) or any(len(fates) != session.receivers for fates in account.fates):
        raise Nonsense(f"an account of party {party} with more or fewer offers than receivers")
    for t, fates in zip(rounds, account.fates, strict=True):
        if any(fate > OPEN and not (t <= fate - BACK and fate - BACK in rounds) for fate in fates):
            raise Nonsense(f"an account of party {party} with a share that was back before it was sent, or too late")
    if len(set(account.credited)) < len(account.credited) or any(t not in rounds for t, _, _ in account.credited):
        raise Nonsense(f"an account in which party {party} was credited twice, or in a round that it missed")
    for t, sender, slot in account.credited:
        if sender >= session.parties or topology.receiver(t, sender, slot) != party:
            raise Nonsense(f"an account in which party {party} was credited what nobody was to send to it")
