"""Regions back in the place of their calls."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.program.check import function_called
from irkit.dialects.program.spaces import is_of_device
from irkit.errors import UnsupportedError


def inline_regions(module: ModuleOp, function: FuncOp) -> None:
    """Put the ops of all regions that a function calls where they are called.

    Raises UnsupportedError of regions that are placed already, or return something.
    """
    called: set[FuncOp] = set()
    for call in [op for op in function.walk() if isinstance(op, CallOp)]:
        callee = function_called(call)
        if callee is None or call.results or is_of_device(callee):
            raise UnsupportedError(
                f"call of @{call.callee.string_value()}: expected a region that form-regions made"
            )
        called.add(callee)
        env: dict[SSAValue, SSAValue] = dict(
            zip(callee.body.block.args, call.operands, strict=True)
        )
        for op in callee.body.block.ops:
            if not isinstance(op, ReturnOp):
                Rewriter.insert_op(op.clone(env), InsertPoint.before(call))
        Rewriter.erase_op(call)
    left = {function_called(op) for op in module.walk() if isinstance(op, CallOp)}
    for callee in called - left:
        Rewriter.erase_op(callee)
