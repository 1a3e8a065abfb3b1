"""Optimisers: what a step makes of a parameter, its gradient, and what is kept of the steps before.

Each is plain data, and a function of NumPy arrays that `irkit.training_step` traces. Formulas, and what
stands for "no momentum" or "no decay", are PyTorch's (`torch.optim`), whose pages cite the papers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from irkit.errors import UnsupportedError
from irkit.training.clipping import clipped
from irkit.training.given import is_number

Rate = float | Callable[[Any], Any]
"""A learning rate: a number, or a function of the number of steps so far (an int64 of no dimensions), such as
those of `irkit.training.schedules`."""
Slots = Mapping[str, Any]
"""What is kept for one parameter, by name: arrays of its shape and dtype, zeros at first."""
Updated = tuple[Any, dict[str, Any]]
"""A parameter's next value, and those of its slots."""


_OPTIONAL = ("clip_value", "clip_norm")


@dataclass(frozen=True)
class Optimizer(ABC):
    """What all optimisers have.

    `rate`: the learning rate. `weight_decay`: this times the parameter is added to its gradient (of AdamW
    see there). `clip_value`: gradients are clipped to plus and minus that, element by element; `clip_norm`:
    then, where the Euclidean norm of all gradients together is above that, they are scaled to it. Raises
    UnsupportedError for numbers that none of them can be.
    """

    rate: Rate
    _: KW_ONLY
    weight_decay: float = 0.0
    clip_value: float | None = None
    clip_norm: float | None = None

    def __post_init__(self) -> None:
        names = ("rate", "weight_decay", "clip_value", "clip_norm", "eps", "rate_decay")
        for name in names:
            value = getattr(self, name, 0.0)
            if (value is None and name in _OPTIONAL) or (callable(value) and name == "rate"):
                continue
            if not is_number(value) or not value >= 0:
                raise self._refused(name, value, "a number that is not below 0")
            if value == float("inf") and name not in _OPTIONAL:
                raise self._refused(name, value, "a finite number")
        for name in ("momentum", "decay", "beta1", "beta2"):
            value = getattr(self, name, 0.0)
            if not is_number(value) or not 0 <= value < 1:
                raise self._refused(name, value, "a number from 0 to below 1")

    def _refused(self, name: str, value: object, expected: str) -> UnsupportedError:
        return UnsupportedError(f"{type(self).__name__}: {name}={value!r}: expected {expected}")

    @property
    @abstractmethod
    def slots(self) -> tuple[str, ...]:
        """Names of what is kept for each parameter."""

    @abstractmethod
    def update(self, parameter: Any, gradient: Any, slots: Slots, rate: Any, step: Any) -> Updated:
        """What step number `step`, from 1, a float64 of no dimensions, makes of a parameter. `rate` is a
        number of its dtype."""

    def apply(
        self, parameters: Sequence[Any], gradients: Sequence[Any], slots: Sequence[Slots], done: Any
    ) -> list[Updated]:
        """Next values of all parameters and slots, after `done` steps (an int64 of no dimensions)."""
        rate = self._scheduled(self.rate(done)) if callable(self.rate) else self.rate
        step = done.astype(np.float64) + 1
        gradients = clipped(gradients, self.clip_value, self.clip_norm)
        return [
            self.update(p, self._decayed(p, g), s, _number(rate, p), step)
            for p, g, s in zip(parameters, gradients, slots, strict=True)
        ]

    def _scheduled(self, found: Any) -> Any:
        """What a schedule gave. Raises UnsupportedError for what is not one number, complex ones too."""
        if getattr(found, "dtype", np.dtype(float)).kind in "bc":
            raise UnsupportedError(
                f"{type(self).__name__}: the schedule of the rate gives {found.dtype}: expected one number"
            )
        if not is_number(found) and getattr(found, "shape", None) != ():
            said = getattr(found, "shape", None)
            kind = type(found).__name__ if said is None else f"an array of shape {list(said)}"
            raise UnsupportedError(
                f"{type(self).__name__}: the schedule of the rate gives {kind}: expected one number"
            )
        return found

    def _decayed(self, parameter: Any, gradient: Any) -> Any:
        """The gradient of the loss and of what decays the parameter."""
        return gradient + self.weight_decay * parameter if self.weight_decay else gradient


def _number(value: Any, parameter: Any) -> Any:
    """A number of the parameter's dtype; Python's have none."""
    # NumPy's float64 passes for a float.
    return value if type(value) in (int, float) else value.astype(parameter.dtype)


@dataclass(frozen=True)
class SGD(Optimizer):
    """Gradient descent, with (Nesterov's) momentum if that is not 0."""

    _: KW_ONLY
    momentum: float = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nesterov and not self.momentum:
            raise self._refused("nesterov", True, "momentum above 0 with it")

    @property
    def slots(self) -> tuple[str, ...]:
        return ("momentum",) if self.momentum else ()

    def update(self, parameter: Any, gradient: Any, slots: Slots, rate: Any, step: Any) -> Updated:
        if not self.momentum:
            return parameter - rate * gradient, {}
        moment = self.momentum * slots["momentum"] + gradient
        change = gradient + self.momentum * moment if self.nesterov else moment
        return parameter - rate * change, {"momentum": moment}


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam: means of gradients and of their squares, both freed of their bias to 0."""

    rate: Rate = 1e-3
    _: KW_ONLY
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8

    @property
    def slots(self) -> tuple[str, ...]:
        return ("mean", "square")

    def update(self, parameter: Any, gradient: Any, slots: Slots, rate: Any, step: Any) -> Updated:
        mean = self.beta1 * slots["mean"] + (1 - self.beta1) * gradient
        square = self.beta2 * slots["square"] + (1 - self.beta2) * gradient * gradient
        # Of float32 1 - 0.999 has four digits.
        first = _number(1 - self.beta1**step, parameter)
        second = _number(np.sqrt(1 - self.beta2**step), parameter)
        change = mean / (np.sqrt(square) / second + self.eps)
        return parameter - rate / first * change, {"mean": mean, "square": square}


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam whose decay is no part of the gradient: each step takes `rate * weight_decay` of a parameter."""

    _: KW_ONLY
    weight_decay: float = 1e-2

    def _decayed(self, parameter: Any, gradient: Any) -> Any:
        return gradient

    def update(self, parameter: Any, gradient: Any, slots: Slots, rate: Any, step: Any) -> Updated:
        kept = parameter * (1 - rate * self.weight_decay)
        return super().update(kept, gradient, slots, rate, step)


@dataclass(frozen=True)
class Adagrad(Optimizer):
    """Rates that fall with the sum of squares of gradients; `rate_decay`: and with steps."""

    rate: Rate = 1e-2
    _: KW_ONLY
    rate_decay: float = 0.0
    eps: float = 1e-10

    @property
    def slots(self) -> tuple[str, ...]:
        return ("sum",)

    def update(self, parameter: Any, gradient: Any, slots: Slots, rate: Any, step: Any) -> Updated:
        squares = slots["sum"] + gradient * gradient
        if self.rate_decay:
            rate = rate / _number(1 + (step - 1) * self.rate_decay, parameter)
        return parameter - rate * (gradient / (np.sqrt(squares) + self.eps)), {"sum": squares}


@dataclass(frozen=True)
class RMSProp(Optimizer):
    """Gradients over the root of a mean of their squares, which falls by `decay` (PyTorch's alpha);
    `centered`: over that of their variance; with momentum if that is not 0."""

    rate: Rate = 1e-2
    _: KW_ONLY
    decay: float = 0.99
    eps: float = 1e-8
    momentum: float = 0.0
    centered: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        asked = {"square": True, "mean": self.centered, "momentum": bool(self.momentum)}
        return tuple(name for name, needed in asked.items() if needed)

    def update(self, parameter: Any, gradient: Any, slots: Slots, rate: Any, step: Any) -> Updated:
        square = self.decay * slots["square"] + (1 - self.decay) * gradient * gradient
        kept = {"square": square}
        if self.centered:
            kept["mean"] = self.decay * slots["mean"] + (1 - self.decay) * gradient
            square = square - kept["mean"] * kept["mean"]
        change = gradient / (np.sqrt(square) + self.eps)
        if self.momentum:
            change = kept["momentum"] = self.momentum * slots["momentum"] + change
        return parameter - rate * change, kept
