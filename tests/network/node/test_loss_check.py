"""A party's check of its own loss: worked out again in fractions, for every coalition, straight from Theorem 1."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, islice
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.stats import norm

import inca
from helpers import reference
from helpers.examples import cases
from helpers.executions import intended, present_flags
from helpers.rosters import SEED, terms
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.membership.terms import Terms
from inca.network.node.loss_check import MOST_ACCOUNTS, MOST_COALITIONS, LossCheck, LossChecker
from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.realized_execution import RealizedExecution
from inca.privacy.gaussian import epsilon_for
from inca.protocol.undelivered import Undelivered

NAMES = ("anna", "bert", "cleo", "dora", "emil")
CARDS = tuple(Identity.create(name).card(f"127.0.0.1:{7001 + i}") for i, name in enumerate(NAMES))
# So little cancelling noise that coalitions differ, and of ten coalitions there is a worst one.
_FIELDS: dict[str, Any] = {"seed": SEED, "rounds": 3, "colluding": 0.4, "sigma_cancelling": 60.0}
_FIELDS |= {"min_participants": 4}
CLASSIC: dict[str, Any] = {"rule": "classic", "epsilon": 0.55, "distance": 4.0}  # proven below epsilon 1 only
N, PUBLIC_SEED = len(NAMES), bytes.fromhex(SEED)
LEAVER = 4


def setup_of(**changes: Any) -> SessionSetup:
    """Return a session of five of whom two collude, so that there are ten coalitions."""
    return SessionSetup(Roster("trial", terms(**(_FIELDS | changes)), CARDS))


def checker_of(setup: SessionSetup, party: int = 0) -> LossChecker:
    return LossChecker(setup, PUBLIC_SEED, party)


def execution_of(setup: SessionSetup, absences: bool = False) -> inca.Execution:
    """Return the execution at full attendance, or one where the last party leaves and another is away once."""
    present = np.ones((setup.session.rounds + 1, N), dtype=bool)
    if absences:
        present[2:, LEAVER] = False
        present[2, 1] = False
    schedule = setup.session.topology(PUBLIC_SEED).schedule
    return inca.Execution(
        schedule, setup.roster.terms.injection, inca.Presence.explicit(present), cohort=present[-1].copy()
    )


def realized_of(setup: SessionSetup, execution: inca.Execution) -> RealizedExecution:
    return RealizedExecution(execution, ())


@cache
def plain_losses(absences: bool, coalition: tuple[int, ...]) -> dict[int, float]:
    """Return the loss mu per unit of sensitivity of each honest party, in fractions until the last root.

    Of a leaver everything is known. With what was exchanged with it, final messages and settled ones tell the same.
    """
    setup = setup_of()
    agreed, execution = setup.roster.terms, execution_of(setup, absences)
    weights = [[[Fraction(x) for x in row] for row in matrix] for matrix in intended(execution)]
    receivers = [step.receivers.tolist() for step in execution.intended()]
    c = [Fraction(x).limit_denominator(1000) for x in execution.injection.value.tolist()]
    z = [[Fraction(x) for x in row] for row in execution.injection.noise.tolist()]
    variances = Fraction(agreed.sigma_independent) ** 2, Fraction(agreed.sigma_cancelling) ** 2
    known = {*coalition, *([LEAVER] if absences else [])}
    honest = [i for i in range(N) if i not in known]
    seen = reference.observed(receivers, present_flags(execution), sorted(known), [])
    squares = reference.losses(weights, present_flags(execution), c, z, seen, honest, *variances)
    return {party: math.sqrt(square) for party, square in zip(honest, squares, strict=True)}


def plain_mus(setup: SessionSetup, absences: bool, party: int) -> dict[tuple[int, ...], float]:
    """Return the party's loss mu against each coalition it is not part of."""
    coalitions = [coalition for coalition in combinations(range(N), 2) if party not in coalition]
    sensitivity = setup.roster.terms.sensitivity
    return {coalition: sensitivity * plain_losses(absences, coalition)[party] for coalition in coalitions}


def delta_of(epsilon: float, mu: float) -> float:
    """The delta of a Gaussian shift mu at epsilon: Balle and Wang's condition."""
    return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize("absences", [False, True])
@pytest.mark.parametrize("rule", ["analytic", "classic"])
def test_the_loss_is_that_of_the_worst_coalition_worked_out_in_fractions(rule: str, absences: bool) -> None:
    setup = setup_of(**(CLASSIC if rule == "classic" else {}))
    delta = setup.roster.terms.delta
    execution = execution_of(setup, absences)
    rounding = setup.rounding(execution)
    for party in range(N - absences):
        check = checker_of(setup, party).realized(realized_of(setup, execution))
        mus = plain_mus(setup, absences, party)
        worst = max(mus.values())
        assert min(mus.values()) < 0.98 * worst  # else the least would do as well
        assert check.coalition is not None and mus[check.coalition] == pytest.approx(worst, rel=1e-9)
        assert (check.coalitions, check.complete) == (6, True)
        mu = float(rounding.loss(np.array([worst]))[0])
        if rule == "classic":
            assert check.epsilon == pytest.approx(mu * math.sqrt(2 * math.log(1.25 / delta)), rel=1e-9)
        else:
            assert delta_of(check.epsilon, mu) == pytest.approx(delta, rel=1e-6)


def test_the_planned_loss_is_that_of_full_attendance_whatever_happened() -> None:
    setup = setup_of()
    checkers = [checker_of(setup, party) for party in range(N)]
    full, absent = (realized_of(setup, execution_of(setup, absences)) for absences in (False, True))
    for checker in checkers:
        assert checker.planned == checker.realized(full)
    assert any(checker.planned.epsilon != checker.realized(absent).epsilon for checker in checkers[:LEAVER])


def test_top_up_noise_counts_if_it_was_added() -> None:
    """More of it hides more. Two honest ones bring 62.5 together, the lighter one three quarters of its noise."""
    absent = execution_of(setup_of(), absences=True)
    losses = []
    for together in (0.0, 62.0, 80.0, 120.0):
        setup = setup_of(sigma_together=together)
        losses.append(checker_of(setup).realized(realized_of(setup, absent)).epsilon)
    none, enough, some, more = losses
    assert none == enough and more < 0.99 * some < 0.99**2 * none


def test_the_others_of_a_roster_can_go_on_without_some() -> None:
    """Had they left, the others would have topped up their noise; so they do if they are alone from the start."""
    together = 100.0 * math.sqrt(6.0) * (1.0 - 1e-9)  # seven parties have it, one of whom may collude
    level: dict[str, Any] = {"sigma_independent": 100.0, "sigma_cancelling": 1e6, "sigma_together": together}
    level |= {"epsilon": float(epsilon_for(1.005 * 240.0 / together, 1e-3))}
    agreed = terms(schedule="circle", rounds=3, colluding=0.1, min_participants=5, **level)
    cards = tuple(Identity.create(f"p{i}").card(f"127.0.0.1:{7001 + i}") for i in range(7))
    roster = Roster("seven", agreed, cards)
    for without in (roster, roster.without("p3"), roster.without("p3", "p0")):
        checks = [checker_of(SessionSetup(without), party).planned for party in range(len(without.parties))]
        assert [check.refusal for check in checks] == [""] * len(checks)
        assert all(check.coalition is None for check in checks)
    assert SessionSetup(without).session.sigma_topup([1.0] * 5) > 0
    short = Roster("five", msgspec.structs.replace(without.terms, sigma_together=0.0), without.parties)
    assert checker_of(SessionSetup(short)).planned.refusal


def test_final_messages_that_came_too_late_count_as_seen() -> None:
    """Whoever is late may have published to some: the loss and its certificate are those of all final messages."""
    setup, full = setup_of(), execution_of(setup_of())
    fewer = inca.Execution(
        full.schedule, full.injection, full.presence, cohort=full.cohort, published=np.arange(N) != LEAVER
    )
    checker = checker_of(setup)
    assert checker.realized(realized_of(setup, fewer)) == checker.realized(realized_of(setup, full))
    late, on_time = (checker.certify(realized_of(setup, execution), (1, 3)) for execution in (fewer, full))
    assert late.losses.mu.tolist() == on_time.losses.mu.tolist()


def test_the_loss_is_in_proportion_to_how_far_a_value_may_move() -> None:
    narrow, wide = (checker_of(setup_of(**(CLASSIC | {"distance": far}))).planned for far in (2.0, 4.0))
    assert wide.epsilon == pytest.approx(2 * narrow.epsilon, rel=1e-3)  # but for what whole numbers add


@pytest.mark.parametrize(("epsilon", "allowed", "may"), [(1.0, 1.0, True), (0.5, 1.0, True), (1.0 + 1e-12, 1.0, False)])
def test_a_party_publishes_exactly_what_was_agreed_and_no_more(epsilon: float, allowed: float, may: bool) -> None:
    refusal = LossCheck(epsilon, (1, 3), allowed, 6, True).refusal
    assert (refusal == "") is may


def test_a_refusal_says_what_was_agreed_what_it_is_and_against_whom() -> None:
    expected = "its loss must be at most epsilon 1.5, as agreed, got 2.25 (against bert, dora)"
    assert LossCheck(2.25, (1, 3), 1.5, 6, True, ("bert", "dora")).refusal == expected
    assert LossCheck(2.25, (), 1.5, 1, True).refusal.endswith("got 2.25 (against whoever sees the final messages)")


def test_the_agreed_epsilon_is_what_the_loss_is_held_against() -> None:
    loss = checker_of(setup_of()).planned.epsilon
    assert checker_of(setup_of(epsilon=loss * 1.01)).planned.refusal == ""
    check = checker_of(setup_of(epsilon=loss * 0.99)).planned
    assert check.allowed == loss * 0.99 and check.refusal


def roster_of(parties: int, **changes: Any) -> Roster:
    cards = tuple(Identity.create(f"p{i}").card(f"127.0.0.1:{7001 + i}") for i in range(parties))
    return Roster("many", terms(**({"seed": SEED, "min_participants": 6} | changes)), cards)


@pytest.mark.parametrize(
    ("changes", "most"),
    [
        ({"colluding": 0.1}, MOST_COALITIONS),  # four of 39 others: 82,251
        ({"colluding": 0.1, "failure": 0.0}, MOST_COALITIONS),
        ({"colluding": 0.1, "failure": 1e-6}, 250),  # somebody of 40 refuses in one session of a hundred, at worst
        ({"colluding": 0.1, "failure": 1e-4}, MOST_ACCOUNTS),
        ({"colluding": 0.05, "failure": 1e-6}, 250),  # of 741
        ({"colluding": 0.05}, 741),
    ],
)
def test_as_many_coalitions_are_considered_as_are_worth_it(changes: dict[str, Any], most: int) -> None:
    drawn = checker_of(SessionSetup(roster_of(40, **changes)), 17).coalitions
    size = math.ceil(40 * changes["colluding"])
    assert drawn.shape[1] == size and 0.8 * most <= len(drawn) <= most
    assert (len(drawn) == math.comb(39, size)) is (most == 741)


def test_drawn_coalitions_follow_from_session_seed_and_party() -> None:
    """Whoever checks a party's report draws the same ones: worked out again from the words."""
    setup = SessionSetup(roster_of(40, colluding=0.1))
    drawn = checker_of(setup, 5).coalitions.tolist()
    key = hashlib.sha256(b"inca-coalitions/3" + setup.roster.session + PUBLIC_SEED + (5).to_bytes(4, "little")).digest()
    rng = np.random.Generator(np.random.Philox(key=int.from_bytes(key[:16], "little")))
    others, again = [*range(5), *range(6, 40)], []
    for picks in rng.integers(np.arange(4), 39, size=(MOST_COALITIONS, 4)).tolist():
        for place, pick in enumerate(picks):
            others[place], others[pick] = others[pick], others[place]
        again.append(others[:4])
    assert list(map(frozenset, drawn)) == list(dict.fromkeys(map(frozenset, again)))

    assert checker_of(setup, 6).coalitions.tolist() != drawn
    assert LossChecker(setup, bytes(16), 5).coalitions.tolist() != drawn
    another = SessionSetup(roster_of(40, colluding=0.1))  # new keys, another session
    assert checker_of(another, 5).coalitions.tolist() != drawn


# --- against every coalition at once ----------------------------------------------------------------------------------


def circle_of(**changes: Any) -> SessionSetup:
    """Return a session of five on a circle, with a level of cancelling noise that is proven to suffice."""
    agreed = {"schedule": "circle", "seed": None, "colluding": 0.2, "sigma_cancelling": 2000.0, "epsilon": 100.0}
    return setup_of(**(agreed | changes))


def executions(setup: SessionSetup) -> Iterator[inca.Execution]:
    """Everyone, and everyone but one party that misses a round, or leaves."""
    schedule = setup.session.topology(PUBLIC_SEED).schedule
    for party, since, until in ((0, 0, 0), (1, 1, 2), (3, 1, 4), (2, 2, 4)):
        present = np.ones((4, N), dtype=bool)
        present[since:until, party] = False
        presence = inca.Presence.explicit(present)
        yield inca.Execution(schedule, setup.roster.terms.injection, presence, cohort=present[-1].copy())


def exact_epsilons(setup: SessionSetup, checker: LossChecker, execution: inca.Execution, party: int) -> list[float]:
    epsilons = []
    for coalition in checker.coalitions.tolist():
        certificate = checker.certify(realized_of(setup, execution), coalition)
        epsilons.append(float(certificate.epsilon[certificate.losses.honest.tolist().index(party)]))
    return epsilons


@pytest.mark.parametrize("schedule", ["circle", "permutation"])
@pytest.mark.parametrize(("colluding", "cancelling"), [(0.2, 2000.0), (0.4, 2000.0), (0.4, 60.0)])
def test_no_loss_is_above_what_is_said_and_a_party_refuses_only_if_one_is_above_what_is_agreed(
    schedule: str, colluding: float, cancelling: float
) -> None:
    noise = {"colluding": colluding, "sigma_cancelling": cancelling, "min_participants": round(5 * colluding) + 2}
    changes = {"schedule": schedule, "seed": None if schedule == "circle" else SEED} | noise
    setup = circle_of(**changes)
    for turn, execution in enumerate(islice(executions(setup), cases(2, 4))):
        party = int(np.flatnonzero(execution.presence.row(3))[turn % 4])
        checker = checker_of(setup, party)
        check = checker.realized(realized_of(setup, execution))
        exact = exact_epsilons(setup, checker, execution, party)
        assert check.complete and check.coalitions == len(exact) == math.comb(4, round(5 * colluding))
        assert check.epsilon >= max(exact) * (1 - 1e-9)
        for agreed, refuses in ((max(exact) * (1 + 1e-6), False), (max(exact) * (1 - 1e-6), True)):
            strict = circle_of(**changes, epsilon=agreed)
            refusal = checker_of(strict, party).realized(realized_of(strict, execution)).refusal
            assert bool(refusal) is refuses, (turn, refusal, max(exact))


def test_a_bound_above_what_is_agreed_refuses_nothing_by_itself() -> None:
    """With little cancelling noise the bound is far above the loss, which is then worked out."""
    checks = [checker_of(circle_of(sigma_cancelling=level)).planned for level in (2000.0, 20.0)]
    assert [check.coalition is None for check in checks] == [True, False]
    assert [check.refusal for check in checks] == ["", ""] and checks[1].complete


@pytest.mark.parametrize("cut", [True, False])
def test_on_a_large_circle_a_party_whom_a_coalition_cuts_off_refuses(cut: bool) -> None:
    """Of 23,751 coalitions of four, 10,000 draws may miss the only one that lost messages made dangerous."""
    agreed = {"schedule": "circle", "seed": None, "rounds": 3, "colluding": 0.13, "sigma_cancelling": 1e5}
    setup = SessionSetup(roster_of(30, **agreed, epsilon=4.0, delta=1e-3))
    receivers = np.stack([setup.session.topology(PUBLIC_SEED).schedule.round(t).receivers for t in (1, 2, 3)])
    lost = [(1, 0), (2, 0)] if cut else [(1, 0)]  # of six messages to and from party 0
    undelivered = [Undelivered(t, sender, int(receivers[t - 1, sender, 0]), t) for t, sender in lost]
    for t, sender in lost:
        receivers[t - 1, sender, 0] = -1
    execution = inca.Execution(
        inca.ExplicitSchedule(receivers),
        setup.roster.terms.injection,
        undelivered=undelivered,
        cohort=np.ones(30, dtype=bool),
    )
    check = checker_of(setup).realized(realized_of(setup, execution))
    assert bool(check.refusal) is cut
    if cut:
        assert check.coalition == (3, 27, 28, 29) and check.names == ("p3", "p27", "p28", "p29")
        assert check.coalitions <= MOST_COALITIONS and not check.complete
    else:
        assert check.coalition is None and check.complete and check.coalitions == math.comb(29, 4)


def test_the_certificate_is_against_the_coalition_that_looks_worst_whatever_the_check_rests_on() -> None:
    setup = circle_of(rounds=2, colluding=0.4, min_participants=4)
    receivers = np.array([[[1], [2], [3], [4], [0]], [[2], [3], [4], [0], [1]]])
    receivers[1, 0] = receivers[1, 3] = receivers[0, 4] = -1  # party 0 has one partner left
    cohort = np.ones(N, dtype=bool)
    execution = inca.Execution(inca.ExplicitSchedule(receivers), setup.roster.terms.injection, cohort=cohort)
    certificate = checker_of(setup).certify(realized_of(setup, execution))
    assert 1 in certificate.transcript.known_adversary.colluding
    assert certificate.epsilon[0] == pytest.approx(max(exact_epsilons(setup, checker_of(setup), execution, 0)))


@pytest.mark.parametrize("changes", [{"parties": 4}, {"parties": 12}, {"parties": 40, "away": 0.05}])
def test_as_planned_the_bound_is_within_what_was_agreed_whoever_leaves(changes: dict[str, Any]) -> None:
    plan = inca.plan(inca.Requirements(**({"epsilon": 1.0} | changes)))
    wanted, rng = plan.requirements, np.random.default_rng(5)
    cards = tuple(Identity.create(f"p{i}").card(f"127.0.0.1:{7001 + i}") for i in range(wanted.parties))
    rest: dict[str, Any] = {"min_participants": wanted.survivors, "start": 1.9e9, "period": 10, "max_clock_skew": 1}
    agreed = Terms.from_plan(plan, dimension=3, radius=wanted.sensitivity / 2, **rest)
    setup = SessionSetup(Roster("planned", agreed, cards))
    schedule = setup.session.topology(PUBLIC_SEED).schedule
    for _ in range(5):
        present = np.ones((agreed.rounds + 1, wanted.parties), dtype=bool)
        party, *leavers = rng.permutation(wanted.parties)[: wanted.leavers + 1].tolist()
        for leaver in leavers:
            present[rng.integers(1, agreed.rounds + 1) :, leaver] = False
        presence = inca.Presence.explicit(present)
        execution = inca.Execution(schedule, agreed.injection, presence, cohort=present[-1].copy())
        checker = checker_of(setup, party)
        for check in (checker.planned, checker.realized(realized_of(setup, execution))):
            assert check.coalition is None and not check.refusal and check.epsilon > 0.99 * check.allowed
