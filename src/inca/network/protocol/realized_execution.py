"""From the accounts of a cohort to the execution that really happened, in the form that the accountant reads.

Only the cohort's own digests count. Each transfer inside it was credited in its round, or kept (it never left), or came
back in its round, or is undone at settlement; whatever was offered and not credited counts as seen by its receiver.
What was exchanged with others is undone too, and they count as colluders, so that nothing need be known of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from inca.errors import InvalidPeerMessage
from inca.network.protocol.messages import ACKED, BACK, NOBODY, Account
from inca.network.protocol.session import SessionConfig, Topology
from inca.protocol.execution import Execution
from inca.protocol.injection import incremental_injection
from inca.protocol.presence import Presence
from inca.protocol.schedules import ExplicitSchedule
from inca.protocol.undelivered import Undelivered


@dataclass(frozen=True)
class Contradiction:
    """Two accounts that cannot both be true: a transfer of `sender` to `receiver` in `round`.

    `claim` is what the sender says, of which the receiver says the opposite: "acknowledged" or "voided".
    """

    round: int
    sender: int
    receiver: int
    claim: str


@dataclass(frozen=True, eq=False)
class RealizedExecution:
    """The realized execution, as the digests of a cohort report it, for the accountant."""

    execution: Execution  # its cohort is that of the digests
    contradictions: tuple[Contradiction, ...]

    @property
    def cohort(self) -> frozenset[int]:
        """The parties that settle."""
        assert self.execution.cohort is not None
        return frozenset(np.flatnonzero(self.execution.cohort).tolist())


def realize(session: SessionConfig, topology: Topology, accounts: Mapping[int, Account]) -> RealizedExecution:
    """Put the accounts of a cohort together."""
    credited = {(t, topology.senders[t][j]) for j, account in accounts.items() for t in account.credited}
    receivers = np.full((session.rounds, session.parties, 1), -1, dtype=np.int32)
    present = np.zeros((session.rounds + 1, session.parties), dtype=bool)
    present[0] = True
    undelivered: list[Undelivered] = []
    contradictions: list[Contradiction] = []
    for i, account in accounts.items():
        for t, fate in zip(account.present, account.fates, strict=True):
            j, present[t, i] = topology.receivers[t][i], True
            if (t, i) in credited:
                receivers[t - 1, i] = j
                if fate in (NOBODY, BACK):
                    contradictions.append(Contradiction(t, i, j, "voided"))
            elif fate != NOBODY:
                undelivered.append(Undelivered(t, i, j, t if fate == BACK else 0))
                if fate == ACKED and j in accounts:
                    contradictions.append(Contradiction(t, i, j, "acknowledged"))
    for t, i in sorted(credited):
        if i in accounts and t not in accounts[i].present:
            contradictions.append(Contradiction(t, i, topology.receivers[t][i], "voided"))
    cohort = np.zeros(session.parties, dtype=bool)
    cohort[list(accounts)] = True
    execution = Execution(
        ExplicitSchedule(receivers),
        incremental_injection(session.rounds),
        Presence.explicit(present),
        undelivered=undelivered,
        cohort=cohort,
    )
    return RealizedExecution(execution, tuple(contradictions))


def check_account(session: SessionConfig, party: int, account: Account) -> None:
    """Refuse an account that no party following the protocol could have."""
    rounds = account.present
    whose = f"an account of {session.name(party)}"
    if sorted(set(rounds)) != rounds or (rounds and not 1 <= rounds[0] <= rounds[-1] <= session.rounds):
        raise InvalidPeerMessage(f"{whose} must list rounds from 1 to {session.rounds} in increasing order")
    if len(account.fates) != len(rounds) or any(fate > BACK for fate in account.fates):
        raise InvalidPeerMessage(f"{whose} must have an offer of a known fate in each of its rounds")
    if sorted(set(account.credited) & set(rounds)) != account.credited:
        raise InvalidPeerMessage(f"{whose} must list credits of its rounds in increasing order")
