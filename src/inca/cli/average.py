"""`inca average`: a private mean of a file of values, all parties simulated on this machine."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inca.cli import app
from inca.cli.progress import progress_bar
from inca.cli.wishes import WISH, Colluding, Delta, Eavesdropped, Messages, Rule, Views, known_rule

if TYPE_CHECKING:
    import numpy as np

    from inca import Certificate, Domain, Execution, Injection, Outcome, Plan, Presence, Schedule, Transcript
    from inca._base.randomness import Normals
    from inca._base.types import Array

_BAR_FROM = 20_000_000  # party-rounds times coordinates from which a progress bar is worth its place
_INPUT, _PROTOCOL, _ABSENCE, _OUTPUT = "Values", "Protocol", "Absence", "Output"


@app.command()
def average(
    values: Annotated[Path, typer.Argument(help="One row per party: CSV, Parquet (.parquet) or NumPy (.npy).")],
    epsilon: Annotated[
        float | None, typer.Option(help="The wanted epsilon, for every honest party.", rich_help_panel=WISH)
    ] = None,
    delta: Delta = 1e-5,
    colluding: Colluding = 0.0,
    eavesdropped: Eavesdropped = 0.0,
    messages: Messages = 20,
    rule: Rule = "exact",
    views: Views = 300,
    plan: Annotated[
        Path | None, typer.Option(help="A plan that `inca plan --out` wrote, instead.", rich_help_panel=WISH)
    ] = None,
    domain: Annotated[
        tuple[float, float] | None,
        typer.Option(help="LOW HIGH: every coordinate lies between.", rich_help_panel=_INPUT),
    ] = None,
    ball: Annotated[
        float | None, typer.Option(help="RADIUS: every row has at most this length.", rich_help_panel=_INPUT)
    ] = None,
    clip: Annotated[
        bool,
        typer.Option("--clip", help="Move values outside the domain in; else refuse.", rich_help_panel=_INPUT),
    ] = False,
    column: Annotated[
        list[str] | None, typer.Option(help="Take this column; may be repeated.", rich_help_panel=_INPUT)
    ] = None,
    sigma_independent: Annotated[
        float | None,
        typer.Option(help="Standard deviation of the noise that stays, per party.", rich_help_panel=_PROTOCOL),
    ] = None,
    sigma_cancelling: Annotated[
        float | None,
        typer.Option(help="Standard deviation of the noise that is cancelled.", rich_help_panel=_PROTOCOL),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Rounds of gossip (default 20).", rich_help_panel=_PROTOCOL)
    ] = None,
    receivers: Annotated[
        int | None, typer.Option(help="Receivers per party and round (default 1).", rich_help_panel=_PROTOCOL)
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(help="random (default), distinct (nobody twice) or permutation.", rich_help_panel=_PROTOCOL),
    ] = None,
    injection: Annotated[
        str | None, typer.Option(help="incremental (default) or early.", rich_help_panel=_PROTOCOL)
    ] = None,
    quiet_rounds: Annotated[
        int | None, typer.Option(help="Last rounds without a share of the value.", rich_help_panel=_PROTOCOL)
    ] = None,
    dropout: Annotated[
        float,
        typer.Option(help="Fraction of parties that leaves for good; also planned for.", rich_help_panel=_ABSENCE),
    ] = 0.0,
    absence: Annotated[
        tuple[float, float] | None,
        typer.Option(help="LEAVE REJOIN: chances per round of going and of coming back.", rich_help_panel=_ABSENCE),
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(help="CSV of absences: party,leaves,returns.", rich_help_panel=_ABSENCE)
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Repeatable run, for research: NOT private. Default: the system's randomness."),
    ] = None,
    transcript: Annotated[
        Path | None, typer.Option(help="Write the execution: .json or .npz.", rich_help_panel=_OUTPUT)
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Write the certificate (JSON) of a planned run.", rich_help_panel=_OUTPUT)
    ] = None,
    show_truth: Annotated[
        bool, typer.Option("--show-truth", help="Print the exact mean beside.", rich_help_panel=_OUTPUT)
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=_OUTPUT)] = False,
) -> None:
    """Average a file of per-party values by Algorithm 2, for a wanted guarantee or with noise of given levels.

    Every party of the file is simulated on this machine: each injects its value bit by bit, hidden in noise that
    it cancels later, while messages mix by gossip. What is left in the result is the independent noise, and what
    parties that left could not cancel.

    With --epsilon the run is planned for the least error, and with --plan it follows a plan. Then the execution that
    came about is audited against a random adversary of the planned size: should the guarantee not hold there, the
    estimate is withheld (status 1).

    Example:  inca average examples/waiting-times.csv --domain 0 240 --epsilon 0.5 --colluding 0.1 --dropout 0.1
    """
    import numpy as np

    import inca
    from inca._base.validation import whole
    from inca.cli.outcomes import AUDIT_UP_TO, collect, show
    from inca.cli.values import load_values

    bounds = _domain(domain, ball)
    table = bounds.admit(load_values(values, column or ()), clip)
    if certificate is not None and ((plan is None and epsilon is None) or len(table) > AUDIT_UP_TO):
        wanted = f"a planned run of at most {AUDIT_UP_TO} parties"
        raise inca.InputError(f"--certificate is {str(certificate)!r}, but {wanted} was expected")
    if seed is not None:
        whole("--seed", seed)
    rng = np.random.default_rng(seed)
    by_hand = _ByHand(rounds, receivers, schedule, injection, quiet_rounds, sigma_independent, sigma_cancelling)
    if plan is not None or epsilon is not None:
        wishes: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rule": known_rule(rule), "messages": messages}
        wishes |= {"colluding": colluding, "eavesdropped": eavesdropped, "dropout": dropout}
        made = _plan(plan, wishes, by_hand, bounds, table, views)
        levels = made.sigma_independent, made.sigma_cancelling
        drawn, injected = made.shape.draw(len(table), _seed(seed, rng)), made.shape.injection()
    else:
        made, levels = None, by_hand.levels()
        drawn, injected = by_hand.schedule_for(len(table), _seed(seed, rng)), by_hand.injection_used()
    presence = _presence(len(table), drawn.rounds, dropout, absence, trace, rng)
    execution = inca.Execution(drawn, injected, presence)
    noise_source = inca.SystemNormals() if seed is None else rng
    outcome = _simulate(execution, table, *levels, noise_source)
    budget = inca.expected_error(execution, *levels, dimensions=table[:1].size, domain=bounds)
    adversary = inca.Adversary() if made is None else made.adversary(rng)
    kept = inca.Transcript(execution, *levels, adversary.colluding, adversary.eavesdropped)
    if transcript is not None:
        inca.write_execution(transcript, kept)
    audited = None if made is None else _audit(made, kept)
    if certificate is not None and audited is not None:
        audited.write(certificate)
    report = collect(outcome, budget, table, show_truth, made, audited)
    if as_json:
        typer.echo(json.dumps(report, allow_nan=False))
    else:
        show(report, seed is not None)
        for name, place in (("execution", transcript), ("certificate", certificate)):
            if place is not None:
                typer.echo(f"The {name} is in {place}.")
    if outcome.estimate is None or report.get("met") is False:
        raise typer.Exit(1)


@dataclass(frozen=True)
class _ByHand:
    """The options of a protocol that is not planned; None where nothing was said."""

    rounds: int | None
    receivers: int | None
    schedule: str | None
    injection: str | None
    quiet_rounds: int | None
    sigma_independent: float | None
    sigma_cancelling: float | None

    def refuse_all_but(self, *allowed: str) -> None:
        """Refuse options that a plan decides."""
        from inca._base.validation import refuse

        for name, value in vars(self).items():
            if value is not None and name not in allowed:
                raise refuse(f"--{name.replace('_', '-')}", value, "nothing, as the plan decides it,")

    def levels(self) -> tuple[float, float]:
        from inca import InputError

        if self.sigma_independent is None or self.sigma_cancelling is None:
            raise InputError(
                "--epsilon, --plan, or both --sigma-independent and --sigma-cancelling are needed to choose the noise"
            )
        return self.sigma_independent, self.sigma_cancelling

    def schedule_for(self, parties: int, seed: int) -> Schedule:
        import inca

        kind, k = self.schedule or "random", 1 if self.receivers is None else self.receivers
        return inca.random_schedule(kind, parties, 20 if self.rounds is None else self.rounds, k, seed=seed)

    def injection_used(self) -> Injection:
        import inca

        rounds, quiet = 20 if self.rounds is None else self.rounds, self.quiet_rounds or 0
        if self.injection in (None, "incremental"):
            return inca.incremental(rounds, quiet)
        if self.injection == "early" and quiet == 0:
            return inca.early(rounds)
        if self.injection == "early":
            raise inca.InputError(f"--quiet-rounds is {quiet}, but 0 was expected with --injection early")
        raise inca.InputError(f"--injection is {self.injection!r}, but incremental or early was expected")


def _seed(seed: int | None, rng: np.random.Generator) -> int:
    return secrets.randbits(63) if seed is None else int(rng.integers(2**63))


def _plan(
    path: Path | None, wishes: dict[str, Any], by_hand: _ByHand, bounds: Domain, table: Array, views: int
) -> Plan:
    """Read the plan and hold it against the values, or make one."""
    import inca
    from inca._base.validation import refuse

    sensitivity = bounds.sensitivity(table[:1].size)
    if path is not None:
        if wishes["epsilon"] is not None:
            raise refuse("--epsilon", wishes["epsilon"], "nothing, as the plan decides it,")
        by_hand.refuse_all_but()
        made = inca.read_plan(path)
        if made.wish.parties != len(table):
            raise refuse("the number of parties in --plan", made.wish.parties, f"one per row of values ({len(table)})")
        if made.wish.sensitivity < sensitivity * (1 - 1e-12):
            raise refuse(
                "the sensitivity in --plan", made.wish.sensitivity, f"at least that of the domain ({sensitivity:g})"
            )
        return made
    by_hand.refuse_all_but("rounds", "receivers")
    variance = sensitivity**2 / 12.0 / table[:1].size  # uniform in an interval, each coordinate
    wish = inca.Wish(parties=len(table), sensitivity=sensitivity, variance=variance, **wishes)
    with progress_bar("view", wanted=True) as progress:
        return inca.plan(wish, rounds=by_hand.rounds, receivers=by_hand.receivers, views=views, progress=progress)


def _audit(made: Plan, kept: Transcript) -> Certificate | None:
    """Account for what the execution gave away to a random adversary of the planned size."""
    import inca
    from inca.cli.outcomes import AUDIT_UP_TO

    if made.wish.parties > AUDIT_UP_TO:
        return None
    with progress_bar("round", made.wish.parties > 2000) as progress:
        return inca.certify(
            kept, sensitivity=made.wish.sensitivity, delta=made.wish.delta, rule=made.wish.rule, progress=progress
        )


def _domain(interval: tuple[float, float] | None, radius: float | None) -> Domain:
    import inca

    if interval is not None and radius is None:
        return inca.Interval(*interval)
    if radius is not None and interval is None:
        return inca.Ball(radius)
    raise inca.InputError("--domain LOW HIGH or --ball RADIUS is needed to say where values may lie, and only one")


def _presence(
    parties: int,
    rounds: int,
    dropout: float,
    absence: tuple[float, float] | None,
    trace: Path | None,
    rng: np.random.Generator,
) -> Presence:
    import inca

    if (dropout != 0.0) + (absence is not None) + (trace is not None) > 1:
        raise inca.InputError("--dropout, --absence and --trace are alternatives, but more than one was given")
    if trace is not None:
        return inca.Presence.trace(trace, parties, rounds)
    if absence is not None:
        return inca.Presence.markov(parties, rounds, *absence, rng)
    return inca.Presence.leaving(parties, rounds, dropout, rng)


def _simulate(
    execution: Execution, values: Array, sigma_independent: float, sigma_cancelling: float, noise: Normals
) -> Outcome:
    import inca

    with progress_bar("round", execution.rounds * values.size >= _BAR_FROM) as progress:
        return inca.simulate(execution, values, sigma_independent, sigma_cancelling, noise, progress=progress)
