"""The documentation site: every page is in one group, and the site is complete and asks nothing of other machines."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser

import inca
from docsite import navigation, pages
from docsite.mathml import mathml
from helpers.browser import browser, watched
from helpers.paths import ROOT
from inca._base import palette

DOCS = ROOT / "docs"
FORMULAS = ("notation", "accounting", "settlement", "conditions", "failure-probability", "noise-design", "errata")
"""Pages with formulas."""
LOOKED_AT = ("index", "tutorial-researcher", "notation", "accounting", "reference/average", "command-line")


def formulas(text: str) -> list[str]:
    """Return the LaTeX of a page, outside of code."""
    prose = re.sub(r"^ *```.*?^ *```|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    return [block or inline for block, inline in re.findall(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", prose, flags=re.DOTALL)]


def test_every_page_is_in_exactly_one_group() -> None:
    names = [pages.place(name).removesuffix(".md") for name in pages.sources()]
    assert Counter(navigation.listed()) == Counter(set(names) - {"index"})
    assert list(navigation.GROUPS)[:4] == ["Tutorials", "How-to", "Explanation", "Reference"]
    assert set(navigation.SHORT) <= set(names)


def test_every_formula_can_be_drawn() -> None:
    for name in FORMULAS:
        those = formulas((DOCS / f"{name}.md").read_text())
        assert len(those) >= 3, name
        for latex in those:
            assert mathml(latex, display=False).endswith("</math>")


class Page(HTMLParser):
    """What a page has to be led to: links, what it loads by itself, and the places within it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.places |= {values[name] for name in ("id", "name") if name in values}
        targets = [values[name] for name in ("href", "src", "data", "poster", "action") if name in values]
        targets += [part.split()[0] for part in values.get("srcset", "").split(",") if part.strip()]
        targets += re.findall(r"url\(['\"]?([^'\")]+)", values.get("style", ""))
        (self.links if tag == "a" else self.loads).extend(targets)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documentation") / "site"
    call = [sys.executable, "tools/docsite/build.py", str(folder)]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr and not done.stdout, done.stderr + done.stdout
    return folder


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


def is_elsewhere(link: str) -> bool:
    return bool(urlsplit(link).netloc) or urlsplit(link).scheme in ("http", "https")


@pytest.mark.slow
def test_every_page_is_there(site: Path) -> None:
    for name in pages.sources():
        assert (site / pages.place(name)).with_suffix(".html").is_file(), name
    assert len(list(site.glob("_downloads/*/consortium.py"))) == 1
    start = (site / "index.html").read_text()
    assert "Private averages without a server" in start and 'src="_images/run.png"' in start
    shown = "".join(page.read_text() for page in (site / "reference").glob("*.html"))
    for name in inca.__all__:
        assert re.search(rf'id="(class|function|value)-inca-{name.strip("_").replace("_", "-").lower()}"', shown), name


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_are_mathml_and_nothing_is_left_of_their_source(name: str, site: Path) -> None:
    text = (site / f"{name}.html").read_text()
    article = text[text.index("<article") : text.index("</article>")]
    assert article.count("<math ") == len(formulas((DOCS / f"{name}.md").read_text()))
    prose = re.sub(r"<math .*?</math>|<pre>.*?</pre>|<code.*?</code>", "", article, flags=re.DOTALL)
    assert "$" not in prose and not re.search(r"\\[a-zA-Z]", prose)


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        page = Page(path)
        assert not [target for target in page.loads if is_elsewhere(target)], path
    for path in site.rglob("*.css"):
        text = path.read_text()
        assert not re.search(r"@import|url\(['\"]?(https?:)?//", text), path


@pytest.mark.slow
def test_links_within_the_site_lead_somewhere(site: Path) -> None:
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        for link in {*page.links, *page.loads}:
            parts = urlsplit(link)
            if is_elsewhere(link) or parts.scheme in ("data", "javascript", "mailto"):
                continue
            start = site if parts.path.startswith("/") else path.parent
            target = (start / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), f"{path.name}: {link}"
            if parts.fragment and target in pages and not parts.fragment.startswith("__"):
                assert unquote(parts.fragment) in pages[target].places, f"{path.name}: {link}"


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_opened_from_a_folder_fit_and_have_our_colours(
    width: int, dark: bool, site: Path, chromium: Browser
) -> None:
    theme = palette.DARK if dark else palette.LIGHT
    wanted = "rgb({}, {}, {})".format(*(int(theme["paper"][at : at + 2], 16) for at in (1, 3, 5)))
    with watched(chromium, site.as_uri(), width=width, dark=dark) as window:
        for name in LOOKED_AT:
            window.page.goto((site / f"{name}.html").as_uri())
            assert window.page.evaluate("document.documentElement.scrollWidth") <= width, name
            assert window.page.evaluate("getComputedStyle(document.body).backgroundColor") == wanted, name
        window.check()


@pytest.mark.slow
def test_formulas_are_seen(site: Path, chromium: Browser) -> None:
    with watched(chromium, site.as_uri()) as window:
        for name in FORMULAS:
            window.page.goto((site / f"{name}.html").as_uri())
            sizes = window.page.evaluate(
                "[...document.querySelectorAll('math')].map(formula => formula.getBoundingClientRect().toJSON())"
            )
            assert sizes and all(size["width"] > 3 and size["height"] > 3 for size in sizes), name
        window.check()


@pytest.mark.slow
def test_search_works_from_a_folder(site: Path, chromium: Browser) -> None:
    with watched(chromium, site.as_uri()) as window:
        window.page.goto((site / "index.html").as_uri())
        window.page.fill("input[name=q]", "settlement")
        window.page.press("input[name=q]", "Enter")
        window.page.wait_for_selector("#search-results li a[href*='settlement.html']")
        window.check()


@pytest.mark.slow
def test_every_rule_of_the_style_sheet_is_used(site: Path, chromium: Browser) -> None:
    sheet = re.sub(r"/\*.*?\*/|@font-face \{.*?\}", "", (site / "_static" / "site.css").read_text(), flags=re.DOTALL)
    # What depends on the keyboard or on the reader's theme is there if what it is about is.
    plain = re.sub(r":focus-visible", "*", re.sub(r'body(:not\()?\[data-theme="\w+"\]\)?', "body", sheet))
    unused = {selector.strip() for selector in re.findall(r"([^{}@]+)\{", plain)} - {""}
    unused = {selector for selector in unused if not selector.startswith(("media", "("))}
    assert len(unused) > 15
    with watched(chromium, site.as_uri()) as window:
        for name in LOOKED_AT:
            window.page.goto((site / f"{name}.html").as_uri())
            unused -= {one for one in unused if window.page.evaluate("one => !!document.querySelector(one)", one)}
    assert not unused
