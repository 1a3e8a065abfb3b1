"""halve-symmetric-products: the same products, each pair of vectors multiplied once."""

# pyright: basic
from __future__ import annotations

import math

import numpy as np
import pytest

import irkit
from irkit.context import IrkitContext
from irkit.dialects.graph import MatmulOp
from irkit.dialects.types import tensor_type
from irkit.interp.graph import run_graph
from irkit.passes.graph import halve_symmetric_products
from irkit.passes.graph.halve_symmetric_products import HalveSymmetricProducts
from irkit.weights import WeightStore


def text(rows: str, columns: str, turned: bool, element: str = "f64") -> str:
    """Vectors `rows` by vectors `columns`: of 50 columns of 20 elements, or of 50 rows where `turned`."""
    bounds = [tuple(map(int, part.split(":"))) for part in (rows, columns)]
    counts = [last - first for first, last in bounds]

    def tensor(vectors: int, by_rows: bool) -> str:
        return f"tensor<{vectors}x20x{element}>" if by_rows else f"tensor<20x{vectors}x{element}>"

    def cut(number: int) -> str:
        offset, size = bounds[number][0], counts[number]
        offsets, sizes = (
            (f"{offset}, 0", f"{size}, 20") if turned else (f"0, {offset}", f"20, {size}")
        )
        how = f"{{offsets = array<i64: {offsets}>, sizes = array<i64: {sizes}>, strides = array<i64: 1, 1>}}"
        return f"graph.slice %x {how} : ({tensor(50, turned)}) -> {tensor(size, turned)}"

    second = int(turned)
    types = tensor(counts[second], turned), tensor(counts[second], not turned)
    factors = "%v0, %t" if turned else "%t, %v1"
    y = f"tensor<{counts[0]}x{counts[1]}x{element}>"
    return f"""func.func @main(%x: {tensor(50, turned)}) -> {y} {{
      %v0 = {cut(0)}
      %v1 = {cut(1)}
      %t = graph.transpose %v{second} {{permutation = array<i64: 1, 0>}} : ({types[0]}) -> {types[1]}
      %y = graph.matmul {factors} : ({tensor(counts[0], True)}, {tensor(counts[1], False)}) -> {y}
      func.return %y : {y}
    }}"""


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(halve_symmetric_products, "LEAST", 16)
    monkeypatch.setattr(halve_symmetric_products, "ROUND", 4)


def halved(module) -> int:
    """Multiplications that are left."""
    HalveSymmetricProducts(device="cpu2").apply(IrkitContext(), module)
    module.verify()
    found = [op for op in module.walk() if isinstance(op, MatmulOp)]
    return sum(
        math.prod(tensor_type(op.results[0]).get_shape())
        * tensor_type(op.operands[0]).get_shape()[1]
        for op in found
    )


@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ("0:50", "0:50"),
        ("1:50", "0:50"),
        ("0:50", "3:50"),
        ("0:45", "0:50"),
        ("2:44", "5:50"),
        ("5:50", "2:44"),
        ("0:50", "4:46"),
        ("10:33", "10:33"),
    ],
)
def test_products_are_the_same(small, rows, columns, turned, element):
    module = irkit.parse(text(rows, columns, turned, element))
    x = np.random.default_rng(0).standard_normal((50, 20) if turned else (20, 50))
    x = x.astype(f"float{element[1:]}")
    before = run_graph(module, WeightStore(), [x])[0]
    everything = before.size * 20
    assert halved(module) < 0.8 * everything
    after = run_graph(module, WeightStore(), [x])[0]
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("rows", "columns", "element"),
    [("0:25", "0:50", "f64"), ("0:20", "25:45", "f64"), ("0:50", "0:50", "i32")],
)
def test_what_stays(small, rows, columns, element):
    module = irkit.parse(text(rows, columns, turned=False, element=element))
    before = str(module)
    halved(module)
    assert str(module) == before


def test_a_gram_matrix_is_symmetric_to_the_bit():
    x = np.random.default_rng(0).standard_normal((700, 600)).astype(np.float32)
    got = irkit.jit(target="cpu")(lambda x: x.T @ x)(x)
    np.testing.assert_allclose(got, x.T @ x, rtol=1e-3, atol=1e-2)
    # Only what is in a band's own square is computed twice.
    np.testing.assert_array_equal(got[:160, 160:], got[160:, :160].T)
