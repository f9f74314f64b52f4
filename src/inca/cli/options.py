"""Options that several verbs share: requirements, adversary, noise, where values lie, output; and how they combine."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from inca.errors import InvalidInput

if TYPE_CHECKING:
    from inca import Domain, Transcript
    from inca.privacy._device import Device
    from inca.privacy.gaussian import Rule as KnownRule
    from inca.protocol.transcript import AgreedGuarantee

REQUIREMENTS = "Requirements"
CONDITIONS = "Adversary, dropouts and message budget"
VALUES = "Values"
ADVERSARY = "Adversary (default: the one in the file, or one of the agreed size)"
NOISE = "Noise and values"
OUTPUT = "Output"
ENGINE = "Where it runs"

# --- where work is done ---------------------------------------------------------------------------------------------

EngineKind = Annotated[
    str,
    typer.Option("--engine", help="processes, serial (one process), or dask (a cluster).", rich_help_panel=ENGINE),
]
Workers = Annotated[int | None, typer.Option(help="Processes to use. Default: one per core.", rich_help_panel=ENGINE)]
Address = Annotated[
    str | None,
    typer.Option(
        help="Address of a dask scheduler, tcp://host:8786. Default: start one on this machine.",
        rich_help_panel=ENGINE,
    ),
]

# --- requirements ---------------------------------------------------------------------------------------------------

Parties = Annotated[int, typer.Option(help="Number of parties n.", rich_help_panel=REQUIREMENTS)]
Epsilon = Annotated[float, typer.Option(help="Required epsilon, for every honest party.", rich_help_panel=REQUIREMENTS)]
Delta = Annotated[float, typer.Option(help="Required delta, between 0 and 1.", rich_help_panel=REQUIREMENTS)]
Rule = Annotated[
    str,
    typer.Option(
        help="How noise becomes epsilon: analytic (exact), or classic, the paper's constant, for epsilon below 1.",
        rich_help_panel=REQUIREMENTS,
    ),
]
Sensitivity = Annotated[
    float,
    typer.Option(help="Largest distance between two values that a party may hold.", rich_help_panel=REQUIREMENTS),
]
Colluding = Annotated[
    float, typer.Option(help="Fraction of the parties that collude, whichever they are.", rich_help_panel=CONDITIONS)
]
Eavesdropped = Annotated[
    float, typer.Option(help="Fraction of each round's messages that are eavesdropped on.", rich_help_panel=CONDITIONS)
]
Dropout = Annotated[
    float, typer.Option(help="Fraction of the parties that may leave for good.", rich_help_panel=CONDITIONS)
]
Away = Annotated[
    float,
    typer.Option(help="Probability with which a party misses a round and comes back.", rich_help_panel=CONDITIONS),
]
Messages = Annotated[
    int,
    typer.Option(help="Messages that a party may send; more of them need less noise.", rich_help_panel=CONDITIONS),
]
Failure = Annotated[
    float,
    typer.Option(
        help="Probability, over random schedules, adversaries and leavers, that it fails for a party; adds to delta.",
        rich_help_panel=CONDITIONS,
    ),
]
Views = Annotated[
    int,
    typer.Option(
        help="Random adversary's views sampled per dropout rate, where a plan is not looked up: more is more certain "
        "and slower."
    ),
]
Settlement = Annotated[
    str,
    typer.Option(
        help="settled: those who stay undo what they exchanged with leavers; none: Algorithm 2 as it is.",
        rich_help_panel=CONDITIONS,
    ),
]
Late = Annotated[
    int,
    typer.Option(
        help="Late leavers to guard against: parties that settle and then do not publish.", rich_help_panel=CONDITIONS
    ),
]

# --- an execution, its adversary and its noise ----------------------------------------------------------------------

ExecutionFile = Annotated[
    Path, typer.Argument(metavar="EXECUTION", help="An execution: inca-execution/1 or /2, as .json or .npz.")
]
RequiredEpsilon = Annotated[
    float | None, typer.Option(help="Epsilon to check for every honest party; status 1 if it does not hold.")
]
ReportedDelta = Annotated[
    float | None,
    typer.Option(help="The delta at which epsilon is reported. Default: the agreed one in the file, else 1e-5."),
]
RandomColluding = Annotated[
    float | None,
    typer.Option(
        help="Instead, let this fraction of the parties collude, drawn at random; 0 for nobody.",
        rich_help_panel=ADVERSARY,
    ),
]
RandomEavesdropped = Annotated[
    float | None,
    typer.Option(
        help="Instead, eavesdrop on this fraction of each round's messages, drawn at random.",
        rich_help_panel=ADVERSARY,
    ),
]
SigmaIndependent = Annotated[
    float | None,
    typer.Option(help="Standard deviation of the independent noise, instead of the file's.", rich_help_panel=NOISE),
]
SigmaCancelling = Annotated[
    float | None,
    typer.Option(help="Standard deviation of the cancelling noise, instead of the file's.", rich_help_panel=NOISE),
]
Bounds = Annotated[
    tuple[float, float] | None,
    typer.Option(
        help="LOW HIGH: every coordinate of a value lies between them; where the file does not say its sensitivity.",
        rich_help_panel=NOISE,
    ),
]

# --- where values lie -----------------------------------------------------------------------------------------------

DomainBounds = Annotated[
    tuple[float, float] | None,
    typer.Option(help="LOW HIGH: every coordinate of a value lies between them.", rich_help_panel=VALUES),
]
BallRadius = Annotated[
    float | None, typer.Option(help="RADIUS: every value has at most this Euclidean norm.", rich_help_panel=VALUES)
]

# --- a party of a network -------------------------------------------------------------------------------------------

RosterFile = Annotated[
    Path, typer.Argument(metavar="ROSTER", help="A roster: inca-roster/1, as `inca node roster init` writes it.")
]
StudyFile = Annotated[
    Path, typer.Argument(metavar="STUDY", help="What is to be learned, and how private: inca-study/1 (JSON).")
]
IdentityFolder = Annotated[
    Path, typer.Option("--identity", metavar="FOLDER", help="The folder that `inca node keygen` wrote.")
]
StateFolder = Annotated[
    Path,
    typer.Option("--state", metavar="FOLDER", help="Where journals, logs and results are kept, a folder per session."),
]
Listen = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Listen here instead of at the address in the roster.")
]
Quiet = Annotated[bool, typer.Option(help="Print no lines about what happens.", rich_help_panel=OUTPUT)]

# --- output ---------------------------------------------------------------------------------------------------------

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.", rich_help_panel=OUTPUT)]


# --- what options mean together -------------------------------------------------------------------------------------


def refuse_combination(context: typer.Context, option: str, *others: str) -> None:
    """Refuse, if one option was typed, any of the others beside it; all are named by their parameters."""
    spelled = {parameter.name: parameter.opts[0] for parameter in context.command.params}

    def typed(name: str) -> bool:
        source = context.get_parameter_source(name)
        return source is not None and source.name == "COMMANDLINE"

    for other in others:
        if typed(option) and typed(other):
            raise InvalidInput(f"{spelled[other]} cannot be combined with {spelled[option]}")


def usage_sentence(error: Any) -> str:
    """Return what the option parser refused, in the words of all other refusals: what must be, and what was.

    Args:
        error: What it raised.
    """
    message, context = " ".join(error.format_message().split()), getattr(error, "ctx", None)
    command = "inca" if context is None else context.command_path
    kind, option = type(error).__name__, getattr(error, "option_name", "")
    if (parameter := getattr(error, "param", None)) is not None:
        option = next((name for name in parameter.opts if name.startswith("--")), parameter.name.upper())
    if kind == "MissingParameter":
        return f"{option} must be said; {command} --help tells what it is"
    if kind == "BadParameter" and isinstance(error.__cause__, ValueError) and hasattr(error.__cause__, "errors"):
        wrong = error.__cause__.errors()[0]
        parsed = (words for start, words in _PARSED.items() if wrong["type"].startswith(start))
        bounds = (f"{words} {bound}" for name, bound in wrong.get("ctx", {}).items() if (words := _BOUNDS.get(name)))
        must_be = next(chain(parsed, bounds), "of another kind")
        return f"{option} must be {must_be}, got {wrong['input']!r}"
    if kind == "NoSuchOption":
        near = f"did you mean {' or '.join(sorted(error.possibilities))}?" if error.possibilities else "see --help"
        return f"{command} has no option {option}; {near}"
    for pattern, sentence in _USAGE.items():
        if (match := re.fullmatch(pattern, message)) is not None:
            return sentence.format(*match.groups(), command=command, option=option)
    return message


_PARSED = {"float": "a number", "int": "an integer", "bool": "true or false"}
"""What a word must be, by the start of the parser's name for what is wrong with it."""

_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
"""Where a number must lie, by the parser's name for its bound."""

_USAGE = {
    r"Option '.*' requires an argument\.": "{option} must be followed by a value",
    r"Option '.*' requires (\d+) arguments\.": "{option} must be followed by {0} values",
    r"Option '.*' does not take a value\.": "{option} must stand alone, got a value",
    r"No such command '(.*)'\. Did you mean (.*)\?": "{command} has no command '{0}'; did you mean {1}?",
    r"No such command '(.*)'\.": "{command} has no command '{0}'; see --help",
    r"Got unexpected extra arguments? ?\(s?\)? ?\(?(.*?)\)?": "{command} takes no such argument, got {0}",
}
"""The parser's other sentences, and ours."""


def rule_named(rule: str) -> KnownRule:
    """Return the rule that --rule names."""
    from inca._base.validation import refuse

    if rule not in ("analytic", "classic"):
        refuse("--rule", rule, "analytic or classic")
    return cast("KnownRule", rule)


def device_named(device: str | None) -> Device | None:
    """Return the device that --device names; None chooses."""
    from inca._base.validation import refuse

    if device not in (None, "cpu", "cuda"):
        refuse("--device", device, "cpu or cuda")
    return cast("Device | None", device)


def domain_of(bounds: tuple[float, float] | None, radius: float | None) -> Domain:
    """Return the domain that either --domain or --ball names."""
    import inca

    if bounds is not None and radius is not None:
        raise InvalidInput("--ball cannot be combined with --domain")
    if radius is not None:
        return inca.Ball(radius)
    if bounds is None:
        raise InvalidInput("--domain LOW HIGH or --ball RADIUS must say where values may lie, got neither")
    return inca.Interval(*bounds)


def override_execution(
    transcript: Transcript,
    colluding: float | None,
    eavesdropped: float | None,
    seed: int | None,
    sigma_independent: float | None,
    sigma_cancelling: float | None,
    agreed: AgreedGuarantee | None = None,
) -> Transcript:
    """Return the transcript with the noise levels and the adversary that options name instead of its own.

    An adversary that neither an option nor the file names is drawn of the size that was agreed, in a plan or in the
    file; nobody is assumed to be the adversary.
    """
    from dataclasses import replace

    import numpy as np

    import inca
    from inca._base.validation import integer

    if seed is not None:
        integer("--seed", seed)
    size, agreed = None, agreed or transcript.agreed
    if colluding is not None or eavesdropped is not None:
        size = inca.RandomAdversary(colluding=colluding or 0.0, eavesdropped=eavesdropped or 0.0)
    elif transcript.adversary is None:
        if agreed is None:
            raise InvalidInput(
                "the file must say who colludes, or --colluding must (0 for nobody but those who read the final "
                "messages), got neither"
            )
        size = agreed.adversary
    if size is not None:
        execution, rng = transcript.execution, np.random.default_rng(seed)
        transcript = replace(transcript, adversary=size.draw(execution.parties, execution.rounds, rng))
    if sigma_independent is not None:
        transcript = replace(transcript, sigma_independent=sigma_independent)
    if sigma_cancelling is not None:
        transcript = replace(transcript, sigma_cancelling=sigma_cancelling)
    return transcript


def known_sensitivity(transcript: Transcript, domain: Domain | None, dimensions: int = 1) -> float:
    """Return how far a value can move: by its domain if an option names one, else as the file says; else refuse."""
    if domain is not None:
        return domain.sensitivity(dimensions)
    if transcript.sensitivity is None:
        raise InvalidInput(
            "the file must say the sensitivity of its values, or --sensitivity, --domain or --ball must, got neither"
        )
    return transcript.sensitivity


def listen_address(text: str | None) -> tuple[str, int] | None:
    """Return the host and port that --listen names, if it was given."""
    from inca._base.validation import refuse

    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        refuse("--listen", text, "HOST:PORT")
    return host.strip("[]"), int(port)
