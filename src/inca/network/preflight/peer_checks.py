"""Handshakes and clock comparisons with all peers, and what may be wrong where they fail."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from inca.errors import PeerUnreachable
from inca.network.membership.identity import Identity
from inca.network.node.session_setup import SessionSetup
from inca.network.node.transport_setup import limits_for, transport_for
from inca.network.preflight.advice import ADVICE, UNHEARD
from inca.network.preflight.checks import EITHER, NETWORK, OURS, THEIRS, Check, fine, our_problem
from inca.network.transport.failures import Failure, FailureCause
from inca.network.transport.interface import TransportEvents
from inca.network.transport.transport import ClockMeasurement

_MAX_AT_ONCE = 64  # peers that are asked, and strangers that are told of
_LINGER_S = 1.0  # for a peer that has reached us to ask its own questions
_RETRY_S = 0.2  # after which a peer that is not there is asked again
_MIN_ANSWER_S = 0.2  # for a peer that is asked at the last moment
_NOT_THERE_YET = (FailureCause.REFUSED, FailureCause.NO_ANSWER)
_MAX_PADDING = 2**23  # bytes with which the rate of a link is measured, at once
_HANDSHAKE_SHARE = 0.8  # of the time that peers have, so that it is known what they failed at


class PeerChecks(TransportEvents):
    """Shakes hands with all peers by a transport that sends nothing but hellos and pings."""

    def __init__(self, setup: SessionSetup, me: int) -> None:
        self._setup, self._roster, self._me = setup, setup.roster, me
        self._failures: dict[int, Failure] = {}
        self._arrived: dict[int, asyncio.Event] = {}
        self._last_contact = 0.0
        self.strangers: list[Check] = []

    def up(self, peer: int) -> None:
        """Ask a peer that has come to us at once: it may not stay."""
        self._last_contact = time.monotonic()
        self._arrived.setdefault(peer, asyncio.Event()).set()

    def violated(self, peer: int | None, address: str, failure: Failure, violations: int) -> None:
        """Remember who connected and could not prove to be a party."""
        if peer is None and len(self.strangers) < _MAX_AT_ONCE:
            text = f"was turned away: {failure.detail}"
            self.strangers.append(Check(address, "note", text, "stranger", EITHER))

    @asynccontextmanager
    async def open(self, identity: Identity, seconds: float, listen: tuple[str, int] | None) -> AsyncIterator[Check]:
        """Listen where the party will; yield whether that is possible."""
        card, timeout = self._roster.parties[self._me], _HANDSHAKE_SHARE * seconds
        limits = replace(
            limits_for(self._setup.session),
            handshake_timeout_s=timeout,
            hello_timeout_s=timeout,
            ping_timeout_s=timeout,
        )
        self._transport = transport_for(self._roster, identity, limits, self)
        host, port = listen or (card.host, card.port)
        try:
            await self._transport.start(host, port)
        except OSError as error:
            yield our_problem("address", f"cannot listen on {host}:{port}: {error.strerror or error}")
            return
        try:
            yield fine("address", f"listens on {host}:{port}")
        finally:
            await self._transport.close()

    async def measure(self, seconds: float) -> dict[int, ClockMeasurement]:
        """Compare clocks with every peer that shows up in time."""
        deadline, room = time.monotonic() + seconds, asyncio.Semaphore(_MAX_AT_ONCE)
        peers = [peer for peer in range(len(self._roster.parties)) if peer != self._me]

        async def ask(peer: int) -> ClockMeasurement | None:
            arrived = self._arrived.setdefault(peer, asyncio.Event())
            while True:
                async with room:
                    try:
                        left = max(_MIN_ANSWER_S, deadline - time.monotonic())
                        return await asyncio.wait_for(self._transport.measure(peer), left)
                    except PeerUnreachable as error:
                        self._failures[peer] = Failure(error.cause, str(error))
                    except TimeoutError:
                        silence = Failure(FailureCause.UNRESPONSIVE, f"it did not answer within {seconds:g} s")
                        self._failures.setdefault(peer, silence)
                # Only who is not there yet is asked again: a party that refuses us counts our attempts.
                waiting = self._failures[peer].cause in _NOT_THERE_YET
                if not waiting or time.monotonic() + _RETRY_S > deadline:
                    return None
                with suppress(TimeoutError):
                    await asyncio.wait_for(arrived.wait(), _RETRY_S)
                arrived.clear()

        measurements = await asyncio.gather(*map(ask, peers))
        return {peer: clocks for peer, clocks in zip(peers, measurements, strict=True) if clocks is not None}

    async def measure_rates(self, peers: Iterable[int], seconds: float) -> dict[int, float]:
        """Measure how many bytes a second each of these peers takes from us, one after the other."""
        session, rates = self._setup.session, dict[int, float]()
        size, deadline = min(session.payload_bytes, _MAX_PADDING), time.monotonic() + seconds
        for peer in peers:
            if (left := deadline - time.monotonic()) <= 0.0:
                break
            with suppress(PeerUnreachable):  # it was there a moment ago: its own doctor has ended
                rates[peer] = await self._transport.measure_rate(peer, size, left)
        return rates

    async def linger(self) -> None:
        """Wait until a peer that was reached a moment ago has had time to compare clocks with us, too."""
        await asyncio.sleep(self._last_contact + _LINGER_S - time.monotonic())

    def checks(self, measurements: dict[int, ClockMeasurement]) -> list[Check]:
        """Say how every peer is."""
        checks = [
            self._check_clock(peer, measurements[peer]) if peer in measurements else self._check_failure(peer)
            for peer in range(len(self._roster.parties))
            if peer != self._me
        ]
        answered = [check for check in checks if check.state not in UNHEARD]
        return [_decide_fault(check, answered) for check in checks]

    def _check_clock(self, peer: int, clocks: ClockMeasurement) -> Check:
        name, allowed = self._roster.names[peer], self._roster.terms.max_clock_skew
        figures = {"offset": clocks.offset, "round_trip": clocks.round_trip}
        if abs(clocks.offset) > allowed:
            text = f"its clock must be at most {allowed:g} s off ours, as agreed, got {clocks.offset:+.3f} s"
            return Check(name, "problem", text, "clock off", EITHER, figures)
        if clocks.largest_skew > allowed:
            text = f"a round trip of {clocks.round_trip:.3g} s leaves its clock uncertain by more than {allowed:g} s"
            return Check(name, "problem", text, "too slow", NETWORK, figures)
        text = f"clock {clocks.offset:+.3f} s, round trip {1e3 * clocks.round_trip:.1f} ms"
        return Check(name, "fine", text, "fine", "", figures)

    def _check_failure(self, peer: int) -> Check:
        card, failure = self._roster.parties[peer], self._failures[peer]
        advice = ADVICE[failure.cause]
        if failure.cause in _NOT_THERE_YET:
            text = f"nothing listens at {card.address} yet"
            if failure.cause is FailureCause.NO_ANSWER:
                text = f"no party answers behind the {card.address} of a tunnel or relay yet"
            return Check(card.name, "note", text, advice.state, advice.fault)
        return Check(card.name, "problem", f"{advice.text} ({failure.detail})", advice.state, advice.fault)


def _decide_fault(check: Check, answered: list[Check]) -> Check:
    """If most of those who answered have the same trouble with us it is ours; if one of several has, it is theirs."""
    if check.fault != EITHER or len(answered) < 2:
        return check
    alike = sum(other.state == check.state for other in answered)
    return replace(check, fault=OURS if alike > len(answered) / 2 else THEIRS if alike == 1 else EITHER)
