"""`inca attack`: the best an adversary can make of an execution, against what was promised."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from inca.cli.options import (
    ATTACK,
    AuditedLoss,
    ExecutionFile,
    Json,
    OtherAdversary,
    OtherNoise,
    options,
    override_execution,
)
from inca.cli.printing import print_content, print_json, print_text
from inca.cli.progress import phase_bar

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from inca import Interval, Transcript, View
    from inca._base.types import Array

MAX_RUNS = 1000
"""Runs in which errors of reconstruction are measured."""
MAX_NOISE_TERMS = 1 << 24
"""Noise terms that these runs may take: in large executions there are fewer of them."""


@options(ATTACK)
class Guesses:
    """What is guessed, and how often."""

    victim: int | None = None
    """The id of the party whose value to guess. Default: the one that loses most."""
    trials: int = 20_000
    """Runs to guess in with the lowest value, and as many with the highest."""


def attack(
    execution: ExecutionFile,
    /,
    *,
    required: AuditedLoss = AuditedLoss(),
    adversary: OtherAdversary = OtherAdversary(),
    noise: OtherNoise = OtherNoise(),
    guesses: Guesses = Guesses(),
    output: Json = Json(),
) -> None:
    """Attack an execution as well as an adversary can, and set the outcome against the promise.

    Random values are run through the execution with fresh noise. From what it sees, the adversary makes the best
    linear estimate of every honest value: once knowing all other values, as differential privacy assumes, and once
    knowing the domain only. Then it guesses, in many runs, whether one party holds the lowest or the highest value, and
    its mistakes bound epsilon from below, wrongly so with a probability of one in a million.

    The bound shows what *is* lost; that no more is lost is for `inca audit` to say, whose exact loss is shown beside.

    Example:  seq 21 220 > values.csv, then
    inca average values.csv --domain 0 240 --sigma-independent 30 --sigma-cancelling 200 --transcript run.json, then
    inca attack run.json --colluding 0.1 --domain 0 240
    """
    import numpy as np

    import inca
    from inca._base.validation import finite_float, integer, positive
    from inca.reporting.verdict import verdict_on

    epsilon, seed = required.epsilon, adversary.seed
    if epsilon is not None:
        positive("--epsilon", epsilon)
    integer("--trials", guesses.trials, min=1)
    rng = np.random.default_rng(None if seed is None else (integer("--seed", seed), 1))
    transcript = inca.read_execution(execution)
    delta = finite_float("--delta", transcript.delta if required.delta is None else required.delta, 0.0, 1.0)
    bounds = _bounds(transcript, noise.domain)
    transcript = override_execution(transcript, adversary, noise)
    for name in ("sigma_independent", "sigma_cancelling"):
        if getattr(transcript, name) is None:
            raise inca.InvalidInput(f"{execution} must say {name}, or --{name.replace('_', '-')} must, got neither")
    view = inca.View(transcript.execution, transcript.known_adversary)
    with phase_bar({"account": "accounting: round", "guess": "guessing: trial"}) as progress:
        report = _report(view, transcript, bounds, delta, guesses, rng, progress)
    outcome = None
    if epsilon is not None:
        outcome = verdict_on(max(report["worst"]["epsilon"], report["epsilon_lower"]), epsilon, delta)
        report |= {"required": epsilon, "kept": outcome.kept, "verdict": str(outcome)}
    if output.json:
        print_json(report)
    else:
        _show(report, bounds)
    if outcome is not None and outcome.refused:
        raise SystemExit(1)


def _bounds(transcript: Transcript, domain: tuple[float, float] | None) -> Interval:
    """Return where values lie: as --domain says, or as long an interval as the file's sensitivity."""
    import inca
    from inca._base.validation import refuse

    if domain is None:
        if transcript.sensitivity is None:
            raise inca.InvalidInput("the file must say the sensitivity of its values, or --domain must, got neither")
        return inca.Interval(0.0, transcript.sensitivity)
    bounds, least = inca.Interval(*domain), transcript.sensitivity or 0.0
    if bounds.sensitivity() < least:
        refuse("--domain", f"{domain[0]:g} {domain[1]:g}", f"at least as long as the file's sensitivity ({least:g})")
    return bounds


def _report(
    view: View,
    transcript: Transcript,
    bounds: Interval,
    delta: float,
    asked: Guesses,
    rng: np.random.Generator,
    progress: Callable[[str, int, int], None],
) -> dict[str, Any]:
    """Return what `--json` prints; infinities are still numbers."""
    from inca import account
    from inca._base.validation import refuse
    from inca.privacy.attack import distinguish, reconstruct, watch

    party, trials = asked.victim, asked.trials
    if party is not None and party not in view.honest:
        refuse("--victim", party, f"the id of an honest party of {view.execution.parties}")
    levels = transcript.noise_levels
    accounted = account(view, levels, sensitivity=bounds.sensitivity(), progress=partial(progress, "account"))
    losses = accounted.in_whole_numbers(transcript.rounding)
    target = losses.worst_party if party is None else party
    noise_terms = view.execution.parties * (view.execution.rounds + 1)
    runs = min(trials, MAX_RUNS, max(1, MAX_NOISE_TERMS // noise_terms))
    values = rng.uniform(bounds.low, bounds.high, (view.execution.parties, runs))
    middle, variance = (bounds.low + bounds.high) / 2, bounds.sensitivity() ** 2 / 12
    seen = watch(view, values, levels, rng)
    informed = reconstruct(view, seen, levels, others=values)
    uninformed = reconstruct(view, seen, levels, prior=(middle, variance))
    guesses = distinguish(
        view,
        target,
        levels,
        delta,
        rng,
        trials=trials,
        sensitivity=bounds.sensitivity(),
        progress=partial(progress, "guess"),
    )
    place = view.honest.tolist().index(target)
    epsilons = losses.epsilon(delta)
    return {
        "honest": view.honest.tolist(),
        "standard_error": [bounds.sensitivity() / mu if mu > 0 else math.inf for mu in losses.mu.tolist()],
        "rms_error": _rms(informed.estimate - values[view.honest]),
        "uninformed_error": uninformed.standard_error.tolist(),
        "uninformed_rms_error": _rms(uninformed.estimate - values[view.honest]),
        "prior_error": math.sqrt(variance),
        "runs": runs,
        "party": target,
        "mu": float(losses.mu[place]),
        "mu_measured": guesses.mu_measured,
        "epsilon": float(epsilons[place]),
        "epsilon_lower": guesses.epsilon_lower,
        "worst": {"party": losses.worst_party, "mu": losses.max_mu, "epsilon": float(epsilons.max())},
        "delta": delta,
        "trials": trials,
        "confidence": 1.0 - guesses.false_alarm,
    }


def _rms(errors: Array) -> list[float]:
    """Return every party's root mean square over runs; infinity where there was no estimate."""
    return [math.inf if math.isnan(square) else math.sqrt(square) for square in (errors**2).mean(axis=1).tolist()]


def _show(report: dict[str, Any], bounds: Interval) -> None:
    from inca.reporting.parts import Content, Row, rounded_up

    party, place = report["party"], report["honest"].index(report["party"])
    promised, achieved = report["standard_error"][place], report["rms_error"][place]
    blind_guess = f"(a blind guess {report['prior_error']:.6g})"
    facts = [
        ("party", f"{party}   {'who loses most' if party == report['worst']['party'] else 'as asked'}"),
        ("promised error", f"{_size(promised)}   of an adversary who knows all other values"),
        ("achieved error", f"{_size(achieved)}   root mean square in {report['runs']} runs"),
        ("knowing no value", f"{_size(report['uninformed_error'][place])}   {blind_guess}"),
        ("exact epsilon", f"{rounded_up(report['epsilon'])}   at delta {report['delta']:g}"),
        ("attack shows", f"{_size(report['epsilon_lower'])}   or more, in {report['trials']} runs of each kind"),
    ]
    print_content(Content("What an attack achieves", rows=tuple(Row(*fact, detail=False) for fact in facts)))
    print_text(_meaning(report, promised, achieved, bounds))
    if "verdict" in report:
        print_text(report["verdict"])


def _size(error: float) -> str:
    return "infinite" if math.isinf(error) else f"{error:.6g}"


def _meaning(report: dict[str, Any], promised: float, achieved: float, bounds: Interval) -> str:
    party = report["party"]
    if report["epsilon_lower"] > report["epsilon"]:
        return "The attack beats the exact loss: an event of probability one in a million, or the loss is wrong."
    if promised == 0.0:
        return f"An adversary who knows all other values recovers that of party {party} exactly: it is not protected."
    if math.isinf(promised):
        return f"Nothing that the adversary sees depends on the value of party {party}."
    return (
        f"Even an adversary who knows all other values errs by {achieved:.3g} about that of party {party} in {bounds}, "
        "and many guesses show no more loss than the exact one."
    )
