"""A party of a session as a pure state machine: events, time and randomness in; records and messages out.

The rule of every stage: go on as soon as everyone who is waited for has spoken or is known to be down, and at the
deadline at the latest.

| stage      | what happens                                                   | ends with                              |
|------------|----------------------------------------------------------------|----------------------------------------|
| gathering  | the public seed is tossed, unless it is given                  | the start                              |
| asking     | after a restart or a late start: what have others seen of me?  | rounds; left if the journal is behind  |
| rounds     | offers go out, offers are decided                              | round T over                           |
| settling   | open offers are asked about once more                          | the balance is sealed                  |
| digests    | who sent what to whom, from everyone                           | the execution is known                 |
| assessing  | the party's own loss on that execution is worked out           | its final message, or why not          |
| finals     | final messages are exchanged                                   | nobody is waited for any more          |
| agreeing   | more than half agree on which digests and final messages count | the result, or none                    |
| serving    | others are given what they lack                                | everyone has it                        |
| over, left | nothing                                                        |                                        |

The driver writes `Effects.records` durably, in one transaction, and only then sends `Effects.sends`. It never delivers
a message of an earlier life of a peer after one of a later life.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from math import inf
from typing import Literal

from inca.network.protocol.anti_entropy import Talk
from inca.network.protocol.consensus import Agreement
from inca.network.protocol.context import Desk, Effects
from inca.network.protocol.finalization import Ending, Result
from inca.network.protocol.joining import Arrival, Refused
from inca.network.protocol.ledger import Ledger, Left, Opened, Record
from inca.network.protocol.messages import Agreeing, Ask, Message, Nonsense, Numbers, Offer, Seen, Talking, pack
from inca.network.protocol.session import Session
from inca.network.protocol.signed_items import Gossip, Sign, Verify
from inca.network.protocol.transfers import Transfers

Stage = Literal[
    "gathering", "asking", "rounds", "settling", "digests", "assessing", "finals", "agreeing", "serving", "over", "left"
]
_BEFORE_END = ("gathering", "asking", "rounds")
_TALKATIVE = ("digests", "assessing", "finals", "agreeing", "serving")
_FIRST_RETRY, _LAST_RETRY = 32, 4  # fractions of a period after which something without an answer is sent again


class Party:
    """Party number `me` of a session."""

    def __init__(self, session: Session, me: int, *, sign: Sign, verify: Verify, rng: random.Random) -> None:
        """Start with an empty ledger; `open` or `recover` comes next. `rng` only chooses whom to talk to."""
        self.session, self.me = session, me
        self.stage: Stage = "gathering"
        self.ledger = Ledger(session, me)
        self.gossip = Gossip(session, me, sign, verify)
        self._desk = Desk(session, me, self.ledger, self.gossip, rng)
        self._arrival = Arrival(self._desk)
        self._transfers = Transfers(self._desk)
        self._agreement = Agreement(self._desk)
        self._ending = Ending(self._desk)
        self._talk = Talk(self._desk, self._ending)
        self._cleared = False  # whether the loss at full attendance is known to be allowed
        self._asked_for_plan = False
        self._entered = self._retry = 0.0
        self._pause = 0.0  # until what had no answer is sent again

    # --- how a driver speaks to it ------------------------------------------------------------------------------

    def open(self, now: float, noisy: Numbers, masks: bytes, secret: bytes, *, began: float | None = None) -> Effects:
        """Begin with a value that has its independent noise already; `masks` and `secret` are 32 random bytes each.

        `began` is when this life began, by default now: after the start, it might not be the first one.
        """
        late = (now if began is None else began) >= self.session.start
        self._desk.record(Opened(pack(noisy), masks, secret, late))
        self._arrival.fresh = self._arrival.away = late
        return self._start(now)

    def recover(self, now: float, records: Iterable[Record]) -> Effects:
        """Come back with what the journal holds; raises `Broken` if it does not add up."""
        for record in records:
            self.ledger.apply(record)
        self._arrival.away = True
        opened = self.ledger.opened
        self._arrival.fresh = opened is not None and opened.late and self.ledger.since == 0
        self._ending.recover()
        if self.ledger.left is not None:
            self.stage, self._ending.reason = "left", self.ledger.left
        return self._start(now)

    def tick(self, now: float) -> Effects:
        """Let time pass; to be called at `wakeup` at the latest."""
        return self._advance(now)

    def receive(self, now: float, peer: int, message: Message) -> Effects:
        """Take a message of a peer. Nonsense is noted and changes nothing."""
        self._desk.down.discard(peer)
        if self.stage not in ("left", "over"):
            try:
                self._hear(now, peer, message)
            except Nonsense as error:
                self._desk.note("nonsense", peer=peer, what=str(error))
        return self._advance(now)

    def unsent(self, now: float, message: Message) -> Effects:
        """Take back a message of which certainly no byte has left."""
        if isinstance(message, Offer) and self.stage != "left":
            self._transfers.unsent(message)
        return self._advance(now)

    def down(self, now: float, peer: int) -> Effects:
        """Wait no longer for this peer until it is heard again."""
        self._desk.down.add(peer)
        return self._advance(now)

    def up(self, now: float, peer: int) -> Effects:
        """Expect to hear from this peer, if it is there in time; later it must speak before it is waited for."""
        if self.stage == "gathering":
            self._desk.down.discard(peer)
        return self._advance(now)

    def planned(self, now: float, refusal: str) -> Effects:
        """Take part, or leave if there is a reason to: what was to be worked out when the schedule became known."""
        if refusal and self.stage == "gathering":
            self._leave(refusal)
        self._cleared = True
        return self._advance(now)

    def assessed(self, now: float, refusal: str) -> Effects:
        """Publish the final message, or withhold it if there is a reason to (`refusal` is not empty)."""
        if self.stage == "assessing":
            self._ending.conclude(refusal)
            self._enter(now, "finals")
        return self._advance(now)

    def leave(self, reason: str) -> Effects:
        """Leave the session for good."""
        self._leave(reason)
        out, self._desk.out = self._desk.out, Effects()
        return out

    @property
    def wakeup(self) -> float:
        """When the party wants to be called next."""
        times = [self._deadline]
        if self.stage in ("rounds", "settling"):
            times.append(self._retry)
        if (self.stage == "settling" and self._transfers.unsettled() <= self._desk.down) or (
            self.stage == "serving" and self.gossip.without("done") <= self._desk.down
        ):
            times.append(self._graced)
        if self.stage == "asking":
            times.append(self._retry if self._arrival.unanswered else self.session.start)
        if self.stage == "rounds" and self.session.pace and not self._transfers.awaited():
            times.append(self._entered + self.session.pace)
        if self._talking:
            times.append(self._talk.next)
        if self.stage == "agreeing":
            times.append(self._agreement.wakeup)
        return min(times)

    @property
    def finished(self) -> bool:
        """Whether the party has nothing more to do for itself or for others."""
        return self.stage in ("left", "over")

    @property
    def result(self) -> Result | None:
        """What the session has come to, once it is known."""
        return self._ending.result

    @property
    def reason(self) -> str:
        """Why there is no result, or why the own final message was withheld."""
        return self._ending.reason

    # --- stages -------------------------------------------------------------------------------------------------

    def _start(self, now: float) -> Effects:
        self._arrival.commit()
        self._entered = self._retry = now
        self._talk.start(now)
        return self._advance(now)

    def _enter(self, now: float, stage: Stage) -> None:
        self.stage = stage
        self._entered = self._retry = now
        self._pause = self.session.period / _FIRST_RETRY
        self._talk.start(now)
        self._desk.note("stage", stage=stage, round=self.ledger.round)

    @property
    def _deadline(self) -> float:
        """When the stage ends at the latest."""
        session = self.session
        match self.stage:
            case "gathering":
                if self.ledger.topology is None:
                    return session.start + session.period
                return session.start if self._cleared else inf
            case "asking" if self._arrival.fresh:
                return session.deadline(session.rounds)  # it must hear all witnesses, as long as there are rounds
            case "asking":
                return max(self._entered + session.period, session.start)
            case "rounds":
                return min(session.deadline(self.ledger.round), self._entered + session.period)
            case stage:
                return self._entered + self._patience(stage) * session.period

    def _patience(self, stage: Stage) -> float:
        """How many periods a stage lasts at the latest."""
        if stage == "agreeing":
            return 3.0 if self._there >= self.session.quorum else 1.0
        # A party whose digest is here may wait for others' digests itself before it publishes its final message.
        slow = {"digests": 2.0, "finals": 4.0, "serving": 3.0}
        return inf if stage in ("assessing", "over", "left") else slow.get(stage, 1.0)

    @property
    def _there(self) -> int:
        """How many parties are there, as far as this one knows, itself included."""
        return len(self._desk.others - self._desk.down) + 1

    def _advance(self, now: float) -> Effects:
        """Go through all stages that are over, do what is due, and return what the event has led to."""
        before = None
        while before != (self.stage, self.ledger.round):
            before = (self.stage, self.ledger.round)
            self._step(now, late=now >= self._deadline)
        if self.stage == "agreeing":
            self._agreement.tick(now)
            self._step(now, late=now >= self._deadline)
        self._repeat(now)
        out, self._desk.out = self._desk.out, Effects()
        return out

    def _step(self, now: float, *, late: bool) -> None:
        match self.stage:
            case "gathering":
                self._gather(now, late=late)
            case "asking":
                self._ask(now, late=late)
            case "rounds":
                if late or (now >= self._entered + self.session.pace and not self._transfers.awaited()):
                    self._begin(now, max(self.ledger.round + 1, self.session.clock_round(now)))
            case "settling" | "digests" | "finals" | "agreeing" | "serving" if self._ending.decided():
                self._serve(now)
            case _:
                self._step_to_end(now, late=late)

    def _step_to_end(self, now: float, *, late: bool) -> None:
        missing = self.gossip.without
        match self.stage:
            case "settling":
                if late or self.ledger.sealed or self._transfers.unsettled() <= self._gone(now):
                    self._ending.seal(self._transfers.heard)
                    self._enter(now, "digests")
            case "digests":
                if late or missing("digest") - {self.me} <= self._desk.down:
                    self._enter(now, "assessing" if self._ending.assess() else "finals")
            case "finals":
                if late or not (self._ending.cohort & missing("final")) - self._desk.down:
                    self._agreement.enter(now)
                    self._enter(now, "agreeing")
            case "agreeing":
                if late:
                    self._ending.reason = self._ending.reason or (
                        f"no agreement: {self._there} of {self.session.parties} parties are there at the end, "
                        f"but {self.session.quorum} are needed for it"
                    )
                    self._serve(now)
            case "serving":
                if not missing("done"):
                    self._talk.farewell()
                    self.stage = "over"
                elif late or missing("done") <= self._gone(now):
                    self.stage = "over"

    @property
    def _graced(self) -> float:
        """Until when those who are down may come back: to answer while this party settles, for the result later."""
        return self._entered + self.session.period * (0.25 if self.stage == "settling" else 1.0)

    def _gone(self, now: float) -> AbstractSet[int]:
        """Return who is down and has had time to come back."""
        return self._desk.down if now >= self._graced else frozenset()

    def _serve(self, now: float) -> None:
        if self.me not in self.gossip.items["done"]:
            self._desk.publish("done", b"")
        self._enter(now, "serving")

    def _gather(self, now: float, *, late: bool) -> None:
        if self.ledger.topology is None:
            self._arrival.toss()
        if self.ledger.topology is not None and not self._asked_for_plan:
            self._desk.out.plan = self._asked_for_plan = True
        if self._cleared and (now >= self.session.start or self._arrival.away):
            if self._arrival.away:
                self._arrival.ask()
                self._enter(now, "asking")
            else:
                self._desk.down.clear()  # who was not there before the start may be there now
                self._begin(now, max(1, self.session.clock_round(now)))
        elif late and self.ledger.topology is None:
            self._leave(self._arrival.why_no_seed())

    def _ask(self, now: float, *, late: bool) -> None:
        if now < self.session.start:
            return
        try:
            t = self._arrival.entry(self.session.clock_round(now), late=late)
        except Refused as error:
            self._leave(str(error))
            return
        if t is not None:
            self._begin(now, t)

    def _begin(self, now: float, t: int) -> None:
        """Begin round t, or settle if there is no such round."""
        self._transfers.deciding = True
        if t <= self.session.rounds:
            self.stage, self._entered = "rounds", now
            self._pause = self.session.period / _FIRST_RETRY
            self._retry = now + self._pause
            self._transfers.begin(t)
        else:
            self._enter(now, "settling")
            self._transfers.decide_early(all_rounds=True)

    def _leave(self, reason: str) -> None:
        self._desk.record(Left(reason))
        self.stage, self._ending.reason = "left", reason
        self._desk.note("left", reason=reason)

    def _repeat(self, now: float) -> None:
        """Send again what had no answer, and speak to someone about items."""
        if self.stage in ("asking", "rounds", "settling") and now >= self._retry:
            self._retry = now + self._pause
            self._pause = min(2 * self._pause, self.session.period / _LAST_RETRY)
            match self.stage:
                case "asking":
                    for peer in sorted(self._arrival.unanswered):
                        self._desk.send(peer, Ask())
                case "rounds":
                    self._transfers.repeat()
                case "settling":
                    self._transfers.resolve(all_rounds=True)
        if self._talking:
            self._talk.tick(now, self._wanted())

    @property
    def _talking(self) -> bool:
        return self.stage in _TALKATIVE or (self.stage == "gathering" and self.ledger.topology is None)

    def _wanted(self) -> AbstractSet[int]:
        """Return whose item of this stage is missing."""
        missing = self.gossip.without
        match self.stage:
            case "gathering":
                return missing("commit") | missing("reveal")
            case "digests":
                return missing("digest")
            case "finals":
                return self._ending.cohort & missing("final")
            case "serving":
                return missing("done")
            case _:
                return set()

    # --- messages -----------------------------------------------------------------------------------------------

    def _hear(self, now: float, peer: int, message: Message) -> None:
        if peer not in self._desk.others:
            raise Nonsense("a message of nobody else")
        if isinstance(message, Ask):
            self._desk.down.add(peer)  # it is on its way back: to be waited for when it says something else
            if not (self.stage in ("gathering", "asking") and self._arrival.fresh):
                seen = self._transfers.seen_of(peer)
                self._desk.send(peer, Seen(seen, self._where(now), self.ledger.since))
        elif isinstance(message, Seen):
            self._hear_seen(peer, message)
        elif isinstance(message, Talking):
            self._talk.hear(now, peer, message)
        elif isinstance(message, Agreeing):
            if self.stage != "asking":
                self._agreement.hear(now, peer, message)
        else:
            away = self.stage == "asking" or (self.stage == "gathering" and self._arrival.away)
            self._transfers.hear(peer, message, away=away)

    def _where(self, now: float) -> int:
        """The round in which this party is; T+1 at the end."""
        if self.stage not in _BEFORE_END:
            return self.session.rounds + 1
        return max(0, self.ledger.round, min(self.session.clock_round(now), self.session.rounds + 1))

    def _hear_seen(self, peer: int, message: Seen) -> None:
        if self.stage == "asking":
            try:
                self._arrival.hear(peer, message)
            except Refused as error:
                self._leave(str(error))
