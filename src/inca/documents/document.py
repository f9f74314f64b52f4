"""What all documents share: strict reading, whole writing, a digest, and fields that say what they hold."""

from __future__ import annotations

import hashlib
import math
import re
from pathlib import Path
from typing import Any, ClassVar, Self

import msgspec

from inca._base.files import write_json
from inca.errors import InvalidInput

MAX_BYTES = 1 << 28
"""The largest file that is read whole."""


def about(meaning: str, unit: str = "", **limits: Any) -> msgspec.Meta:
    """Describe a field: what it means, its unit, and where its numbers must lie.

    >>> about("A probability.", ge=0.0, le=1.0).description
    'A probability.'
    """
    return msgspec.Meta(description=meaning, extra={"unit": unit}, **limits)


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A group of fields inside a document; a field that the format does not know is refused."""


class Document(Part, frozen=True, kw_only=True):
    """A file of one format.

    Subclasses declare a field `format` with the only value that it may have, the noun `kind` for messages, and
    `check` for what no single field can say.
    """

    kind: ClassVar[str]
    absent: ClassVar[frozenset[str]] = frozenset()
    """Fields that a file leaves out while they have their default value."""
    indent: ClassVar[int | None] = None
    """How far JSON is indented; None: all of it on one line."""

    def check(self) -> None:
        """Refuse fields that contradict each other."""

    def as_fields(self) -> dict[str, Any]:
        """Return the fields as the file has them, under their names there."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        for field in msgspec.structs.fields(self):
            if field.name in self.absent and getattr(self, field.name) == _default(field):
                del fields[field.encode_name]
        return fields

    @classmethod
    def of_fields(cls, fields: Any) -> Self:
        """Return the document with these fields; all of them are checked."""
        try:
            document = msgspec.convert(fields, cls)
            if "format" not in fields:
                raise InvalidInput("format: is missing")
        except msgspec.ValidationError as error:
            raise InvalidInput(plain_error(error)) from None
        _refuse_undefined(fields, "")
        document.check()
        return document

    @classmethod
    def decode(cls, content: bytes, source: str | Path) -> Self:
        """Return the document in the content of a file."""
        try:
            return cls.of_fields(msgspec.json.decode(content))
        except (InvalidInput, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidInput(f"{source} cannot be read as {cls.kind}: {error}") from None

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Return the document in a file."""
        return cls.decode(file_content(path, cls.kind), path)

    def write(self, path: str | Path) -> None:
        """Write the document as JSON, whole or not at all; what could not be read again is refused."""
        self.of_fields(fields := self.as_fields())
        write_json(path, fields, indent=self.indent)

    def digest(self) -> str:
        """Return the SHA-256 of the document as JSON with sorted names and without spaces."""
        return canonical_digest(self.as_fields())


def canonical_digest(fields: Any) -> str:
    """Return the SHA-256 of fields as JSON with sorted names and without spaces, in hexadecimal.

    >>> canonical_digest({"b": 1, "a": 2}) == hashlib.sha256(b'{"a":2,"b":1}').hexdigest()
    True
    """
    return hashlib.sha256(msgspec.json.encode(fields, order="sorted")).hexdigest()


def file_content(path: str | Path, kind: str) -> bytes:
    """Return the content of a file, or refuse it in the words of its kind."""
    place = Path(path)
    try:
        if place.exists() and not place.is_file():
            raise InvalidInput(f"{path} cannot be read as {kind}: it is not an ordinary file")
        if (size := place.stat().st_size) > MAX_BYTES:
            raise InvalidInput(f"{path} cannot be read as {kind}: at most {MAX_BYTES >> 20} MiB, got {size >> 20} MiB")
        return place.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read as {kind}: {error.strerror or error}") from None


def plain_error(error: msgspec.ValidationError) -> str:
    """Return what msgspec refused as a sentence that names the field.

    >>> class Example(msgspec.Struct, forbid_unknown_fields=True):
    ...     n: int
    >>> for fields in ({"n": "x"}, {}, {"n": 1, "m": 2}):
    ...     try:
    ...         msgspec.convert(fields, Example)
    ...     except msgspec.ValidationError as error:
    ...         print(plain_error(error))
    n: must be a whole number, got text
    n: is missing
    m: is not a field of this format
    """
    what, _, where = str(error).partition(" - at `")
    place = where.strip("`$.").replace("[...]", "")
    for pattern, words in _SENTENCES:
        if (match := re.fullmatch(pattern, what)) is not None:
            kinds = [" or ".join(_KINDS.get(kind, kind) for kind in group.split(" | ")) for group in match.groups()]
            *fields, text = (part.format(*kinds) for part in words)
            return ": ".join([".".join(filter(None, [place, *fields])), text]).removeprefix(": ")
    return f"{place}: {what}" if place else what


_KINDS = {"int": "a whole number", "float": "a number", "str": "text", "array": "a list", "object": "a group of fields"}
"""What JSON and msgspec call kinds of values, in plain words."""

_SENTENCES = (
    (r"Object missing required field `(.+)`", ("{0}", "is missing")),
    (r"Object contains unknown field `(.+)`", ("{0}", "is not a field of this format")),
    (r"Invalid enum value (.+)", ("must be a value that the format knows, got {0}",)),
    (r"Expected `(?:float|int)` >= (.+?)(?:\.0)?", ("must be at least {0}",)),
    (r"Expected `(?:float|int)` <= (.+?)(?:\.0)?", ("must be at most {0}",)),
    (r"Expected `(?:float|int)` > (.+?)(?:\.0)?", ("must be above {0}",)),
    (r"(?:Number|Integer value) out of range", ("is too large a number",)),
    (r"Expected `(.+)`, got `(.+)`", ("must be {0}, got {1}",)),
)
"""What msgspec says; and, in our words, the field that it names and what is wrong with it."""


def finite_or_none(number: float) -> float | None:
    """Return a loss or an error as files hold it: null stands for infinity. NaN is never a loss.

    >>> finite_or_none(0.5), finite_or_none(math.inf)
    (0.5, None)
    """
    if math.isnan(number):
        raise InvalidInput("a number of a document must be known, got NaN")
    return None if math.isinf(number) else float(number)


def infinite_if_none(number: float | None) -> float:
    """Return a loss or an error of a file as a number: null stands for infinity.

    >>> infinite_if_none(None), infinite_if_none(0.5)
    (inf, 0.5)
    """
    return math.inf if number is None else number


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default_factory() if field.default is msgspec.NODEFAULT else field.default


def _refuse_undefined(fields: Any, where: str) -> None:
    """Refuse NaN and infinity, which JSON does not know and comparisons let pass."""
    if isinstance(fields, dict):
        for name, entry in fields.items():
            _refuse_undefined(entry, f"{where}.{name}")
    elif isinstance(fields, (list, tuple)):
        if set(map(type, fields)) <= {int, float} and all(map(math.isfinite, fields)):
            return  # long lists of numbers are common, and looked through fast
        for index, entry in enumerate(fields):
            _refuse_undefined(entry, f"{where}[{index}]")
    elif isinstance(fields, float) and not math.isfinite(fields):
        raise InvalidInput(f"{where.lstrip('.')}: must be a finite number, got {fields}")
