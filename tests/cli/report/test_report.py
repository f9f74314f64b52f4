"""`inca report`: pages of every kind of file say what the library says, with every caveat, and nothing more."""

from __future__ import annotations

import hashlib
import json
import math
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inca
from helpers.browser import browser, watched
from helpers.command_line import Capture, call, refused
from helpers.ended_sessions import write_session
from helpers.paths import ROOT
from inca.privacy.certificate import ASSUMPTIONS, Certificate

OLD = ROOT / "tests" / "fixtures" / "version-0.1"
OLD_SESSION = OLD / "session" / "party-001" / "sessions" / "8bb0349916f7a6f6"
EXAMPLE = ROOT / "examples" / "consortium.json"
HOSTILE = "<script>document.title='run'</script><img src=http://192.0.2.1/x onerror=alert(1)>\"'&"


class PageText(HTMLParser):
    """The words of a page, one space between them, and its elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data.split()

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}


def reported(capsys: Capture, tmp_path: Path, *words: object) -> PageText:
    out = tmp_path / "page.html"
    status, printed, err = call(capsys, "report", *words, "--out", out)
    assert (status, err) == (0, ""), err
    assert printed.endswith(f"The report is in {out}.\n")
    page = PageText(out.read_text())
    assert not page.tags & {"script", "link", "img", "iframe", "a", "form", "object"}
    assert "default-src 'none'" in out.read_text() and f"this page inca {inca.__version__}" in page.text
    return page


def sha256(path: Path) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    write_session(tmp_path / "state" / "0123")
    return tmp_path / "state" / "0123"


def certificate_of(path: Path, **changes: Any) -> Certificate:
    return inca.certify(inca.read_execution(path), **changes)


@pytest.mark.parametrize("path", [OLD / "plan.json", ROOT / "examples" / "waiting-times-plan.json"])
def test_a_plan_says_what_it_promises_and_its_error(path: Path, capsys: Capture, tmp_path: Path) -> None:
    plan, page = inca.read_plan(path), reported(capsys, tmp_path, path).text
    ratio = plan.expected_mse / plan.requirements.central_mse
    assert f"A run promises {plan.agreed} to every honest party, against" in page
    assert f"off by {math.sqrt(plan.expected_mse):.4g} (root mean square)" in page
    assert f"a mean squared error of {plan.expected_mse:.4g}, {ratio:.3g} x that of Central DP" in page
    assert f"with probability {plan.failure_probability:.2g}, which adds to delta" in page
    assert (plan.remark in page) if plan.remark else "says nothing" not in page
    assert ("late leaver" in page) == (plan.settlement == "settled")
    for sentence in ASSUMPTIONS:
        assert sentence in page
    assert "Expected error beside other mechanisms" in page and "Where the error comes from" in page
    assert sha256(path) in page


def test_a_certificate_tells_the_larger_loss_and_leaves_open_what_was_agreed(capsys: Capture, tmp_path: Path) -> None:
    fields, page = (
        json.loads((OLD / "certificate.json").read_text()),
        reported(capsys, tmp_path, OLD / "certificate.json"),
    )
    worst, full = fields["worst"]["epsilon"], fields["full_attendance"]["epsilon"]
    assert f"Worst loss: epsilon {worst:.6g} at delta 1e-05, of party 5." in page.text
    assert f"the larger of the two, {full:.6g}, is what counts" in page.text and full > worst
    assert f"a factor of at most {math.exp(full):.4g}" in page.text
    assert "does not say what was agreed" in page.text and " holds for " not in page.text
    for sentence in fields["assumptions"]:
        assert sentence in page.text


@pytest.mark.parametrize(("epsilon", "sentence"), [(8, "DP holds for every"), (0.1, "DP does NOT hold for every")])
def test_what_audit_printed_says_whether_a_guarantee_holds(
    epsilon: float, sentence: str, capsys: Capture, tmp_path: Path
) -> None:
    printed = call(capsys, "audit", EXAMPLE, "--epsilon", epsilon, "--json")[1]
    (tmp_path / "audit.json").write_text(printed)
    page = reported(capsys, tmp_path, tmp_path / "audit.json").text
    assert f"({epsilon:g}, 1e-05)-{sentence} honest party, against this adversary." in page
    assert "Conditions of the theorems" in page and "Fails: Theorem 2, since" in page


def test_an_execution_is_audited(capsys: Capture, tmp_path: Path) -> None:
    page, certificate = reported(capsys, tmp_path, EXAMPLE).text, certificate_of(EXAMPLE)
    assert f"the larger of the two, {certificate.worst_epsilon:.6g}, is what counts" in page
    assert "(1, 1e-05)-DP holds for every honest party, against this adversary." in page
    assert "How likely the plan of the noise fails, which adds to delta, is not known." in page
    assert "5 of 60 parties published no final message." in page and sha256(EXAMPLE) in page
    for title in ("What the adversary learns", "Where the noise", "Who was present in which round"):
        assert title in page


def test_an_execution_of_unknown_sensitivity_claims_nothing(capsys: Capture, tmp_path: Path) -> None:
    fields = json.loads(EXAMPLE.read_text())
    del fields["sensitivity"]
    (tmp_path / "run.json").write_text(json.dumps(fields))
    page = reported(capsys, tmp_path, tmp_path / "run.json").text
    assert "cannot be worked out from the file alone: sensitivity must be known" in page
    assert "whether it holds is not known" in page and " holds for " not in page and "Worst loss" not in page


def test_losses_that_are_infinite_are_no_guarantee(capsys: Capture, tmp_path: Path) -> None:
    fields = json.loads(EXAMPLE.read_text()) | {"sigma_independent": 0.0, "sigma_cancelling": 0.0}
    (tmp_path / "run.json").write_text(json.dumps(fields))
    page = reported(capsys, tmp_path, tmp_path / "run.json").text
    assert "Nothing is guaranteed: " in page and "does NOT hold" in page and "the loss is infinite" in page


def test_executions_in_numpy_files_have_pages_too(capsys: Capture, tmp_path: Path) -> None:
    assert sha256(OLD / "execution.npz") in reported(capsys, tmp_path, OLD / "execution.npz").text


def test_a_settled_execution_counts_leavers_as_colluders_too(session: Path, capsys: Capture, tmp_path: Path) -> None:
    first = reported(capsys, tmp_path, session / "execution.json").text
    assert "With leavers counted as colluders, whatever they did, the loss of every party that settled is" in first
    assert "The file names no adversary: one of the agreed size was drawn at random here" in first
    assert reported(capsys, tmp_path, session / "execution.json").text == first


def test_a_session_joins_result_certificate_execution_and_log(session: Path, capsys: Capture, tmp_path: Path) -> None:
    fields = json.loads((session / "result.json").read_text())
    certificate = json.loads((session / "certificate.json").read_text())
    page = reported(capsys, tmp_path, session.parent, "--roster", session.parent / "roster.json").text
    low, high = fields["interval"]
    assert f"The estimated mean is 97. The 0.95 interval is {low:.6g} to {high:.6g}:" in page
    assert f"a standard error of {fields['standard_error']:.6g}." in page
    over = f"at worst over {fields['coalitions']} coalitions (drawn at random), at delta 1e-05; epsilon 2 was agreed."
    assert f"is within what was agreed: epsilon {fields['epsilon']:.6g} {over}" in page
    assert "another of that size may learn more" in page and "fails with probability 1e-06" in page
    assert f"Worst loss: epsilon at most {certificate['worst']['epsilon']:.6g}" in page
    assert "Losses are bounds: leavers are counted as colluders." in page
    assert "(2, 1e-05)-DP holds for every honest party that settled, against this adversary." in page
    assert "The domain is 0 to 240, as the roster says." in page and "round 8" in page
    assert "10.0.0.7" not in page, "addresses of the log are nobody's business"
    for name in ("result.json", "certificate.json", "execution.json", "log.jsonl"):
        assert sha256(session / name) in page
    assert all(sentence in page for sentence in (*ASSUMPTIONS, *fields["remarks"], *fields["cohort"]))


def test_a_session_whose_execution_was_exchanged_says_so(session: Path, capsys: Capture, tmp_path: Path) -> None:
    (session / "execution.json").write_bytes(EXAMPLE.read_bytes())
    assert "is not the one that the result names" in reported(capsys, tmp_path, session).text
    (session / "certificate.json").write_bytes((OLD / "certificate.json").read_bytes())
    page = reported(capsys, tmp_path, session).text
    assert "The certificate in this folder is not of this result" in page and "DP holds for" not in page


@pytest.mark.parametrize("path", [OLD_SESSION, OLD_SESSION / "result.json"])
def test_sessions_of_version_0_1_claim_no_interval(path: Path, capsys: Capture, tmp_path: Path) -> None:
    page = reported(capsys, tmp_path, path).text
    assert "The estimated mean is 73.4456, -10.0074. The file has no interval for it." in page
    assert "That counts on accounts of the parties that do not add up." in page
    assert "Whether 1 offer arrived nobody can tell, of a weight of 0.3." in page
    assert "How likely the plan of the noise fails, which adds to delta, is not known." in page


def test_a_session_that_has_not_ended_has_no_result(capsys: Capture, tmp_path: Path) -> None:
    page = reported(capsys, tmp_path, OLD / "session" / "party-002" / "sessions").text
    assert "There is no result yet: cleo was at stage 'rounds', round 2 of 6" in page


def changed(path: Path, place: Path, **changes: Any) -> Path:
    place.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return place


def test_a_result_tells_what_is_not_known(session: Path, capsys: Capture, tmp_path: Path) -> None:
    unknown: dict[str, Any] = {
        "standard_error": None,
        "late": ["clinic-b"],
        "exact": False,
        "interval": [0.0, 240.0],
        "failure": None,
    }
    unknown |= {"contradictions": [[2, "clinic-d", "clinic-b", "acknowledged"]], "remarks": ["A guess would do."]}
    page = reported(capsys, tmp_path, changed(session / "result.json", tmp_path / "r.json", **unknown)).text
    assert "How large its error is cannot be known" in page and "A guess would do." in page
    assert "Late leavers: clinic-b settled and did not publish; noise of theirs is left in the result." in page
    assert "Not exact: clinic-d says that round 2 was acknowledged by clinic-b, who says the opposite." in page
    assert "which adds to delta, is not known" in page and "adds up exactly NO" in page
    none = {"estimate": None, "reason": "too few were left", "epsilon": None, "coalitions": None}
    page = reported(capsys, tmp_path, changed(session / "result.json", tmp_path / "r.json", **none)).text
    assert "There is no result: too few were left." in page and "was not worked out: too few were left." in page
    for epsilon, sentence in ((None, "is unbounded"), (2.5, "exceeds what was agreed: epsilon 2.5")):
        page = reported(capsys, tmp_path, changed(session / "result.json", tmp_path / "r.json", epsilon=epsilon)).text
        assert f"The loss of clinic-a {sentence}" in page and "within what was agreed" not in page


def hostile_session(folder: Path) -> None:
    result = {"name": HOSTILE, "party": HOSTILE, "reason": HOSTILE, "cohort": [HOSTILE], "late": [HOSTILE]}
    result |= {"remarks": [HOSTILE], "session": HOSTILE, "inca": HOSTILE, "execution": HOSTILE}
    changed(folder / "result.json", folder / "result.json", **result)
    certificate = {"notion": HOSTILE, "assumptions": [HOSTILE], "inca": HOSTILE, "execution": HOSTILE}
    changed(folder / "certificate.json", folder / "certificate.json", **certificate)
    (folder / "log.jsonl").write_text(json.dumps({"event": HOSTILE}))


def test_texts_of_files_stay_texts(session: Path, capsys: Capture, tmp_path: Path) -> None:
    hostile_session(session)
    page = reported(capsys, tmp_path, session)  # which looks for foreign elements
    assert page.text.count(" ".join(HOSTILE.split())) >= 12
    assert not [attributes for _, attributes in page.elements if any(name.startswith("on") for name in attributes)]


def test_texts_of_files_do_not_direct_the_terminal(session: Path, capsys: Capture, tmp_path: Path) -> None:
    place = changed(session / "result.json", tmp_path / "r.json", remarks=["red \x1b[31m"])
    status, printed, _ = call(capsys, "report", place)
    assert status == 0 and "\x1b" not in printed and "red ?[31m" in printed
    changed(session / "result.json", place, remarks=["half a character: \ud800"])
    assert "that inca wrote" in refused(capsys, "report", place)


@pytest.mark.parametrize(("width", "dark"), [pytest.param(1280, False, marks=pytest.mark.slow), (390, True)])
def test_a_browser_loads_nothing_and_runs_nothing(
    width: int, dark: bool, session: Path, capsys: Capture, tmp_path: Path
) -> None:
    hostile_session(session)
    pages = {"hostile": session, "plan": OLD / "plan.json", "execution": EXAMPLE}
    for name, path in pages.items():
        call(capsys, "report", path, "--out", tmp_path / f"{name}.html")
    with browser() as chromium, watched(chromium, "file://", width=width, dark=dark) as window:
        for name in pages:
            window.page.goto((tmp_path / f"{name}.html").as_uri())
            assert window.page.title() != "run" and window.page.locator("svg").count() >= 2
            assert window.page.evaluate("document.documentElement.scrollWidth") <= width, name
            colour = window.page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (colour == "rgb(255, 255, 255)") is not dark
        assert not window.errors and window.requests == [(tmp_path / f"{name}.html").as_uri() for name in pages]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("anna,3\n", "must be a plan, a certificate, an execution or a result that inca wrote, or a session's folder"),
        ("[" * 100_000, "must be a plan, a certificate, an execution or a result that inca wrote"),
        ('{"format": "inca-study/1"}', "must be a plan, a certificate, an execution or a result that inca wrote"),
        ('{"format": "inca-plan/1"}', "cannot be read as a plan"),
        ('{"format": "inca-certificate/1"}', "cannot be read as a certificate"),
        ('{"format": "inca-result/2"}', "cannot be read as a result"),
        ('{"format": "inca-execution/2"}', "execution"),
    ],
)
def test_foreign_files_are_refused_and_nothing_is_written(
    content: str, sentence: str, capsys: Capture, tmp_path: Path
) -> None:
    (tmp_path / "file.json").write_text(content)
    assert sentence in refused(capsys, "report", tmp_path / "file.json")
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"]


def test_numbers_that_contradict_each_other_are_refused(session: Path, capsys: Capture, tmp_path: Path) -> None:
    """Otherwise a page could look better than the losses behind it."""
    certificate, place = OLD / "certificate.json", tmp_path / "c.json"
    fields = json.loads(certificate.read_text())
    for changes, sentence in (
        ({"worst": fields["worst"] | {"epsilon": 0.01}}, "worst must be the largest of the losses"),
        ({"epsilon": [0.01] * len(fields["epsilon"])}, "epsilon must follow from mu, delta and the rule"),
        ({"full_attendance": fields["full_attendance"] | {"epsilon": 0.1}}, "full_attendance must follow from its mu"),
        ({"honest": []}, "must be lists of one length"),
        ({"rule": "kind"}, "rule must be exact or classic"),
    ):
        assert sentence in refused(capsys, "report", changed(certificate, place, **changes))
    for changes, sentence in (
        ({"interval": [0.0, 1.0]}, "the interval must hold the estimate"),
        ({"interval": [[0.0, 0.0], [1.0]]}, "interval must be two numbers, or two lists"),
        ({"interval": ["low", "high"]}, "interval must be two numbers, or two lists"),
    ):
        assert sentence in refused(capsys, "report", changed(session / "result.json", place, **changes))


def test_other_refusals_are_one_sentence(session: Path, capsys: Capture, tmp_path: Path) -> None:
    assert "No such file" in refused(capsys, "report", tmp_path / "nothing.json")
    assert "must be the folder of a session" in refused(
        capsys, "report", OLD / "sequence" / "..", "--out", tmp_path / "x"
    )
    assert "must be a file or a folder" in refused(capsys, "report", "/dev/null", "--out", tmp_path / "x")
    assert "cannot be written" in refused(capsys, "report", "nothing.json", "--out", tmp_path / "no" / "page.html")
    assert "must be another file than FILE" in refused(capsys, "report", EXAMPLE, "--out", EXAMPLE)
    roster = ["--roster", session.parent / "roster.json", "--out", tmp_path / "x"]
    assert "--roster must be combined with a result or a session" in refused(capsys, "report", EXAMPLE, *roster)
    other = write_session(tmp_path / "other" / "4567", mean=50.0)
    sentence = refused(capsys, "report", session, "--roster", other, "--out", tmp_path / "x")
    assert "must be the roster of session" in sentence
    (tmp_path / "other" / "89ab").mkdir()
    (tmp_path / "other" / "89ab" / "status.json").write_text("[]")
    assert "must have one session in it, got 2: name one of 4567, 89ab" in refused(capsys, "report", tmp_path / "other")
    assert "is not what a node writes" in refused(capsys, "report", tmp_path / "other" / "89ab")
    assert not (tmp_path / "x").exists()


def test_the_page_is_beside_the_file_unless_said_otherwise(session: Path, capsys: Capture) -> None:
    certificate = session / "certificate.json"
    before = certificate.read_bytes()
    assert call(capsys, "report", certificate)[0] == 0 and call(capsys, "report", session)[0] == 0
    assert (session / "certificate-report.html").exists() and (session.parent / "0123-report.html").exists()
    assert certificate.read_bytes() == before


def test_commands_make_files_that_have_pages(capsys: Capture, tmp_path: Path) -> None:
    values, plan, run, kept = (tmp_path / name for name in ("values.csv", "plan.json", "run.json", "certificate.json"))
    values.write_text("\n".join(f"{number:.3f}" for number in np.random.default_rng(1).uniform(20, 220, 50)))
    words = ["--parties", 50, "--epsilon", 1, "--colluding", 0.1, "--sensitivity", 240, "--no-baselines"]
    assert call(capsys, "plan", *words, "--out", plan)[0] == 0
    words = ["--domain", 0, 240, "--plan", plan, "--seed", 1, "--transcript", run, "--certificate", kept]
    assert call(capsys, "average", values, *words)[0] == 0
    certificate = json.loads(kept.read_text())
    for path in (run, kept):
        page = reported(capsys, tmp_path, path).text
        assert f"Worst loss: epsilon {certificate['worst']['epsilon']:.6g} at delta 1e-05" in page
    assert "A run promises (1, 1e-05 + " in reported(capsys, tmp_path, plan).text
