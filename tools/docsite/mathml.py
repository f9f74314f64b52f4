"""Formulas of the documentation site as MathML, which browsers draw themselves: no script, no font, no other machine.

Sphinx loads this extension (conf.py). The sources are LaTeX between dollar signs, as code hosts draw it, too. A formula
with a command that the converter does not know ends the build, as its reader would see the command.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

_BARS = re.compile(r"<mo>(&#x02016;|&#x0007C;)</mo>")
"""The bars of norms and sizes: the converter forgets which is left and which right, so browsers stretch some."""


def mathml(latex: str, *, display: bool) -> str:
    r"""Return a formula as a MathML element.

    Args:
        latex: The formula, without dollar signs.
        display: Whether it stands on lines of its own.

    Raises:
        ExtensionError: If there is something in it that cannot be converted.

    Example:
        >>> mathml("x_1", display=False).partition(">")[2]
        '<mrow><msub><mi>x</mi><mn>1</mn></msub></mrow></math>'
        >>> mathml(r"\nonsense", display=False)
        Traceback (most recent call last):
            ...
        sphinx.errors.ExtensionError: a formula must be LaTeX that can be converted to MathML, got \nonsense
    """
    try:
        element = convert(latex, display="block" if display else "inline")
    except Exception as error:  # the converter has a dozen kinds, for braces, delimiters and environments
        raise ExtensionError(f"a formula must be LaTeX that can be converted to MathML, got {latex}") from error
    if re.search(r"\\|&#x0005C;|<mi>&</mi>", element):  # what it does not know, it shows
        raise ExtensionError(f"a formula must be LaTeX that can be converted to MathML, got {latex}")
    return _BARS.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', element)


def visit_inline(writer: Any, node: nodes.Element) -> None:
    """Write a formula within a sentence."""
    writer.body.append(mathml(node.astext(), display=False))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.Element) -> None:
    """Write a formula on lines of its own, which scroll by themselves where they are too wide."""
    writer.body.append(f'<div class="formula" tabindex="0">{mathml(node.astext(), display=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of this way to write formulas."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
