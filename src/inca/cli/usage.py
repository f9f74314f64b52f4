"""What the option parser refuses, in the words of all other refusals: what must be, and what was."""

from __future__ import annotations

import difflib
from typing import Any, Literal, get_args, get_origin

from cyclopts import App, Argument, ArgumentCollection, Token
from cyclopts.exceptions import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

NO_RESULT = 3
"""The status of a session that has ended without a result: there is no use in starting the party again."""

TEMPORARY = 75
"""The status of a fault that may be over when the program is started again; EX_TEMPFAIL of sysexits.h."""

_MUST_BE: dict[Any, str] = {int: "an integer", float: "a number"}


def refuse_fractions(app: App, path: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Refuse what is no integer where one must be: the parser would round it."""
    for argument in arguments:
        for token in argument.tokens if argument.resolved_hint is int else ():
            if not token.value.lstrip("+-").isdecimal():
                raise CoercionError(argument=argument, token=token, target_type=int)


def usage_sentence(error: CycloptsError) -> str:
    """Return what the option parser refused, in one sentence."""
    command = " ".join(("inca", *(error.command_chain or ())))
    unused = error.unused_tokens or []
    match error:
        case UnknownCommandError():
            commands = [name for name in (error.app or ()) if not name.startswith("-")]
            sentence = f"{command} has no command '{unused[0]}'; {_near(unused[0], commands, quoted=True)}"
        case UnknownOptionError():
            option = (error.token.keyword or error.token.value).partition("=")[0]
            known = [name for argument in error.argument_collection for name in argument.names]
            sentence = f"{command} has no option {option}; {_near(option, known)}"
        case UnusedCliTokensError():
            sentence = f"{command} takes no such argument, got {' '.join(unused)}"
        case RepeatArgumentError():
            sentence = f"{error.token.keyword} must be given once, got it again"
        case MissingArgumentError(argument=Argument()):
            sentence = _missing(command, error)
        case CoercionError(argument=Argument(), token=Token()):
            sentence = _wrong_kind(error)
        case _:
            sentence = " ".join(str(error).split())
    return sentence


def _near(word: str, known: list[str], *, quoted: bool = False) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    if not near:
        return "see --help"
    return f"did you mean {repr(near[0]) if quoted else near[0]}?"


def _missing(command: str, error: MissingArgumentError) -> str:
    argument = error.argument
    assert argument is not None
    if error.keyword is not None or argument.tokens:
        count = argument.token_count()[0]
        return f"{error.keyword or argument.name} must be followed by {'a value' if count == 1 else f'{count} values'}"
    misspelled = [word.partition("=")[0] for word in error.unused_tokens or [] if word.startswith("--")]
    if misspelled:
        known = [] if error.app is None else error.app.assemble_argument_collection()
        return f"{command} has no option {misspelled[0]}; {_near(misspelled[0], [option.name for option in known])}"
    kind = "argument" if argument.index is not None else "option"
    return f"missing {kind} {argument.name}; see {command} --help"


def _wrong_kind(error: CoercionError) -> str:
    assert error.argument is not None and error.token is not None
    option, word, hint = error.token.keyword or error.argument.name, error.token.value, error.target_type
    kinds = [kind for kind in get_args(hint) if kind is not type(None)] if get_origin(hint) is not Literal else [hint]
    kind = kinds[0] if kinds else hint
    if kind is bool:
        return f"{option} must stand alone, got a value"
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        near = difflib.get_close_matches(word, choices, n=1, cutoff=0.7)
        known = " or ".join(choices) if len(choices) == 2 else f"one of {', '.join(choices)}"
        return f"{option} must be {known}, got {word!r}" + (f"; did you mean {near[0]}?" if near else "")
    return f"{option} must be {_MUST_BE.get(kind, 'of another kind')}, got {word!r}"
