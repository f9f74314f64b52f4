"""One verdict for every document: kept, broken, or not known and why; and no other place decides or words it."""

from __future__ import annotations

import ast
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import inca
from helpers.documents import certificate, result, unbounded_certificate
from helpers.paths import ROOT
from inca.documents.certificate import CertificateDocument
from inca.documents.result import ResultDocument
from inca.privacy.gaussian import epsilon_for
from inca.reporting.content import content
from inca.reporting.html import page
from inca.reporting.parts import rounded_up
from inca.reporting.terminal import text
from inca.reporting.verdict import Worded, compare, meaning, verdict

AGREED = {"epsilon": 2.0, "delta": 1e-5, "colluding": 0.1, "eavesdropped": 0.0, "failure": 1e-6}
BOUND = {"basis": "leavers counted as colluders"}
CASES: list[tuple[str, Worded, bool | None, str]] = [
    ("exact, kept", certificate(agreed=AGREED), True, "within the agreed epsilon 2 at delta 1e-05"),
    ("exact, broken", certificate(agreed=AGREED | {"epsilon": 0.1}), False, "more than the agreed epsilon 0.1"),
    ("a bound, kept", certificate(agreed=AGREED, **BOUND), True, "loses epsilon at most"),
    ("a bound above", certificate(agreed=AGREED | {"epsilon": 0.1}, **BOUND), None, "may lose epsilon at most"),
    ("nothing agreed", certificate(), None, "does not say what was agreed"),
    ("asked for, kept", certificate(required=3.0), True, "within the required epsilon 3"),
    ("asked for, broken", certificate(agreed=AGREED, required=0.1), False, "more than the required epsilon 0.1"),
    ("infinite", unbounded_certificate(agreed=AGREED), False, "have an infinite loss"),
    ("infinite, nothing agreed", unbounded_certificate(), False, "have an infinite loss"),
    ("small adversary", certificate(agreed=AGREED | {"colluding": 0.5}), None, "smaller than agreed"),
    (
        "small adversary, broken",
        certificate(agreed=AGREED | {"colluding": 0.5, "epsilon": 0.1}),
        False,
        "more than the agreed epsilon 0.1",
    ),
    (
        "larger delta",
        certificate(agreed=AGREED | {"delta": 1e-9, "epsilon": 2.0}),
        None,
        "Losses here are at delta 1e-05",
    ),
    ("unknown failure", certificate(agreed=AGREED | {"failure": None}), True, "within the agreed epsilon 2"),
    ("result, kept", result(), True, "against the worst of 9 coalitions (all there are)"),
    ("result, broken", result(epsilon=1.5), False, "more than the agreed epsilon 1"),
    ("result, a bound above", result(epsilon=1.5, cohort=["anna"]), None, "at most 1.5, above the agreed"),
    ("result, infinite", result(epsilon=None), False, "The loss of anna is infinite"),
    ("result, some coalitions", result(all_coalitions=False), True, "(drawn at random)"),
    ("result, unknown failure", result(all_coalitions=False, failure=None), None, "is kept is open"),
    ("result, all coalitions", result(failure=None), True, "within the agreed epsilon 1"),
    ("result without its party", result(cohort=["bert"]), None, "is in no result"),
    ("no result", result(estimate=None, interval=None, constrained=None), None, "is in no result"),
    ("result, not worked out", result(coalitions=None, epsilon=None), None, "was not worked out"),
]


@pytest.mark.parametrize(("document", "kept", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_verdicts(document: Worded, kept: bool | None, words: str) -> None:
    found = verdict(document)
    assert found.kept is kept
    assert words in found.text
    assert found.text[-1] == "." and "\n" not in found.text
    good = found.sentence.standing == "good"
    assert good is (kept is True)  # nothing but a kept guarantee looks like good news


@pytest.mark.parametrize("document", [case[1] for case in CASES], ids=[case[0] for case in CASES])
def test_terminal_page_and_card_have_the_same_sentence(document: Worded) -> None:
    sentence, found = verdict(document).text, content(document)
    assert sentence in [part.text for part in found.verdict]
    assert sentence in " ".join(text(found, width=10_000).split())
    assert re.sub("&#x27;", "'", page(found)).count(sentence) == 1
    card = json.loads(json.dumps({"verdict": [vars(part) for part in found.verdict]}))  # what the dashboard receives
    assert sentence in [part["text"] for part in card["verdict"]]


DECIDES = ("src/inca/reporting/verdict.py", "src/inca/documents/result.py")
OTHER_QUESTIONS = {
    "src/inca/network/node/booked_losses.py": "whether a session has cost anything",
    "src/inca/cli/attack.py": "whether an attack shows more than the exact loss",
}


def test_no_other_place_decides_whether_a_loss_is_allowed() -> None:
    losses, limits = re.compile(r"epsilon|loss\b"), re.compile(r"epsilon|allowed|agreed|required|wanted")
    for path in sorted((ROOT / "src" / "inca").rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if place in (*DECIDES, *OTHER_QUESTIONS) or "/learn/" in place or "/mechanisms/" in place:
            continue  # budgets add losses up, mechanisms are calibrated: no verdict on a run
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
                assert not (losses.search(left) and limits.search(right)), f"{place}:{node.lineno}: {ast.unparse(node)}"


def test_no_other_place_words_a_verdict() -> None:
    words = re.compile(
        r"does NOT hold|is within what was agreed|loss exceeds what was agreed|NO guarantee|this is the loss, not"
    )
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.js")]
    for path in files:
        if path.relative_to(ROOT).as_posix() not in DECIDES:
            assert not words.search(path.read_text()), path


@given(st.floats(0.0, 40.0))
def test_what_a_loss_means_is_never_too_good(mu: float) -> None:
    right = int(re.search(r"at most (\d+) times", meaning(mu)).group(1))  # type: ignore[union-attr]
    assert min(100.0, 100.0 * norm.cdf(mu / 2.0)) <= right + 1e-6
    assert right <= math.ceil(100.0 * norm.cdf(mu / 2.0))


@given(st.floats(1e-12, 1e12), st.integers(1, 6))
def test_printed_losses_are_never_below_the_truth(number: float, digits: int) -> None:
    shown = float(rounded_up(number, digits))
    assert number <= shown * (1.0 + 1e-15) and shown <= number * (1.0 + 10.0 ** (1 - digits) * 1.0001)


@given(st.floats(0.0, 10.0), st.floats(0.0, 10.0))
def test_judging_is_monotone(loss: float, allowed: float) -> None:
    assert (compare(loss, allowed) == "within") is (loss <= allowed)
    assert compare(math.inf, allowed) == "infinite"
    assert compare(loss, math.inf) != "within"  # an unlimited loss is no guarantee to keep


def test_a_certificate_must_not_look_better_than_the_losses_behind_it() -> None:
    document = certificate(agreed=AGREED)
    fields = document.as_fields()
    better = [0.01 for _ in document.epsilon]
    worst = {"party": document.worst.party, "mu": document.worst.mu, "epsilon": 0.01}
    forged = CertificateDocument.of_fields(fields | {"epsilon": better, "worst": worst, "full_attendance": None})
    with pytest.raises(inca.InvalidInput, match="epsilon: must follow from mu"):
        verdict(forged)


def test_epsilon_of_a_document_is_that_of_its_mu() -> None:
    document = certificate()
    mu = np.array(document.mu, dtype=np.float64)
    assert np.allclose(np.array(document.epsilon, dtype=np.float64), epsilon_for(mu, document.delta), rtol=1e-9)


def test_a_result_is_not_kept_against_coalitions_that_were_not_looked_at(tmp_path: Path) -> None:
    some: dict[str, Any] = {"all_coalitions": False, "failure": None}
    result(**some).write(tmp_path / "result.json")
    assert verdict(ResultDocument.read(tmp_path / "result.json")).kept is None
