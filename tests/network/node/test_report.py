"""What a party reports of a session: an estimate in the agreed domain, its interval, and what it is worth."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import inca
from helpers.documents import words
from helpers.rosters import SEED, terms
from inca._base.kernels import Flags
from inca._base.types import Array
from inca.documents.result import MOST_IN_JSON, ResultDocument
from inca.errors import InvalidInput
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.node import report as report_module
from inca.network.node.node import SessionEnd
from inca.network.node.report import kept_result, report, write_report
from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.finalization import Result
from inca.network.protocol.realized_execution import Contradiction, RealizedExecution
from inca.network.protocol.session import WEIGHT, Topology
from inca.reporting.result import result_content

NAMES = ("anna", "bert", "cleo", "dora")
CARDS = tuple(Identity.create(name).card(f"127.0.0.1:{7001 + i}") for i, name in enumerate(NAMES))


BEACON = bytes(range(32))


def report_with(mean: Array, **changes: Any) -> ResultDocument:
    """Return the report of a session of four whose final messages have a given mean."""
    setup = SessionSetup(Roster("trial", terms(seed=SEED, **changes), CARDS))
    topology = setup.session.topology(bytes.fromhex(SEED))
    realized = realized_of(setup, topology, np.ones(4, dtype=bool))
    return report_of(setup, Result(setup.lattice.encode(mean) * 4, 4 * WEIGHT, realized, exact=True, beacon=BEACON))


def realized_of(setup: SessionSetup, topology: Topology, cohort: Flags, **parts: Any) -> RealizedExecution:
    execution = inca.Execution(topology.schedule, setup.roster.terms.injection, cohort=cohort, **parts)
    return RealizedExecution(execution, ())


def report_of(setup: SessionSetup, result: Result) -> ResultDocument:
    return report(setup, 0, SessionEnd(result, ""), Path("not a folder"))


def ended(mean: Array, **changes: Any) -> tuple[SessionSetup, SessionEnd]:
    """Return a session of four whose final messages have a given mean, and its end."""
    setup = SessionSetup(Roster("trial", terms(seed=SEED, dimension=mean.size, **changes), CARDS))
    topology = setup.session.topology(bytes.fromhex(SEED))
    realized = realized_of(setup, topology, np.ones(4, dtype=bool))
    total = setup.lattice.encode(mean) * 4
    return setup, SessionEnd(Result(total, 4 * WEIGHT, realized, exact=True, beacon=BEACON), "")


def test_the_agreed_estimate_stays_and_is_shown_in_the_domain_too() -> None:
    document = report_with(np.array([-222.0]))
    assert document.estimate == pytest.approx(-222.0)  # on which all parties agree: sequences go on from it
    assert (document.constrained, document.confidence) == (0.0, 0.95)
    low, high = document.interval or (None, None)
    assert low == 0.0 and high == pytest.approx(49.0, rel=1e-4)
    assert document.standard_error == 25.0
    sentence = "The noise took the estimate to -222, outside [0, 240]: 0 is the nearest mean there is."
    assert document.remarks == (sentence,)


def test_a_result_that_says_nothing_says_so() -> None:
    document = report_with(np.array([100.0]), sigma_independent=120.0)
    assert document.constrained == pytest.approx(100.0)
    low, high = document.interval or (None, None)
    assert low == 0.0 and high == pytest.approx(217.6, abs=0.1)
    (sentence,) = document.remarks
    assert sentence.startswith("The standard error 60 is a large part of the range [0, 240]: guessing 120")


def test_vectors_have_an_interval_for_each_coordinate() -> None:
    ball = {"dimension": 2, "lower": None, "upper": None, "radius": 1.0}
    document = report_with(np.array([3.0, 4.0]), **ball, sigma_independent=0.1)
    assert document.constrained == pytest.approx((0.6, 0.8)) and document.estimate == pytest.approx((3.0, 4.0))
    assert document.standard_error == pytest.approx(0.05)  # of a coordinate, however many there are
    assert len(document.ends) == 2 and all(-1.0 <= low <= high <= 1.0 for low, high in document.ends)
    assert "outside the ball of radius 1" in document.remarks[0]


def test_an_error_that_is_not_known_leaves_the_whole_domain() -> None:
    setup = SessionSetup(Roster("trial", terms(seed=SEED), CARDS))
    topology = setup.session.topology(bytes.fromhex(SEED))
    realized = realized_of(setup, topology, np.array([True, True, True, False]))
    total, weight = setup.lattice.encode(np.array([100.0])) * 3, 3 * WEIGHT
    document = report_of(setup, Result(total, weight, realized, exact=False, beacon=BEACON))
    assert document.standard_error is None and document.interval == (0.0, 240.0)
    assert document.remarks[0].startswith("The error is not known")
    assert not document.exact
    assert document.present == document.weight == 3
    assert "The error is unknown" in words(document)


def test_the_cohort_and_contradicting_parties_are_named() -> None:
    setup = SessionSetup(Roster("trial", terms(seed=SEED), CARDS))
    topology = setup.session.topology(bytes.fromhex(SEED))
    execution = realized_of(setup, topology, np.arange(4) != 2).execution
    realized = RealizedExecution(execution, (Contradiction(2, 3, 1, "acknowledged"),))
    document = report_of(
        setup,
        Result(
            setup.lattice.encode(np.array([3.0])),
            3 * WEIGHT,
            realized,
            exact=False,
            beacon=BEACON,
        ),
    )
    assert document.format == "inca-result/2"
    assert (document.cohort, document.present) == (("anna", "bert", "dora"), 3)
    assert document.contradictions == ((2, "dora", "bert", "acknowledged"),)
    text = words(document)
    assert "Not exact: dora says that round 2 was acknowledged by bert, who says the opposite.\n" in text
    assert "The loss of anna was not worked out (this party is not in the result).\n" in text


def test_without_a_result_there_is_nothing_to_remark() -> None:
    setup = SessionSetup(Roster("trial", terms(), CARDS))
    end = SessionEnd(None, "too few were there")
    document = report(setup, 0, end, Path("not a folder"))
    assert document.estimate is None
    assert not {"constrained", "interval", "remarks"} & set(document.as_fields())
    assert "No result          Too few were there.\n" in words(document)


def test_the_report_of_an_unfinished_session_says_what_to_do_and_does_not_mark_it_as_ended(tmp_path: Path) -> None:
    setup = SessionSetup(Roster("trial", terms(), CARDS))
    for unfinished in (True, False):
        document = write_report(tmp_path, setup, 0, SessionEnd(None, "bert must come back", unfinished=unfinished))
        assert ("start it again with the same options" in document.reason) is unfinished
        assert ("`inca node run --forget`" in document.reason) is unfinished
        assert (tmp_path / "ended.json").exists() is not unfinished
        assert ResultDocument.read(tmp_path / "result.json") == document


def test_what_people_read_is_in_the_domain() -> None:
    text = words(report_with(np.array([-222.0]), sigma_independent=150.0))
    assert "  Mean               0\n  Interval           0 to 146.997 for the mean of all, probability 0.95\n" in text
    assert "-222, outside [0, 240]" in text and "guessing 120, the middle, would do as well." in text
    pair = words(report_with(np.array([0.5, 0.25]), dimension=2, upper=1.0))
    assert "  Interval           0 to 1, 0 to 1 for the mean of all" in pair


# --- long vectors ---------------------------------------------------------------------------------------------------

BOX, BALL = {"lower": -1.0, "upper": 2.0}, {"lower": None, "upper": None, "radius": 2.0}
LONG = np.linspace(-3.0, 3.0, MOST_IN_JSON + 1)


@settings(max_examples=20, deadline=None)
@given(arrays(float, st.integers(2, 30), elements=st.floats(-9.0, 9.0, width=32)), st.sampled_from([BOX, BALL]))
def test_a_long_result_says_what_a_short_one_does(mean: Array, domain: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as place:
        setup, end = ended(mean, sigma_independent=0.5, **domain)
        folder = Path(place)
        short = write_report(folder, setup, 0, end)
        patch.setattr(report_module, "MOST_IN_JSON", 1)
        long = write_report(folder, setup, 0, end)
        assert ResultDocument.read(folder / "result.json") == long
        assert (short.format, long.format) == ("inca-result/2", "inca-result/3") and long.has_result
        assert not {"estimate", "constrained", "interval", "total"} & set(long.as_fields())
        for where in ("estimate", "total"):
            assert long.vector(folder, where).tolist() == list(getattr(short, where))
            assert short.vector(folder, where).tobytes() == long.vector(folder, where).tobytes()
        # The rest follows by the formulas of docs/format.md, the estimate to the last bit.
        assert long.granularity is not None
        of_total = long.vector(folder, "total") * long.granularity * (2**40 / long.total_weight)
        assert of_total.tobytes() == long.vector(folder, "estimate").tobytes()
        rule = long.arrays
        assert rule is not None and rule.half_width is not None
        estimate, low, high = long.vector(folder, "estimate"), rule.low, rule.high
        constrained = np.clip(rule.scale * estimate, low, high)
        assert constrained.tolist() == pytest.approx(short.estimates, rel=1e-15)
        centre = np.clip(estimate, low, high)
        lower = np.minimum(np.clip(centre - rule.half_width, low, high), constrained)
        upper = np.maximum(np.clip(centre + rule.half_width, low, high), constrained)
        ends = [end for pair in zip(lower.tolist(), upper.tolist(), strict=True) for end in pair]
        assert ends == pytest.approx([end for pair in short.ends for end in pair], rel=1e-15)
        others = {"format", "estimate", "constrained", "interval", "total", "arrays"}
        for name in set(short.__struct_fields__) - others:
            assert getattr(short, name) == getattr(long, name)


def test_a_long_result_whose_error_is_not_known_leaves_the_whole_domain(tmp_path: Path) -> None:
    setup, end = ended(LONG, **BALL)
    assert end.result is not None
    document = write_report(tmp_path, setup, 0, SessionEnd(replace(end.result, exact=False), ""))
    assert document.arrays is not None and document.arrays.half_width is None
    assert "The mean of all values lies from -2 to 2 with probability 0.95 at least, each" in words(document)


def test_people_read_how_many_numbers_there_are_and_where(tmp_path: Path) -> None:
    setup, end = ended(LONG, sigma_independent=0.5, **BOX)
    document = write_report(tmp_path, setup, 0, end)
    said = words(document)
    assert "The estimated mean has 1,001 coordinates; unconstrained, they are in result.npz. The mean of all" in said
    assert "lies within 0.49 of the unconstrained estimate and from -1 to 2 with probability 0.95 at least" in said
    shown = str(result_content(document, None, document.vector(tmp_path, "estimate")))
    first = "The estimated mean is -1, -1, -1, -1, -1, -1, ... (1,001 numbers)."
    assert first in " ".join(shown.split())
    assert (tmp_path / "result.json").stat().st_size < 3000


def test_the_archive_comes_first_and_a_crash_before_the_json_leaves_no_result(tmp_path: Path) -> None:
    setup, end = ended(LONG, **BOX)
    (tmp_path / "result.json").mkdir()  # it cannot be written
    with pytest.raises(InvalidInput, match=r"result\.json cannot be written"):
        write_report(tmp_path, setup, 0, end)
    before = (tmp_path / "result.npz").read_bytes()
    assert kept_result(tmp_path) is None and not (tmp_path / "ended.json").exists()
    (tmp_path / "result.json").rmdir()  # the party comes back
    document = write_report(tmp_path, setup, 0, end)
    assert (tmp_path / "result.npz").read_bytes() == before and kept_result(tmp_path) == document
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".part"]


def test_without_an_archive_there_is_no_json_that_names_it(tmp_path: Path) -> None:
    setup, end = ended(LONG, **BOX)
    (tmp_path / "result.npz").mkdir()
    with pytest.raises(InvalidInput, match=r"result\.npz cannot be written"):
        write_report(tmp_path, setup, 0, end)
    assert kept_result(tmp_path) is None and not (tmp_path / "ended.json").exists()


def test_an_archive_that_is_damaged_missing_or_of_another_session_is_refused(tmp_path: Path) -> None:
    setup, end = ended(LONG, **BOX)
    document = write_report(tmp_path, setup, 0, end)
    path, remedy = tmp_path / "result.npz", r"\. Copy result\.json and result\.npz together from one party's folder$"
    content = path.read_bytes()
    others = {"missing": None, "cut off": content[:-1], "changed": content[:500] + b"!" + content[501:], "empty": b""}
    for other in others.values():
        path.unlink(missing_ok=True)
        if other is not None:
            path.write_bytes(other)
        with pytest.raises(InvalidInput, match=f"result\\.npz .*{remedy}"):
            document.vector(tmp_path, "estimate")
    assert kept_result(tmp_path) == document  # what the session cost is known all the same
