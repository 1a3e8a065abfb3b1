"""What an rOperator's body computes: its root, of all the ops in it."""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import Block

from irkit.dialects.roperator_root import Root
from irkit.dialects.task import YieldOp
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import kind_of, model_of
from irkit.dialects.types import tensor_type


def find_root(body: Block) -> Root:
    """The root of an rOperator's body. Raises ValueError if heavy ops do not form one root."""
    return replace(_root(body), body=body)


def _root(body: Block) -> Root:
    heavy = [op for op in body.ops if kind_of(op) is Kind.HEAVY]
    if not heavy:
        terminator = body.last_op
        assert isinstance(terminator, YieldOp)
        return Root("map", None, tuple(tensor_type(terminator.values[0]).get_shape()))
    model = model_of(heavy[-1])
    assert model is not None
    return model.root(heavy)
