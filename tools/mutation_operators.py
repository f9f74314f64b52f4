"""Changes that cosmic-ray does not make by itself, and that would make a loss look smaller or a guard blind.

The greatest becomes the least, a call is forgotten, a factor or an argument is left out, a condition never holds, a
function returns 0. Nodes are those of parso's syntax tree, which cosmic-ray walks.

>>> from cosmic_ray.mutating import mutate_code
>>> for kind in Provider():
...     for example in Provider()[kind].examples():
...         changed = mutate_code(example.pre_mutation_code, Provider()[kind](), example.occurrence)
...         assert changed == example.post_mutation_code, (kind, changed)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import parso
from cosmic_ray.operators.operator import Example, Operator

Position = tuple[tuple[int, int], tuple[int, int]]

_OPPOSITES = [("max", "min"), ("maximum", "minimum"), ("argmax", "argmin"), ("any", "all"), ("floor", "ceil")]
_SWAPPED = {name: other for pair in _OPPOSITES for name, other in (pair, pair[::-1])}


def _parsed(code: str, prefix: str) -> Any:
    """Return the one expression or statement of a code, with the white space that goes before it."""
    leaf = parso.parse(code).children[0]  # type: ignore[no-untyped-call]
    leaf.get_first_leaf().prefix = prefix
    return leaf


def _replaced(node: Any, code: str) -> Any:
    return _parsed(code, node.get_first_leaf().prefix)


class SwapExtremes(Operator):  # type: ignore[misc]
    """Call min for max, all for any, floor for ceil, and the other way round."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "name" and node.value in _SWAPPED and (after := node.get_next_leaf()) and after.value == "(":
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.value = _SWAPPED[node.value]
        return node

    @classmethod
    def examples(cls) -> Iterable[Example]:
        return (Example("x = max(y, z)", "x = min(y, z)"), Example("x = y.all()", "x = y.any()"))


class ForgetCall(Operator):  # type: ignore[misc]
    """Leave out a call whose result is not used."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type in ("atom_expr", "await") and node.parent and node.parent.type == "simple_stmt":
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        return _replaced(node, "pass")

    @classmethod
    def examples(cls) -> Iterable[Example]:
        return (Example("os.fsync(file)\n", "pass\n"),)


class ReturnZero(Operator):  # type: ignore[misc]
    """Return 0 instead of what was worked out."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "return_stmt" and node.children[1].get_code(include_prefix=False) not in ("0", "0.0"):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.children[1] = _replaced(node.children[1], "0")
        return node

    @classmethod
    def examples(cls) -> Iterable[Example]:
        return (Example("def f():\n    return x + 1\n", "def f():\n    return 0\n"),)


class ForgetOperand(Operator):  # type: ignore[misc]
    """Leave out a factor, a divisor or a summand."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type in ("term", "arith_expr"):
            # A list, since the node is changed while cosmic-ray walks through its places.
            pairs = zip(node.children[1::2], node.children[2::2], strict=True)
            yield from [(sign.start_pos, operand.end_pos) for sign, operand in pairs]

    def mutate(self, node: Any, index: int) -> Any:
        del node.children[2 * index + 1 : 2 * index + 3]
        return node

    @classmethod
    def examples(cls) -> Iterable[Example]:
        return (Example("x = a * b / c\n", "x = a / c\n"), Example("x = a * b / c\n", "x = a * b\n", occurrence=1))


class ForgetArgument(Operator):  # type: ignore[misc]
    """Leave out an argument that is given by name."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        yield from [(node.children[place].start_pos, node.children[place].end_pos) for place in self._places(node)]

    @staticmethod
    def _places(node: Any) -> list[int]:
        children = node.children if node.type == "arglist" else []
        return [i for i, child in enumerate(children) if child.type == "argument" and child.children[1] == "="]

    def mutate(self, node: Any, index: int) -> Any:
        place = self._places(node)[index]
        # With the comma after it, or else the one before it.
        del node.children[slice(place, place + 2) if place + 1 < len(node.children) else slice(place - 1, place + 1)]
        return node

    @classmethod
    def examples(cls) -> Iterable[Example]:
        return (Example("f(x, s=2)\n", "f(x)\n"), Example("f(r=1, s=2)\n", "f( s=2)\n"))


class NeverHolds(Operator):  # type: ignore[misc]
    """Let the condition of an `if` never hold."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "if_stmt":
            yield node.children[1].start_pos, node.children[1].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.children[1] = _replaced(node.children[1], "False")
        return node

    @classmethod
    def examples(cls) -> Iterable[Example]:
        return (Example("if x > 1:\n    y()\n", "if False:\n    y()\n"),)


_OPERATORS: dict[str, type[Operator]] = {
    kind.__name__: kind for kind in (SwapExtremes, ForgetCall, ReturnZero, ForgetOperand, ForgetArgument, NeverHolds)
}


class Provider:
    """The operators by name, as cosmic-ray asks for them."""

    def __iter__(self) -> Iterator[str]:
        return iter(_OPERATORS)

    def __getitem__(self, name: str) -> type[Operator]:
        return _OPERATORS[name]
