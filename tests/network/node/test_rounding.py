"""Whole numbers: what they add to a loss, against changes of the noise that really hide another value."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import inca
from helpers.strategies import generator
from inca._base.types import Array
from inca.errors import InvalidInput
from inca.network.lattice.fixed_point import portion
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.membership.terms import Terms
from inca.network.node.loss_check import LossChecker
from inca.network.node.session_setup import MIN_EXCESS, SessionSetup, added_mu
from inca.privacy.gaussian import mu_for
from inca.protocol.rounding import Rounding

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Session:
    """A small session in whole numbers, in plain loops: one receiver, everyone honest but the colluders."""

    receivers: NDArray[np.int32]  # (T, n)
    present: NDArray[np.bool_]  # (T + 1, n)
    colluding: frozenset[int]
    pieces: int

    @property
    def parties(self) -> int:
        return int(self.receivers.shape[1])

    @property
    def rounds(self) -> int:
        return len(self.receivers)

    def sent(self, t: int, i: int) -> bool:
        """Whether what i held after round t was divided in round t + 1."""
        j = self.receivers[t, i]
        return bool(self.present[t + 1, i] and self.present[t + 1, j])

    def seen(self, t: int, i: int) -> bool:
        """Whether the adversary learns what i held after round t."""
        if t == self.rounds:
            return bool(self.present[t, i])
        return self.sent(t, i) and int(self.receivers[t, i]) in self.colluding

    def run(self, values: Numbers, masks: Numbers) -> Numbers:
        """What everyone holds after each round: (T + 1, n). `masks` are (n, T), in order of attendance."""
        n, held = self.parties, np.zeros((self.rounds + 1, self.parties), dtype=np.int64)
        attended, last, now = [0] * n, [0] * n, np.zeros(n, dtype=np.int64)
        for t in range(self.rounds + 1):
            before, now = now, now.copy()
            for i in range(n):
                if t and self.sent(t - 1, i):
                    part = int(before[i]) // 2
                    now[i] -= part
                    now[self.receivers[t - 1, i]] += part
            for i in range(n):
                if self.present[t, i]:
                    fresh = int(masks[i, attended[i]]) if t < self.rounds else 0
                    now[i] += int(portion(values[i : i + 1], attended[i], self.pieces)[0]) + fresh - last[i]
                    last[i], attended[i] = fresh, attended[i] + 1
            held[t] = now
        return held

    def weight(self, i: int) -> float:
        return min(int(self.present[:, i].sum()), self.pieces) / self.pieces

    def execution(self) -> inca.Execution:
        return inca.Execution(
            inca.ExplicitSchedule(self.receivers[:, :, np.newaxis]),
            inca.incremental_injection(self.rounds, quiet=self.rounds + 1 - self.pieces),
            inca.Presence.explicit(self.present),
        )

    def linear(self) -> Array:
        """The (seen messages, unknowns) matrix in real numbers; unknowns are the honest y_i, then their masks."""
        honest = [i for i in range(self.parties) if i not in self.colluding]
        columns = []
        for i in honest:
            columns.append(self._held(np.eye(self.parties)[i], np.zeros((self.parties, self.rounds))))
        for i in honest:
            for r in range(self.rounds):
                one = np.zeros((self.parties, self.rounds))
                one[i, r] = 1.0
                columns.append(self._held(np.zeros(self.parties), one))
        return np.array(columns)  # (unknowns, T + 1, n)

    def _held(self, values: Array, masks: Array) -> Array:
        n, held = self.parties, np.zeros((self.rounds + 1, self.parties))
        attended, last, now = [0] * n, [0.0] * n, np.zeros(n)
        for t in range(self.rounds + 1):
            before, now = now, now.copy()
            for i in range(n):
                if t and self.sent(t - 1, i):
                    now[i] -= before[i] / 2
                    now[self.receivers[t - 1, i]] += before[i] / 2
            for i in range(n):
                if self.present[t, i]:
                    fresh = masks[i, attended[i]] if t < self.rounds else 0.0
                    value = values[i] / self.pieces if attended[i] < self.pieces else 0.0
                    now[i] += value + fresh - last[i]
                    last[i], attended[i] = fresh, attended[i] + 1
            held[t] = now
        return held


def rounded(session: Session, flows: dict[tuple[int, int], float]) -> dict[tuple[int, int], int]:
    """Round what flows in each message so that sums up to any round, of senders and receivers, are off by 1 at most.

    As Lovasz, Spencer and Vesztergombi do: bit by bit, half of those with an odd last bit go up and half of them down,
    alternating along each sender's list and along each receiver's.
    """
    bits = 30
    numbers = {place: round(flow * 2**bits) for place, flow in flows.items()}
    for bit in range(bits):
        odd = sorted(place for place, number in numbers.items() if number >> bit & 1)
        lists: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for t, i in odd:
            lists.setdefault(("from", i), []).append((t, i))
            lists.setdefault(("to", int(session.receivers[t, i])), []).append((t, i))
        partners: dict[tuple[int, int], list[tuple[int, int]]] = {place: [] for place in odd}
        for entries in lists.values():
            for first, second in zip(entries[::2], entries[1::2], strict=False):
                partners[first].append(second)
                partners[second].append(first)
        sign: dict[tuple[int, int], int] = {}
        for place in odd:  # two matchings make paths and even cycles, which two colours suffice for
            waiting = [] if place in sign else [(place, 1)]
            while waiting:
                at, colour = waiting.pop()
                if at not in sign:
                    sign[at] = colour
                    waiting += [(partner, -colour) for partner in partners[at]]
        for place in odd:
            numbers[place] += sign[place] << bit
    return {place: number >> bits for place, number in numbers.items()}


@given(st.integers(3, 7), st.integers(1, 6), st.integers(0, 2), st.booleans(), st.integers(0, 2**32))
def test_whole_changes_of_the_noise_hide_another_value_and_are_near_the_real_ones(
    n: int, rounds: int, colluders: int, leaving: bool, seed: int
) -> None:
    rng = generator(seed)
    present = np.ones((rounds + 1, n), dtype=bool)
    if leaving:
        present[1:] = rng.random((rounds, n)) < 0.85
    colluding = frozenset(range(min(colluders, n - 1)))
    steps = inca.RandomReceivers(n, rounds, seed=int(rng.integers(2**31)))
    session = Session(
        np.array([steps.round(t).receivers[:, 0] for t in range(1, rounds + 1)]),
        present,
        colluding,
        rounds + 1 - int(rng.integers(0, rounds)),
    )
    honest = [i for i in range(n) if i not in colluding]
    target = int(rng.choice(honest))
    sigma_independent, sigma_cancelling, shift = 2.0**20, 2.0**22, 777_777

    # The smallest change of the noise, in real numbers, such that the adversary sees nothing of a shifted value.
    held = session.linear()
    seen = np.array([[session.seen(t, i) for i in range(n)] for t in range(rounds + 1)])
    levels = np.array([sigma_independent] * len(honest) + [sigma_cancelling] * (len(honest) * rounds))
    system, moved = held[:, seen].T * levels, held[honest.index(target), seen] * shift
    change = np.linalg.lstsq(system, -moved, rcond=1e-10)[0] * levels
    if np.linalg.norm(system @ (change / levels) + moved) > 1e-3:
        return  # the value is given away
    real = np.tensordot(change, held, axes=1) + held[honest.index(target)] * shift
    mu = float(np.linalg.norm(change / levels))

    # Whole numbers: hidden messages change by even numbers, so that halves are exact; all else follows.
    flows = {
        (t, i): real[t, i] / 2 for t in range(rounds) for i in honest if session.sent(t, i) and not session.seen(t, i)
    }
    whole = rounded(session, flows)
    values = rng.integers(-(2**40), 2**40, n)
    masks = rng.integers(-(2**40), 2**40, (n, rounds))
    before = session.run(values, masks)
    more = np.zeros_like(before)
    for i in honest:
        for t in reversed(range(rounds)):
            if not present[t + 1, i]:
                more[t, i] = more[t + 1, i] if t + 1 < rounds else round(real[t, i])  # it holds what it held
            elif (t, i) in whole:
                more[t, i] = 2 * whole[t, i]
            elif not session.seen(t, i):
                more[t, i] = round(real[t, i])
    own = {i: round(change[honest.index(i)] + shift * (i == target)) for i in honest if not present[-1, i]}
    new_values, new_masks = follow(session, honest, values, masks, more, whole, own)
    after = session.run(new_values, new_masks)
    assert (after[seen] == before[seen]).all()  # the adversary sees the same

    noise = new_values.copy() - values
    noise[target] -= shift
    excess_own = [abs(noise[i] - change[honest.index(i)]) for i in honest]
    allowed = [3 / session.weight(i) if present[-1, i] else 0.5 for i in honest]
    assert all(own <= most + 1e-3 for own, most in zip(excess_own, allowed, strict=True))
    by_mask = change[len(honest) :].reshape(len(honest), rounds)
    for place, i in enumerate(honest):
        attended = int(present[:rounds, i].sum())
        excess = np.abs((new_masks - masks)[i, :attended] - by_mask[place, :attended])
        assert excess.size == 0 or excess.max() <= 8 + 1e-3
    whole_mu = math.hypot(
        float(np.linalg.norm(noise[honest])) / sigma_independent,
        float(np.linalg.norm((new_masks - masks)[honest])) / sigma_cancelling,
    )
    added = added_mu(
        inca.NoiseLevels(independent=sigma_independent, cancelling=sigma_cancelling),
        rounds=rounds,
        dimension=1,
        weights=[session.weight(i) for i in range(n)],
    )
    assert whole_mu <= mu + added + 1e-6


def follow(
    session: Session,
    honest: list[int],
    values: Numbers,
    masks: Numbers,
    more: Numbers,
    whole: dict[tuple[int, int], int],
    own: dict[int, int],
) -> tuple[Numbers, Numbers]:
    """Return values and masks with which parties hold so much more: masks absorb all but what goes out for good.

    `own` says by how much the values of those change who leave, and who therefore need not come out even.
    """
    new_values, new_masks = values.copy(), masks.copy()
    for i in honest:
        out = [0] * (session.rounds + 1)  # by how much more has gone out than come in, up to each round
        for (t, sender), part in whole.items():
            if sender == i or session.receivers[t, sender] == i:
                for later in range(t + 1, session.rounds + 1):
                    out[later] += part if sender == i else -part
        if i in own:
            new_values[i] += own[i]
        else:
            new_values[i] = _least_value(session, i, int(values[i]), out[-1])
        attended = 0
        for t in range(session.rounds):
            if session.present[t, i]:
                old, new = (
                    sum(int(portion(v[i : i + 1], r, session.pieces)[0]) for r in range(attended + 1))
                    for v in (values, new_values)
                )
                new_masks[i, attended] = masks[i, attended] + more[t, i] + out[t] - (new - old)
                attended += 1
    return new_values, new_masks


def _least_value(session: Session, i: int, value: int, more: int) -> int:
    """Return the value nearest to the real solution whose injected part is larger by `more`."""
    count = min(int(session.present[:, i].sum()), session.pieces)

    def injected(v: int) -> int:
        return v * count // session.pieces

    goal = injected(value) + more
    guess = value + round(more * session.pieces / count)
    return min(
        (v for v in range(guess - 2 * session.pieces - 2, guess + 2 * session.pieces + 3) if injected(v) == goal),
        key=lambda v: abs(v - guess),
    )


# --- how it is used -------------------------------------------------------------------------------------------------


def setup(**changes: Any) -> SessionSetup:
    terms: dict[str, Any] = {"rounds": 5, "schedule": "permutation"}
    terms |= {"sigma_independent": 3.0, "sigma_cancelling": 30.0, "dimension": 1, "lower": 0.0, "upper": 1.0}
    terms |= {"epsilon": 2.0, "delta": 1e-5, "rule": "analytic", "colluding": 0.2}
    terms |= {"min_participants": 4, "start": 1_900_000_000.0, "period": 10.0, "max_clock_skew": 1.0}
    cards = tuple(Identity.create(f"party-{i}").card(f"127.0.0.1:{7000 + i}") for i in range(6))
    return SessionSetup(Roster("trial", Terms(**(terms | changes)), cards))


def test_ordinary_sessions_have_the_noise_that_they_had_before() -> None:
    ordinary = setup(seed="ab" * 16)
    assert ordinary.noise_excess == MIN_EXCESS
    assert ordinary.session.sigma_independent == math.ceil(3.0 * (1 + 2.0**-20) / ordinary.lattice.granularity)


def test_ten_million_coordinates_need_more_noise_than_two_to_the_minus_twenty() -> None:
    mu = mu_for(0.1, 1e-5)
    large = setup(dimension=10**7, lower=None, upper=None, radius=0.5, epsilon=0.1, sigma_independent=1.0 / mu)
    step = large.lattice.granularity
    encoding = step * math.sqrt(1e7) / 1.0
    assert encoding > 2 * MIN_EXCESS  # what the old fraction was to cover, alone
    # All that was agreed in real numbers is no more in whole ones.
    planned = inca.Execution(large.session.topology(bytes(32)).schedule, large.roster.terms.injection)
    rounding = large.rounding(planned)
    assert rounding.mu_added > 0.0 and rounding.loss(np.array([mu]))[0] <= mu * (1 + 1e-12)
    assert (1 + large.noise_excess) == pytest.approx((1 + rounding.excess) * (1 + encoding), rel=1e-12)
    assert large.session.sigma_cancelling >= 30.0 * (1 + large.noise_excess) / step


def test_a_dimension_at_which_rounding_is_most_of_the_loss_is_refused() -> None:
    sentence = r"dimension must be so small that whole numbers add at most 0\.5 of the agreed loss"
    with pytest.raises(InvalidInput, match=sentence):
        _ = setup(dimension=10**7, lower=None, upper=None, radius=0.5, epsilon=1e-6).noise_excess


def test_a_partys_own_loss_and_its_certificate_include_what_whole_numbers_add(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = setup(seed="ab" * 16)
    topology = session.session.topology(bytes.fromhex("ab" * 16))
    checker = LossChecker(session, bytes.fromhex("ab" * 16), party=3)
    execution = inca.Execution(topology.schedule, session.roster.terms.injection)
    coalition = tuple(checker.coalitions[0].tolist())
    mu = checker._losses(execution).exact(coalition)
    monkeypatch.setattr(SessionSetup, "rounding", lambda self, execution: Rounding(excess=0.0, mu_added=0.25))
    more = checker._losses(execution).exact(coalition)
    before = (mu - session_rounding(session).mu_added) * (1 + session_rounding(session).excess)
    assert more == pytest.approx(before + 0.25, rel=1e-6)
    transcript = replace(session.transcript(execution), adversary=inca.Adversary(coalition))
    exact = inca.certify(replace(transcript, rounding=None))
    assert inca.certify(transcript).losses.mu == pytest.approx(exact.losses.mu + 0.25)


def session_rounding(session: SessionSetup) -> Rounding:
    """The rounding of a planned execution, worked out by hand: one receiver, everyone present."""
    terms, step = session.roster.terms, session.lattice.granularity
    own, masks = 3.0 * step / terms.sigma_independent, 8.0 * step / terms.sigma_cancelling
    added = math.sqrt(6 * (own**2 + 5 * masks**2))
    return Rounding((1 + MIN_EXCESS) / (1 + step) - 1, added)


def test_the_rounding_of_a_session_is_what_the_proof_says() -> None:
    session = setup(seed="ab" * 16)
    execution = inca.Execution(session.session.topology(bytes(32)).schedule, session.roster.terms.injection)
    expected, actual = session_rounding(session), session.rounding(execution)
    assert actual.mu_added == pytest.approx(expected.mu_added) and actual.excess == pytest.approx(expected.excess)


def test_a_party_that_has_injected_half_of_its_value_has_half_as_much_noise_to_hide_a_step() -> None:
    """By the definition: the changes of all noise, each in its own standard deviations, as one vector."""
    levels, weights = inca.NoiseLevels(independent=2.0**20, cancelling=2.0**22), [1.0, 0.5, 0.25]
    added = added_mu(levels, rounds=3, dimension=5, weights=weights)
    of_masks, of_own = [8 / 2**22] * 3, [3 / weight / 2**20 for weight in weights]
    changes = np.array([[own, *of_masks] for own in of_own for _ in range(5)])
    assert added == pytest.approx(float(np.linalg.norm(changes)))


@pytest.mark.parametrize(
    "fields",
    [
        {"excess": -1.0, "mu_added": 0.0},
        {"excess": 1.01, "mu_added": 0.0},
        {"excess": 0.0, "mu_added": math.nan},
        {"excess": 0.0, "mu_added": -1e-9},  # whole numbers never make a loss smaller
    ],
)
def test_a_rounding_that_makes_no_sense_is_refused(fields: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="rounding"):
        Rounding(**fields)
