"""From the roster to a session: the lattice, how much more noise is drawn on it, and values with theirs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import inca
from helpers.rosters import SEED, fixed_terms
from inca.errors import InvalidInput
from inca.network.lattice.fixed_point import largest_balance
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.node.session_setup import MIN_EXCESS, SessionSetup
from inca.privacy.gaussian import epsilon_for, mu_for

CARDS = tuple(Identity.create(f"party-{i}").card(f"127.0.0.1:{7001 + i}") for i in range(6))
# So many coordinates that whole numbers cost more than the least excess covers.
WIDE: dict[str, Any] = {"dimension": 10**7, "lower": None, "upper": None, "radius": 0.5}


def setup(parties: int = 6, **changes: Any) -> SessionSetup:
    return SessionSetup(Roster("trial", fixed_terms(**changes), CARDS[:parties]))


def planned(session: SessionSetup) -> inca.Execution:
    """Return the session at full attendance."""
    return inca.Execution(session.session.topology(bytes(32)).schedule, session.roster.terms.injection)


def added_by_whole_numbers(session: SessionSetup) -> float:
    """Return what docs/rounding.md says that they add at full attendance, all parties alike."""
    terms, step = session.roster.terms, session.lattice.granularity
    masks = terms.rounds * (8 * step / terms.sigma_cancelling) ** 2
    own = (3 * step / terms.sigma_independent) ** 2
    return math.sqrt(terms.dimension * len(session.roster.parties) * (masks + own))


def test_a_session_of_a_roster_that_is_not_complete_does_not_begin() -> None:
    with pytest.raises(InvalidInput, match="is not complete"):
        setup(parties=2)


def test_the_step_is_a_two_to_the_thirtieth_of_the_smaller_noise_rounded_down_to_a_power_of_two() -> None:
    assert setup().lattice.granularity == 2.0**-29  # the noise is 3
    assert setup(sigma_independent=40.0).lattice.granularity == 2.0**-26  # the smaller noise is 30.5


@pytest.mark.parametrize(
    ("fewer", "more"),
    [
        ({"parties": 3, "upper": 2.0**31}, {"parties": 6, "upper": 2.0**31}),
        ({"lower": -1.0}, {"lower": -(2.0**33)}),
        ({"rounds": 2, "sigma_cancelling": 2.0**20}, {"rounds": 80, "sigma_cancelling": 2.0**20}),
    ],
)
def test_the_step_is_coarser_where_all_that_may_come_to_one_place_would_not_fit_into_one_number(
    fewer: dict[str, Any], more: dict[str, Any]
) -> None:
    fine, coarse = setup(**fewer), setup(**more)
    assert fine.lattice.granularity < coarse.lattice.granularity
    for session in (fine, coarse):
        terms, n = session.roster.terms, len(session.roster.parties)
        balance = largest_balance(terms.noise_levels, terms.max_coordinate, n, terms.rounds)
        largest = max(balance, n * (terms.max_coordinate + 32 * 3.0)) / session.lattice.granularity
        assert largest < 2**62 and (session is fine or largest >= 2**61)


def test_the_step_follows_from_the_largest_top_up() -> None:
    wide = setup(sigma_together=2.0**23 * math.sqrt(2.0), colluding=0.0, min_participants=2)
    assert wide.lattice.granularity == 2.0**-26  # or it would be more than 2^50 steps
    assert wide.session.sigma_topup([1.0, 1.0]) == pytest.approx(2.0**49 * (1.0 + wide.noise_excess), rel=1e-12)
    # Beyond what can be drawn, as noise is raised for rounding: said before anyone sends anything.
    raised: dict[str, Any] = WIDE | {"epsilon": 0.001, "delta": 1e-6, "min_participants": 3}
    with pytest.raises(InvalidInput, match="sigma must be from 0 to"):
        _ = setup(**raised, sigma_together=2.0**20.8 * math.sqrt(2.0)).session


def test_noise_is_raised_so_far_that_the_agreed_loss_in_real_numbers_is_the_loss_in_whole_ones() -> None:
    mu = mu_for(0.0002, 1e-6)
    session = setup(**WIDE, epsilon=0.0002, delta=1e-6)
    step, added = session.lattice.granularity, added_by_whole_numbers(session)
    assert 0.05 < added / mu < 0.5
    rounding = session.rounding(planned(session))
    assert rounding.mu_added == pytest.approx(added, rel=1e-12)
    assert rounding.loss(np.array([mu]))[0] == pytest.approx(mu, rel=1e-12)
    # Two values of a ball of diameter 1 are further apart on the lattice, by a step in every coordinate at most.
    assert session.noise_excess == pytest.approx((1 + step * math.sqrt(1e7)) / (1 - added / mu) - 1, rel=1e-9)
    for level, sigma in ((session.session.sigma_independent, 3.0), (session.session.sigma_cancelling, 30.5)):
        assert level == math.ceil(sigma * (1 + session.noise_excess) / step)


def test_the_least_top_up_is_the_one_that_rounding_costs_most() -> None:
    """How much will be added depends on who leaves; half a step of little noise counts for more than of much."""
    changes: dict[str, Any] = {**WIDE, "epsilon": 0.002, "delta": 1e-6}
    none, little, much = (setup(**changes, sigma_together=level) for level in (0.0, 6.0, 60.0))
    assert little.noise_excess == much.noise_excess > none.noise_excess  # the least is a part of what all have
    for weights in ([1.0] * 6, [1.0, 1.0, 0.5]):
        added = little._added_mu(np.ones(6), little.session.topup.sigma(weights) / little._in_steps)
        assert added <= little._added_mu(np.ones(6), little._topup.least)


def test_a_smaller_distance_makes_the_steps_between_two_values_count_for_more() -> None:
    far, near = setup(), setup(distance=0.01)
    (wide, narrow), step = (session.rounding(planned(session)) for session in (far, near)), far.lattice.granularity
    assert far.noise_excess == near.noise_excess == MIN_EXCESS
    assert 1 + wide.excess == pytest.approx(
        (1 + MIN_EXCESS) / (1 + step * 2 / 2.0), rel=1e-15
    )  # a box of 4 has sqrt(4)
    assert 1 + narrow.excess == pytest.approx((1 + MIN_EXCESS) / (1 + step * 2 / 0.01), rel=1e-15)


@pytest.mark.parametrize(("share", "refused"), [(0.499, False), (0.501, True)])
def test_whole_numbers_may_add_half_of_the_agreed_loss_and_no_more(share: float, refused: bool) -> None:
    added = added_by_whole_numbers(setup(**WIDE))
    session = setup(**WIDE, epsilon=epsilon_for(added / share, 1e-9), delta=1e-9)
    if refused:
        with pytest.raises(InvalidInput, match=r"whole numbers add at most 0\.5 .* \(they would add 0\.501 of it\)"):
            _ = session.noise_excess
    else:
        assert session.noise_excess == pytest.approx(1 / (1 - share) - 1, rel=1e-4)


def test_a_party_that_was_away_makes_whole_numbers_cost_more() -> None:
    """A part of a value has a part of its noise: what was injected counts, not what was meant to be."""
    session = setup(rounds=3)
    present = np.ones((4, 6), dtype=bool)
    present[2:, 5] = False  # two of four parts are injected
    schedule = session.session.topology(bytes(32)).schedule
    execution = inca.Execution(schedule, session.roster.terms.injection, inca.Presence.explicit(present))
    step = session.lattice.granularity
    masks, own = 3 * (8 * step / 30.5) ** 2, (3 * step / 3.0) ** 2
    expected = math.sqrt(4 * (6 * masks + (5 + 2**2) * own))
    assert session.rounding(execution).mu_added == pytest.approx(expected, rel=1e-12)


def test_a_transcript_says_what_was_agreed_and_how_it_was_rounded() -> None:
    session = setup(failure=1e-7, distance=1.5)
    execution = planned(session)
    transcript = session.transcript(execution)
    assert transcript.execution is execution
    assert (transcript.sigma_independent, transcript.sigma_cancelling, transcript.sensitivity) == (3.0, 30.5, 1.5)
    assert transcript.agreed is not None and transcript.agreed.epsilon == 1.0
    assert (transcript.agreed.delta, transcript.agreed.colluding, transcript.agreed.failure) == (1e-5, 0.1, 1e-7)
    assert transcript.rounding == session.rounding(execution)


def test_the_state_machine_works_on_the_terms_of_the_roster() -> None:
    session = setup(min_round_duration=2.5)
    config = session.session
    assert (config.id, config.parties, config.rounds) == (session.roster.session, 6, 6)
    assert (config.schedule, config.dimension, config.min_participants) == ("permutation", 4, 3)
    assert (config.start, config.period, config.min_round_duration) == (1894694400.25, 10.0, 2.5)
    assert config.seed == bytes.fromhex(SEED) and config.names == tuple(session.roster.names)
    assert setup(seed=None).session.seed is None


def test_a_value_gets_noise_of_the_raised_level_that_is_never_drawn_twice() -> None:
    session = setup(dimension=2000)
    value = np.linspace(0.0, 1.0, 2000)
    noise = np.array([session.add_noise(value) - session.lattice.encode(value) for _ in range(2)])
    assert not np.array_equal(noise[0], noise[1]) and noise.dtype == np.int64
    # The mean square of 4000 normal numbers has a relative standard deviation of 0.022: both ends are 11 of them off.
    assert 0.75 < np.mean(np.square(noise, dtype=np.float64)) / session.session.sigma_independent**2 < 1.25
    assert abs(np.mean(noise)) < 0.12 * session.session.sigma_independent  # 7 standard errors


def test_without_its_noise_a_value_is_where_the_lattice_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "inca.network.node.session_setup.discrete_gaussian", lambda level, count, stream: np.zeros(count, np.int64)
    )
    session, one = setup(), setup(dimension=1)
    assert session.add_noise(np.array([0.0, 0.25, 0.5, 1.0])).tolist() == [0, 2**27, 2**28, 2**29]
    assert one.add_noise(np.array(0.5)).tolist() == [2**28]
    assert session.add_noise(np.array([-3.0, 0.25, 0.5, 7.0]), clip=True).tolist() == [0, 2**27, 2**28, 2**29]
    with pytest.raises(InvalidInput, match="values"):
        session.add_noise(np.array([-3.0, 0.25, 0.5, 7.0]))


@pytest.mark.parametrize("value", [np.zeros(3), np.zeros(5), np.zeros((1, 4))])
def test_a_value_with_another_number_of_coordinates_is_refused(value: np.ndarray) -> None:
    with pytest.raises(InvalidInput, match="the number of coordinates of the value must be 4, as agreed"):
        setup().add_noise(value)


def test_the_estimate_is_the_sum_of_values_over_the_sum_of_weights() -> None:
    session = setup()
    total = session.lattice.encode([1.5, 3.0, 0.0, -6.0])
    assert session.estimate(total, 3 * 2**40).tolist() == [0.5, 1.0, 0.0, -2.0]
    assert session.estimate(total, 3 * 2**39).tolist() == [1.0, 2.0, 0.0, -4.0]  # half of the weight was injected


def settled(session: SessionSetup, leavers: int) -> inca.Execution:
    """Return the session at full attendance of which so many of six are not in the cohort."""
    cohort = np.arange(6) < 6 - leavers
    return inca.Execution(planned(session).schedule, session.roster.terms.injection, cohort=cohort)


@pytest.mark.parametrize(
    ("leavers", "square"), [(0, 0.0), (1, (42.25 - 4 * 9) / 4), (2, (42.25 - 3 * 9) / 3), (3, (42.25 - 2 * 9) / 2)]
)
def test_noise_is_topped_up_by_what_the_honest_of_a_cohort_lack(leavers: int, square: float) -> None:
    session = setup(sigma_together=6.5)  # six of whom one colludes have 5 * 9 > 42.25 together
    execution, step, topup = settled(session, leavers), session.lattice.granularity, math.sqrt(square)
    levels = session.noise_levels(execution)
    assert (levels.independent, levels.cancelling) == (3.0, 30.5) and levels.topup == pytest.approx(topup, rel=1e-12)
    assert session.transcript(execution).sigma_topup == levels.topup
    drawn = session.session.sigma_topup([1.0] * (6 - leavers))
    assert 0.0 <= drawn - levels.topup * (1 + session.noise_excess) / step < 1.0 + 1e-6
    # docs/rounding.md: where noise is topped up it changes by half a step more, and the other by as much less.
    masks, own = 6 * (8 * step / 30.5) ** 2, ((3.5 if topup else 3.0) * step / 3.0) ** 2
    added = math.sqrt(4 * 6 * (masks + own + ((0.5 * step / topup) ** 2 if topup else 0.0)))
    assert session.rounding(execution).mu_added == pytest.approx(added, rel=1e-12)


def test_who_missed_a_round_brings_less_noise_and_all_make_up_for_it() -> None:
    session = setup(sigma_together=6.5, rounds=3)
    present = np.ones((4, 6), dtype=bool)
    present[2, 5] = False  # three of four parts are injected
    run = inca.Execution(planned(session).schedule, session.roster.terms.injection, inca.Presence.explicit(present))
    expected = math.sqrt((42.25 - (4 + 0.75**2) * 9) / 5)
    assert session.noise_levels(run.settled()).topup == pytest.approx(expected, rel=1e-12)
    assert session.noise_levels(run).topup == 0.0  # nobody has settled


def test_where_nothing_is_agreed_nothing_is_topped_up() -> None:
    assert setup().noise_levels(settled(setup(), 2)).topup == 0.0
    assert setup().session.topup.most(4) == setup().session.sigma_topup([1.0] * 4) == 0


@pytest.mark.parametrize("domain", [{"lower": -3.0, "upper": 1.0}, {"lower": None, "upper": None, "radius": 0.7}])
def test_no_value_of_the_domain_is_larger_on_the_lattice_than_agreed(domain: dict[str, Any]) -> None:
    """Also one that was clipped: a party that keeps to the terms must never be taken for a liar."""
    session = setup(**domain, sigma_cancelling=2.0**40, sigma_independent=2.0**30)
    most, lattice, agreed = session.session.largest_value, session.lattice, session.roster.terms.domain
    for value in ([5.0, 0.0, 0.0, 0.0], [-5.0, 1e-9, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]):
        clipped = agreed.validate(np.array([value])[:, : session.session.dimension], clip=True)
        assert np.abs(lattice.encode(clipped)).max() <= most
    corner = session.roster.terms.max_coordinate / lattice.granularity
    assert corner <= most <= corner * (1 + 1e-9) + 2
