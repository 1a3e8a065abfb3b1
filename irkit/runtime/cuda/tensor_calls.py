"""Calls with PyTorch tensors of types and shapes that came before: what was found of them is known.

To look at a tensor as at any array takes longer than to launch a kernel. Of a tensor of a known shape it is
asked whether it is still such a one: dtype, layout, device, address.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from irkit.runtime.input_policy import DEVICE_ALIGNMENT
from irkit.schedule.tables import Port, Program

_KNOWN = 256
"""Shapes of inputs that are kept; when there are more, all are met anew."""


TensorCall = tuple[list[int], int, int, Sequence[Callable[[], Any]]]
"""A call that can be queued: where its inputs are, rows, the caller's stream, what makes its outputs."""


class TensorCalls:
    """The calls of a program of these ports on one device. Values of inputs are for the caller to look at."""

    def __init__(self, inputs: Sequence[Port], outputs: Sequence[Port], device: int) -> None:
        self._inputs, self._outputs, self._device = tuple(inputs), tuple(outputs), device
        self._tensor: type | None = None
        self._dtypes: tuple[Any, ...] = ()
        self._strided: Any = None
        self._stream: Callable[[int], int] | None = None
        self._known: dict[tuple[Any, ...], tuple[int, Sequence[Callable[[], Any]]]] = {}

    def learn(self, inputs: Sequence[Any], rows: int) -> None:
        """Keep what was found of the inputs of a call that was queued."""
        torch: Any = sys.modules.get("torch")
        if torch is None or rows == 0:
            return
        # Without this function a stream is an object that takes long to make.
        stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        if stream is None or any(type(x) is not torch.Tensor for x in inputs):
            return
        self._tensor, self._strided, self._stream = torch.Tensor, torch.strided, stream
        self._dtypes = tuple(getattr(torch, p.dtype) for p in self._inputs)
        if len(self._known) >= _KNOWN:
            self._known.clear()
        makers = [self._maker(torch, port, rows) for port in self._outputs]
        self._known[tuple([x.shape for x in inputs])] = rows, makers

    def _maker(self, torch: Any, port: Port, rows: int) -> Callable[[], Any]:
        shape = port.shape_of(rows)
        dtype, here = getattr(torch, port.dtype), self._device
        device, empty = torch.device("cuda", here), torch.empty
        # As compiled PyTorch code makes them, on the current device, where there are these functions.
        inner = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
        strided = getattr(inner, "_empty_strided_cuda", None)
        current = getattr(torch._C, "_cuda_getDevice", None)
        if strided is None or current is None:
            return lambda: empty(shape, dtype=dtype, device=device)
        strides = tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))

        def make() -> Any:
            if current() != here:
                return empty(shape, dtype=dtype, device=device)
            return strided(shape, strides, dtype)

        return make

    def call(self, inputs: Sequence[Any]) -> TensorCall | None:
        """The call with these inputs; None where they are others than came before."""
        if self._stream is None or len(inputs) != len(self._dtypes):
            return None
        tensor, strided, device = self._tensor, self._strided, self._device
        shapes: list[Any] = []
        addresses: list[int] = []
        for x, dtype in zip(inputs, self._dtypes, strict=True):
            if type(x) is not tensor or x.dtype is not dtype or x.layout is not strided:
                return None
            address = x.data_ptr()
            if address % DEVICE_ALIGNMENT or x.get_device() != device:
                return None
            if not x.is_contiguous() or x.is_neg():
                return None
            shapes.append(x.shape)
            addresses.append(address)
        known = self._known.get(tuple(shapes))
        return known and (addresses, known[0], self._stream(device), known[1])


def tensor_calls(program: Program, device: int) -> TensorCalls | None:
    """The calls of a program; None where it has state."""
    return None if program.states else TensorCalls(program.inputs, program.outputs, device)
