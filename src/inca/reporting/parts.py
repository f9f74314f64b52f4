"""What the content of a document is made of, whatever the document; renderers know only this."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any, Literal

import msgspec

Standing = Literal["good", "bad", "unknown", "plain"]

MAX_IDS = 40


@dataclass(frozen=True)
class Sentence:
    """One sentence of a verdict."""

    standing: Standing
    badge: str
    text: str


@dataclass(frozen=True)
class Row:
    """One fact."""

    name: str
    value: str
    hint: str = ""
    detail: bool = True
    group: str = "Details"


@dataclass(frozen=True)
class Table:
    """Rows of cells under a heading, with names of the columns."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Figure:
    """A picture with what is needed to read it."""

    title: str
    svg: str
    legend: tuple[tuple[str, str], ...]
    caption: str


@dataclass(frozen=True)
class Source:
    """A file that a content is about: its name, without folders, and the SHA-256 of what is in it."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Content:
    """All that is to be said of a document, as text; renderers escape it.

    Args:
        title: What it is about.
        about: A line below the title.
        verdict: What came out, first.
        rows: Facts, those without `detail` for every reader.
        caveats: What keeps it from being better than it is.
        tables: Longer lists of facts.
        figures: Pictures.
        assumptions: What all of it rests on.
        sources: The files it is about.
    """

    title: str
    about: str = ""
    verdict: tuple[Sentence, ...] = ()
    rows: tuple[Row, ...] = ()
    caveats: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    assumptions: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()

    def __str__(self) -> str:
        from inca.reporting.terminal import text

        return text(self)


@dataclass(frozen=True)
class RowOf:
    """How a field of a document becomes a row; its hint is what the document says of the field."""

    field: str
    name: str
    words: Callable[[Any], str | None] | None = None
    detail: bool = True
    group: str = "Details"


def rows_of(document: msgspec.Struct, table: Iterable[RowOf]) -> tuple[Row, ...]:
    """Return the rows of a document, with the meaning of each field as its hint."""
    meanings = {field.name: meaning_of(field) for field in msgspec.structs.fields(document)}
    rows = []
    for row in table:
        value = plain(getattr(document, row.field)) if row.words is None else row.words(document)
        if value is not None:
            rows.append(Row(row.name, value, meanings[row.field], row.detail, row.group))
    return tuple(rows)


def meaning_of(field: msgspec.structs.FieldInfo) -> str:
    """Return what a document says of one of its fields, with its unit."""
    metas = [meta for meta in getattr(field.type, "__metadata__", ()) if isinstance(meta, msgspec.Meta)]
    return next((meta.description for meta in metas if meta.description), "")


def plain(value: Any) -> str:
    """Return a field as text.

    >>> plain(0.123456789), plain(True), plain((1, 2)), plain(None), plain(12345)
    ('0.123457', 'yes', '1, 2', 'not in the file', '12,345')
    """
    match value:
        case None:
            text = "not in the file"
        case bool():
            text = "yes" if value else "no"
        case int() | float():
            text = f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
        case str():
            text = value
        case msgspec.Struct():
            text = ", ".join(f"{name} {plain(entry)}" for name, entry in msgspec.structs.asdict(value).items())
        case _:
            text = ", ".join(map(plain, value)) or "none"
    return text


def rounded_up(number: float | None, digits: int = 3) -> str:
    """Return a loss or a probability in a few digits, never below what it is; null and infinity are "infinite".

    >>> rounded_up(0.98431), rounded_up(0.1), rounded_up(1.0000001), rounded_up(None), rounded_up(0.0)
    ('0.985', '0.1', '1.01', 'infinite', '0')
    """
    if number is None or math.isinf(number):
        return "infinite"
    exact = Decimal(f"{number:.16g}")  # less the last bit: 0.1 stays 0.1, and 1e-05 + 1e-06 is 1.1e-05
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(exact)):.{digits}g}"


def capital(text: str) -> str:
    """Return a text with a capital first letter.

    >>> capital("no guarantee")
    'No guarantee'
    """
    return f"{text[:1].upper()}{text[1:]}"


def counted(number: int, one: str, many: str) -> str:
    """Return a number of things.

    >>> counted(1, "message is", "messages are"), counted(2000, "message is", "messages are")
    ('1 message is', '2,000 messages are')
    """
    return f"{number:,} {one if number == 1 else many}"


def missing(count: int, parties: int) -> str:
    """Return how many parties a result does without.

    >>> missing(1, 8)
    '1 of 8 parties is not in the result.'
    """
    return f"{count:,} of {parties:,} parties {'is' if count == 1 else 'are'} not in the result."


def some_ids(ids: Sequence[int]) -> str:
    """Return the ids of parties, if they are not too many.

    >>> some_ids([3, 11]), some_ids([])
    ('3, 11', 'none')
    """
    if len(ids) > MAX_IDS:
        return f"{', '.join(map(str, ids[:MAX_IDS]))}, ... ({len(ids):,} parties)"
    return ", ".join(map(str, ids)) or "none"


NUMBERS_SHOWN, INTERVALS_SHOWN = 6, 3


def numbers(value: float | Sequence[float], names: Sequence[str] = (), count: int | None = None) -> str:
    """Return a number, or the first few of several, behind what they are called if they have names.

    With a count there are so many, and the value has the first of them.

    >>> numbers(0.25), numbers([0.5] * 9), numbers([0.5, 2.0], ["age", "size"])
    ('0.25', '0.5, 0.5, 0.5, 0.5, 0.5, 0.5, ... (9 numbers)', 'age 0.5, size 2')
    """
    values = [value] if isinstance(value, (int, float)) else value
    return _first_few([f"{number:.6g}" for number in values[:NUMBERS_SHOWN]], count or len(values), names, "numbers")


def intervals(low: float | Sequence[float], high: float | Sequence[float], names: Sequence[str] = ()) -> str:
    """Return an interval, or the first few of several, behind what they are called if they have names.

    >>> intervals(0.25, 0.5), intervals([0.0] * 9, [0.5] * 9)
    ('0.25 to 0.5', '0 to 0.5, 0 to 0.5, 0 to 0.5, ... (9 intervals)')
    """
    if isinstance(low, (int, float)) or isinstance(high, (int, float)):
        return _first_few([f"{low:.6g} to {high:.6g}"], 1, names, "intervals")
    ends = list(zip(low, high, strict=True))
    shown = [f"{lower:.6g} to {upper:.6g}" for lower, upper in ends[:INTERVALS_SHOWN]]
    return _first_few(shown, len(ends), names, "intervals")


def _first_few(shown: Sequence[str], count: int, names: Sequence[str], kind: str) -> str:
    texts = [f"{name} {text}" for name, text in zip(names, shown, strict=False)] if names else shown
    return ", ".join(texts) if len(shown) == count else f"{', '.join(texts)}, ... ({count:,} {kind})"


def in_words(seconds: float) -> str:
    """Return a length of time as people say it.

    >>> in_words(27_000), in_words(200)
    ('7 h 30 min', '3 min 20 s')
    """
    hours, rest = divmod(seconds, 3600.0)
    minutes, rest = divmod(rest, 60.0)
    parts = [f"{hours:g} h" * (hours > 0), f"{minutes:g} min" * (minutes > 0), f"{rest:.3g} s" * (rest > 0)]
    return " ".join(part for part in parts if part)
