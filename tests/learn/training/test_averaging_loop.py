"""Private averages in somebody's own loop: what they cost, what they give, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from inca import Conditions, InvalidInput
from inca._base.types import Array
from inca.errors import BudgetExceeded
from inca.learn.averagers.base import VectorMean
from inca.learn.averagers.simulated import KINDS, SimulatedAverager
from inca.learn.budget import Budget
from inca.learn.training.averaging_loop import AveragingLoop
from inca.learn.training.clipping import Clipping
from inca.learn.training.models import LogisticModel
from inca.learn.training.optimizers import SGD
from inca.learn.training.train import TrainingRules, train
from inca.privacy.gaussian import epsilon_for

PARTIES, D = 6, 3
SIZES = [2, 5, 3, 4, 2, 6]
CENTRAL = SimulatedAverager.of("central", PARTIES)
UPDATES = np.random.default_rng(5).standard_normal((PARTIES, D))


def loop_of(**changes: Any) -> AveragingLoop:
    arguments: dict[str, Any] = {"averager": CENTRAL, "budget": Budget(2.0, 1e-5), "steps": 4, "clipping": 1.0}
    return AveragingLoop(**(arguments | {"rng": np.random.default_rng(1)} | changes))


class Recorded:
    """An averager that keeps what it was asked for and answers without noise; `me`: one party of several."""

    parties, dropout, failure_probability, releases = PARTIES, 0.0, 0.0, None

    def __init__(self, me: int | None = None, mu: float | None = None, budget: Budget | None = None) -> None:
        if me is not None:
            self.me = me
        self.mu_stated, self.budget = mu, budget
        self.rows: list[Array] = []
        self.max_norms: list[float | None] = []
        self.spent: list[float] = []

    def expect(self, budget: Budget | None, releases: int) -> None:
        assert budget is not None and releases == 1

    def var_noise(self, sensitivity: float, mu: float) -> float:
        return 0.0

    def average(
        self,
        vectors: ArrayLike,
        sensitivity: float,
        mu: float,
        rng: np.random.Generator,
        *,
        max_norm: float | None = None,
    ) -> VectorMean:
        self.rows.append(np.array(vectors))
        self.max_norms.append(max_norm)
        if self.budget is not None:
            self.spent.append(self.budget.spent)
        return VectorMean(self.rows[-1].mean(axis=0), 0.0, mu if self.mu_stated is None else self.mu_stated)


@given(
    st.floats(0.05, 20.0), st.floats(1e-12, 0.1), st.integers(1, 60), st.floats(0.0, 0.9), st.sets(st.integers(1, 60))
)
def test_the_budget_after_some_steps_is_their_composition(
    epsilon: float, delta: float, steps: int, before: float, skipped: set[int]
) -> None:
    budget = Budget(epsilon, delta)
    if before:
        budget.spend(budget.part(before))
    first = budget.spent
    loop = loop_of(averager=Recorded(), budget=budget, steps=steps)
    averaged = 0
    for step in loop:
        if step not in skipped:
            averaged += 1
            assert loop.average(UPDATES).mu == loop.mu
        assert math.isclose(budget.spent**2, first**2 + averaged * loop.mu**2, rel_tol=1e-9)
    assert loop.step == loop.steps == steps
    if mu := math.hypot(first, loop.mu * math.sqrt(averaged)):
        assert math.isclose(budget.epsilon_spent, float(epsilon_for(mu, delta)), rel_tol=1e-6)
    if averaged == steps:
        assert math.isclose(budget.spent, budget.mu, rel_tol=1e-9)


@given(st.floats(0.05, 1.5), st.integers(1, 30) | st.none())
def test_with_a_loss_for_each_step_it_ends_with_the_budget_or_the_steps(fraction: float, steps: int | None) -> None:
    budget = Budget(1.0, 1e-5)
    mu = fraction * budget.mu
    if mu > budget.mu:
        with pytest.raises(BudgetExceeded):
            loop_of(budget=budget, steps=steps, mu=mu)
        return
    loop = loop_of(averager=Recorded(), budget=budget, steps=steps, mu=mu)
    done = [loop.average(UPDATES).mu for _ in loop]
    assert done == [mu] * loop.steps and budget.spent <= budget.mu * (1 + 1e-9)
    assert len(done) == steps or budget.left < mu


@pytest.mark.parametrize("level", ["party", "record"])
def test_it_gives_the_numbers_that_train_gives(level: Any) -> None:
    rng = np.random.default_rng(8)
    datasets = [(rng.standard_normal((size, D)), rng.integers(2, size=size)) for size in SIZES]
    model, clipping = LogisticModel(D, 2), Clipping(0.3, level)
    expected = train(
        model,
        datasets,
        CENTRAL,
        Budget(5.0, 1e-5),
        7,
        np.random.default_rng(3),
        TrainingRules(clipping, optimizer=SGD(0.5)),
    )
    loop = AveragingLoop(CENTRAL, (5.0, 1e-5), 7, clipping=clipping, sizes=SIZES, rng=np.random.default_rng(3))
    parameters, gradient = model.parameters, model.gradient if level == "party" else model.record_gradients
    errors = []
    for _ in loop:
        mean = loop.average([gradient(parameters, *data) for data in datasets])
        assert mean.estimate is not None
        errors.append(mean.standard_error)
        parameters = parameters - 0.5 * mean.estimate
    np.testing.assert_array_equal(parameters, expected.parameters)
    assert errors == [step.sigma_noise for step in expected.history] and loop.sensitivity == expected.sensitivity


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_charged_is_never_less_than_what_the_noise_hides(kind: str) -> None:
    averager = SimulatedAverager.of(kind, 20, Conditions(messages=12, colluding=0.0, dropout=0.0), releases=3)
    loop = AveragingLoop(averager, (3.0, 1e-5), 3, clipping=2.0, rng=np.random.default_rng(1))
    for step in loop:
        mean = loop.average(np.ones((20, D)))
        # Even a curator who adds noise once gives away so much with noise of this size.
        assert loop.mu >= loop.sensitivity / 20 / mean.standard_error * (1 - 1e-9)
        assert loop.budget.spent >= loop.mu * math.sqrt(step) * (1 - 1e-9)


@given(
    st.lists(
        st.sampled_from([0.1, 5.0, 1e300, math.inf, -math.inf, math.nan]), min_size=PARTIES * D, max_size=PARTIES * D
    )
)
def test_updates_are_clipped_and_those_that_are_not_finite_are_zero(numbers: list[float]) -> None:
    table, averager = np.reshape(numbers, (PARTIES, D)), Recorded()
    loop = loop_of(averager=averager)
    for _ in loop:
        loop.average(table)
        break
    (rows,) = averager.rows
    bad = ~np.isfinite(table).all(axis=1)
    assert (rows[bad] == 0.0).all() and (np.linalg.norm(rows, axis=1) <= 1.0 + 1e-12).all()
    short = ~bad & (np.abs(table).max(axis=1) < 0.5)
    np.testing.assert_array_equal(rows[short], table[short])
    assert averager.max_norms == [1.0]


def test_a_party_on_a_network_brings_its_own_update_alone() -> None:
    alone, together = Recorded(me=2), Recorded()
    for update, averager in ((UPDATES[2], alone), (UPDATES, together)):
        loop = loop_of(averager=averager, clipping=Clipping(1.0, "party", "records"), sizes=SIZES)
        for _ in loop:
            loop.average(update)
    np.testing.assert_array_equal(alone.rows[0], together.rows[0][2:3])
    assert alone.max_norms == together.max_norms and len(alone.rows) == 4
    tables = [np.random.default_rng(size).standard_normal((size, D)) for size in SIZES]
    alone, together = Recorded(me=2), Recorded()
    for own, averager in ((tables[2], alone), (tables, together)):
        loop = loop_of(averager=averager, clipping=Clipping(1.0, "record"), sizes=SIZES)
        for _ in loop:
            loop.average(own)
    np.testing.assert_array_equal(alone.rows[0], together.rows[0][2:3])


def test_the_loss_is_charged_before_anything_is_sent_and_stays_charged() -> None:
    budget = Budget(2.0, 1e-5)
    averager = Recorded(budget=budget)
    loop = loop_of(averager=averager, budget=budget)
    for _ in loop:
        loop.average(UPDATES)
    np.testing.assert_allclose(averager.spent, loop.mu * np.sqrt(np.arange(1, 5)))

    class Unreachable(Recorded):
        def average(self, *vectors: Any, **more: Any) -> VectorMean:
            raise OSError("the network is gone")

    loop = loop_of(averager=Unreachable())
    with pytest.raises(OSError, match="gone"):
        for _ in loop:
            loop.average(UPDATES)
    assert loop.budget.spent == loop.mu


def test_an_averager_that_gives_away_more_than_asked_is_charged_for_it() -> None:
    loop = loop_of(averager=Recorded(mu=0.3), mu=0.1, budget=Budget(8.0, 1e-5))
    means = [loop.average(UPDATES) for _ in loop]
    assert loop.budget.spent >= math.sqrt(len(means)) * 0.3 * (1 - 1e-6)
    loop = loop_of(averager=Recorded(mu=math.inf))
    with pytest.raises(BudgetExceeded, match=r"the loss of step 1 must be at most .*, got inf, more than was left"):
        for _ in loop:
            loop.average(UPDATES)
    assert loop.budget.left == pytest.approx(0.0, abs=1e-6) and list(loop) == []


def test_a_loop_that_was_left_goes_on_with_the_next_step() -> None:
    loop = loop_of()
    for step in loop:
        if step == 2:
            break
    assert list(loop) == [3, 4] and list(loop) == [] and loop.step == 4
    assert repr(loop) == "AveragingLoop(step 4 of 4, Budget(epsilon=2, delta=1e-05, spent 0))"


def test_it_ends_when_somebody_else_has_used_up_the_budget() -> None:
    loop = loop_of()
    for step in loop:
        loop.average(UPDATES)
        if step == 2:
            loop.budget.spend(loop.budget.rest())
    assert step == 2
    loop = loop_of()
    with pytest.raises(BudgetExceeded, match="at most 0, which is left of the budget"):
        for _ in loop:
            loop.budget.spend(loop.budget.rest())
            loop.average(UPDATES)


def in_a_step(update: Any, **changes: Any) -> None:
    loop = loop_of(**changes)
    for _ in loop:
        try:
            loop.average(update)
        finally:
            assert loop.budget.spent == 0.0
            loop.average(UPDATES if "clipping" not in changes else [np.ones((size, D)) for size in SIZES])


def twice() -> None:
    loop = loop_of()
    for _ in loop:
        loop.average(UPDATES)
        loop.average(UPDATES)


def after_break() -> None:
    loop = loop_of()
    for _ in loop:
        break
    loop.average(UPDATES)


def after_the_end() -> None:
    loop = loop_of()
    for _ in loop:
        loop.average(UPDATES)
    loop.average(UPDATES)


def nested() -> None:
    loop = loop_of()
    for _ in loop:
        list(loop)


def other_width() -> None:
    loop = loop_of()
    for step in loop:
        loop.average(np.ones((PARTIES, step)))


RECORDS = {"clipping": Clipping(1.0, "record"), "sizes": SIZES}


@pytest.mark.parametrize(
    ("misuse", "sentence"),
    [
        (twice, "average must be called once in a step, got a second call in step 1"),
        (lambda: loop_of().average(UPDATES), "in a step of the loop .*, got a call outside"),
        (after_break, "got a call outside"),
        (after_the_end, "got a call outside"),
        (nested, "got a loop inside the same loop"),
        (other_width, r"the shape of update must be \(6, 1\), one row for each party, got \(6, 2\)"),
        (lambda: in_a_step(UPDATES[:5]), r"the shape of update must be \(6, d\).*, got \(5, 3\)"),
        (lambda: in_a_step(UPDATES[0]), r"must be \(6, d\), one row for each party, got \(3,\)"),
        (lambda: in_a_step(np.ones((PARTIES, 0))), r"got \(6, 0\)"),
        (lambda: in_a_step([[1.0], [2.0, 3.0]] * 3), "an array of numbers, .*, got a list that is not one"),
        (lambda: in_a_step([["secret"] * D] * PARTIES), "got a list that is not one"),
        (lambda: in_a_step([np.ones((2, D))], **RECORDS), "the number of tables in update must be 6, .*, got 1"),
        (lambda: in_a_step(3.0, **RECORDS), "the number of tables in update must be 6, .*, got 0"),
        (lambda: in_a_step([np.ones((2, D))] * 6, **RECORDS), r"update of party 1 must be \(5, 3\), .*, got \(2, 3\)"),
        (lambda: loop_of(steps=0), "steps must be at least 1"),
        (lambda: loop_of(steps=None), "steps must be the number of steps, unless mu"),
        (lambda: loop_of(mu=-1.0), "mu must be above 0"),
        (lambda: loop_of(clipping=0.0), "max_norm must be above 0"),
        (lambda: loop_of(budget=1.0), r"budget must be a Budget, or \(epsilon, delta\), got 1.0"),
        (lambda: loop_of(rng=1), "rng must be a numpy.random.Generator"),
        (lambda: loop_of(sizes=[1, 2]), "the number of sizes must be 6"),
        (lambda: loop_of(sizes=[0] * 6), r"sizes\[0\] must be at least 1"),
        (lambda: loop_of(clipping=Clipping(1.0, "record")), "sizes must be how many records"),
    ],
)
def test_misuse_is_refused_in_a_sentence_and_costs_nothing(misuse: Callable[[], None], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence) as error:
        misuse()
    assert "secret" not in str(error.value)


def test_more_steps_than_the_plan_is_for_are_refused_before_the_first() -> None:
    averager = SimulatedAverager.of("gopa", 20, Conditions(messages=12, colluding=0.0, dropout=0.0), releases=3)
    with pytest.raises(InvalidInput, match="the number of releases of a budget must be at most 3"):
        AveragingLoop(averager, (3.0, 1e-5), 4, clipping=1.0)
    with pytest.raises(InvalidInput, match="the probability that a plan fails in any release"):
        AveragingLoop(averager, Budget(3.0, 1e-5, failure=0.0), 3, clipping=1.0)
    spent = Budget(3.0, 1e-5)
    spent.spend(spent.part(0.5), level="record")
    with pytest.raises(InvalidInput, match="the level of a release must be 'record'"):
        AveragingLoop(averager, spent, 3, clipping=1.0)
    gone = Budget(3.0, 1e-5)
    gone.spend(gone.mu)
    with pytest.raises(BudgetExceeded, match="got nothing: all of it is spent"):
        AveragingLoop(averager, gone, 3, clipping=1.0)


def test_a_loop_in_pytorch_is_the_one_in_numpy() -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'inca[torch]'")
    loop, twin = loop_of(averager=Recorded(me=0)), loop_of(averager=Recorded(me=0))
    module, plain = torch.nn.Linear(D, 1, bias=False).double(), np.zeros(D)
    with torch.no_grad():
        module.weight.zero_()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    x, y = UPDATES, UPDATES @ np.arange(1.0, D + 1)
    for _ in loop:
        optimizer.zero_grad()
        (0.5 * (module(torch.as_tensor(x))[:, 0] - torch.as_tensor(y)) ** 2).mean().backward()
        gradient = torch.nn.utils.parameters_to_vector(parameter.grad for parameter in module.parameters())
        averaged = torch.as_tensor(loop.average(gradient.numpy()).estimate, dtype=gradient.dtype)
        torch.nn.utils.vector_to_parameters(averaged, (parameter.grad for parameter in module.parameters()))
        optimizer.step()
    for _ in twin:
        mean = twin.average((x @ plain - y) @ x / len(x))
        assert mean.estimate is not None
        plain = plain - 0.5 * mean.estimate
    np.testing.assert_allclose(module.weight.detach().numpy()[0], plain)


def test_the_largest_contribution_is_that_of_the_party_with_most_records() -> None:
    recorded = Recorded()
    clipping = Clipping(0.7, weights="records")
    loop = loop_of(averager=recorded, clipping=clipping, sizes=SIZES)
    for _ in loop:
        loop.average(UPDATES)
        break
    largest = float(clipping.party_weights(SIZES).max())
    assert largest > 1.0 and recorded.max_norms == [pytest.approx(0.7 * largest, rel=1e-12)]
    assert np.linalg.norm(recorded.rows[0], axis=1).max() <= 0.7 * largest * (1 + 1e-12)


def test_one_vector_for_all_parties_is_refused_in_a_simulation() -> None:
    loop = loop_of()
    for _ in loop:
        with pytest.raises(InvalidInput, match=r"the shape of update must be \(6, d\), one row for each party"):
            loop.average(UPDATES[0])
        break


def test_a_loss_beyond_the_budget_is_refused_before_the_first_step() -> None:
    budget = Budget(1.0, 1e-5)
    with pytest.raises(BudgetExceeded):
        loop_of(budget=budget, steps=None, mu=budget.left * 1.01)
    assert budget.epsilon_spent == 0.0


def test_a_party_on_a_network_need_not_know_sizes_that_make_no_difference() -> None:
    recorded = Recorded(me=2)
    loop = loop_of(averager=recorded)
    for _ in loop:
        loop.average(UPDATES[2] / 10.0)
        break
    np.testing.assert_allclose(recorded.rows[0], UPDATES[2:3] / 10.0)


def test_a_loss_that_divides_the_budget_gives_as_many_steps_as_it_does() -> None:
    for count in range(1, 60):
        budget = Budget(2.0, 1e-5)
        assert loop_of(budget=budget, steps=None, mu=budget.left / math.sqrt(count)).steps == count
