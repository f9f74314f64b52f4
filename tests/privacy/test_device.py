"""The filter in PyTorch against the one on the CPU and the dense method, and who works where.

No GPU is needed: the same code runs on PyTorch's CPU.
"""

from __future__ import annotations

import sys
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import inca
from helpers.strategies import executions, generator, interrupted, seeds, settled
from helpers.views import adversary_of, incremental_ones
from inca.errors import InvalidInput, SingularView
from inca.privacy import _device, _state_space, accountant
from inca.privacy._recursion import Recursion

LEVELS = inca.NoiseLevels(independent=1.0, cancelling=8.0)


def drawn(n: int = 30, rounds: int = 6, seed: int = 1) -> inca.View:
    execution = inca.Execution(inca.RandomReceivers(n, rounds, seed=seed), inca.incremental_injection(rounds))
    return inca.View(execution, inca.Adversary.random(n, rounds, generator(seed), colluding=0.1))


def compare(view: inca.View, ratio: float, topup: float = 0.0) -> None:
    """Losses and matrix are those of the filter on the CPU; losses are those of the dense method."""
    for matrix in (False, True):
        expected, error = _state_space.information(view, ratio, topup=topup, matrix=matrix)
        squares, estimate = _device.information(view, ratio, topup=topup, matrix=matrix, device="cpu")
        np.testing.assert_allclose(squares, expected, rtol=1e-9, atol=1e-12)
        assert estimate == pytest.approx(error, rel=1e-3)
    levels = inca.NoiseLevels(independent=1.0, cancelling=ratio, topup=topup)
    plain = inca.account(view, levels, sensitivity=1.0, method="dense")
    np.testing.assert_allclose(np.diagonal(squares), plain.mu**2, rtol=1e-8, atol=1e-12)


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'inca[torch]'")


@pytest.mark.usefixtures("torch")
class TestSameNumbers:
    """Without PyTorch these are skipped, and say so."""

    @settings(max_examples=25, deadline=None)
    @given(executions(), seeds, st.floats(0.1, 30))
    def test_any_schedule_presence_and_adversary(self, execution: inca.Execution, seed: int, ratio: float) -> None:
        execution = incremental_ones(execution)
        compare(inca.View(execution, adversary_of(execution, seed)), ratio)

    @settings(max_examples=15, deadline=None)
    @given(settled(all_publish=False), seeds, st.floats(0.5, 10), st.sampled_from([0.0, 0.7]))
    def test_settled_messages_have_states_of_their_own(
        self, execution: inca.Execution, seed: int, ratio: float, topup: float
    ) -> None:
        if execution.injection.mask_scales is not None:
            compare(inca.View(execution, adversary_of(execution, seed)), ratio, topup)

    @settings(max_examples=10, deadline=None)
    @given(interrupted(), seeds, st.floats(0.5, 5))
    def test_late_and_lost_shares(self, execution: inca.Execution, seed: int, ratio: float) -> None:
        if execution.injection.mask_scales is not None:
            compare(inca.View(execution, adversary_of(execution, seed)), ratio)

    @settings(max_examples=15, deadline=None)
    @given(st.integers(20, 70), st.integers(2, 12), st.integers(1, 3), seeds, st.booleans())
    def test_pieces_of_any_size(self, n: int, rounds: int, k: int, seed: int, settle: bool) -> None:
        """Larger views, worked on in many small tiles, panels and bands."""
        rng = generator(seed)
        presence = inca.Presence.markov(n, rounds, 0.1, 0.5, rng)
        injection = inca.incremental_injection(rounds, quiet=int(rng.integers(rounds)))
        execution = inca.Execution(inca.RandomReceivers(n, rounds, k, seed=seed), injection, presence)
        if settle:
            execution = execution.settled(presence.row(rounds))
        adversary = inca.Adversary.random(n, rounds, rng, colluding=0.2, eavesdropped=0.1)
        with pytest.MonkeyPatch.context() as patch:
            for name in ("_TILE", "_PANEL", "_BAND"):
                patch.setattr(_device, name, int(rng.integers(3, 30)))
            compare(inca.View(execution, adversary), 7.0, 0.5 if settle else 0.0)

    def test_the_same_view_gives_the_same_digits(self) -> None:
        first, again = (_device.information(drawn(80), 9.0, device="cpu")[0] for _ in range(2))
        np.testing.assert_array_equal(first, again)

    def test_progress_is_told_for_every_round(self) -> None:
        told: list[tuple[int, int]] = []
        _device.information(drawn(), 9.0, lambda *done: told.append(done), device="cpu")
        assert told == [(t, 7) for t in range(1, 8)]

    @pytest.mark.parametrize("entry", [-1.0, float("nan")])
    def test_a_covariance_without_a_root_is_refused(self, torch: Any, entry: float) -> None:
        carried = _device._DeviceFilter(torch, Recursion(drawn(), 9.0, 0.0), "cpu")
        covariance = torch.eye(5, dtype=torch.float64)
        covariance[3, 3] = entry
        with pytest.raises(SingularView):
            carried._root(covariance)

    def test_nearly_dependent_messages_are_handed_over_as_on_the_cpu(self, monkeypatch: pytest.MonkeyPatch) -> None:
        view, levels = drawn(), inca.NoiseLevels(independent=1.0, cancelling=1e6)
        squares, error = _device.information(view, 1e6, device="cpu")
        np.testing.assert_allclose(squares, inca.account(view, levels, sensitivity=1.0, method="dense").mu ** 2, 1e-7)
        assert np.max(error) < 1e-10
        monkeypatch.setattr(accountant, "_HAND_OVER_ERROR", 0.0)
        monkeypatch.setattr(_device, "on_gpu", lambda *_, **__: True)
        monkeypatch.setattr(_device, "information", self.on_torchs_cpu(_device.information))
        expected = inca.account(view, levels, sensitivity=1.0, method="dense")
        handed_over = inca.account(view, levels, sensitivity=1.0, device="cuda")
        assert handed_over.method == "dense"
        np.testing.assert_array_equal(handed_over.mu, expected.mu)

    def test_accounts_certificates_and_calibrations_go_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[Any] = []
        monkeypatch.setattr(_device, "_what_is_missing", lambda: None)
        monkeypatch.setattr(_device, "_free_bytes", lambda: 2**40)
        monkeypatch.setattr(_device, "information", self.on_torchs_cpu(_device.information, asked))
        monkeypatch.setattr("inca.privacy.calibration.eigenvectors", self.on_torchs_cpu(_device.eigenvectors, asked))
        view = drawn()
        losses, expected = (inca.account(view, LEVELS, sensitivity=2.0, device=d) for d in ("cuda", "cpu"))
        np.testing.assert_allclose(losses.mu, expected.mu, rtol=1e-9)
        assert losses.method == "state-space"
        transcript = inca.Transcript(
            view.execution, sigma_independent=1.0, sigma_cancelling=8.0, adversary=view.adversary, sensitivity=2.0
        )
        certified = inca.certify(transcript, device="cuda").worst_mu
        assert certified == pytest.approx(expected.max_mu, rel=1e-9)
        levels = [inca.calibrate([view], 0.3, sigma_independent=1.0, device=d).level for d in ("cuda", "cpu")]
        assert levels[0] == pytest.approx(levels[1], rel=1e-9)
        assert asked == ["information", "information", "information", "eigenvectors"]

    @staticmethod
    def on_torchs_cpu(work: Any, asked: list[Any] | None = None) -> Any:
        def instead(*arguments: Any, **options: Any) -> Any:
            if asked is not None:
                asked.append(work.__name__)
            return work(*arguments, **options, device="cpu")

        return instead


class TestWhoWorksWhere:
    """The choice needs no PyTorch: what it says of the machine is put in its place."""

    @pytest.fixture
    def gpu(self, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
        machine = SimpleNamespace(missing=None, free=2**40)
        monkeypatch.setattr(_device, "_what_is_missing", lambda: machine.missing)
        monkeypatch.setattr(_device, "_free_bytes", lambda: machine.free)
        monkeypatch.setattr(_device, "WORTH_IT", 20)
        return machine

    def test_unasked_only_large_views_go_to_a_gpu(self, gpu: SimpleNamespace) -> None:
        assert _device.on_gpu(None, drawn(30), suits=True)
        assert not _device.on_gpu(None, drawn(20), suits=True)
        assert not _device.on_gpu(None, drawn(30), suits=False)
        assert not _device.on_gpu("cpu", drawn(30), suits=True)
        assert _device.on_gpu("cuda", drawn(20), suits=True)

    def test_without_a_gpu_the_cpu_works_silently(self, gpu: SimpleNamespace) -> None:
        gpu.missing = "there is none"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not _device.on_gpu(None, drawn(30), suits=True)
        with pytest.raises(InvalidInput, match="device cuda cannot be used here: there is none"):
            _device.on_gpu("cuda", drawn(30), suits=True)

    def test_a_gpu_that_is_too_small_is_named(self, gpu: SimpleNamespace) -> None:
        gpu.free = 1000
        with pytest.warns(UserWarning, match="the GPU is not used: 27 honest parties need"):
            assert not _device.on_gpu(None, drawn(30), suits=True)
        with pytest.raises(InvalidInput, match=r"27 honest parties need 0.0 GiB of memory, 0.0 are free"):
            _device.on_gpu("cuda", drawn(30), suits=True)

    def test_memory_that_runs_out_after_all(self, gpu: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
        def too_much(*_: Any, **__: Any) -> Any:
            raise MemoryError

        monkeypatch.setattr(_device, "information", too_much)
        expected = inca.account(drawn(30), LEVELS, sensitivity=1.0, device="cpu")
        with pytest.warns(UserWarning, match="its memory ran out"):
            losses = inca.account(drawn(30), LEVELS, sensitivity=1.0)
        np.testing.assert_array_equal(losses.mu, expected.mu)
        with pytest.raises(InvalidInput, match="device cuda cannot be used here: its memory ran out"):
            inca.account(drawn(30), LEVELS, sensitivity=1.0, device="cuda")

    def test_what_the_dense_method_needs_stays_on_the_cpu(self, gpu: SimpleNamespace) -> None:
        view = drawn(30)
        assert inca.account(view, LEVELS, sensitivity=1.0, method="dense").method == "dense"
        with pytest.raises(InvalidInput, match="device must be cpu, as the dense method"):
            inca.account(view, LEVELS, sensitivity=1.0, method="dense", device="cuda")
        with pytest.raises(InvalidInput, match="device must be cpu or cuda, got 'tpu'"):
            inca.account(view, LEVELS, sensitivity=1.0, device="tpu")  # type: ignore[arg-type]

    def test_memory_grows_with_the_square_of_the_honest_parties(self) -> None:
        view = drawn(2000, rounds=3)
        assert 24 <= _device.bytes_needed(view) / view.honest.size**2 <= 24 * 6
        larger = drawn(4000, rounds=3)
        assert _device.bytes_needed(larger) < 4 * _device.bytes_needed(view)


def test_without_pytorch_cuda_is_refused_by_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        InvalidInput, match=r"device cuda cannot be used here: it needs PyTorch \(pip install 'inca\[torch\]"
    ):
        inca.account(drawn(), LEVELS, sensitivity=1.0, device="cuda")
    monkeypatch.setattr(_device, "WORTH_IT", 1)
    assert accountant.account(drawn(), LEVELS, sensitivity=1.0).method == "state-space"
