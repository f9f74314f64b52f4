"""Colours of code in the documentation site: those of the palette, light and dark."""

from __future__ import annotations

from typing import ClassVar

from pygments.style import Style
from pygments.token import Comment, Error, Generic, Keyword, Literal, Name, Number, Operator, String, Token, _TokenType

from inca._base.palette import DARK, LIGHT


def colours(theme: dict[str, str]) -> dict[_TokenType, str]:
    """Return the colour of every kind of word: comments soft, what is read first in our own colour.

    >>> colours(LIGHT)[Comment] == f"italic {LIGHT['soft']}"
    True
    """
    return {
        Token: theme["ink"],
        Comment: f"italic {theme['soft']}",
        Keyword: theme["own"],
        Keyword.Constant: theme["data"],
        Operator.Word: theme["own"],
        Name.Builtin: theme["ink"],
        Name.Decorator: theme["data"],
        Name.Class: theme["ink"],
        String: theme["warn"],
        Number: theme["data"],
        Literal: theme["data"],
        Generic.Prompt: f"bold {theme['own']}",
        Generic.Output: theme["soft"],
        Generic.Error: theme["bad"],
        Error: theme["ink"],
    }


class Light(Style):  # type: ignore[misc]
    """Dark words on a light ground."""

    name = "inca-light"
    background_color = LIGHT["card"]
    styles: ClassVar[dict[_TokenType, str]] = colours(LIGHT)


class Dark(Style):  # type: ignore[misc]
    """Light words on a dark ground."""

    name = "inca-dark"
    background_color = DARK["card"]
    styles: ClassVar[dict[_TokenType, str]] = colours(DARK)
