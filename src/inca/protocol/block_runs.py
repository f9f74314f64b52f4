"""Algorithms 1 and 2 on a block of coordinates, all parties at once.

The incremental family needs no more than each party's one live mask. Write y = z + (live mask): the masks need
never be stored, since a round draws them, adds them to z to form the messages, and takes them off what their
owners keep. Any other injection, or given noise, holds the n T noise terms of each coordinate in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from inca._base.kernels import Flags, renew_all, renew_some, settle_own
from inca._base.randomness import Normals, fill
from inca._base.threads import Crew
from inca._base.types import Array, Progress
from inca.protocol.execution import Execution
from inca.protocol.mixing import deliver, mixed
from inca.protocol.noise import CACHE_LINE_COLUMNS, Noise, NoiseBlock, spans, stream_parts
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.schedules import Round

_KEPT_SENDS = 1 << 22  # receivers, of all rounds together, that are kept from one block to the next


class RoundByRound:
    """The public part of an execution, round by round; kept if many blocks of coordinates go through it.

    Args:
        execution: The run.
        again: Whether there will be more than one block.
    """

    def __init__(self, execution: Execution, again: bool) -> None:
        self.execution = execution
        self.sends: Callable[[int], Round] = execution.sends
        self.sends_in_cohort: Callable[[int], Round] = execution.sends_in_cohort
        self.present: Callable[[int], Flags] = execution.presence.row
        if again and execution.parties * execution.schedule.slots * execution.rounds <= _KEPT_SENDS:
            self.sends, self.sends_in_cohort = cache(self.sends), cache(self.sends_in_cohort)
            self.present = cache(self.present)

    def mix(self, t: int, y: Array) -> Array:
        """Return W^O_t y without the shares that nobody credited and their senders never got back."""
        mixed_messages = mixed(self.sends(t), y, self.execution.one_receiver)
        for entry in self.execution.late:
            if entry.round == t:
                mixed_messages[entry.sender] -= self.execution.schedule.round(t).share * y[entry.sender]
        return mixed_messages

    def settlement(self, t: int, y: Array) -> Array:
        """Return (W^S_t - I) y: what y' gains or loses in a round by the transfers inside the cohort."""
        return mixed(self.sends_in_cohort(t), y, self.execution.one_receiver) - y


def run_all_terms(
    rounds: RoundByRound, x: Array, noise: Noise, out: Array, history: Array | None, report: Progress
) -> None:
    """Run the recursion for y^(t) as it stands, for any injection, with all noise terms at hand.

    Args:
        rounds: The run.
        x: The values, (n, w).
        noise: Independent terms (n, w), cancelling ones (n, T, w) and a top-up (n, w).
        out: Becomes the final messages, (n, w).
        history: Becomes all messages, (T+1, n, w), if it is there.
        report: Called with (rounds done, T).
    """
    execution, (n, width) = rounds.execution, x.shape
    injection, u = execution.injection, x + noise.independent
    counter = np.zeros(n, dtype=np.int64)
    y, settled = np.zeros((2, n, width))
    for t in range(execution.rounds + 1):
        here = rounds.present(t)
        rows = (injection.noise if t < execution.rounds else injection.closing)[counter]
        used = np.flatnonzero(rows.any(axis=0))  # of all terms, two or so have a part in a round
        part = injection.value[counter][:, np.newaxis] * u
        part += np.einsum("nk,nkd->nd", rows[:, used], noise.cancelling[:, used])
        part = np.where(here[:, np.newaxis], part, 0.0)
        if execution.settlement_matters:
            settled += part + (rounds.settlement(t, y) if t > 0 else 0.0)
        y = part + (rounds.mix(t, y) if t > 0 else 0.0)
        counter += here
        if history is not None:
            history[t] = y
        report(t, execution.rounds)
    out[:] = _final(execution, y, settled, noise.topup)


def _final(execution: Execution, y: Array, settled: Array, topup: Array | None) -> Array:
    """Return the last messages: settled and with their top-up noise for the cohort, y^(T) for the others."""
    if execution.cohort is None:
        return y
    cohort = execution.cohort[:, np.newaxis]
    messages = np.where(cohort, settled, y) if execution.settlement_matters else y
    return messages if topup is None else messages + np.where(cohort, topup, 0.0)


class IncrementalRun:
    """A run of the incremental family with noise drawn round by round.

    While one thread mixes a round, the others draw the noise and the receivers of the next one.

    Args:
        rounds: The run.
        x: The values, (n, w).
        levels: How much noise there is.
        block: What it is drawn from.
        crew: Who works.
    """

    def __init__(self, rounds: RoundByRound, x: Array, levels: NoiseLevels, block: NoiseBlock, crew: Crew) -> None:
        self.rounds, self.execution, self.crew = rounds, rounds.execution, crew
        self.block, self.levels, self.x = block, levels, np.ascontiguousarray(x)
        injection = self.execution.injection
        assert injection.mask_scales is not None
        self.portions, self.scales = injection.value, levels.cancelling * injection.mask_scales
        # x + eta*; what parties hold but for their live masks; the masks, which become the messages sent; the
        # next masks.
        self.u, self.held, self.mask, self.next_mask = np.empty((4, *x.shape))
        # Everyone does the same in every round, or each party has its own history.
        even_share = self.execution.schedule.even_share if self.execution.presence.all_present else None
        self.kept = None if even_share is None else 1.0 - self.execution.schedule.slots * even_share
        self.live = np.empty_like(self.x[:0] if self.kept is not None else self.x)
        self.counter = np.ones(0 if self.kept is not None else len(x), dtype=np.int32)
        # y' without its owner's live mask, where it is not what the party holds in the end.
        self.settled = np.zeros_like(self.x if self.execution.settlement_matters else self.x[:0])

    def run(self, out: Array, history: Array | None, report: Progress) -> None:
        """Run all rounds; the arguments are those of `run_all_terms`."""
        rounds, crew = self.execution.rounds, self.crew
        step, *_ = crew.work([partial(self.rounds.sends, 1), *self._starts()])
        report(0, rounds)
        if self.execution.settlement_matters:
            self.settled += self.held
        for t in range(1, rounds + 1):
            self.mask, self.next_mask = self.next_mask, self.mask
            if t < rounds:  # while one thread mixes, the others prepare the next round
                jobs = [partial(self._mix, t, step, columns) for columns in self._columns()]
                results = crew.work([*jobs, partial(self.rounds.sends, t + 1), *self._draws(self.next_mask)])
                step = results[len(jobs)]
            else:
                self._mix_last(step)
            if self.execution.settlement_matters:
                self._settle(t)
            if self.kept is None:
                self.counter += self.rounds.present(t)
            if history is not None:
                history[t - 1] = self.mask
            report(t, rounds)
        if self.kept is None:  # those who left still hold their masks
            absent = ~self.rounds.present(rounds)
            self.held[absent] = self.mask[absent]
        if history is not None:
            history[rounds] = self.held
        topup = self.block.draw_topup(self.levels, len(self.x))
        out[:] = _final(self.execution, self.held, self.settled, topup)

    def _settle(self, t: int) -> None:
        """Move y' on to round t, whose messages are in `mask`: along the transfers inside the cohort only."""
        step, n, width = self.rounds.sends_in_cohort(t), *self.x.shape
        portions = self.portions[self.counter if self.kept is None else t]
        injected = np.where(self.rounds.present(t), portions, 0.0)
        settle_own(self.settled, self.mask, self.u, step.kept, injected)
        self._deliver(step, self.settled, (0, n), (0, width))

    def _draws(self, out: Array) -> list[Callable[[], None]]:
        """Return the jobs that fill an array with noise."""
        return [partial(fill, stream, part) for stream, part in stream_parts(self.block.streams, out)]

    def _starts(self) -> list[Callable[[], None]]:
        arrays = (self.x, self.u, self.held, self.next_mask)
        parts = zip(*(stream_parts(self.block.streams, array) for array in arrays), strict=True)
        return [partial(self._start, same[0][0], *(part for _, part in same)) for same in parts]

    def _start(self, stream: Normals, x: Array, u: Array, held: Array, mask: Array) -> None:
        """Draw independent noise and the first masks."""
        fill(stream, u)
        u *= self.levels.independent
        u += x
        np.multiply(u, self.portions[0], out=held)
        fill(stream, mask)

    def _columns(self) -> list[tuple[int, int]]:
        """Return the ranges of columns that threads mix at a time."""
        d = self.x.shape[1]
        return spans(d, max(CACHE_LINE_COLUMNS, -(-d // self.crew.threads)))

    def _mix(self, t: int, step: Round, columns: tuple[int, int]) -> None:
        """Form the messages of round t and add them to what their receivers hold."""
        self._renew(t, step, columns)
        self._deliver(step, self.held, (0, len(self.x)), columns)

    def _mix_last(self, step: Round) -> None:
        """`_mix` for the last round, when there is nothing to prepare beside: short vectors are mixed in two halves.

        The halves are those of the senders, and the second goes to a spare array first, so that the order of sums,
        and with it the last bit of the result, is the same for any number of threads.
        """
        t, n, d = self.execution.rounds, *self.x.shape
        if d > CACHE_LINE_COLUMNS:
            self.crew.work([partial(self._mix, t, step, columns) for columns in self._columns()])
            return
        everything = (0, d)
        self._renew(t, step, everything)
        spare, half = self.next_mask, n // 2

        def second() -> None:
            spare[:] = 0.0
            self._deliver(step, spare, (half, n), everything)

        self.crew.work([second, partial(self._deliver, step, self.held, (0, half), everything)])
        self.held += spare

    def _deliver(self, step: Round, out: Array, senders: tuple[int, int], columns: tuple[int, int]) -> None:
        deliver(step, self.mask, out, senders, columns, self.execution.one_receiver)

    def _renew(self, t: int, step: Round, columns: tuple[int, int]) -> None:
        """Form the messages of round t, and leave what their owners keep."""
        n, d = self.held.shape
        if self.kept is not None:
            # All columns are one long row, which the machine goes through fastest.
            shape, span = ((1, n * d), (0, n * d)) if columns == (0, d) else ((n, d), columns)
            held, mask, u = (array.reshape(shape) for array in (self.held, self.mask, self.u))
            renew_all(held, mask, u, self.scales[t - 1], self.kept, self.portions[t], *span)
        else:
            flags = (self.rounds.present(t - 1), self.rounds.present(t))
            arrays = (self.held, self.mask, self.u, self.live, self.scales, self.portions)
            renew_some(*arrays, step.kept, self.counter, *flags, *columns)
