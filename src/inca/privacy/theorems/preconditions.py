"""When a bounded independent noise is enough: the preconditions of Theorems 2 to 6, checked on an execution.

Theorems 2 to 4 say: if enough messages are hidden, then with a large enough sigma_cancelling any sigma_independent
above sqrt(factor) * sensitivity / mu gives every honest party a shift of at most mu (mu is epsilon / c in the
paper's classic rule). Theorem 5 and the weaker condition of one sink imply their precondition, Theorem 6 rules it
out. The proofs, what we mended in them and what is necessary are in docs/conditions.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from inca._base.kernels import Flags, Ids, compiled
from inca._base.types import Array
from inca._base.validation import InputError, real, refuse
from inca.privacy.theorems.hidden_messages import NOTHING, Hidden, delivered, root
from inca.privacy.view import View
from inca.protocol.injection import Injection
from inca.protocol.schedules import Round


@dataclass(frozen=True)
class Verdict:
    """What one theorem says about an execution and an adversary, in a sentence.

    `holds` tells whether its precondition does; for Theorem 6, which forbids, whether it has no objection. Where a
    bound on the noise follows, `factor_sharp` is what the proof gives and `factor_printed` the paper's closed form,
    which is at least as large (None where it says nothing); `coalition` are the parties that hide one another.
    """

    name: str
    holds: bool
    why: str
    factor_sharp: float | None = None
    factor_printed: float | None = None
    coalition: tuple[int, ...] | None = None

    def least_sigma_independent(self, mu: float, sensitivity: float = 1.0) -> float:
        """Return the infimum of sigma_independent for shifts of at most mu; strictly more is needed.

        >>> Verdict("Theorem 2", True, "", factor_sharp=0.01).least_sigma_independent(mu=0.05)
        2.0
        """
        if self.factor_sharp is None:
            raise refuse("the factor", None, f"a verdict that bounds the noise, which {self.name} does not do here,")
        if (shift := real("mu", mu, least=0.0)) == 0.0:
            raise refuse("mu", mu, "a number above 0")
        return float(real("sensitivity", sensitivity, least=0.0) * np.sqrt(self.factor_sharp) / shift)


class Facts:
    """What several theorems ask of one view, computed once; give it to them in place of the view."""

    def __init__(self, view: View) -> None:
        """Take a view; everything else is computed when it is needed."""
        self.view = view
        self.honest = view.honest
        self.weights = view.execution.total_weights[view.honest]
        self.staying: Flags = view.execution.presence.row(view.execution.rounds)[view.honest]

    @classmethod
    def of(cls, view: View | Facts) -> Facts:
        """Return the facts about a view."""
        return view if isinstance(view, Facts) else cls(view)

    @cached_property
    def hidden(self) -> Hidden:
        """The hidden messages."""
        return Hidden.of(self.view)

    @cached_property
    def obstacle(self) -> str | None:
        """Why there are no edge vectors by Lemma 3: an injection that is not valid, or a weight of 0."""
        return self.invalid or self.empty(np.ones(self.honest.size, dtype=bool))

    @cached_property
    def invalid(self) -> str | None:
        """Why the injection is not valid, if so."""
        try:
            Injection(self.view.execution.injection.value, self.view.execution.injection.noise)
        except InputError as error:
            return f"the injection is not valid: {error}"
        return None

    def empty(self, among: Flags) -> str | None:
        """Say who among some injects nothing of its value, if anyone."""
        bad = self.honest[among & (np.abs(self.weights) <= NOTHING)]
        return f"party {bad[0]} injects nothing of its value" if bad.size else None

    def bound(self, name: str, why: str, members: Flags | None = None) -> Verdict:
        """Return the verdict that the members of a coalition, default all honest parties, hide one another."""
        inside = np.ones(self.honest.size, dtype=bool) if members is None else members
        joint = self.weights[inside]
        largest, total = float(np.abs(self.weights).max()), float(joint.sum())
        sharp = min(1.0, largest**2 / float(joint @ joint))
        # The closed form follows for weights from 0 to 1; rounding may take those of a full attendance above.
        follows = joint.size > 1 and total > 1.0 and self.weights.min() >= 0.0 and largest <= 1.0 + 1e-9
        printed = (joint.size - 1) / (total - 1.0) ** 2 if follows else None
        return Verdict(name, True, why, sharp, printed, tuple(self.honest[inside].tolist()))


def conditions(view: View | Facts) -> list[Verdict]:
    """Return what all theorems say, sharing the work.

    >>> from inca import Execution, RandomReceivers, incremental
    >>> from inca.protocol.adversary import Adversary
    >>> execution = Execution(RandomReceivers(20, rounds=10, seed=2), incremental(10))
    >>> for verdict in conditions(View(execution, Adversary(colluding=[3, 8]))):
    ...     print(f"{verdict.name}: {verdict.why}")
    Theorem 2: the hidden messages have rank 17 of 17 needed (union-find)
    Theorem 3: the hidden messages have rank 17 of 17 needed (union-find)
    Theorem 4: all 18 honest parties hide one another
    Theorem 5: the graph of hidden messages is strongly connected
    One sink: all hidden messages lead into one strongly connected component of size 18
    Theorem 6: no objection, as 18 of 18 honest parties hide a message
    """
    facts = Facts.of(view)
    return [check(facts) for check in (theorem2, theorem3, theorem4, theorem5, one_sink, theorem6)]


def theorem2(view: View | Facts) -> Verdict:
    """Check Theorem 2: nobody is ever absent and n_H - 1 edge vectors are independent; the factor is 1 / n_H.

    >>> from inca import Execution, RandomReceivers, incremental
    >>> theorem2(View(Execution(RandomReceivers(20, rounds=10, seed=2), incremental(10)))).factor_sharp
    0.05
    """
    facts, name = Facts.of(view), "Theorem 2"
    if facts.invalid:
        return Verdict(name, False, facts.invalid)
    if not facts.view.execution.presence.nobody_absent:
        t, party = np.argwhere(~facts.view.active)[0]
        return Verdict(name, False, f"party {party} is absent in round {t}, but nobody ever may be")
    rank, count = facts.hidden.rank, facts.honest.size
    if not rank.met:
        return Verdict(name, False, str(rank))
    return Verdict(name, True, str(rank), 1 / count, 1 / count, tuple(facts.honest.tolist()))


def theorem3(view: View | Facts) -> Verdict:
    """Check Theorem 3: n_H - 1 edge vectors are independent, whoever is absent when (erratum E8).

    The sharp factor is max w_i^2 / ||w||^2 over honest parties, the printed one (n_H - 1) / (w_O - 1)^2, where w_O
    is the sum of their weights; it needs two honest parties, weights from 0 to 1, and w_O > 1.

    >>> from inca import Execution, ExplicitSchedule, Presence, incremental
    >>> presence = Presence.explicit([[1, 1, 1], [1, 0, 1], [1, 1, 1]])
    >>> ring = Execution(ExplicitSchedule([[[2], [2], [0]], [[1], [2], [0]]]), incremental(2), presence)
    >>> verdict = theorem3(View(ring))
    >>> verdict.why, round(verdict.factor_sharp, 3), round(verdict.factor_printed, 3)
    ('the hidden messages have rank 2 of 2 needed (union-find)', 0.409, 0.72)
    """
    facts, name = Facts.of(view), "Theorem 3"
    if facts.obstacle:
        return Verdict(name, False, facts.obstacle)
    rank = facts.hidden.rank
    return facts.bound(name, str(rank)) if rank.met else Verdict(name, False, str(rank))


def theorem4(view: View | Facts) -> Verdict:
    """Check Theorem 4: a coalition J of all honest parties present at the end, and of leavers, hides its members.

    Hidden are messages sent by members to members only, in the round after they were computed (erratum E4), and
    |J| - 1 vectors must be independent. The sharp factor is the largest w_i^2 over honest i, divided by ||w_J||^2
    (erratum E3), and at most 1. If anyone stays, the J found is the largest of all, hence the one of least factor.

    >>> from inca import Execution, ExplicitSchedule, Presence, incremental
    >>> presence = Presence.explicit([[1, 1, 1], [1, 1, 0], [1, 1, 0]])
    >>> execution = Execution(ExplicitSchedule([[[1], [0], [0]]] * 2), incremental(2), presence)
    >>> theorem3(View(execution)).holds, theorem4(View(execution)).coalition
    (False, (0, 1))
    """
    facts, name = Facts.of(view), "Theorem 4"
    if obstacle := facts.invalid or facts.empty(facts.staying):
        return Verdict(name, False, obstacle)
    members = _coalition(facts)
    if isinstance(members, str):
        return Verdict(name, False, members)
    all_of_them = f"all {members.size} honest parties hide one another"
    some = f"{members.sum()} of {members.size} honest parties hide one another, and the others left"
    return facts.bound(name, all_of_them if members.all() else some, members)


def theorem5(view: View | Facts) -> Verdict:
    """Check Theorem 5: the graph of hidden messages is strongly connected (erratum E4); then Theorem 3 holds.

    >>> from inca import Execution, ExplicitSchedule, incremental
    >>> print(theorem5(View(Execution(ExplicitSchedule([[[1], [0], [0]]]), incremental(1)))).why)
    the graph of hidden messages has 2 strongly connected components
    """
    facts, name = Facts.of(view), "Theorem 5"
    count = facts.hidden.strong[0]
    if facts.obstacle or count > 1:
        why = facts.obstacle or f"the graph of hidden messages has {count} strongly connected components"
        return Verdict(name, False, why)
    return facts.bound(name, "the graph of hidden messages is strongly connected")


def one_sink(view: View | Facts) -> Verdict:
    """Check that the graph of hidden messages has one sink component; then Theorem 3 holds (fact F2).

    >>> from inca import Execution, ExplicitSchedule, incremental
    >>> one_sink(View(Execution(ExplicitSchedule([[[1], [0], [0]]]), incremental(1)))).holds
    True
    """
    facts, name = Facts.of(view), "One sink"
    sinks, size = int(facts.hidden.sink.max()) + 1, int((facts.hidden.sink == 0).sum())
    if facts.obstacle or sinks > 1:
        why = facts.obstacle or f"the graph of hidden messages has {sinks} sink components"
        return Verdict(name, False, why)
    return facts.bound(name, f"all hidden messages lead into one strongly connected component of size {size}")


def theorem6(view: View | Facts) -> Verdict:
    """Check Theorem 6: exchanges never change and two honest parties hide nothing; then Theorems 2 and 3 fail.

    >>> from inca import Execution, ExplicitSchedule, incremental
    >>> from inca.protocol.adversary import Adversary
    >>> static = Execution(ExplicitSchedule([[[1], [2], [0], [2]]] * 3), incremental(3))
    >>> theorem6(View(static, Adversary(colluding=[2]))).why
    'exchanges never change and parties 1 and 3 hide nothing, so at most 1 of 2 vectors are independent'
    """
    facts, name = Facts.of(view), "Theorem 6"
    count, execution = facts.honest.size, facts.view.execution
    silent = facts.honest[np.bincount(facts.hidden.sender, minlength=count) == 0]
    if silent.size < 2:
        return Verdict(name, True, f"no objection, as {count - silent.size} of {count} honest parties hide a message")
    first = _exchanges(execution.sends(1))
    for t in range(2, execution.rounds + 1):
        if not np.array_equal(first, _exchanges(execution.sends(t))):
            return Verdict(name, True, f"no objection, as the exchanges of round {t} differ from those of round 1")
    pair = f"parties {silent[0]} and {silent[1]} hide nothing"
    limit = f"at most {count - 2} of {count - 1} vectors are independent"
    return Verdict(name, False, f"exchanges never change and {pair}, so {limit}")


def shifts(view: View, verdict: Verdict) -> Array:
    """Return the changes f_i = e_i + xi_i of the noisy values in the proofs of Theorems 2 to 4, one row per party.

    When the value of party i changes by 1 and the independent noise by xi_i, cancelling noise can hide it: B f_i + A
    Delta = 0 has a solution. For i in the coalition J, xi_i = -(w_i / ||w_J||^2) w_J, so f_i is orthogonal to w. A
    leaver outside hides by its own uncancelled noise; there xi_i = -min(1, w_i / ||w_J||) e_i, the proof's
    with sign and square mended. The squared length of every xi_i is at most `verdict.factor_sharp`.

    >>> from inca import Execution, ExplicitSchedule, incremental
    >>> view = View(Execution(ExplicitSchedule([[[1], [0]]]), incremental(1)))
    >>> shifts(view, theorem2(view)).tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    """
    if verdict.coalition is None:
        raise refuse("the coalition", None, f"a verdict that names one, which {verdict.name} does not do here,")
    inside = np.isin(view.honest, verdict.coalition)
    if inside.sum() != len(verdict.coalition):
        raise refuse("the coalition", verdict.coalition, "honest parties of this view")
    weights = view.execution.total_weights[view.honest]
    joint = np.where(inside, weights, 0.0)
    square = joint @ joint
    alone = np.where(inside, 0.0, np.minimum(1.0, np.abs(weights) / np.sqrt(square)))
    return np.asarray(np.eye(weights.size) - np.outer(joint, joint) / square - np.diag(alone))


def rank_curve(view: View) -> Ids:
    """Return the rank that the hidden messages of rounds 1..r have, for r = 0..T.

    With full attendance this is the rank of the same execution cut to r rounds: its last messages are public, the
    others are hidden or not as before. With one receiver per party it takes a single pass of union-find (fact F1).

    >>> from inca import Execution, RandomReceivers, incremental
    >>> rank_curve(View(Execution(RandomReceivers(10, rounds=4, seed=3), incremental(4)))).tolist()
    [0, 8, 9, 9, 9]
    """
    rounds = view.execution.rounds
    if view.execution.schedule.slots == 1:
        return np.cumsum(merges_by_round(*_single(view)), dtype=np.int32)
    hidden = Hidden.of(view)
    return np.array([hidden.until(r).rank.hidden for r in range(rounds + 1)], dtype=np.int32)


def first_round_met(view: View) -> int | None:
    """Return the least r for which the hidden messages of rounds 1..r have rank n_H - 1; None if there is none.

    For one receiver per party this is a single pass of union-find (fact F1), else a search by bisection; see
    `rank_curve` for what it means, and `hidden_rank` for "undecided". For a single honest party it is 0.

    >>> from inca import Execution, RandomReceivers, incremental
    >>> first_round_met(View(Execution(RandomReceivers(10, rounds=4, seed=3), incremental(4))))
    2
    """
    if view.execution.schedule.slots == 1:
        return _first(merges_by_round(*_single(view)), view.honest.size - 1)
    hidden, least, most = Hidden.of(view), 0, view.execution.rounds
    if not hidden.rank.met:
        return None
    while least < most:
        middle = (least + most) // 2
        least, most = (least, middle) if hidden.until(middle).rank.met else (middle + 1, most)
    return least


def rounds_to_connect(receivers: Ids, colluding: Flags, tapped: Flags | None = None) -> int | None:
    """Return after how many rounds hidden messages connect the honest parties, one receiver per message (fact F1).

    `receivers` is (T, n), row t for what is sent in round t+1, -1 or the sender itself for nobody; `colluding` marks
    parties, `tapped` (T, n) messages that are known anyhow. None if that never happens. This is `first_round_met`
    for those who draw schedules by the thousand.

    >>> ring = np.array([[1, 2, 3, 0], [2, 3, 0, 1]], dtype=np.int32)
    >>> rounds_to_connect(ring, np.array([False, True, False, True]))
    2
    """
    if receivers.ndim != 2 or receivers.dtype != np.int32:
        raise refuse("receivers", f"{receivers.dtype} of shape {receivers.shape}", "int32 of shape (T, n)")
    parties = receivers.shape[1]
    for name, flags, shape in (("colluding", colluding, (parties,)), ("tapped", tapped, receivers.shape)):
        if flags is not None and (flags.shape != shape or flags.dtype != np.bool_):
            raise refuse(name, f"{flags.dtype} of shape {flags.shape}", f"bool of shape {shape}")
    if receivers.size and (int(receivers.min()) < -1 or int(receivers.max()) >= parties):
        raise InputError(f"receivers has an id out of range, but -1 to {parties - 1} was expected")
    return _first(merges_by_round(receivers, colluding, tapped), parties - int(colluding.sum()) - 1)


@compiled
def merges_by_round(receivers: Ids, colluding: Flags, tapped: Flags | None) -> Ids:
    """Return how many components of honest parties the hidden messages of rounds 0 (none), 1, .., T merge."""
    rounds, parties = receivers.shape
    honest = np.flatnonzero(~colluding)
    parent = np.arange(parties).astype(np.int32)
    merges = np.zeros(rounds + 1, dtype=np.int32)
    left = honest.size - 1
    for t in range(rounds):
        if left <= 0:
            break
        for i in honest:
            j = receivers[t, i]
            if j < 0 or colluding[j]:
                continue
            if tapped is not None:  # noqa: SIM102 (a question for the compiler)
                if tapped[t, i]:
                    continue
            a, b = root(parent, int(i)), root(parent, int(j))
            if a != b:
                parent[max(a, b)] = min(a, b)  # keeps trees flat, as ids are in no order
                merges[t + 1] += 1
        left -= merges[t + 1]
    return merges


def _first(merges: Ids, needed: int) -> int | None:
    """Return after how many rounds as many merges as needed have happened."""
    reached = np.cumsum(merges)
    return int(np.searchsorted(reached, needed)) if reached[-1] >= needed else None


def _single(view: View) -> tuple[Ids, Flags, Flags | None]:
    """Return what `merges_by_round` wants of an execution with one receiver per party."""
    execution = view.execution
    steps = [execution.sends(t) for t in range(1, execution.rounds + 1)]
    # Shares are above 0, but explicit weights need not be.
    receivers = np.stack([s.receivers if s.weights is None else np.where(delivered(s), s.receivers, -1) for s in steps])
    colluding = np.ones(execution.parties, dtype=bool)
    colluding[view.honest] = False
    plain = execution.presence.nobody_absent and not view.adversary.eavesdropped and not execution.undelivered
    return receivers[:, :, 0], colluding, None if plain else view.known_when_sent


def _exchanges(step: Round) -> Array:
    """Return who sends to whom which fraction, as three rows in an order that does not depend on slots."""
    sender, slot = np.nonzero(delivered(step))
    receiver = step.receivers[sender, slot]
    return np.stack([sender, receiver, step.fractions[sender, slot]])[:, np.lexsort((receiver, sender))]


def _coalition(facts: Facts) -> Flags | str:
    """Return the largest coalition, or say why there is none.

    An f that is orthogonal to all vectors of some parties is constant on every coalition among them. So we keep who
    has the value of those who stay, and look again, until all have: then the rank is what it must be. If nobody
    stays, we go where most weight is. Components come first, as they cost least.
    """
    members = np.abs(facts.weights) > NOTHING
    if not members.any():
        return "no honest party injects anything of its value"
    while True:
        part, ids = facts.hidden.within(members), np.flatnonzero(members)
        group, stays = part.component, facts.staying[members]
        if not group.any():
            if part.rank.met:
                return members
            group = part.alike
        home = group[stays][0] if stays.any() else np.argmax(np.bincount(group, facts.weights[members] ** 2))
        if (apart := stays & (group != home)).any():
            one, other = facts.honest[ids[stays & ~apart][0]], facts.honest[ids[apart][0]]
            pair = f"parties {one} and {other}, who are present at the end"
            return f"there is no coalition, as no hidden messages can move value between {pair}"
        if not (group != home).any():
            return f"no coalition was found: {part.rank}"
        members[ids[group != home]] = False
