"""An upper bound on every honest party's loss without any linear algebra: flows along hidden messages.

Let the value of party i change by 1, and let every honest party's independent noise take up an equal part of it, so
that f = e_i - 1/n_H is left to be spread. In every round a part of what a party holds moves along its message, if that
is hidden, and nothing if it is known: a half times 1 + b_tj, so that

    Z_0 = c_0 f,    Z_t = H_t Z_(t-1) + c_t f,    r = Z_T.

What is left in the end, r, is taken up by independent noise as well, which enters with the value: C_t r by round t,
C_t = c_0 + ... + c_t. Masks make up for the rest: by b_tj Z_tj + C_t r_j where j's message is hidden, by C_t r_j - Z_tj
where it is known. Then nothing that is seen has changed, and by Lemma 2

    mu_i^2 <= s^2 [ (1/n_H + |r|^2) / sigma_*^2 + sum_(t<T) (sum_(hidden) (b_tj Z_tj + C_t r_j)^2
              + sum_(known) (Z_tj - C_t r_j)^2) / sigma_Delta^2 ].

Two flows are mixed, in the proportion that is best for each party, which may be negative: changes are linear. One moves
halves, b = 0. The other looks ahead, b_tj = 2 R / (4 + R) if the R next messages of j are known: what j still holds
costs a mask in each of these rounds. Proof and figures: docs/settlement.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inca._base.kernels import Flags
from inca._base.types import Array
from inca._base.validation import finite_float, refuse
from inca.privacy.view import View
from inca.protocol.noise_levels import NoiseLevels

_HALVINGS = 60  # of the interval, in logarithms, that a least level is searched in
_LEAST, _MOST = 1e-9, 1e12


@dataclass(frozen=True, eq=False)
class ExplicitBound:
    """What the two flows of each honest party cost, in the order of `view.honest`, as 2 x 2 matrices of products.

    Attributes:
        independent: Products of the changes of independent noise: 1/n_H + |r|^2 for the first flow with itself.
        cancelling: Products of the changes of masks.
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
        independent, cancelling = self._mixed(noise_levels.cancelling**2, noise_levels.independent**2)
        with np.errstate(divide="ignore"):
            squares = np.divide(
                independent, noise_levels.independent**2, out=np.zeros_like(independent), where=independent > 0
            )
            squares += np.divide(
                cancelling, noise_levels.cancelling**2, out=np.zeros_like(cancelling), where=cancelling > 0
            )
        return np.asarray(distance * np.sqrt(squares))

    def least_levels(self, factor: float) -> Array:
        """Return the level of cancelling noise that suffices for each party at a factor, infinite if none does.

        Levels are in units of (s / mu)^2, and all honest parties together have `factor` of them as independent noise.

        Args:
            factor: The factor, above 1.
        """
        parties = self.independent.shape[0]
        low, high = np.full(parties, _LEAST), np.full(parties, _MOST)
        share = parties / factor
        enough = self._loss(share, high) <= 1.0
        for _ in range(_HALVINGS):
            middle = np.sqrt(low * high)
            suffices = self._loss(share, middle) <= 1.0
            low, high = np.where(suffices, low, middle), np.where(suffices, middle, high)
        return np.where(enough, high, np.inf)

    def _loss(self, share: float, levels: Array) -> Array:
        """Return the squared losses at levels of cancelling noise, in the units of `least_levels`."""
        independent, cancelling = self._mixed(share * levels, np.ones_like(levels))
        return share * independent + cancelling / levels

    def _mixed(self, of_independent: Array | float, of_cancelling: Array | float) -> tuple[Array, Array]:
        """Return what the best mixture of the flows costs, if the two kinds of noise have these weights.

        Any mixture is a bound, so it does not matter how accurately the best one is known.
        """
        weights = [np.asarray(weight)[..., np.newaxis, np.newaxis] for weight in (of_independent, of_cancelling)]
        products = weights[0] * self.independent + weights[1] * self.cancelling
        gain = products[:, 0, 0] - products[:, 0, 1]
        apart = gain + products[:, 1, 1] - products[:, 0, 1]
        second = np.divide(gain, apart, out=np.zeros_like(gain), where=apart > 1e-12 * products[:, 0, 0])
        mixture = np.stack([1.0 - second, second], axis=1)
        return (
            np.einsum("ia,iab,ib->i", mixture, self.independent, mixture),
            np.einsum("ia,iab,ib->i", mixture, self.cancelling, mixture),
        )


def explicit_bound(view: View) -> ExplicitBound:
    """Return what flows along hidden messages cost for each honest party.

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
        (True, 1.03)
    """
    execution, honest = view.execution, view.honest
    scales = execution.injection.mask_scales
    if scales is None:
        refuse("the injection", "another", "incremental, with one mask a round, for the explicit bound")
    if execution.schedule.slots != 1:
        refuse("receivers per round", execution.schedule.slots, "1 for the explicit bound")
    if not view.active[:, honest].all():
        refuse("the honest parties", "absent at times", "present in all rounds for the explicit bound")
    receivers, hidden = _messages(view)
    looking_ahead = _known_next(hidden)
    looking_ahead = 2.0 * looking_ahead / (4.0 + looking_ahead)
    flows = [_flow(view, receivers, hidden, extra) for extra in (np.zeros_like(looking_ahead), looking_ahead)]
    independent, masks = (np.stack(changes) for changes in zip(*flows, strict=True))
    masks /= scales[:, np.newaxis, np.newaxis]
    return ExplicitBound(
        np.einsum("aji,bji->iab", independent, independent),
        np.einsum("atji,btji->iab", masks, masks, optimize=True),
    )


def _messages(view: View) -> tuple[Array, Flags]:
    """Return to which honest party, by place, each honest party sends in every round, and whether that is hidden."""
    execution, honest = view.execution, view.honest
    place = np.full(execution.parties + 1, -1)  # nobody receives at -1
    place[honest] = np.arange(honest.size)
    receivers = np.array([place[execution.sends(t).receivers[honest, 0]] for t in range(1, execution.rounds + 1)])
    return receivers, ~view.known_when_sent[:, honest] & (receivers >= 0)


def _known_next(hidden: Flags) -> Array:
    """Return how many messages in a row are known after that of each round, for every party."""
    following = np.zeros((hidden.shape[0] + 1, hidden.shape[1]))
    for t in range(hidden.shape[0] - 1, 0, -1):
        following[t] = np.where(hidden[t], 0.0, 1.0 + following[t + 1])
    return np.concatenate([following[1:-1], np.zeros((1, hidden.shape[1]))])


def _flow(view: View, receivers: Array, hidden: Flags, extra: Array) -> tuple[Array, Array]:
    """Return the changes of independent noise, (n_H, n_H), and of masks, (T, n_H, n_H), of all parties' flows."""
    c, parties = view.execution.injection.value, view.honest.size
    spread = np.eye(parties) - 1.0 / parties  # column i is f of party i
    state = c[0] * spread
    masks = np.empty((len(hidden), parties, parties))
    for t, seen in enumerate(~hidden):
        share = view.execution.sends(t + 1).share
        masks[t] = np.where(seen, -1.0, extra[t])[:, np.newaxis] * state
        moved = share * (state + masks[t])
        state = state - moved
        np.add.at(state, receivers[t][~seen], moved[~seen])
        state += c[t + 1] * spread
    masks += np.cumsum(c)[:-1, np.newaxis, np.newaxis] * state
    return -1.0 / parties - state, masks
