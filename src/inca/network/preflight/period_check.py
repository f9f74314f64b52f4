"""Is a period long enough for the links and the vector of a session, and what will the session take?"""

from __future__ import annotations

from dataclasses import dataclass

from inca.network.node.session_cost import MachineSeconds, SessionSeconds, session_bytes, session_seconds
from inca.network.node.session_setup import SessionSetup
from inca.network.preflight.checks import EVERYONE, Check, fine
from inca.network.protocol.stages import PATIENCE_PERIODS
from inca.reporting.parts import rounded_up

_PERIOD_MARGIN = 1.5  # by which a suggested period exceeds what was measured


@dataclass(frozen=True)
class LinkSpeed:
    """A link, in bytes a second, with its round trip; free of cost if there was none to measure."""

    rate: float
    round_trip: float
    peer: str = ""

    @property
    def speed(self) -> str:
        """Its rate in words.

        >>> LinkSpeed(1.234e6, 0.0).speed, LinkSpeed(1.234e9, 0.0).speed
        ('1.2 MB/s', '1,234 MB/s')
        """
        megabytes = self.rate / 1e6
        return f"{megabytes:,.0f} MB/s" if megabytes >= 10 else f"{megabytes:.2g} MB/s"

    @property
    def words(self) -> str:
        """How fast it is, and whose, in words that follow a time; empty if there was none."""
        return f" at {self.speed} to {self.peer}" if self.peer else ""


@dataclass(frozen=True)
class Needed:
    """What of a period is needed if all links are like one: for clocks, round trips, a slow write, and shares.

    The final messages of all must be here while silent parties are still waited for: else those are left out.
    """

    link: LinkSpeed
    times: SessionSeconds
    period: float
    seconds: float
    parts: str

    @classmethod
    def by(cls, setup: SessionSetup, link: LinkSpeed, work: MachineSeconds, machine: list[Check]) -> Needed:
        """Work it out."""
        times = session_seconds(setup.session, work, link.rate, link.round_trip)
        write = max((check.figures.get("slowest") or 0.0 for check in machine), default=0.0)
        clocks, trips = 2.0 * setup.roster.terms.max_clock_skew, 2.0 * link.round_trip
        parts = f"clocks {clocks:g} s, round trips {trips:.2g} s, durable write {write:.2g} s"
        parts += f", shares {times.sending:.2g} s{link.words}"
        needed = clocks + trips + write + times.sending
        if (ending := (clocks + trips + write + times.deposits) / PATIENCE_PERIODS) > needed:
            needed = ending
            final = f"final messages of all take {times.deposits:.3g} s{link.words}"
            parts = f"{final}, and have {PATIENCE_PERIODS:g} periods"
        return cls(link, times, setup.roster.terms.period, needed, parts)

    @property
    def sentence(self) -> str:
        """Whether the link is fast enough for the period and the vector of the roster."""
        if self.seconds < self.period:
            return f"{self.link.speed}, enough for a period of {self.period:g} s"
        return f"{self.link.speed}, too slow for a period of {self.period:g} s: {self.seconds:.3g} s are needed"


def check_period(needed: Needed) -> Check:
    """Does a period leave time for the slowest link?"""
    period, times = needed.period, needed.times
    figures = {"period": period, "shares": times.sending, "deposits": times.deposits, "needed": needed.seconds}
    if needed.link.peer:
        figures["bytes_per_second"] = needed.link.rate
    if needed.seconds < period:
        text = f"{period:g} s, of which {needed.seconds:.3g} s are needed: {needed.parts}"
        return fine("period", text, **figures)
    suggested = float(f"{_PERIOD_MARGIN * needed.seconds:.1e}")
    text = (
        f"it must be above {needed.seconds:.3g} s ({needed.parts}), got {period:g} s: agree on {suggested:g} s or more"
    )
    figures["suggested"] = suggested
    return Check("period", "problem", text, fault=EVERYONE, figures=figures)


def estimate(setup: SessionSetup, needed: Needed) -> Check:
    """Say what the session will take: an estimate, rounded up."""
    cost, times = session_bytes(setup.session), needed.times
    without = "" if needed.link.peer else ", without the links, as no peer was there to measure one"
    took = f"about {rounded_up(times.total, 2)} s from the start to the result if all are there{without}"
    figures = {"seconds": times.total, "drawing": times.drawing, "round": times.round, "deposits": times.deposits}
    figures |= {"opening": times.opening, "traffic": cost.traffic, "memory": cost.memory, "disk": cost.disk}
    return fine("estimate", f"{took}; {cost.sentence}", **figures)
