from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import chdtri, ndtri

import inca
from helpers.examples import examples
from helpers.strategies import executions, generator, seeds
from inca import Adversary, NoiseLevels, View, account
from inca.privacy import attack
from inca.privacy.attack import distinguish, observe, plain_gossip, reconstruct, single_noise_term, watch
from inca.privacy.gaussian import epsilon_for
from inca.privacy.view import noise_root

LEVELS = [
    NoiseLevels(independent=independent, cancelling=cancelling)
    for independent, cancelling in (
        (0.0, 0.0),
        (0.0, 40.0),
        (0.03, 0.0),
        (0.02, 5.0),
        (7.0, 0.3),
        (0.5, 900.0),
        (1e-3, 1e-3),
    )
]


@st.composite
def views(draw: st.DrawFn) -> View:
    execution = draw(executions())
    n, rounds, rng = execution.parties, execution.rounds, generator(draw(seeds))
    colluding, eavesdropped = draw(st.sampled_from([0.0, 0.3])), draw(st.sampled_from([0.0, 0.2, 1.0]))
    colluders = rng.permutation(n)[: min(n - 1, math.ceil(colluding * n))].tolist()
    messages = np.argwhere(rng.random((rounds + 1, n)) < eavesdropped).tolist()
    return View(execution, Adversary(colluders, [(t, i) for t, i in messages]))


def gossip(injection: inca.Injection, n: int = 40, colluding: float = 0.2) -> View:
    """The same schedule and adversary for any injection of 12 rounds."""
    execution = inca.Execution(inca.RandomReceivers(n, 12, seed=1), injection)
    return View(execution, Adversary.random(n, 12, generator(3), colluding=colluding))


@given(views(), seeds, st.sampled_from([None, 1, 3]))
def test_observing_gives_the_linear_system(view: View, seed: int, d: int | None) -> None:
    rng, n, rounds = generator(seed), view.execution.parties, view.execution.rounds
    more = () if d is None else (d,)
    values = rng.normal(size=(n, *more))
    noise = inca.Noise(rng.normal(size=(n, *more)), 5 * rng.normal(size=(n, rounds, *more)))
    outcome = inca.simulate(view.execution, values, noise=noise, record=True)
    y = observe(view, outcome, values, noise)
    u, eta = (values + noise.independent)[view.honest], noise.cancelling[view.honest]
    assert np.allclose(y, view.value @ u + view.noise @ eta.reshape(-1, *more), rtol=0, atol=1e-11)


@given(views(), seeds, st.sampled_from(LEVELS))
def test_watching_is_observing_a_simulated_run(view: View, seed: int, levels: NoiseLevels) -> None:
    values = generator(seed).random((view.execution.parties, 3))
    noise = inca.draw_noise(view.execution, levels, generator(seed), dimensions=3)
    outcome = inca.simulate(view.execution, values, levels, generator(seed), record=True)
    y = observe(view, outcome, values, noise)
    assert np.allclose(
        watch(view, values, levels, generator(seed)),
        y,
        rtol=0,
        atol=1e-12 * (1 + 10 * max(levels.independent, levels.cancelling)),
    )


def test_columns_are_independent_runs() -> None:
    view, trials = gossip(inca.incremental_injection(12), n=10), 20_000
    y = watch(view, np.zeros((10, trials)), NoiseLevels(independent=0.3, cancelling=4.0), generator(5))
    root = np.linalg.cholesky(0.3**2 * view.value @ view.value.T + 4.0**2 * view.noise @ view.noise.T)
    z = np.linalg.solve(root, y)  # standard normal if columns have covariance Sigma
    low, high = _chi_square(trials * len(z), 1e-7)
    assert low < (z**2).sum() < high
    # Neighbouring and distant columns: products of independent standard normals have variance 1; 1e-7 each.
    for lag in (1, trials // 2):
        products = z[:, lag:] * z[:, :-lag]
        assert abs(products.sum()) < -ndtri(0.5e-7) * math.sqrt(products.size)


@given(views(), seeds, st.sampled_from(LEVELS))
@examples(25, 150)
def test_standard_errors_are_one_over_the_accounted_loss(view: View, seed: int, levels: NoiseLevels) -> None:
    mu = account(view, levels, sensitivity=1.0).mu
    values = generator(seed).random(view.execution.parties)
    found = reconstruct(view, watch(view, values, levels, generator(seed)), levels, others=values)
    with np.errstate(divide="ignore"):
        assert np.allclose(found.standard_error, 1 / mu, rtol=1e-6, atol=0)
    assert (np.isnan(found.estimate) == (mu == 0)).all()
    bare = np.isinf(mu)
    assert np.allclose(found.estimate[bare], values[view.honest][bare], rtol=0, atol=1e-7)


@given(views(), seeds, st.sampled_from(LEVELS), st.sampled_from([1e-4, 0.7, 300.0]))
@examples(25, 150)
def test_the_uninformed_know_more_than_nothing_and_less_than_the_informed(
    view: View, seed: int, levels: NoiseLevels, variance: float
) -> None:
    informed = reconstruct(view, np.zeros(view.shape[0]), levels, others=np.zeros(view.execution.parties))
    found = reconstruct(view, np.zeros(view.shape[0]), levels, prior=(0.0, variance))
    # Who knows the others' values and the spread of the own one as well: precisions add up.
    least = 1 / np.hypot(1 / math.sqrt(variance), 1 / np.maximum(informed.standard_error, 1e-300))
    slack = 1e-7 * math.sqrt(variance)
    assert (found.standard_error <= math.sqrt(variance) + slack).all()
    assert (found.standard_error >= least - slack).all()


@pytest.mark.parametrize(("independent", "cancelling"), [(0.02, 5.0), (7.0, 0.3), (0.5, 90.0)])
@pytest.mark.parametrize("kind", ["incremental", "early", "single", "leavers"])
def test_achieved_errors_are_the_promised_ones(kind: str, independent: float, cancelling: float) -> None:
    levels = NoiseLevels(independent=independent, cancelling=cancelling)
    make = {"early": inca.early_injection, "single": single_noise_term}.get(kind, inca.incremental_injection)
    view, rng, runs = gossip(make(12), n=20), generator(11), 2000
    if kind == "leavers":
        presence = inca.Presence.leaving(20, 12, 0.3, generator(2))
        view = View(inca.Execution(view.execution.schedule, make(12), presence), view.adversary)
    mean, variance = 3.0, 0.8
    values = rng.normal(mean, math.sqrt(variance), (20, runs))
    y = watch(view, values, levels, rng)
    for found in (
        reconstruct(view, y, levels, others=values),
        reconstruct(view, y, levels, prior=(mean, variance)),
    ):
        squares = ((found.estimate - values[view.honest]) ** 2).sum(axis=1) / found.standard_error**2
        low, high = _chi_square(runs, 1e-6 / (24 * view.honest.size))  # 1e-6 for all cases together
        assert (low < squares).all() and (squares < high).all()


def _chi_square(degrees: int, alpha: float) -> tuple[float, float]:
    return float(chdtri(degrees, 1 - alpha / 2)), float(chdtri(degrees, alpha / 2))


@given(views(), seeds, st.sampled_from(LEVELS), st.sampled_from([0.0, 1e-5, 0.02, 0.3]))
@examples(40, 250)
def test_no_attack_beats_the_accountant(view: View, seed: int, levels: NoiseLevels, delta: float) -> None:
    rng = generator(seed)
    party = int(rng.choice(view.honest))
    # False alarms: 250 cases of 4e-9, that is 1e-6 in all. The sensitivity makes guessing neither hopeless nor easy.
    mu = account(view, levels, sensitivity=1.0).mu[view.honest.tolist().index(party)]
    sensitivity = 2.0 if mu in (0.0, math.inf) else float(rng.uniform(0.2, 4.0)) / float(mu)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attack, "FALSE_ALARM", 4e-9)
        found = distinguish(view, party, levels, delta, rng, trials=int(rng.integers(1, 600)), sensitivity=sensitivity)
    assert found.mu == pytest.approx(mu * sensitivity, rel=1e-6)
    assert 0.0 <= found.epsilon_lower <= float(epsilon_for(mu * sensitivity, delta)) * (1 + 1e-9)


@pytest.mark.parametrize("delta", [0.0, 0.05, pytest.param(0.2, marks=pytest.mark.slow)])
def test_many_trials_come_close(delta: float) -> None:
    view, trials = gossip(inca.incremental_injection(12), n=8), 80_000 if delta > 0 else 30_000
    done: list[tuple[int, int]] = []
    found = distinguish(
        view,
        int(view.honest[0]),
        NoiseLevels(independent=0.5, cancelling=20.0),
        delta,
        generator(8),
        trials=trials,
        progress=lambda *step: done.append(step),
        sensitivity=1.0,
    )
    assert done[-1] == (trials, trials)
    # Two means over as many runs: five standard errors of their difference, 6e-7.
    assert found.mu_measured == pytest.approx(found.mu, abs=5 * math.sqrt((2 + found.mu**2 / 4) / trials))
    assert found.epsilon_lower <= found.epsilon
    if delta > 0:
        assert found.epsilon_lower > 0.75 * found.epsilon
        # An accountant that took the noise for half as much again as there is would be found out.
        assert found.epsilon_lower > epsilon_for(found.mu / 1.5, delta)
    else:  # an infinite loss cannot be shown by counting, but something can
        assert found.epsilon == math.inf and 1 < found.epsilon_lower < 20


def test_limits_are_clopper_and_pearsons() -> None:
    # No mistake in N trials: the upper limit p has (1 - p)^N = alpha; all caught: the lower one has q^N = alpha.
    lower = attack._epsilon_lower(1000, 0, 1000, 0.1, 1e-3)
    assert float(lower) == pytest.approx(math.log((1e-3**1e-3 - 0.1) / (1 - 1e-3**1e-3)))
    assert float(attack._epsilon_lower(0, 1000, 1000, 0.0, 1e-3)) < -700


def test_one_noise_term_is_not_enough() -> None:
    values, rng = generator(4).random(40), generator(6)
    views = {"single": gossip(single_noise_term(12)), "plain": gossip(plain_gossip(12))}
    views |= {"valid": gossip(inca.incremental_injection(12)), "early": gossip(inca.early_injection(12))}
    honest = views["valid"].honest
    identified = {}
    for name, view in views.items():
        y = watch(view, values, NoiseLevels(independent=0.0, cancelling=50.0), rng)
        found = reconstruct(view, y, NoiseLevels(independent=0.0, cancelling=50.0), prior=(0.5, 1 / 12))
        # Identified are the values that the rows of (B, A) determine, whatever the other unknowns are.
        system = np.hstack([view.value, view.noise])
        units = np.eye(honest.size, system.shape[1])
        missed = units - units @ np.linalg.pinv(system, rcond=1e-10) @ system
        identified[name] = np.linalg.norm(missed, axis=1) < 1e-8
        assert ((found.standard_error < 1e-9) == identified[name]).all()
        assert np.allclose(found.estimate[identified[name]], values[honest][identified[name]], rtol=0, atol=1e-9)
        if name in ("valid", "early"):
            assert (found.standard_error > 0.98 * 12**-0.5).all()
    # One noise term hides no more than none. All values are read off but those of a ring of six honest parties in
    # round 1, which average what alternates around the ring away before anything of it is seen.
    assert (identified["single"] == identified["plain"]).all()
    ring = [0, 39, 3, 21, 32, 7]
    assert honest[~identified["single"]].tolist() == sorted(ring)
    receivers = views["single"].execution.sends(1).receivers[ring, 0]
    assert receivers.tolist() == [*ring[1:], ring[0]]
    assert not identified["valid"].any() and not identified["early"].any()
    # With independent noise, it is Local DP for those who are identified.
    losses = {
        name: account(view, NoiseLevels(independent=0.5, cancelling=50.0), sensitivity=1.0).mu
        for name, view in views.items()
    }
    assert np.allclose(losses["single"][identified["single"]], 1 / 0.5)
    assert (losses["valid"] < 1 / 0.5 / 5).all()
    levels, party = NoiseLevels(independent=0.5, cancelling=50.0), int(honest[0])
    local, valid = (
        distinguish(views[name], party, levels, 0.05, generator(1), trials=5_000, sensitivity=1.0)
        for name in ("single", "valid")
    )
    assert local.epsilon_lower > 5 * valid.epsilon  # what the attack shows of one is more than the other can lose


def test_without_any_noise_values_are_read_off() -> None:
    view = gossip(plain_gossip(12), colluding=0.5)
    values = generator(4).random((40, 3))
    y = watch(view, values, NoiseLevels(independent=0.0, cancelling=0.0), generator(1))
    informed = reconstruct(view, y, NoiseLevels(independent=0.0, cancelling=0.0), others=values)
    assert (informed.standard_error == 0).all()
    assert np.allclose(informed.estimate, values[view.honest], rtol=0, atol=1e-10)
    # The own row of `others` is not used.
    blind = values.copy()
    blind[view.honest[0]] = -99.0
    assert np.allclose(
        reconstruct(view, y, NoiseLevels(independent=0.0, cancelling=0.0), others=blind).estimate[0],
        values[view.honest[0]],
        atol=1e-10,
    )
    found = distinguish(
        view,
        int(view.honest[0]),
        NoiseLevels(independent=0.0, cancelling=0.0),
        1e-5,
        generator(2),
        trials=1000,
        sensitivity=1.0,
    )
    assert found.mu == found.epsilon == math.inf
    assert found.epsilon_lower == pytest.approx(math.log(1000 / math.log(4e6)), rel=0.02)


@given(executions(), seeds)
def test_with_everything_eavesdropped_only_independent_noise_protects(execution: inca.Execution, seed: int) -> None:
    assume(execution.presence.all_present)
    everything = [(t, i) for t in range(execution.rounds + 1) for i in range(execution.parties)]
    view, values = View(execution, Adversary(eavesdropped=everything)), generator(seed).random(execution.parties)
    levels = NoiseLevels(independent=0.3, cancelling=70.0)
    found = reconstruct(view, watch(view, values, levels, generator(seed)), levels, others=values)
    assert np.allclose(found.standard_error, 0.3, rtol=1e-6)


def test_vectors_are_attacked_by_coordinate() -> None:
    view, values = gossip(inca.incremental_injection(12), n=12), generator(1).random((12, 3))
    y = watch(view, values, NoiseLevels(independent=0.2, cancelling=3.0), generator(2))
    for k in range(3):
        for more in ({"prior": (0.5, 0.1)}, {"others": values}):
            one = more if "prior" in more else {"others": values[:, k]}
            whole = reconstruct(view, y, NoiseLevels(independent=0.2, cancelling=3.0), **more)
            part = reconstruct(view, y[:, k], NoiseLevels(independent=0.2, cancelling=3.0), **one)
            assert np.allclose(whole.estimate[:, k], part.estimate, rtol=1e-9)
            assert (whole.standard_error == part.standard_error).all()


@given(views(), st.sampled_from(LEVELS[3:]))
def test_the_short_way_is_the_long_one(view: View, levels: NoiseLevels) -> None:
    whiten, free = attack._whitener(noise_root(view, levels))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attack, "_SAFE", 2.0)
        again, rest = attack._whitener(noise_root(view, levels))
    assert free.shape == rest.shape
    scale = np.abs(again).max(initial=1e-300) ** 2
    assert np.allclose(whiten.T @ whiten / scale, again.T @ again / scale, rtol=0, atol=1e-6)


def test_party_that_nobody_hears_of() -> None:
    presence = inca.Presence.explicit([[1, 1, 1], [0, 1, 1], [0, 1, 1]])
    view = View(inca.Execution(inca.RandomReceivers(3, 2, seed=1), inca.incremental_injection(2), presence))
    found = distinguish(
        view, 0, NoiseLevels(independent=1.0, cancelling=2.0), 0.1, generator(1), trials=10, sensitivity=1.0
    )
    assert found.mu == found.epsilon == found.epsilon_lower == 0.0
    guess = reconstruct(view, np.ones(2), NoiseLevels(independent=1.0, cancelling=2.0), prior=(0.25, 4.0))
    assert guess.estimate[0] == 0.25 and guess.standard_error[0] == 2.0


def test_refusals() -> None:
    view = gossip(inca.incremental_injection(12))
    rng, x = generator(1), np.zeros(40)
    y = np.zeros(view.shape[0])
    outcome = inca.simulate(view.execution, x, NoiseLevels(independent=1.0, cancelling=1.0), rng, record=True)
    other = gossip(inca.incremental_injection(12))
    party = int(view.honest[0])
    refused: list[tuple[Any, str]] = [
        (
            lambda: observe(other, outcome, x),
            "outcome must be a run of the view's execution, got one of another execution",
        ),
        (
            lambda: observe(
                view, inca.simulate(view.execution, x, NoiseLevels(independent=1.0, cancelling=1.0), rng), x
            ),
            "outcome must be a run simulated with record=True, got one without a history",
        ),
        (lambda: observe(view, outcome, x), "noise must be given, as colluders know what they put in, got none"),
        (lambda: observe(view, outcome), "values must be given, as colluders know what they put in, got none"),
        (
            lambda: reconstruct(view, y[1:], NoiseLevels(independent=1.0, cancelling=1.0), others=x),
            "the number of rows of y",
        ),
        (
            lambda: reconstruct(view, y, NoiseLevels(independent=1.0, cancelling=1.0), others=x[:, np.newaxis]),
            "the shape of a row of others",
        ),
        (
            lambda: reconstruct(view, y, NoiseLevels(independent=1.0, cancelling=1.0)),
            "others or prior must be given, to say what the adversary knows, got neither",
        ),
        (
            lambda: reconstruct(view, y, NoiseLevels(independent=1.0, cancelling=1.0), others=x, prior=(0, 1)),
            "others cannot be combined with prior",
        ),
        (
            lambda: reconstruct(view, y, NoiseLevels(independent=1.0, cancelling=1.0), prior=(0, -1)),
            "the variance of prior must be at least 0, got -1",
        ),
        (
            lambda: reconstruct(view, y, NoiseLevels(independent=-1.0, cancelling=1.0), others=x),
            r"sigma_independent must be at least 0, got -1\.0",
        ),
        (
            lambda: reconstruct(view, y, NoiseLevels(independent=1e-6, cancelling=100.0), others=x),
            r"sigma_cancelling / sigma_independent must be at most 1e\+07, where double precision "
            r"suffices, got 100000000\.0",
        ),
        (
            lambda: distinguish(
                view,
                view.adversary.colluding[0],
                NoiseLevels(independent=1.0, cancelling=1.0),
                0.1,
                rng,
                sensitivity=1.0,
            ),
            "an honest party",
        ),
        (
            lambda: distinguish(view, 40, NoiseLevels(independent=1.0, cancelling=1.0), 0.1, rng, sensitivity=1.0),
            "party must be from 0 to 39, got 40",
        ),
        (
            lambda: distinguish(view, party, NoiseLevels(independent=1.0, cancelling=1.0), 2.0, rng, sensitivity=1.0),
            r"delta must be from 0 to 1, got 2\.0",
        ),
        (
            lambda: distinguish(
                view, party, NoiseLevels(independent=1.0, cancelling=1.0), 0.1, rng, trials=0, sensitivity=1.0
            ),
            "trials must be at least 1, got 0",
        ),
        (
            lambda: distinguish(view, party, NoiseLevels(independent=1.0, cancelling=1.0), 0.1, rng, sensitivity=0),
            "sensitivity must be above 0, got 0",
        ),
        (
            lambda: distinguish(view, party, NoiseLevels(independent=1.0, cancelling=1.0), 0.1, 1, sensitivity=1.0),  # type: ignore[arg-type]
            r"rng must be a numpy\.random\.Generator, got 1",
        ),
        (lambda: single_noise_term(0), "rounds must be at least 1, got 0"),
    ]
    for call, sentence in refused:
        with pytest.raises(inca.InvalidInput, match=sentence):
            call()


def test_late_and_lost_shares_are_refused() -> None:
    schedule = inca.ExplicitSchedule([[[-1], [0]], [[1], [0]]])
    late, in_time = (
        View(inca.Execution(schedule, inca.incremental_injection(2), undelivered=[(1, 0, 1, back)])) for back in (0, 1)
    )
    outcome = inca.simulate(
        in_time.execution, [1.0, 2.0], NoiseLevels(independent=0.0, cancelling=1.0), generator(1), record=True
    )
    for call in (
        lambda: watch(late, [1.0, 2.0], NoiseLevels(independent=1.0, cancelling=1.0), generator(1)),
        lambda: observe(late, inca.Outcome(late.execution, outcome.messages, outcome.history)),
        lambda: reconstruct(late, np.zeros(3), NoiseLevels(independent=1.0, cancelling=1.0), prior=(0.0, 1.0)),
        lambda: distinguish(late, 0, NoiseLevels(independent=1.0, cancelling=1.0), 0.1, generator(1), sensitivity=1.0),
    ):
        with pytest.raises(
            inca.InvalidInput,
            match=r"an entry of undelivered must be back in its own round, as attacks do not cover late or lost "
            r"shares, got \(1, 0, 1, 0\)",
        ):
            call()
    assert watch(in_time, [1.0, 2.0], NoiseLevels(independent=1.0, cancelling=1.0), generator(1)).shape == (2,)
