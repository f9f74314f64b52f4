"""Documents are read and written strictly, by one description each."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

import formats
import inca
from helpers.documents import certificate, result, transcript
from inca.documents.certificate import CertificateDocument
from inca.documents.document import Document
from inca.documents.formats import FORMATS, format_of
from inca.documents.plan import PlanDocument
from inca.documents.result import ResultDocument, session_cost
from inca.protocol.execution_files import execution_document

ARRAYS = {"sha256": "0" * 64, "coordinates": 5000, "low": 0.0, "high": 1.0, "scale": 1.0, "half_width": 0.1}
IN_ARCHIVE = dict.fromkeys(("estimate", "constrained", "interval")) | {"total": [], "format": "inca-result/3"}
PLAN = inca.plan(inca.Requirements(parties=20, epsilon=1.0, colluding=0.1, dropout=0.1))
DOCUMENTS: dict[str, Document] = {
    "certificate": certificate(),
    "result": result(),
    "no result": result(estimate=None, interval=None, constrained=None),
    "long result": result(**IN_ARCHIVE, arrays=ARRAYS),
    "plan": PLAN.document(),
    "execution": execution_document(transcript()),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_is_written_is_read_again(name: str, tmp_path: Path) -> None:
    document = DOCUMENTS[name]
    document.write(tmp_path / "file.json")
    again = type(document).read(tmp_path / "file.json")
    assert json.dumps(again.as_fields()) == json.dumps(document.as_fields())
    assert again.digest() == document.digest()
    assert format_of((tmp_path / "file.json").read_bytes(), "file.json") in FORMATS


@pytest.mark.parametrize("name", DOCUMENTS)
def test_unknown_fields_other_formats_and_missing_ones_are_refused(name: str) -> None:
    fields = json.loads(json.dumps(DOCUMENTS[name].as_fields()))
    kind = type(DOCUMENTS[name])
    with pytest.raises(inca.InvalidInput, match="shoe_size: is not a field of this format"):
        kind.of_fields(fields | {"shoe_size": 42})
    with pytest.raises(inca.InvalidInput, match="format: must be a value that the format knows, got 'inca-shoe/1'"):
        kind.of_fields(fields | {"format": "inca-shoe/1"})
    for field in ("format", "parties" if "parties" in fields else "rounds"):
        with pytest.raises(inca.InvalidInput, match=f"{field}: is missing"):
            kind.of_fields({key: value for key, value in fields.items() if key != field})


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("certificate", {"delta": math.nan}, "delta: "),
        ("certificate", {"delta": 1.5}, "delta: must be at most 1"),
        ("certificate", {"mu": [0.5]}, "honest, mu and epsilon: must be lists of one length"),
        ("certificate", {"honest": [2, 1, 3, 4, 5, 6, 7, 8, 9]}, "honest: must be ascending ids below 10"),
        ("certificate", {"honest": [0, 1, 2, 3, 4, 5, 6, 7, 8]}, "honest: must not name a colluding party"),
        ("certificate", {"worst": {"party": 1, "mu": 0.0, "epsilon": 0.0}}, "worst: mu must be the largest in mu"),
        ("certificate", {"sigma_cancelling": -1.0}, "sigma_cancelling: must be at least 0"),
        ("certificate", {"sigma_cancelling": "much"}, "sigma_cancelling: must be a number, got text"),
        ("certificate", {"settlement": "none", "basis": "leavers counted as colluders"}, "basis: must be exact"),
        ("result", {"interval": [2.0, 3.0]}, "interval: must hold the estimate"),
        ("result", {"interval": [[1.0], [2.0, 3.0]]}, "interval: must be two numbers"),
        ("result", {"failure": math.inf}, "failure: "),
        ("result", {"format": "inca-result/3"}, "format: must be inca-result/3 with arrays, and inca-result/2 without"),
        (
            "long result",
            {"format": "inca-result/2"},
            "format: must be inca-result/3 with arrays, and inca-result/2 with",
        ),
        ("long result", {"estimate": 0.5}, "arrays: cannot be combined with estimate, constrained, interval, total"),
        ("long result", {"total": [1]}, "arrays: cannot be combined with estimate, constrained, interval, total"),
        ("long result", {"arrays": ARRAYS | {"file": "../result.npz"}}, "arrays.file: must be a value that the format"),
        ("long result", {"arrays": ARRAYS | {"coordinates": 10**9}}, "arrays.coordinates: must be at most 10000000"),
        ("long result", {"arrays": ARRAYS | {"low": 1.0}}, "arrays: high must be above low"),
        ("long result", {"arrays": ARRAYS | {"scale": math.nan}}, "arrays.scale: "),
        ("long result", {"arrays": ARRAYS | {"half_width": -1.0}}, "arrays.half_width: must be at least 0"),
        ("plan", {"late": 0}, "late: "),
        ("plan", {"wish": {}}, "wish.parties: is missing"),
    ],
)
def test_impossible_values_are_refused_by_name(kind: str, changes: dict[str, Any], words: str) -> None:
    document = DOCUMENTS[kind]
    with pytest.raises(inca.InvalidInput, match=f"^{words}"):
        type(document).of_fields(json.loads(json.dumps(document.as_fields())) | changes)


def test_nothing_is_written_that_could_not_be_read(tmp_path: Path) -> None:
    broken = msgspec.structs.replace(certificate(), delta=math.nan)
    with pytest.raises(inca.InvalidInput, match="delta: "):
        broken.write(tmp_path / "file.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"[]", "cannot be read as a certificate"), (b"\xff", "cannot be read"), (b'{"format": NaN}', "cannot be read")],
)
def test_other_files_are_refused_in_one_sentence(content: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "file.json").write_bytes(content)
    with pytest.raises(inca.InvalidInput, match=words) as refusal:
        CertificateDocument.read(tmp_path / "file.json")
    assert str(refusal.value).count("\n") == 0
    with pytest.raises(inca.InvalidInput, match="must be a file that this version of inca writes"):
        format_of(content, "file.json")


def test_a_plan_that_is_read_is_the_plan_that_was_written(tmp_path: Path) -> None:
    PLAN.write(tmp_path / "plan.json")
    assert inca.read_plan(tmp_path / "plan.json") == PLAN
    assert PlanDocument.read(tmp_path / "plan.json").failure_probability == PLAN.failure_probability


def test_the_format_page_and_the_schemas_are_those_of_the_code() -> None:
    text = formats.PAGE.read_text()
    assert formats.page(text) == text, "make formats"
    for name, schema in formats.schemas().items():
        assert (formats.SCHEMAS / name).read_text() == schema, "make formats"
    for struct in formats.STRUCTS:
        assert f"<!-- fields of {struct} -->" in text


def test_every_field_says_what_it_means() -> None:
    for struct in formats.STRUCTS.values():
        described = formats.table(struct).splitlines()[4:-2]
        assert described
        for line in described:
            assert len(line.rsplit("| ", 1)[1].strip(" |")) > 2, line


@pytest.mark.parametrize(
    ("changes", "cost", "why"),
    [
        ({}, 0.5, "own loss"),
        ({"all_coalitions": False}, 1.0, "not all coalitions"),
        ({"epsilon": 1.5}, 1.5, "own loss above agreed"),
        ({"epsilon": None}, math.inf, "own loss above agreed"),
        ({"coalitions": None, "epsilon": None}, 1.0, "agreed"),
        # The loss was worked out on an execution that the result is not of, and the next may have cost more.
        ({"cohort": ["bert"]}, 1.0, "not in the result"),
        ({"estimate": None, "interval": None}, 1.0, "not in the result"),
    ],
)
def test_what_a_session_costs(changes: dict[str, Any], cost: float, why: str) -> None:
    document = result(**changes)
    found = session_cost(document, document.agreed_epsilon)
    assert (found.epsilon, found.why) == (cost, why)


def test_a_session_without_a_result_costs_what_was_agreed_once_it_has_begun() -> None:
    assert session_cost(None, 1.0).epsilon == 1.0
    assert session_cost(None, math.inf).epsilon == math.inf
    assert session_cost(None, 1.0, began=False).epsilon == 0.0


def test_a_failure_of_zero_is_not_an_unknown_one() -> None:
    assert ResultDocument.of_fields(result(failure=0.0).as_fields()).failure == 0.0
    assert ResultDocument.of_fields(result(failure=None).as_fields()).failure is None


def test_a_result_with_an_archive_costs_as_one_without() -> None:
    document = DOCUMENTS["long result"]
    assert isinstance(document, ResultDocument) and document.has_result
    assert session_cost(document, 1.0) == session_cost(result(), 1.0)
