"""`form-regions`: cut a program where the host has to act."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import affine, arith, memref, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType
from xdsl.dialects.func import CallOp as FunctionCall
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.bufferization import MaterializeInDestinationOp
from irkit.dialects.program.call import CallOp
from irkit.dialects.program.views import is_induction_variable
from irkit.passes.program.spilling import Run, spill

_HOST = (CallOp, FunctionCall, scf.WhileOp)
# What stays where it is, and is copied into the regions that need it.
_COPIED = (affine.ApplyOp, arith.ConstantOp, memref.ReinterpretCastOp)


@dataclass(frozen=True)
class FormRegions(ModulePass):
    """Make what stands between calls of the host functions of their own, which are called there.

    What is left of a program is the host's part: calls of functions that irkit does not compile, loops that
    ask for a condition, loops around either, and calls of the regions. Each region is a function of the
    buffers that it touches and returns nothing: `functionalise` makes values of it. What is computed in one
    region and read in another is kept in an array. Ops in a loop of the host that hang on its variable, as
    those that read or write what it counts, stay there: what is between them are regions. A program without
    calls and conditions stays as it is. Exact.

    ```mlir
    %t = bufferization.to_tensor %x
    %y = graph.neg %t
    bufferization.materialize_in_destination %y in writable %x
    program.call @log(%x)
    ```
    becomes
    ```mlir
    func.func @main_region0(%x: memref<8xf64>) {
      %t = bufferization.to_tensor %x
      %y = graph.neg %t
      bufferization.materialize_in_destination %y in writable %x
      func.return
    }
    ...
    func.call @main_region0(%x)
    program.call @log(%x)
    ```
    """

    name = "form-regions"
    requires: ClassVar[tuple[str, ...]] = ("program",)
    produces: ClassVar[str] = "program"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in list(op.ops):
            if isinstance(function, FuncOp) and _needs_host(function):
                _cut(function)


def _needs_host(op: Operation) -> bool:
    return any(isinstance(inner, _HOST) for inner in op.walk())


def outline_whole(function: FuncOp) -> None:
    """Make one region of a program that has none, and nothing for the host to do."""
    if not _needs_host(function):
        _cut(function)


def _cut(function: FuncOp) -> None:
    found = list(runs_of(function.body.block))
    spill([run for run, _ in found])
    regions = [run for run, stays in found if not stays and has_effect(run)]
    for number, run in enumerate(regions):
        region, _ = outlined(f"{function.sym_name.data}_region{number}", run)
        Rewriter.insert_op(region, InsertPoint.before(function))
    sweep(function)


def sweep(function: FuncOp) -> None:
    """Erase arrays and places that nothing uses."""
    for op in reversed(list(function.walk())):
        if isinstance(op, (*_COPIED, memref.AllocOp)) and not any(r.uses for r in op.results):
            Rewriter.erase_op(op)


def runs_of(block: Block, in_host_loop: bool = False) -> Iterator[tuple[Run, bool]]:
    """Runs of ops of a block, and of the blocks of the host inside; and whether they hang on a variable of
    the host, and stay with it."""
    run: Run = []
    for op in list(block.ops):
        if isinstance(op, (*_COPIED, memref.AllocOp)):
            continue
        if not _needs_host(op) and op is not block.last_op:
            run.append(op)
            continue
        yield from _parts(run) if in_host_loop else [(run, False)] * bool(run)
        run = []
        for region in _bodies(op):
            yield from runs_of(region.block, in_host_loop or isinstance(op, scf.ForOp))


def _parts(run: Run) -> list[tuple[Run, bool]]:
    """A run in a loop of the host, cut where its ops begin or cease to hang on the variable of one."""
    parts = [(list(part), hangs) for hangs, part in groupby(run, _hangs_on_host)]
    home = {op: n for n, (part, _) in enumerate(parts) for top in part for op in top.walk()}
    # Numbers, of which there are no arrays, stay in the run that they are made in.
    numbers = (r for op in run for r in op.results if not isinstance(r.type, TensorType))
    if any(home.get(u.operation) != home[n.owner] for n in numbers for u in n.uses):
        return [(run, True)]
    return parts


def _bodies(op: Operation) -> list[Region]:
    """What the host repeats; it asks for a condition itself."""
    return [op.after_region] if isinstance(op, scf.WhileOp) else list(op.regions)


def _hangs_on_host(op: Operation) -> bool:
    own = set(op.walk())
    pending, seen = [v for inner in op.walk() for v in inner.operands], set[SSAValue]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if is_induction_variable(value) and value.owner.parent_op() not in own:
            return True
        if isinstance(value.owner, Operation) and isinstance(value.owner, _COPIED):
            pending += value.owner.operands
    return False


def has_effect(run: Run) -> bool:
    """Whether a run writes an array."""
    return any(isinstance(op, MaterializeInDestinationOp) for top in run for op in top.walk())


def outlined(name: str, run: Run) -> tuple[FuncOp, FunctionCall]:
    """The function of a run, and the call that has taken its place."""
    outer = _OuterValues(run)
    buffers = outer.buffers
    block = Block(arg_types=[b.type for b in buffers])
    env: dict[SSAValue, SSAValue] = dict(zip(buffers, block.args, strict=True))
    for buffer, argument in zip(buffers, block.args, strict=True):
        argument.name_hint = buffer.name_hint
    for op in (*outer.copied, *run):
        copy = op.clone(env)
        block.add_op(copy)
    block.add_op(ReturnOp())
    call = FunctionCall(name, buffers, [])
    call.location = run[0].location
    Rewriter.insert_op(call, InsertPoint.before(run[-1]))
    for op in reversed(run):
        Rewriter.erase_op(op)
    region = FuncOp(name, ([b.type for b in buffers], []), Region(block))
    region.location = call.location
    return region, call


class _OuterValues:
    """What a run reads of the ops around it: `copied`, in their order, and `buffers`."""

    def __init__(self, run: Run) -> None:
        self.copied: list[Operation] = []
        self.buffers: list[SSAValue] = []
        self._own = {inner for op in run for inner in op.walk()}
        self._block = run[0].parent
        for op in run:
            for inner in op.walk():
                for value in inner.operands:
                    self._need(value)

    def _need(self, value: SSAValue) -> None:
        op = value.owner
        if op in self._own or op in self.copied or value in self.buffers:
            return
        if isinstance(op, Operation) and isinstance(op, _COPIED):
            for operand in op.operands:
                self._need(operand)
            self.copied.append(op)
        elif isinstance(op, memref.AllocOp) and self._is_own(value):
            self.copied.append(op)
        elif isinstance(value.type, MemRefType):
            self.buffers.append(value)

    def _is_own(self, array: SSAValue) -> bool:
        """Whether nobody else touches an array that is new whenever the run is run."""
        op = array.owner
        return isinstance(op, Operation) and op.parent is self._block and self._is_alone(array)

    def _is_alone(self, array: SSAValue) -> bool:
        users = [use.operation for use in array.uses]
        return all(
            self._is_alone(user.result)
            if isinstance(user, memref.ReinterpretCastOp) and user not in self._own
            else user in self._own
            for user in users
        )
