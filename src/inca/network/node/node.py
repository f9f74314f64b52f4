"""A party at work: the state machine with its journal on disk, the transport beneath it, and a clock.

Whatever happened since the last time is handed to the state machine at once; its records go to the journal in one
transaction, and only then are its messages sent.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from inca._base.types import Array
from inca._base.validation import InputError
from inca.network.membership.identity import Identity, verify
from inca.network.membership.roster import Roster
from inca.network.membership.tls import client_context, server_context
from inca.network.node.clock_check import check_clocks
from inca.network.node.event_log import Log, Status
from inca.network.node.journal import Journal, JournalError
from inca.network.node.loss_check import Judge, Verdict
from inca.network.node.session_setup import Setting
from inca.network.protocol.context import Effects
from inca.network.protocol.finalization import Result
from inca.network.protocol.ledger import Broken
from inca.network.protocol.messages import Nonsense, Nudge, Offer, decode, encode
from inca.network.protocol.party import Party
from inca.network.protocol.realized_execution import Realised
from inca.network.transport.events import Listener
from inca.network.transport.frames import Limits
from inca.network.transport.transport import Transport

_TOGETHER = 256  # events handed to the state machine before its records are written
_PROBE = encode(Nudge(0))  # there is no round 0 to speak of: it asks for nothing
_REMAINS = 2.0  # seconds that a party with a wrong clock can still be measured by the others
_ROOM = 2.0  # times the space that a journal is expected to need


@dataclass(frozen=True, eq=False)
class Ended:
    """How a party's session ended: with a result, or for a reason."""

    result: Result | None
    reason: str
    verdict: Verdict | None = None
    judge: Judge | None = None
    stopped: bool = False
    """Whether it was stopped and can go on when it is started again."""


class Node:
    """One party of a session; `run` takes part until the end."""

    def __init__(
        self,
        setting: Setting,
        identity: Identity,
        folder: Path,
        value: Callable[[], Array],
        *,
        clip: bool = False,
        listen: tuple[str, int] | None = None,
        echo: Callable[[dict[str, Any]], None] | None = None,
        conclude: Callable[[Ended], None] | None = None,
    ) -> None:
        """Take part in the setting's session; `folder` holds what must outlive the process. `value` is read if needed.

        `conclude` is called as soon as it is known how the session ends, while others are still served.

        Refuses an identity that the roster does not have, and a session that has ended here before.
        """
        me = setting.roster.index(identity.certificate)
        if me is None:
            raise InputError(f"the identity of {identity.name!r} is not in the roster {setting.roster.name!r}")
        self.setting, self.identity, self.me, self.folder = setting, identity, me, folder
        self._value, self._clip, self._listen, self._echo, self._concludes = value, clip, listen, echo, conclude
        self._events: deque[Callable[[float], Effects]] = deque()
        self._woken = asyncio.Event()
        self._verdict: Verdict | None = None
        self._judge: Judge | None = None
        self._stopping = False

    # --- from outside -------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop soon, cleanly; the party can go on when it is started again."""
        self._stopping = True
        self._woken.set()

    async def run(self) -> Ended:
        """Take part in the session."""
        if (self.folder / "ended.json").exists():
            raise InputError(f"the session has ended here before ({self.folder}): a session is never held twice")
        began = time.time()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        session, roster = self.setting.session, self.setting.roster
        check_room(self.folder, self.setting)
        self.journal = Journal(self.folder / "journal.db", session=session.id, party=self.me)
        self._log = Log(self.folder / "log.jsonl", roster.names, self._echo)
        self._status = Status(self.folder / "status.json")
        try:
            records = self.journal.read()
            noisy = self.setting.noisy(self._value(), clip=self._clip) if not records else None
            self._party = Party(
                session, self.me, sign=self.identity.sign, verify=self._signed, rng=random.SystemRandom()
            )
            await asyncio.to_thread(self._warm_up)
            await self._open_transport()
            try:
                await self._check_clocks()
                if records:
                    self._log.write("comes back", records=len(records))
                    self._commit(self._party.recover(time.time(), records))
                elif noisy is not None:
                    secrets = os.urandom(32), os.urandom(32)
                    self._commit(self._party.open(time.time(), noisy, *secrets, began=began))
                await self._take_part()
            finally:
                await self._transport.close()
        except Broken as error:
            raise JournalError(str(error)) from None
        finally:
            self._log.write("stopped" if self._stopping else "ended")
            self._log.close()
            self.journal.close()
        return self._ended()

    # --- the loop -----------------------------------------------------------------------------------------------

    async def _check_clocks(self) -> None:
        try:
            await check_clocks(self._transport, self.setting, self.me, self._log.write)
        except InputError as error:
            self._log.write("refuses to start", reason=str(error))
            await asyncio.sleep(_REMAINS)
            raise

    async def _take_part(self) -> None:
        party = self._party
        while not party.finished and not self._stopping:
            if not self._events:
                await self._sleep(party.wakeup - time.time())
            effects = Effects()
            for _ in range(min(len(self._events), _TOGETHER)):
                effects.extend(self._events.popleft()(time.time()))
            effects.extend(party.tick(time.time()))
            self._commit(effects)
            await self._conclude()
            await asyncio.sleep(0)  # let the transport read and write
        await self._conclude()  # who comes after the end of everything has left before it began
        self._show(now=True)

    async def _conclude(self) -> None:
        """Tell how the session ends, once, as soon as that is known."""
        if self._concludes is not None and self._party.stage in ("serving", "over", "left"):
            conclude, self._concludes = self._concludes, None
            await asyncio.to_thread(conclude, self._ended())

    def _ended(self) -> Ended:
        party = self._party
        going_on = party.stage not in ("serving", "over", "left")
        return Ended(party.result, party.reason, self._verdict, self._judge, going_on)

    async def _sleep(self, seconds: float) -> None:
        self._woken.clear()
        if seconds > 0:
            timer = asyncio.get_running_loop().call_later(min(seconds, 3600.0), self._woken.set)
            await self._woken.wait()
            timer.cancel()

    def _commit(self, effects: Effects) -> None:
        """Make the records durable, and only then send anything."""
        self.journal.append(effects.records)
        for peer, message in effects.sends:
            self._transport.send(peer, encode(message), message if isinstance(message, Offer) else None)
        for event, fields in effects.notes:
            self._log.write(event, **fields)
        if effects.plan:
            self._work(self._plan, self._party.planned)
        if effects.assess is not None:
            self._work(partial(self._assess, effects.assess), self._party.assessed)
        self._show()

    def _post(self, event: Callable[[float], Effects]) -> None:
        self._events.append(event)
        self._woken.set()

    def _show(self, *, now: bool = False) -> None:
        party = self._party
        fields = {
            "session": self.setting.session.id.hex(),
            "party": self.identity.name,
            "stage": party.stage,
            "round": party.ledger.round,
            "rounds": self.setting.session.rounds,
            "attended": max(0, party.ledger.attended - 1),
            "open_offers": len(party.ledger.open),
            "connected": len(self._transport.connected),
            "reason": party.reason,
        }
        self._status.show(fields, now=now)

    # --- what the transport tells -------------------------------------------------------------------------------

    def received(self, peer: int, frame: bytes) -> None:
        """Take a frame of a peer."""
        try:
            message = decode(frame)
        except Nonsense as error:
            self._log.write("nonsense", peer=peer, what=str(error))
            return
        self._post(lambda now: self._party.receive(now, peer, message))

    def unsent(self, peer: int, token: object) -> None:
        """Take back an offer of which no byte has left."""
        if isinstance(token, Offer):
            self._post(lambda now: self._party.unsent(now, token))

    def down(self, peer: int, reason: str) -> None:
        """Learn that a peer cannot be reached."""
        self._log.write("down", peer=peer, reason=reason)
        self._post(lambda now: self._party.down(now, peer))

    def up(self, peer: int) -> None:
        """Learn that a peer is there."""
        self._post(lambda now: self._party.up(now, peer))

    def note(self, event: str, **fields: object) -> None:
        """Log what the transport has noticed; try a lost connection again, which tells whether the peer is gone."""
        self._log.write(event, **fields)
        if event == "lost" and isinstance(peer := fields.get("peer"), int):
            self._transport.send(peer, _PROBE)

    async def _open_transport(self) -> None:
        roster, terms = self.setting.roster, self.setting.roster.terms
        self._transport = transport_for(roster, self.me, self.identity, limits_for(self.setting), self)
        try:
            await self._transport.start(*(self._listen or ()))
        except OSError as error:
            card = roster.parties[self.me]
            host, port = self._listen or (card.host, card.port)
            raise InputError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
        self._log.write("listens", session=roster.session.hex(), parties=len(roster.parties), start=terms.start)

    def _signed(self, party: int, text: bytes, signature: bytes) -> bool:
        return verify(self.setting.roster.parties[party].certificate, text, signature)

    # --- the accountant, in a thread of its own -----------------------------------------------------------------

    def _warm_up(self) -> None:
        """Load the accountant before the start, so that nobody waits for it later."""
        seed = self.setting.session.seed or bytes(32)
        Judge(self.setting.roster, self.setting.session.topology(seed), seed).planned(self.me)
        gc.collect()
        gc.freeze()  # what is loaded stays: later collections need not look at it, which takes them long

    def _work(self, job: Callable[[], str], then: Callable[..., Effects]) -> None:
        """Do something long without keeping the peers waiting."""
        done = asyncio.get_running_loop().run_in_executor(None, job)
        done.add_done_callback(lambda task: self._post(partial(then, refusal=_said(task))))

    def _plan(self) -> str:
        """Is the loss allowed if everyone is present throughout? Asked before anything is sent."""
        ledger = self._party.ledger
        if ledger.seed is None or ledger.topology is None:
            raise RuntimeError("there is no schedule yet")
        self._judge = Judge(self.setting.roster, ledger.topology, ledger.seed)
        self._verdict = self._judge.planned(self.me)
        self._tell_loss("planned loss")
        return f"even with everyone present {self._verdict.refusal}" if self._verdict.refusal else ""

    def _assess(self, realised: Realised) -> str:
        """Is the loss allowed on the execution that came about? Asked before the final message is published."""
        if self._judge is None:
            raise RuntimeError("there is no schedule yet")
        self._verdict = self._judge.realised(realised, self.me)
        self._tell_loss("own loss")
        return self._verdict.refusal

    def _tell_loss(self, event: str) -> None:
        if (verdict := self._verdict) is not None:
            fields = {"epsilon": verdict.epsilon, "allowed": verdict.allowed, "coalitions": verdict.coalitions}
            self._log.write(event, **fields)


def _said(task: asyncio.Future[str]) -> str:
    """Return what a job said; one that failed speaks against publishing."""
    error = task.exception()
    return task.result() if error is None else f"its loss could not be worked out: {error}"


def transport_for(
    roster: Roster, me: int, identity: Identity, limits: Limits, listener: Listener, session: bytes | None = None
) -> Transport:
    """Return a transport to all parties of a roster, which trusts exactly their certificates."""
    return Transport(
        me=me,
        addresses=[(card.host, card.port) for card in roster.parties],
        session=session or roster.session,
        server=server_context(identity, roster),
        client=client_context(identity, roster),
        identify=roster.index,
        limits=limits,
        listener=listener,
    )


def limits_for(setting: Setting) -> Limits:
    """Return limits that a session of this size keeps easily, and a peer out of its mind does not."""
    payload = 8 * (setting.session.dimension + 1)
    # A frame holds an offer with its account, or items up to a mebibyte or a single one of any size.
    frame = 2 * payload + 2**21 + 64 * setting.session.rounds * setting.session.receivers
    return Limits(frame=frame, queue=max(16 * frame, 4 * payload * setting.session.parties))


def check_room(folder: Path, setting: Setting) -> None:
    """Refuse to begin on a disk that will be full before the end."""
    session = setting.session
    needed = int(_ROOM * 8 * (session.dimension + 1) * (2 + 2 * session.rounds * session.receivers)) + 2**20
    place = os.statvfs(folder)
    if (free := place.f_bavail * place.f_frsize) < needed:
        raise InputError(f"{folder} has {free / 2**20:.1f} MiB left, but {needed / 2**20:.1f} MiB may be needed")
