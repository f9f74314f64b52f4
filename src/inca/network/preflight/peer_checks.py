"""Handshakes and clock comparisons with all peers, and what may be wrong where they fail."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Literal

from inca.errors import InvalidInput, PeerUnreachable
from inca.network.addresses import Address
from inca.network.membership.identity import Identity
from inca.network.node.session_setup import SessionSetup
from inca.network.node.transport_setup import NetworkAccess, limits_for, start_transport, transport_for
from inca.network.preflight.advice import ADVICE, UNHEARD
from inca.network.preflight.checks import EITHER, NETWORK, OURS, THEIRS, Check, fine, our_problem
from inca.network.transport.failures import Failure, FailureCause
from inca.network.transport.interface import TransportEvents
from inca.network.transport.transport import ClockMeasurement, Way

_MAX_AT_ONCE = 64  # peers that are asked, and strangers that are told of
_LINGER_S = 1.0  # for a peer that has reached us to ask its own questions
_RETRY_S = 0.2  # after which a peer that is not there is asked again
_MIN_ANSWER_S = 0.2  # for a peer that is asked at the last moment
_NOT_THERE_YET = (FailureCause.REFUSED, FailureCause.NO_ANSWER, FailureCause.NOT_REGISTERED)
_SAYS_NOTHING = (FailureCause.UNRESPONSIVE, FailureCause.TIMED_OUT)
_SILENT = (FailureCause.TIMED_OUT, FailureCause.NO_ROUTE)  # it may not have started, or a firewall is between
_ASKED_AGAIN = (*_NOT_THERE_YET, FailureCause.LOST)  # as two that dial each other may both give way
_MAX_PADDING = 2**23  # bytes with which the rate of a link is measured, at once
_HANDSHAKE_SHARE = 0.8  # of the time that peers have, so that it is known what they failed at


class PeerChecks(TransportEvents):
    """Shakes hands with all peers by a transport that sends nothing but hellos and pings."""

    def __init__(self, setup: SessionSetup, me: int) -> None:
        self._setup, self._roster, self._me = setup, setup.roster, me
        self._failures: dict[int, Failure] = {}
        self._arrived: dict[int, asyncio.Event] = {}
        self._last_contact = 0.0
        self._relay_failures: dict[Address, Failure] = {}
        self._ways: dict[int, Way] = {}
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

    def unregistered(self, relay: Address, failure: Failure) -> None:
        """Remember why the others cannot reach us at a relay."""
        self._relay_failures[relay] = failure

    @asynccontextmanager
    async def open(self, identity: Identity, seconds: float, access: NetworkAccess) -> AsyncIterator[Check]:
        """Listen where the party will, and register at its relays; yield whether that is possible."""
        self._seconds, timeout = seconds, _HANDSHAKE_SHARE * seconds
        limits = replace(
            limits_for(self._setup.session),
            handshake_timeout_s=timeout,
            hello_timeout_s=timeout,
            ping_timeout_s=timeout,
        )
        self._transport = transport_for(self._roster, identity, limits, self, access)
        try:
            where = await start_transport(self._transport, self._roster.addresses_of(self._me), access)
        except InvalidInput as error:
            yield our_problem("address", str(error))
            return
        try:
            yield fine("address", where)
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
                        clocks = await asyncio.wait_for(self._transport.measure(peer), left)
                        if (way := self._transport.ways.get(peer)) is not None:
                            self._ways[peer] = way
                        return clocks
                    except PeerUnreachable as error:
                        self._failures[peer] = Failure(error.cause, str(error))
                    except TimeoutError:
                        silence = Failure(FailureCause.UNRESPONSIVE, f"it did not answer within {seconds:g} s")
                        self._failures.setdefault(peer, silence)
                # Only who is not there yet is asked again: a party that refuses us counts our attempts.
                waiting = self._failures[peer].cause in _ASKED_AGAIN
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

    def own_relays(self) -> list[Check]:
        """Say at which relays the others can reach us; one is in the way only where it leaves them no other way."""
        own, registered, checks = self._roster.addresses_of(self._me), self._transport.registered, list[Check]()
        reachable = bool(registered) or not all(address.relayed for address in own)
        for relay in [address for address in own if address.relayed]:
            if relay in registered:
                checks.append(fine("relay", f"registered at {relay}"))
            else:
                failure = self._relay_failure(relay)
                advice = ADVICE[failure.cause]
                text = f"not registered: {failure.detail}; {advice.text}"
                checks.append(Check("relay", "note" if reachable else "problem", text, advice.state, advice.fault))
        return checks

    def _relay_failure(self, relay: Address) -> Failure:
        detail = f"the relay {relay} did not answer within {self._seconds:g} s"
        return self._relay_failures.get(relay, Failure(FailureCause.RELAY_UNREACHABLE, detail))

    def checks(self, measurements: Mapping[int, ClockMeasurement], enough: Mapping[int, str]) -> list[Check]:
        """Say how every peer is, and whether its link is fast enough, in words by peer."""
        checks = [
            self._check_link(peer, measurements[peer], enough.get(peer, ""))
            if peer in measurements
            else self._check_failure(peer, self._failure(peer))
            for peer in range(len(self._roster.parties))
            if peer != self._me
        ]
        answered = [check for check in checks if check.state not in UNHEARD]
        return [_decide_fault(check, answered) for check in checks]

    def _check_link(self, peer: int, clocks: ClockMeasurement, enough: str) -> Check:
        name, allowed = self._roster.names[peer], self._roster.terms.max_clock_skew
        figures = {"offset": clocks.offset, "round_trip": clocks.round_trip}
        if abs(clocks.offset) > allowed:
            text = f"its clock must be at most {allowed:g} s off ours, as agreed, got {clocks.offset:+.3f} s"
            return Check(name, "problem", text, "clock off", EITHER, figures)
        if clocks.largest_skew > allowed:
            text = f"a round trip of {clocks.round_trip:.3g} s leaves its clock uncertain by more than {allowed:g} s"
            return Check(name, "problem", text, "too slow", NETWORK, figures)
        parts = [str(self._ways.get(peer, "")), f"clock {clocks.offset:+.3f} s"]
        parts += [f"round trip {1e3 * clocks.round_trip:.1f} ms", enough]
        return Check(name, "fine", ", ".join(filter(None, parts)), "fine", "", figures)

    def _failure(self, peer: int) -> Failure:
        """Return why a peer was not reached; through a relay that says nothing, nothing is heard of any peer."""
        failure, addresses = self._failures[peer], self._roster.addresses_of(peer)
        if failure.cause not in _SAYS_NOTHING or not all(address.relayed for address in addresses):
            return failure
        if any(address in self._transport.registered for address in addresses):
            return failure
        known = [address for address in addresses if address in self._relay_failures]
        return self._relay_failure(known[0] if known else addresses[0])

    def _check_failure(self, peer: int, failure: Failure) -> Check:
        name, advice = self._roster.names[peer], ADVICE[failure.cause]
        if failure.cause in _NOT_THERE_YET:
            addresses = self._roster.addresses_of(peer)
            of_relays = failure.cause is FailureCause.NOT_REGISTERED
            places = " or ".join(str(address) for address in addresses if address.relayed or not of_relays)
            text = {
                FailureCause.REFUSED: f"nothing listens at {places} yet",
                FailureCause.NO_ANSWER: f"no party answers behind the {places} of a tunnel or relay yet",
                FailureCause.NOT_REGISTERED: f"not registered at {places} yet",
            }[failure.cause]
            return Check(name, "note", text, advice.state, advice.fault)
        level: Literal["note", "problem"] = "note" if failure.cause in _SILENT else "problem"
        return Check(name, level, f"{advice.text} ({failure.detail})", advice.state, advice.fault)


def _decide_fault(check: Check, answered: list[Check]) -> Check:
    """If most of those who answered have the same trouble with us it is ours; if one of several has, it is theirs."""
    if check.fault != EITHER or len(answered) < 2:
        return check
    alike = sum(other.state == check.state for other in answered)
    return replace(check, fault=OURS if alike > len(answered) / 2 else THEIRS if alike == 1 else EITHER)
