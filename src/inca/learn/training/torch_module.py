"""PyTorch modules as models for `train`: parameters in one vector, gradients of parties and of single records.

It needs PyTorch, which nothing else here does: pip install 'inca[torch]'. Without it this file can still be imported.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inca._base.types import Array
from inca._base.validation import InputError, finite_array, refuse

Loss = Callable[[Any, Any], Any]
"""From outputs and targets of some records to their mean loss, as those of torch.nn.functional do."""


class Module:
    """A `torch.nn.Module` and a loss as a model.

    All parameters that require gradients, in the module's order, make up the vector; others stay as they are. The
    gradients are those of a copy in evaluation mode: dropout layers do nothing, and batch normalisation uses the
    statistics that the module came with, since those of a batch would mix records and never be averaged. `load`
    writes a vector into the module itself.

    >>> import pytest
    >>> torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    >>> layer = torch.nn.Linear(2, 1, bias=False)
    >>> model = Module(layer, torch.nn.functional.mse_loss)
    >>> model.load(np.array([1.0, 2.0]))
    >>> model.parameters.tolist(), model.gradient(model.parameters, np.ones((1, 2)), np.zeros((1, 1))).tolist()
    ([1.0, 2.0], [6.0, 6.0])
    """

    def __init__(self, module: Any, loss: Loss) -> None:
        """Keep the module, and a copy to compute with."""
        self._torch = _torch()
        if not isinstance(module, self._torch.nn.Module):
            raise refuse("module", type(module).__name__, "a torch.nn.Module")
        if not callable(loss):
            raise refuse("loss", loss, "a function of outputs and targets")
        trained = {name: each for name, each in module.named_parameters() if each.requires_grad}
        if not trained:
            raise InputError("module has no parameters that require gradients, but at least one was expected")
        kinds = {(each.dtype, each.device) for each in trained.values()}
        if len(kinds) > 1:
            raise refuse("the parameters' types and devices", sorted(map(str, kinds)), "one type on one device")
        self.module, self.loss = module, loss
        self._trained = trained
        self._kind: dict[str, Any] = dict(zip(("dtype", "device"), kinds.pop(), strict=True))
        self._copy = copy.deepcopy(module).eval()

    @property
    def parameters(self) -> Array:
        """The module's parameters in one vector."""
        flat = [each.detach().reshape(-1).cpu().numpy() for each in self._trained.values()]
        return np.concatenate(flat).astype(np.float64)

    def load(self, parameters: Array) -> None:
        """Write a vector into the module's parameters."""
        with self._torch.no_grad():
            vector = finite_array("parameters", parameters, (1,), "one vector")
            for name, value in self._named(vector).items():
                self._trained[name].copy_(value)

    def gradient(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        """Return the gradient of the loss over all records, (d,)."""
        found = self._torch.func.grad(self._mean_loss)(self._named(parameters), *self._tensors(features, targets))
        return self._flat(found, 0)

    def record_gradients(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        """Return the gradient of the loss of each record alone, (m, d).

        All records at once if PyTorch can (`torch.func.vmap`), one after the other if the module does what it cannot.
        """
        named, (x, y) = self._named(parameters), self._tensors(features, targets)
        single = self._torch.func.grad(self._record_loss)
        try:
            found = self._torch.func.vmap(single, in_dims=(None, 0, 0))(named, x, y)
        except (RuntimeError, NotImplementedError):  # branches on values, custom functions: nothing vmap can do
            each = [single(named, *record) for record in zip(x, y, strict=True)]
            found = {name: self._torch.stack([one[name] for one in each]) for name in named}
        return self._flat(found, 1)

    def _mean_loss(self, named: dict[str, Any], x: Any, y: Any) -> Any:
        return self.loss(self._torch.func.functional_call(self._copy, named, (x,)), y)

    def _record_loss(self, named: dict[str, Any], x: Any, y: Any) -> Any:
        return self._mean_loss(named, x.unsqueeze(0), y.unsqueeze(0))

    def _named(self, vector: Array) -> dict[str, Any]:
        sizes = [each.numel() for each in self._trained.values()]
        if vector.size != sum(sizes):
            raise refuse("the number of parameters", vector.size, f"{sum(sizes)}, as many as the module has")
        parts = self._torch.as_tensor(vector, **self._kind).split(sizes)
        return {name: part.view_as(each) for (name, each), part in zip(self._trained.items(), parts, strict=True)}

    def _tensors(self, features: NDArray[Any], targets: NDArray[Any]) -> tuple[Any, Any]:
        """Fractions in the module's precision, whole numbers as they are."""
        pair = [self._torch.as_tensor(np.ascontiguousarray(each)) for each in (features, targets)]
        return tuple(
            each.to(**self._kind) if each.is_floating_point() else each.to(self._kind["device"]) for each in pair
        )

    def _flat(self, found: dict[str, Any], kept: int) -> Array:
        flat = self._torch.cat([found[name].flatten(kept) for name in self._trained], dim=kept)
        return np.asarray(flat.detach().cpu().numpy(), dtype=np.float64)


def _torch() -> Any:
    try:
        import torch
        import torch.func
    except ImportError:
        raise InputError("PyTorch is not installed, but Module needs it: pip install 'inca[torch]'") from None
    return torch
