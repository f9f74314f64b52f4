"""Small pictures as inline SVG: losses, shares, errors beside each other, who was present, and intervals.

They have no text from files in them but numbers, take their colours from `FIGURE_STYLE`, and every part says what it
is when it is pointed at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inca._base.kernels import Flags

WIDTH = 440.0
MAX_BARS, MAX_POINTS = 32, 400
MAX_GRID_PARTIES, MAX_GRID_ROUNDS = 120, 240
_LEFT, _RIGHT, _ROW = 52.0, 12.0, 40.0

FIGURE_STYLE = """
.figure svg { display: block; width: 100%; height: auto; }
.figure svg text { fill: var(--ink); font: 12px system-ui, sans-serif; paint-order: stroke; stroke: var(--card);
  stroke-width: 3px; stroke-linejoin: round; }
.figure svg text.small { fill: var(--soft); font-size: 11px; }
.figure .a { fill: var(--own); background: var(--own); }
.figure .b { fill: var(--cancelling); background: var(--cancelling); }
.figure .c { fill: var(--data); background: var(--data); }
.figure .warn { fill: var(--bad); background: var(--bad); }
.figure .gone { fill: var(--line); background: var(--line); }
.figure .domain { fill: var(--domain, var(--paper)); background: var(--domain, var(--paper)); }
.figure .line { fill: none; stroke: var(--own); stroke-width: 2; }
.figure .grid { stroke: var(--line); stroke-width: 1; }
.figure .level { stroke: var(--cancelling); stroke-width: 2; stroke-dasharray: 6 4; fill: none; }
.figure .level1 { stroke: var(--low); }
.figure .swatch.line { height: 0; border-top: 3px solid var(--own); vertical-align: middle; }
.figure .swatch.level { height: 0; border-top: 3px dashed var(--cancelling); vertical-align: middle; }
.figure .swatch.level1 { border-color: var(--low); }
.figure .swatch.domain, .figure .swatch.gone { border: 1px solid var(--soft); }
.figure .swatch.silent::before { content: "\\00d7"; }
"""
"""The style sheet of drawings and their legends, in elements of class `figure`; colours are those of the palette."""


@dataclass(frozen=True)
class Scale:
    """A linear scale: where a number is in a picture."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, number: float) -> float:
        """Return where a number is; beyond the ends it is at the end."""
        part = (number - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, part)) * (self.end - self.start)


@dataclass(frozen=True)
class ReferenceLevel:
    """A level that a picture has a dashed line at, with what it is called."""

    name: str
    level: float


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round numbers between two ends.

    >>> ticks(0.0, 0.9), ticks(-3.0, 250.0)
    ([0.0, 0.2, 0.4, 0.6, 0.8], [0.0, 50.0, 100.0, 150.0, 200.0, 250.0])
    """
    size = (high - low) / most
    if not size > 0.0 or not math.isfinite(size) or not (power := 10.0 ** math.floor(math.log10(size))):
        return [low]
    step = next((factor * power for factor in (1, 2, 5, 10) if (high - low) / (factor * power) <= most + 0.5), high)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(index * step, 12) for index in range(first, last + 1)]


def short(number: float) -> str:
    """Write a number with four digits.

    >>> short(0.123456), short(25000.0), short(1e-7)
    ('0.1235', '2.5e+04', '1e-07')
    """
    return f"{number:.4g}"


def losses(
    parties: Sequence[int], epsilon: Sequence[float | None], levels: Sequence[ReferenceLevel], delta: float
) -> str:
    """Draw every honest party's epsilon, sorted; None is infinite, and drawn as a triangle at the top."""
    order = sorted(range(len(parties)), key=lambda i: (math.inf if epsilon[i] is None else epsilon[i], parties[i]))
    height, top, bottom = 240.0, 14.0, 42.0
    highest = max([0.0, *(loss for loss in epsilon if loss is not None), *(level.level for level in levels)]) or 1.0
    vertical = Scale(0.0, 1.08 * highest, height - bottom, top)
    slot = (WIDTH - _LEFT - _RIGHT) / len(order)
    ranks = _some(len(order), MAX_POINTS)
    parts = [_vertical_axis(vertical, f"epsilon at delta {short(delta)}", height)]
    few = len(order) <= MAX_BARS
    for rank in ranks:
        party, loss = parties[order[rank]], epsilon[order[rank]]
        x = _LEFT + (rank + 0.5) * slot
        name = f"party {party}: epsilon {'infinite' if loss is None else f'{loss:.6g}'}"
        if loss is None:
            half = max(2.0, min(6.0, 0.4 * slot))
            path = f"M{x - half:.1f} {top + 2 * half:.1f}h{2 * half:.1f}L{x:.1f} {top:.1f}z"
            parts.append(f'<path class="warn" d="{path}">{_title(name)}</path>')
        elif few:
            size = f'width="{0.8 * slot:.1f}" height="{vertical.start - vertical(loss):.1f}"'
            place = f'x="{x - 0.4 * slot:.1f}" y="{vertical(loss):.1f}"'
            parts.append(f'<rect class="a" {place} {size}>{_title(name)}</rect>')
        else:
            parts.append(f'<circle class="a" cx="{x:.1f}" cy="{vertical(loss):.1f}" r="2">{_title(name)}</circle>')
        if few:
            parts.append(_text(x, height - bottom + 14, str(party), "middle", "small"))
    for index, level in enumerate(levels):
        parts.append(_dashed(_LEFT, WIDTH - _RIGHT, vertical(level.level), vertical(level.level), index, level))
    if not few:
        parts += [
            _text(_LEFT, height - bottom + 14, "1"),
            _text(WIDTH - _RIGHT, height - bottom + 14, f"{len(order):,}", "end"),
        ]
    label = "honest parties by their ids, sorted by loss" if few else "honest parties, sorted by loss"
    parts.append(_text((_LEFT + WIDTH - _RIGHT) / 2, height - 6, label, "middle"))
    return _svg(height, "The loss of every honest party", parts)


def shares(rows: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> str:
    """Draw bars of equal length, divided by the shares of their parts; part i of a row has colour i."""
    parts = []
    for index, (name, entries) in enumerate(rows):
        y, x, total = 16.0 + index * _ROW, 0.0, sum(size for _, size in entries)
        parts.append(_text(0.0, y, name))
        for colour, (entry, size) in zip("abcd", entries, strict=False):
            width = WIDTH * size / total
            title = _title(f"{name}: {entry} {size / total:.1%}")
            parts.append(
                f'<rect class="{colour}" x="{x:.1f}" y="{y + 5:.1f}" width="{width:.1f}" height="16">{title}</rect>'
            )
            x += width
    bottom = 16.0 + len(rows) * _ROW
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        anchor = "start" if part == 0.0 else "end" if part == 1.0 else "middle"
        parts.append(_text(part * WIDTH, bottom, f"{part:.0%}", anchor, "small"))
    parts.append(_text(WIDTH / 2, bottom + 18, "share of the mean squared error", "middle"))
    return _svg(bottom + 24, "The parts of the error as shares", parts)


def bars(rows: Sequence[tuple[str, float, str]], levels: Sequence[ReferenceLevel], axis: str) -> str:
    """Draw numbers as bars from 0."""
    finite = [size for _, size, _ in rows if math.isfinite(size)]
    highest = max([*finite, *(level.level for level in levels)], default=0.0) or 1.0
    across = Scale(0.0, 1.04 * highest, 1.0, WIDTH - 8.0)
    parts, bottom = [], 10.0 + len(rows) * _ROW
    for tick in ticks(0.0, 1.04 * highest, 4):
        parts.append(f'<path class="grid" d="M{across(tick):.1f} 0V{bottom:.1f}"/>')
        parts.append(_text(across(tick), bottom + 14, short(tick), "start" if tick == 0.0 else "middle", "small"))
    for index, level in enumerate(levels):
        parts.append(_dashed(across(level.level), across(level.level), 0.0, bottom, index, level))
    for index, (name, size, colour) in enumerate(rows):
        y = 16.0 + index * _ROW
        value = short(size) if math.isfinite(size) else "infinite"
        parts.append(_text(1.0, y, f"{name}: {value}"))
        end = across(size) if math.isfinite(size) else WIDTH
        title = _title(f"{name}: {value}")
        parts.append(
            f'<rect class="{colour}" x="1" y="{y + 5:.1f}" width="{max(1.0, end - 1.0):.1f}" height="14">{title}</rect>'
        )
    parts.append(_text(WIDTH / 2, bottom + 32, axis, "middle"))
    return _svg(bottom + 38, axis, parts)


def presence(rows: Sequence[Flags], colluding: Sequence[int] = (), silent: Sequence[int] = ()) -> str:
    """Draw who was present in which round, or, if there are many parties or rounds, how many were."""
    parties, rounds = len(rows[0]), len(rows)
    if parties > MAX_GRID_PARTIES or rounds > MAX_GRID_ROUNDS:
        return _attendance(rows)
    size = max(3.0, min(14.0, 420.0 / parties))
    top = 4.0
    across = Scale(0.0, float(rounds), _LEFT, WIDTH - _RIGHT)
    bottom, parts, every = top + size * parties, [], max(1, math.ceil(12.0 / size))
    for party in range(parties):
        begin, y = 0, top + party * size
        for t in range(1, rounds + 1):
            if t < rounds and bool(rows[t][party]) == bool(rows[begin][party]):
                continue
            there = bool(rows[begin][party])
            colour = "gone" if not there else "warn" if party in colluding else "a"
            which = f"round {begin}" if t == begin + 1 else f"rounds {begin} to {t - 1}"
            title = _title(
                f"party {party}{' (colludes)' * (party in colluding)}, {which}: {'present' if there else 'absent'}"
            )
            width = across(t) - across(begin)
            place = f'x="{across(begin):.1f}" y="{y:.1f}" width="{width:.1f}" height="{0.8 * size:.1f}"'
            parts.append(f'<rect class="{colour}" {place}>{title}</rect>')
            begin = t
        if party in silent:
            parts.append(_text(WIDTH - _RIGHT + 3, y + 0.4 * size + 4, "\N{MULTIPLICATION SIGN}"))
        if party % every == 0:
            parts.append(_text(_LEFT - 6, y + 0.4 * size + 4, str(party), "end", "small"))
    parts += [
        _text(across(tick + 0.5), bottom + 14, f"{tick:g}", "middle", "small")
        for tick in ticks(0.0, float(rounds - 1), 8)
        if tick == int(tick)
    ]
    parts.append(_text((_LEFT + WIDTH - _RIGHT) / 2, bottom + 32, "round; 0 is the start", "middle"))
    parts.append(_turned("party", (top + bottom) / 2))
    return _svg(bottom + 38, "Who was present in which round", parts)


def _attendance(rows: Sequence[Flags]) -> str:
    counts = [int(row.sum()) for row in rows]
    height, bottom = 220.0, 42.0
    vertical = Scale(0.0, 1.05 * len(rows[0]), height - bottom, 10.0)
    across = Scale(0.0, float(max(1, len(rows) - 1)), _LEFT, WIDTH - _RIGHT)
    points = " ".join(f"{across(t):.1f},{vertical(counts[t]):.1f}" for t in _some(len(counts), MAX_POINTS))
    title = _title(f"between {min(counts):,} and {max(counts):,} of {len(rows[0]):,} parties were present")
    parts = [
        _vertical_axis(vertical, "parties present", height),
        f'<polyline class="line" points="{points}">{title}</polyline>',
        *(
            _text(across(t), height - bottom + 14, str(int(t)), "middle", "small")
            for t in ticks(0.0, float(len(rows) - 1), 6)
            if t == int(t)
        ),
        _text((_LEFT + WIDTH - _RIGHT) / 2, height - 6, "round; 0 is the start", "middle"),
    ]
    return _svg(height, "How many parties were present in each round", parts)


def interval(
    rows: Sequence[tuple[str, float, float | None, float | None]], domain: tuple[float, float] | None, axis: str
) -> str:
    """Draw estimates with their intervals."""
    ends = [end for _, estimate, low, high in rows for end in (estimate, low, high) if end is not None]
    low, high = domain or (min(ends), max(ends))
    margin = 0.06 * (high - low) or abs(high) or 1.0
    across = Scale(low - margin, high + margin, 4.0, WIDTH - 4.0)
    parts, bottom = [], 12.0 + len(rows) * _ROW
    if domain is not None:
        box = f'x="{across(low):.1f}" y="0" width="{across(high) - across(low):.1f}" height="{bottom:.1f}"'
        parts.append(f'<rect class="domain" {box}>{_title(f"the domain, {low:g} to {high:g}")}</rect>')
    for tick in ticks(low - margin, high + margin):
        parts.append(f'<path class="grid" d="M{across(tick):.1f} 0V{bottom:.1f}"/>')
        parts.append(_text(across(tick), bottom + 14, short(tick), "middle", "small"))
    for index, (name, estimate, lower, upper) in enumerate(rows):
        y = 16.0 + index * _ROW
        parts.append(_text(4.0, y, name))
        if lower is not None and upper is not None:
            title = _title(f"{name}: interval {lower:.6g} to {upper:.6g}")
            path = f"M{across(lower):.1f} {y + 8:.1f}v12m0 -6H{across(upper):.1f}m0 -6v12"
            parts.append(f'<path class="line" d="{path}">{title}</path>')
        place = f'cx="{across(estimate):.1f}" cy="{y + 14:.1f}" r="5"'
        parts.append(f'<circle class="a" {place}>{_title(f"{name}: {estimate:.6g}")}</circle>')
    parts.append(_text(WIDTH / 2, bottom + 32, axis, "middle"))
    return _svg(bottom + 38, axis, parts)


def _some(count: int, most: int) -> list[int]:
    """Return at most so many places of a sequence, spread evenly, with both ends."""
    if count <= most:
        return list(range(count))
    return sorted({round(index * (count - 1) / (most - 1)) for index in range(most)})


def _vertical_axis(scale: Scale, label: str, height: float) -> str:
    lines = [f'<path class="grid" d="M{_LEFT} {scale(tick):.1f}H{WIDTH - _RIGHT}"/>' for tick in ticks(0.0, scale.high)]
    names = [_text(_LEFT - 6, scale(tick) + 4, short(tick), "end", "small") for tick in ticks(0.0, scale.high)]
    return "".join([*lines, *names, _turned(label, height / 2 - 14)])


def _turned(label: str, y: float) -> str:
    return f'<text text-anchor="middle" transform="translate(12 {y:.1f}) rotate(-90)">{escape(label)}</text>'


def _dashed(x1: float, x2: float, y1: float, y2: float, index: int, level: ReferenceLevel) -> str:
    line = f'class="level level{index}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"'
    return f"<line {line}>{_title(f'{level.name}: {level.level:.6g}')}</line>"


def _text(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> str:
    styled = f' class="{kind}"' if kind else ""
    return f'<text{styled} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>"


def _svg(height: float, label: str, parts: Sequence[str]) -> str:
    box = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {height:g}"'
    return f'<svg {box} role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
