"""The reference of the documentation site: every public object with its parameters, types, defaults and examples."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pkgutil import resolve_name
from typing import Any

from docsite.docstrings import Docstring, as_markdown, escaped, parsed

WIDTH = 84
"""Characters up to which a signature stays on one line."""


def targets(objects: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return where each object is described, by its short name, for links.

    Args:
        objects: The full names of the objects, by page.

    Example:
        >>> targets({"planning": ["inca.plan", "inca.Plan"]})
        {'plan': 'function-inca-plan', 'Plan': 'class-inca-plan'}
    """
    return {name.rpartition(".")[2]: _target(name) for names in objects.values() for name in names}


def describe(name: str, links: Mapping[str, str], level: int = 3) -> str:
    """Return the Markdown that describes one object.

    Args:
        name: Its full name, such as `inca.average`.
        links: What `targets` returned.
        level: The level of its heading; methods are one below.

    Returns:
        A heading, the signature, what it does, and lists of parameters, attributes, errors and methods.
    """
    thing = resolve_name(name)
    blocks = [f"({_target(name)})=", f"{'#' * level} `{name.rpartition('.')[2]}`"]
    if inspect.isclass(thing):
        blocks += _class(name, thing, links, "#" * (level + 1))
    elif callable(thing):
        blocks += _function(name, thing, links, "")
    else:
        kind = type(thing).__name__
        blocks += [f"```python\n{name}: {kind}\n```", f"The version of inca, a `{kind}`, as in `inca --version`."]
    return "\n\n".join(block for block in blocks if block) + "\n\n"


def parameters(thing: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters that a caller may give, without the object itself.

    >>> [parameter.name for parameter in parameters(targets)]
    ['objects']
    """
    return [each for each in inspect.signature(thing).parameters.values() if each.name not in ("self", "cls")]


def methods(kind: type[Any]) -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Yield the public methods that a class defines itself and describes: name, kind of method, function."""
    for name, member in vars(kind).items():
        function = getattr(member, "__func__", member)
        if not name.startswith("_") and inspect.isfunction(function) and function.__doc__:
            kind_of = type(member).__name__ if isinstance(member, classmethod | staticmethod) else ""
            yield name, kind_of, function


def properties(kind: type[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the public properties that a class defines itself: name, type, docstring."""
    for name, member in vars(kind).items():
        function = member.fget if isinstance(member, property) else getattr(member, "func", None)
        if not name.startswith("_") and isinstance(member, property | cached_property) and function.__doc__:
            yield name, _annotation(function.__annotations__.get("return", "")), inspect.getdoc(function) or ""


def _class(name: str, kind: type[Any], links: Mapping[str, str], heading: str) -> Iterator[str]:
    doc = parsed(inspect.getdoc(kind) or "")
    if inherited := {name: text for base in kind.__mro__[:0:-1] for name, text in documented_fields(base).items()}:
        doc = replace(doc, parameters=inherited | documented_fields(kind))
    constructed = bool(doc.parameters)
    yield _signature(f"class {name}", parameters(kind), None) if constructed else f"```python\nclass {name}\n```"
    bases = [base.__name__ for base in kind.__bases__ if base.__name__ in links]
    if bases:
        yield "A kind of " + " and ".join(f"[`{base}`](#{links[base]})" for base in bases) + "."
    yield as_markdown(doc.text, links)
    if constructed:
        yield _parameter_list(parameters(kind), doc, links)
    yield _attribute_list(kind, doc, links)
    yield from _endings(doc, links)
    listed = [_entry(each, type_, "", text, links) for each, type_, text in properties(kind)]
    if listed:
        yield "**Properties**\n\n" + "\n\n".join(listed)
    for each, kind_of, function in methods(kind):
        yield f"({_target(name)}-{each.replace('_', '-').lower()})=\n{heading} `{kind.__name__}.{each}`"
        yield from _function(f"{kind.__name__}.{each}", function, links, kind_of)


def _function(name: str, function: Callable[..., Any], links: Mapping[str, str], kind_of: str) -> Iterator[str]:
    doc = parsed(inspect.getdoc(function) or "")
    result = getattr(function, "__annotations__", {}).get("return")
    ours = parameters(function)
    yield _signature(f"{kind_of} {name}".lstrip(), ours, None if result is None else _annotation(result))
    yield as_markdown(doc.text, links)
    yield _parameter_list(ours, doc, links)
    yield from _endings(doc, links)


def _endings(doc: Docstring, links: Mapping[str, str]) -> Iterator[str]:
    for title, text in (("Returns", doc.returns), ("Yields", doc.yields)):
        if text:
            yield f"**{title}**\n\n{as_markdown(text, links)}"
    if doc.raises:
        yield "**Raises**\n\n" + "\n\n".join(
            f"{_type_links(error, links)}\n{_definition(text, links)}" for error, text in doc.raises.items()
        )
    if doc.example:
        yield f"**Example**\n\n{as_markdown(doc.example, links)}"


def _parameter_list(ours: list[inspect.Parameter], doc: Docstring, links: Mapping[str, str]) -> str:
    if not ours:
        return ""
    stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    entries = [
        _entry(
            stars.get(each.kind, "") + each.name,
            "" if each.annotation is each.empty else _annotation(each.annotation),
            "" if each.default is each.empty else _default(each.default),
            doc.parameters.get(each.name, ""),
            links,
        )
        for each in ours
    ]
    return "**Parameters**\n\n" + "\n\n".join(entries)


def _attribute_list(kind: type[Any], doc: Docstring, links: Mapping[str, str]) -> str:
    types = {
        name: hint for base in reversed(kind.__mro__) for name, hint in vars(base).get("__annotations__", {}).items()
    }
    texts = documented_fields(kind) | doc.attributes
    if not texts and not doc.parameters:
        texts = {name: "" for name in vars(kind).get("__annotations__", {}) if not name.startswith("_")}
    entries = [
        _entry(name, _annotation(types[name]) if name in types else "", "", text, links)
        for name, text in texts.items()
        if name not in doc.parameters
    ]
    return "**Attributes**\n\n" + "\n\n".join(entries) if entries else ""


def documented_fields(kind: type[Any]) -> dict[str, str]:
    """Return what is said of the attributes of a class in strings below them.

    >>> documented_fields(int)
    {}
    """
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    except (OSError, TypeError):
        return {}
    texts = {}
    lines = body.body if isinstance(body, ast.ClassDef) else []
    for line, after in pairwise(lines):
        if not (isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)):
            continue
        text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else None
        if isinstance(text, str) and not line.target.id.startswith("_"):
            texts[line.target.id] = inspect.cleandoc(text)
    return texts


def _entry(name: str, type_: str, default: str, text: str, links: Mapping[str, str]) -> str:
    """Return one entry of a list: name, type and default, and below them what it is."""
    parts = [f"`{name}`"]
    if type_:
        parts.append(f"[{_type_links(type_, links)}]{{.type}}")
    if default:
        parts.append(f"[= `{default}`]{{.default}}")
    return " ".join(parts) + "\n" + _definition(text, links)


def _definition(text: str, links: Mapping[str, str]) -> str:
    return ": " + textwrap.indent(as_markdown(text, links) or "\u00a0", "  ").lstrip(" ")


def _signature(name: str, ours: list[inspect.Parameter], result: str | None) -> str:
    """Return a signature as code: names and defaults only, as the types stand in the list below it."""
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in ours]
    words = [f"{each.name}={_default(each.default)}" if each.default is not each.empty else str(each) for each in bare]
    keyword_only = [at for at, each in enumerate(bare) if each.kind is each.KEYWORD_ONLY]
    if keyword_only and not any(each.kind is each.VAR_POSITIONAL for each in bare):
        words.insert(keyword_only[0], "*")
    end = ")" if result is None else f") -> {result}"
    line = f"{name}({', '.join(words)}{end}"
    if len(line) > WIDTH:
        inner = textwrap.fill(", ".join(words), WIDTH - 4, break_long_words=False)
        line = f"{name}(\n{textwrap.indent(inner, '    ')}\n{end}"
    return f"```python\n{line}\n```"


def _default(value: object) -> str:
    """Return a default as it is written, without addresses in memory or tables of numbers."""
    text = repr(value)
    return "..." if "<" in text or "\n" in text or len(text) > 60 else text


def _annotation(hint: Any) -> str:
    text = hint if isinstance(hint, str) else inspect.formatannotation(hint)
    return re.sub(r"\bnp\.", "numpy.", re.sub(r"\b(?:inca|typing|pathlib|collections)\.(?:\w+\.)*(?=\w)", "", text))


def _type_links(text: str, links: Mapping[str, str]) -> str:
    parts = re.split(r"(\b[A-Za-z_]\w*)", text)
    return "".join(
        f"[{escaped(part)}](#{links[part]})" if part in links and part != part.lower() else escaped(part)
        for part in parts
    )


def _target(name: str) -> str:
    """Return the name of an object for links, which have no capitals: `plan` and `Plan` are two."""
    thing = resolve_name(name)
    kind = "class" if inspect.isclass(thing) else "function" if callable(thing) else "value"
    return f"{kind}-{name.replace('.', '-').replace('_', '-').lower()}"
