"""The page of a content: texts of files stay texts, and a browser loads nothing and runs nothing."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from helpers.browser import browser, watched
from helpers.ended_sessions import write_session
from helpers.paths import EXAMPLES, ROOT
from inca.cli.report.sources import report_content
from inca.reporting.html import page

HOSTILE = "<script>document.title='run'</script><img src=http://192.0.2.1/x onerror=alert(1)>\"'&"


@pytest.fixture
def hostile_session(tmp_path: Path) -> Path:
    """A session in whose files every text would like to be a program."""
    folder = tmp_path / "state" / "0123"
    write_session(folder)
    result: dict[str, object] = {
        "name": HOSTILE,
        "party": HOSTILE,
        "reason": HOSTILE,
        "cohort": [HOSTILE],
    }
    result |= {"remarks": [HOSTILE], "session": HOSTILE, "inca": HOSTILE, "execution": HOSTILE}
    change(folder / "result.json", result)
    certificate: dict[str, object] = {
        "notion": HOSTILE,
        "assumptions": [HOSTILE],
        "inca": HOSTILE,
        "execution": HOSTILE,
    }
    change(folder / "certificate.json", certificate)
    (folder / "log.jsonl").write_text(json.dumps({"event": HOSTILE}))
    return folder


def change(path: Path, fields: dict[str, object]) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


class Elements(HTMLParser):
    """The words and the elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.elements: list[tuple[str, list[str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, [name for name, _ in attrs]))

    def handle_data(self, data: str) -> None:
        self.words += data.split()


def test_texts_of_files_stay_texts(hostile_session: Path) -> None:
    found = Elements(page(report_content(hostile_session, None)))
    assert " ".join(found.words).count(" ".join(HOSTILE.split())) >= 12
    assert not {tag for tag, _ in found.elements} & {"script", "link", "img", "iframe", "a", "form", "object"}
    assert not [name for _, names in found.elements for name in names if name.startswith("on")]


@pytest.mark.parametrize(("width", "dark"), [pytest.param(1280, False, marks=pytest.mark.slow), (390, True)])
def test_a_browser_loads_nothing_and_runs_nothing(
    width: int, dark: bool, hostile_session: Path, tmp_path: Path
) -> None:
    pages = {
        "hostile": hostile_session,
        "plan": EXAMPLES / "waiting-times-plan.json",
        "execution": ROOT / "examples" / "consortium.json",
    }
    for name, path in pages.items():
        (tmp_path / f"{name}.html").write_text(page(report_content(path, None)))
    with browser() as chromium, watched(chromium, "file://", width=width, dark=dark) as window:
        for name in pages:
            window.page.goto((tmp_path / f"{name}.html").as_uri())
            assert window.page.title() != "run" and window.page.locator("svg").count() >= 2
            assert window.page.evaluate("document.documentElement.scrollWidth") <= width, name
            colour = window.page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (colour == "rgb(255, 255, 255)") is not dark
        assert not window.errors and window.requests == [(tmp_path / f"{name}.html").as_uri() for name in pages]
