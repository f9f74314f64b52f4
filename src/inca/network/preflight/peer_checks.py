"""A doctor's visit to the peers: handshakes and clocks, and what may be wrong where they fail."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from inca.network.membership.identity import Identity
from inca.network.node.clock_check import uncertainty
from inca.network.node.node import limits_for, transport_for
from inca.network.node.session_setup import Setting
from inca.network.preflight.checks import EITHER, NETWORK, OURS, THEIRS, Finding, fine, wrong
from inca.network.transport.events import Unreachable
from inca.network.transport.transport import Measured

_TOGETHER = 64  # peers asked at the same time
_STAY = 1.0  # seconds that a peer has for its own questions
_PAUSE = 0.2  # seconds before a peer that is not there is asked again

# What a transport says of a peer -> the state in a word or two, and whose fault it looks like.
_SIGNS = (
    ("refused: nothing listens", "not there", THEIRS),
    ("wrong certificate", "wrong certificate", THEIRS),
    ("in another session", "other session", EITHER),
    ("another version", "other version", EITHER),
    ("another protocol", "other version", EITHER),
    ("refuses us in TLS", "refused", EITHER),
    ("does not believe", "refused", EITHER),
    ("too many errors", "refused", EITHER),
    ("closed the connection", "refused", THEIRS),
    ("does not speak TLS", "refused", THEIRS),
    ("no address", "no address", OURS),
    ("our own machine", "failed", OURS),
    ("no route", "no route", NETWORK),
    ("does not answer at all", "timed out", NETWORK),
    ("nothing answers", "timed out", NETWORK),
    ("timed out", "timed out", THEIRS),
)
_ADVICE = {
    "wrong certificate": "another key answers at its address than the roster has: compare fingerprints by telephone",
    "other session": "its roster is not ours: compare the session's id, as `inca node roster show` prints it",
    "other version": "it runs another version of inca",
}


class Visit:
    """Shakes hands with all peers; the listener of a transport that sends nothing but hellos and pings."""

    def __init__(self, setting: Setting, me: int) -> None:
        """Prepare; `open` begins."""
        self._roster, self._setting, self._me = setting.roster, setting, me
        self._failures: dict[int, str] = {}
        self._arrived: dict[int, asyncio.Event] = {}
        self._last = 0.0  # when a peer was reached last
        self.strangers: list[Finding] = []

    def received(self, peer: int, frame: bytes) -> None:
        """Ignore what a waiting node says: it will say it again to ours."""

    def unsent(self, peer: int, token: object) -> None:
        """Nothing was sent."""

    def down(self, peer: int, reason: str) -> None:
        """`measure` tells as much."""

    def up(self, peer: int) -> None:
        """Ask a peer that has come to us at once: it may not stay."""
        self._last = time.monotonic()
        self._arrived.setdefault(peer, asyncio.Event()).set()

    def note(self, event: str, **fields: object) -> None:
        """Remember who knocked and could not come in."""
        if event == "fault" and fields.get("peer") is None and len(self.strangers) < _TOGETHER:
            text = f"was turned away: it {fields['reason']}"
            self.strangers.append(Finding(str(fields["address"]), "note", text, "stranger", EITHER))

    @asynccontextmanager
    async def open(self, identity: Identity, seconds: float, listen: tuple[str, int] | None) -> AsyncIterator[Finding]:
        """Listen where the party will."""
        roster, card = self._roster, self._roster.parties[self._me]
        limits = replace(limits_for(self._setting), handshake=0.8 * seconds, hello=0.8 * seconds)
        self._transport = transport_for(roster, self._me, identity, limits, self)
        host, port = listen or (card.host, card.port)
        try:
            await self._transport.start(host, port)
        except OSError as error:
            yield wrong("address", f"cannot listen on {host}:{port}: {error.strerror or error}")
            return
        try:
            yield fine("address", f"listens on {host}:{port}")
        finally:
            await self._transport.close()

    async def meet(self, seconds: float) -> dict[int, Measured]:
        """Compare clocks with every peer that shows up in time."""
        until, room = time.monotonic() + seconds, asyncio.Semaphore(_TOGETHER)
        peers = [peer for peer in range(len(self._roster.parties)) if peer != self._me]

        async def ask(peer: int) -> Measured | None:
            while True:
                async with room:
                    try:
                        left = max(_PAUSE, until - time.monotonic())
                        return await asyncio.wait_for(self._transport.measure(peer), left)
                    except Unreachable as error:
                        self._failures[peer] = str(error)
                    except TimeoutError:
                        self._failures.setdefault(peer, f"timed out: it did not answer within {seconds:g} s")
                # Only who is not there yet is asked again: a party that refuses us counts our attempts.
                if _state(self._failures[peer])[0] != "not there" or time.monotonic() + _PAUSE > until:
                    return None
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._arrived.setdefault(peer, asyncio.Event()).wait(), _PAUSE)
                self._arrived[peer].clear()

        found = await asyncio.gather(*map(ask, peers))
        return {peer: each for peer, each in zip(peers, found, strict=True) if each is not None}

    async def stay(self) -> None:
        """Wait until a peer that was reached a moment ago has had time to compare clocks with us, too."""
        await asyncio.sleep(self._last + _STAY - time.monotonic())

    def findings(self, measured: dict[int, Measured]) -> list[Finding]:
        """Say what was found of every peer."""
        names, bound = self._roster.names, self._roster.terms.clock_bound
        found = [
            self._measured(peer, measured[peer], bound)
            if peer in measured
            else self._missed(peer, self._failures[peer])
            for peer in range(len(names))
            if peer != self._me
        ]
        answered = [each for each in found if each.state not in ("not there", "timed out", "no route")]
        return [_blamed(each, answered) for each in found]

    def _measured(self, peer: int, each: Measured, bound: float) -> Finding:
        figures = {"offset": each.offset, "round_trip": each.round_trip}
        name, text = self._roster.names[peer], f"clock {each.offset:+.3f} s, round trip {1e3 * each.round_trip:.1f} ms"
        if abs(each.offset) > bound:
            text = f"its clock is {each.offset:+.3f} s off ours, but at most {bound:g} s was agreed"
            return Finding(name, "problem", text, "clock off", EITHER, figures)
        if uncertainty(each) > bound:
            text = f"a round trip of {each.round_trip:.3g} s leaves its clock uncertain by more than {bound:g} s"
            return Finding(name, "problem", text, "too slow", NETWORK, figures)
        return Finding(name, "fine", text, "fine", "", figures)

    def _missed(self, peer: int, failure: str) -> Finding:
        state, fault = _state(failure)
        name, address = self._roster.names[peer], self._roster.parties[peer].address
        if state == "not there":
            return Finding(name, "note", f"nothing listens at {address} yet", state, fault)
        return Finding(name, "problem", f"{_ADVICE[state]} ({failure})" if state in _ADVICE else failure, state, fault)


def _state(failure: str) -> tuple[str, str]:
    """Return what a failure is in a word or two, and whose fault it looks like."""
    return next(((state, fault) for sign, state, fault in _SIGNS if sign in failure), ("failed", EITHER))


def _blamed(finding: Finding, answered: list[Finding]) -> Finding:
    """If most of those who answered have the same trouble with us it is ours; if one of several has, it is theirs."""
    if finding.fault != EITHER or len(answered) < 2:
        return finding
    alike = sum(each.state == finding.state for each in answered)
    return replace(finding, fault=OURS if alike > len(answered) / 2 else THEIRS if alike == 1 else EITHER)
