"""What an rOperator's body computes: its root, of all the ops in it."""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import Block

from irkit.dialects.roperator_root import Root
from irkit.dialects.task import YieldOp
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import kind_of, model_of
from irkit.dialects.types import tensor_type

GATES = "gate_product"
"""The family of products of which elements are made of several sums each, those of the last dimension."""


def find_root(body: Block) -> Root:
    """The root of an rOperator's body. Raises ValueError if heavy ops do not form one root."""
    root = _root(body)
    if root.family == "gemm" and _of_several(root, body):
        return replace(root, family=GATES, body=body)
    return replace(root, body=body)


def _of_several(root: Root, body: Block) -> bool:
    """Whether an element of a result is made of several sums of a product."""
    terminator = body.last_op
    assert isinstance(terminator, YieldOp)
    ranks = {tensor_type(value).get_num_dims() for value in terminator.values}
    return max(ranks) < len(root.parallel)


def _root(body: Block) -> Root:
    heavy = [op for op in body.ops if kind_of(op) is Kind.HEAVY]
    if not heavy:
        terminator = body.last_op
        assert isinstance(terminator, YieldOp)
        return Root("map", None, tuple(tensor_type(terminator.values[0]).get_shape()))
    model = model_of(heavy[-1])
    assert model is not None
    return model.root(heavy)
