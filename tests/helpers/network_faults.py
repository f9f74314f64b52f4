"""How bad a simulated network is, and small sessions to try on it, drawn at random."""

from __future__ import annotations

import random
from dataclasses import dataclass

from helpers.ledgers import with_topup
from inca.network.protocol.session import SessionConfig

PERIOD = 1.0


@dataclass(frozen=True)
class Faults:
    """How bad the network and the machines are; probabilities are per message, per journal write, or per party."""

    loss: float = 0.0
    duplication: float = 0.0
    delay: float = 0.01  # seconds, on average
    crash: float = 0.0
    comeback: float = 0.5
    disk_loss: float = 0.0
    partitions: int = 0
    false_hints: float = 0.0
    skew: float = 0.0  # seconds, at most
    refusal: float = 0.0  # probability that a party finds its loss too large
    late: float = 0.0  # probability that a party starts late
    leaves: float = 0.0  # probability that a party is asked to leave
    dies_committed: float = 0.0  # probability that a party dies for good as soon as it knows of commit
    lies: float = 0.0  # probability that one of the parties deals garbage
    vouched: bool = False  # whether operators vouch, truthfully, for the first start of a late party

    @classmethod
    def random(cls, rng: random.Random) -> Faults:
        """Draw all faults together, from mild to bad."""
        severity = rng.random()
        return cls(
            loss=0.3 * severity * rng.random(),
            duplication=0.2 * rng.random(),
            delay=0.05 * rng.random() ** 2 * PERIOD,
            crash=0.1 * severity * rng.random(),
            comeback=rng.random(),
            disk_loss=0.2 * rng.random(),
            partitions=rng.choice([0, 0, 1, 2]),
            false_hints=0.02 * rng.random(),
            skew=0.2 * rng.random() * PERIOD,
            refusal=rng.choice([0.0, 0.0, 0.05]),
            late=rng.choice([0.0, 0.0, 0.1]),
            leaves=rng.choice([0.0, 0.0, 0.1]),
            dies_committed=rng.choice([0.0, 0.0, 0.3 * rng.random()]),
            lies=rng.choice([0.0, 0.0, 0.0, 1.0]),
            vouched=severity < 0.5,
        )


def random_session(rng: random.Random) -> SessionConfig:
    """Draw a small session, of as many rounds as plans have: 2 to 8; long circles have more parties than others."""
    n, rounds = rng.randint(4, 7), rng.randint(2, 8)
    kind = rng.choice(["permutation", "circle"])
    if kind == "circle":
        n = max(n, rounds + 1)
    session = SessionConfig(
        id=rng.randbytes(32),
        parties=n,
        rounds=rounds,
        schedule=kind,
        dimension=rng.choice([1, 2, 3]),
        largest_value=2**32,
        sigma_independent=2**30,
        sigma_cancelling=2**33,
        min_participants=rng.randint(2, 3),
        start=10.0,
        period=PERIOD,
        min_round_duration=rng.choice([0.0, 0.0, 0.1, 0.4]) * PERIOD,
        seed=rng.randbytes(32) if kind == "circle" or rng.random() < 0.7 else None,
    )
    return with_topup(session)


def without_faults() -> Faults:
    """Return a network on which nothing goes wrong."""
    return Faults(delay=0.001 * PERIOD)
