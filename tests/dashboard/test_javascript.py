"""The pages' own code: what tools from npm (`make javascript`) cannot tell about it."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest

import inca
from helpers.dashboard_documents import certificates, proven_plan, write_ended_session
from helpers.dashboard_server import CONSORTIUM, Dashboard, running
from helpers.paths import ROOT
from inca.dashboard.questions import PlanQuestion
from inca.reporting.content import content
from inca.reporting.execution import execution_content
from inca.reporting.parts import Figure, Row, Sentence, Standing, Table
from inca.reporting.svg import FIGURE_STYLE

STATIC = ROOT / "src" / "inca" / "dashboard" / "static"
SCRIPTS = {path: path.read_text() for path in sorted(STATIC.rglob("*.js"))}
INTERFACE = re.compile(r"^export interface (\w+) (?:extends \w+ )?\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
MAX_FILES_IN_A_FOLDER = 15


def interface(name: str) -> dict[str, bool]:
    """Return the fields that types.d.ts names, and whether each of them must be there."""
    bodies = dict(INTERFACE.findall((STATIC / "js" / "lib" / "types.d.ts").read_text()))
    return {field: not optional for field, optional in re.findall(r"^  (\w+)(\??):", bodies[name], re.MULTILINE)}


def required(name: str) -> set[str]:
    return {field for field, must in interface(name).items() if must}


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    state = tmp_path_factory.mktemp("state")
    write_ended_session(state)
    with running([state], [CONSORTIUM]) as dashboard:
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
        "DocumentContent": session["content"],
    }
    for name, answer in answers.items():
        assert set(answer) == required(name) == set(interface(name)), name


def test_the_types_of_plans_and_mechanisms_are_those_of_the_server(board: Dashboard) -> None:
    plan = board.ask("plan", parties=12, epsilon=4)
    assert set(plan) == required("PlanAnswer") and set(plan["content"]) == required("DocumentContent")
    entries = board.get("/api/slow-mechanisms", parties=4, epsilon=4, colluding=0, dropout=0).lines
    assert entries and all(set(line["entry"]) == required("MechanismEntry") for line in entries)
    assert set(PlanQuestion.__struct_fields__) == required("Requirements")


def test_the_types_of_files_and_contents_are_those_of_the_server(board: Dashboard) -> None:
    for document in (certificates()["within"], proven_plan()):
        board.post("/api/open?name=x.json", msgspec.json.encode(document.as_fields()))
    for listed in board.ask("files")["files"]:
        file = board.ask("file", file=listed["id"])
        assert set(listed) == required("OpenedFile") and set(file) == required("OpenedFile") | required("FileAnswer")
        assert set(file["content"]) == required("DocumentContent") == set(interface("DocumentContent"))
    parts = {"ContentSentence": Sentence, "ContentRow": Row, "ContentTable": Table, "ContentFigure": Figure}
    for name, kind in parts.items():
        assert required(name) == {field.name for field in dataclasses.fields(kind)}, name


def test_all_standings_have_a_sign_and_a_look() -> None:
    card = SCRIPTS[STATIC / "js" / "widgets" / "content_card.js"]
    (table,) = re.findall(r"const STANDINGS = \{(.*?)\};", card, re.DOTALL)
    assert set(re.findall(r"(\w+): \[", table)) == set(get_args(Standing))


def test_every_class_of_a_drawing_has_a_rule_and_every_colour_of_it_is_one_of_the_page(board: Dashboard) -> None:
    (session,) = board.ask("sessions")["sessions"]
    contents = [content(document) for document in certificates().values()]
    contents.append(content(proven_plan()))
    contents.append(execution_content(inca.read_execution(CONSORTIUM)))
    figures = [figure for said in contents for figure in said.figures]
    figures += [Figure(**fields) for fields in board.ask("session", session=session["id"])["content"]["figures"]]
    used = {
        word for figure in figures for words in re.findall(r'class="([^"]*)"', figure.svg) for word in words.split()
    }
    used |= {word for figure in figures for kind, _ in figure.legend for word in kind.split()}
    ruled = set(re.findall(r"\.([a-z]\w*)", FIGURE_STYLE))
    assert used - ruled == {"level0"} and {"a", "b", "c", "warn", "gone", "line", "silent"} <= used
    page = set(re.findall(r"--([\w-]+):", (STATIC / "css" / "base.css").read_text()))
    assert set(re.findall(r"var\(--([\w-]+)", FIGURE_STYLE)) - page == {"domain"}  # of reports; the page falls back


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
