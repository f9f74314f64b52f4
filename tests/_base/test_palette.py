"""One palette: dashboard, site and pictures have the same colours, and all eyes can tell them apart."""

from __future__ import annotations

import ast
import re
from itertools import combinations, pairwise

import numpy as np
import pytest

from helpers.paths import ROOT
from inca._base import palette

BASE = ROOT / "src" / "inca" / "dashboard" / "static" / "css" / "base.css"
DRAWING = sorted(
    path
    for folder in ("src", "tools", "benchmarks", "examples")
    for path in (ROOT / folder).rglob("*.py")
    if path.name != "palette.py"
)
NAMED = {
    "white",
    "black",
    "grey",
    "gray",
    "red",
    "green",
    "blue",
    "orange",
    "purple",
    "brown",
    "pink",
    "cyan",
    "magenta",
}

# What eyes without one kind of cones see of linear RGB (Machado, Oliveira, Fernandes 2009, severity 1).
EYES = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}


def lab(colour: str, eyes: str) -> np.ndarray:
    """Return a colour as these eyes see it, in CIELAB, where a distance of about 2 is just seen."""
    share = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.asarray(EYES[eyes]) @ linear, 0.0, 1.0)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(np.maximum(to_xyz @ seen / [0.9505, 1.0, 1.089], 1e-6))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(one: str, other: str, eyes: str) -> float:
    return float(np.linalg.norm(lab(one, eyes) - lab(other, eyes)))


def in_css(block: str) -> dict[str, str]:
    (text,) = re.findall(rf"^{re.escape(block)} \{{(.*?)^\}}", BASE.read_text(), flags=re.MULTILINE | re.DOTALL)
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", text))


def test_the_dashboard_has_the_same_colours_for_the_same_purposes() -> None:
    assert in_css(":root") == palette.LIGHT
    assert in_css(':root[data-theme="dark"]') == palette.DARK


def test_the_site_has_no_colours_of_its_own() -> None:
    sheet = (ROOT / "tools" / "docsite" / "static" / "site.css").read_text()
    assert not re.search(r":[^;{}]*(#[0-9a-f]{3,8}\b|rgb|hsl)", sheet)
    used = set(re.findall(r"var\(--inca-([a-z]+)\)", sheet))
    assert used and used <= set(palette.LIGHT)


def test_the_sign_of_the_site_is_that_of_the_dashboard() -> None:
    ours = (ROOT / "docs" / "pictures" / "favicon.svg").read_text()
    assert ours == (ROOT / "src" / "inca" / "dashboard" / "static" / "icon.svg").read_text()
    assert palette.OWN in ours


def test_nobody_draws_in_other_colours() -> None:
    for path in DRAWING:
        text = path.read_text()
        draws = "_base.plotting" in text or "matplotlib" in text
        if not (draws or re.search("#[0-9a-fA-F]", text)):  # most files: neither pictures nor the beginning of a colour
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                place = f"{path.relative_to(ROOT)}, line {node.lineno}"
                assert not re.search(r"#[0-9a-fA-F]{6}\b|#[0-9a-fA-F]{3}\b", node.value), place
                named = node.value in NAMED or re.fullmatch(r"C\d?|tab:\w+", node.value)
                assert not (draws and named), place


@pytest.mark.parametrize("eyes", EYES)
def test_colours_that_stand_side_by_side_can_be_told_apart(eyes: str) -> None:
    together = [
        (palette.OWN, palette.CANCELLING, palette.DATA, palette.INK),
        (palette.OWN, palette.COLLUDER, palette.INK),
        (palette.LOW, palette.HIGH),
        (palette.BASELINE, palette.ABSENT, palette.INK),
    ]
    for colours in together:
        for one, other in combinations(colours, 2):
            assert distance(one, other, eyes) >= 20, (one, other)
    assert distance(palette.OWN, palette.BASELINE, eyes) >= 10  # lines of inca are thicker as well


@pytest.mark.parametrize("eyes", EYES)
def test_shades_have_an_order_for_all_eyes(eyes: str) -> None:
    shades = palette.shades(5)
    lightness = [lab(colour, eyes)[0] for colour in shades]
    assert shades[-1] == palette.OWN and all(one - other > 4 for one, other in pairwise(lightness))
    assert palette.shades(1) == [palette.OWN]
