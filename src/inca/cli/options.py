"""Groups of options: each option once, in the panel in which help shows it, and what options mean together.

A field is an option, and the text under it is its help; a verb takes some of these groups. What Python's functions take
as well is in `inca._base.options`, and only gets its panel here. Both do without `from __future__ import annotations`:
the parser would look for the names in it in the modules of subclasses.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, cast, dataclass_transform

from cyclopts import Group, Parameter

from inca._base.options import (
    Away,
    Colluding,
    Conditions,
    Dropout,
    Eavesdropped,
    HandNoise,
    Loss,
    PlanOptions,
    Privacy,
    Rounds,
    ScheduleChoice,
    Sensitivity,
    Sigmas,
    Size,
    Views,
)
from inca.errors import InvalidInput

if TYPE_CHECKING:
    from inca import Domain, Transcript
    from inca.network.addresses import Address
    from inca.network.node.transport_setup import NetworkAccess
    from inca.protocol.transcript import AgreedGuarantee

Kind = TypeVar("Kind")
Taken = TypeVar("Taken")

PANELS = (
    RECORDS := "Records",
    VALUES := "Values",
    REQUIREMENTS := "Requirements",
    CONDITIONS := "Adversary, dropouts and message budget",
    PLANNING := "Planning",
    BY_HAND := "Noise and protocol by hand, without a guarantee",
    GUARANTEE := "Guarantee (decided by --plan)",
    PROTOCOL := "Protocol (decided by --plan)",
    TIME := "Time",
    ADVERSARY := "Adversary (default: the one in the file, or one of the agreed size)",
    NOISE := "Noise and values",
    ATTACK := "Attack",
    TASK := "Task",
    OPTIONS := "Options",
    ENGINE := "Where it runs",
    OUTPUT := "Output",
)
"""All panels of options, in the order in which help shows them."""
GROUPS = {name: Group(name, sort_key=place) for place, name in enumerate(PANELS)}


@dataclass_transform(frozen_default=True, kw_only_default=True)
def options(panel: str) -> Callable[[type[Kind]], type[Kind]]:
    """Make a class of fields a group of options, which help shows in a panel."""
    group = GROUPS[panel]

    def group_of(kind: type[Kind]) -> type[Kind]:
        return Parameter(name="*", group=group)(dataclass(frozen=True, kw_only=True, eq=False, repr=False)(kind))

    return group_of


def default(text: str) -> Parameter:
    """Say in words what happens without an option."""
    return Parameter(show_default=text)


# --- arguments ------------------------------------------------------------------------------------------------------

ExecutionFile = Annotated[Path, Parameter(help="An execution: inca-execution/1 or /2, as .json or .npz.")]
RosterFile = Annotated[Path, Parameter(help="A roster: inca-roster/3, as `inca node roster init` writes it.")]
StudyFile = Annotated[Path, Parameter(help="What is to be learned, and how private: inca-study/1 (JSON).")]
StateFolder = Annotated[Path, Parameter(help="The --state folder of a node on this machine.")]

# --- guarantees -----------------------------------------------------------------------------------------------------


@options(REQUIREMENTS)
class PlanRequirements(Sensitivity, Privacy, Size):
    """The guarantee of a plan."""


@options(CONDITIONS)
class PlanConditions(Away, Conditions):
    """What a plan must withstand."""


@options(REQUIREMENTS)
class WantedPrivacy(Privacy):
    """A guarantee that a run may do without."""

    epsilon: float | None = None  # type: ignore[assignment]  # the same option, which is not needed here


@options(CONDITIONS)
class WantedConditions(Conditions):
    """What a run must withstand."""


@options(PLANNING)
class Planning(PlanOptions):
    """What a plan is free to choose."""


@options(PLANNING)
class SampledViews(Views):
    """How much is sampled."""

    views: int = 100


@options(REQUIREMENTS)
class ComparedPrivacy(Privacy, Size):
    """The guarantee of a comparison: that of the paper's Figure 4."""

    parties: int = 200
    epsilon: float = 0.2


@options(CONDITIONS)
class ComparedConditions(Conditions):
    """What compared mechanisms must withstand: that of the paper's Figure 4, at several dropout rates."""

    colluding: float = 0.1
    dropout: list[float] = field(default_factory=lambda: [0.05, 0.1, 0.2])  # type: ignore[assignment]  # several


@options(REQUIREMENTS)
class AuditedLoss(Loss):
    """A guarantee to check; status 1 if it does not hold."""

    epsilon: Annotated[float | None, default("the agreed one, if any")] = None  # type: ignore[assignment]
    delta: Annotated[float | None, default("the agreed one in the file, else 1e-05")] = None  # type: ignore[assignment]


@options(REQUIREMENTS)
class AuditedPrivacy(AuditedLoss, Privacy):
    """A guarantee to check, and how noise becomes epsilon."""


@options(GUARANTEE)
class AgreedPrivacy(WantedPrivacy, Colluding):
    """The guarantee of a session."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Level:
    """What is protected."""

    level: Literal["record", "party"] = "record"
    """What is protected: record (one row; who has several is protected less), or party (all of its rows together, with
    more noise)."""


@options(REQUIREMENTS)
class ReleaseLoss(Level, Loss):
    """What a statistic may cost."""


@options(CONDITIONS)
class ReleaseConditions(Dropout, Colluding):
    """What a statistic must withstand."""


@options(REQUIREMENTS)
class TrainingPrivacy(Level, Loss):
    """What training may cost."""

    epsilon: list[float] = field(default_factory=lambda: [1.0, 3.0])  # type: ignore[assignment]  # one after another
    level: Literal["record", "party"] = "party"


@options(CONDITIONS)
class TrainingConditions(Dropout, Colluding):
    """What training must withstand."""

    dropout: list[float] = field(default_factory=lambda: [0.0, 0.1, 0.2])  # type: ignore[assignment]  # one by one


# --- values ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DomainBounds:
    """Bounds of values."""

    domain: Annotated[tuple[float, float] | None, Parameter(metavar="LOW HIGH")] = None
    """Public bounds: every number, or every coordinate of a value, lies between them."""


@options(VALUES)
class Where(DomainBounds):
    """Where values may lie."""

    ball: Annotated[float | None, Parameter(metavar="RADIUS")] = None
    """Instead of --domain: every value has at most this Euclidean norm."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Dimensions:
    """How long values are."""

    dimensions: int = 1
    """Coordinates of a value, with --domain."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Clip:
    """What is done with values outside."""

    clip: bool = False
    """Move values outside their bounds to the nearest bound; otherwise they are refused."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Column:
    """Which column is taken."""

    column: Annotated[list[str], Parameter(metavar="NAME")] = field(default_factory=list)
    """Take the column of this name."""


@options(VALUES)
class FileValues(Column, Clip, Where):
    """Which values of a file are taken."""


@options(VALUES)
class AgreedValues(Dimensions, Where):
    """What the values of a session are."""

    distance: float | None = None
    """Protect values at most this far apart, such as sums that differ in one record. Default: any two."""


@options(RECORDS)
class RecordColumns:
    """The records of several parties in one file."""

    party: Annotated[str, Parameter(metavar="COLUMN")]
    """The column that names the party that holds the record. Who takes part, and with how many records, is public."""


@options(RECORDS)
class NumberColumn(DomainBounds, Column, RecordColumns):
    """A column of numbers of several parties."""

    column: Annotated[str, Parameter(metavar="NAME")]  # type: ignore[assignment]  # one of them
    domain: Annotated[tuple[float, float], Parameter(metavar="LOW HIGH")] = field()


# --- executions -----------------------------------------------------------------------------------------------------


@options(OPTIONS)
class RunSeed:
    """Where randomness comes from."""

    seed: int | None = None
    """Repeat everything that is random, for research: NOT private. Default: the system's randomness."""


@options(ADVERSARY)
class OtherAdversary(RunSeed, Eavesdropped, Colluding):
    """Another adversary than the one in the file."""

    colluding: Annotated[float | None, default("as in the file, or as agreed")] = None  # type: ignore[assignment]
    eavesdropped: Annotated[float | None, default("as in the file, or as agreed")] = None  # type: ignore[assignment]


@options(ADVERSARY)
class AuditAdversary(OtherAdversary):
    """Another adversary than the one in the file, or a larger one."""

    leavers_collude: bool = False
    """Count parties that did not settle as colluders: a bound for those who did, whatever the others did."""


@options(NOISE)
class OtherNoise(DomainBounds, Sigmas):
    """Noise and values, where the file does not say them."""

    sigma_independent: Annotated[float | None, default("the file's")] = None
    sigma_cancelling: Annotated[float | None, default("the file's")] = None


@options(NOISE)
class AuditNoise(OtherNoise, Dimensions, Where, Sensitivity):
    """Noise and values, where the file does not say them."""

    sensitivity: Annotated[float | None, default("the file's")] = None  # type: ignore[assignment]


# --- runs -----------------------------------------------------------------------------------------------------------


@options(PLANNING)
class PlanFile:
    """A plan."""

    plan: Path | None = None
    """A plan that `inca plan --out` wrote: it decides the protocol, the noise and the guarantee."""


@options(CONDITIONS)
class Absences:
    """Who is away, instead of a fraction that leaves for good."""

    absence: Annotated[tuple[float, float] | None, Parameter(metavar="LEAVE REJOIN")] = None
    """Instead of --dropout: probabilities of leaving and of coming back, per party and round."""
    trace: Path | None = None
    """Instead of --dropout: a CSV file of absences (party,leaves,returns)."""


@options(BY_HAND)
class NoiseByHand(HandNoise):
    """Noise and protocol by hand."""


@options(PROTOCOL)
class AgreedProtocol(Sigmas, ScheduleChoice, Rounds):
    """The protocol of a session."""

    schedule: Literal["permutation", "circle"] = "permutation"


# --- a party of a network -------------------------------------------------------------------------------------------


@options(OPTIONS)
class PartyFolder:
    """Who a party is."""

    identity: Annotated[Path, Parameter(metavar="FOLDER")]
    """The folder that `inca node keygen` wrote."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Place:
    """Where something listens."""

    host: str | None = None
    """A host name or an IP address."""
    port: int | None = None
    """A TCP port to listen on."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RelayChoice:
    """Where parties are reached that may only connect outwards."""

    relay: Annotated[list[str], Parameter(metavar="wss://HOST/PATH")] = field(default_factory=list)
    """A relay (`inca relay`) that leads to parties that may only connect outwards; may be given several times, the
    preferred one first. The others try a party's own --host and --port before."""


@options(OPTIONS)
class CardAddresses(RelayChoice, Place):
    """Where a party is reached."""

    @property
    def addresses(self) -> "list[Address]":
        """The addresses in order of preference."""
        from inca._base.validation import refuse
        from inca.network.addresses import Address

        if (self.host is None) != (self.port is None):
            option, other = ("--host", "--port") if self.port is None else ("--port", "--host")
            raise InvalidInput(f"{option} must come with {other}: the others need both to connect")
        relays = [Address.parse(text) for text in self.relay]
        for text, relay in zip(self.relay, relays, strict=True):
            if not relay.relayed:
                refuse("--relay", text, "the address of a relay, wss://HOST/PATH")
        own = [] if self.host is None or self.port is None else [Address(self.host, self.port)]
        return own + relays


@options(OPTIONS)
class PartyFolders(PartyFolder):
    """Who a party is, and where it listens and keeps its files."""

    state: Annotated[Path, Parameter(metavar="FOLDER")]
    """Where journals, logs and results are kept, a folder per session."""
    listen: Annotated[str | None, Parameter(metavar="HOST:PORT")] = None
    """Listen here instead of at the address in the roster."""
    relay_ca: Annotated[Path | None, Parameter(metavar="FILE")] = None
    """Certificates (PEM) of authorities that may vouch for relays, besides those of this machine: of a private relay,
    or of a proxy of yours that opens TLS. Proxies are taken from HTTPS_PROXY and NO_PROXY."""

    @property
    def access(self) -> "NetworkAccess":
        """How this machine takes part in the network."""
        from inca._base.validation import refuse
        from inca.network.node.transport_setup import NetworkAccess

        if self.listen is None:
            return NetworkAccess(relay_ca=self.relay_ca)
        host, _, port = self.listen.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            refuse("--listen", self.listen, "HOST:PORT")
        return NetworkAccess(listen=(host.strip("[]"), int(port)), relay_ca=self.relay_ca)


@options(TIME)
class StartTime:
    """When a session is held."""

    start: str
    """When the first round begins: 2030-01-15T08:00:00Z, or +10m from now."""
    period: str = "10s"
    """How long a round lasts at most: 10s, 500ms, 2m."""
    public_seed: Annotated[str | None, Parameter(metavar="HEX")] = None
    """Public seed of who sends to whom (hexadecimal). Default: the parties draw it by a coin flip."""


@options(TIME)
class SessionTimes(StartTime):
    """When a session is held, and how clocks may differ."""

    min_round_duration: str = "0s"
    """How long a round lasts at least, so that a crashed party can be back in time: 1s."""
    max_clock_skew: Annotated[str | None, default("a tenth of --period")] = None
    """How wrong a party's clock may be."""


@options(TIME)
class NewStartTime(StartTime):
    """Another time for a session."""

    period: Annotated[str | None, default("as before")] = None  # type: ignore[assignment]


# --- where it runs --------------------------------------------------------------------------------------------------


@options(ENGINE)
class Workers:
    """Which processes do the work."""

    engine: Literal["processes", "serial", "dask"] = "processes"
    """processes, serial (one process), or dask (a cluster)."""
    workers: Annotated[int | None, default("one per core")] = None
    """Processes to use."""
    address: Annotated[str | None, default("one that is started on this machine")] = None
    """Address of a dask scheduler, tcp://host:8786."""


@options(ENGINE)
class KeptWork(Workers):
    """Which processes do the work, and what is kept of it."""

    engine: Literal["processes", "serial", "dask"] = "serial"
    checkpoint: Path | None = None
    """File for finished work, from which an interrupted run resumes."""


# --- output ---------------------------------------------------------------------------------------------------------


@options(OUTPUT)
class Out:
    """Where a file goes."""

    out: Path | None = None
    """The file or the folder to write."""


@options(OUTPUT)
class Json:
    """How a result is printed."""

    json: bool = False
    """Print JSON, for programs; null stands for infinity."""


@options(OUTPUT)
class Shown(Json):
    """How a document is printed."""

    details: bool = False
    """Print everything: all parameters, caveats and assumptions."""


@options(OUTPUT)
class JsonOut(Shown, Out):
    """How a result is printed, and where its file goes."""


@options(OUTPUT)
class NewFile(JsonOut):
    """How a result is printed, and where its file goes: it must not exist yet."""

    out: Path = field()


@options(OUTPUT)
class JsonPlot(Json):
    """How a result is printed and drawn."""

    plot: Path | None = None
    """Draw a plot: .svg, or .png, which inca audit does not write."""


@options(OUTPUT)
class JsonQuiet(Shown):
    """How a result is printed, and what happens on the way."""

    quiet: bool = False
    """Print no lines about what happens."""


@options(OUTPUT)
class JsonCertificate(Shown):
    """How a result is printed, and where its certificate goes."""

    certificate: Path | None = None
    """Write the certificate (JSON) here."""


@options(OUTPUT)
class AuditOutput(JsonCertificate, JsonPlot):
    """How losses are printed, drawn and kept."""


# --- what options mean together -------------------------------------------------------------------------------------


def typed(option: str) -> bool:
    """Return whether an option was typed, be it with the value that it has anyway."""
    words = [word.partition("=")[0].replace("_", "-") for word in sys.argv[1:]]
    return option in (words[: words.index("--")] if "--" in words else words)


def names(*groups: type) -> tuple[str, ...]:
    """Return the options of groups.

    >>> names(Where, RunSeed)
    ('--domain', '--ball', '--seed')
    """
    return tuple(f"--{option.name.replace('_', '-')}" for group in groups for option in fields(group))


def part_of(kind: type[Taken], *groups: object) -> Taken:
    """Return what a library function takes, made of the options in groups that have its fields' names."""
    values = {name: value for group in groups for name, value in vars(group).items()}
    return kind(**{taken.name: values[taken.name] for taken in fields(cast(Any, kind)) if taken.name in values})


def refuse_combination(option: str, *others: str) -> None:
    """Refuse, if one option was typed, any of the others beside it."""
    for other in others:
        if other != option and typed(option) and typed(other):
            raise InvalidInput(f"{other} cannot be combined with {option}")


def domain_of(where: Where | AuditNoise) -> "Domain":
    """Return the domain that either --domain or --ball names."""
    import inca

    refuse_combination("--domain", "--ball")
    if where.ball is not None:
        return inca.Ball(where.ball)
    if where.domain is None:
        raise InvalidInput("--domain LOW HIGH or --ball RADIUS is required: they say where values may lie")
    return inca.Interval(*where.domain)


def override_execution(
    transcript: "Transcript", adversary: OtherAdversary, noise: OtherNoise, agreed: "AgreedGuarantee | None" = None
) -> "Transcript":
    """Return the transcript with the noise levels and the adversary that options name instead of its own.

    An adversary that neither an option nor the file names is drawn of the size that was agreed, in a plan or in the
    file; nobody is assumed to be the adversary.
    """
    from dataclasses import replace

    import numpy as np

    import inca
    from inca._base.validation import integer

    if adversary.seed is not None:
        integer("--seed", adversary.seed)
    size, agreed = None, agreed or transcript.agreed
    if adversary.colluding is not None or adversary.eavesdropped is not None:
        size = inca.RandomAdversary(colluding=adversary.colluding or 0.0, eavesdropped=adversary.eavesdropped or 0.0)
    elif transcript.adversary is None:
        if agreed is None:
            raise InvalidInput(
                "the file must say who colludes, or --colluding must (0 for nobody but those who read the final "
                "messages), got neither"
            )
        size = agreed.adversary
    if size is not None:
        execution, rng = transcript.execution, np.random.default_rng(adversary.seed)
        transcript = replace(transcript, adversary=size.draw(execution.parties, execution.rounds, rng))
    levels: dict[str, Any] = {name: getattr(noise, name) for name in ("sigma_independent", "sigma_cancelling")}
    return replace(transcript, **{name: level for name, level in levels.items() if level is not None})
