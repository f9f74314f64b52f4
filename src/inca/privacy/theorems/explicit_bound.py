"""An upper bound on every honest party's loss without any linear algebra: a flow along hidden messages.

Let the value of party i change by 1, and let every honest party's independent noise take up an equal part of it, so
that f = e_i - 1/n_H is left to be spread. In every round half of what a party holds moves along its message, if that is
hidden, and nothing if it is known:

    Z_0 = c_0 f,    Z_t = H_t Z_(t-1) + c_t f,    r = Z_T.

What is left in the end, r, is taken up by independent noise as well, which enters with the value: C_t r by round t,
C_t = c_0 + ... + c_t. Masks make up for the rest: by C_t r_j where j's message is hidden, by Z_tj - C_t r_j where it is
known. Then nothing that is seen has changed, and by Lemma 2

    mu_i^2 <= s^2 [ (1/n_H + |r|^2) / sigma_*^2 + sum_(t<T) (sum_(hidden) (C_t r_j)^2 + sum_(known) (Z_tj - C_t r_j)^2)
              / sigma_Delta^2 ].

Proof and figures: docs/settlement.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inca._base.types import Array
from inca._base.validation import finite_float, refuse
from inca.privacy.view import View
from inca.protocol.noise_levels import NoiseLevels


@dataclass(frozen=True, eq=False)
class ExplicitBound:
    """What the flow of each honest party costs, in the order of `view.honest`.

    Attributes:
        independent: The squared changes of independent noise, 1/n_H + |r|^2.
        cancelling: The squared changes of masks.
    """

    independent: Array
    cancelling: Array

    def mu(self, noise_levels: NoiseLevels, *, sensitivity: float) -> Array:
        """Return upper bounds on the losses mu_i.

        Args:
            noise_levels: Both levels; without a top-up.
            sensitivity: How far one party's value can move.
        """
        distance = finite_float("sensitivity", sensitivity, min=0.0)
        if noise_levels.topup > 0.0:
            refuse("sigma_topup", noise_levels.topup, "0 for the explicit bound")
        with np.errstate(divide="ignore"):
            squares = np.divide(self.independent, noise_levels.independent**2)
            squares = squares + np.divide(self.cancelling, noise_levels.cancelling**2)
        return np.asarray(distance * np.sqrt(squares))

    def least_levels(self, factor: float) -> Array:
        """Return the level of cancelling noise that suffices for each party at a factor, infinite if none does.

        Levels are in units of (s / mu)^2, and all honest parties together have `factor` of them as independent noise.

        Args:
            factor: The factor, above 1.
        """
        left = 1.0 - self.independent * self.independent.size / factor
        with np.errstate(divide="ignore"):
            return np.where(left > 0.0, self.cancelling / np.maximum(left, 0.0), np.inf)


def explicit_bound(view: View) -> ExplicitBound:
    """Return what the flow along hidden messages costs for each honest party.

    Args:
        view: What is seen of a run with one receiver per party and round, in which all honest parties are present
            from start to end; where some left and the others settled, `view.of_cohort()`.

    Returns:
        The bound.

    Raises:
        InvalidInput: If there are several receivers, an honest party is absent, or noise is not one mask a round.

    Example:
        >>> import inca
        >>> run = inca.Execution(inca.PermutationReceivers(30, 20, seed=1), inca.incremental_injection(20, quiet=10))
        >>> view, levels = View(run, inca.Adversary([0, 1, 2])), NoiseLevels(independent=1.0, cancelling=5.0)
        >>> bound = explicit_bound(view).mu(levels, sensitivity=1.0)
        >>> exact = inca.account(view, levels, sensitivity=1.0).mu
        >>> bool((exact <= bound).all()), round(float((bound / exact).max()), 2)
        (True, 1.04)
    """
    execution, honest = view.execution, view.honest
    scales = execution.injection.mask_scales
    if scales is None:
        refuse("the injection", "another", "incremental, with one mask a round, for the explicit bound")
    if execution.schedule.slots != 1:
        refuse("receivers per round", execution.schedule.slots, "1 for the explicit bound")
    if not view.active[:, honest].all():
        refuse("the honest parties", "absent at times", "present in all rounds for the explicit bound")
    place = np.full(execution.parties, -1)
    place[honest] = np.arange(honest.size)
    c = execution.injection.value
    spread = np.eye(honest.size) - 1.0 / honest.size  # column i is f of party i
    states = [c[0] * spread]
    moving = []
    for t in range(1, execution.rounds + 1):
        step = execution.sends(t)
        to = np.where(step.receivers[:, 0] >= 0, place[step.receivers[:, 0]], -1)[honest]
        hidden = ~view.known_when_sent[t - 1][honest] & (to >= 0)
        moved = step.share * states[-1][hidden]
        after = states[-1].copy()
        after[hidden] -= moved
        np.add.at(after, to[hidden], moved)
        states.append(after + c[t] * spread)
        moving.append(hidden)
    residue = states[-1]
    cancelling = np.zeros(honest.size)
    for t, hidden in enumerate(moving):
        kept = np.sum(c[: t + 1]) * residue
        masks = np.where(hidden[:, np.newaxis], kept, states[t] - kept)
        cancelling += np.sum((masks / scales[t]) ** 2, axis=0)
    return ExplicitBound(1.0 / honest.size + np.sum(residue**2, axis=0), cancelling)
