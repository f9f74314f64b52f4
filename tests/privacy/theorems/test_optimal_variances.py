from __future__ import annotations

import re
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import brentq, linprog

import inca
from helpers.examples import examples
from helpers.paths import ROOT
from helpers.strategies import executions, generator, seeds
from inca._base.types import Array
from inca.privacy.theorems import optimal_variances
from inca.privacy.theorems.optimal_variances import (
    Grouping,
    Groups,
    VarianceDesign,
    design,
    expected_error_cost,
    free,
    per_kind,
    per_round,
    semidefinite_design,
)

groupings = pytest.mark.parametrize("groups", [per_kind, per_round, free])


@st.composite
def views(draw: st.DrawFn, largest: int = 6) -> inca.View:
    """Any execution of up to `largest` parties, some messages eavesdropped on, up to a third colluding."""
    execution = draw(executions(largest=largest))
    rng = generator(draw(seeds))
    adversary = inca.Adversary.random(
        execution.parties, execution.rounds, rng, eavesdropped=draw(st.sampled_from([0.0, 0.3, 1.0]))
    )
    colluding = rng.choice(execution.parties, size=draw(st.integers(0, execution.parties // 3)), replace=False)
    view = inca.View(execution, inca.Adversary(colluding.tolist(), adversary.eavesdropped))
    assume(view.value.any())
    return view


def example(n: int = 30, rounds: int = 6, seed: int = 1, eavesdropped: float = 0.0) -> inca.View:
    execution = inca.Execution(inca.RandomReceivers(n, rounds, seed=seed), inca.incremental_injection(rounds))
    return inca.View(
        execution, inca.Adversary.random(n, rounds, generator(seed), colluding=0.1, eavesdropped=eavesdropped)
    )


def costs(view: inca.View, groups: Grouping, seed: int = 1) -> Array:
    """Independent noise costs much more, as it does in an average; else it would be the only noise used."""
    own = groups(view)
    cost = generator(seed).uniform(0.02, 0.2, own.count)
    cost[own.independent] *= 30.0
    return cost


def squares(view: inca.View, groups: Groups, variances: Array) -> Array:
    """Lemma 2 by its book: the squared length of the shortest noise that imitates a change of x_i, by an SVD."""
    noise = np.hstack([view.value, view.noise]) * np.sqrt(variances[groups.terms])
    found = np.linalg.lstsq(noise, view.value, rcond=1e-13)[0]
    assert np.allclose(noise @ found, view.value, atol=1e-7)
    return np.asarray(np.square(found).sum(axis=0))


def textbook(view: inca.View, groups: Groups, variances: Array) -> tuple[Array, Array]:
    """Theorem 1 by its book: h_i^T Sigma^-1 h_i, and its gradient, minus the sums of (g_k^T Sigma^-1 h_i)^2."""
    columns = np.hstack([view.value, view.noise])
    solved = np.linalg.solve((columns * variances[groups.terms]) @ columns.T, view.value)
    gradient = np.zeros((groups.count, view.honest.size))
    np.add.at(gradient, groups.terms, -np.square(columns.T @ solved))
    return np.asarray((view.value * solved).sum(axis=0)), gradient


def check(found: VarianceDesign, view: inca.View, groups: Grouping, mu: float, cost: Array, tolerance: float) -> None:
    assert squares(view, groups(view), found.variances).max() <= mu**2 * (1 + 1e-9)
    assert found.max_mu <= mu
    assert (found.variances > 0).all()
    assert found.cost == pytest.approx(cost @ found.variances, rel=1e-12)
    assert found.lower_bound <= found.cost <= (1 + found.gap) * found.lower_bound * (1 + 1e-12)
    assert found.gap <= tolerance


@groupings
@examples(2, 5)
@given(view=views(), seed=seeds)
def test_equals_the_semidefinite_program(groups: Grouping, view: inca.View, seed: int) -> None:
    cost, mu = costs(view, groups, seed), 0.3
    found, exact = design(view, mu, cost, groups), semidefinite_design(view, mu, cost, groups)
    check(found, view, groups, mu, cost, 1e-4)
    check(exact, view, groups, mu, cost, 1e-3)
    assert found.cost == pytest.approx(exact.cost, rel=1e-3)
    assert found.lower_bound <= exact.cost * (1 + 1e-9)
    assert exact.lower_bound <= found.cost * (1 + 1e-9)


@pytest.mark.slow
def test_both_solvers_of_the_semidefinite_program_agree() -> None:
    view = example(8, 3)
    cost = costs(view, per_round)
    first, second = (semidefinite_design(view, 0.3, cost, solver=solver) for solver in ("SCS", "CLARABEL"))
    assert first.cost == pytest.approx(second.cost, rel=1e-4)
    assert first.variances == pytest.approx(second.variances, rel=1e-2)


@groupings
@given(view=views(largest=8), seed=seeds)
@examples(4, 15)
def test_slopes_are_the_gradient(groups: Grouping, view: inca.View, seed: int) -> None:
    rng, own = generator(seed), groups(view)
    cost, shares = rng.uniform(0.5, 2.0, own.count), rng.uniform(0.5, 2.0, own.count)
    found, slopes = optimal_variances._ScaledView(view, own, cost).squares(shares)
    seen = view.value.any(axis=0)
    value, gradient = textbook(view, own, shares / cost)
    assert found == pytest.approx(value[seen], rel=1e-6)
    assert -slopes == pytest.approx((gradient / cost[:, np.newaxis])[:, seen], rel=1e-5, abs=1e-9)
    step = 1e-4 * np.eye(own.count)
    numeric = [(squares(view, own, (shares + e) / cost) - squares(view, own, (shares - e) / cost))[seen] for e in step]
    assert -slopes == pytest.approx(np.array(numeric) / 2e-4, rel=1e-4, abs=1e-6)
    assert shares @ slopes == pytest.approx(found, rel=1e-9)  # of degree -1


@groupings
@given(view=views(largest=8), seed=seeds)
@examples(4, 15)
def test_cuts_hold_for_whatever_meets_the_target(groups: Grouping, view: inca.View, seed: int) -> None:
    rng, own = generator(seed), groups(view)
    problem = optimal_variances._VarianceProblem([view], 1.0, 1.0, np.ones(own.count), groups)
    _, cuts = problem.cut(rng.exponential(size=own.count) + 1e-3)
    for _ in range(10):
        other = rng.exponential(size=own.count) + 1e-3
        meets = other * squares(view, own, other).max()
        assert (cuts @ meets >= 1 - 1e-6).all()


@pytest.mark.parametrize("groups", [per_kind, per_round, pytest.param(free, marks=pytest.mark.slow)])
def test_costs_fall_like_one_over_the_square_of_mu(groups: Grouping) -> None:
    view = example(8, 3)
    cost = costs(view, groups)
    one = design(view, 1.0, cost, groups)
    for mu, sensitivity in ((0.1, 1.0), (3.0, 7.0)):
        other = design(view, mu, cost, groups, sensitivity=sensitivity)
        assert other.variances == pytest.approx(one.variances * (sensitivity / mu) ** 2, rel=1e-9)
        assert other.cost == pytest.approx(one.cost * (sensitivity / mu) ** 2, rel=1e-9)
        assert other.max_mu == pytest.approx(mu, rel=1e-8)


@given(view=views(largest=8), seed=seeds)
@examples(4, 15)
def test_who_sees_more_never_costs_less(view: inca.View, seed: int) -> None:
    eavesdropped = view.adversary.eavesdropped
    some = [message for message in eavesdropped if generator(seed).random() < 0.5]
    less = inca.View(view.execution, inca.Adversary(view.adversary.colluding, some))
    assume(less.value.any())
    cost = costs(view, per_round, seed)
    assert design(view, 0.5, cost).cost >= design(less, 0.5, cost).lower_bound * (1 - 1e-9)


def test_freer_groups_never_cost_more() -> None:
    view = example(12, 4)
    equal = np.array([3.0, 0.1])
    found = []
    for groups in (per_kind, per_round, free):
        own = groups(view)
        cost = np.zeros(own.count)  # the same price for the same noise, however it is tied
        np.add.at(cost, own.terms, equal[per_kind(view).terms])
        found.append(design(view, 0.5, cost, groups))
    assert found[1].lower_bound <= found[0].cost
    assert found[2].cost < 0.99 * found[1].cost < 0.99 * found[0].cost


@given(views(largest=8), seeds)
@examples(4, 20)
def test_with_two_groups_it_is_plain_calibration(view: inca.View, seed: int) -> None:
    mu, own = 0.4, per_kind(view)
    found = design(view, mu, costs(view, per_kind, seed), per_kind, tolerance=1e-6)
    var_independent, var_cancelling = found.variances

    def excess(log_variance: float) -> float:
        return float(squares(view, own, np.array([var_independent, np.exp(log_variance)])).max()) - mu**2

    start = np.log(var_cancelling)
    assume(excess(start - 1) > 1e-6)  # else independent noise alone does it, and the rest is within the tolerance
    level = brentq(excess, start - 1, start + 1, xtol=1e-10)
    assert level == pytest.approx(start, abs=1e-5)


def test_several_views_are_all_protected_and_cost_at_least_the_dearest() -> None:
    together = [example(seed=seed) for seed in (1, 2, 3)] + [example(20, seed=4)]
    cost = costs(together[0], per_round)
    found = design(together, 0.3, cost)
    for view in together:
        assert squares(view, per_round(view), found.variances).max() <= 0.3**2 * (1 + 1e-9)
        assert found.cost >= design(view, 0.3, cost).lower_bound
    assert found.gap <= 1e-4
    twice = design([together[0], together[0]], 0.3, cost)
    assert twice.cost == pytest.approx(design(together[0], 0.3, cost).cost, rel=1e-4)


def test_views_in_which_nothing_is_seen_ask_for_nothing() -> None:
    everyone_leaves = inca.Presence.explicit(np.vstack([np.ones((1, 30)), np.zeros((6, 30))]))
    schedule = inca.RandomReceivers(30, 6, seed=1)
    blind = inca.View(inca.Execution(schedule, inca.incremental_injection(6), everyone_leaves))
    view, cost = example(), costs(example(), per_round)
    assert design([blind, view], 0.3, cost).cost == design(view, 0.3, cost).cost
    with pytest.raises(inca.InvalidInput, match="no noise is needed"):
        design(blind, 0.3, cost)


def test_a_design_can_be_run_and_audited() -> None:
    view = example(40, 8, eavesdropped=0.05)
    execution, mu = view.execution, 0.25
    presence = [inca.Presence.leaving(40, 8, 0.2, generator(seed)) for seed in range(5)]
    leaving = [inca.Execution(execution.schedule, execution.injection, there) for there in presence]
    for groups in (per_kind, per_round):
        cost = expected_error_cost(leaving, groups)
        found = design(view, mu, cost, groups)
        injection = found.injection(execution.injection)
        levels = found.noise_levels
        run = inca.View(inca.Execution(execution.schedule, injection), view.adversary)
        assert inca.account(run, levels, sensitivity=1.0).max_mu == pytest.approx(found.max_mu, rel=1e-6)
        errors = [
            inca.expected_error(inca.Execution(execution.schedule, injection, there), levels) for there in presence
        ]
        assert cost @ found.variances == pytest.approx(np.mean([error.noise for error in errors]))
    assert injection.mask_scales is not None  # still the incremental family


@given(executions(), seeds)
def test_cost_holds_the_coefficients_of_the_expected_error(execution: inca.Execution, seed: int) -> None:
    rng = generator(seed)
    execution = execution.without_finals(rng.random(execution.parties) < 0.2)
    if execution.weight == 0.0:
        with pytest.raises(inca.InvalidInput, match="execution 0 must end with an estimate, but nothing was published"):
            expected_error_cost(execution)
        return
    variances = rng.uniform(0.5, 2.0, execution.rounds)
    plain = execution.injection
    folded = inca.Injection(plain.value, plain.noise, variances=variances)
    other = inca.Execution(execution.schedule, folded, execution.presence, published=execution.published)
    expected = inca.expected_error(other, inca.NoiseLevels(independent=2.0, cancelling=3.0)).noise
    assert expected_error_cost(execution) @ np.append(4.0, 9.0 * variances) == pytest.approx(
        expected, rel=1e-6, abs=1e-12
    )
    assert expected_error_cost(other, per_kind) @ [4.0, 9.0] == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert expected_error_cost(other, free).sum() == pytest.approx(
        expected_error_cost(other, per_kind).sum(), abs=1e-12
    )


def test_noise_that_costs_nothing_hides_the_most() -> None:
    """At full attendance cancelling noise is free, and the least cost is that of Central DP among the honest."""
    view = example(eavesdropped=0.0)
    cost = expected_error_cost(view.execution)
    assert cost[1:] == pytest.approx(0.0, abs=1e-25)
    found = design(view, 1.0, cost)
    central = 1 / view.honest.size
    assert central <= found.variances[0] <= 1.1 * central


def test_dependent_rows_are_no_obstacle() -> None:
    injection = inca.Injection([1.0, 0.0, 0.0], [[1.0, 1.0], [-1.0, -1.0], [0.0, 0.0]], unsafe=True)
    execution = inca.Execution(inca.RandomReceivers(4, 2, seed=1), injection)
    view = inca.View(execution, inca.Adversary(eavesdropped=[(t, i) for t in range(2) for i in range(4)]))
    assert np.linalg.matrix_rank(np.hstack([view.value, view.noise])) < view.shape[0]
    cost = np.array([10.0, 1.0, 2.0])
    found, exact = design(view, 0.5, cost), semidefinite_design(view, 0.5, cost)
    check(found, view, per_round, 0.5, cost, 1e-4)
    assert found.cost == pytest.approx(exact.cost, rel=1e-3)


def test_groups_of_ones_own() -> None:
    def halves(view: inca.View) -> Groups:
        rounds, honest = view.execution.rounds, view.honest.size
        return Groups(np.zeros(honest, np.intp), np.tile(1 + 2 * np.arange(rounds) // rounds, honest), 3)

    view = example()
    found = design(view, 0.3, [3.0, 0.3, 0.3], halves)
    check(found, view, halves, 0.3, np.array([3.0, 0.3, 0.3]), 1e-4)
    assert len(set(found.injection(view.execution.injection).noise.diagonal())) == 2


def test_a_group_without_terms_is_no_obstacle() -> None:
    def spare(view: inca.View) -> Groups:
        own = per_kind(view)
        return Groups(own.independent, own.cancelling, 3)

    view = example(8, 3)
    two, three = design(view, 0.3, [3.0, 0.3], per_kind), design(view, 0.3, [3.0, 0.3, 1.0], spare)
    assert three.variances[:2] == pytest.approx(two.variances, rel=0.05)
    assert three.lower_bound <= two.cost and two.lower_bound <= three.cost <= (1 + 1e-4) * three.lower_bound


def test_shares_are_scaled_until_the_other_method_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if losses were less than inversely proportional to shares, so that scaling once is not enough."""
    monkeypatch.setattr(optimal_variances._ScaledView, "check", lambda self, shares: float(shares.sum() ** -0.5))
    problem = optimal_variances._VarianceProblem([example(8, 3)], 0.5, 3.0, np.array([3.0, 0.3]), per_kind)
    found = problem.result(np.array([0.03, 0.01]), 0.5)
    assert found.cost / (3.0 / 0.5) ** 2 == pytest.approx(1.0, rel=1e-8)
    assert 0.5 * (1 - 1e-8) < found.max_mu <= 0.5
    assert found.variances == pytest.approx(np.array([0.75 / 3.0, 0.25 / 0.3]) * 36, rel=1e-8)
    assert found.lower_bound == 0.5 * 36 and not found.variances.flags.writeable


@pytest.mark.parametrize("scale", [1.0, 7.0])
@pytest.mark.parametrize(("factor", "blur"), [(1.0, 0.0), (0.5, 0.0), (2.0, 0.0), (1.0, 0.3)])
def test_a_lower_bound_holds_whatever_prices_the_solver_names(
    factor: float, blur: float, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = generator(3)
    cuts = rng.uniform(0.1, 1.0, (5, 3))

    def named(*args: Any, **options: Any) -> Any:
        solved = linprog(*args, **options)
        solved.ineqlin.marginals = factor * solved.ineqlin.marginals - blur * rng.random(5)
        return solved

    monkeypatch.setattr(optimal_variances, "linprog", named)
    cheapest, bound = optimal_variances._master(cuts, scale)
    assert (cuts @ cheapest >= 1 - 1e-9).all()
    assert bound <= cheapest.sum() * (1 + 1e-12)
    assert blur > 0 or bound == pytest.approx(cheapest.sum(), rel=1e-9)


def test_a_linear_program_without_a_solution_is_no_design(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = SimpleNamespace(x=None, message="out of numbers")
    monkeypatch.setattr(optimal_variances, "linprog", lambda *args, **options: nothing)
    with pytest.raises(inca.InvalidInput, match=r"^the linear program ended without a solution: out of numbers$"):
        design(example(8, 3), 0.3, [3.0, 0.3], per_kind)


def test_the_limit_of_the_semidefinite_program_counts_the_entries_of_all_its_matrices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view = example(8, 3)
    rows, honest = view.value.shape
    entries = honest * (rows + 1) ** 2
    monkeypatch.setattr(optimal_variances, "_MAX_ENTRIES", entries - 1)
    with pytest.raises(inca.InvalidInput, match=rf"must be at most {entries - 1} .*, got {entries}$"):
        semidefinite_design(view, 0.5, [1.0, 0.1], per_kind)
    monkeypatch.setattr(optimal_variances, "_MAX_ENTRIES", entries)
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(inca.InvalidInput, match="needs cvxpy"):
        semidefinite_design(view, 0.5, [1.0, 0.1], per_kind)


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    view, cost = example(10, 3), [1.0, 0.1, 0.1, 0.1]
    for mu, must_be in ((0.0, "above 0"), (-1.0, "above 0"), (np.inf, "a finite number"), (np.nan, "a finite number")):
        with pytest.raises(inca.InvalidInput, match=f"^mu must be {must_be}, got {mu}$"):
            design(view, mu, cost)
        with pytest.raises(inca.InvalidInput, match=f"^mu must be {must_be}, got {mu}$"):
            semidefinite_design(view, mu, cost)
    with pytest.raises(inca.InvalidInput, match=r"^cost\[1\] must be at least 0, got -0\.1$"):
        design(view, 0.5, [1.0, -0.1, 0.1, 0.1])
    with pytest.raises(inca.InvalidInput, match=r"^cost must have an entry above 0, .*, got none$"):
        design(view, 0.5, np.zeros(4))
    with pytest.raises(inca.InvalidInput, match=r"^the number of costs must be 2, one per group, got 4$"):
        design(view, 0.5, cost, per_kind)
    with pytest.raises(inca.InvalidInput, match=r"^the number of views must be at least 1, got 0$"):
        design([], 0.5, cost)
    with pytest.raises(
        inca.InvalidInput, match=r"^the number of rounds of a view must be that of the first \(3\), got 4$"
    ):
        design([view, example(10, 4)], 0.5, [1.0, 0.1], per_kind)
    with pytest.raises(inca.InvalidInput, match=r"^sensitivity must be above 0, got 0"):
        design(view, 0.5, cost, sensitivity=0.0)
    with pytest.raises(inca.InvalidInput, match=r"^tolerance must be from 1e-09 to 1, got 0"):
        design(view, 0.5, cost, tolerance=0.0)
    too_few = "the number of noise terms in groups must be 36, all there are, got 14"
    for terms, message in (([1] * 5, too_few), ([2] * 27, "a group in groups must be from 0 to 1, got 2")):

        def odd(_: inca.View, terms: list[int] = terms) -> Groups:
            return Groups(np.zeros(9, np.intp), np.array(terms), 2)

        with pytest.raises(inca.InvalidInput, match=message):
            design(view, 0.5, [1.0, 0.1], odd)
    with pytest.raises(inca.InvalidInput, match=r"^the number of executions must be at least 1, got 0$"):
        expected_error_cost([])
    with pytest.raises(
        inca.InvalidInput, match=r"^the number of groups of execution 1 must be that of the first \(4\), got 5$"
    ):
        expected_error_cost([view.execution, example(10, 4).execution])
    found = design(view, 0.5, np.ones(free(view).count), free)
    with pytest.raises(
        inca.InvalidInput, match=r"^the groups of noise terms must be the same for all parties, got different ones$"
    ):
        found.injection(view.execution.injection)
    with pytest.raises(
        inca.InvalidInput, match=r"^the number of rounds of the injection must be that of the views \(3\), got 5$"
    ):
        design(view, 0.5, cost).injection(inca.incremental_injection(5))
    with pytest.raises(
        inca.InvalidInput, match=r"^the number of entries of the semidefinite program \(.*\) must be at most 20000 "
    ):
        semidefinite_design(example(60, 6), 0.5, [1.0, 0.1], per_kind)
    with pytest.raises(inca.InvalidInput, match=r"^solver must be CLARABEL or SCS, got 'X'$"):
        semidefinite_design(view, 0.5, cost, solver="X")  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(inca.InvalidInput, match=re.escape("pip install 'inca[design]'")):
        semidefinite_design(view, 0.5, cost)


@pytest.mark.slow
def test_figures_of_the_page_are_printed_by_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "noise-design.md").read_text()
    code = re.findall(r"```py\n(.*?)```", page, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec("".join(code), names)
    names["compare"](count=1, fractions=(0.1,))
    printed = re.findall(r"10% \w+ +([\d.]+) +([\d.]+) +([\d.]+)", capsys.readouterr().out)
    shown = re.findall(r"\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", page)[:3]  # designed for 1 view, 10 % leaving
    assert np.array(printed, dtype=float) == pytest.approx(np.array(shown, dtype=float), rel=0.02)
