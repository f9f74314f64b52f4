from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from inca import Conditions, InvalidInput
from inca.learn.averagers.simulated import SimulatedAverager
from inca.learn.budget import Budget
from inca.learn.training.clipping import Clipping
from inca.learn.training.optimizers import SGD
from inca.learn.training.torch_module import TorchModel
from inca.learn.training.train import TrainingRules, train


def test_without_torch_the_refusal_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InvalidInput, match="TorchModel needs PyTorch: pip install"):
        TorchModel(object(), lambda outputs, targets: outputs)


class TestWithTorch:
    """Skipped, with the reason in the report, where PyTorch is not installed."""

    @pytest.fixture(autouse=True)
    def _given(self) -> None:
        self.torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'inca[torch]'")
        self.nn = self.torch.nn
        self.torch.manual_seed(1)  # of the layers' first parameters only
        self.rng = np.random.default_rng(2)
        self.x, self.y = self.rng.standard_normal((7, 4)), self.rng.integers(0, 3, 7)

    def network(self) -> Any:
        layers = [self.nn.Linear(4, 5), self.nn.BatchNorm1d(5), self.nn.Tanh(), self.nn.Dropout(0.5)]
        return self.nn.Sequential(*layers, self.nn.Linear(5, 3)).double()

    def model(self) -> TorchModel:
        return TorchModel(self.network(), self.nn.functional.cross_entropy)

    def test_gradients_are_slopes_and_the_mean_of_those_of_records(self) -> None:
        model = self.model()
        start = model.parameters
        gradient = model.gradient(start, self.x, self.y)
        gradients = model.record_gradients(start, self.x, self.y)
        assert gradients.shape == (7, start.size) and np.allclose(gradients.mean(axis=0), gradient, atol=1e-12)
        for row, x, y in zip(gradients, self.x, self.y, strict=True):
            assert np.allclose(row, model.gradient(start, x[np.newaxis], np.array([y])), atol=1e-12)

        def loss(vector: np.ndarray) -> float:
            model.load(vector)
            model.module.eval()
            outputs = model.module(self.torch.as_tensor(self.x))
            return float(self.nn.functional.cross_entropy(outputs, self.torch.as_tensor(self.y)).detach())

        direction = self.rng.standard_normal(start.size)
        slope = (loss(start + 1e-6 * direction) - loss(start - 1e-6 * direction)) / 2e-6
        assert slope == pytest.approx(float(gradient @ direction), rel=1e-6)

    def test_parameters_come_back_from_the_module_and_frozen_ones_stay(self) -> None:
        network = self.network()
        frozen = network[0].weight.requires_grad_(False).clone()
        model = TorchModel(network, self.nn.functional.cross_entropy)
        assert model.parameters.size == 5 + 10 + 15 + 3
        vector = self.rng.standard_normal(model.parameters.size)
        model.load(vector)
        assert np.array_equal(model.parameters, vector) and self.torch.equal(network[0].weight, frozen)
        assert network[1].training

    def test_an_optimizer_of_pytorch_takes_the_step_of_a_loaded_gradient(self) -> None:
        network = self.network()
        network[0].weight.requires_grad_(False)
        model = TorchModel(network, self.nn.functional.cross_entropy)
        start, gradient = model.parameters, self.rng.standard_normal(model.parameters.size)
        model.load_gradient(gradient)
        self.torch.optim.SGD(network.parameters(), lr=0.5).step()
        assert np.allclose(model.parameters, start - 0.5 * gradient, atol=1e-12)
        assert network[0].weight.grad is None
        gradient[:] = 0.0  # nothing of it is shared
        assert float(network[1].weight.grad.abs().sum()) > 0.0

    def test_single_precision_takes_doubles_and_images(self) -> None:
        layers = [self.nn.Conv2d(1, 2, 3), self.nn.Flatten(), self.nn.Linear(8, 3)]
        model = TorchModel(self.nn.Sequential(*layers), self.nn.functional.cross_entropy)
        images = self.rng.standard_normal((7, 1, 4, 4))
        gradients = model.record_gradients(model.parameters, images, self.y)
        assert gradients.dtype == np.float64 and np.allclose(
            gradients.mean(axis=0), model.gradient(model.parameters, images, self.y), atol=1e-6
        )

    def test_a_module_that_vmap_cannot_take_is_computed_record_by_record(self) -> None:
        torch = self.torch

        class Branching(torch.nn.Module):  # type: ignore[name-defined,misc]
            def __init__(self) -> None:
                super().__init__()
                self.layer = torch.nn.Linear(4, 3).double()

            def forward(self, x: object) -> object:
                out = self.layer(x)
                return out if bool(out.sum() > 0) else 2 * out

        model = TorchModel(Branching(), self.nn.functional.cross_entropy)
        gradients = model.record_gradients(model.parameters, self.x, self.y)
        for row, x, y in zip(gradients, self.x, self.y, strict=True):
            assert np.allclose(row, model.gradient(model.parameters, x[np.newaxis], np.array([y])), atol=1e-12)

    @pytest.mark.parametrize("level", ["party", "record"])
    def test_a_network_learns_what_a_line_cannot(self, level: Any) -> None:
        x = self.rng.uniform(-1, 1, (2000, 2))
        y = (x[:, 0] * x[:, 1] > 0).astype(np.int64)
        network = self.nn.Sequential(self.nn.Linear(2, 8), self.nn.Tanh(), self.nn.Linear(8, 2))
        model = TorchModel(network, self.nn.functional.cross_entropy)
        result = train(
            model,
            [(x[part::100], y[part::100]) for part in range(100)],
            SimulatedAverager.of("central", 100, Conditions(dropout=0.1, colluding=0.0)),
            Budget(200.0, 1e-5),
            150,
            self.rng,
            TrainingRules(Clipping(1.0, level), optimizer=SGD(0.5, 0.9)),
        )
        model.load(result.parameters)
        with self.torch.no_grad():
            guess = network(self.torch.as_tensor(x, dtype=self.torch.float32)).argmax(1).numpy()
        assert (guess == y).mean() > 0.9

    def test_bad_input_is_refused(self) -> None:
        model = self.model()
        with pytest.raises(InvalidInput, match=r"module must be a torch.*, got 'dict'"):
            TorchModel({}, self.nn.functional.cross_entropy)
        with pytest.raises(InvalidInput, match=r"loss must be .*got 3"):
            TorchModel(self.network(), 3)  # type: ignore[arg-type]
        with pytest.raises(
            InvalidInput, match="the number of parameters that require gradients must be at least 1, got 0"
        ):
            TorchModel(self.nn.Flatten(), self.nn.functional.cross_entropy)
        with pytest.raises(InvalidInput, match=r"the number of parameters must be 53, as many as.*, got 3"):
            model.load(np.zeros(3))
        with pytest.raises(InvalidInput, match=r"parameters\[0\] must be .*got nan"):
            model.load(np.full(53, np.nan))
        with pytest.raises(InvalidInput, match=r"the number of parameters must be 53, as many as.*, got 3"):
            model.load_gradient(np.zeros(3))
        with pytest.raises(InvalidInput, match=r"gradient\[0\] must be .*got inf"):
            model.load_gradient(np.full(53, np.inf))
        mixed = self.nn.Sequential(self.nn.Linear(2, 2), self.nn.Linear(2, 2).double())
        with pytest.raises(InvalidInput, match="one type on one device"):
            TorchModel(mixed, self.nn.functional.cross_entropy)
