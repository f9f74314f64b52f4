"""A document is worded once: one line of its room reaches the file, the formats page, terminal, page and card."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import pytest

import formats
import inca
from helpers.documents import certificate, result, transcript, unbounded_certificate
from inca.documents.certificate import CertificateDocument
from inca.documents.document import Document, about
from inca.documents.result import ResultDocument
from inca.reporting import certificate as certificate_words
from inca.reporting import result as result_words
from inca.reporting.content import content
from inca.reporting.execution import execution_content
from inca.reporting.html import page
from inca.reporting.parts import Content, RowOf
from inca.reporting.session import session_content, unfinished_content
from inca.reporting.terminal import text

PLAN = inca.plan(inca.Requirements(parties=20, epsilon=1.0, colluding=0.1, dropout=0.1))
MEAN = inca.average(np.linspace(0.0, 1.0, 20), inca.Interval(0.0, 1.0), PLAN, rng=np.random.default_rng(1))
CONTENTS: dict[str, Callable[[], Content]] = {
    "certificate": lambda: content(certificate()),
    "unbounded": lambda: content(unbounded_certificate()),
    "plan": lambda: content(PLAN),
    "average": lambda: content(MEAN),
    "result": lambda: content(result()),
    "no result": lambda: content(result(estimate=None, interval=None, constrained=None, reason="too few stayed")),
    "vector": lambda: content(
        result(estimate=[0.5, 1.5], constrained=[0.5, 1.0], interval=[[0.0, 0.5], [1.0, 1.0]], total=[5, 15])
    ),
    "execution": lambda: content(transcript()),
    "session": lambda: session_content(result(), certificate(), transcript(), b'{"event": "round"}\n{"ev'),
    "unfinished": lambda: unfinished_content({"party": "anna", "stage": "rounds", "round": 2}, "abcd"),
}


class CertificateWithShoeSize(CertificateDocument, frozen=True, kw_only=True):
    """A certificate with one more field."""

    shoe_size: Annotated[float, about("How large the shoes of the auditor are.", "cm")] = 42.0


def test_a_field_is_added_in_one_place_and_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fields = certificate().as_fields()
    document = CertificateWithShoeSize.of_fields(fields | {"shoe_size": 43.5})
    monkeypatch.setattr(certificate_words, "ROWS", (*certificate_words.ROWS, RowOf("shoe_size", "Shoe size")))
    document.write(tmp_path / "certificate.json")
    assert json.loads((tmp_path / "certificate.json").read_text())["shoe_size"] == 43.5
    assert "| `shoe_size` | number (optional) | cm | How large the shoes of the auditor are. |" in formats.table(
        CertificateWithShoeSize
    )
    found = content(CertificateWithShoeSize.read(tmp_path / "certificate.json"))
    assert "Shoe size          43.5" in text(found, details=True)
    assert re.search(r'title="How large the shoes of the auditor are.">Shoe size</dt>\s*<dd>43.5<', page(found))
    card = msgspec.json.decode(msgspec.json.encode(found))  # what the dashboard's card receives
    (row,) = [row for row in card["rows"] if row["name"] == "Shoe size"]
    assert (row["value"], row["hint"]) == ("43.5", "How large the shoes of the auditor are.")


@pytest.mark.parametrize("name", CONTENTS)
def test_all_renderers_say_all_of_it(name: str) -> None:
    found = CONTENTS[name]()
    shown, html = text(found, width=10_000, details=True), page(found)
    assert "<script" not in html and "nan" not in shown.lower()
    for part in (*(sentence.text for sentence in found.verdict), *found.caveats, *found.assumptions):
        assert part in shown
    for row in found.rows:
        assert row.name in shown and row.value in shown
    for figure in found.figures:
        assert figure.svg in html
    assert len({(row.group, row.name) for row in found.rows}) == len(found.rows)
    brief = text(found)
    assert len(brief) < len(shown) and found.verdict[0].badge.lower() in brief.lower()
    msgspec.json.encode(found)


@pytest.mark.parametrize("name", CONTENTS)
def test_labels_fit_their_column(name: str) -> None:
    found = CONTENTS[name]()
    for label in (*(sentence.badge for sentence in found.verdict), *(row.name for row in found.rows)):
        assert len(label) <= 18, label


@pytest.mark.parametrize("name", CONTENTS)
def test_details_are_shown_on_request(name: str) -> None:
    found = CONTENTS[name]()
    brief, shown = text(found, 10_000), text(found, 10_000, details=True)
    assert shown.startswith(brief)
    for part in (*found.caveats, *found.assumptions, *(table.heading for table in found.tables)):
        assert part in shown and part not in brief


@pytest.mark.parametrize("name", CONTENTS)
def test_a_verdict_does_not_say_its_badge_twice(name: str) -> None:
    for sentence in CONTENTS[name]().verdict:
        assert sentence.badge.lower() not in sentence.text.lower().split(",")[0][: len(sentence.badge) + 9], sentence


@pytest.mark.parametrize("name", CONTENTS)
def test_lines_fit_the_terminal(name: str) -> None:
    for width in (60, 80, 120):
        for line in text(CONTENTS[name](), width, details=True).splitlines():
            assert len(line) <= width or not line[width:].count(" "), line


def test_text_of_a_file_cannot_direct_a_terminal_or_a_page() -> None:
    found = content(result(name="\x1b[2J<script>alert(1)</script>", party="anna\x07"))
    assert "\x1b" not in text(found) and "\x07" not in text(found)
    assert "<script>" not in page(found)


@pytest.mark.parametrize(
    ("kind", "table", "apart"),
    [
        (
            CertificateDocument,
            certificate_words.ROWS,
            {"format", "honest", "mu", "sigma_cancelling", "sigma_topup", "settled", "conditions", "assumptions"},
        ),
        (
            ResultDocument,
            result_words._rows(result_words._coordinates(result(), None)),
            {"format", "name", "parties", "reason", "epsilon", "delta", "failure", "coalitions", "all_coalitions"}
            | {"confidence", "remarks", "contradictions", "total", "total_weight", "granularity", "beacon"},
        ),
    ],
)
def test_no_field_is_dropped_in_silence(kind: type[Document], table: tuple[RowOf, ...], apart: set[str]) -> None:
    named = {row.field for row in table}
    assert named | apart == set(kind.__struct_fields__) and not named & apart


def test_a_bound_is_called_a_bound_and_an_exact_loss_exact() -> None:
    bound = text(content(certificate(basis="leavers counted as colluders")), details=True)
    assert (
        "epsilon at most" in bound
        and "Losses are bounds" in bound
        and "upper bounds" in page(content(certificate(basis="leavers counted as colluders")))
    )
    exact = text(content(certificate()), details=True)
    assert "at most 1." not in exact and "exact" in exact and "bounds" not in exact


def test_an_unbounded_result_has_a_verdict() -> None:
    found = text(content(result(epsilon=None)))
    assert "No guarantee" in found and "infinite" in found


def test_an_execution_with_a_certificate_says_what_was_agreed() -> None:
    found = execution_content(transcript(), certificate(), drawn=True)
    assert "The file names no adversary" in found.caveats[0]


def test_a_certificate_of_another_result_is_named() -> None:
    other: dict[str, Any] = {"coalition": [4]}
    found = session_content(result(**other), certificate())
    assert "not of this result" in found.verdict[-1].text
