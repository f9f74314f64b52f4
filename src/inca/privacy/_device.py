"""The filter of `_state_space` with dense updates in PyTorch, for a GPU: the same recursion, the same numbers.

The covariance is carried in three blocks of doubles, all on the device,

    values  cov(u, u),        cross  cov(states, u),        states  cov(states, states),

24 n_H^2 bytes in all, and everything is done in them in place, a band of columns or a tile at a time. Of the two
symmetric blocks one half is worked out and mirrored. A round with m observed messages takes 4 n_H^2 m multiplications
and additions, the n_H final messages take 4/3 n_H^3 more. Nearly all of them are in matrix products, in which a GPU is
at its best.

PyTorch is an extra, which nothing else in this package needs: pip install 'inca[torch]'. Without it this file can still
be imported.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from scipy.sparse import csc_array, diags_array

from inca._base.kernels import Ids
from inca._base.types import Array, Progress
from inca._base.validation import one_of, refuse
from inca.errors import InvalidInput, SingularView
from inca.privacy._recursion import PROBES, Probes, Recursion, Step
from inca.privacy.view import View

Device = Literal["cpu", "cuda"]

WORTH_IT = 4_000  # honest parties from which on a GPU is taken unasked: starting it takes as long as 16 cores for them
_TILE = 4096  # rows and columns of a piece of a matrix product: large enough for full speed on an H200
_PANEL = 1024  # columns that are factored at once; what is right of them is a matrix product
_BAND = 1024  # columns of a covariance that are mixed at once: the memory beside the three blocks
_MARGIN = 1.05  # of memory, for what libraries keep for themselves


def on_gpu(device: Device | None, view: View, *, suits: bool) -> bool:
    """Return whether to work on the GPU: if asked to, or unasked where there is one and the view is large.

    Asked for a GPU that is not there or too small, it refuses. Unasked it takes the CPU, and warns if a GPU that is
    there has too little memory, since the CPU takes far longer than its owner may expect.
    """
    if device is not None:
        one_of("device", device, ("cpu", "cuda"))
    if device == "cpu" or (device is None and not (suits and view.honest.size >= WORTH_IT)):
        return False
    if device == "cuda" and not suits:
        refuse("device", device, "cpu, as the dense method and conjugate gradients run there alone")
    missing = _what_is_missing()
    if missing is None:
        needed, free = bytes_needed(view), _free_bytes()
        if needed <= free:
            return True
        missing = (
            f"{view.honest.size} honest parties need {needed / 2**30:.1f} GiB of memory, {free / 2**30:.1f} are free"
        )
        if device is None:
            warnings.warn(f"the GPU is not used: {missing}", stacklevel=2)
    if device == "cuda":
        raise InvalidInput(f"device cuda cannot be used here: {missing}")
    return False


def bytes_needed(view: View) -> int:
    """Return how much memory of the device the filter takes: three blocks, a round's observations and some bands."""
    size = view.honest.size
    states = 2 * size if view.execution.settlement_matters else size
    observed = int(view.known[:-1, view.honest].sum(axis=1).max(initial=0))
    final = int(view.known[-1, view.honest].sum())
    blocks = size * size + states * size + states * states
    copied = max(observed * (size + states + observed), final * (size + final) if final < states else 0)
    return int(8 * _MARGIN * (blocks + copied + 6 * _BAND * states + 3 * min(_TILE, states) ** 2))


def information(
    view: View,
    ratio: float,
    progress: Progress | None = None,
    *,
    topup: float = 0.0,
    matrix: bool = False,
    device: str = "cuda",
) -> tuple[Array, Array | float]:
    """Return what `_state_space.information` does, worked out on a device of PyTorch."""
    torch, rounds = _torch(), view.execution.rounds
    try:
        with torch.no_grad():
            carried = _DeviceFilter(torch, Recursion(view, ratio, topup), device)
            for t in range(rounds):
                carried.observe(t)
                carried.advance(t + 1)
                if progress is not None:
                    progress(t + 1, rounds + 1)
            result = carried.information(matrix)
    except torch.cuda.OutOfMemoryError as problem:
        raise MemoryError(str(problem)) from None
    if progress is not None:
        progress(rounds + 1, rounds + 1)
    return result


def eigenvectors(matrix: Array, device: str = "cuda") -> tuple[Array, Array]:
    """Return the eigenvalues of a symmetric matrix in rising order, and the eigenvectors as columns."""
    torch = _torch()
    try:
        values, vectors = torch.linalg.eigh(torch.from_numpy(matrix).to(device))
    except torch.cuda.OutOfMemoryError as problem:
        raise MemoryError(str(problem)) from None
    return values.cpu().numpy(), vectors.cpu().numpy()


class _DeviceFilter:
    """The covariance of (u, states) given what was observed so far, in three blocks of the device's memory.

    Some probes for rounding stand behind the values u, and are worked on as these are (`Probes`).
    """

    def __init__(self, torch: Any, recursion: Recursion, device: str) -> None:
        self.torch, self.recursion = torch, recursion
        self.options = {"dtype": torch.float64, "device": device}
        size, count, first = recursion.size, recursion.owner.size, recursion.first_share
        self.owner = self._sent(recursion.owner)
        self.values = torch.eye(size + PROBES, **self.options)
        self.cross = torch.zeros(count, size + PROBES, **self.options)
        self.cross[self._sent(np.arange(count)), self.owner] = first
        self.states = torch.zeros(count, count, **self.options)
        self.states.diagonal().fill_(first**2)
        settling = np.flatnonzero(recursion.settled_place >= 0)  # their two states begin as the same
        own, settled = self._sent(settling), self._sent(recursion.settled_place[settling])
        self.states[own, settled] = self.states[settled, own] = first**2
        self.gained = torch.zeros(size + PROBES, **self.options)
        self.probes = Probes(size)

    def observe(self, t: int) -> None:
        """Condition on the known messages computed in round t < T."""
        self._probe()
        places, noise = self.recursion.observed(t)
        if places.size:
            observed = self._sent(places)
            of_states, of_values = self.states[observed], self.cross[observed]
            covariance = of_states[:, observed]
            covariance.diagonal().add_(self._sent(noise))
            root = self._root(covariance)
            self._divide(of_states, root)
            self._divide(of_values, root)
            self._gain(of_values)
            self._add_gram(self.states, of_states, -1)
            self._add_gram(self.values, of_values, -1)
            self.cross.addmm_(of_states.T, of_values, alpha=-1)
        self._mirror(self.states)
        self._mirror(self.values)

    def _probe(self) -> None:
        """Move the probes as rounding may move the values and states."""
        size = self.recursion.size
        variances = (block.diagonal().cpu().numpy() for block in (self.values[:size, :size], self.states))
        of_values, of_states = (self._sent(moved) for moved in self.probes.drawn(*variances))
        self.values[:size, size:] += of_values.T
        self.values[size:, :size] += of_values
        self.cross[:, size:] += of_states.T

    def advance(self, t: int) -> None:
        """Go on to round t: the covariance of the next states with the old ones, with u, and then with each other."""
        step = self.recursion.advance(t)
        mix = _Mixing(self, step)
        mix.apply(self.states, self.cross.T)
        mix.apply(self.cross, self.values)
        mix.apply(self.states.T, self.cross.T)
        # The masks of hidden messages: entries (a, b) are sums over messages, each of which stands here once.
        shape = (self.recursion.owner.size, self.recursion.size)
        changes = csc_array((step.changes, step.states, step.starts), shape=shape)
        masks = (changes @ diags_array(step.masks) @ changes.T).tocoo()
        self.states[self._sent(masks.row), self._sent(masks.col)] += self._sent(masks.data)

    def information(self, matrix: bool) -> tuple[Array, Array | float]:
        """Condition on the final messages and return what all observations took from the variance of u."""
        self._probe()
        places, noise = self.recursion.final()
        size, last = self.recursion.size, self.cross
        if places.size:
            covariance = self.states
            if not np.array_equal(places, np.arange(len(last))):
                observed = self._sent(places)
                last, covariance = last[observed], covariance[observed[:, None], observed]
            covariance.diagonal().add_(self._sent(noise))
            self._observe_sums(covariance, last, noise)
            self._divide(last, self._root(covariance))
            self._gain(last)
        told = self._sent(self.probes.injected.T) - self.values[:size, size:]
        if places.size:
            told += last[:, :size].T @ last[:, size:]
        losses = self.gained[:size].cpu().numpy()
        error = self.probes.error(told.cpu().numpy(), losses)
        if not matrix:
            return losses, error
        self.values.neg_().diagonal().add_(1.0)
        if places.size:
            self._add_gram(self.values, last, 1)
        self._mirror(self.values)
        return self.values[:size, :size].cpu().numpy(), float(error @ losses)

    def _observe_sums(self, covariance: Any, last: Any, noise: Array) -> None:
        """Condition on the sums that are free of masks, as `_state_space` does."""
        weights, seen = self.recursion.weights, self.recursion.view.known[-1, self.recursion.view.honest]
        of_party = np.cumsum(seen) - 1
        for group in self.recursion.sums():
            members, rows = self._sent(group), self._sent(of_party[group])
            weight, of_noise = self._sent(weights[group]), self._sent(noise[of_party[group]])
            of_values, of_rows = self.values[:, members] @ weight, last[:, members] @ weight
            of_rows[rows] += of_noise
            variance = float(weight @ of_values[members] + of_noise.sum())
            if not variance > 0.0:
                raise SingularView
            gain, of_rows = of_values / variance**0.5, of_rows / variance**0.5
            self.gained += gain**2
            self.values.addr_(gain, gain, alpha=-1)
            covariance.addr_(of_rows, of_rows, alpha=-1)
            last.addr_(of_rows, gain, alpha=-1)
            gone = int(of_party[group[-1]])
            covariance[gone] = covariance[:, gone] = 0.0
            covariance[gone, gone] = 1.0
            last[gone] = 0.0

    def _root(self, covariance: Any) -> Any:
        """Replace a covariance by its lower Cholesky factor."""
        count = len(covariance)
        for lo, hi in _pieces(count, _PANEL):
            root, failed = self.torch.linalg.cholesky_ex(covariance[lo:hi, lo:hi])
            if int(failed):
                raise SingularView
            covariance[lo:hi, lo:hi] = root
            if hi < count:
                below = self.torch.linalg.solve_triangular(root.T, covariance[hi:, lo:hi], upper=True, left=False)
                covariance[hi:, lo:hi] = below
                self._add_gram(covariance[hi:, hi:], below.T, -1)
        if not float(covariance.diagonal().min()) > 0.0:  # nor a NaN, which a factorisation on a GPU does not tell
            raise SingularView
        return covariance

    def _divide(self, rows: Any, root: Any) -> None:
        """Replace rows by root^-1 rows, root being lower triangular."""
        for lo, hi in _pieces(len(root), _PANEL):
            rows[lo:hi] = self.torch.linalg.solve_triangular(root[lo:hi, lo:hi], rows[lo:hi], upper=False)
            rows[hi:].addmm_(root[hi:, lo:hi], rows[lo:hi], alpha=-1)

    def _gain(self, rows: Any) -> None:
        """Add what observations, as divided rows, took from the variance of each value."""
        for lo, hi in _pieces(rows.shape[1], _BAND):
            self.gained[lo:hi] += (rows[:, lo:hi] ** 2).sum(dim=0)

    def _add_gram(self, symmetric: Any, rows: Any, factor: int) -> None:
        """Do symmetric += factor rows^T rows in the tiles on and below the diagonal."""
        for lo, hi in _pieces(len(symmetric), _TILE):
            symmetric[lo:hi, :hi].addmm_(rows[:, lo:hi].T, rows[:, :hi], alpha=factor)

    def _mirror(self, symmetric: Any) -> None:
        """Copy what is below the diagonal to what is above it, so that rounding keeps the block symmetric."""
        for lo, hi in _pieces(len(symmetric), _TILE):
            symmetric[:lo, lo:hi] = symmetric[lo:hi, :lo].T
            tile = symmetric[lo:hi, lo:hi]
            tile.copy_(tile.tril() + tile.tril(-1).T)

    def _sent(self, array: Array | Ids | np.ndarray[Any, Any]) -> Any:
        """Return an array of the host on the device; whole numbers as indices."""
        kind = np.float64 if array.dtype.kind == "f" else np.int64
        return self.torch.from_numpy(np.ascontiguousarray(array, kind)).to(self.options["device"])


class _Mixing:
    """One round's Phi and shares on the device, applied to the rows of a block.

    Phi's entries off the diagonal are sorted into slots in which no row stands twice. So sums have a fixed order, and
    the same view gives the same loss to the last digit.
    """

    def __init__(self, carried: _DeviceFilter, step: Step) -> None:
        starts, sources, phi = step.phi
        more = np.diff(starts) - 1
        self.torch, self.owner = carried.torch, carried.owner
        self.as_owned = carried.recursion.owner.size == carried.recursion.size  # state i belongs to party i
        self.kept = carried._sent(phi[starts[:-1]])[:, None]
        self.share = carried._sent(step.share)[:, None]
        self.slots = []
        for slot in range(1, int(more.max(initial=0)) + 1):
            rows = np.flatnonzero(more >= slot)
            entries = starts[rows] + slot
            self.slots.append(
                (carried._sent(rows), carried._sent(sources[entries]), carried._sent(phi[entries])[:, None])
            )

    def apply(self, target: Any, of_values: Any) -> None:
        """Do target = Phi target + share of_values[owner] in place, a band of columns at a time.

        `target` holds the states' covariance with something, and `of_values` that of the values u.
        """
        for lo, hi in _pieces(target.shape[1], _BAND):
            band = target[:, lo:hi].contiguous()
            mixed = band * self.kept
            for rows, sources, entries in self.slots:
                mixed.index_add_(0, rows, band[sources].mul_(entries))
            values = of_values[:, lo:hi]
            mixed.addcmul_(values[: len(mixed)] if self.as_owned else values[self.owner], self.share)
            target[:, lo:hi] = mixed


def _pieces(count: int, width: int) -> Iterator[tuple[int, int]]:
    return ((lo, min(lo + width, count)) for lo in range(0, count, width))


def _torch() -> Any:
    import torch

    return torch


def _what_is_missing() -> str | None:
    """Say what a GPU lacks before its memory can be asked about."""
    try:
        torch = _torch()
    except (ImportError, OSError):  # the latter if one of its libraries does not load
        return "it needs PyTorch (pip install 'inca[torch]')"
    if not torch.cuda.is_available():
        return "PyTorch sees no GPU here, or was built without CUDA"
    return None


def _free_bytes() -> int:
    """Return how much memory of the GPU can be had: what is free, and what PyTorch keeps from earlier work."""
    cuda = _torch().cuda
    return int(cuda.mem_get_info()[0]) + int(cuda.memory_reserved()) - int(cuda.memory_allocated())
