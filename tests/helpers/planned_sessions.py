"""Sessions as plans say, for the simulated network: rounds, receivers and noise are those of `inca.plan`."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import inca
from helpers.network_faults import PERIOD
from helpers.rosters import SEED
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.membership.terms import Terms
from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.session import SessionConfig

DOMAIN = inca.Interval(0.0, 240.0)


@cache
def planned(parties: int, dimension: int = 1) -> inca.Plan:
    """Return the plan of a session for epsilon 1, a tenth colluding and a tenth leaving."""
    sensitivity = DOMAIN.sensitivity(dimension)
    return inca.plan(inca.Requirements(parties, 1.0, colluding=0.1, dropout=0.1, sensitivity=sensitivity))


@cache
def planned_setup(parties: int, dimension: int = 1, min_round_duration: float = 0.0) -> SessionSetup:
    """Return the session of a plan, which begins after 10 s on the simulated clock."""
    plan = planned(parties, dimension)
    terms = Terms.from_plan(
        plan,
        dimension=dimension,
        lower=DOMAIN.low,
        upper=DOMAIN.high,
        min_participants=plan.requirements.survivors,
        start=10.0,
        period=PERIOD,
        max_clock_skew=0.2 * PERIOD,
        min_round_duration=min_round_duration,
        seed=None if plan.design.schedule == "circle" else SEED,
    )
    names = [f"party-{i:03}" for i in range(parties)]
    cards = tuple(Identity.create(name).card(f"127.0.0.1:{7000 + i}") for i, name in enumerate(names))
    return SessionSetup(Roster("as planned", terms, cards))


def planned_session(parties: int, seed: int, dimension: int = 1, min_round_duration: float = 0.0) -> SessionConfig:
    """Return the session of a plan, with an id and a public seed that follow from a seed.

    A roster's hash is another one with each drawing of its parties' keys, and who proposes first follows from the id.
    """
    rng = random.Random(f"session {seed}")
    session = planned_setup(parties, dimension, min_round_duration).session
    return replace(session, id=rng.randbytes(32), seed=rng.randbytes(32))
