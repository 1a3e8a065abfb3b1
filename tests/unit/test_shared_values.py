"""Values that are read twice, many ops deep: passes look at each value once, not at each way to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects.builtin import f32
from xdsl.ir import Block, SSAValue

import irkit
from irkit.dialects import graph
from irkit.dialects.constants import constant
from irkit.dialects.types import tensor
from irkit.passes.graph.quantised_values import KnownValues
from irkit.weights import WeightStore

DEEP = 60


def deep(last: list[Any], shape: list[int]) -> Any:
    """x, of which so often x + x * 0.01 is made, and what `last` makes of it."""
    nodes: list[Any] = []
    for n in range(DEEP):
        nodes.append(helper.make_node("Mul", [f"x{n}", "c"], [f"m{n}"]))
        nodes.append(helper.make_node("Add", [f"x{n}", f"m{n}"], [f"x{n + 1}"]))
    known = {
        "c": np.array(0.01, np.float32),
        "w": np.eye(8, dtype=np.float32),
        "from": np.array([0, 4]),
        "to": np.array([4, 8]),
    }
    made = helper.make_graph(
        [*nodes, *last],
        "g",
        [helper.make_tensor_value_info("x0", TensorProto.FLOAT, [6, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(a, n) for n, a in known.items()],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


X = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
GROWN = X.astype(np.float64) * 1.01**DEEP


@pytest.mark.timeout(120)
def test_a_softmax_without_scores() -> None:
    last = [
        helper.make_node("Softmax", [f"x{DEEP}"], ["s"], axis=-1),
        helper.make_node("MatMul", ["s", "w"], ["y"]),
    ]
    weights = np.exp(GROWN)
    want = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(irkit.compile(deep(last, [6, 8]), "cpu")(X), want, rtol=1e-5)


@pytest.mark.timeout(120)
def test_parts_of_what_is_behind_no_product() -> None:
    last = [
        helper.make_node("Split", [f"x{DEEP}"], ["a", "b"], axis=1),
        helper.make_node("Mul", ["a", "b"], ["y"]),
    ]
    want = GROWN[:, :4] * GROWN[:, 4:]
    np.testing.assert_allclose(irkit.compile(deep(last, [6, 4]), "cpu")(X), want, rtol=1e-5)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("is_known", [False, True])
def test_values_that_no_input_has_a_part_in(is_known: bool) -> None:
    weights = WeightStore()
    start = constant(np.full((2, 3), 0.5, np.float32), weights)
    value: SSAValue = start.result if is_known else Block(arg_types=[tensor(f32, [2, 3])]).args[0]
    for _ in range(2000):
        value = graph.MaxOp.make([value, value]).results[0]
    found = KnownValues(weights).of(value)
    if is_known:
        np.testing.assert_array_equal(found, np.full((2, 3), 0.5, np.float32))
    else:
        assert found is None
