"""Functions of a program as functions of the device: the same ops on arrays in its memory."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import FunctionType, MemRefType, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.memref import ReinterpretCastOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.functions import function_named
from irkit.dialects.program.call import CallOp as HostCall
from irkit.dialects.program.check import function_called
from irkit.dialects.program.spaces import (
    CUDA,
    device_of_call,
    in_device_space,
    is_of_device,
    on_device,
)
from irkit.dialects.program.views import array_type


def move_to_device(module: ModuleOp, call: CallOp, twin: Callable[[SSAValue], SSAValue]) -> None:
    """Let a call run on the device, on the twins of its buffers."""
    callee = function_called(call)
    assert callee is not None
    if not any(isinstance(v.type, MemRefType) for v in call.operands):
        # It changes nothing that anybody sees, wherever it runs.
        return
    if not is_of_device(callee):
        if _is_of_host_too(module, callee):
            callee = _second(module, callee)
            call.callee = SymbolRefAttr(callee.sym_name.data)
        _retype(callee)
    for number, buffer in enumerate(list(call.operands)):
        call.operands[number] = twin(buffer)


def move_call(call: HostCall, twin: Callable[[SSAValue], SSAValue]) -> None:
    """Let a call of the host be one of the twins of its buffers, and of views of these."""
    for number, array in enumerate(list(call.arrays)):
        view = array.owner
        if not isinstance(view, ReinterpretCastOp):
            call.operands[number] = twin(array)
            continue
        there = view.clone()
        there.operands[0] = twin(view.source)
        Rewriter.insert_op(there, InsertPoint.before(call))
        there_type = in_device_space(array_type(there.result))
        call.operands[number] = Rewriter.replace_value_with_new_type(there.result, there_type)
        if not array.uses:
            Rewriter.erase_op(view)


def _is_of_host_too(module: ModuleOp, callee: FuncOp) -> bool:
    return any(
        isinstance(op, CallOp) and function_called(op) is callee and device_of_call(op) != CUDA
        for op in module.walk()
    )


def _second(module: ModuleOp, callee: FuncOp) -> FuncOp:
    """The same function under another name."""
    name = f"{callee.sym_name.data}_on_device"
    known = function_named(module, name)
    if known is not None:
        return known
    copy = callee.clone()
    copy.sym_name = StringAttr(name)
    Rewriter.insert_op(copy, InsertPoint.after(callee))
    return copy


def _retype(function: FuncOp) -> None:
    if is_of_device(function):
        return
    block = function.body.block
    results = (v for op in function.walk() for v in op.results)
    for value in (*block.args, *results):
        if isinstance(value.type, MemRefType) and not on_device(value):
            Rewriter.replace_value_with_new_type(value, in_device_space(array_type(value)))
    function.function_type = FunctionType.from_lists(
        [a.type for a in block.args], list(function.function_type.outputs)
    )
