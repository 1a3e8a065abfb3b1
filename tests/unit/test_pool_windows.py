"""Pools whose windows are compared many at a time, as NumPy computes them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from packed_products import formed, run

import irkit
from irkit.dialects.task import ROperatorOp
from irkit.rkernels import registry
from irkit.rkernels.work import Work

RNG = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is chosen wherever it is legal."""
    monkeypatch.setenv("IRKIT_CACHE_DIR", "")
    found = registry.find("cpu", "pool.inside")
    kernels = registry._REGISTERED["cpu", "pool"]
    free = [replace(k, work=lambda _: Work()) if k is found else k for k in kernels]
    monkeypatch.setitem(registry._REGISTERED, ("cpu", "pool"), free)


def pool(shape: Any, kernel: Any, strides: Any, pads: Any, dtype: str = "f32") -> tuple[Any, Any]:
    """(module, shape of the operand)"""
    sizes = [
        (n + low + high - k) // s + 1
        for n, k, s, low, high in zip(
            shape[2:], kernel, strides, pads[: len(kernel)], pads[len(kernel) :], strict=True
        )
    ]
    text = "x".join("?" if n is None else str(n) for n in shape)
    result = "x".join([*("?" if n is None else str(n) for n in shape[:2]), *map(str, sizes)])
    attributes = ", ".join(
        f"{name} = array<i64: {', '.join(map(str, values))}>"
        for name, values in (("kernel_shape", kernel), ("strides", strides), ("pads", pads))
    )
    return irkit.parse(f"""
func.func @main(%x: tensor<{text}x{dtype}>) -> tensor<{result}x{dtype}> {{
  %y = graph.max_pool %x {{{attributes}}} : (tensor<{text}x{dtype}>) -> tensor<{result}x{dtype}>
  func.return %y : tensor<{result}x{dtype}>
}}
"""), sizes


def values(shape: Any, dtype: str = "f32") -> Any:
    """Zeros of both signs, NaN and infinities among them."""
    x = RNG.standard_normal(shape).astype("float32" if dtype == "f32" else "float64")
    for special, share in (
        (0.0, 0.3),
        (-0.0, 0.1),
        (np.nan, 0.002),
        (-np.inf, 0.05),
        (np.inf, 0.002),
    ):
        x[RNG.random(shape) < share] = special
    return x


def windows(x: Any, kernel: Any, strides: Any, pads: Any, sizes: Any) -> Any:
    """By NumPy, window by window."""
    axes = len(kernel)
    width = [(0, 0), (0, 0), *zip(pads[:axes], pads[axes:], strict=True)]
    padded = np.pad(x, width, constant_values=-np.inf)
    out = np.empty((*x.shape[:2], *sizes), x.dtype)
    for at in itertools.product(*map(range, sizes)):
        window = tuple(slice(i * s, i * s + k) for i, s, k in zip(at, strides, kernel, strict=True))
        part = padded[(slice(None), slice(None), *window)]
        out[(slice(None), slice(None), *at)] = part.max(axis=tuple(range(2, 2 + axes)))
    return out


def chosen(program: Any) -> bool:
    return 'rkernel = "pool.inside"' in program.ir("schedule")


CASES = [
    # shape, kernel, strides, pads, whether there are blocks
    ((1, 3, 15, 40), (3, 3), (2, 2), (1, 1, 1, 1), True),
    ((2, 2, 9, 33), (3, 3), (1, 1), (1, 1, 1, 1), True),
    ((1, 2, 7, 13), (3, 3), (1, 1), (1, 1, 1, 1), True),
    ((1, 2, 7, 8), (3, 3), (1, 1), (1, 1, 1, 1), True),
    ((1, 2, 7, 5), (3, 3), (1, 1), (1, 1, 1, 1), False),
    ((1, 2, 6, 44), (2, 5), (1, 2), (1, 4, 0, 3), True),
    ((1, 2, 6, 44), (2, 5), (2, 2), (0, 0, 1, 2), True),
    ((1, 2, 12, 70), (3, 3), (3, 3), (1, 1, 1, 1), False),
    ((3, 2, 50), (4,), (2,), (1, 2), True),
    ((1, 2, 4, 5, 37), (2, 2, 3), (1, 2, 2), (1, 0, 1, 0, 1, 1), True),
    ((1, 1, 3, 24), (3, 2), (1, 1), (2, 0, 2, 0), True),
    ((1, 3, 15, 41), (3, 3), (2, 2), (0, 0, 0, 0), True),
    ((2, 2, 9, 13), (2, 2), (1, 1), (0, 0, 0, 0), True),
    ((1, 2, 7, 13), (3, 3), (3, 3), (0, 0, 0, 0), False),
]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(("shape", "kernel", "strides", "pads", "blocks"), CASES)
def test_any_window(
    shape: Any, kernel: Any, strides: Any, pads: Any, blocks: bool, dtype: str
) -> None:
    module, sizes = pool(shape, kernel, strides, pads, dtype)
    program = irkit.compile(module, device="cpu2")
    assert chosen(program) == blocks
    x = values(shape, dtype)
    want = windows(x, kernel, strides, pads, sizes)
    for mode in ("serial", "persistent"):
        program._first.executor.mode = mode
        np.testing.assert_array_equal(program(x), want)


@pytest.mark.parametrize("pads", [(1, 1, 1, 1), (0, 0, 0, 0)])
def test_any_batch(pads: Any) -> None:
    module, sizes = pool((None, 2, 9, 40), (3, 3), (2, 2), pads)
    program = irkit.compile(module, device="cpu2")
    assert chosen(program)
    for rows in (0, 1, 3, 8):
        x = values((rows, 2, 9, 40))
        want = windows(x, (3, 3), (2, 2), pads, sizes)
        np.testing.assert_array_equal(program(x), want)


def test_random_windows() -> None:
    for _ in range(8):
        kernel, strides = RNG.integers(1, 5, 2), RNG.integers(1, 3, 2)
        pads = [int(RNG.integers(0, k)) for k in (*kernel, *kernel)]
        shape = (1, int(RNG.integers(1, 4)), int(RNG.integers(6, 12)), int(RNG.integers(12, 60)))
        module, sizes = pool(shape, kernel.tolist(), strides.tolist(), pads)
        x = values(shape)
        want = windows(x, kernel, strides, pads, sizes)
        np.testing.assert_array_equal(irkit.compile(module, device="cpu2")(x), want)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(("shape", "kernel", "strides", "pads", "_"), CASES)
def test_any_window_on_a_gpu(
    shape: Any, kernel: Any, strides: Any, pads: Any, _: bool, dtype: str
) -> None:
    module, sizes = pool(shape, kernel, strides, pads, dtype)
    (op,) = (o for o in formed(str(module)).ops if isinstance(o, ROperatorOp))
    x = values(shape, dtype)
    for tasks in (1, 5):
        y = np.full((*shape[:2], *sizes), 7, x.dtype)
        run(op, "pool.inside", registry.find("cuda", "pool.inside").literals, [x, y], tasks)
        np.testing.assert_array_equal(y, windows(x, kernel, strides, pads, sizes))
