"""The tensor level on NumPy arrays: each op as its model says (`irkit/dialects/tensor_ops/`), in program
order.

Sums run in the order of the loops, so that a result has the bits of the plain loop nest. What
`tensor.empty` leaves unspecified is NaN, or a value nobody wants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from irkit.dialects.functions import function_named, is_composed
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.semantics import SEMANTICS, evaluate
from irkit.dialects.tensor_ops.registry import model_of
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.expressions.nest import Nest
from irkit.interp.nest import run_nest
from irkit.interp.scalars import evaluate_scalar
from irkit.weights import Array, WeightStore


def run_tensor(
    module: ModuleOp, weights: WeightStore, inputs: Sequence[Array], function: str = "main"
) -> list[Array]:
    """The results of `function` of `module` on `inputs`, one array per argument."""
    found = function_named(module, function)
    if found is None:
        raise InvalidModelError(f"the module has no function '@{function}'")
    if is_composed(found):
        from irkit.interp.composed import run_blocks

        def leaf(op: Operation, operands: list[Array]) -> list[Array]:
            if isinstance(op, func.CallOp):
                return run_tensor(module, weights, operands, op.callee.string_value())
            return evaluate_op(op, operands, weights)

        return run_blocks(found, weights, inputs, leaf)
    return run_function(found, weights, inputs)


def run_function(
    function: func.FuncOp, weights: WeightStore, inputs: Sequence[Array]
) -> list[Array]:
    """The results of `function` on `inputs`. Raises InvalidInputError for a wrong dtype or shape."""
    arguments = function.body.block.args
    if len(inputs) != len(arguments):
        raise InvalidInputError(f"expected {len(arguments)} inputs, got {len(inputs)}")
    for argument, array in zip(arguments, inputs, strict=True):
        t = tensor_type(argument)
        fits = len(t.get_shape()) == array.ndim and all(
            s in (DYNAMIC, n) for s, n in zip(t.get_shape(), array.shape, strict=True)
        )
        if not fits or array.dtype != numpy_dtype(t.element_type):
            raise InvalidInputError(
                f"input #{argument.index}: expected {t}, got {array.dtype}{list(array.shape)}"
            )
    return evaluate_block(function.body.block, dict(zip(arguments, inputs, strict=True)), weights)


def evaluate_block(
    block: Block,
    env: Mapping[SSAValue, Array],
    weights: WeightStore,
    nests: Mapping[Operation, Nest] | None = None,
) -> list[Array]:
    """Values of the operands of `block`'s terminator; `env` has what the block reads from outside,
    its arguments included. The ops in `nests` are run as these loops. Raises UnsupportedError for an op of
    another level.
    """
    scope = dict(env)
    for op in block.ops:
        if op.has_trait(IsTerminator):
            return [scope[v] for v in op.operands]
        operands = [scope[v] for v in op.operands]
        if nests is not None and isinstance(op, linalg.GenericOp) and op in nests:
            results = run_nest(op, nests[op], operands, _Interpreter(weights))
        else:
            results = evaluate_op(op, operands, weights)
        scope.update(zip(op.results, results, strict=True))
    raise InvalidModelError("a block without terminator")


@dataclass(frozen=True)
class _Interpreter:
    """What the models of ops compute with."""

    weights: WeightStore

    def scalar(self, op: Operation, operands: list[Array]) -> Array:
        """The result of an `arith` or `math` op."""
        return evaluate_scalar(op, operands)


def evaluate_op(op: Operation, operands: list[Array], weights: WeightStore) -> list[Array]:
    """The results of one op on arrays of its operands."""
    model = model_of(op)
    if model is not None:
        with np.errstate(all="ignore"):
            return list(model.evaluate(op, operands, _Interpreter(weights)))
    if isinstance(op, GraphOp) and type(op) in SEMANTICS:
        return evaluate(op, operands)
    if len(op.results) != 1:
        raise UnsupportedError(f"the tensor interpreter does not know '{op.name}'")
    return [evaluate_scalar(op, operands)]
