"""Plans of settled runs: looked up where views were drawn, sampled elsewhere; the error is known in closed form."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from inca._base.types import Array
from inca._base.validation import integer, refuse
from inca.errors import RequirementsNotMet
from inca.planning.designs import ProtocolDesign, designs_that_hide_enough
from inca.planning.extrapolation import extrapolated_levels
from inca.planning.joined_design import joined_design
from inca.planning.leavers import level_that_protects_leavers
from inca.planning.level_tables import (
    DRAWN_PARTIES,
    NeededLevel,
    drawn_rounds,
    leavers_level,
    level_tables,
    needed_level,
    unfinished_residue,
)
from inca.planning.plan import AlternativeDesign, Plan, SamplingDetails
from inca.planning.requirements import Requirements
from inca.planning.sampling import (
    OnViewSampled,
    candidate_factors,
    sample_error,
    sample_residue,
    sampled_parties,
)
from inca.planning.settled_noise import SettledNoise, price
from inca.privacy.theorems.joined_bound import cancelling_variance_for_factor
from inca.protocol.expected_error import ErrorBudget
from inca.protocol.noise_levels import NoiseLevels

QUIET_ROUNDS = 1
"""Last rounds without a share of the value: once settled, more of them bring nothing (docs/planner.md)."""
_PROVEN_FACTOR = 1.05  # within 5 % of the least error; cancelling noise costs nothing if everyone publishes
_RESIDUE_RUNS, _MOST_RESIDUE_PARTIES = 40, 100
_ROUND_UP = 1.0 + 1e-9


@dataclass(frozen=True)
class _Candidate:
    """A design with its noise, and the error that it would have."""

    design: ProtocolDesign
    noise: SettledNoise
    basis: SamplingDetails
    failure: float
    """A proven bound on the probability that messages hide too little for the level; 0 if views were drawn: those in
    which they do are among them."""
    expected: ErrorBudget
    one_missing: ErrorBudget
    """Without one of the final messages: what makes larger cancelling noise dearer (`price`)."""

    @property
    def price(self) -> float:
        return price(self.expected, self.one_missing)


def settled_plan(
    requirements: Requirements,
    *,
    rounds: int | None,
    receivers: int | None,
    proven: bool,
    views: int,
    confidence: float,
    on_view_sampled: OnViewSampled,
) -> Plan:
    """Return the plan of least error among settled runs; see `inca.plan`."""
    if proven:
        candidates = [_proven(requirements, rounds, receivers)]
    else:
        candidates = list(_looked_up(requirements, rounds, receivers, confidence))
    if not candidates:
        candidates = list(_sampled(requirements, rounds, receivers, views, confidence, on_view_sampled))
    if not candidates:
        raise RequirementsNotMet(
            "no settled run meets the requirements: no cancelling noise protects every party of the sampled runs; "
            "allow more messages"
        )
    best = _best(candidates)
    others = [_best(group) for group in _by_design(candidates) if group[0].design != best.design]
    unit, noise = requirements.var_local_dp * _ROUND_UP, best.noise
    return Plan(
        requirements=requirements,
        design=best.design,
        recipe="best",
        factor=noise.factor,
        noise_levels=NoiseLevels(
            independent=math.sqrt(unit * noise.start),
            cancelling=math.sqrt(unit * noise.level),
        ),
        budget=best.expected,
        standard_error=0.0,
        structure_bound=best.failure,
        sampling=best.basis,
        considered=tuple(
            AlternativeDesign(str(other.design), other.design.messages, other.expected.total / best.expected.total)
            for other in others
        ),
        settlement="settled",
    )


def _by_design(candidates: list[_Candidate]) -> Iterator[list[_Candidate]]:
    for design in dict.fromkeys(candidate.design for candidate in candidates):
        yield [candidate for candidate in candidates if candidate.design == design]


def _best(candidates: list[_Candidate]) -> _Candidate:
    return min(candidates, key=lambda candidate: candidate.price)


def _proven(requirements: Requirements, rounds: int | None, receivers: int | None) -> _Candidate:
    """Return the candidate of fewest rounds whose hidden messages join the honest parties that stay, in closed form."""
    if receivers not in (None, 1):
        refuse("receivers", receivers, "1 for a proven level")
    if requirements.away > 0.0:
        refuse("away", requirements.away, "0 for a proven level")
    joined = joined_design(requirements, rounds)
    staying = requirements.honest - requirements.leavers
    factor = _PROVEN_FACTOR * staying / (staying - joined.spare)  # the fewer stay, the more the spare ones weigh
    level = cancelling_variance_for_factor(
        factor=_PROVEN_FACTOR,
        mu=1.0,
        weight=1.0,
        joined=requirements.honest,
        rounds=joined.design.rounds,
        sensitivity=1.0,
    )
    basis = SamplingDetails(0, requirements.parties, (), 1.0, 0, kind="proven", known=_known(requirements))
    return _candidate(requirements, joined.design, factor, level, basis, joined.failure, residue=0.0)


def _looked_up(
    requirements: Requirements, rounds: int | None, receivers: int | None, confidence: float
) -> Iterator[_Candidate]:
    """Yield all candidates that the tables tell of: one receiver unless two are asked for, nobody away."""
    if receivers not in (None, 1, 2) or requirements.away > 0.0:
        return
    slots = receivers or 1
    if rounds is not None and slots * integer("rounds", rounds, min=1) > requirements.messages:
        return
    known = _known(requirements)
    for drawn in drawn_rounds():
        if slots * drawn > requirements.messages or (rounds is not None and drawn != rounds):
            continue
        needed = _needed_levels(requirements, slots, drawn, known, confidence)
        if not needed:
            continue
        design = ProtocolDesign(_schedule(slots), drawn, slots, quiet=QUIET_ROUNDS)
        residue = residue_of(design, requirements.parties, requirements.leavers)
        leaving = 0.0
        if requirements.leavers and (slots, requirements.eavesdropped) == (1, 0.0):
            certainty = {"failure": requirements.failure, "confidence": confidence}
            leaving = leavers_level(drawn, known, requirements.parties, design.injection(), **certainty)
        elif requirements.leavers:
            leaving = level_that_protects_leavers(design.injection())  # whatever was seen of them
        allowed = math.log(requirements.failure)
        surely = design.log_cut_off(requirements, 1.0) <= allowed  # with any factor
        for factor, one in needed.items():
            if not surely and design.log_cut_off(requirements, factor) > allowed:
                continue  # no level is enough as often, whatever the tables extrapolate
            kind = "drawn" if one.drawn else "extrapolated"
            basis = SamplingDetails(one.views, DRAWN_PARTIES, (), confidence, 0, kind=kind, known=one.known)
            yield _candidate(requirements, design, factor, max(one.level, leaving), basis, 0.0, residue)


def _needed_levels(
    requirements: Requirements, receivers: int, rounds: int, known: float, confidence: float
) -> dict[float, NeededLevel]:
    """Return the levels that the tables tell, by factor."""
    by_factor = {
        factor: needed_level(
            rounds,
            known,
            factor,
            requirements.parties,
            failure=requirements.failure,
            confidence=confidence,
            receivers=receivers,
            eavesdropped=requirements.eavesdropped,
        )
        for factor in level_tables().factors
    }
    return {factor: needed for factor, needed in by_factor.items() if needed is not None}


def _sampled(
    requirements: Requirements,
    rounds: int | None,
    receivers: int | None,
    views: int,
    confidence: float,
    on_view_sampled: OnViewSampled,
) -> Iterator[_Candidate]:
    """Yield candidates whose levels are extrapolated from sampled views, leavers counted as colluders."""
    design = sampled_design(requirements, rounds, receivers)
    factors = candidate_factors(requirements, sampled_parties(requirements, design))
    levels, basis = extrapolated_levels(requirements, design, factors, views, confidence, on_view_sampled, settled=True)
    residue = residue_of(design, requirements.parties, requirements.leavers)
    failure = math.exp(design.log_failure(requirements, settled=True))
    candidates = [
        _candidate(requirements, design, factor, level, basis, failure, residue)
        for factor, level in zip(
            factors.tolist(), leavers_protected(requirements, design, factors, levels), strict=True
        )
        if math.isfinite(level)
    ]
    yield from candidates if requirements.away == 0.0 else _with_absences(requirements, design, candidates, views)


def is_looked_up(requirements: Requirements) -> bool:
    """Return whether a plan is looked up in the tables of drawn views, and nothing is sampled for it.

    >>> is_looked_up(Requirements(100, 1.0)), is_looked_up(Requirements(100, 1.0, away=0.1))
    (True, False)
    """
    return next(_looked_up(requirements, None, None, 0.95), None) is not None


def looked_up_errors(requirements: Requirements) -> Iterator[tuple[ProtocolDesign, ErrorBudget]]:
    """Yield the designs that the tables of drawn views tell of, with the least error of each; none is sampled.

    Example:
        >>> for design, error in looked_up_errors(Requirements(100, 1.0, colluding=0.3, dropout=0.2)):
        ...     print(design.rounds, round(error.total, 6))
        14 0.003897
        20 0.003921
        30 0.003968
    """
    unlimited = replace(requirements, messages=max(drawn_rounds()))
    for group in _by_design(list(_looked_up(unlimited, None, None, 0.95))):
        best = _best(group)
        yield best.design, best.expected


def sampled_design(
    requirements: Requirements, rounds: int | None = None, receivers: int | None = None
) -> ProtocolDesign:
    """Return the design of a settled run whose noise is sampled: as many rounds as the messages allow.

    Example:
        >>> print(sampled_design(Requirements(100, 1.0, away=0.1)))
        permutation, 20 rounds, 1 receiver, value in shares, last 1 quiet
    """
    k = 1 if receivers is None else integer("receivers", receivers, 1, requirements.parties - 1)
    longest = requirements.messages // k if rounds is None else integer("rounds", rounds, min=1)
    design = ProtocolDesign(_schedule(k), max(1, longest), k, quiet=min(QUIET_ROUNDS, max(0, longest - 1)))
    fitting = [design] if longest >= 1 and longest * k <= requirements.messages else []
    (design,) = designs_that_hide_enough(requirements, fitting, rounds, receivers, settled=True)
    return design


def _schedule(receivers: int) -> str:
    """Return the kind of schedule: no bound is known for permutations with several receivers."""
    return "permutation" if receivers == 1 else "random"


def leavers_protected(requirements: Requirements, design: ProtocolDesign, factors: Array, levels: Array) -> list[float]:
    """Return the levels, raised where leavers need more than survivors; Local DP's noise protects leavers as well."""
    leaving = level_that_protects_leavers(design.injection()) if requirements.leavers else 0.0
    raised = np.where(factors >= requirements.honest, levels, np.maximum(levels, leaving))
    return [float(level) for level in raised]


def residue_of(design: ProtocolDesign, parties: int, leavers: int) -> float:
    """Return the variance in the settled sum without one final message: looked up where possible, else sampled."""
    if design == ProtocolDesign("permutation", design.rounds, quiet=QUIET_ROUNDS) and design.rounds in drawn_rounds():
        return unfinished_residue(design.rounds, leavers / parties)
    few = min(parties, _MOST_RESIDUE_PARTIES)
    return sample_residue(design, few, min(leavers / parties, 1.0 - 1.0 / few), runs=_RESIDUE_RUNS)


def _known(requirements: Requirements) -> float:
    """Return the fraction of the parties that collude or leave, at most."""
    return min(1.0, (requirements.colluders + requirements.leavers) / requirements.parties)


def _candidate(
    requirements: Requirements,
    design: ProtocolDesign,
    factor: float,
    level: float,
    basis: SamplingDetails,
    failure: float,
    residue: float,
) -> _Candidate:
    noise = SettledNoise.enough(requirements, design.injection(), factor, level)
    leavers = requirements.leavers
    expected, one_missing = noise.error(leavers), noise.error_without_one(leavers, residue)
    return _Candidate(design, noise, basis, failure, expected, one_missing)


def _with_absences(
    requirements: Requirements, design: ProtocolDesign, candidates: Iterable[_Candidate], views: int
) -> Iterator[_Candidate]:
    """Yield the candidates with the error of parties that miss rounds, who enter with a part of their weight."""
    errors = sample_error(requirements, design, requirements.dropout, views, settled=True)
    for candidate in candidates:
        noise, unit = candidate.noise, requirements.var_local_dp
        budget, _ = errors.expected_error(
            requirements, var_independent=unit * noise.total(requirements.leavers), var_cancelling=unit * noise.level
        )
        one_missing = replace(candidate.one_missing, independent=budget.independent, data=budget.data)
        yield replace(candidate, expected=budget, one_missing=one_missing)
