"""`lower-to-host`: a program of arrays on a host and a device as a DAG of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irkit.passes.host.actions import Rates
from irkit.passes.host.host_program import host_program
from irkit.passes.host.program_text import program_of
from irkit.passes.host.sharing import shared
from irkit.schedule.host.model import HostPlan


@dataclass(frozen=True)
class LowerToHost(ModulePass):
    """Make tasks of what a program's host does: a copy, or a call of a function, is one.

    Buffers are those of the program, on the host and on the device; loops are unrolled. A function reads
    and writes the arguments that its text does; one of the device writes what it changes to a second buffer,
    which has the array from there on. With `keep` the same holds of arguments of the program, so that the
    caller's arrays stay as they are; with `share` arrays of the device lie where others lay, if no task has
    to wait for that. What the host computes between calls and copies is a task. Costs are those of calls
    that have `irkit.costs`, else estimates: bytes over a link of `link` GB/s, and through a memory of
    `memory` GB/s. Streams are for `assign-streams` to choose. Exact.

    ```mlir
    memref.copy %x, %a : memref<8xf64> to memref<8xf64, 1 : i64>
    func.call @chunk(%a, %b) : (memref<8xf64, 1 : i64>, memref<8xf64, 1 : i64>) -> ()
    ```
    becomes
    ```mlir
    %0 = host.region %x reads 64 bytes at 0
    %1 = host.region %a writes 64 bytes at 0
    %t0 = host.task "to device: x" to_device uses(%0, %1)
    %2 = host.region %a reads 64 bytes at 0
    %3 = host.region %b writes 64 bytes at 0
    %t1 = host.task "chunk" kernel uses(%2, %3)
    ```
    """

    name = "lower-to-host"
    requires: ClassVar[tuple[str, ...]] = ("program",)
    link: float = Rates.link / 1e9
    memory: float = Rates.memory / 1e9
    keep: bool = False
    share: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        made = host_program(op, Rates(self.link * 1e9, self.memory * 1e9), self.keep)
        made = shared(made) if self.share else made
        lowered = program_of(HostPlan(made.buffers, made.tasks), "main")
        for old in list(op.ops):
            Rewriter.erase_op(old, safe_erase=False)
        for new in list(lowered.ops):
            new.detach()
            op.body.block.add_op(new)
