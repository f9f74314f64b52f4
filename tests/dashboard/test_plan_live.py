"""The plan view as a slider moves: formulas at once, ranges that narrow, and where one is among messages and errors."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

import inca
from helpers.browser import TIMEOUT_MS, Watched
from helpers.dashboard_server import Dashboard
from inca.mechanisms.compare import baselines, evaluate
from inca.planning.search import plan
from inca.protocol.usefulness import remark_on_error

WITH_FORMULAS = ("Central DP", "Local DP", "secure aggregation", "CorDP-DME")
SAMPLED: dict[str, object] = {"parties": 12, "epsilon": 2, "colluding": 0.1, "eavesdropped": 0.1, "messages": 16}


def opened(window: Watched, address: str) -> Page:
    page = window.visit(address)
    expect(page.locator(".shown[aria-busy=false]")).to_be_visible()
    return page


def wait_for(page: Page, condition: Callable[[], bool]) -> None:
    for _ in range(TIMEOUT_MS // 50):
        if condition():
            return
        page.wait_for_timeout(50)
    raise TimeoutError(f"a question was not asked within {TIMEOUT_MS} ms")


def own_entries(board: Dashboard, **params: object) -> list[dict[str, Any]]:
    lines = board.get("/api/estimate", **params).lines
    return [line["entry"] for line in lines if "entry" in line and line["entry"]["mechanism"].startswith("inca")]


# --- the server -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_error_of_the_plan_lies_in_all_ranges_and_the_figure_is_the_worse_end(board: Dashboard) -> None:
    entries = own_entries(board, **SAMPLED, views=40)
    *_, last = board.get("/api/plan", **SAMPLED, views=40).lines
    error = last["entry"]["mse"]
    assert len(entries) >= 3 and entries[0]["views"] == 0
    for entry in entries:
        assert entry["low"] <= error <= entry["mse"]
        assert sum(entry["parts"].values()) == pytest.approx(entry["mse"])
    for before, after in itertools.pairwise(entries):
        assert after["views"] > before["views"] and after["mse"] <= before["mse"] * (1 + 1e-8)
    assert last["entry"]["low"] is None


def test_what_is_looked_up_is_the_plans_error(board: Dashboard) -> None:
    (entry,) = own_entries(board, parties=60, epsilon=1, colluding=0.1, dropout=0.1)
    required = inca.Requirements(60, 1.0, 1e-5, colluding=0.1, dropout=0.1)
    assert entry["mse"] == plan(required).expected_mse and entry["low"] is None and entry["views"] is None


def test_the_tradeoff_is_that_of_plans_with_so_many_rounds(board: Dashboard) -> None:
    answer = board.ask("tradeoff", parties=60, epsilon=1, colluding=0.1, dropout=0.1)
    required = inca.Requirements(60, 1.0, 1e-5, colluding=0.1, dropout=0.1, messages=30)
    assert [point["messages"] for point in answer["points"]] == [7, 9, 11, 15, 21, 31]
    for point in answer["points"]:
        exact = plan(required, inca.PlanOptions(rounds=point["rounds"]))
        assert required.var_local_dp * point["noise"] + answer["data"] == pytest.approx(exact.expected_mse)
    other = board.ask("tradeoff", parties=60, epsilon=3, colluding=0.1, dropout=0.1)
    assert [p["noise"] for p in other["points"]] == pytest.approx([p["noise"] for p in answer["points"]])


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"eavesdropped": 0.35}, "end at 30 % of all messages"),
        ({"parties": 8}, "start at 10 parties"),
        ({"colluding": 0.6, "dropout": 0.3}, "do not reach so many colluders and leavers"),
    ],
)
def test_where_the_tables_do_not_reach_the_tradeoff_says_so(
    board: Dashboard, params: dict[str, object], why: str
) -> None:
    answer = board.ask("tradeoff", **params)
    assert answer["points"] == [] and why in answer["why_not"] and answer["entry"] is None


# --- formulas in the page ---------------------------------------------------------------------------------------------


def test_formulas_in_the_page_are_the_librarys(window: Watched) -> None:
    page = window.visit("/file")
    sizes = [(2, 0.0, 0.0), (30, 0.1, 0.1), (45, 0.3, 0.3), (200, 0.07, 0.025), (999, 0.0, 0.5), (10_000, 0.2, 0.2)]
    guarantees = [(0.01, 1e-12), (0.5, 1e-5), (3.0, 1e-3), (20.0, 0.1), (0.3, 1e-5)]
    asked: list[dict[str, Any]] = [
        {"parties": n, "colluding": c, "dropout": d, "epsilon": e, "delta": delta, "eavesdropped": 0, "messages": 20}
        for (n, c, d), (e, delta) in itertools.product(sizes, guarantees)
    ]
    script = """async (asked) => {
      const place = new URL("widgets/plan/closed_forms.js", document.scripts[0].src);
      const { byFormula, formulaErrors, headOf } = await import(place);
      return asked.map((question) => [[...formulaErrors(question)], headOf(question, []),
        Object.fromEntries([...formulaErrors(question)].map(([name, error]) =>
          [name, byFormula({}, error, question).remark]))]);
    }"""
    for question, (errors, head, remarks) in zip(asked, page.evaluate(script, asked), strict=True):
        required = inca.Requirements(**question)
        assert (head["colluders"], head["leavers"]) == (required.colluders, required.leavers)
        shown = dict(errors)
        for name, make in baselines(required):
            if name not in WITH_FORMULAS and not name.startswith("secure"):
                continue
            entry = evaluate(name, make, required)
            assert (name in shown) == (entry.why_not == ""), (name, question)
            if entry.mse is None:
                continue
            assert shown[name]["mse"] == pytest.approx(entry.mse, rel=1e-8), (name, question)
            assert shown[name]["messages"] in (None, entry.messages)
            assert remarks[name] == remark_on_error(entry.mse, 1.0)


def test_formulas_follow_a_slider_while_no_server_answers(window: Watched) -> None:
    page = opened(window, "/plan?parties=100&epsilon=1")
    page.route("**/api/**", lambda route: None)  # never answered
    page.get_by_label("Epsilon, slider").evaluate(
        "slider => { slider.value = Math.log10(2); slider.dispatchEvent(new Event('input')); }"
    )
    required = inca.Requirements(100, 2.0, 1e-5, colluding=0.1, dropout=0.1)
    bars = page.locator(".shown svg[role=img]").first
    for name, make in baselines(required):
        if name in WITH_FORMULAS:
            error = evaluate(name, make, required).mse
            assert error is not None
            expect(bars).to_have_attribute("aria-label", re.compile(rf"{name} {error:.3g}\b"))
    own = plan(required).expected_mse  # another epsilon changes nothing but the unit of the noise
    expect(bars).to_have_attribute("aria-label", re.compile(rf"inca, quick estimate {own:.3g}\b"))
    expect(page.locator(".outcome strong")).to_have_text(f"{own**0.5:.2g}")
    expect(bars).to_contain_text("being computed")  # Muffliato has no formula


def test_other_sliders_show_at_once_what_is_known_and_what_is_not(window: Watched) -> None:
    page = opened(window, "/plan?parties=100&epsilon=1")
    page.route("**/api/**", lambda route: None)
    page.get_by_label("Parties", exact=True).fill("50")
    bars = page.locator(".shown svg[role=img]").first
    local = inca.Requirements(50, 1.0, 1e-5, colluding=0.1, dropout=0.1)
    error = evaluate("Local DP", dict(baselines(local))["Local DP"], local).mse
    assert error is not None
    expect(bars).to_have_attribute("aria-label", re.compile(rf"Local DP {error:.3g}\b"))
    expect(page.locator(".shown.outdated .outcome")).to_be_visible()
    expect(page.get_by_text("The figure above is for the requirements before.")).to_be_visible()
    expect(page.locator(".counts")).to_contain_text("45 honest parties")


def test_the_tables_are_asked_one_question_at_a_time_and_the_newest_wins(window: Watched) -> None:
    page = opened(window, "/plan?parties=100&epsilon=1")
    waiting: list[Route] = []
    page.route("**/api/estimate**", lambda route: None)

    def hold(route: Route) -> None:
        waiting.append(route)

    page.route("**/api/tradeoff**", hold)
    parties = page.get_by_label("Parties", exact=True)
    parties.fill("90")
    wait_for(page, lambda: len(waiting) == 1)  # it is asked once the page is painted; what is filled before replaces it
    for number in ("80", "70", "60"):
        parties.fill(number)
    page.wait_for_timeout(300)
    assert len(waiting) == 1 and "parties=90" in waiting[0].request.url
    waiting[0].continue_()
    wait_for(page, lambda: len(waiting) == 2)
    assert "parties=60" in waiting[1].request.url
    waiting[1].continue_()
    own = plan(inca.Requirements(60, 1.0, 1e-5, colluding=0.1, dropout=0.1)).expected_mse
    expect(page.locator(".outcome strong")).to_have_text(f"{own**0.5:.2g}")
    assert len(waiting) == 2


# --- ranges and the picture -------------------------------------------------------------------------------------------


def test_a_range_is_shown_in_words_and_in_the_picture_and_called_an_estimate(window: Watched) -> None:
    query = "&".join(f"{name}={value}" for name, value in SAMPLED.items())
    page = window.visit(f"/plan?{query}")
    outcome = page.locator(".outcome .big")
    expect(outcome).to_contain_text(re.compile(r"about [\d.]+ to [\d.]+ off"))
    words, strong = outcome.evaluate("big => [big.innerText, big.querySelector('strong').innerText]")
    low, high = (float(word) for word in re.findall(r"\d+\.\d+", words))
    assert low <= high and float(strong) == high
    expect(page.locator(".remark")).to_contain_text(re.compile("An estimate, not a guarantee: a range from [0-9]+ of"))
    expect(page.locator(".tradeoff .range")).to_have_count(1)
    expect(page.locator(".tradeoff")).to_contain_text("you are here, at worst")
    expect(
        page.get_by_text("The curves are left out: with eavesdroppers the tables of drawn views start at 50 parties")
    ).to_be_visible()


def test_you_are_here_moves_and_points_are_read_by_keys(window: Watched, tmp_path: Path) -> None:
    page = opened(window, "/plan?parties=100&epsilon=1")
    here = page.locator(".tradeoff .here")
    before = float(here.get_attribute("cx") or 0)
    expect(page.locator(".tradeoff-words")).to_contain_text("You are here: epsilon 1, 21 messages")
    page.get_by_label("Messages per party", exact=True).fill("10")
    expect(page.locator(".tradeoff-words")).to_contain_text("You are here: epsilon 1, 11 messages")
    assert float(here.get_attribute("cx") or 0) < before
    expect(page.locator(".shown[aria-busy=false]")).to_be_visible()
    page.locator(".tradeoff").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".tradeoff-words")).to_contain_text("Epsilon 0.3, 7 messages (6 rounds, and the final one)")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".tradeoff-words")).to_contain_text("You are here")
    card = page.locator("section", has=page.get_by_role("heading", name="Error against messages against privacy"))
    card.get_by_text("The same as a table").click()
    expect(card.get_by_role("columnheader", name="epsilon 0.3")).to_be_visible()
    with page.expect_download() as started:
        card.get_by_role("button", name="Save picture").click()
    started.value.save_as(tmp_path / "tradeoff.svg")
    assert "you are here" in (tmp_path / "tradeoff.svg").read_text()


def test_results_are_above_the_fold_and_on_a_telephone_the_figure_stays_in_sight(window: Watched) -> None:
    window.begin(width=1280, height=800)
    page = opened(window, "/plan")
    page.wait_for_function("""() => {  // as it may be about to be drawn again, in the width of its card
      const box = document.querySelector(".shown svg[role=img]")?.getBoundingClientRect();
      return box && box.height > 0 && box.bottom <= 800;
    }""")
    window.begin(width=390, height=844)
    opened(window, "/plan")
    slider = page.get_by_label("Epsilon, slider")
    slider.scroll_into_view_if_needed()
    expect(page.locator(".brief")).to_be_in_viewport()
    before = page.locator(".brief").inner_text()
    slider.evaluate("slider => { slider.value = 0.5; slider.dispatchEvent(new Event('input')); }")
    expect(page.locator(".brief")).not_to_have_text(before)
    expect(page.locator(".brief")).to_be_in_viewport()
