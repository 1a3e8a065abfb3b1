"""Chains of insertions: each is a branch of what the next is inserted into, so one launch has so many."""

# pyright: basic
from __future__ import annotations

import pytest
from xdsl.dialects import tensor

from irkit.dialects.task import LaunchOp, ROperatorOp
from irkit.driver.files.context import make_context
from irkit.driver.files.parsing import parse_module
from irkit.passes.task.form_roperators import DEEPEST, FormROperators

HEAD = "func.func @main(%x0: tensor<16x16xf64>, %v: tensor<1x1xf64>) -> tensor<16x16xf64> {"


def chain(count: int) -> str:
    """A function that inserts so many elements, one after another."""
    lines = [
        f"%x{n + 1} = tensor.insert_slice %v into %x{n}[{n // 16}, {n % 16}] [1, 1] [1, 1] "
        ": tensor<1x1xf64> into tensor<16x16xf64>"
        for n in range(count)
    ]
    return "\n".join([HEAD, *lines, f"func.return %x{count} : tensor<16x16xf64>", "}"])


@pytest.mark.parametrize(("count", "launches"), [(40, 1), (DEEPEST, 1), (DEEPEST + 1, 2), (200, 5)])
def test_an_roperator_has_so_many_insertions_at_most(count: int, launches: int):
    ctx = make_context("-")
    module = parse_module(ctx, chain(count), "chain.mlir")
    FormROperators().apply(ctx, module)
    assert sum(isinstance(op, LaunchOp) for op in module.walk()) == launches
    for op in module.ops:
        if isinstance(op, ROperatorOp):
            inner = sum(isinstance(o, tensor.InsertSliceOp) for o in op.walk())
            assert inner <= DEEPEST
