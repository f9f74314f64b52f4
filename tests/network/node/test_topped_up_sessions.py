"""Whole sessions in memory, with the check of the own loss, in which parties are away or leave: noise is topped up.

The plan is a tight one: at full attendance the honest parties have 1.005 times the noise that is ideal, and no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest

from helpers.parties import START, Room
from helpers.rosters import terms
from inca.network.lattice import Numbers
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.node.loss_check import LossCheck, LossChecker
from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.context import Effects
from inca.network.protocol.ledger import Ledger
from inca.network.testing.expected_sum import weights_of
from inca.privacy.gaussian import epsilon_for

N, COLLUDERS, SENSITIVITY, DELTA, IDEAL = 7, 1, 240.0, 1e-3, 1.005
OWN = 100.0
TOGETHER = OWN * math.sqrt(N - COLLUDERS) * (1.0 - 1e-9)
MU = math.sqrt(IDEAL) * SENSITIVITY / TOGETHER  # the cancelling noise is so much that it costs less than 0.005
CARDS = tuple(Identity.create(f"p{i}").card(f"127.0.0.1:{7001 + i}") for i in range(N))


def setup_of(together: float = TOGETHER) -> SessionSetup:
    """Return the setup of seven parties on a circle, of whom one may collude, with bounds against every coalition."""
    agreed = terms(
        schedule="circle",
        rounds=3,
        colluding=0.1,
        sigma_independent=OWN,
        sigma_cancelling=1e5,
        sigma_together=together,
        epsilon=float(epsilon_for(MU, DELTA)),
        min_participants=4,
    )
    return SessionSetup(Roster("seven", agreed, CARDS))


class CheckingRoom(Room):
    """Parties that deposit only what keeps their loss within what was agreed."""

    def __init__(self, setup: SessionSetup) -> None:
        super().__init__(replace(setup.session, start=START, period=1.0, min_round_duration=0.4))
        self.checkers = [LossChecker(setup, bytes(32), i) for i in range(N)]
        self.checks: dict[tuple[int, frozenset[int]], LossCheck] = {}

    def perform(self, i: int, effects: Effects) -> None:
        if effects.plan:
            self.plans_refused[i] = self.checkers[i].planned.refusal
        if (realized := effects.assess) is not None:
            check = self.checks[i, realized.cohort] = self.checkers[i].realized(realized)
            self.refusals[i] = check.refusal
        super().perform(i, effects)


@contextmanager
def watched() -> Iterator[dict[int, set[int]]]:
    """Note the level of the top-up that each party asks for."""
    asked: dict[int, set[int]] = {}
    original = Ledger.topup

    def topup(ledger: Ledger, sigma: int) -> Numbers:
        asked.setdefault(ledger.me, set()).add(sigma)
        return original(ledger, sigma)

    with patch.object(Ledger, "topup", topup):
        yield asked


def by_hand(setup: SessionSetup, weights: list[float]) -> int:
    """Return the top-up in steps: what the lightest bring less than is needed, shared by them, and rounded up."""
    honest, factor = len(weights) - COLLUDERS, (1.0 + setup.noise_excess) / setup.lattice.granularity
    brought = sum(Fraction(weight) ** 2 for weight in sorted(weights)[:honest]) * Fraction(OWN) ** 2
    lacking = (Fraction(TOGETHER) * Fraction(max(weights))) ** 2 - brought
    return math.ceil(math.sqrt(lacking / honest) * factor) if lacking > 0 else 0


@pytest.mark.parametrize(
    ("away", "gone", "weights"),
    [
        ((), (), [1.0] * 7),
        ((3,), (), [0.75, *[1.0] * 6]),  # missed a round, and is there at the end
        ((), (0, 5), [1.0] * 5),
        ((3,), (0, 5), [0.75, *[1.0] * 4]),
    ],
    ids=["all there", "one away", "two left", "both"],
)
def test_whoever_is_away_or_leaves_all_who_stay_deposit_and_top_up_alike(
    away: tuple[int, ...], gone: tuple[int, ...], weights: list[float]
) -> None:
    setup = setup_of()
    room = CheckingRoom(setup)
    for i in away:
        room.at(START + 0.1, room.kill, i)
        room.at(START + 1.5, room.recover, i)
    for i in gone:
        room.at(START + 1.2, room.kill, i)
    with watched() as asked:
        result = room.open().run().check()
    cohort, expected = set(range(N)) - set(gone), by_hand(setup, weights)
    assert result.realized.cohort == cohort and sorted(result.realized.execution.cohort_weights) == pytest.approx(
        weights
    )
    assert not any(room.refusals.values()) and not any(room.plans_refused.values())
    assert {i: levels for i, levels in asked.items() if i in cohort} == {i: {expected} for i in cohort}
    assert (expected > 0) is bool(away or gone)
    # As journals and accounts have it, to the last digit, which `check` above rests on.
    ledgers = [ledger for ledger in room.ledgers() if ledger.me in cohort]
    assert weights_of(room.session, ledgers) == result.realized.execution.cohort_weights
    noise = np.sum([ledger.topup(expected) for ledger in ledgers], axis=0)
    assert result.total.tolist() == (np.sum([ledger.injected[:-1] for ledger in ledgers], axis=0) + noise).tolist()
    # It is the bound against every coalition that passes, and it would not have without the top-up.
    final = [room.checks[i, result.realized.cohort] for i in cohort]
    assert all(check.coalition is None for check in final)
    assert max(check.epsilon for check in final) > 0.99 * final[0].allowed
    bare = LossChecker(setup_of(together=0.0), bytes(32), min(cohort))
    assert (bare.realized(result.realized).coalition is None) is (expected == 0)
