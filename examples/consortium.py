"""Write examples/consortium.json: sixty hospitals average a number between 0 and 1, six of them collude, some drop out.

    python examples/consortium.py

Noise is calibrated for epsilon = 1, delta = 1e-5 at full attendance, for the worst of 200 random schedules
and groups of six colluders; then one run happens, in which four hospitals leave for good and others miss a round.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import inca

N, ROUNDS = 60, 24


def drawn(seed: int) -> inca.View:
    """Return a random schedule at full attendance with a random group of colluders."""
    schedule = inca.PermutationReceivers(N, ROUNDS, seed=seed)
    execution = inca.Execution(schedule, inca.incremental_injection(ROUNDS, quiet=2))
    return inca.View(execution, inca.Adversary.random(N, ROUNDS, np.random.default_rng(seed), colluding=0.1))


def main() -> None:
    """Calibrate, draw one run, write it."""
    mu = inca.mu_for(epsilon=1.0, delta=1e-5)
    sigma_independent = 1.6**0.5 / (mu * 54**0.5)
    found = inca.calibrate((drawn(seed) for seed in range(200)), mu, sigma_independent=sigma_independent)
    rng = np.random.default_rng(60)
    present = np.ones((ROUNDS + 1, N), dtype=bool)
    present[1:] = rng.random((ROUNDS, N)) > 0.02
    for party, leaves in ((7, 5), (19, 12), (33, 18), (41, 23)):
        present[leaves:, party] = False
    schedule = inca.PermutationReceivers(N, ROUNDS, seed=60)
    execution = inca.Execution(schedule, inca.incremental_injection(ROUNDS, quiet=2), inca.Presence.explicit(present))
    transcript = inca.Transcript(
        execution,
        sigma_independent=float(np.ceil(sigma_independent * 1000) / 1000),
        sigma_cancelling=float(np.ceil(found.level * 1000) / 1000),
        adversary=inca.Adversary((3, 11, 24, 30, 45, 52)),
        sensitivity=1.0,
        agreed=inca.AgreedGuarantee(epsilon=1.0, delta=1e-5, colluding=0.1),
    )
    inca.write_execution(Path(__file__).parent / "consortium.json", transcript)


if __name__ == "__main__":
    main()
