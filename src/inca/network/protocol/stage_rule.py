"""What a row of the stage table says (`stages`), and the components of a party on which its functions act."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from math import inf
from types import UnionType
from typing import Literal

from inca.network.protocol.agreement.agenda import Agenda
from inca.network.protocol.agreement.coin_flip import CoinFlip
from inca.network.protocol.agreement.consensus import Consensus
from inca.network.protocol.anti_entropy import AntiEntropy
from inca.network.protocol.context import PartyContext
from inca.network.protocol.finalization import Finalization
from inca.network.protocol.joining import Joining
from inca.network.protocol.ledger import Ledger
from inca.network.protocol.messages import Message, Seen
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import ONCE, Kind
from inca.network.protocol.transfers import Transfers

Stage = Literal[
    "gathering", "asking", "rounds", "digests", "agreeing", "assessing", "opening", "serving", "over", "left"
]
_FIRST_PROPOSERS = 2  # whose proposals are to be expected
_FIRST_RETRY_PERIODS, _MAX_RETRY_PERIODS = 1 / 32, 1 / 4  # after which something without an answer is sent again


@dataclass
class PartyComponents:
    """The components of a party, on which the functions of the table act, and where it is in its stage."""

    context: PartyContext
    coin_flip: CoinFlip
    joining: Joining
    transfers: Transfers
    finalization: Finalization
    agenda: Agenda
    consensus: Consensus
    anti_entropy: AntiEntropy
    entered: float = 0.0
    """When the stage began."""
    retry_at: float = inf
    """When that which has no answer is sent again."""
    retry_pause: float = 0.0
    serve_s: float = 0.0
    """For how many seconds others are served at least, if somebody may lack something."""

    @property
    def session(self) -> SessionConfig:
        """The terms of the session."""
        return self.context.session

    @property
    def ledger(self) -> Ledger:
        """The ledger of the party."""
        return self.context.ledger

    @property
    def up(self) -> int:
        """How many parties are up, as far as this one knows, itself included."""
        return len(self.context.others - set(self.context.down)) + 1

    @property
    def partners(self) -> list[int]:
        """All peers: those first that propose, or pass items on, then in order of the rounds in which they matter."""
        me, topology = self.context.me, self.context.topology
        peers = [*self.consensus.order[:_FIRST_PROPOSERS], *sorted(self.anti_entropy.neighbours)]
        for receivers, senders in zip(topology.receivers[1:], topology.senders[1:], strict=True):
            peers += [receivers[me], senders[me]]
        return [peer for peer in dict.fromkeys([*peers, *range(self.session.parties)]) if peer != me]

    def missing(self, kind: Kind) -> set[int]:
        """Return the parties whose item of a kind is missing."""
        return self.context.signed_items.missing(kind)

    def next_round(self, now: float) -> int:
        """Return the round to begin next; one above T means that there is none."""
        return max(self.ledger.round + 1, self.session.clock_round(now), self.joining.entry)

    def seen_of(self, peer: int, now: float, *, rounds_over: bool) -> Seen:
        """Return what a peer that was away is told: what it has said here, and in which round this party is."""
        after_last, items = self.session.rounds + 1, self.context.signed_items.by_kind
        signed = [items[kind][peer].proof for kind in ONCE if peer in items[kind]]
        current = max(0, self.ledger.round, min(self.session.clock_round(now), after_last))
        seen = self.transfers.seen_of(peer)
        return Seen(seen, after_last if rounds_over else current, self.ledger.since, signed)

    def start_stage(self, now: float) -> None:
        """Begin to count the time of a stage."""
        self.entered = self.retry_at = now
        self.retry_pause = _FIRST_RETRY_PERIODS * self.session.period
        self.anti_entropy.start(now)

    def back_off(self, now: float) -> None:
        """Wait for answers, and longer each time."""
        self.retry_at = now + self.retry_pause
        self.retry_pause = min(2 * self.retry_pause, _MAX_RETRY_PERIODS * self.session.period)


Time = Callable[[PartyComponents], float]
Action = Callable[[PartyComponents, float], None]


def never(_: PartyComponents) -> float:
    """Return a time that does not come."""
    return inf


def at_once(_: PartyComponents) -> float:
    """Return a time that has come."""
    return -inf


def periods(count: float) -> Time:
    """Return the time `count` periods after the beginning of the stage."""
    return lambda party: party.entered + count * party.session.period


def retry_time(party: PartyComponents) -> float:
    """Return when that which has no answer is sent again."""
    return party.retry_at


def again(send: Callable[[PartyComponents], None]) -> Action:
    """Return the work of sending that which has no answer, less and less often."""

    def work(party: PartyComponents, now: float) -> None:
        party.back_off(now)
        send(party)

    return work


@dataclass(frozen=True)
class StageRule:
    """One row of the table: a stage."""

    successors: tuple[Stage, ...]  # none if it is the last; the first is the usual one
    deadline: Time = never  # when it ends at the latest
    earliest: Time = at_once  # before this it does not end early
    waits_for: Callable[[PartyComponents], AbstractSet[int]] = field(default=lambda party: frozenset())  # whose word
    grace: Time = at_once  # until when those who are gone are waited for, too
    until_decision: bool = False  # whether it ends when something is decided
    until_opened: bool = False  # whether it ends when the deposits are opened
    then: Callable[[PartyComponents, float], Stage] | None = None  # done at its end; says which successor follows
    enter: Action = field(default=lambda party, now: None)  # done when it begins
    work: Action = field(default=lambda party, now: None)  # done while it lasts, when it is due
    due: Time = never
    gossips: tuple[Kind, ...] = ()  # signed items that parties in it lack; without any, it does not talk about items
    gossips_while: Callable[[PartyComponents], bool] = field(default=lambda party: True)
    calls: tuple[str, ...] = ()  # of the driver, for which it waits
    ignores: type[Message] | UnionType = Seen  # messages that mean nothing in it
    rounds_over: bool = False
    connected_is_up: bool = False  # whether a peer that is connected counts as up; later it must speak first
    outcome_known: bool = False  # whether it is known how the session ends for this party
    logged: bool = True  # its beginning; rounds and the reason for leaving are logged by themselves

    @property
    def terminal(self) -> bool:
        """Whether nothing follows."""
        return not self.successors
