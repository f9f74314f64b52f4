"""A session over again, straight from Algorithm 2 on the lattice: what its parties must have held, to the last unit."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from inca.network.protocol.fixed_point import Keystream, discrete_gaussian, portion
from inca.network.protocol.ledger import Opened
from inca.network.protocol.messages import Numbers, unpack
from inca.network.protocol.session import WEIGHT, Session
from inca.protocol.execution import Execution


def replay(session: Session, execution: Execution, openings: Mapping[int, Opened]) -> list[Numbers]:
    """Return the last messages of all parties on the lattice, straight from Algorithm 2 and the realised execution.

    `openings` are the private sides of the parties; a party without one had nothing to say. Independent of ledgers:
    what the parties of a session really held must equal this, to the last unit.
    """
    size, k = session.dimension + 1, session.receivers
    terms = {i: np.append(unpack(side.noisy, size - 1), np.int64(WEIGHT)) for i, side in openings.items()}
    masks = {i: np.zeros(size - 1, dtype=np.int64) for i in openings}
    attended = dict.fromkeys(openings, 0)
    back: dict[tuple[int, int], Numbers] = {}
    y = [np.zeros(size, dtype=np.int64) for _ in range(session.parties)]
    for t in range(session.rounds + 1):
        here = execution.presence.row(t)
        before, y = y, [message.copy() for message in y]
        for i in range(session.parties):
            if t > 0 and here[i]:
                part = before[i] // (k + 1)
                late = [each for each in execution.undelivered if each.round == t and each.sender == i and each.late]
                for j in execution.schedule.round(t).receivers[i].tolist():
                    if j >= 0:
                        y[i] -= part
                        y[j] += part
                for each in late:
                    y[i] -= part
                    if each.back:
                        back[each.back, i] = back.get((each.back, i), 0) + part
            y[i] += back.pop((t, i), 0)
            if here[i] and i in openings:
                fresh = np.zeros(size - 1, dtype=np.int64)
                if t < session.rounds:
                    stream = Keystream(openings[i].masks, b"mask %d" % attended[i])
                    fresh = discrete_gaussian(session.sigma_cancelling, size - 1, stream)
                y[i] += portion(terms[i], attended[i], session.pieces)
                y[i][:-1] += fresh - masks[i]
                masks[i] = fresh
                attended[i] += 1
    return y
