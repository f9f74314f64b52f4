"""Algorithms 1 and 2, all parties at once.

The incremental family needs no more than each party's one live mask. Write y = z + (live mask): the masks need
never be stored, since a round draws them, adds them to z to form the messages, and takes them off what their
owners keep. Any other injection, or given noise, holds all n T noise terms in memory.

While one thread mixes a round, the others draw the noise and the receivers of the next one. Noise comes from
one stream per block of entries, so results depend neither on the number of threads nor on their timing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from inca._base.kernels import renew_all, renew_some
from inca._base.randomness import Normals, fill, split
from inca._base.threads import available_cores
from inca._base.types import Array, Progress
from inca._base.validation import finite_array, instance, integer, party_values, refuse
from inca.errors import InvalidInput
from inca.protocol.execution import Execution
from inca.protocol.noise import BLOCK_ENTRIES, Noise, check_source, draw_noise, draw_topup, spans
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.schedules import Round
from inca.protocol.undelivered import refuse_late

_ONE_THREAD_ENTRIES = 4096  # of values up to which a run stays in one thread
_LARGEST_RATIO = 1e9  # of cancelling noise to values; what rounding leaves of it is then below a millionth of them
_CACHE_LINE_COLUMNS = 8  # coordinates that share a line of the cache: threads that mix fewer would disturb each other


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
        if self.weight == 0.0:
            return None
        total = self.messages[self.execution.published].sum(axis=0) / self.weight
        return float(total) if self.messages.ndim == 1 else np.asarray(total)


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
        progress: Called with (rounds done, T).

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
    instance("execution", execution, Execution)
    refuse_late(
        [entry for entry in execution.late if entry.back], "runs with shares that come back later are not simulated"
    )
    rows = party_values(values, execution.parties)
    # Handing a small round over to a thread takes longer than the round.
    usual = available_cores() if rows.size > _ONE_THREAD_ENTRIES else 1
    workers = usual if threads is None else integer("threads", threads, min=1)
    x = rows.reshape(execution.parties, -1)
    report = progress or (lambda done, total: None)
    if noise is None:
        levels, source = check_source(noise_levels, rng)
        if levels.topup > 0 and execution.cohort is None:
            refuse("sigma_topup", levels.topup, "0, as nobody settles")
        levels.refuse_uncancelled()
        if levels.independent == 0.0 and levels.cancelling > _LARGEST_RATIO * float(np.abs(x).max()) > 0.0:
            must_be = f"at most {_LARGEST_RATIO:g} times the largest value, since doubles cannot cancel more"
            refuse("sigma_cancelling", levels.cancelling, must_be)
        if execution.injection.mask_scales is not None and not execution.late:
            run = _IncrementalRun(execution, x, levels, source, record, workers, report)
            return run.outcome(rows.shape, draw_topup(levels, source, x.shape))
        noise = draw_noise(execution, levels, source, dimensions=x.shape[1])
    elif not (noise_levels is None and rng is None):
        raise InvalidInput("noise cannot be combined with noise_levels or rng")
    return _run_all_terms(execution, x, instance("noise", noise, Noise), record, report, rows.shape)


def _run_all_terms(
    execution: Execution, x: Array, noise: Noise, record: bool, report: Progress, shape: tuple[int, ...]
) -> Outcome:
    """Run the recursion for y^(t) as it stands, for any injection, with all noise terms at hand."""
    n, rounds, d = execution.parties, execution.rounds, x.shape[1]
    independent = finite_array("noise.independent", noise.independent, (1, 2), "(n,) or (n, d)")
    cancelling = finite_array("noise.cancelling", noise.cancelling, (2, 3), "(n, T) or (n, T, d)")
    for name, array, full in (("independent", independent, (n, d)), ("cancelling", cancelling, (n, rounds, d))):
        if array.size != math.prod(full) or array.shape[0] != n:
            refuse(f"the shape of noise.{name}", array.shape, str(full) if d > 1 else f"{full[:-1]} or {full}")
    u = x + independent.reshape(n, d)
    eta = cancelling.reshape(n, rounds, d)
    injection = execution.injection
    counter = np.zeros(n, dtype=np.int64)
    y, settled = np.zeros((2, n, d))
    history = [y][:0]
    for t in range(rounds + 1):
        here = execution.presence.row(t)
        rows = (injection.noise if t < rounds else injection.closing)[counter]
        used = np.flatnonzero(rows.any(axis=0))  # of all terms, two or so have a part in a round
        part = injection.value[counter][:, np.newaxis] * u + np.einsum("nk,nkd->nd", rows[:, used], eta[:, used])
        part = np.where(here[:, np.newaxis], part, 0.0)
        if execution.settlement_matters:
            settled += part + (execution.settlement(t, y) if t > 0 else 0.0)
        y = part + (_mix_and_lose(execution, t, y) if t > 0 else 0.0)
        counter += here
        if record:
            history.append(y)
        report(t, rounds)
    kept = np.stack(history).reshape(rounds + 1, *shape) if record else None
    topup = None if noise.topup is None else finite_array("noise.topup", noise.topup, (1, 2), "(n,) or (n, d)")
    return Outcome(execution, _final(execution, y, settled, topup).reshape(shape), kept)


def _mix_and_lose(execution: Execution, t: int, y: Array) -> Array:
    """Return W^O_t y without the shares that nobody credited and their senders never got back."""
    mixed = execution.mix(t, y)
    for entry in execution.late:
        if entry.round == t:
            mixed[entry.sender] -= execution.schedule.round(t).share * y[entry.sender]
    return mixed


def _final(execution: Execution, y: Array, settled: Array, topup: Array | None) -> Array:
    """Return the last messages: settled and with their top-up noise for the cohort, y^(T) for the others."""
    if execution.cohort is None:
        return y
    cohort = execution.cohort[:, np.newaxis]
    messages = np.where(cohort, settled, y) if execution.settlement_matters else y
    return messages if topup is None else messages + np.where(cohort, topup.reshape(y.shape), 0.0)


class _IncrementalRun:
    """A run of the incremental family with noise drawn round by round."""

    def __init__(
        self,
        execution: Execution,
        x: Array,
        levels: NoiseLevels,
        rng: Normals,
        record: bool,
        workers: int,
        report: Progress,
    ) -> None:
        assert execution.injection.mask_scales is not None
        self.execution, self.workers, self.report = execution, workers, report
        self.portions = execution.injection.value
        self.scales = levels.cancelling * execution.injection.mask_scales
        self.streams = split(rng, len(spans(x.size, BLOCK_ENTRIES)))
        self.x, self.sigma_independent = x, levels.independent
        # x + eta*; what parties hold but for their live masks; the masks, which become the messages sent; the
        # next masks.
        self.u, self.held, self.mask, self.next_mask = np.empty((4, *x.shape))
        # Everyone does the same in every round, or each party has its own history.
        even_share = execution.schedule.even_share if execution.presence.all_present else None
        self.kept = None if even_share is None else 1.0 - execution.schedule.slots * even_share
        self.live = np.empty_like(x[:0] if self.kept is not None else x)
        self.counter = np.ones(0 if self.kept is not None else x.shape[0], dtype=np.int32)
        self.history: list[Array] | None = [] if record else None
        # y' without its owner's live mask, where it is not what the party holds in the end.
        self.settled = np.zeros_like(x if execution.settlement_matters else x[:0])

    def outcome(self, shape: tuple[int, ...], topup: Array | None) -> Outcome:
        """Run all rounds."""
        rounds = self.execution.rounds
        with _Crew(self.workers) as crew:
            step, *_ = crew.work([partial(self.execution.sends, 1), *self._jobs_by_block(self._start)])
            self.report(0, rounds)
            if self.execution.settlement_matters:
                self.settled += self.held
            draws = self._jobs_by_block(self._draw)
            for t in range(1, rounds + 1):
                self.mask, self.next_mask = self.next_mask, self.mask
                if t < rounds:  # while one thread mixes, the others prepare the next round
                    jobs = [partial(self._mix, t, step, columns) for columns in self._columns()]
                    results = crew.work([*jobs, partial(self.execution.sends, t + 1), *draws])
                    step = results[len(jobs)]
                else:
                    self._mix_last(crew, step)
                if self.execution.settlement_matters:
                    self._settle(t)
                if self.kept is None:
                    self.counter += self.execution.presence.row(t)
                if self.history is not None:
                    self.history.append(self.mask.copy())
                self.report(t, rounds)
        if self.kept is None:  # those who left still hold their masks
            absent = ~self.execution.presence.row(rounds)
            self.held[absent] = self.mask[absent]
        history = None
        if self.history is not None:
            history = np.stack([*self.history, self.held]).reshape(rounds + 1, *shape)
        messages = _final(self.execution, self.held, self.settled, topup)
        return Outcome(self.execution, messages.reshape(shape), history)

    def _settle(self, t: int) -> None:
        """Move y' on to round t, whose messages are in `mask`: along the transfers inside the cohort only."""
        here = self.execution.presence.row(t)
        portions = self.portions[self.counter if self.kept is None else t]
        self.settled += self.execution.settlement(t, self.mask)
        self.settled += np.where(here, portions, 0.0)[:, np.newaxis] * self.u

    def _jobs_by_block(self, job: Callable[[Normals, slice], None]) -> list[Callable[[], None]]:
        """Return a job for each block of entries, with the block's own stream of noise."""
        parts = [slice(lo, hi) for lo, hi in spans(self.x.size, BLOCK_ENTRIES)]
        return [partial(job, stream, part) for stream, part in zip(self.streams, parts, strict=True)]

    def _start(self, stream: Normals, part: slice) -> None:
        """Draw independent noise and the first masks."""
        u = self.u.reshape(-1)[part]
        fill(stream, u)
        u *= self.sigma_independent
        u += self.x.reshape(-1)[part]
        np.multiply(u, self.portions[0], out=self.held.reshape(-1)[part])
        self._draw(stream, part)

    def _draw(self, stream: Normals, part: slice) -> None:
        """Draw the next masks."""
        fill(stream, self.next_mask.reshape(-1)[part])

    def _columns(self) -> list[tuple[int, int]]:
        """Return the ranges of columns that threads mix at a time."""
        d = self.x.shape[1]
        return spans(d, max(_CACHE_LINE_COLUMNS, -(-d // self.workers)))

    def _mix(self, t: int, step: Round, columns: tuple[int, int]) -> None:
        """Form the messages of round t and add them to what their receivers hold."""
        self._renew(t, step, columns)
        self.execution.deliver(step, self.mask, self.held, (0, self.execution.parties), columns)

    def _mix_last(self, crew: _Crew, step: Round) -> None:
        """`_mix` for the last round, when there is nothing to prepare beside: short vectors are mixed in two halves.

        The halves are those of the senders, and the second goes to a spare array first, so that the order of sums,
        and with it the last bit of the result, is the same for any number of threads.
        """
        t, n = self.execution.rounds, self.execution.parties
        if self.x.shape[1] > _CACHE_LINE_COLUMNS:
            crew.work([partial(self._mix, t, step, columns) for columns in self._columns()])
            return
        everything = (0, self.x.shape[1])
        self._renew(t, step, everything)
        spare, half = self.next_mask, n // 2

        def second() -> None:
            spare[:] = 0.0
            self.execution.deliver(step, self.mask, spare, (half, n), everything)

        crew.work([second, partial(self.execution.deliver, step, self.mask, self.held, (0, half), everything)])
        self.held += spare

    def _renew(self, t: int, step: Round, columns: tuple[int, int]) -> None:
        """Form the messages of round t, and leave what their owners keep."""
        n, d = self.held.shape
        if self.kept is not None:
            # All columns are one long row, which the machine goes through fastest.
            shape, span = ((1, n * d), (0, n * d)) if columns == (0, d) else ((n, d), columns)
            held, mask, u = (array.reshape(shape) for array in (self.held, self.mask, self.u))
            renew_all(held, mask, u, self.scales[t - 1], self.kept, self.portions[t], *span)
        else:
            flags = (self.execution.presence.row(t - 1), self.execution.presence.row(t))
            arrays = (self.held, self.mask, self.u, self.live, self.scales, self.portions)
            renew_some(*arrays, step.kept, self.counter, *flags, *columns)


class _Crew:
    """The calling thread and others, who take jobs from a common list in order."""

    def __init__(self, threads: int) -> None:
        self._helpers = threads - 1
        self._pool = ThreadPoolExecutor(max(1, self._helpers))  # starts threads only when they get work

    def __enter__(self) -> _Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def work(self, jobs: Sequence[Callable[[], Any]]) -> list[Any]:
        """Do all jobs and return their results; raise the first error of a thread, after all have stopped."""
        results: list[Any] = [None] * len(jobs)
        numbers = iter(range(len(jobs)))  # its steps are atomic, so threads may share it

        def take() -> None:
            for number in numbers:
                results[number] = jobs[number]()

        others = [self._pool.submit(take) for _ in range(self._helpers)]
        try:
            take()
        finally:
            wait(others)
        for other in others:
            other.result()
        return results
