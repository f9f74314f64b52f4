"""Saved pictures in a real browser: whoever gets one without the page knows what it shows, and of what."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from helpers.browser import Watched
from helpers.dashboard_documents import certificates
from helpers.dashboard_server import CONSORTIUM, Dashboard, running

SVG = "{http://www.w3.org/2000/svg}"
RUN = "parties=9&rounds=6&seed=7&party=2&t=3"
OF_RUN = ("parties 9", "rounds 6", "seed 7", "independent noise 5", "cancelling noise 60", "records per value 60")
GUESSES = ("true value", "best guess, plus or minus", "guessing the middle")

Expected = dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]]
"""By the name of the file: words of the title, of the legend, and of the parameters."""

OF_VIEWS: dict[str, Expected] = {
    "/plan?parties=30&epsilon=2&messages=8": {
        "errors.svg": (
            "About how far off each mechanism is",
            ("inca", "Local DP", "* a weaker guarantee than inca's: Central DP."),
            ("parties 30", "epsilon 2", "delta 0.00001", "colluding 0.1", "dropping out 0.1", "messages per party 8"),
        ),
    },
    f"/run?{RUN}": {
        "inca-run-7.png": (
            "A run, round 3 of 6",
            ("value part", "noise part", "weight", "share sent", "absent"),
            (*OF_RUN, "round 3"),
        ),
        "inca-rounds.svg": ("The estimate as it forms", ("estimate from all messages", "true mean"), OF_RUN),
        "inca-party.svg": ("What party 2 holds", ("the message others see", "its value part"), OF_RUN),
    },
    "/adversary?parties=9&rounds=6&seed=7&colluding=1+4&compare=1": {
        "what-it-sees.png": ("What it sees", ("seen", "not seen", "colluder"), (*OF_RUN, "colluding 1 4")),
        "losses.svg": (
            "What each party loses",
            ("loss of an honest party", "the party that is looked at"),
            (*OF_RUN, "delta 0.00001"),
        ),
        "guesses.svg": ("the guesser knows nothing else", GUESSES, OF_RUN),
        "two-cases.svg": ("Which of two values is it?", ("in one case", "in the other"), OF_RUN),
        "epsilon-delta.svg": ("Epsilon for every delta", ("delta for every epsilon",), (*OF_RUN, "delta 0.00001")),
        "guesses-incremental.svg": ("The protocol: best guesses", GUESSES, (*OF_RUN, "injection incremental")),
        "guesses-single.svg": ("One noise term for all rounds", GUESSES, (*OF_RUN, "injection single")),
    },
}


@pytest.fixture(scope="module")
def board() -> Iterator[Dashboard]:
    with running(opened=[CONSORTIUM]) as dashboard:
        yield dashboard


@pytest.fixture(params=[pytest.param(False, marks=pytest.mark.slow), True], ids=["light", "dark"])
def window(window: Watched, request: pytest.FixtureRequest) -> Watched:
    window.begin(dark=request.param)
    return window


def ready(window: Watched, address: str) -> Page:
    """Open a view, and wait until all of its pictures are there."""
    page = window.visit(address)
    if "/plan" in address:
        expect(page.locator(".comparison svg")).to_be_visible()
    elif "/run" in address:
        expect(page.locator(".run-drawing svg")).to_have_count(2)
        expect(page.locator("main:not([aria-busy=true])")).to_be_visible()
    elif "compare" in address:
        expect(page.locator("figure").filter(has_text="One noise term").locator("svg")).to_be_visible()
    return page


def saved(page: Page, folder: Path) -> dict[str, Path]:
    """Press every button that saves a picture."""
    files = {}
    for button in page.get_by_role("button", name="Save picture").all():
        with page.expect_download() as started:
            button.click()
        name = started.value.suggested_filename
        started.value.save_as(folder / name)
        files[name] = folder / name
    return files


def texts(drawing: str) -> str:
    """Return all words of a drawing; lines that were broken are joined."""
    return " ".join("".join(text.itertext()) for text in ET.fromstring(drawing).iter(f"{SVG}text"))


CANVAS = """async () => {
  const { selfExplained, asSvg } = await import(new URL("widgets/saved_picture.js", document.scripts[0].src));
  const canvas = document.querySelector("main canvas");
  return await asSvg(selfExplained(canvas, canvas.className === "stage" ? "A run, round 3 of 6" : undefined)).text();
}"""


@pytest.mark.parametrize("address", OF_VIEWS)
def test_every_saved_picture_has_its_title_its_legend_and_its_parameters(
    window: Watched, tmp_path: Path, address: str
) -> None:
    page, pictures = ready(window, address), OF_VIEWS[address]
    files = saved(page, tmp_path)
    assert set(files) == set(pictures)
    for name, (title, legend, parameters) in pictures.items():
        if name.endswith(".png"):
            content = files[name].read_bytes()
            width, height = struct.unpack(">II", content[16:24])
            assert content.startswith(b"\x89PNG") and width >= 680 and height > 400
            drawing = page.evaluate(CANVAS)  # from which the pixels are made
        else:
            drawing = files[name].read_text()
        words = texts(drawing)
        for expected in (title, *legend, *parameters):
            assert expected in words, (name, expected, words)
        assert "var(--" not in re.sub(r'(fill|stroke)="var\([^"]*"', "", drawing)  # a file has no style sheet


def test_the_picture_of_a_certificate_says_against_whom(window: Watched, tmp_path: Path) -> None:
    certificates()["within"].write(tmp_path / "certificate.json")
    page = window.visit("/file")
    page.locator("input[type=file]").set_input_files(tmp_path / "certificate.json")
    expect(page.locator("figure svg")).to_be_visible()
    drawing = saved(page, tmp_path)["the-loss-of-every-honest-party.svg"].read_text()
    words = texts(drawing)
    for expected in (
        "Certificate of privacy: The loss of every honest party",
        "an honest party",
        "required, ",
        "Epsilon at delta 1e-05, exact losses; 1 of 9 parties collude",
        "9 parties, 8 rounds",
    ):
        assert expected in words, words
    bars = [part for part in ET.fromstring(drawing).iter(f"{SVG}rect") if part.get("class") == "a"]
    own = window.page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--own')").strip()
    colour = "rgb({}, {}, {})".format(*(int(own[at : at + 2], 16) for at in (1, 3, 5)))
    assert len(bars) == 8 and all(f"fill: {colour}" in (bar.get("style") or "") for bar in bars)
    assert "paint-order: stroke" in drawing  # or the halo of letters would cover them


def test_the_pictures_of_a_run_from_a_file_name_the_file(window: Watched, board: Dashboard, tmp_path: Path) -> None:
    (opened,) = (file for file in board.ask("files")["files"] if file["kind"] == "an execution")
    ready(window, f"/run?file={opened['id']}&party=1")
    files = saved(window.page, tmp_path)
    for name, title in (("inca-rounds.svg", "How many are present"), ("inca-party.svg", "The weight of party 1")):
        words = texts(files[name].read_text())
        assert title in words and f"file {opened['id']}" in words


def test_the_picture_has_the_colours_of_the_page(window: Watched, tmp_path: Path) -> None:
    ready(window, f"/run?{RUN}")
    ground = window.page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--card')").strip()
    drawing = ET.fromstring(saved(window.page, tmp_path)["inca-rounds.svg"].read_text())
    paper = drawing.find(f"{SVG}rect")
    assert paper is not None and paper.get("fill") == ground


def test_a_picture_that_is_about_to_change_is_not_saved(window: Watched) -> None:
    """Else the parameters below it would be those of another."""
    page = ready(window, f"/run?{RUN}")
    page.evaluate("document.querySelector('main').setAttribute('aria-busy', 'true')")
    page.get_by_role("button", name="Save picture").first.click()
    expect(page.locator("#status")).to_have_text("The picture is being computed: save it when it is there.")
