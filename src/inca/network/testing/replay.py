"""A session over again, straight from Algorithm 2 on the lattice: what its parties must have held, to the last unit."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from inca.network.protocol.discrete_gaussian import Keystream, discrete_gaussian
from inca.network.protocol.fixed_point import portion
from inca.network.protocol.ledger import Opened
from inca.network.protocol.messages import Numbers, unpack
from inca.network.protocol.session import WEIGHT, SessionConfig
from inca.protocol.execution import Execution


def replay(session: SessionConfig, execution: Execution, openings: Mapping[int, Opened]) -> list[Numbers]:
    """Compute the last messages of all parties on the lattice, from Algorithm 2 and the realized execution.

    This is independent of ledgers: what the parties of a session really held must equal it, to the last unit.

    Args:
        session: The terms of the session.
        execution: The realized execution.
        openings: The private sides of the parties; a party without one had nothing to say.

    Returns:
        The last message of each party, with its weight.
    """
    size, k = session.dimension + 1, session.receivers
    terms = {i: np.append(unpack(opened.noisy, size - 1), np.int64(WEIGHT)) for i, opened in openings.items()}
    masks = {i: np.zeros(size - 1, dtype=np.int64) for i in openings}
    attended = dict.fromkeys(openings, 0)
    returning: dict[tuple[int, int], Numbers] = {}  # (round, party) -> shares that are back then
    y = [np.zeros(size, dtype=np.int64) for _ in range(session.parties)]
    for t in range(session.rounds + 1):
        present = execution.presence.row(t)
        before, y = y, [message.copy() for message in y]
        for i in range(session.parties):
            if t > 0 and present[i]:
                part = before[i] // (k + 1)
                for j in execution.schedule.round(t).receivers[i].tolist():
                    if j >= 0:
                        y[i] -= part
                        y[j] += part
                for entry in execution.undelivered:
                    if entry.round == t and entry.sender == i and entry.late:
                        y[i] -= part
                        if entry.back:
                            returning[entry.back, i] = returning.get((entry.back, i), 0) + part
            y[i] += returning.pop((t, i), 0)
            if present[i] and i in openings:
                fresh = np.zeros(size - 1, dtype=np.int64)
                if t < session.rounds:
                    stream = Keystream(openings[i].masks, b"mask %d" % attended[i])
                    fresh = discrete_gaussian(session.sigma_cancelling, size - 1, stream)
                y[i] += portion(terms[i], attended[i], session.pieces)
                y[i][:-1] += fresh - masks[i]
                masks[i] = fresh
                attended[i] += 1
    return y
