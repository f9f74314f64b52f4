"""What sessions have cost is never said to be less than it was."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers import documents
from inca.errors import InvalidInput
from inca.network.node.booked_losses import UNNAMED, BookedLoss, booked_losses, label_datum, together

RESULT: dict[str, Any] = {
    "name": "waiting times",
    "session": "ab" * 32,
    "party": "anna",
    "epsilon": 0.25,
    "wanted": 1.0,
}
STATUS = {"session": "ab" * 32, "party": "anna", "round": 9}
ROUND = '{"time": 1.0, "event": "round", "round": 1, "of": 9}'
PLANNED = '{"time": 0.5, "event": "planned loss", "epsilon": 0.2, "allowed": 1.0, "delta": 1e-05, "coalitions": 5}'


def session(
    folder: Path,
    *,
    name: str = "one",
    result: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    ended: float | None = 5.0,
    log: tuple[str, ...] = (PLANNED, ROUND),
) -> BookedLoss:
    """Leave behind what a node does, and return what it is booked with."""
    home = folder / name
    home.mkdir()
    (home / "status.json").write_text(json.dumps(STATUS | (status or {})))
    (home / "log.jsonl").write_text("\n".join(log) + "\n")
    if result is not None:
        documents.result(**RESULT | result).write(home / "result.json")
    if ended is not None:
        (home / "ended.json").write_text(json.dumps({"ended": ended}))
    return next(loss for loss in booked_losses(folder) if loss.ended == ended)


@pytest.mark.parametrize(
    ("changes", "epsilon", "basis"),
    [
        ({}, 0.25, "own loss, against all coalitions"),
        ({"all_coalitions": False}, 1.0, "as agreed, since not all coalitions were checked"),
        ({"epsilon": 1.5, "estimate": None}, 1.5, "own loss, more than agreed"),
        ({"epsilon": 1.5, "all_coalitions": False}, 1.5, "own loss, more than agreed"),
        ({"epsilon": None}, math.inf, "own loss, more than agreed"),
        ({"epsilon": None, "coalitions": None, "all_coalitions": None, "estimate": None}, 1.0, "as agreed"),
        ({"estimate": None}, 1.0, "as agreed, since the value is not in the result"),
        ({"cohort": ["bert", "cleo"]}, 1.0, "as agreed, since the value is not in the result"),
    ],
)
def test_a_session_costs_what_was_agreed_or_the_own_loss_if_that_is_certain_or_larger(
    tmp_path: Path, changes: dict[str, Any], epsilon: float, basis: str
) -> None:
    loss = session(tmp_path, result=changes)
    assert (loss.epsilon, loss.basis) == (epsilon, basis)
    assert (loss.session, loss.name, loss.party) == ("ab" * 32, "waiting times", "anna")
    assert (loss.datum, loss.delta, loss.failure, loss.ended) == (UNNAMED, 1e-5, 1e-6, 5.0)


def test_a_session_that_was_interrupted_costs_what_was_agreed(tmp_path: Path) -> None:
    loss = session(tmp_path, ended=None)
    assert (loss.epsilon, loss.delta, loss.ended) == (1.0, 1e-5, None)


@pytest.mark.parametrize(
    ("ended", "status", "log", "epsilon"),
    [
        (5.0, {"round": 0}, (PLANNED,), 0.0),
        (None, {"round": 0}, (PLANNED,), 1.0),  # it may have been killed before it could say more
        (5.0, {"round": 0}, (PLANNED, ROUND), 1.0),
        (5.0, {"round": 1}, (PLANNED,), 1.0),
        (None, {"round": 3}, (), math.inf),  # nobody knows what was agreed
        (None, {"round": 3}, (PLANNED, '{"time": 1.0, "ev'), 1.0),
    ],
)
def test_only_what_certainly_never_began_costs_nothing(
    tmp_path: Path, ended: float | None, status: dict[str, Any], log: tuple[str, ...], epsilon: float
) -> None:
    assert session(tmp_path, ended=ended, status=status, log=log).epsilon == epsilon


def test_without_a_result_the_status_or_the_folder_says_which_session_it_was(tmp_path: Path) -> None:
    planned_again = PLANNED.replace('"allowed": 1.0', '"allowed": 2.0')
    loss = session(tmp_path, ended=None, log=(PLANNED, ROUND, planned_again))
    assert (loss.session, loss.party, loss.name, loss.epsilon) == ("ab" * 32, "anna", "", 2.0)
    (tmp_path / "one" / "status.json").write_text("{}")
    assert [(entry.session, entry.party) for entry in booked_losses(tmp_path)] == [("one", "")]
    fields = {"party": "bert", "session": "cd" * 32}
    result = session(tmp_path, name="two", result=fields, status={"party": "x"})
    assert (result.session, result.party) == ("cd" * 32, "bert")


def test_sessions_are_in_the_order_in_which_they_ended(tmp_path: Path) -> None:
    for name, ended in (("a", 9.0), ("b", None), ("c", 2.0)):
        session(tmp_path, name=name, result=None if ended is None else {}, ended=ended)
    assert [loss.ended for loss in booked_losses(tmp_path)] == [2.0, 9.0, None]
    assert booked_losses(tmp_path / "nowhere") == []


def test_a_label_is_kept_and_cannot_change(tmp_path: Path) -> None:
    label_datum(tmp_path / "one", "stays of 2026")
    session_folder = tmp_path / "one"
    (session_folder / "status.json").write_text(json.dumps(STATUS))
    assert [loss.datum for loss in booked_losses(tmp_path)] == ["stays of 2026"]
    assert session_folder.stat().st_mode & 0o777 == 0o700
    label_datum(tmp_path / "one", "stays of 2026")
    with pytest.raises(InvalidInput, match="must be what it was before in this session, 'stays of 2026', got"):
        label_datum(tmp_path / "one", "something else")
    for nonsense in ("", " stays", "two\nlines", "x" * 65):
        with pytest.raises(InvalidInput, match="must be 1 to 64 printable characters"):
            label_datum(tmp_path / "two", nonsense)
    assert not (tmp_path / "two").exists()
    label_datum(tmp_path / "two", "x")


def test_an_unknown_probability_of_failure_stays_unknown(tmp_path: Path) -> None:
    assert session(tmp_path, result={"failure": None}).failure is None
    assert session(tmp_path, name="two", ended=None).failure is None


def loss_of(epsilon: float, delta: float | None = 1e-5, failure: float | None = 0.0) -> BookedLoss:
    return BookedLoss("ab", "", "anna", "", None, epsilon, delta, failure, "")


@given(st.lists(st.floats(0.01, 5.0), min_size=1, max_size=6))
def test_together_they_cost_what_composition_says_and_never_less_than_one_of_them(epsilons: list[float]) -> None:
    epsilon, delta = together([loss_of(epsilon, failure=1e-7) for epsilon in epsilons], 1e-5)
    mu = math.hypot(*(inca.mu_for(epsilon, 1e-5) for epsilon in epsilons))
    assert max(epsilons) * (1 - 1e-9) <= epsilon <= float(inca.epsilon_for(mu, 1e-5)) * (1 + 1e-6) + 1e-9
    assert delta == pytest.approx(1e-5 + 1e-7 * len(epsilons))


@pytest.mark.parametrize("first", [1, *(pytest.param(first, marks=pytest.mark.slow) for first in range(2, 9))])
def test_one_session_costs_no_less_than_it_is_booked_with(first: int) -> None:
    """`mu_for` rounds down, by a little: if nothing were done about it, one of five numbers would show it."""
    for number in range(first, 400, 8):
        assert together([loss_of(number / 37)], 1e-5)[0] >= number / 37


def test_what_is_not_known_is_not_bounded_and_what_never_began_costs_nothing() -> None:
    assert together([loss_of(math.inf)], 1e-5)[0] == math.inf
    assert together([loss_of(1.0, delta=None)], 1e-5)[0] == math.inf
    assert together([loss_of(1.0), loss_of(1.0, delta=None)], 1e-5)[0] == math.inf
    assert together([loss_of(1.0, failure=1e-6), loss_of(1.0, failure=None)], 1e-5)[1] is None
    assert together([loss_of(1.0, failure=1e-6), loss_of(0.0, failure=None)], 1e-5)[1] == pytest.approx(1.1e-5)
    assert together([loss_of(0.0, failure=0.5)], 1e-5) == (0.0, 1e-5)
    assert together([], 1e-5) == (0.0, 1e-5)
    with pytest.raises(InvalidInput, match="delta must be"):
        together([], 2.0)
