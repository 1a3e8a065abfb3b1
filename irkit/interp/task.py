"""The NumPy meaning of the task level: a launch is its rOperator's body."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from irkit.dialects.functions import function_named, is_composed
from irkit.dialects.roperator_body import find_root
from irkit.dialects.task import LaunchOp, ROperatorOp
from irkit.errors import InvalidModelError
from irkit.expressions.nest import Nest
from irkit.interp.composed import run_blocks
from irkit.interp.tensor import evaluate_block, evaluate_op
from irkit.weights import Array, WeightStore


def roperators(module: ModuleOp) -> dict[str, ROperatorOp]:
    """The module's rOperators by name."""
    return {op.sym_name.data: op for op in module.ops if isinstance(op, ROperatorOp)}


def evaluate_body(op: ROperatorOp, operands: Sequence[Array], weights: WeightStore) -> list[Array]:
    """What an rOperator's body yields for these operands."""
    block = op.body.block
    env: dict[SSAValue, Array] = dict(zip(block.args, operands, strict=True))
    with np.errstate(all="ignore"):
        return evaluate_block(block, env, weights, _nests(op))


def _nests(op: ROperatorOp) -> dict[Operation, Nest]:
    """The loops that its schedule makes of the root. Raises InvalidModelError where there are none."""
    if op.schedule is None:
        return {}
    root = find_root(op.body.block)
    if root.op is None:
        raise InvalidModelError(f"@{op.sym_name.data} has a schedule, and no loops that reduce")
    sizes = (*root.parallel, *root.reduction)
    return {root.op: op.schedule.nest(sizes, len(root.parallel))}


def run_task(
    module: ModuleOp, weights: WeightStore, inputs: Sequence[Array], function: str = "main"
) -> list[Array]:
    """The outputs of `function`, or of the one function there is, of launches. Raises InvalidModelError if
    there is none."""
    functions = [op for op in module.ops if isinstance(op, func.FuncOp)]
    main = function_named(module, function) or (functions[0] if len(functions) == 1 else None)
    if main is None:
        raise InvalidModelError("the module has no func.func of launches")
    if is_composed(main):
        return _run_composed(module, main, weights, inputs)
    known = roperators(module)
    env: dict[SSAValue, Array] = dict(zip(main.body.block.args, inputs, strict=True))
    for op in main.body.block.ops:
        operands = [env[v] for v in op.operands]
        if isinstance(op, func.ReturnOp):
            return operands
        if isinstance(op, LaunchOp):
            values = evaluate_body(known[op.callee.string_value()], operands, weights)
        else:
            values = evaluate_op(op, operands, weights)
        env.update(zip(op.results, values, strict=True))
    raise InvalidModelError("@main does not return")


def _run_composed(
    module: ModuleOp, main: func.FuncOp, weights: WeightStore, inputs: Sequence[Array]
) -> list[Array]:
    """A function with loops and calls of others."""

    def leaf(op: Operation, operands: list[Array]) -> list[Array]:
        if isinstance(op, func.CallOp):
            return run_task(module, weights, operands, op.callee.string_value())
        return evaluate_op(op, operands, weights)

    return run_blocks(main, weights, inputs, leaf)
