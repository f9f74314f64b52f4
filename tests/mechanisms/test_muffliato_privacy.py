"""What Muffliato claims, against an independent computation of what an observer sees."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest

from helpers.gossip_graphs import graph_of
from inca._base.types import Array
from inca.mechanisms.gossip_matrix import GossipGraph, gossip_graph
from inca.mechanisms.muffliato import GossipLoss, Muffliato
from inca.planning.requirements import Requirements
from inca.privacy.gaussian import epsilon_for, mu_for

PAPER = Requirements(parties=1024, epsilon=0.1, delta=1e-5, colluding=0.0, dropout=0.0)
SMALL = Requirements(parties=16, epsilon=0.5, delta=1e-5, sensitivity=3.0, colluding=0.0, dropout=0.0)


def some(name: str) -> GossipGraph:
    if name == "ring":
        return graph_of(nx.to_numpy_array(nx.cycle_graph(16)) / 3 + np.eye(16) / 3)
    return gossip_graph(name, 16, np.random.default_rng(1))


def squared_shifts(mechanism: Muffliato, observer: int) -> Array:
    """mu^2 = h^T Sigma^+ h of every other party: gossip is run on unit vectors, and what one party hears written down.

    A message is sum_u a_u (x_u + eta_u). The observer knows its own noise; the others' has variance sigma^2.
    """
    graph, n = mechanism.graph, mechanism.graph.parties
    near = [w for w in range(n) if w != observer and graph.matrix.toarray()[observer, w] > 0]
    heard = np.concatenate([graph.mix(np.eye(n), t, mechanism.accelerated)[near] for t in range(mechanism.rounds)])
    unknown = np.delete(heard, observer, axis=1)
    inverse = np.linalg.pinv(mechanism.var_noise * unknown @ unknown.T, rcond=1e-12, hermitian=True)
    shifts = mechanism.requirements.sensitivity * unknown  # one column h for each party
    return np.asarray(np.einsum("iu,ij,ju->u", shifts, inverse, shifts))


@pytest.mark.parametrize("name", ["hypercube", "complete", "regular", "geometric", "ring"])
@pytest.mark.parametrize("accelerated", [False, True])
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_the_claimed_loss_is_at_least_the_true_one(name: str, accelerated: bool, rounds: int) -> None:
    """Towards every observer, who knows the graph, the mean squared shift over parties is at most the required one."""
    mechanism = Muffliato(SMALL, some(name), accelerated=accelerated, rounds=rounds)
    true = np.array([squared_shifts(mechanism, observer) for observer in range(16)])
    means = true.sum(axis=1) / 16
    assert means.max() <= SMALL.mu**2 * (1 + 1e-6)
    assert means.max() > 0.3 * SMALL.mu**2  # and the claim is not idle
    if name in ("hypercube", "complete", "ring"):  # all are alike: the mean over observers is the mean over parties
        by_party = np.array([np.insert(row, observer, 0.0) for observer, row in enumerate(true)]).mean(axis=0)
        assert by_party.max() <= SMALL.mu**2 * (1 + 1e-6)
    unit = (SMALL.sensitivity**2) / mechanism.var_noise
    assert np.allclose(true[3], unit * np.delete(mechanism.loss.informed(3), 3), rtol=1e-4, atol=1e-4 * unit)
    assert mechanism.loss.bound * unit == pytest.approx(SMALL.mu**2)


def test_all_mechanisms_are_converted_by_one_rule_unless_the_paper_is_to_be_reproduced() -> None:
    own, published = Muffliato(PAPER), Muffliato(PAPER, conversion="renyi")
    assert own.mu == PAPER.mu > published.mu
    assert own.var_noise == pytest.approx(170 / 1024 * PAPER.var_local_dp)
    assert own.var_noise < published.var_noise < PAPER.var_local_dp
    assert round(published.ideal_mse, 4) == 0.3749
    compared = Requirements(200, 0.2, 1e-5, colluding=0.1, dropout=0.0)
    regular = gossip_graph("regular", 200, np.random.default_rng(0))
    by_both = [Muffliato(compared, regular), Muffliato(compared, regular, conversion="renyi")]
    relative = [mechanism.ideal_mse / compared.central_mse for mechanism in by_both]
    assert relative == pytest.approx([80.0, 174.7], abs=0.05)


def test_the_noise_is_never_more_than_local_dps_but_as_published() -> None:
    """On dense or slow graphs T d / n is above 1; the noisy values themselves, all of them, are no more than 1."""
    for name in ("complete", "geometric"):
        own = Muffliato(SMALL, some(name), rounds=12)
        assert own.loss.closed > 1.0 == own.loss.bound
        assert own.var_noise == SMALL.var_local_dp
        published = Muffliato(SMALL, some(name), rounds=12, conversion="renyi")
        assert published.var_noise > own.loss.closed * SMALL.var_local_dp


def test_what_is_left_against_colluders() -> None:
    for mechanism in (Muffliato(PAPER), Muffliato(PAPER, conversion="renyi")):
        assert mechanism.local_epsilon == pytest.approx(float(epsilon_for(mechanism.var_noise**-0.5, 1e-5)))
        assert mechanism.local_epsilon > PAPER.epsilon
    assert Muffliato.weaker
    assert "Local DP" in Muffliato.promise
    # on the complete graph everyone hears everyone's noisy value, so it is Local DP outright
    complete = Muffliato(Requirements(16, 0.5, 1e-5, colluding=0.0, dropout=0.0), "complete")
    assert complete.var_noise == pytest.approx(15 / 16 * complete.requirements.var_local_dp)


def test_on_average_epsilons_stay_below_the_required_one() -> None:
    """Jensen: epsilon lies below its tangent in the squared shift, whose mean is what was calibrated."""
    requirements = Requirements(64, 0.5, 1e-5, colluding=0.0, dropout=0.0)
    published = Muffliato(requirements, conversion="renyi")
    rho = published.loss.pairwise() / (2 * published.var_noise)
    own = Muffliato(requirements)
    shifts = np.sqrt(own.loss.pairwise() / own.var_noise)
    for epsilons in (rho + 2 * np.sqrt(rho * math.log(1e5)), epsilon_for(shifts, 1e-5)):
        assert (epsilons.mean(axis=1) <= 0.5).all()
        assert epsilons.max() > 0.5  # but not towards neighbours


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-3])
def test_epsilon_lies_below_its_tangent(epsilon: float, delta: float) -> None:
    square = mu_for(epsilon, delta) ** 2
    after, before = (float(epsilon_for(math.sqrt(square * scale), delta)) for scale in (1 + 1e-4, 1 - 1e-4))
    others = square * np.geomspace(1e-6, 1e4, 300)
    tangent = epsilon + (after - before) / 2e-4 * (others / square - 1)
    assert (epsilon_for(np.sqrt(others), delta) <= tangent + 1e-5 * epsilon).all()


def test_the_sum_over_messages_is_not_a_bound_for_single_pairs() -> None:
    loss = GossipLoss(some("ring"), 5)
    assert (loss.informed(3) > 1.5 * loss.pairwise()[:, 3]).any()
