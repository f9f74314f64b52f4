from __future__ import annotations

import math
import re
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inca.reproduction.figure_reproduction import Claim, DataTable, FigureResults, Picture, Row
from inca.reproduction.report import MAX_OPEN_ROWS, Provenance, duration, page, shown, summary

PROVENANCE = Provenance("inca reproduce fig9 --seed 7", "0.1.0", 7, False, "sha256:abc", 252.0)
VOID = {"meta", "img"}
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'/>"
NASTY = "<script>alert(1)</script> \"'&amp;"


class Tree(HTMLParser):
    """The tags of a page in order, with the texts and attributes found in them; fails where tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.declarations: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_decl(self, decl: str) -> None:
        self.declarations.append(decl)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert len(attrs) == len(dict(attrs)), f"an attribute twice: {attrs}"
        self.attributes.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self._open), data))

    def inside(self, tag: str) -> list[str]:
        """Return the texts directly or deeper in elements of that name."""
        return [text.strip() for where, text in self.texts if tag in where and text.strip()]

    def having(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.attributes if name == tag]


def claim(agrees: bool | None = True, **more: Any) -> Claim:
    return replace(Claim("Rounds are few.", "Section 6", agrees, "they are 17"), **more)


def page_with(
    *tables: DataTable,
    claims: tuple[Claim, ...] = (),
    captions: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
    parameters: Row | None = None,
    provenance: Provenance = PROVENANCE,
    title: str = "Figure 9: rounds",
) -> str:
    pictures = [Picture(f"fig{i}", caption, lambda: None) for i, caption in enumerate(captions)]
    results = FigureResults(tables, claims, pictures, notes)
    return page("fig9", title, parameters or {}, results, provenance, {picture.name: SVG for picture in pictures})


def full(**more: Any) -> str:
    rows = [{"parties": 100, "mean_error": 0.123456, "mechanism": "inca", "seed": 123456, "rounds": None}]
    long = [{"rounds": t, "rate": 1.0 / t} for t in range(1, MAX_OPEN_ROWS + 2)]
    usual: dict[str, Any] = {
        "claims": (claim(True), claim(False, why="the sum is off"), claim(None)),
        "captions": ("Rounds by parties", "Errors by rounds"),
        "notes": ("Runs stop after 64 rounds.",),
        "parameters": {"runs_per_point": 100000, "colluding": [0.0, 0.5]},
    }
    return page_with(DataTable("least", "Least rounds", rows), DataTable("long", "Rates", long), **{**usual, **more})


def cells(text: str) -> list[str]:
    return Tree(text).inside("td")


def test_the_page_is_a_whole_document_with_landmarks() -> None:
    tree = Tree(full())
    assert tree.declarations == ["DOCTYPE html"]
    assert tree.having("html") == [{"lang": "en"}]
    for once in ("head", "title", "style", "body", "main", "h1", "footer"):
        assert tree.tags.count(once) == 1, once
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in tree.having("meta")
    assert tree.having("meta")[0] == {"charset": "utf-8"}
    assert tree.inside("title") == ["Figure 9: rounds (fig9)"]
    assert len(tree.having("table")) == tree.tags.count("caption") == 3
    assert all(heading["scope"] == "col" for heading in tree.having("th"))
    loose = {"table", "thead", "tbody", "tr", "dl", "ul"}
    assert not [text for where, text in tree.texts if text.strip() and where[-1] in loose]


def test_sections_come_in_order() -> None:
    tree = Tree(full(provenance=replace(PROVENANCE, quick=True)))
    headings = ["Pictures", "Claims", "Data", "Notes", "Parameters", "Where this comes from"]
    assert tree.inside("h2") == headings
    seen = [text.strip() for _, text in tree.texts]
    marks = ["1 claim agrees, 1 differs, 1 is open", "Quick version.", *headings]
    places = [seen.index(mark) for mark in ["Figure 9: rounds", *marks]]
    assert places == sorted(places)
    assert seen.index("Rounds by parties") < seen.index("Rounds are few.") < seen.index("Least rounds")


def test_nothing_is_fetched_and_nothing_runs() -> None:
    text = full()
    tree = Tree(text)
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    assert {"http-equiv": "Content-Security-Policy", "content": policy} in tree.having("meta")
    assert not {"script", "link", "iframe", "object", "form", "a", "svg"} & set(tree.tags)
    assert "http:" not in text and "https:" not in text and "url(" not in text and "@import" not in text
    for tag, attributes in tree.attributes:
        assert not any(name.startswith("on") or name in {"href", "style"} for name in attributes), tag


def test_pictures_are_embedded_with_their_captions() -> None:
    captions = ("Rounds by parties", NASTY)
    tree = Tree(full(captions=captions))
    images = tree.having("img")
    assert [image["alt"] for image in images] == list(captions)
    assert tree.inside("figcaption") == list(captions)
    for image in images:
        kind, coded = str(image["src"]).split(",")
        assert kind == "data:image/svg+xml;base64" and b64decode(coded, validate=True) == SVG


def test_a_picture_that_was_not_drawn_is_refused() -> None:
    results = FigureResults([], [], [Picture("missing", "", lambda: None)])
    with pytest.raises(KeyError, match="missing"):
        page("fig9", "", {}, results, PROVENANCE, {})


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        ((1, 1, 1), "1 claim agrees, 1 differs, 1 is open"),
        ((5, 1, 0), "5 claims agree, 1 differs, 0 are open"),
        ((0, 2, 3), "0 claims agree, 2 differ, 3 are open"),
        ((0, 0, 0), "No claims are checked against the data"),
    ],
)
def test_the_summary_counts_verdicts(verdicts: tuple[int, int, int], told: str) -> None:
    claims = [claim(kind) for kind, times in zip((True, False, None), verdicts, strict=True) for _ in range(times)]
    assert summary(claims) == told
    assert told in Tree(page_with(claims=tuple(claims))).inside("header")


def test_claims_show_verdicts_in_words_and_symbols_and_why_they_differ() -> None:
    tree = Tree(full())
    start = tree.inside("td").index("\N{CHECK MARK}")
    assert tree.inside("td")[start : start + 5] == [
        "\N{CHECK MARK}",
        "agrees",
        "Rounds are few.",
        "Section 6",
        "they are 17",
    ]
    for symbol, verdict in (("\N{BALLOT X}", "differs"), ("?", "open")):
        assert tree.inside("td")[tree.inside("td").index(symbol) + 1] == verdict
    assert "Why it differs" in tree.inside("th") and "the sum is off" in tree.inside("td")
    # Without a reason in any claim, there is no empty column, and rows stay as long as the heading.
    plain = Tree(page_with(claims=(claim(), claim(None))))
    assert plain.inside("th") == ["Verdict", "Claim", "Source", "Found"]
    assert plain.tags.count("td") == 8


def test_a_quick_version_says_so_and_a_full_one_does_not() -> None:
    assert "quick" not in " ".join(Tree(full()).inside("body")).lower()
    told = " ".join(Tree(full(provenance=replace(PROVENANCE, quick=True))).inside("header"))
    assert "quick version with few runs" in told and "differ from those of the full one" in told


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.0, "0"),
        (-0.0, "0"),
        (1e-7, "1e-07"),
        (0.123456, "0.1235"),
        (-2.5, "-2.5"),
        (9999, "9999"),
        (10_000, "10,000"),
        (-123456, "-123,456"),
        (123456, "123,456"),
        (np.int64(123456), "123,456"),
        (np.float64(0.123456), "0.1235"),
        (math.inf, "none"),
        (-math.inf, "-inf"),
        (math.nan, "undefined"),
        (None, "\N{EN DASH}"),
        (True, "yes"),
        (False, "no"),
        ("12345", "12345"),
        ([100, 20_000, 0.5], "100, 20,000, 0.5"),
        ([], ""),
    ],
)
def test_values_are_written_for_people(value: Any, text: str) -> None:
    assert shown("any", value) == text
    assert cells(page_with(DataTable("t", "T", [{"any": value}]))) == ([text] if text else [])


def test_seeds_have_no_separators() -> None:
    assert cells(page_with(DataTable("t", "T", [{"seed": 123456, "runs": 123456}]))) == ["123456", "123,456"]
    assert Tree(page_with(parameters={"seed": 123456, "runs": 123456})).inside("dd")[:2] == ["123456", "123,456"]
    assert "123456" in Tree(page_with(provenance=replace(PROVENANCE, seed=123456))).inside("footer")


def test_only_columns_of_numbers_are_right_aligned() -> None:
    rows: list[Row] = [
        {"count": 1, "rate": math.inf, "text": "a", "mixed": 1, "flag": True, "nothing": None},
        {"count": None, "rate": 0.5, "text": "b", "mixed": "x", "flag": False, "nothing": None},
    ]
    tree = Tree(page_with(DataTable("t", "T", rows)))
    kinds = ["number", "number", "text", "text", "text", "text"]
    assert [heading["class"] for heading in tree.having("th")] == kinds
    assert [cell["class"] for cell in tree.having("td")] == kinds * 2
    rule = re.search(r"td\.number \{([^}]*)\}", page_with())
    assert rule and "text-align: right" in rule[1] and "tabular-nums" in rule[1]


def test_only_wanted_columns_are_shown_and_bars_become_spaces() -> None:
    rows = [{"a_b_c": 1, "hidden": 2, "z": 3}, {"z": 4, "a_b_c": 5, "hidden": 6}]
    chosen = Tree(page_with(DataTable("t", "T", rows, ("z", "a_b_c"))))
    assert (chosen.inside("th"), chosen.inside("td")) == (["z", "a b c"], ["3", "1", "4", "5"])
    everything = Tree(page_with(DataTable("t", "T", rows)))
    assert (everything.inside("th"), everything.inside("td")) == (["a b c", "hidden", "z"], list("123564"))


def test_rows_may_lack_columns() -> None:
    tree = Tree(page_with(DataTable("t", "T", [{"a": 1}, {"b": 2}])))
    assert (tree.inside("th"), tree.inside("td")) == (["a", "b"], ["1", "\N{EN DASH}", "\N{EN DASH}", "2"])


def test_long_tables_are_folded() -> None:
    rows: list[Row] = [{"t": t} for t in range(MAX_OPEN_ROWS)]
    assert "details" not in Tree(page_with(DataTable("t", "T", rows))).tags
    tree = Tree(page_with(DataTable("t", "Rates", [*rows, {"t": MAX_OPEN_ROWS}])))
    assert tree.inside("summary") == [f"Rates ({MAX_OPEN_ROWS + 1} rows)"]
    assert len(tree.inside("td")) == MAX_OPEN_ROWS + 1
    assert all("details" in where for where, text in tree.texts if "table" in where)
    assert "open" not in tree.having("details")[0]


def test_every_table_scrolls_in_its_own_named_box() -> None:
    tree = Tree(full())
    boxes = [box for box in tree.having("div") if "scroll" in str(box.get("class")).split()]
    assert [(box["tabindex"], box["role"]) for box in boxes] == [("0", "region")] * 5
    labels = ["fig0", "fig1", "What is claimed, and what was found", "Least rounds", "Rates"]
    assert [box["aria-label"] for box in boxes] == labels


def test_sections_with_nothing_in_them_are_left_out() -> None:
    tree = Tree(page_with())
    assert tree.inside("h2") == ["Where this comes from"]
    assert not {"table", "figure", "ul"} & set(tree.tags)
    tree = Tree(
        page_with(
            DataTable("t", "Nothing came", []), DataTable("t", "Nor here", [], ("a_b",)), DataTable("t", "Bare", [{}])
        )
    )
    assert tree.inside("caption") == ["Nothing came", "Nor here", "Bare"]
    assert tree.inside("th") == ["a b"] and tree.inside("td") == ["No rows", "No rows"]


def test_the_page_ends_with_parameters_and_where_it_comes_from() -> None:
    tree = Tree(full())
    assert tree.inside("dt")[:2] == ["runs per point", "colluding"]
    assert tree.inside("dd")[:2] == ["100,000", "0, 0.5"]
    assert tree.inside("code") == [PROVENANCE.command, PROVENANCE.source]
    assert tree.inside("dd")[2:] == [PROVENANCE.command, "0.1.0", "7", PROVENANCE.source, "4 min 12 s"]
    assert tree.inside("li") == ["Runs stop after 64 rounds."]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.0, "less than a second"),
        (0.4, "less than a second"),
        (1.2, "1 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (252.3, "4 min 12 s"),
        (3599.7, "1 h"),
        (3725.0, "1 h 2 min 5 s"),
        (100_000.0, "27 h 46 min 40 s"),
    ],
)
def test_durations_are_in_words(seconds: float, told: str) -> None:
    assert duration(seconds) == told


def test_work_that_was_finished_before_has_no_duration() -> None:
    assert "finished work" in Tree(page_with(provenance=replace(PROVENANCE, seconds=None))).inside("footer")[-1]


def everywhere(text: str) -> str:
    long = [{text: text} for _ in range(MAX_OPEN_ROWS + 1)]
    return page_with(
        DataTable(text, text, [{text: text}, {text: 1.0}]),
        DataTable(text, text, long),
        DataTable(text, text, [{text: text}], (text,)),
        claims=(Claim(text, text, False, text, text), Claim(text, text, False, text, "why")),
        captions=(text,),
        notes=(text,),
        parameters={text: text, "other": [text, 1]},
        provenance=Provenance(text, text, 0, True, text, 1.0),
        title=text,
    )


@given(st.text() | st.text("<>&\"'/!-=;#x3scripta ", min_size=1) | st.just(NASTY))
def test_whatever_a_text_holds_it_stays_a_text(text: str) -> None:
    tree, plain = Tree(everywhere(text)), Tree(everywhere("word"))
    assert tree.tags == plain.tags
    assert [list(names) for _, names in tree.attributes] == [list(names) for _, names in plain.attributes]
    assert [image["alt"] for image in tree.having("img")] == [text]
    if text.strip():
        assert tree.inside("h1") == tree.inside("li") == [text.strip()]
        assert tree.inside("td").count(text.strip()) >= 4 + 3 + 1 + MAX_OPEN_ROWS + 1 + 1
    if heading := text.replace("_", " ").strip():
        assert tree.inside("th")[-1] == heading


def test_the_same_input_gives_the_same_page() -> None:
    assert full() == full()
    assert full() != full(provenance=replace(PROVENANCE, version="0.2.0"))


def luminance(colour: str) -> float:
    channels = [int(colour[1:][i * len(colour[1:]) // 3 :][: len(colour[1:]) // 3], 16) for i in range(3)]
    shares = [channel / (15 if len(colour) == 4 else 255) for channel in channels]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1])
def test_colours_have_contrast_in_light_and_dark(scheme: int) -> None:
    roots = re.findall(r":root \{([^}]*)\}", page_with())
    assert len(roots) == 2
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]+)", roots[scheme]))
    pairs = [("ink", "paper"), ("soft", "paper"), ("ink", "band"), ("good", "on-good"), ("bad", "on-bad")]
    for one, other in [*pairs, ("open", "on-open")]:
        dim, bright = sorted((luminance(colours[one]), luminance(colours[other])))
        assert (bright + 0.05) / (dim + 0.05) >= 4.5, (one, other)
