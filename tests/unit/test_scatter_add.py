"""`graph.scatter_add` at every level and on both targets: the bits of one addition after another."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import cuda_emulator
import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, i64

import irkit
from irkit.context import IrkitContext
from irkit.dialects.access_boxes import operand_boxes
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import int_array
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.rkernels import registry
from irkit.rkernels.bind import bind
from irkit.rkernels.families import find
from irkit.rkernels.legality import root_of
from irkit.rkernels.templates import specialise, template_source

Array = NDArray[Any]
ELEMENTS = {"float32": "f32", "float64": "f64"}


def program(dtype: str, shape: tuple[int, ...], count: tuple[int, ...], index: str = "i64") -> Any:
    """One scatter_add."""
    x, i, u = (
        "x".join(map(str, (*sizes, kind)))
        for sizes, kind in (
            (shape, ELEMENTS[dtype]),
            (count, index),
            ((*count, *shape[1:]), ELEMENTS[dtype]),
        )
    )
    return irkit.parse(
        f"""func.func @main(%x: tensor<{x}>, %i: tensor<{i}>, %u: tensor<{u}>) -> tensor<{x}> {{
      %y = graph.scatter_add %x, %i, %u : (tensor<{x}>, tensor<{i}>, tensor<{u}>) -> tensor<{x}>
      func.return %y : tensor<{x}>
    }}"""
    )


def drawn(
    rng: np.random.Generator, dtype: str, shape: tuple[int, ...], count: tuple[int, ...], few: bool
) -> list[Array]:
    """What is there, indices of which some lie outside, and what is added: numbers of many magnitudes, so
    that another order of the sums has other bits."""

    def numbers(*sizes: int) -> Array:
        found = rng.standard_normal(sizes) * 10.0 ** rng.integers(-4, 5, sizes)
        found[rng.random(sizes) < 0.1] = -0.0
        return found.astype(dtype)

    places = rng.integers(0, 2, count) if few else rng.integers(-2, shape[0] + 2, count)
    return [numbers(*shape), places, numbers(*count, *shape[1:])]


def wanted(x: Array, indices: Array, updates: Array) -> Array:
    found = x.copy()
    for at in np.ndindex(indices.shape):
        found[np.clip(indices[at], 0, len(x) - 1)] += updates[at]
    return found


SHAPES = [
    ((7,), (40,)),
    ((1, 5), (3, 4)),
    ((9, 2, 3), (50,)),
    ((300, 70), (90,)),
    ((3, 1500), (20,)),
    ((20000,), (200,)),
    ((40, 3), ()),
]


@pytest.mark.parametrize(("shape", "count"), SHAPES)
@pytest.mark.parametrize("dtype", ELEMENTS)
def test_on_a_cpu(dtype: str, shape: tuple[int, ...], count: tuple[int, ...]) -> None:
    made = irkit.compile(program(dtype, shape, count), "cpu", device="cpu2")
    for seed, few in itertools.product(range(2), (False, True)):
        arrays = drawn(np.random.default_rng(seed), dtype, shape, count, few)
        assert made(*arrays).tobytes() == wanted(*arrays).tobytes()


def test_work_is_that_of_the_updates() -> None:
    """No product, and no place is compared with each index by a launch of its own."""
    made = irkit.compile(program("float32", (5000, 64), (300,)), "cpu", device="cpu2")
    assert re.findall(r"rkernel = \"(\S+)\"", made.ir("schedule")) == ["scatter_add.rows"]


@pytest.mark.parametrize(
    ("shape", "count"),
    [((11, 5), (2, 9)), ((3, 300), (13,)), ((90,), (30,)), ((6, 2), (260,)), ((5,), (2100,))],
)
@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("few", [False, True])
def test_on_a_gpu(dtype: str, shape: tuple[int, ...], count: tuple[int, ...], few: bool) -> None:
    """Each rTask alone, and small blocks of sums, so that there are several; so are there lists, of few
    indices and of as many as there are at most."""
    module = program(dtype, shape, count, "i32")
    ctx = IrkitContext()
    register_dialects(ctx)
    for level in ("graph", "tensor", "task"):
        run_level(ctx, module, level, "h200")
    (op,) = (o for o in module.ops if isinstance(o, ROperatorOp))
    if op.alternatives is not None:
        op.choose(op.alternatives.data[0])
    assert op.rkernel == StringAttr("scatter_add.block")
    rkernel, root = registry.find("cuda", "scatter_add.block"), root_of(op)
    columns = min(root.parallel[1], 100)
    groups = max(1, min(4, 256 // columns))
    small = {"BLOCK": 4, "COLUMNS": columns, "GROUPS": groups, "AHEAD": 3}
    small |= {"LISTED": 256, "PIECE": 1, "EACH": 1} if math.prod(count) < 2048 else {}
    literals = {**rkernel.literals(root), **small}
    op.parameters = DictionaryAttr({k: IntegerAttr(v, i64) for k, v in literals.items()})
    op.grid = int_array(find("scatter_add").grid(root, 3))
    rng = np.random.default_rng(3)
    arrays = drawn(rng, dtype, shape, count, few)
    arrays[1] = arrays[1].astype(np.int32)
    want = wanted(*arrays)
    flat = [arrays[0].reshape(root.parallel), arrays[1].reshape(-1)]
    flat.append(arrays[2].reshape(-1, root.parallel[1]))
    binding = bind(op, root, rkernel, 256)
    body = specialise(template_source(rkernel), rkernel.function, "kernel", binding.names)
    text = "\n".join([*binding.functions, body])
    _, (boxes,) = operand_boxes(op)
    got = np.full(root.parallel, 77, dtype)
    for task in range(op.tasks):
        result = np.full(root.parallel, 77, dtype)
        given = [a.reshape(-1) for a in (*flat, result)]
        cuda_emulator.run_text(text, "kernel", given, op.tasks, 1, 256, binding.scratch_bytes, task)
        own = tuple(slice(low, high) for low, high in boxes[task].tolist())
        got[own] = result[own]
        result[own] = 77
        assert (result == 77).all()
    assert got.tobytes() == want.tobytes()


def test_the_gradient_of_an_embedding() -> None:
    """In the order of the tokens, by scatter_add, along the first axis and along others."""
    rng = np.random.default_rng(5)
    table = rng.standard_normal((30, 8)).astype(np.float32)
    tokens = rng.integers(0, 30, (4, 16))
    weights = (rng.standard_normal((4, 16, 8)) * 10.0 ** rng.integers(-3, 4, (4, 16, 8))).astype(
        "f"
    )
    slope = irkit.grad(lambda t, i, w: (t[i] * w).sum(), target="cpu", device="cpu2")
    want = np.zeros_like(table)
    np.add.at(want, tokens, weights)
    assert slope(table, tokens, weights).tobytes() == want.tobytes()
    across = irkit.grad(
        lambda t, i, w: (np.take(t, i, axis=1) * w).sum(), target="cpu", device="cpu2"
    )
    some = rng.integers(0, 8, 20)
    factors = rng.standard_normal((30, 20)).astype(np.float32)
    want = np.zeros_like(table)
    np.add.at(want, (slice(None), some), factors)
    assert across(table, some, factors).tobytes() == want.tobytes()
    again = irkit.grad(lambda t, i, w: (slope(t * t, i, w) ** 2).sum(), target="cpu", argnums=2)
    dense = np.zeros((4, 16, 8))
    np.add.at(total := np.zeros((30, 8)), tokens, weights.astype(np.float64))
    dense[...] = 2 * total[tokens]
    np.testing.assert_allclose(again(table, tokens, weights), dense, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", ["add", "subtract"])
def test_numpys_at(name: str) -> None:
    """Bit for bit, with indices that are computed."""
    rng = np.random.default_rng(6)
    x, i, u = drawn(rng, "float64", (12, 4), (60,), few=False)
    i = np.clip(i, -12, 11)

    def function(x: Array, i: Array, u: Array) -> Array:
        y = x.copy()
        getattr(np, name).at(y, i, u)
        return y

    made = irkit.jit(target="cpu", device="cpu2")(function)
    assert made(x, i, u).tobytes() == function(x, i, u).tobytes()
