"""PyTorch modules as models for `train`: parameters in one vector, gradients of parties and of single records.

It needs PyTorch, which nothing else here does: pip install 'inca[torch]'. Without it this file can still be imported.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inca._base.extras import importing
from inca._base.types import Array
from inca._base.validation import finite_array, refuse

LossFunction = Callable[[Any, Any], Any]
"""From outputs and targets of some records to their mean loss, as those of torch.nn.functional do."""


class TorchModel:
    """A `torch.nn.Module` and a loss as a model.

    All parameters that require gradients, in the module's order, make up the vector; others stay as they are. The
    gradients are those of a copy in evaluation mode: dropout layers do nothing, and batch normalisation uses the
    statistics that the module came with, since those of a batch would mix records and never be averaged. `load`
    writes parameters into the module itself, `load_gradient` a gradient, for an optimizer of PyTorch.

    Args:
        module: A `torch.nn.Module` with at least one parameter that requires gradients, all of one type on one device.
        loss: A function from outputs and targets of some records to their mean loss.

    Raises:
        InvalidInput: If PyTorch is not installed, or the module cannot be trained.

    Example:
        >>> import pytest
        >>> torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        >>> layer = torch.nn.Linear(2, 1, bias=False)
        >>> model = TorchModel(layer, torch.nn.functional.mse_loss)
        >>> model.load(np.array([1.0, 2.0]))
        >>> model.parameters.tolist(), model.gradient(model.parameters, np.ones((1, 2)), np.zeros((1, 1))).tolist()
        ([1.0, 2.0], [6.0, 6.0])
    """

    def __init__(self, module: Any, loss: LossFunction) -> None:
        self._torch = _torch()
        if not isinstance(module, self._torch.nn.Module):
            refuse("module", type(module).__name__, "a torch.nn.Module")
        if not callable(loss):
            refuse("loss", loss, "a function of outputs and targets")
        trained = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
        if not trained:
            refuse("the number of parameters that require gradients", 0, "at least 1")
        kinds = {(parameter.dtype, parameter.device) for parameter in trained.values()}
        if len(kinds) > 1:
            refuse("the parameters' types and devices", sorted(map(str, kinds)), "one type on one device")
        self.module, self.loss = module, loss
        self._trained = trained
        self._kind: dict[str, Any] = dict(zip(("dtype", "device"), kinds.pop(), strict=True))
        self._copy = copy.deepcopy(module).eval()

    @property
    def parameters(self) -> Array:
        """The module's parameters in one vector."""
        flat = [parameter.detach().reshape(-1).cpu().numpy() for parameter in self._trained.values()]
        return np.concatenate(flat).astype(np.float64)

    def load(self, parameters: Array) -> None:
        """Write a vector into the module's parameters."""
        with self._torch.no_grad():
            vector = finite_array("parameters", parameters, (1,), "one vector")
            for name, value in self._named(vector).items():
                self._trained[name].copy_(value)

    def load_gradient(self, gradient: Array) -> None:
        """Write a vector into `.grad` of the module's parameters, so that an optimizer of PyTorch takes the step.

        Args:
            gradient: One number per parameter that requires gradients, as a private average has it.

        Raises:
            InvalidInput: If it has another length, or a number that is not finite.
        """
        vector = finite_array("gradient", gradient, (1,), "one vector")
        for name, value in self._named(vector).items():
            self._trained[name].grad = value.clone()

    def gradient(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        """Return the gradient of the loss over all records, (d,)."""
        gradient = self._torch.func.grad(self._mean_loss)
        return self._flat(gradient(self._named(parameters), *self._tensors(features, targets)), 0)

    def record_gradients(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        """Return the gradient of the loss of each record alone, (m, d).

        All records at once if PyTorch can (`torch.func.vmap`), one after the other if the module does what it cannot.
        """
        named, (x, y) = self._named(parameters), self._tensors(features, targets)
        single = self._torch.func.grad(self._record_loss)
        try:
            gradients = self._torch.func.vmap(single, in_dims=(None, 0, 0))(named, x, y)
        except (RuntimeError, NotImplementedError):  # branches on values, custom functions: nothing vmap can do
            singles = [single(named, *record) for record in zip(x, y, strict=True)]
            gradients = {name: self._torch.stack([gradient[name] for gradient in singles]) for name in named}
        return self._flat(gradients, 1)

    def _mean_loss(self, named: dict[str, Any], x: Any, y: Any) -> Any:
        return self.loss(self._torch.func.functional_call(self._copy, named, (x,)), y)

    def _record_loss(self, named: dict[str, Any], x: Any, y: Any) -> Any:
        return self._mean_loss(named, x.unsqueeze(0), y.unsqueeze(0))

    def _named(self, vector: Array) -> dict[str, Any]:
        sizes = [parameter.numel() for parameter in self._trained.values()]
        if vector.size != sum(sizes):
            refuse("the number of parameters", vector.size, f"{sum(sizes)}, as many as the module has")
        parts = self._torch.as_tensor(vector, **self._kind).split(sizes)
        return {
            name: part.view_as(parameter) for (name, parameter), part in zip(self._trained.items(), parts, strict=True)
        }

    def _tensors(self, features: NDArray[Any], targets: NDArray[Any]) -> tuple[Any, Any]:
        """Fractions in the module's precision, integers as they are."""
        pair = [self._torch.as_tensor(np.ascontiguousarray(table)) for table in (features, targets)]
        return tuple(
            tensor.to(**self._kind) if tensor.is_floating_point() else tensor.to(self._kind["device"])
            for tensor in pair
        )

    def _flat(self, gradients: dict[str, Any], kept: int) -> Array:
        flat = self._torch.cat([gradients[name].flatten(kept) for name in self._trained], dim=kept)
        return np.asarray(flat.detach().cpu().numpy(), dtype=np.float64)


def _torch() -> Any:
    with importing("TorchModel", extra="torch"):
        import torch
        import torch.func
    return torch
