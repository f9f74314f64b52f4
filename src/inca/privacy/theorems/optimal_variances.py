"""The least noise for a wanted loss when noise terms may differ in variance: the convex program of Corollary 1.

Let noise term k have variance v_k and column g_k in (B, A), so that Sigma(v) = sum_k v_k g_k g_k^T. The program is:
least cost^T v such that h_i^T Sigma(v)^-1 h_i <= mu^2 for every honest party i, whose column of B is h_i. By
Cauchy-Schwarz every vector x gives a linear inequality that all variances which meet the target obey, a cut:

    sum_k v_k (g_k^T x)^2 = x^T Sigma(v) x >= (x^T h_i)^2 / mu^2.

Cuts with x = Sigma(v)^-1 h_i touch at v, up to its scale. A linear program over such cuts bounds the least cost from
below, scaling any v up until it meets the target bounds it from above, and `design` closes the gap between the two.
"""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import linprog

from inca._base.extras import require_extra
from inca._base.types import Array
from inca._base.validation import finite_array, finite_float, integer, positive, refuse
from inca.errors import InvalidInput
from inca.privacy._dense import factor
from inca.privacy.view import View
from inca.protocol.execution import Execution
from inca.protocol.expected_error import sum_coefficients_by_term
from inca.protocol.injection import Injection
from inca.protocol.noise_levels import NoiseLevels

_MIN_COST = 1e-9  # relative to the largest
_SPARE = 1e-9  # how much more than needed is given, so that rounding does not break the promise
_NEAR = 1.5  # cuts that are met this many times over are dropped from the linear program
_MAX_ENTRIES = 20_000  # of all matrices of the semidefinite program together


@dataclass(frozen=True, eq=False)
class Groups:
    """Which of `count` common variances each noise term of the honest parties has.

    `independent` holds a group per honest party, `cancelling` one per column of A (term k of honest party h is
    column h T + k).
    """

    independent: NDArray[np.intp]
    cancelling: NDArray[np.intp]
    count: int

    @property
    def terms(self) -> NDArray[np.intp]:
        """The groups of the columns of (B, A)."""
        return np.concatenate([self.independent, self.cancelling])

    @property
    def per_term(self) -> NDArray[np.intp]:
        """The groups of the independent noise and of noise terms 1..T; refuse if they differ between parties."""
        rows = np.column_stack([self.independent, self.cancelling.reshape(self.independent.size, -1)])
        if (rows != rows[0]).any():
            raise InvalidInput("the groups of noise terms must be the same for all parties, got different ones")
        return np.asarray(rows[0])


Grouping = Callable[[View], Groups]
"""Says which noise terms of a view share a variance: `per_kind`, `per_round`, `free`, or your own."""


def per_kind(view: View) -> Groups:
    """Tie all independent noise (group 0) and all cancelling noise (group 1)."""
    honest, rounds = view.honest.size, view.execution.rounds
    return Groups(np.zeros(honest, np.intp), np.ones(honest * rounds, np.intp), 2)


def per_round(view: View) -> Groups:
    """Tie all independent noise (group 0) and, for r = 1..T, the r-th noise terms of all parties (group r).

    >>> import inca
    >>> view = inca.View(inca.Execution(inca.RandomReceivers(2, rounds=3, seed=1), inca.incremental_injection(3)))
    >>> per_round(view).terms.tolist()
    [0, 0, 1, 2, 3, 1, 2, 3]
    """
    honest, rounds = view.honest.size, view.execution.rounds
    return Groups(np.zeros(honest, np.intp), np.tile(np.arange(1, rounds + 1), honest), rounds + 1)


def free(view: View) -> Groups:
    """Tie nothing: every noise term of every honest party has its own variance, in the order of (B, A)."""
    honest, terms = view.honest.size, view.honest.size * view.execution.rounds
    return Groups(np.arange(honest), np.arange(honest, honest + terms), honest + terms)


@dataclass(frozen=True, eq=False)
class VarianceDesign:
    """Variances that meet the target, one per group and all above 0, and the proof that they are nearly the cheapest.

    A cost below a billionth of the largest counts as that, in `cost` and `lower_bound` too, since noise that costs
    nothing would grow without limit.

    Attributes:
        variances: One per group.
        cost: What they cost together.
        lower_bound: No variances that meet the target cost less.
        max_mu: The largest loss, found by another method than the one that designed.
        groups: Those of the first view.
    """

    variances: Array
    cost: float
    lower_bound: float
    max_mu: float
    groups: Groups

    @property
    def gap(self) -> float:
        """How much could be saved at most, relative to the lower bound."""
        return self.cost / self.lower_bound - 1.0

    @property
    def noise_levels(self) -> NoiseLevels:
        """The levels, if all parties have the same; the cancelling one is the root mean square of the T terms."""
        groups = self.groups.per_term
        var_cancelling = float(self.variances[groups[1:]].mean())
        return NoiseLevels(independent=math.sqrt(self.variances[groups[0]]), cancelling=math.sqrt(var_cancelling))

    def injection(self, base: Injection) -> Injection:
        """Fold the variances of the noise terms, relative to the cancelling level, into the injection of the views."""
        terms = self.variances[self.groups.per_term[1:]]
        if terms.size != base.rounds:
            refuse("the number of rounds of the injection", base.rounds, f"that of the views ({terms.size})")
        return Injection(base.value, base.noise, variances=terms / terms.mean())


def design(
    views: View | Iterable[View],
    mu: float,
    cost: ArrayLike,
    groups: Grouping = per_round,
    *,
    sensitivity: float = 1.0,
    tolerance: float = 1e-4,
    iterations: int = 500,
) -> VarianceDesign:
    """Return variances of nearly the least cost with which nobody's loss exceeds mu in any of the views (Corollary 1).

    `cost` is what a unit of each group's variance costs (see `expected_error_cost`). Stops when the gap is at most
    `tolerance`, or after so many `iterations`; `VarianceDesign.gap` says how large it is. There always is a design,
    since independent noise of variance (sensitivity / mu)^2 meets the target alone.

    >>> import inca
    >>> execution = inca.Execution(inca.RandomReceivers(30, rounds=3, seed=1), inca.incremental_injection(3))
    >>> view = inca.View(execution, inca.Adversary(colluding=[0, 1, 2]))
    >>> designed = design(view, mu=0.2, cost=[1.0, 0.1, 0.1, 0.1])
    >>> designed.gap <= 1e-4, designed.max_mu <= 0.2
    (True, True)
    """
    problem = _VarianceProblem([views] if isinstance(views, View) else list(views), mu, sensitivity, cost, groups)
    goal = finite_float("tolerance", tolerance, 1e-9, 1.0)
    best, bound, share = np.full(problem.size, 1.0 / problem.size), 0.0, goal / 4
    worst, cuts = problem.cut(best)
    best *= worst
    for _ in range(integer("iterations", iterations, min=1)):
        cheapest, lower = _master(cuts, best.sum())
        bound = max(bound, lower)
        if best.sum() <= (1.0 + goal) * bound:
            break
        # Half way from the best point to the cheapest that the cuts allow: there new cuts tell most. A small share of
        # the cost goes to all groups alike, so that no variance vanishes; it raises the least cost by `share` at most.
        middle = (best + cheapest) / 2
        trial = (1.0 - share) * middle + share * middle.mean()
        worst, fresh = problem.cut(trial)
        tight = np.minimum(cuts @ cheapest, cuts @ best) < _NEAR
        cuts = np.vstack([cuts[tight], fresh])
        if trial.sum() * worst < best.sum():
            best = trial * worst
    return problem.result(best, bound)


def semidefinite_design(
    view: View,
    mu: float,
    cost: ArrayLike,
    groups: Grouping = per_round,
    *,
    sensitivity: float = 1.0,
    solver: Literal["CLARABEL", "SCS"] = "CLARABEL",
) -> VarianceDesign:
    """Return what `design` returns for one view, by the semidefinite program of Corollary 1 as it stands; small cases.

    For every honest party the matrix [[Sigma(v), h_i], [h_i^T, mu^2]] is to be positive semidefinite. Needs cvxpy.

    >>> import inca
    >>> view = inca.View(inca.Execution(inca.RandomReceivers(5, rounds=2, seed=1), inca.incremental_injection(2)))
    >>> exact, fast = (method(view, 0.5, [1.0, 0.1], per_kind) for method in (semidefinite_design, design))
    >>> abs(exact.cost / fast.cost - 1) < 1e-3
    True
    """
    rows, honest, _ = view.shape
    if (entries := honest * (rows + 1) ** 2) > _MAX_ENTRIES:
        what = f"the number of entries of the semidefinite program ({honest} matrices of {rows + 1} rows)"
        refuse(what, entries, f"at most {_MAX_ENTRIES} (`design` takes more)")
    if solver not in ("CLARABEL", "SCS"):
        refuse("solver", solver, "CLARABEL or SCS")
    problem = _VarianceProblem([view], mu, sensitivity, cost, groups)
    require_extra("semidefinite_design", "design")
    cp: Any = importlib.import_module("cvxpy")
    part = problem.parts[0]
    columns, values = part.columns[part.rows], part.values[part.rows]
    shares = cp.Variable(problem.size, nonneg=True)
    blocks = [columns[:, part.groups == g] for g in range(problem.size)]
    sigma = cp.sum([shares[g] * (block @ block.T) for g, block in enumerate(blocks)])
    bordered = [cp.bmat([[sigma, h[:, np.newaxis]], [h[np.newaxis], np.ones((1, 1))]]) >> 0 for h in values.T]
    program = cp.Problem(cp.Minimize(cp.sum(shares)), bordered)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")  # the gap says how inaccurate
        program.solve(solver=solver, **({"eps": 1e-7, "max_iters": 20_000} if solver == "SCS" else {}))
    if shares.value is None:
        raise InvalidInput(f"{solver} ended without a solution: {program.status}")
    solution = np.maximum(shares.value, 0.0)
    solution += 1e-7 * solution.mean()  # Corollary 1 asks for positive variances
    duals = np.array([constraint.dual_value[:-1, -1] for constraint in bordered]).T  # in each the best x for a cut
    duals = duals[:, (along := (duals * values).sum(axis=0)) != 0]
    cuts = part.slopes(columns.T @ duals) / along[along != 0] ** 2
    return problem.result(solution, _master(cuts.T, solution.sum())[1])


def expected_error_cost(executions: Execution | Iterable[Execution], groups: Grouping = per_round) -> Array:
    """Return how much a unit of each group's variance adds to the mean squared error, averaged over executions.

    The noise part of `expected_error` is linear in the variances: these are its coefficients, for one dimension.
    Take executions with the dropouts, and lost final messages, that you expect.

    >>> import inca
    >>> presence = inca.Presence.leaving(40, 3, 0.2, np.random.default_rng(1))
    >>> execution = inca.Execution(inca.RandomReceivers(40, rounds=3, seed=1), inca.incremental_injection(3), presence)
    >>> expected_error_cost(execution).round(4)
    array([0.0293, 0.0017, 0.0014, 0.    ])
    """
    runs = [executions] if isinstance(executions, Execution) else list(executions)
    if not runs:
        refuse("the number of executions", 0, "at least 1")
    grouped = [groups(View(execution)) for execution in runs]  # no adversary: all parties
    costs = np.zeros(grouped[0].count)
    for number, (execution, grouping) in enumerate(zip(runs, grouped, strict=True)):
        if execution.weight == 0.0:
            raise InvalidInput(f"execution {number} must end with an estimate, but nothing was published")
        if grouping.count != costs.size:
            refuse(f"the number of groups of execution {number}", grouping.count, f"that of the first ({costs.size})")
        coefficients = np.concatenate([part.reshape(-1) for part in sum_coefficients_by_term(execution)])
        np.add.at(costs, grouping.terms, coefficients**2 / (len(runs) * execution.weight**2))
    return costs


class _ScaledView:
    """One view, with columns of (B, A) over the roots of their costs: then all costs are 1."""

    def __init__(self, view: View, groups: Groups, costs: Array) -> None:
        self._view, self.groups = view, groups.terms
        if groups.independent.size != view.shape[1] or groups.cancelling.size != view.shape[2]:
            refuse("the number of noise terms in groups", self.groups.size, f"{sum(view.shape[1:])}, all there are")
        if (unknown := (self.groups < 0) | (self.groups >= groups.count)).any():
            refuse("a group in groups", int(self.groups[unknown][0]), f"from 0 to {groups.count - 1}")
        self._scale = np.sqrt(costs[self.groups])
        self.values = view.value[:, view.value.any(axis=0)]  # h_i = 0 means that nothing of x_i was seen
        # Orthonormal combinations of the rows: then Sigma is as well conditioned as the shares are alike.
        factored = factor(self.columns)
        self.rows, self._q, self._h = factored.kept, factored.basis, factored.imitation(self.values)
        count = self.groups.size
        self._sum = sp.csr_array((np.ones(count), (self.groups, np.arange(count))), shape=(groups.count, count))

    @property
    def columns(self) -> Array:
        return np.hstack([self._view.value, self._view.noise]) / self._scale

    def squares(self, shares: Array) -> tuple[Array, Array]:
        """Return f_i = h_i^T Sigma^-1 h_i, and minus its gradient in the shares: sums of (g_k^T Sigma^-1 h_i)^2."""
        root = self._q * np.sqrt(shares[self.groups])[:, np.newaxis]
        try:
            x = cho_solve(cho_factor(root.T @ root, check_finite=False), self._h, check_finite=False)
        except LinAlgError:
            what = "the observed messages are so nearly dependent that double precision does not tell the loss"
            raise InvalidInput(f"{what}; costs closer to each other would help") from None
        return np.einsum("mi,mi->i", self._h, x), self.slopes(self._q @ x)

    def slopes(self, products: Array) -> Array:
        """Return the sums of (g_k^T x)^2 over the terms k of each group, from all g_k^T x."""
        return np.asarray(self._sum @ products**2)

    def check(self, shares: Array) -> float:
        """Return the largest f_i without forming Sigma, by Lemma 2 as in `_dense`, rounded up by its likely error."""
        factored = factor(self.columns * np.sqrt(shares[self.groups]))
        imitations = factored.imitate(self.values)
        return float((imitations.squares * (1.0 + imitations.relative_errors)).max())


class _VarianceProblem:
    """The program for all views, for mu = 1. Its variables are shares: what the variances of the groups cost."""

    def __init__(self, views: list[View], mu: float, sensitivity: float, cost: ArrayLike, groups: Grouping) -> None:
        if not views:
            refuse("the number of views", 0, "at least 1")
        self.mu, self.sensitivity = positive("mu", mu), positive("sensitivity", sensitivity)
        self.costs = _costs(cost)
        self.size, first = self.costs.size, views[0].execution.rounds
        grouped = [groups(view) for view in views]
        self.groups = grouped[0]
        self.parts: list[_ScaledView] = []
        for view, grouping in zip(views, grouped, strict=True):
            if view.execution.rounds != first:
                refuse("the number of rounds of a view", view.execution.rounds, f"that of the first ({first})")
            if grouping.count != self.size:
                refuse("the number of costs", self.size, f"{grouping.count}, one per group")
            if view.value.any():
                self.parts.append(_ScaledView(view, grouping, self.costs))
        if not self.parts:
            raise InvalidInput("the views show nothing of any honest party's value, so no noise is needed")

    def cut(self, shares: Array) -> tuple[float, Array]:
        """Return the largest f_i, and cuts: rows D with D u >= 1 for all shares u that meet the target."""
        evaluated = [part.squares(shares) for part in self.parts]
        worst = max(float(squares.max()) for squares, _ in evaluated)
        # Parties that are far from the worst add nothing.
        near = [squares > worst / 4 for squares, _ in evaluated]
        pairs = zip(evaluated, near, strict=True)
        return worst, np.vstack([(slopes[:, chosen] / squares[chosen] ** 2).T for (squares, slopes), chosen in pairs])

    def result(self, shares: Array, bound: float) -> VarianceDesign:
        """Scale the shares so that they just meet the target by another evaluation, and undo the units."""
        shares = shares * (max(part.check(shares) for part in self.parts) * (1.0 + _SPARE))
        while (worst := max(part.check(shares) for part in self.parts)) > 1.0:
            shares = shares * (worst * (1.0 + _SPARE))
        unit = (self.sensitivity / self.mu) ** 2
        variances, total = shares / self.costs * unit, float(shares.sum()) * unit
        variances.flags.writeable = False
        return VarianceDesign(variances, total, min(bound * unit, total), self.mu * math.sqrt(worst), self.groups)


def _master(cuts: Array, scale: float) -> tuple[Array, float]:
    """Return the cheapest shares that all cuts allow, and a lower bound that holds whatever the solver's rounding."""
    unit = cuts * scale  # in units of the best shares known
    solved = linprog(np.ones(cuts.shape[1]), A_ub=-unit, b_ub=-np.ones(len(cuts)), bounds=(0, None), method="highs")
    if solved.x is None:
        raise InvalidInput(f"the linear program ended without a solution: {solved.message}")
    y = np.maximum(-solved.ineqlin.marginals, 0.0)
    # Weak duality: any y >= 0 with y^T D <= 1 proves that sum(y) is needed.
    return np.maximum(solved.x, 0.0) * scale, float(y.sum() / (y @ unit).max() * scale)


def _costs(cost: ArrayLike) -> Array:
    costs = finite_array("cost", cost, (1,), "(groups,)")
    if (costs < 0).any():
        group = int(np.flatnonzero(costs < 0)[0])
        refuse(f"cost[{group}]", float(costs[group]), "at least 0")
    if not costs.any():
        raise InvalidInput("cost must have an entry above 0, as free noise has no least amount, got none")
    return np.asarray(np.maximum(costs, _MIN_COST * costs.max()))
