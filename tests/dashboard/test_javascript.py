"""The pages' own code: what tools from npm (`make javascript`) cannot tell about it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.dashboard_server import Dashboard, running
from helpers.paths import ROOT
from inca.dashboard.documents import _SHOWN

STATIC = ROOT / "src" / "inca" / "dashboard" / "static"
SCRIPTS = {path: path.read_text() for path in sorted(STATIC.rglob("*.js"))}
FILES = ROOT / "tests" / "fixtures" / "version-0.1"
INTERFACE = re.compile(r"^export interface (\w+) (?:extends \w+ )?\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
MAX_FILES_IN_A_FOLDER = 15


def interface(name: str) -> dict[str, bool]:
    """Return the fields that types.d.ts names, and whether each of them must be there."""
    bodies = dict(INTERFACE.findall((STATIC / "js" / "lib" / "types.d.ts").read_text()))
    return {field: not optional for field, optional in re.findall(r"^  (\w+)(\??):", bodies[name], re.MULTILINE)}


def required(name: str) -> set[str]:
    return {field for field, must in interface(name).items() if must}


@pytest.fixture(scope="module")
def board() -> Iterator[Dashboard]:
    with running([FILES / "session" / "party-001" / "sessions"]) as dashboard:
        yield dashboard


# --- what the server answers ------------------------------------------------------------------------------------------


def test_the_types_of_answers_are_those_of_the_server(board: Dashboard) -> None:
    """What the type check of the pages rests on; and nothing is sent that no type names."""
    run = board.ask("run", parties=5, rounds=4)
    view = board.ask("adversary", parties=5, rounds=4, colluding="1")
    sessions = board.ask("sessions")
    session = board.ask("session", session=sessions["sessions"][0]["id"])
    answers: dict[str, Any] = {
        "RunAnswer": run,
        "Simulation": run["simulation"],
        "RunResult": run["simulation"]["result"],
        "ErrorParts": run["simulation"]["expected_error"],
        "AdversaryAnswer": view,
        "AllGuesses": view["guesses"],
        "Guesses": view["guesses"]["naive"],
        "WorstLoss": view["worst"],
        "Condition": view["conditions"][0],
        "NoiseAnswer": board.ask("sufficient-noise", parties=5, rounds=4, sigma_independent=8, colluding="1"),
        "KeptFiles": board.ask("files"),
        "SessionStatus": sessions["sessions"][0],
        "SessionAnswer": session,
    }
    for name, answer in answers.items():
        assert set(answer) == required(name) == set(interface(name)), name


def test_the_types_of_streamed_answers_are_those_of_the_server(board: Dashboard) -> None:
    head, *entries = board.get("/api/estimate", parties=12, epsilon=4, messages=6).lines
    *_, plan = board.get("/api/plan", parties=12, epsilon=4, messages=6, colluding=0, dropout=0, views=5).lines
    assert set(head["head"]) == required("EstimateHead")
    for entry in [part["entry"] for part in entries] + [plan["entry"]]:
        assert set(entry) == required("MechanismEntry"), entry["mechanism"]
    assert set(plan) == required("PlanAnswer") and set(plan["entry"]["design"]) == required("Design")
    assert set(plan["plan"]) >= required("PlanFields")


def test_the_type_of_a_kept_plan_is_that_of_the_server(board: Dashboard) -> None:
    board.get("/api/plan", parties=12, epsilon=4, messages=6, colluding=0, dropout=0)
    (kept, *_) = board.ask("plans")
    assert set(kept) == required("PlanAnswer") | required("KeptPlan")
    assert set(kept["requirements"]) == required("Requirements")


def test_of_a_file_all_that_a_page_shows_is_kept_and_nothing_else() -> None:
    for kind, name in (("certificate", "Certificate"), ("plan", "PlanFields"), ("result", "Result")):
        assert set(_SHOWN[kind]) == set(interface(name))


@pytest.mark.parametrize(
    ("name", "kind", "fields"),
    [("certificate.json", "certificate", "Certificate"), ("plan.json", "plan", "PlanFields")],
)
def test_the_types_of_files_are_those_of_real_files(board: Dashboard, name: str, kind: str, fields: str) -> None:
    opened = board.post(f"/api/open?name={name}", (FILES / name).read_bytes()).json
    assert opened["kind"] == kind and set(opened) == required("OpenedFile")
    file = board.ask("file", file=opened["id"])
    assert set(file) == {*opened, "fields", "remarks"} and set(file["fields"]) >= required(fields)


def test_the_type_of_a_result_is_that_of_a_real_result(board: Dashboard) -> None:
    (status, *_) = board.ask("sessions")["sessions"]
    assert set(board.ask("session", session=status["id"])["result"]) >= required("Result")


# --- rooms and leftovers ----------------------------------------------------------------------------------------------


def test_no_folder_is_crowded() -> None:
    folders = {path.parent for path in STATIC.rglob("*") if path.is_file()}
    for folder in folders:
        assert len([path for path in folder.iterdir() if path.is_file()]) <= MAX_FILES_IN_A_FOLDER, folder


def test_every_module_is_used() -> None:
    imported = {
        (path.parent / name).resolve()
        for path, text in SCRIPTS.items()
        for name in re.findall(r'(?:from|import)\s*\(?"(\.{1,2}/[^"]+)"', text)
    }
    views = set((STATIC / "js" / "views").glob("*.js"))  # app.js imports them by the name in the address
    assert set(SCRIPTS) - imported - views == {STATIC / "js" / "app.js"}


def test_everything_exported_is_imported_somewhere() -> None:
    words = {path: set(re.findall(r"\w+", text)) for path, text in SCRIPTS.items()}
    for path, text in SCRIPTS.items():
        for name in re.findall(r"^export (?:async )?(?:function|const|class) (\w+)", text, re.MULTILINE):
            if path.parent.name == "views" and name == "show":
                continue
            assert any(name in used for place, used in words.items() if place != path), f"{name} of {path.name}"


def test_every_term_of_the_glossary_is_explained_somewhere() -> None:
    place = STATIC / "js" / "lib" / "glossary.js"
    terms = re.findall(r'^  "?([\w ]+)"?:', SCRIPTS[place], re.MULTILINE)
    others = "".join(text for path, text in SCRIPTS.items() if path != place)
    fields = re.findall(r"^  (\w+): \{ label", SCRIPTS[STATIC / "js" / "lib" / "requirements.js"], re.MULTILINE)
    assert len(terms) > 30
    assert [term for term in terms if f'"{term}"' not in others and term not in fields] == []


def test_every_rule_of_the_style_sheets_is_used() -> None:
    pages = "".join(SCRIPTS.values()) + (STATIC / "index.html").read_text()
    words = set(re.findall(r"[\w-]+", pages))
    prefixes = ("fill", "sign", "story", "session", "session-sign")  # `fill-${kind}`
    generated = {f"{prefix}-{word}" for prefix in prefixes for word in words}
    for sheet in sorted((STATIC / "css").glob("*.css")):
        selectors = re.findall(r"^\s*([^{}@]+?)\s*\{", sheet.read_text(), re.MULTILINE)
        named = {name for selector in selectors for name in re.findall(r"[.#]([a-zA-Z][\w-]*)", selector)}
        assert named - words - generated == set(), sheet.name


def test_every_colour_is_defined_for_light_and_dark_and_used() -> None:
    sheet = (STATIC / "css" / "base.css").read_text()
    light, dark = (set(re.findall(r"--([\w-]+):", body)) for body in re.findall(r":root[^{]*\{([^}]*)\}", sheet))
    sheets = "".join(path.read_text() for path in STATIC.glob("css/*.css"))
    scripts = "".join(SCRIPTS.values())
    assert light == dark
    unused = [name for name in light if f"var(--{name})" not in sheets + scripts and f'"{name}"' not in scripts]
    assert unused == []


def test_nothing_is_styled_or_scripted_inline() -> None:
    """The content security policy would refuse it."""
    page = (STATIC / "index.html").read_text()
    assert "style=" not in page and not re.search(r"<script(?![^>]*src=)", page) and not re.search(r"\son\w+=", page)
    for path, text in SCRIPTS.items():
        assert "innerHTML" not in text and "style: " not in text and "eval(" not in text, path.name


def test_tools_have_exact_versions_and_no_lock_file_is_kept() -> None:
    package = json.loads((ROOT / "package.json").read_text())
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in package["devDependencies"].values())
    assert "package-lock.json" in (ROOT / ".gitignore").read_text().split()


def test_the_wheel_takes_all_static_files() -> None:
    """Else an installed dashboard would show an empty page; types are for the type checker only."""
    patterns = re.findall(r'"(dashboard/static/[^"]*)"', (ROOT / "pyproject.toml").read_text())
    package = ROOT / "src" / "inca"
    shipped = {path for pattern in patterns for path in package.glob(pattern)}
    assert {path for path in STATIC.rglob("*") if path.is_file() and path.suffix != ".ts"} <= shipped
