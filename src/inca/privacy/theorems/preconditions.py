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

from inca._base.kernels import Flags
from inca._base.types import Array
from inca._base.validation import finite_float, positive, refuse
from inca.errors import InvalidInput
from inca.privacy.theorems.hidden_messages import ZERO_WEIGHT, HiddenMessages, delivered
from inca.privacy.view import View
from inca.protocol.injection import Injection
from inca.protocol.schedules import Round


@dataclass(frozen=True)
class TheoremCheck:
    """What one theorem says about an execution and an adversary.

    Attributes:
        name: The theorem.
        holds: Whether its precondition does; for Theorem 6, which forbids, whether it has no objection.
        why: The reason, in words.
        factor_sharp: What the proof gives for the factor in the bound on the noise; None where no bound follows.
        factor_printed: The paper's closed form for it, which is at least as large; None where it says nothing.
        coalition: The parties that hide one another.
    """

    name: str
    holds: bool
    why: str
    factor_sharp: float | None = None
    factor_printed: float | None = None
    coalition: tuple[int, ...] | None = None

    def least_sigma_independent(self, mu: float, sensitivity: float = 1.0) -> float:
        """Return the infimum of sigma_independent for shifts of at most mu; strictly more is needed.

        >>> TheoremCheck("Theorem 2", True, "", factor_sharp=0.01).least_sigma_independent(mu=0.05)
        2.0
        """
        if self.factor_sharp is None:
            raise InvalidInput(f"{self.name} must hold to bound the noise, but {self.why}")
        distance = finite_float("sensitivity", sensitivity, min=0.0)
        return float(distance * np.sqrt(self.factor_sharp) / positive("mu", mu))


class TheoremInputs:
    """What several theorems ask of one view, computed once; give it to them in place of the view.

    Where a cohort settles, the theorems are about its honest parties, with all others counted as colluders: then
    settled messages tell the same as those that were not (docs/settlement.md).
    """

    def __init__(self, view: View) -> None:
        cohort = view.execution.cohort
        self.view = view = view.of_cohort() if cohort is not None and cohort[view.honest].any() else view
        self.honest = view.honest
        self.weights = view.execution.total_weights[view.honest]
        self.staying: Flags = view.execution.presence.row(view.execution.rounds)[view.honest]

    @classmethod
    def of(cls, view: View | TheoremInputs) -> TheoremInputs:
        """Return the inputs for a view."""
        return view if isinstance(view, TheoremInputs) else cls(view)

    @cached_property
    def hidden(self) -> HiddenMessages:
        """The hidden messages."""
        return HiddenMessages.of(self.view)

    @cached_property
    def obstacle(self) -> str | None:
        """Why there are no edge vectors by Lemma 3: an injection that is not valid, or a weight of 0."""
        return self.invalid or self.empty(np.ones(self.honest.size, dtype=bool))

    @cached_property
    def invalid(self) -> str | None:
        """Why the injection is not valid, if so."""
        try:
            Injection(self.view.execution.injection.value, self.view.execution.injection.noise)
        except InvalidInput as error:
            return f"the injection is not valid: {error}"
        return None

    def empty(self, among: Flags) -> str | None:
        """Say who among some injects nothing of its value, if anyone."""
        bad = self.honest[among & (np.abs(self.weights) <= ZERO_WEIGHT)]
        return f"party {bad[0]} injects nothing of its value" if bad.size else None

    def bound(self, name: str, why: str, members: Flags | None = None) -> TheoremCheck:
        """Return the check that the members of a coalition, default all honest parties, hide one another."""
        inside = np.ones(self.honest.size, dtype=bool) if members is None else members
        joint = self.weights[inside]
        largest, total = float(np.abs(self.weights).max()), float(joint.sum())
        sharp = min(1.0, largest**2 / float(joint @ joint))
        # The closed form follows for weights from 0 to 1; rounding may take those of a full attendance above.
        follows = joint.size > 1 and total > 1.0 and self.weights.min() >= 0.0 and largest <= 1.0 + 1e-9
        printed = (joint.size - 1) / (total - 1.0) ** 2 if follows else None
        return TheoremCheck(name, True, why, sharp, printed, tuple(self.honest[inside].tolist()))


def conditions(view: View | TheoremInputs) -> list[TheoremCheck]:
    """Return what all theorems say, sharing the work.

    >>> from inca import Execution, RandomReceivers, incremental_injection
    >>> from inca.protocol.adversary import Adversary
    >>> execution = Execution(RandomReceivers(20, rounds=10, seed=2), incremental_injection(10))
    >>> for check in conditions(View(execution, Adversary(colluding=[3, 8]))):
    ...     print(f"{check.name}: {check.why}")
    Theorem 2: the hidden messages have rank 17 of 17 needed (union-find)
    Theorem 3: the hidden messages have rank 17 of 17 needed (union-find)
    Theorem 4: all 18 honest parties hide one another
    Theorem 5: the graph of hidden messages is strongly connected
    One sink: all hidden messages lead into one strongly connected component of size 18
    Theorem 6: no objection, as 18 of 18 honest parties hide a message
    """
    inputs = TheoremInputs.of(view)
    return [check(inputs) for check in (theorem2, theorem3, theorem4, theorem5, one_sink, theorem6)]


def theorem2(view: View | TheoremInputs) -> TheoremCheck:
    """Check Theorem 2: nobody is ever absent and n_H - 1 edge vectors are independent; the factor is 1 / n_H.

    >>> from inca import Execution, RandomReceivers, incremental_injection
    >>> theorem2(View(Execution(RandomReceivers(20, rounds=10, seed=2), incremental_injection(10)))).factor_sharp
    0.05
    """
    inputs, name = TheoremInputs.of(view), "Theorem 2"
    if inputs.invalid:
        return TheoremCheck(name, False, inputs.invalid)
    if not inputs.view.execution.presence.all_present:
        t, party = np.argwhere(~inputs.view.active)[0]
        return TheoremCheck(name, False, f"party {party} is absent in round {t}, and nobody may ever be")
    rank, count = inputs.hidden.rank, inputs.honest.size
    if not rank.met:
        return TheoremCheck(name, False, str(rank))
    return TheoremCheck(name, True, str(rank), 1 / count, 1 / count, tuple(inputs.honest.tolist()))


def theorem3(view: View | TheoremInputs) -> TheoremCheck:
    """Check Theorem 3: n_H - 1 edge vectors are independent, whoever is absent when (erratum E8).

    The sharp factor is max w_i^2 / ||w||^2 over honest parties, the printed one (n_H - 1) / (w_O - 1)^2, where w_O
    is the sum of their weights; it needs two honest parties, weights from 0 to 1, and w_O > 1.

    >>> from inca import Execution, ExplicitSchedule, Presence, incremental_injection
    >>> presence = Presence.explicit([[1, 1, 1], [1, 0, 1], [1, 1, 1]])
    >>> ring = Execution(ExplicitSchedule([[[2], [2], [0]], [[1], [2], [0]]]), incremental_injection(2), presence)
    >>> check = theorem3(View(ring))
    >>> check.why, round(check.factor_sharp, 3), round(check.factor_printed, 3)
    ('the hidden messages have rank 2 of 2 needed (union-find)', 0.409, 0.72)
    """
    inputs, name = TheoremInputs.of(view), "Theorem 3"
    if inputs.obstacle:
        return TheoremCheck(name, False, inputs.obstacle)
    rank = inputs.hidden.rank
    return inputs.bound(name, str(rank)) if rank.met else TheoremCheck(name, False, str(rank))


def theorem4(view: View | TheoremInputs) -> TheoremCheck:
    """Check Theorem 4: a coalition J of all honest parties present at the end, and of leavers, hides its members.

    HiddenMessages are messages sent by members to members only, in the round after they were computed (erratum E4), and
    |J| - 1 vectors must be independent. The sharp factor is the largest w_i^2 over honest i, divided by ||w_J||^2
    (erratum E3), and at most 1. If anyone stays, the J found is the largest of all, hence the one of least factor.

    >>> from inca import Execution, ExplicitSchedule, Presence, incremental_injection
    >>> presence = Presence.explicit([[1, 1, 1], [1, 1, 0], [1, 1, 0]])
    >>> execution = Execution(ExplicitSchedule([[[1], [0], [0]]] * 2), incremental_injection(2), presence)
    >>> theorem3(View(execution)).holds, theorem4(View(execution)).coalition
    (False, (0, 1))
    """
    inputs, name = TheoremInputs.of(view), "Theorem 4"
    if obstacle := inputs.invalid or inputs.empty(inputs.staying):
        return TheoremCheck(name, False, obstacle)
    members = _coalition(inputs)
    if isinstance(members, str):
        return TheoremCheck(name, False, members)
    all_of_them = f"all {members.size} honest parties hide one another"
    some = f"{members.sum()} of {members.size} honest parties hide one another, and the others left"
    return inputs.bound(name, all_of_them if members.all() else some, members)


def theorem5(view: View | TheoremInputs) -> TheoremCheck:
    """Check Theorem 5: the graph of hidden messages is strongly connected (erratum E4); then Theorem 3 holds.

    >>> from inca import Execution, ExplicitSchedule, incremental_injection
    >>> print(theorem5(View(Execution(ExplicitSchedule([[[1], [0], [0]]]), incremental_injection(1)))).why)
    the graph of hidden messages has 2 strongly connected components
    """
    inputs, name = TheoremInputs.of(view), "Theorem 5"
    count = inputs.hidden.strong[0]
    if inputs.obstacle or count > 1:
        why = inputs.obstacle or f"the graph of hidden messages has {count} strongly connected components"
        return TheoremCheck(name, False, why)
    return inputs.bound(name, "the graph of hidden messages is strongly connected")


def one_sink(view: View | TheoremInputs) -> TheoremCheck:
    """Check that the graph of hidden messages has one sink component; then Theorem 3 holds (fact F2).

    >>> from inca import Execution, ExplicitSchedule, incremental_injection
    >>> one_sink(View(Execution(ExplicitSchedule([[[1], [0], [0]]]), incremental_injection(1)))).holds
    True
    """
    inputs, name = TheoremInputs.of(view), "One sink"
    sinks, size = int(inputs.hidden.sink.max()) + 1, int((inputs.hidden.sink == 0).sum())
    if inputs.obstacle or sinks > 1:
        why = inputs.obstacle or f"the graph of hidden messages has {sinks} sink components"
        return TheoremCheck(name, False, why)
    return inputs.bound(name, f"all hidden messages lead into one strongly connected component of size {size}")


def theorem6(view: View | TheoremInputs) -> TheoremCheck:
    """Check Theorem 6: exchanges never change and two honest parties hide nothing; then Theorems 2 and 3 fail.

    >>> from inca import Execution, ExplicitSchedule, incremental_injection
    >>> from inca.protocol.adversary import Adversary
    >>> static = Execution(ExplicitSchedule([[[1], [2], [0], [2]]] * 3), incremental_injection(3))
    >>> theorem6(View(static, Adversary(colluding=[2]))).why
    'exchanges never change and parties 1 and 3 hide nothing, so at most 1 of 2 vectors are independent'
    """
    inputs, name = TheoremInputs.of(view), "Theorem 6"
    count, execution = inputs.honest.size, inputs.view.execution
    silent = inputs.honest[np.bincount(inputs.hidden.sender, minlength=count) == 0]
    if silent.size < 2:
        hiding = f"{count - silent.size} of {count} honest parties hide a message"
        return TheoremCheck(name, True, f"no objection, as {hiding}")
    first = _exchanges(execution.sends(1))
    for t in range(2, execution.rounds + 1):
        if not np.array_equal(first, _exchanges(execution.sends(t))):
            return TheoremCheck(name, True, f"no objection, as the exchanges of round {t} differ from those of round 1")
    pair = f"parties {silent[0]} and {silent[1]} hide nothing"
    limit = f"at most {count - 2} of {count - 1} vectors are independent"
    return TheoremCheck(name, False, f"exchanges never change and {pair}, so {limit}")


def shifts(view: View, check: TheoremCheck) -> Array:
    """Return the changes f_i = e_i + xi_i of the noisy values in the proofs of Theorems 2 to 4, one row per party.

    When the value of party i changes by 1 and the independent noise by xi_i, cancelling noise can hide it: B f_i + A
    Delta = 0 has a solution. For i in the coalition J, xi_i = -(w_i / ||w_J||^2) w_J, so f_i is orthogonal to w. A
    leaver outside hides by its own uncancelled noise; there xi_i = -min(1, w_i / ||w_J||) e_i, the proof's
    with sign and square mended. The squared length of every xi_i is at most `check.factor_sharp`.

    >>> from inca import Execution, ExplicitSchedule, incremental_injection
    >>> view = View(Execution(ExplicitSchedule([[[1], [0]]]), incremental_injection(1)))
    >>> shifts(view, theorem2(view)).tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    """
    if check.coalition is None:
        raise InvalidInput(f"{check.name} must name a coalition, but {check.why}")
    inside = np.isin(view.honest, check.coalition)
    if inside.sum() != len(check.coalition):
        refuse("the coalition", check.coalition, "made of honest parties of the view")
    weights = view.execution.total_weights[view.honest]
    joint = np.where(inside, weights, 0.0)
    square = joint @ joint
    alone = np.where(inside, 0.0, np.minimum(1.0, np.abs(weights) / np.sqrt(square)))
    return np.asarray(np.eye(weights.size) - np.outer(joint, joint) / square - np.diag(alone))


def _exchanges(step: Round) -> Array:
    """Return who sends to whom which fraction, as three rows in an order that does not depend on slots."""
    sender, slot = np.nonzero(delivered(step))
    receiver = step.receivers[sender, slot]
    return np.stack([sender, receiver, step.fractions[sender, slot]])[:, np.lexsort((receiver, sender))]


def _coalition(inputs: TheoremInputs) -> Flags | str:
    """Return the largest coalition, or say why there is none.

    An f that is orthogonal to all vectors of some parties is constant on every coalition among them. So we keep who
    has the value of those who stay, and look again, until all have: then the rank is what it must be. If nobody
    stays, we go where most weight is. Components come first, as they cost least.
    """
    members = np.abs(inputs.weights) > ZERO_WEIGHT
    if not members.any():
        return "no honest party injects anything of its value"
    while True:
        part, ids = inputs.hidden.within(members), np.flatnonzero(members)
        group, stays = part.component, inputs.staying[members]
        if not group.any():
            if part.rank.met:
                return members
            group = part.equal_groups
        home = group[stays][0] if stays.any() else np.argmax(np.bincount(group, inputs.weights[members] ** 2))
        if (apart := stays & (group != home)).any():
            one, other = inputs.honest[ids[stays & ~apart][0]], inputs.honest[ids[apart][0]]
            pair = f"parties {one} and {other}, who are present at the end"
            return f"there is no coalition, as no hidden messages can move value between {pair}"
        if not (group != home).any():
            return f"no coalition was found: {part.rank}"
        members[ids[group != home]] = False
