"""Runs, files and sessions in a real browser: no request leaves the machine, and nothing goes wrong."""

from __future__ import annotations

import json
import random
import re
import threading
from pathlib import Path

import msgspec
import numpy as np
import pytest
from playwright.sync_api import Browser, expect

import inca
from helpers.browser import Watched, numbers, watched
from helpers.dashboard_documents import write_ended_session
from helpers.dashboard_server import CONSORTIUM, Dashboard, running
from inca.dashboard.simulated_run import SimulatedRun
from inca.documents.result import ResultDocument
from inca.network.testing.demo import Demo

REFUSED = "the server responded with a status of 400"  # the browser's own line when a question is refused


# --- run --------------------------------------------------------------------------------------------------------------

RUN = "parties=12&rounds=8&seed=3"


def test_stepping_playing_and_scrubbing(window: Watched) -> None:
    page = window.visit("/run?parties=12&rounds=4&seed=3")  # a round plays for a second
    expect(page.get_by_text("Round 1 of 4")).to_be_visible()
    page.get_by_role("button", name="One round on").click()
    expect(page.get_by_text("Round 2 of 4")).to_be_visible()
    stage = page.locator("canvas").first
    stage.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("Round 3 of 4")).to_be_visible()
    page.keyboard.press("End")
    expect(page.get_by_text("Round 4 of 4")).to_be_visible()
    expect(page).to_have_url(re.compile("t=4"))
    page.keyboard.press("Home")
    page.get_by_role("button", name=re.compile("play", re.I)).click()
    expect(page.get_by_text("Round 4 of 4")).to_be_visible()


def test_a_party_is_killed_and_comes_back(window: Watched, board: Dashboard) -> None:
    page = window.visit(f"/run?{RUN}&t=3&party=5")
    expect(page.get_by_text("Party 5 is honest and is present")).to_be_visible()
    page.get_by_role("button", name="Leaves here").click()
    expect(page).to_have_url(re.compile(r"absent=5%3A4-"))
    page.locator("canvas").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text(re.compile("Round 4 of 8:.*party 5 is absent"))).to_be_visible()
    page.keyboard.press("ArrowRight")
    page.get_by_role("button", name="Comes back here").click()
    expect(page).to_have_url(re.compile(r"absent=5%3A4-5"))
    page.locator("canvas").first.focus()
    page.keyboard.press("End")
    expect(page.get_by_text("Round 8 of 8: 12 parties")).to_be_visible()
    answer = board.ask("run", parties=12, rounds=8, seed=3, absent="5:4-5")
    result = page.get_by_role("region", name="The result").inner_text()
    estimate = pytest.approx(answer["simulation"]["result"]["estimate"], rel=1e-3)
    assert any(number == estimate for number in numbers(result)), result


def test_an_estimate_outside_the_domain_is_moved_in_and_said_to_be(window: Watched, board: Dashboard) -> None:
    settings = {"parties": 4, "rounds": 5, "sigma_independent": 1200, "sigma_cancelling": 12000}
    seed = next(
        seed
        for seed in range(50)
        if len(board.ask("run", **settings, seed=seed)["simulation"]["result"]["remarks"]) == 2
    )
    address = "&".join(f"{name}={value}" for name, value in settings.items())
    page = window.visit(f"/run?{address}&seed={seed}&t=5")
    result = page.get_by_role("region", name="The result")
    expect(result).to_contain_text("0 to 240")
    expect(result.locator(".warn:not(.verdict)").first).to_contain_text("outside [0, 240]")
    expect(result.locator(".warn").last).to_contain_text("guessing 120, the middle, would do as well.")


EDIT = """async (edits) => {
  const { leave, comeBack } = await import(new URL("lib/absences.js", document.scripts[0].src));
  let words = "";
  return edits.map(([leaves, party, round]) => (words = (leaves ? leave : comeBack)(words, party, round)));
}"""


def test_edits_of_absences_mean_to_the_page_what_they_mean_to_the_server(window: Watched) -> None:
    page, rng, rounds, parties = window.visit("/file"), random.Random(1), 12, 3
    for _ in range(40):
        edits = [(rng.random() < 0.5, rng.randrange(parties), rng.randint(1, rounds)) for _ in range(12)]
        present = np.ones((rounds + 1, parties), dtype=bool)
        for (leave, party, at), words in zip(edits, page.evaluate(EDIT, edits), strict=True):
            if leave:
                present[at:, party] = False
            else:  # until its next absence
                back = at
                while back <= rounds and not present[back, party]:
                    present[back, party] = True
                    back += 1
            read = SimulatedRun(parties=parties, rounds=rounds, absent=words).execution().presence
            np.testing.assert_array_equal([read.row(t) for t in range(rounds + 1)], present)


def test_everyone_gone_has_no_estimate_and_says_so(window: Watched) -> None:
    page = window.visit("/run?parties=3&rounds=4&absent=0:2-+1:2-+2:2-&t=4")
    expect(page.get_by_text(re.compile("no estimate", re.I)).first).to_be_visible()


def test_an_address_can_be_shared(window: Watched) -> None:
    page = window.page
    page.goto(f"{window.root}/run?{RUN}&t=4&absent=2:3-&colluding=1+7&party=2")
    expect(page.get_by_text("Round 4 of 8")).to_be_visible()
    said = page.locator("main").inner_text()
    page.reload()
    expect(page.get_by_text("Round 4 of 8")).to_be_visible()
    expect(page.locator("main[data-step-ms]")).to_be_visible()
    assert page.locator("main").inner_text() == said


def test_both_charts_are_drawn_as_wide_as_their_cards(window: Watched) -> None:
    page = window.visit(f"/run?{RUN}&party=2")
    drawings = page.locator(".run-drawing svg")
    expect(drawings).to_have_count(2)
    expect(drawings.last).to_be_visible()
    # Asked for anew every time: while the page is laid out, drawings make way for others of another width.
    page.wait_for_function(
        """() => [...document.querySelectorAll(".run-drawing svg")].every((drawing) => {
            const [drawn, shown] = [drawing.viewBox.baseVal.width, drawing.clientWidth];
            return drawn > 300 && Math.abs(drawn - shown) <= 1;
        })"""
    )
    drawings.first.click(position={"x": 5, "y": 100})
    expect(page).to_have_url(re.compile(r"t=0"))


def test_views_can_be_left_while_they_are_computing(window: Watched) -> None:
    page = window.visit("/adversary?parties=400&rounds=20")
    for name in ("Plan", "Adversary", "Run", "Sessions", "Files", "Plan", "Run"):
        page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()
        expect(page.locator("main h1")).to_be_visible()
    expect(page.get_by_text("Round 1 of 20")).to_be_visible()  # of the run that the menu keeps
    page.go_back()
    expect(page.get_by_role("heading", name="Plan", exact=True)).to_be_visible()


def test_bad_addresses_are_refused_in_a_sentence(window: Watched) -> None:
    page = window.visit("/run?schedule=star")
    expect(page.get_by_role("alert").filter(has_text=re.compile(r"star|schedule")).first).to_be_visible()
    page = window.visit("/adversary?parties=5&colluding=0+1+2+3+4")
    expect(page.get_by_role("alert").filter(has_text="honest").first).to_be_visible()
    window.errors[:] = [error for error in window.errors if REFUSED not in error]


def test_pictures_can_be_saved(window: Watched, tmp_path: Path) -> None:
    page = window.visit(f"/run?{RUN}")
    expect(page.locator("main[data-step-ms]")).to_be_visible()
    with page.expect_download() as started:
        page.get_by_role("button", name="Save picture").first.click()
    started.value.save_as(tmp_path / "run")
    assert (tmp_path / "run").read_bytes()[:4] in (b"\x89PNG", b"<svg")
    page = window.visit("/adversary?parties=8&colluding=1")
    with page.expect_download() as started:
        page.get_by_role("button", name="Save picture").first.click()
    started.value.save_as(tmp_path / "seen")
    assert (tmp_path / "seen").stat().st_size > 1000


@pytest.mark.parametrize("parties", [2000, pytest.param(200, marks=pytest.mark.slow)])
def test_steps_are_fluid_and_two_thousand_parties_open(window: Watched, parties: int) -> None:
    """That a step is drawn at all, and its time is told; docs/dashboard.md says how long it takes."""
    page = window.visit(f"/run?parties={parties}&rounds=40")
    expect(page.get_by_text("Round 1 of 40")).to_be_visible()
    page.locator("canvas").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("Round 2 of 40")).to_be_visible()
    taken = page.locator("main").get_attribute("data-step-ms")
    assert taken is not None and float(taken) > 0.0


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_certificate_and_an_execution_are_opened_from_file(window: Watched, tmp_path: Path) -> None:
    transcript = inca.read_execution(CONSORTIUM)
    certificate = inca.certify(transcript, delta=1e-5)
    certificate.write(tmp_path / "certificate.json")
    page = window.visit("/file")
    page.locator("input[type=file]").set_input_files(tmp_path / "certificate.json")
    expect(page.get_by_text(re.compile("worst", re.I)).first).to_be_visible()
    expect(page).to_have_url(re.compile(r"file=[0-9a-f]{16}"))
    expect(page.locator("main")).to_contain_text(f"{certificate.worst_epsilon:.3g}")
    page = window.visit("/file")
    page.get_by_role("link", name="consortium.json").click()
    page.get_by_role("link", name="Watch the run").click()
    expect(page).to_have_url(re.compile(r"/run\?.*file="))
    expect(page.get_by_text("Nothing private is in the file").first).to_be_visible()


def test_a_file_that_is_none_of_ours_is_refused(window: Watched, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(json.dumps({"format": "other"}))
    page = window.visit("/file")
    page.locator("input[type=file]").set_input_files(tmp_path / "other.json")
    expect(
        page.get_by_role("alert").filter(has_text="must be a file that this version of inca writes").first
    ).to_be_visible()
    window.errors[:] = [error for error in window.errors if REFUSED not in error]


def test_a_result_is_shown_in_the_domain_with_its_interval(window: Watched, tmp_path: Path) -> None:
    inside = {"constrained": 0.0, "interval": (0.0, 146.5), "remarks": ("It was outside [0, 240].",)}
    result = ResultDocument.read(write_ended_session(tmp_path) / "result.json")
    msgspec.structs.replace(result, estimate=-222.0, **inside).write(tmp_path / "result.json")
    page = window.visit("/file")
    page.locator("input[type=file]").set_input_files(tmp_path / "result.json")
    findings = page.locator(".findings")
    expect(findings).to_contain_text("The estimated mean is 0. The mean of all values lies in 0 to 146.5")
    expect(findings).to_contain_text("It was outside [0, 240].")
    assert "-222" not in page.locator("main").inner_text()
    page.get_by_text("Details", exact=True).click()
    expect(page.get_by_text("-222")).to_be_visible()


# --- sessions ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_real_session_is_followed_to_its_certificate(chromium: Browser) -> None:
    with Demo(5, kill=0, restart=0) as demo:
        home = demo.cluster.party_folder(0)
        (home / "sessions").mkdir(exist_ok=True)
        private = float(np.load(home / "value.npy")[0])
        following = threading.Thread(target=lambda: list(demo.follow()))
        following.start()
        with running([home / "sessions"]) as board, watched(chromium, board.root) as window:
            page = window.visit("/sessions")
            page.get_by_role("link", name="Aachen").first.click()
            expect(page).to_have_url(re.compile("session="))
            expect(page.get_by_role("figure").filter(has_text="The loss of every honest party")).to_be_visible()
            result = json.loads(next((home / "sessions").glob("*/result.json")).read_text())
            expect(page.locator("main")).to_contain_text(f"{result['constrained']:.4g}"[:4])
            answers = board.ask("sessions"), board.ask("session", session=board.ask("sessions")["sessions"][0]["id"])
            for shown in (page.locator("main").inner_text(), json.dumps(answers)):
                assert not any(number == pytest.approx(private, rel=1e-6) for number in numbers(shown))
            window.check()
        following.join()
