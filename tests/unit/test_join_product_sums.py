"""join-product-sums: random sums of products over rows are what they were, and one op of each kind."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import irkit
from irkit.context import IrkitContext
from irkit.dialects.graph import GemmOp, ReduceOp
from irkit.interp.graph import run_graph
from irkit.passes.graph.join_product_sums import LEAST, JoinProductSumsPass
from irkit.weights import WeightStore

PLAIN = "trans_b = false, alpha = 1.0 : f64, beta = 0.0 : f64"


def program(seed: int, products: int, sums: int) -> tuple[str, list[np.ndarray]]:
    """A sum in a random order and tree of products of random rows, of sums of rows, which the tree's rows
    share, and of an argument."""
    rng = np.random.default_rng(seed)
    m, n = (int(v) for v in rng.integers(1, 6, 2))
    arguments, ops, terms, arrays = list[str](), list[str](), list[str](), list[np.ndarray]()

    def argument(*shape: int) -> tuple[str, str]:
        name, kind = f"%a{len(arrays)}", f"tensor<{'x'.join(map(str, shape))}xf64>"
        arguments.append(f"{name}: {kind}")
        arrays.append(rng.integers(-4, 5, shape).astype(np.float64))
        return name, kind

    for _ in range(products):
        rows = int(rng.integers(1, 5))
        (a, of_a), (b, of_b) = argument(rows, m), argument(rows, n)
        terms.append(f"%p{len(terms)}")
        ops.append(
            f"{terms[-1]} = graph.gemm {a}, {b} {{trans_a = true, {PLAIN}}} "
            f": ({of_a}, {of_b}) -> tensor<{m}x{n}xf64>"
        )
    for _ in range(sums):
        x, of_x = argument(int(rng.integers(1, 5)), n)
        terms.append(f"%p{len(terms)}")
        how = '{kind = "sum", axes = array<i64: 0>, keepdims = false}'
        ops.append(f"{terms[-1]} = graph.reduce {x} {how} : ({of_x}) -> tensor<{n}xf64>")
    y = f"tensor<{m}x{n}xf64>" if products else f"tensor<{n}xf64>"
    terms.append(argument(m, n)[0] if products else argument(n)[0])
    rng.shuffle(terms)
    while len(terms) > 1:
        at = int(rng.integers(len(terms) - 1))
        total = f"%s{len(terms)}"
        ops.append(f"{total} = graph.add {terms[at]}, {terms[at + 1]} : ({y}, {y}) -> {y}")
        terms[at : at + 2] = [total]
    body = "\n".join(ops)
    text = f"func.func @main({', '.join(arguments)}) -> {y} {{\n{body}\nfunc.return {terms[0]} : {y}\n}}"
    return text, arrays


def joined(text: str) -> ModuleOp:
    module = irkit.parse(text)
    JoinProductSumsPass("h200").apply(IrkitContext(weights=WeightStore()), module)
    module.verify()
    return module


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", [GemmOp, ReduceOp])
def test_one_op_gives_what_all_gave(seed: int, kind: type[GemmOp | ReduceOp]) -> None:
    count = 2 + seed
    text, arrays = program(seed, *((count, 0) if kind is GemmOp else (0, count)))
    module = joined(text)
    left = sum(isinstance(op, kind) for op in module.walk())
    assert left == (1 if count >= LEAST else count)
    weights = WeightStore()
    (want,) = run_graph(irkit.parse(text), weights, arrays)
    (got,) = run_graph(module, weights, arrays)
    np.testing.assert_array_equal(got, want)
