"""Which changes of the values hidden messages make invisible: edge vectors (Lemma 3) and the rank of their span.

A message that the adversary does not know may change, if its sender and its receivers adapt what they inject; then
the noisy values change along the message's edge vector and nobody sees a difference. Theorems 2 to 4 need n_H - 1
independent edge vectors. Whether there are as many is a question about a graph in most cases, and an exact rank,
modulo a prime, in the others (facts F1 and F2; proofs in docs/conditions.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from inca._base.kernels import Flags, Ids, Words, compiled
from inca._base.validation import refuse
from inca.privacy.theorems._modular_rank import Places, rank_and_null_vector
from inca.privacy.view import View
from inca.protocol.schedules import Round

How = Literal["union-find", "one sink component", "not weakly connected", "exact rank", "undecided"]

ZERO_WEIGHT = 1e-12  # a total weight w_j up to this size is a sum that cancels, i.e. 0
_MAX_COLUMNS_DECIDED, _MAX_COLUMNS_REPORTED = 8000, 2000  # of an exact rank that decides, or that is only told


@dataclass(frozen=True, eq=False)
class EdgeVectors:
    """Hidden messages (t, i), row by row, and their edge vectors; the columns are in the order of `View.honest`."""

    messages: Places
    matrix: sp.csr_array


def edge_vectors(view: View) -> EdgeVectors:
    """Return the hidden messages with their edge vectors (Lemma 3 with errata E4 and E9).

    Message (t, i) is what i holds after round t and sends in round t+1. With W^O of that round, its vector has
    (W^O_ii - 1) / w_i at i and W^O_ji / w_j at the others; it is orthogonal to w. A message that was not sent, its
    sender being absent or nobody there to receive it, hides nothing and has no vector. If a party of weight w_j = 0
    sends or receives a hidden message, there is no such vector, and we refuse.

    >>> from inca import Execution, ExplicitSchedule, incremental_injection
    >>> from inca.protocol.adversary import Adversary
    >>> ring = Execution(ExplicitSchedule([[[1], [2], [0]]]), incremental_injection(1))
    >>> edges = edge_vectors(View(ring, Adversary(colluding=[2])))
    >>> edges.messages.tolist(), edges.matrix.toarray().tolist()
    ([[0, 0]], [[-0.5, 0.5]])
    """
    hidden, weights = HiddenMessages.of(view), view.execution.total_weights[view.honest]
    touched = np.zeros(view.honest.size, dtype=bool)
    touched[hidden.sender] = touched[hidden.sent.indices] = True
    if (bad := touched & (np.abs(weights) <= ZERO_WEIGHT)).any():
        party = int(view.honest[np.flatnonzero(bad)[0]])
        refuse(f"the total weight of party {party}", 0.0, "other than 0, as it sends or receives a hidden message")
    rows = np.arange(hidden.sender.size)
    kept = sp.csr_array((-hidden.sent.sum(axis=1), (rows, hidden.sender)), shape=hidden.sent.shape)
    matrix = sp.csr_array((hidden.sent + kept).multiply(1.0 / np.where(touched, weights, 1.0)))
    return EdgeVectors(np.column_stack([hidden.round, view.honest[hidden.sender]]), matrix)


@dataclass(frozen=True)
class HiddenRank:
    """The rank of the edge vectors, how many are needed, and which argument decided.

    Attributes:
        hidden: The rank; at least that, if not `exact`: then the graph left too much open to compute, and this is the
            number of parties less that of sinks.
        needed: n_H - 1.
        how: Which argument decided.
        components: How many weakly connected components the graph of hidden messages has.
        sinks: How many strongly connected components no hidden message leaves; None where a union-find decided alone.
        exact: Whether the rank is known.
    """

    hidden: int
    needed: int
    how: How
    components: int
    sinks: int | None = None
    exact: bool = True

    @property
    def met(self) -> bool:
        """Whether the precondition of the theorems is known to hold: as many independent vectors as needed."""
        return self.hidden == self.needed

    def __str__(self) -> str:
        """Say it in words."""
        least = "" if self.exact else "at least "
        parts = f", {self.components} components" if self.components > 1 else ""
        return f"the hidden messages have rank {least}{self.hidden} of {self.needed} needed ({self.how}{parts})"


def hidden_rank(view: View) -> HiddenRank:
    """Return the rank of the edge vectors and whether it is n_H - 1, the precondition of Theorems 2 and 3.

    In this order: one receiver per message, then connected components tell the rank (fact F1); one sink component,
    then the rank is n_H - 1, and not weakly connected, then it is less (fact F2); an exact rank modulo a prime.
    The last proves "met"; "not met" it says after two primes have agreed. As w only scales columns, it plays no part.
    If over 8,000 parties remain for that step, the answer is "undecided", which does not count as met.

    >>> from inca import Execution, RandomReceivers, incremental_injection
    >>> from inca.protocol.adversary import Adversary
    >>> execution = Execution(RandomReceivers(100, rounds=10, receivers=2, seed=1), incremental_injection(10))
    >>> print(hidden_rank(View(execution, Adversary(colluding=range(50)))))
    the hidden messages have rank 49 of 49 needed (one sink component)
    """
    return HiddenMessages.of(view).rank


def delivered(step: Round) -> Flags:
    """Return which of the n x k sends of a round reach another party; a share that came back was kept (erratum E1)."""
    own = step.receivers == np.arange(step.receivers.shape[0])[:, np.newaxis]
    return np.asarray((step.receivers >= 0) & ~own & (step.fractions > 0))


@dataclass(frozen=True, eq=False)
class HiddenMessages:
    """Hidden messages among parties 0..m-1, which are the honest ones or a coalition of them, in order.

    Message r was held after round `round[r]` by party `sender[r]`; row r of `sent` has the fractions, all above 0,
    that the other parties got of it in the round after.
    """

    round: Places
    sender: Places
    sent: sp.csr_array

    @classmethod
    def of(cls, view: View) -> HiddenMessages:
        """Return the hidden messages of all honest parties (Lemma 3 with errata E4 and E9)."""
        execution, known = view.execution, view.known_when_sent
        place = np.full(execution.parties, -1)
        place[view.honest] = np.arange(view.honest.size)
        edges, fractions = [np.empty((3, 0), dtype=np.intp)], [np.empty(0)]
        for t in range(execution.rounds):
            step = execution.sends(t + 1)
            sender, slot = np.nonzero(delivered(step) & ~known[t][:, np.newaxis])
            edges.append(np.stack([np.full(sender.size, t), place[sender], place[step.receivers[sender, slot]]]))
            fractions.append(step.fractions[sender, slot])
        t, sender, receiver = np.concatenate(edges, axis=1)
        first = np.flatnonzero(np.diff(t * view.honest.size + sender, prepend=-1))  # of each message
        entries = np.concatenate(fractions), receiver, np.append(first, sender.size)
        return cls(t[first], sender[first], sp.csr_array(entries, shape=(first.size, view.honest.size)))

    @property
    def parties(self) -> int:
        """How many parties there are."""
        return int(self.sent.shape[1])

    def until(self, r: int) -> HiddenMessages:
        """Return those that were sent in rounds 1..r."""
        early = self.round < r
        return HiddenMessages(self.round[early], self.sender[early], self.sent[early])

    def within(self, members: Flags) -> HiddenMessages:
        """Return those sent by members to members only, with the members renumbered (Theorem 4, erratum E4)."""
        inside = members[self.sender] & (self.sent @ (~members).astype(np.float64) == 0)
        sender = (np.cumsum(members) - 1)[self.sender[inside]]
        return HiddenMessages(self.round[inside], sender, self.sent[inside][:, np.flatnonzero(members)])

    @cached_property
    def _edges(self) -> tuple[Places, Places]:
        return np.repeat(self.sender, np.diff(self.sent.indptr)), self.sent.indices.astype(np.intp)

    @cached_property
    def component(self) -> Places:
        """The weakly connected component of each party, numbered from 0."""
        parent = np.arange(self.parties, dtype=np.int32)
        join(parent, *self._edges)
        return np.unique(parent, return_inverse=True)[1].reshape(-1)

    @cached_property
    def strong(self) -> tuple[int, Places]:
        """How many strongly connected components there are, and which one each party is in."""
        tails, heads = self._edges
        graph = sp.csr_array((np.ones(tails.size, bool), (tails, heads)), shape=(self.parties, self.parties))
        count, label = connected_components(graph, directed=True, connection="strong")
        return int(count), label.astype(np.intp)

    @cached_property
    def sink(self) -> Places:
        """Which sink component each party is in, numbered from 0: one that no message leaves; -1 for none."""
        count, label = self.strong
        tails, heads = self._edges
        final = np.ones(count, dtype=bool)
        final[label[tails[label[tails] != label[heads]]]] = False
        return np.where(final, np.cumsum(final) - 1, -1)[label]

    @cached_property
    def rank(self) -> HiddenRank:
        """The rank of the vectors; see `hidden_rank`."""
        components = int(self.component.max()) + 1
        limit, needed = self.parties - components, self.parties - 1
        if self.sent.nnz == self.sender.size:  # one receiver per message
            return HiddenRank(limit, needed, "union-find", components)
        sinks = int(self.sink.max()) + 1
        if components == sinks == 1:
            return HiddenRank(limit, needed, "one sink component", components, sinks)
        missing = 0 if sinks == components else self._balance[0]
        how: How = "not weakly connected" if components > 1 else "undecided" if missing is None else "exact rank"
        if missing is None:
            return HiddenRank(self.parties - sinks, needed, how, components, sinks, exact=False)
        return HiddenRank(limit - missing, needed, how, components, sinks)

    @property
    def equal_groups(self) -> Places:
        """Groups of parties that have the same value in every f orthogonal to all vectors, where the rank is short.

        To be asked of one component only. A random f tells groups apart but for a probability of about 2^-31.
        """
        missing, f = self._balance
        return self.component if missing is None else np.unique(f, return_inverse=True)[1].reshape(-1)

    @cached_property
    def _balance(self) -> tuple[int | None, Words]:
        """By how much the rank falls short of parties - components (None: too large), and a random f modulo a prime.

        Orthogonal to all vectors is an f that at each sender is the average over its receivers. It is constant on
        sink components, and on components that have one sink. So only the parties outside sinks, in components that
        have several, need a column of their own, and each of those sinks one column together.
        """
        home = np.empty(int(self.sink.max()) + 1, dtype=np.intp)
        home[self.sink[self.sink >= 0]] = self.component[self.sink >= 0]
        several = np.bincount(home) > 1
        inner = several[self.component] & (self.sink < 0)
        count = int(inner.sum())
        sinks = count + np.cumsum(several[home]) - 1
        column = np.where(inner, np.cumsum(inner) - 1, sinks[self.sink])
        width = count + int(several[home].sum())
        if width > (_MAX_COLUMNS_DECIDED if several.size == 1 else _MAX_COLUMNS_REPORTED):
            return None, np.empty(0, np.uint64)
        messages = self.sent[inner[self.sender]]
        sender, heads = column[self.sender[inner[self.sender]]], column[messages.indices]
        needed = width - int(several.sum())
        rank, f = rank_and_null_vector(sender, messages.indptr, heads, messages.data, count, width, needed)
        return needed - rank, f[column]


@compiled
def root(parent: Ids, i: int) -> int:
    """Return the root of i in a forest, halving the path to it."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = int(parent[i])
    return i


@compiled
def join(parent: Ids, tails: Places, heads: Places) -> None:
    """Join the trees of the two ends of every edge; in the end every entry points at its root."""
    for e in range(tails.size):
        parent[root(parent, tails[e])] = root(parent, heads[e])
    for i in range(parent.size):
        parent[i] = root(parent, i)
