"""`insert-transfers`: memory of the device, and the copies to and from it.

A call of the host that is on the device, as its function has a twin there, becomes one of the device's
arrays, or of views of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects.program.call import CallOp as HostCall
from irkit.dialects.program.check import function_called
from irkit.dialects.program.spaces import CPU, CUDA, device_of_call, on_device
from irkit.passes.program.coherence import Coherence
from irkit.passes.program.device_functions import move_call, move_to_device
from irkit.remarks import applied


@dataclass(frozen=True)
class InsertTransfers(ModulePass):
    """Give what runs on the device arrays of its own, and copy what has to go there and back.

    A buffer that a region on the device touches gets a second one in memory space 1, of the same shape,
    and the region becomes a function of such buffers. Which of the two holds what the program means is
    followed through the program: what a side needs and has not is copied, what it has is not; a buffer that
    is written as a whole is not copied first; what is in arguments in the end, what is returned, and what
    functions of the host read comes back. What a loop needs and does not change is copied before it. Buffers
    that the host never touches are on the device alone. Exact.

    ```mlir
    func.call @main_region0(%x, %y) {irkit.device = "cuda"}
    func.return %y
    ```
    becomes
    ```mlir
    %x1 = memref.alloc() : memref<8xf64, 1 : i64>
    %y1 = memref.alloc() : memref<8xf64, 1 : i64>
    memref.copy %x, %x1
    func.call @main_region0(%x1, %y1) {irkit.device = "cuda"}
    memref.copy %y1, %y
    func.return %y
    ```
    """

    name = "insert-transfers"
    requires: ClassVar[tuple[str, ...]] = ("program",)
    produces: ClassVar[str] = "program"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.ops if isinstance(f, FuncOp) and f.body.blocks]:
            calls = [c for c in function.walk() if isinstance(c, CallOp | HostCall)]
            if any(device_of_call(c) != CPU for c in calls) and not _is_placed(calls):
                _insert(op, function, calls)


def _is_placed(calls: Sequence[CallOp | HostCall]) -> bool:
    """Whether there are copies already."""
    return any(on_device(v) for call in calls for v in call.operands)


def _insert(module: ModuleOp, function: FuncOp, calls: Sequence[CallOp | HostCall]) -> None:
    moved = [call for call in calls if device_of_call(call) == CUDA]
    for call in calls:
        _check(call)
    copies = Coherence(function).copies()
    for buffer in copies.on_device:
        copies.twin(buffer)
    for copy in copies.wanted:
        copy.insert(copies.twin)
    for call in moved:
        if isinstance(call, HostCall):
            move_call(call, copies.twin)
        else:
            move_to_device(module, call, copies.twin)
    for op in reversed(list(function.walk())):
        if isinstance(op, memref.AllocOp) and not op.memref.uses:
            Rewriter.erase_op(op)
    into = sum(copy.to_device for copy in copies.wanted)
    text = "{} regions on the device, {} copies to it and {} back"
    applied(function, "InsertTransfers", text, len(moved), into, len(copies.wanted) - into)


def _check(call: CallOp | HostCall) -> None:
    said = device_of_call(call)
    if isinstance(call, HostCall):
        return
    if said not in (CPU, CUDA):
        raise PassFailedException(
            f"'{call.name}' of @{call.callee.string_value()}: device '{said}': expected '{CPU}' or '{CUDA}'"
        )
    callee = function_called(call)
    if said == CUDA and (callee is None or call.results or not _is_leaf(callee)):
        raise PassFailedException(
            f"'{call.name}' of @{call.callee.string_value()}: what runs on the device is a function of the "
            "module that returns nothing and calls nothing"
        )


def _is_leaf(callee: FuncOp) -> bool:
    return not any(isinstance(op, CallOp | HostCall) for op in callee.walk())
