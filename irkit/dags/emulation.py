"""Numba kernels run thread by thread on the host, by Numba's own simulator: slow, and needs no GPU.

The simulator is a mode of a whole process; here single kernels go through it, and the device functions
that they call. It has no warp functions.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

_ONE = threading.RLock()
"""The simulator puts itself in the place of `numba.cuda` in the modules of kernels: one thread at a time."""


def emulate(
    kernel: Any,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    shared: int,
    arguments: Sequence[Any],
) -> None:
    """Run a Numba CUDA kernel on NumPy arrays, which may share memory."""
    simulator: Any = import_module("numba.cuda.simulator.kernel")
    made = simulator.FakeCUDAKernel(kernel.py_func, False)
    # Of an array of the host's it would make a copy, and of one that is given twice two.
    given: list[Any] = [
        simulator.FakeCUDAArray(a) if isinstance(a, np.ndarray) and a.ndim else a for a in arguments
    ]
    with _ONE, _device_functions(kernel.py_func, simulator.FakeCUDAKernel):
        made[grid, block, 0, shared](*given)


@contextmanager
def _device_functions(function: Any, fake: Any) -> Generator[None]:
    """While it lasts, compiled functions that a function knows as globals are simulated ones, all the
    way down."""
    changed: list[tuple[dict[str, Any], str, Any]] = []
    _swap(function, fake, changed)
    try:
        yield
    finally:
        for names, name, value in reversed(changed):
            names[name] = value


def _swap(function: Any, fake: Any, changed: list[tuple[dict[str, Any], str, Any]]) -> None:
    names: dict[str, Any] = function.__globals__
    for name in function.__code__.co_names:
        value: Any = names.get(name)
        if type(value).__name__ == "CUDADispatcher":
            changed.append((names, name, value))
            names[name] = fake(value.py_func, True)
            _swap(value.py_func, fake, changed)
