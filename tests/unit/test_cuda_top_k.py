"""`graph.top_k` on a GPU: the emitted kernel, run by an emulator, has NumPy's order."""

from __future__ import annotations

import cuda_emulator
import numpy as np
import pytest
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, i64

import irkit
from irkit.context import IrkitContext
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import int_array
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.rkernels import registry
from irkit.rkernels.bind import bind
from irkit.rkernels.families import find
from irkit.rkernels.legality import root_of
from irkit.rkernels.templates import specialise, template_source

ELEMENTS = {"float32": "f32", "float64": "f64", "int8": "i8", "int64": "i64", "uint16": "ui16"}


def places(rows: int, width: int, k: int, dtype: str, largest: bool) -> ROperatorOp:
    x, y = f"tensor<{rows}x{width}x{ELEMENTS[dtype]}>", f"tensor<{rows}x{k}x{ELEMENTS[dtype]}>"
    module = irkit.parse(f"""
    func.func @main(%x: {x}) -> tensor<{rows}x{k}xi64> {{
      %y, %i = graph.top_k %x {{k = {k} : i64, axis = 1 : i64, largest = {str(largest).lower()}}}
        : ({x}) -> ({y}, tensor<{rows}x{k}xi64>)
      func.return %i : tensor<{rows}x{k}xi64>
    }}""")
    ctx = IrkitContext()
    register_dialects(ctx)
    for level in ("graph", "tensor", "task"):
        run_level(ctx, module, level, "h200")
    (op,) = (o for o in module.ops if isinstance(o, ROperatorOp))
    return op


def chosen(op: ROperatorOp) -> str:
    if op.alternatives is not None:
        op.choose(op.alternatives.data[0])
    return op.rkernel.data


def emulated(op: ROperatorOp, variant: str, x: np.ndarray, k: int, **small: int) -> np.ndarray:
    rkernel, root = registry.find("cuda", variant), root_of(op)
    literals = {**rkernel.literals(root), **small}
    op.parameters = DictionaryAttr({n: IntegerAttr(v, i64) for n, v in literals.items()})
    op.grid = int_array(find("top_k").grid(root, 2))
    binding = bind(op, root, rkernel, 64)
    body = specialise(template_source(rkernel), rkernel.function, "kernel", binding.names)
    text = "\n".join([*binding.functions, body])
    got = np.full((len(x), k), -7, np.int64)
    given = [x.reshape(-1), got.reshape(-1)]
    shared = rkernel.scratch(root, literals)
    cuda_emulator.run_text(text, "kernel", given, op.tasks, 1, 64, shared)
    return got


def drawn(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> np.ndarray:
    """Many of each value, and those that compare oddly."""
    x = rng.integers(0, 50, shape).astype(dtype)
    if dtype.startswith("float"):
        for share, value in ((0.1, np.nan), (0.05, -np.inf), (0.05, np.inf), (0.1, -0.0)):
            x[rng.random(shape) < share] = value
    return x


def wanted(x: np.ndarray, k: int, largest: bool) -> np.ndarray:
    sign = -1 if largest else 1
    found = np.empty((len(x), k), np.int64)
    for row, values in enumerate(x.tolist()):
        keys = [(sign * (v != v), 0 if v != v else sign * v, n) for n, v in enumerate(values)]
        found[row] = [n for _, _, n in sorted(keys)][:k]
    return found


@pytest.mark.parametrize("seed", range(10))
def test_random_rows(seed: int) -> None:
    """Also rows that shared memory does not hold at once, of which the best so far stay."""
    rng = np.random.default_rng(seed)
    dtype = [*ELEMENTS][seed % len(ELEMENTS)]
    rows, width = int(rng.integers(1, 4)), int(rng.integers(1, 150))
    k, largest = int(rng.integers(1, min(width, 20) + 1)), bool(seed % 2)
    op = places(rows, width, k, dtype, largest)
    run = max(2, 1 << (k - 1).bit_length())
    x = drawn(rng, (rows, width), dtype)
    want = wanted(x, k, largest)
    for held in (2 * run, 8 * run):
        got = emulated(op, "top_k.sorted", x, k, HELD=held)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("width", "k", "variant"),
    [(2000, 10, "sorted"), (50_000, 100, "sorted"), (9, 9, "rank"), (4096, 2048, "sorted"),
     (5000, 4000, "rank")],
)  # fmt: skip
def test_few_are_ranked_and_many_are_sorted(width: int, k: int, variant: str) -> None:
    assert chosen(places(4, width, k, "float32", largest=True)) == f"top_k.{variant}"


def test_all_are_equal() -> None:
    x = np.zeros((2, 70), np.float32)
    got = emulated(places(2, 70, 5, "float32", largest=False), "top_k.sorted", x, 5, HELD=16)
    np.testing.assert_array_equal(got, [[0, 1, 2, 3, 4]] * 2)
