"""From requirements to a plan, in closed form; or by the paper's own recipe, from sampled views."""

from __future__ import annotations

from inca._base.options import PlanOptions
from inca._base.types import Progress
from inca._base.validation import instance, integer, method_of, one_of, refuse
from inca.planning.plan import Plan, Sampled
from inca.planning.requirements import Requirements
from inca.planning.sampled_error import sampled_error
from inca.planning.settled import joined_design, settled_error, settled_noise

_RUNS = 450  # sampled for the error, where it depends on who is absent when


def plan(requirements: Requirements, options: PlanOptions | None = None, *, progress: Progress | None = None) -> Plan:
    """Find the parameters of least error that meet the requirements.

    Settled runs are planned by formulas that are proven (`inca.planning.settled`), in no time for any number of
    parties. With recipe "paper" Algorithm 2 is calibrated as the paper does it, on sampled views; the result does not
    depend on chance, as they are sampled from fixed seeds.

    Args:
        requirements: The guarantee, the adversary, the dropouts and how many messages may be sent.
        options: What is fixed; by default nothing is.
        progress: Called with the views done and their total, where views are sampled.

    Returns:
        A plan: the design, the noise levels, the expected error, and how likely the guarantee fails.

    Raises:
        RequirementsNotMet: If no plan meets the requirements; the sentence says why, and what could be done.
        InvalidInput: If an argument is out of its range.

    Example:
        >>> requirements = Requirements(parties=200, epsilon=0.2, delta=1e-5, colluding=0.1, dropout=0.1)
        >>> best = plan(requirements)
        >>> print(best.design)
        permutation, 6 rounds, 1 receiver, value in shares
        >>> round(best.expected_mse / requirements.central_mse, 3)  # of a trusted curator, with everybody present
        1.403
    """
    instance("requirements", requirements, Requirements)
    options = instance("options", PlanOptions() if options is None else options, PlanOptions)
    if progress is not None:
        method_of("progress", progress, "__call__", "a function")
    one_of("recipe", options.recipe, ("best", "paper"))
    integer("views", options.views, min=2)
    if options.recipe == "paper":
        return _by_the_paper(requirements, options, progress)
    if options.receivers not in (None, 1):
        refuse("receivers", options.receivers, "1, but for recipe paper: with more no noise is proven to suffice")
    joined = joined_design(requirements, options.rounds)
    noise = settled_noise(requirements, joined.design.rounds, joined.spare)
    noise.levels.refuse_uncancelled()
    error, standard_error = settled_error(requirements, noise, requirements.leavers), 0.0
    if requirements.away > 0.0:
        error, standard_error = sampled_error(
            requirements, joined.design, noise.levels_of, requirements.dropout, _RUNS, settled=True
        )
    return Plan(
        requirements=requirements,
        design=joined.design,
        recipe="best",
        noise_levels=noise.levels,
        budget=error,
        failure_probability=joined.failure,
        spare=joined.spare,
        standard_error=standard_error,
    )


def _by_the_paper(requirements: Requirements, options: PlanOptions, progress: Progress | None) -> Plan:
    from inca.planning.paper_recipe import dropout_rates, paper_design, paper_noise  # slow to import

    views, rates = options.views, dropout_rates(requirements)
    done, total = 0, views * len(rates)

    def count() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    design = paper_design(requirements, options.rounds, options.receivers)
    levels = paper_noise(requirements, design, views, count)
    error, standard_error = sampled_error(requirements, design, lambda _: levels, requirements.dropout, _RUNS)
    return Plan(
        requirements=requirements,
        design=design,
        recipe="paper",
        noise_levels=levels,
        budget=error,
        failure_probability=1.0 / (views + 1.0),  # the next view is as likely as any of them to need most
        standard_error=standard_error,
        sampled=Sampled(views, rates),
    )
