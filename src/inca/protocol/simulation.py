"""Algorithms 1 and 2, all parties at once, in blocks of coordinates.

Given the execution, coordinates have nothing to do with each other. So a block of them, small enough for a core's own
cache, goes through all rounds before the next one; memory beside values and final messages is that of a block for each
thread. With so many parties that a few coordinates are more than that, all threads work on one block.

Noise comes from one stream per block of entries, so results depend neither on the number of threads nor on their
timing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from inca._base.randomness import Normals
from inca._base.threads import Crew, available_cores
from inca._base.types import Array, Progress
from inca._base.validation import finite_array, instance, integer, party_values, refuse
from inca.errors import InvalidInput
from inca.protocol.block_runs import IncrementalRun, RoundByRound, run_all_terms
from inca.protocol.execution import Execution
from inca.protocol.noise import Noise, NoiseBlock, check_source, column_blocks, draw_block, noise_blocks
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.undelivered import refuse_late

_ONE_THREAD_ENTRIES = 4096  # of values up to which a run stays in one thread
_LARGEST_RATIO = 1e9  # of cancelling noise to values; what rounding leaves of it is then below a millionth of them


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a run leaves behind: the last message of every party, and the execution it belongs to.

    The estimate is sum_i y_i^(T) / sum_i w_i over the published messages and the weights that they carry.

    Args:
        execution: The run.
        messages: The last message of every party, (n,) or (n, d), settled if it is in the cohort; those of parties that
            left are not published.
        history: All messages y^(0)..y^(T), (T+1, n) or (T+1, n, d), if they were recorded.
    """

    execution: Execution
    messages: Array
    history: Array | None = None

    def __repr__(self) -> str:
        recorded = "" if self.history is None else f", history of {self.history.shape}"
        return f"Outcome({self.execution!r}, messages of shape {self.messages.shape}{recorded})"

    @property
    def present(self) -> int:
        """The number of final messages that make up the estimate."""
        return int(self.execution.published.sum())

    @property
    def weight(self) -> float:
        """The total weight of values in the published messages; n when nobody was ever absent."""
        return self.execution.weight

    @property
    def weights(self) -> Array:
        """The weight carried by each party's last message."""
        return self.execution.message_weights

    @property
    def estimate(self) -> float | Array | None:
        """Sum of the published messages over their weight; None if there is nothing to divide."""
        return _divided(self.execution, _published_sum(self.execution, self.messages))


def simulate(
    execution: Execution,
    values: ArrayLike,
    noise_levels: NoiseLevels | None = None,
    rng: Normals | None = None,
    *,
    noise: Noise | None = None,
    record: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Run Algorithm 2 (Algorithm 1 when nobody is absent): y^(t) = W^O_t y^(t-1) + c_t (x + eta*) + Z_t eta.

    Args:
        execution: Who sends what to whom, and who settles; shares that came back late are refused.
        values: The private values x, of shape (n,) or (n, d).
        noise_levels: The noise to draw; needed unless `noise` is given.
        rng: What noise is drawn from: a `numpy.random.Generator`, or `SystemNormals` for values of real persons.
        noise: The noise terms themselves, instead of `noise_levels` and `rng`.
        record: Whether every message of every round is kept.
        threads: How many threads work; by default as many as there are cores, or one for a small run. The result does
            not depend on it.
        progress: Called with (steps done, steps in all): a step is a round, or with many coordinates a block of them.

    Returns:
        The outcome, with the estimate.

    Raises:
        InvalidInput: If values or noise do not fit the execution, or the noise is given twice or not at all.

    Example:
        >>> import inca
        >>> execution = inca.Execution(inca.RandomReceivers(1000, rounds=10, seed=1), inca.incremental_injection(10))
        >>> levels = inca.NoiseLevels(independent=0.0, cancelling=50.0)
        >>> outcome = inca.simulate(execution, np.full(1000, 0.25), levels, rng=np.random.default_rng(2))
        >>> round(outcome.estimate, 9), outcome.weight
        (0.25, 1000.0)
    """
    run = _Run(execution, values, noise_levels, rng, noise, threads, progress)
    messages = np.empty(run.x.shape)
    history = np.empty((execution.rounds + 1, *run.x.shape)) if record else None

    def job(block: _Block) -> None:
        block.run(messages[:, block.columns], None if history is None else history[:, :, block.columns])

    run.all_blocks(job)
    recorded = None if history is None else history.reshape(-1, *run.shape)
    return Outcome(execution, messages.reshape(run.shape), recorded)


def simulated_estimate(
    execution: Execution,
    values: ArrayLike,
    noise_levels: NoiseLevels,
    rng: Normals,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> float | Array | None:
    """Return the estimate of `simulate` for the same arguments; no block's messages outlive it.

    Example:
        >>> import inca
        >>> execution = inca.Execution(inca.RandomReceivers(4, rounds=2, seed=1), inca.incremental_injection(2))
        >>> levels = inca.NoiseLevels(independent=0.0, cancelling=50.0)
        >>> simulated_estimate(execution, np.ones((4, 3)), levels, np.random.default_rng(2)).round(9)
        array([1., 1., 1.])
    """
    run = _Run(execution, values, noise_levels, rng, None, threads, progress)
    total = np.empty(run.x.shape[1])

    def job(block: _Block) -> None:
        messages = np.empty(block.x.shape)
        block.run(messages, None)
        total[block.columns] = _published_sum(execution, messages if len(run.shape) == 2 else messages.reshape(-1))

    run.all_blocks(job)
    return _divided(execution, total.reshape(run.shape[1:]))


def _published_sum(execution: Execution, messages: Array) -> Array:
    """Return the sum of the published messages, (n,) or (n, d)."""
    if execution.published.all():
        return np.asarray(messages.sum(axis=0))
    if messages.ndim == 1:
        return np.asarray(messages[execution.published].sum())
    return np.asarray(messages.sum(axis=0, where=execution.published[:, np.newaxis]))  # without a copy of them


def _divided(execution: Execution, total: Array) -> float | Array | None:
    """Return a sum of published messages over their weight; None if there is nothing to divide."""
    if execution.weight == 0.0:
        return None
    estimate = total / execution.weight
    return float(estimate) if total.ndim == 0 else estimate


def _silent(done: int, total: int) -> None:
    """Report nothing."""


class _Run:
    """What is run, checked, and cut into blocks of coordinates."""

    def __init__(
        self,
        execution: Execution,
        values: ArrayLike,
        noise_levels: NoiseLevels | None,
        rng: Normals | None,
        noise: Noise | None,
        threads: int | None,
        progress: Progress | None,
    ) -> None:
        self.execution = instance("execution", execution, Execution)
        refuse_late(
            [entry for entry in execution.late if entry.back], "runs with shares that come back later are not simulated"
        )
        rows = party_values(values, execution.parties)
        self.shape, self.x = rows.shape, rows.reshape(execution.parties, -1)
        # Handing a small round over to a thread takes longer than the round.
        usual = available_cores() if rows.size > _ONE_THREAD_ENTRIES else 1
        self.threads = usual if threads is None else integer("threads", threads, min=1)
        self.report = progress or _silent
        self.levels: NoiseLevels | None = None
        self.noise: Noise | None = None
        n, d = self.x.shape
        if noise is None:
            self.levels, source = check_source(noise_levels, rng)
            self._check_levels(self.levels)
            self.blocks = noise_blocks(self.levels, source, n, d)
        elif noise_levels is None and rng is None:
            self.noise = _checked(instance("noise", noise, Noise), execution, d)
            self.blocks = [NoiseBlock(columns) for columns in column_blocks(n, d)]
        else:
            raise InvalidInput("noise cannot be combined with noise_levels or rng")
        self.rounds = RoundByRound(execution, again=len(self.blocks) > 1)

    def _check_levels(self, levels: NoiseLevels) -> None:
        """Refuse noise that nobody adds, or that doubles cannot cancel."""
        if levels.topup > 0 and self.execution.cohort is None:
            refuse("sigma_topup", levels.topup, "0, as nobody settles")
        levels.refuse_uncancelled()
        if levels.independent == 0.0 and levels.cancelling > 0.0:
            largest = max(float(self.x.max()), -float(self.x.min()))
            if levels.cancelling > _LARGEST_RATIO * largest > 0.0:
                must_be = f"at most {_LARGEST_RATIO:g} times the largest value, since doubles cannot cancel more"
                refuse("sigma_cancelling", levels.cancelling, must_be)

    def all_blocks(self, job: Callable[[_Block], None]) -> None:
        """Do a job for all blocks: as many at a time as there are threads, or one by all threads if it is large."""
        count, rounds, one_stream = len(self.blocks), self.execution.rounds, len(self.blocks[0].streams) <= 1
        with Crew(self.threads) as crew, Crew(1) as nobody_else:
            if count > 1 and one_stream:
                self.report(0, count)
                jobs = [partial(job, _Block(self, block, nobody_else, _silent)) for block in self.blocks]
                crew.work(jobs, self.report)
                return
            for number, block in enumerate(self.blocks):
                report = partial(self._report_round, number * rounds, count * rounds)
                job(_Block(self, block, crew, report))

    def _report_round(self, before: int, total: int, t: int, _: int) -> None:
        self.report(before + t, total)


@dataclass(frozen=True, eq=False)
class _Block:
    """Coordinates that are run on their own, and the crew that does it."""

    whole_run: _Run
    block: NoiseBlock
    crew: Crew
    report: Progress

    @property
    def columns(self) -> slice:
        return self.block.columns

    @property
    def x(self) -> Array:
        return self.whole_run.x[:, self.columns]

    def run(self, out: Array, history: Array | None) -> None:
        """Run all rounds; the arguments are those of `run_all_terms`."""
        execution, rounds, levels = self.whole_run.execution, self.whole_run.rounds, self.whole_run.levels
        if self.whole_run.noise is not None:
            noise = _columns_of(self.whole_run.noise, self.columns)
        else:
            assert levels is not None
            if execution.injection.mask_scales is not None and not execution.late:
                IncrementalRun(rounds, self.x, levels, self.block, self.crew).run(out, history, self.report)
                return
            noise = draw_block(execution, levels, self.block)
        run_all_terms(rounds, self.x, noise, out, history, self.report)


def _checked(noise: Noise, execution: Execution, d: int) -> Noise:
    """Return given noise as arrays of n rows and d columns, or refuse it."""
    n, rounds = execution.parties, execution.rounds
    independent = finite_array("noise.independent", noise.independent, (1, 2), "(n,) or (n, d)")
    cancelling = finite_array("noise.cancelling", noise.cancelling, (2, 3), "(n, T) or (n, T, d)")
    topup = None if noise.topup is None else finite_array("noise.topup", noise.topup, (1, 2), "(n,) or (n, d)")
    arrays = [("independent", independent, (n, d)), ("cancelling", cancelling, (n, rounds, d))]
    if topup is not None:
        arrays.append(("topup", topup, (n, d)))
    for name, array, full in arrays:
        if array.size != math.prod(full) or array.shape[0] != n:
            refuse(f"the shape of noise.{name}", array.shape, str(full) if d > 1 else f"{full[:-1]} or {full}")
    return Noise(
        independent.reshape(n, d), cancelling.reshape(n, rounds, d), None if topup is None else topup.reshape(n, d)
    )


def _columns_of(noise: Noise, columns: slice) -> Noise:
    topup = None if noise.topup is None else noise.topup[:, columns]
    return Noise(noise.independent[:, columns], noise.cancelling[:, :, columns], topup)
