"""The adversary's knowledge as a linear system: B (x + eta*) + A eta = y (Eq. "linear.adv").

Unknown are the honest parties' noisy values x + eta* and cancelling noise eta; the public coefficients B and A follow
from the execution (appendix "Knowledge in Linear Relations"). Each row is one observed message of an honest party.
Messages of colluders add no row: they are combinations of messages sent to colluders and of what colluders know.
A message that its owner still holds because it was absent is the same message, hence one row.
Where there is a cohort, its final messages are settled ones, and that is what their rows hold, with the top-up noise.
Rows follow the weights W^O_t. If a share came back late or never, real messages differ from the rows by multiples of
known messages, so both tell the same (docs/accounting.md).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inca._base.kernels import Flags
from inca._base.types import Array
from inca._base.validation import instance, integer, refuse
from inca.errors import InvalidInput
from inca.protocol.adversary import Adversary
from inca.protocol.execution import Execution
from inca.protocol.noise_levels import NoiseLevels

_MAX_BYTES = 4 * 2**30  # of B and A


class View:
    """What an adversary knows of an execution: y = B (x + eta*) + A eta, one row per observed honest message.

    Args:
        execution: The run that is observed.
        adversary: Who observes it; by default one that sees the final messages only.

    Raises:
        InvalidInput: If a colluder is unknown, or no honest party is left.

    Example:
        >>> from inca import ExplicitSchedule, incremental_injection
        >>> ring = Execution(ExplicitSchedule([[[1], [2], [0]]]), incremental_injection(1))
        >>> view = View(ring, Adversary(colluding=[2]))
        >>> view.rows.tolist()
        [[0, 1], [1, 0], [1, 1]]
        >>> view.value
        array([[0.  , 0.5 ],
               [0.75, 0.  ],
               [0.25, 0.75]])
        >>> print(view.explain(0))
        y_1^(0), computed by party 1 in round 0; seen: sent to colluder 2 in round 1
    """

    def __init__(self, execution: Execution, adversary: Adversary | None = None) -> None:
        self.execution = instance("execution", execution, Execution)
        self.adversary = Adversary() if adversary is None else instance("adversary", adversary, Adversary)
        self.honest: NDArray[np.intp] = self.adversary.honest(execution.parties)
        """The ids of the honest parties, in the order of the columns of B."""

    @cached_property
    def seen(self) -> Flags:
        """Which messages are observed, (T+1) x n: the set V (see `Adversary.observed`)."""
        return self.adversary.observed(self.execution)

    @cached_property
    def active(self) -> Flags:
        """Who is present in which round, (T+1) x n."""
        presence = self.execution.presence
        return np.stack([presence.row(t) for t in range(self.execution.rounds + 1)])

    @cached_property
    def computed(self) -> NDArray[np.int32]:
        """In which round the message that each party holds after round t was computed, (T+1) x n."""
        rounds = np.arange(self.execution.rounds + 1, dtype=np.int32)[:, np.newaxis]
        return np.maximum.accumulate(np.where(self.active, rounds, 0), axis=0)

    @cached_property
    def known(self) -> Flags:
        """Which messages are known by the round they were computed in, (T+1) x n; those of colluders are, too."""
        known = np.zeros_like(self.seen)
        t, party = np.nonzero(self.seen)
        known[self.computed[t, party], party] = True
        return known

    @cached_property
    def known_when_sent(self) -> Flags:
        """Whether the message that each party holds after round t = 0..T-1 is known, T x n; it is sent in t+1."""
        if self.execution.presence.all_present:
            return self.seen[:-1]
        return self.known[self.computed[:-1], np.arange(self.execution.parties)]

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """The rows of the system as pairs (t, i), in order: message y_i^(t) of an honest party, computed in round t."""
        places = np.argwhere(self.known[:, self.honest])
        places[:, 1] = self.honest[places[:, 1]]
        return places

    @cached_property
    def repeats(self) -> NDArray[np.intp]:
        """Observed messages (t, i) of honest parties that repeat an earlier row, as triples (t, i, its round)."""
        places = np.argwhere(self.seen[:, self.honest])
        t, party = places[:, 0], self.honest[places[:, 1]]
        first = self.computed[t, party]
        again = first < t
        # The first observation of a held message is its row, even if it was observed later than computed.
        _, fresh = np.unique(np.column_stack([first, party]), axis=0, return_index=True)
        again[fresh] = False
        return np.column_stack([t, party, first])[again]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, honest values, honest cancelling noise terms: the sizes of B and A."""
        return len(self.rows), self.honest.size, self.honest.size * self.execution.rounds

    @property
    def value(self) -> Array:
        """B: what each row holds of each honest party's noisy value, (rows, honest)."""
        return self._system[0]

    @property
    def noise(self) -> Array:
        """A: what each row holds of each noise term, (rows, honest * T); term k of honest party h is column h T + k."""
        return self._system[1]

    @cached_property
    def settled(self) -> Flags:
        """Which rows are settled final messages: those with top-up noise of their own."""
        t, party = self.rows.T
        cohort = self.execution.cohort
        return np.zeros(t.shape, dtype=bool) if cohort is None else (t == self.execution.rounds) & cohort[party]

    def of_cohort(self) -> View:
        """Return the view of an adversary that knows, on top, all that parties outside the cohort know.

        From its final messages and the messages to and from others, the cohort's settled ones can be computed; so the
        losses against this adversary bound those of the cohort, and nothing need be known of what others did among
        themselves (docs/settlement.md).

        Returns:
            A view without losses of parties outside the cohort; this one if nobody settles.

        Raises:
            InvalidInput: If nobody in the cohort is honest.

        Example:
            >>> from inca import ExplicitSchedule, incremental_injection
            >>> ring = Execution(ExplicitSchedule([[[1], [2], [0]]]), incremental_injection(1))
            >>> View(ring.settled([True, True, False])).of_cohort().adversary
            Adversary(colluding=(2,), eavesdropped=())
        """
        if (cohort := self.execution.cohort) is None:
            return self
        known = {*self.adversary.colluding, *np.flatnonzero(~cohort).tolist()}
        return View(self.execution, Adversary(sorted(known), self.adversary.eavesdropped))

    @property
    def fits(self) -> bool:
        """Whether B and A are small enough to be written down."""
        return self._bytes <= _MAX_BYTES

    @property
    def _bytes(self) -> int:
        rows, values, terms = self.shape
        carried = self.execution.parties * (2 if self.execution.settlement_matters else 1)
        return 8 * (rows + carried) * (values + terms)

    def index(self, t: int, party: int) -> int:
        """Return which row holds message y_i^(t).

        Args:
            t: The round after which the party held the message.
            party: The id i of its sender.

        Returns:
            The number of the row.

        Raises:
            InvalidInput: If the message was not observed, or is a colluder's.
        """
        integer("t", t, 0, self.execution.rounds)
        integer("party", party, 0, self.execution.parties - 1)
        places = np.flatnonzero((self.rows == (self.computed[t, party], party)).all(axis=1))
        if not places.size:
            refuse("message (t, i)", (t, party), "an observed message of an honest party")
        return int(places[0])

    def explain(self, row: int) -> str:
        """Say which message a row is and how the adversary came to see it.

        Args:
            row: The number of the row.

        Returns:
            A sentence for people.

        Raises:
            InvalidInput: If there is no such row.
        """
        t, party = (int(entry) for entry in self.rows[integer("row", row, 0, len(self.rows) - 1)])
        reasons = []
        for held in range(t, self.execution.rounds + 1):
            if self.computed[held, party] != t or not self.seen[held, party]:
                continue
            if (held, party) in self.adversary.eavesdropped:
                later = f" in round {held}, when the party was absent"
                reasons.append("eavesdropped" + (later if held > t else ""))
            if held == self.execution.rounds and self.active[held, party]:
                if self.execution.cohort is None:
                    reasons.append("final, hence public")
                elif self.execution.cohort[party]:
                    reasons.append("settled and final, hence public")
            elif held < self.execution.rounds:
                receivers = self.execution.sends(held + 1).receivers[party].tolist()
                theirs = sorted(set(receivers) & set(self.adversary.colluding))
                reasons += [f"sent to colluder {j} in round {held + 1}" for j in theirs]
                reasons += self._offers.get((held, party), [])
        return f"y_{party}^({t}), computed by party {party} in round {t}; seen: {'; '.join(reasons)}"

    @cached_property
    def _offers(self) -> dict[tuple[int, int], list[str]]:
        """Why messages (t, i) are seen although the shares offered in round t+1 were not credited."""
        reasons: dict[tuple[int, int], list[str]] = {}
        for entry in self.execution.undelivered:
            of_message = reasons.setdefault((entry.round - 1, entry.sender), [])
            if entry.receiver in self.adversary.colluding:
                of_message.append(f"offered to colluder {entry.receiver} in round {entry.round}, not credited")
            elif entry.late:
                offered = f"offered to party {entry.receiver} in round {entry.round}"
                of_message.append(f"{offered}, and the share was late or lost, so counted as known")
        return reasons

    @cached_property
    def _system(self) -> tuple[Array, Array]:
        """B and A by the recursion y^(t) = W^O_t y^(t-1) + c u + Z eta over all parties, observed rows kept."""
        if not self.fits:
            raise InvalidInput(
                f"the linear system ({self.shape[0]} rows, {sum(self.shape[1:])} columns) must take at most "
                f"{_MAX_BYTES // 2**30} GiB, got {self._bytes / 2**30:.0f} GiB"
            )
        # W^O_t keeps shares that were late or lost. Real messages differ from these rows by multiples of earlier known
        # messages, that is, by an invertible combination of rows: the span, and all that follows from it, is the same.
        execution, count, rounds = self.execution, self.honest.size, self.execution.rounds
        histories = [execution.coefficients(int(party)) for party in self.honest]
        b, a = np.zeros((execution.parties, count)), np.zeros((execution.parties, count * rounds))
        column = np.arange(count)
        undone_b, undone_a = (np.zeros_like(x if execution.settlement_matters else x[:0]) for x in (b, a))
        rows_b, rows_a = [], []
        for t in range(rounds + 1):
            if t > 0:
                weights = execution.weights(t).tocsr()
                mixed_b, mixed_a = weights @ b, weights @ a
                if execution.settlement_matters:  # y' - y: what transfers inside the cohort move, less what all do
                    undone_b += execution.settlement(t, b) - mixed_b + b
                    undone_a += execution.settlement(t, a) - mixed_a + a
                b, a = mixed_b, mixed_a
            b[self.honest, column] += [c[t] for c, _ in histories]
            blocks = a.reshape(execution.parties, count, rounds)
            blocks[self.honest, column] += np.stack([z[t] for _, z in histories])
            if t == rounds and execution.cohort is not None and execution.settlement_matters:
                b[execution.cohort] += undone_b[execution.cohort]
                a[execution.cohort] += undone_a[execution.cohort]
            observed = self.honest[self.known[t, self.honest]]
            rows_b.append(b[observed])
            rows_a.append(a[observed])
        return np.concatenate(rows_b), np.concatenate(rows_a)


def noise_root(view: View, noise_levels: NoiseLevels) -> Array:
    """Return G with Sigma = G G^T: (sigma_* B, sigma_Delta A), and a column with sigma_top for each settled message.

    >>> from inca import ExplicitSchedule, incremental_injection
    >>> settled = Execution(ExplicitSchedule([[[1], [0]]]), incremental_injection(1)).settled()
    >>> noise_root(View(settled), NoiseLevels(independent=0.0, cancelling=0.0, topup=2.0))[:, -2:].tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    parts = [noise_levels.independent * view.value, noise_levels.cancelling * view.noise]
    if noise_levels.topup > 0.0:
        settled = np.flatnonzero(view.settled)
        parts.append(np.zeros((len(view.rows), settled.size)))
        parts[-1][settled, np.arange(settled.size)] = noise_levels.topup
    return np.hstack(parts)
