"""What the Plan view works out in the browser is what the library works out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from playwright.sync_api import Page

import inca
from helpers.browser import Watched
from helpers.examples import examples
from inca.dashboard.plan_view import SLOW
from inca.errors import IncaError
from inca.mechanisms.compare import baselines, evaluate
from inca.planning.plan import Plan, plan
from inca.reporting.plan import plan_content

FRACTIONS = st.sampled_from([0.0, 0.1, 0.2, 0.3]) | st.floats(0.0, 0.9).map(lambda x: round(x, 3))
QUESTIONS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "parties": st.sampled_from([2, 3, 4, 10, *range(45, 72), 200, 1000, 10**6]) | st.integers(2, 3000),
        "epsilon": st.sampled_from([0.01, 0.1, 1.0, 20.0]) | st.floats(0.01, 20.0),
        "delta": st.sampled_from([1e-12, 1e-5, 0.1]) | st.floats(-12.0, -1.0).map(lambda x: 10.0**x),
        "colluding": FRACTIONS,
        "dropout": st.none() | FRACTIONS,
        "eavesdropped": st.sampled_from([0.0, 0.0, 0.0, 1e-10, 0.05, 0.3]) | FRACTIONS,
        "messages": st.none() | st.none() | st.integers(2, 60),
        "failure": st.sampled_from([1e-6, 1e-3, 1e-9, 1e-14]),
    }
)
ORDINARY = {"epsilon": 1.0, "delta": 1e-5, "eavesdropped": 0.0, "messages": None, "failure": 1e-6}
SCRIPT = """async (asked) => {
  const place = (name) => new URL(`widgets/plan/${name}.js`, document.scripts[0].src);
  const { settledPlan } = await import(place("settled_plan"));
  const { planRows, verdictOn } = await import(place("plan_words"));
  const plan = settledPlan(asked, asked.failure);
  return typeof plan === "string" ? plan : { ...plan, rows: planRows(asked, plan), verdict: verdictOn(plan) };
}"""
OTHERS = """async (asked) => {
  const place = new URL("widgets/plan/other_mechanisms.js", document.scripts[0].src);
  return (await import(place)).otherMechanisms(asked);
}"""


@pytest.fixture(scope="module")
def page(shared_window: Watched) -> Page:
    return shared_window.visit("/file")


def required(question: dict[str, Any]) -> inca.Requirements:
    return inca.Requirements(**{name: value for name, value in question.items() if value is not None})


def planned(question: dict[str, Any]) -> Plan | str:
    """Return the plan of the library, or the sentence that refuses it."""
    try:
        return plan(required(question))
    except IncaError as refusal:
        return str(refusal)


@examples(60, 2000)
@example(ORDINARY | {"parties": 3, "colluding": 0.1, "dropout": None})
@example(ORDINARY | {"parties": 70, "colluding": 0.1, "dropout": None})
@example(ORDINARY | {"parties": 71, "colluding": 0.1, "dropout": None})
@example(ORDINARY | {"parties": 206, "colluding": 0.0, "dropout": 0.0})
@example(ORDINARY | {"parties": 10**6, "colluding": 0.1, "dropout": 0.2})
@example(ORDINARY | {"parties": 5, "colluding": 0.4, "dropout": 0.5})
@example(ORDINARY | {"parties": 2, "colluding": 0.9, "dropout": None})
@example(ORDINARY | {"parties": 2, "colluding": 0.0, "dropout": 0.8})
@example(ORDINARY | {"parties": 100, "colluding": 0.1, "dropout": 0.1, "messages": 4})
@given(question=QUESTIONS)
def test_the_plan_in_the_page_is_the_librarys(page: Page, question: dict[str, Any]) -> None:
    """To 12 digits, in the same words, and refused by the same sentence."""
    shown, known = page.evaluate(SCRIPT, question), planned(question)
    if isinstance(known, str) or isinstance(shown, str):
        assert shown == known
        return
    assert (shown["schedule"], shown["rounds"]) == (known.design.schedule, known.design.rounds)
    assert (shown["spare"], shown["messages"]) == (known.spare, known.design.messages)
    numbers = {
        "independent": known.noise_levels.independent,
        "cancelling": known.noise_levels.cancelling,
        "together": known.topup.together,
        "mse": known.expected_mse,
    }
    assert {name: shown[name] for name in numbers} == pytest.approx(numbers, rel=1e-12, abs=0.0)
    assert shown["failure"] == pytest.approx(known.failure_probability, rel=1e-9, abs=0.0)
    content = plan_content(known.document())
    assert shown["rows"] == [[row.name, row.value] for row in content.rows if not row.detail]
    (verdict,) = content.verdict
    assert shown["verdict"] == {"good": verdict.standing == "good", "text": verdict.text}


@examples(30, 400)
@example(ORDINARY | {"parties": 30, "colluding": 0.1, "dropout": 0.1, "eavesdropped": 0.1})
@example(ORDINARY | {"parties": 12, "colluding": 0.5, "dropout": 0.45})
@example(ORDINARY | {"parties": 2, "colluding": 0.4, "dropout": 0.0})
@given(question=QUESTIONS.filter(lambda question: question["parties"] <= 3000))
def test_other_mechanisms_in_the_page_are_the_librarys(page: Page, question: dict[str, Any]) -> None:
    shown = {entry["mechanism"]: entry for entry in page.evaluate(OTHERS, question)}
    try:
        requirements = required(question)
    except IncaError:  # nobody is honest, or nobody stays
        assert shown == {}
        return
    known = {name: make for name, make in baselines(requirements) if not name.startswith(SLOW)}
    assert set(known) - set(shown) == {"secure aggregation, k-regular"}  # as many errors as with keys among all
    for name, entry in shown.items():
        other = evaluate(name, known[name], requirements)
        assert (entry["why_not"] == "") == (other.why_not == "")
        if other.mse is not None:
            assert entry["mse"] == pytest.approx(other.mse, rel=1e-11)
            assert entry["messages"] in (None, other.messages)
            assert (entry["promise"], entry["weaker"]) == (other.promise, other.weaker)
