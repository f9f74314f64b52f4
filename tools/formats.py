"""Write the tables of docs/format.md, and docs/schemas/*.json, from the Structs that read and write the files."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, get_args

import msgspec

from inca.documents.document import Part
from inca.documents.formats import FORMATS
from inca.learn.study import Study
from inca.network.membership.identity import Card
from inca.network.membership.terms import Terms
from inca.reporting.parts import meaning_of

ROOT = Path(__file__).parents[1]
PAGE, SCHEMAS = ROOT / "docs" / "format.md", ROOT / "docs" / "schemas"
_STRUCTS: tuple[type, ...] = (*dict.fromkeys(FORMATS.values()), Terms, Card, Study)
STRUCTS: dict[str, Any] = {struct.__name__: struct for struct in _STRUCTS}
"""What the page has a table of."""

_BLOCK = re.compile(r"(<!-- fields of (\w+) -->\n).*?(<!-- end of fields -->)", re.DOTALL)


def page(text: str) -> str:
    """Return the page with all its tables made anew."""
    return _BLOCK.sub(lambda match: f"{match[1]}{table(STRUCTS[match[2]])}{match[3]}", text)


def table(struct: Any) -> str:
    """Return the fields of a Struct as a table, with the fields of groups below their own."""
    described = _attributes(struct.__doc__ or "")
    lines = ["", "| field | type | unit | meaning |", "|---|---|---|---|"]
    for name, field in _fields(struct, ""):
        meaning = meaning_of(field) or described.get(field.name, "")
        optional = "" if field.required else " (optional)"
        lines.append(f"| `{name}` | {_type(field.type)}{optional} | {_unit(field)} | {_cell(meaning)} |")
    return "\n".join([*lines, "", ""])


def _fields(struct: Any, prefix: str) -> list[tuple[str, msgspec.structs.FieldInfo]]:
    fields = []
    for field in msgspec.structs.fields(struct):
        name = f"{prefix}{field.encode_name}"
        fields.append((name, field))
        for part in _parts(field.type):
            if part not in FORMATS.values():
                fields += _fields(part, f"{name}.")
    return fields


def _parts(kind: Any) -> list[Any]:
    if isinstance(kind, type):
        return [kind] if issubclass(kind, Part) else []
    return [part for inner in get_args(kind) for part in _parts(inner)]


def _type(kind: Any) -> str:
    """Return a type in the words of JSON, as its schema has them."""
    try:
        schema, _ = msgspec.json.schema_components([kind], ref_template="{name}")
    except TypeError:  # bytes and such: text in JSON
        return "string"
    return _words(schema[0])


def _words(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_words(part) for part in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join("null" if value is None else f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_words(schema['items'])}" if schema.get("items") else "list"
    return str(schema.get("type", "object" if "$ref" in schema else "any"))


def _unit(field: msgspec.structs.FieldInfo) -> str:
    metas = [meta for meta in getattr(field.type, "__metadata__", ()) if isinstance(meta, msgspec.Meta)]
    return next((meta.extra["unit"] for meta in metas if meta.extra), "")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _attributes(doc: str) -> dict[str, str]:
    """Return what a docstring says of attributes, by their names."""
    entries: dict[str, str] = {}
    _, _, rest = doc.partition("Attributes:\n")
    for line in rest.split("\n\n")[0].splitlines():
        if (match := re.match(r" {8}(\w+): (.*)", line)) is not None:
            name = match[1]
            entries[name] = match[2]
        elif entries:
            entries[name] += f" {line.strip()}"
    return entries


def schemas() -> dict[str, str]:
    """Return the JSON schemas by the names of their files."""
    return {
        f"{kind.kind.split()[-1]}.json": json.dumps(msgspec.json.schema(kind), indent=1, sort_keys=True) + "\n"
        for kind in dict.fromkeys(FORMATS.values())
    }


def main() -> None:
    """Write both, or with --check say which file is not as the code has it."""
    wanted = {PAGE: page(PAGE.read_text())} | {SCHEMAS / name: text for name, text in schemas().items()}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv and stale:
        raise SystemExit(f"{', '.join(path.name for path in stale)} must be made again: make formats")
    SCHEMAS.mkdir(exist_ok=True)
    for path in stale:
        path.write_text(wanted[path])


if __name__ == "__main__":
    main()
