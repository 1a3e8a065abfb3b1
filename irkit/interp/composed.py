"""Functions that call others, or repeat ops, in loops: the same at every level."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.dialects import arith, func, scf, tensor
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from irkit.dialects.loops import asked_of
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.errors import InvalidModelError
from irkit.interp.tensor import evaluate_op
from irkit.weights import Array, WeightStore

Leaf = Callable[[Operation, list[Array]], list[Array]]
"""The results of an op of some level on arrays of its operands."""


def run_blocks(
    main: func.FuncOp, weights: WeightStore, inputs: Sequence[Array], leaf: Leaf
) -> list[Array]:
    """What `main` returns. Loops, slices and index arithmetic are done here, all else by `leaf`."""
    env: dict[SSAValue, Array] = dict(zip(main.body.block.args, inputs, strict=True))
    return _block(main.body.block, env, weights, leaf)


def _block(
    block: Block, env: Mapping[SSAValue, Array], weights: WeightStore, leaf: Leaf
) -> list[Array]:
    scope = dict(env)
    for op in block.ops:
        operands = [scope[v] for v in op.operands]
        if op.has_trait(IsTerminator):
            return operands
        if isinstance(op, scf.ForOp):
            results = _loop(op, scope, weights, leaf)
        elif isinstance(op, scf.WhileOp):
            results = _while(op, scope, weights, leaf)
        elif isinstance(op, tensor.ExtractSliceOp | tensor.InsertSliceOp) or _is_index(op):
            results = evaluate_op(op, operands, weights)
        elif isinstance(op, tensor.FromElementsOp | tensor.SplatOp):
            results = [_of_scalars(op, operands)]
        else:
            results = leaf(op, operands)
        scope.update(zip(op.results, results, strict=True))
    raise InvalidModelError("a block without terminator")


def _of_scalars(op: tensor.FromElementsOp | tensor.SplatOp, operands: list[Array]) -> Array:
    """A tensor of scalars, or of one everywhere."""
    t = tensor_type(op.results[0])
    return np.resize(np.array(operands, numpy_dtype(t.element_type)), t.get_shape())


def _is_index(op: Operation) -> bool:
    """Arithmetic of indices, and scalar constants."""
    scalar = all(not hasattr(r.type, "shape") for r in op.results)
    return op.name.startswith("arith.") and scalar and not isinstance(op, arith.SelectOp)


def _loop(
    op: scf.ForOp, scope: Mapping[SSAValue, Array], weights: WeightStore, leaf: Leaf
) -> list[Array]:
    low, high, step = (int(scope[v]) for v in (op.lb, op.ub, op.step))
    carried = [scope[v] for v in op.iter_args]
    variable, *arguments = op.body.block.args
    for i in range(low, high, step):
        given: dict[SSAValue, Array] = {variable: np.array(i)}
        given.update(zip(arguments, carried, strict=True))
        carried = _block(op.body.block, {**scope, **given}, weights, leaf)
    return carried


def _while(
    op: scf.WhileOp, scope: Mapping[SSAValue, Array], weights: WeightStore, leaf: Leaf
) -> list[Array]:
    asked, body = asked_of(op), op.after_region.block
    carried = [scope[v] for v in op.arguments]
    while carried[asked]:
        given = dict(zip(body.args, carried, strict=True))
        carried = _block(body, {**scope, **given}, weights, leaf)
    return carried
