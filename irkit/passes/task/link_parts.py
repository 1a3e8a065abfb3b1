"""`link-parts`: the schedules that a function of calls needs, one after another and in loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import func, scf, tensor
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects.functions import BUDGET, function_named, is_composed
from irkit.dialects.loop_places import first_byte, trips_of
from irkit.dialects.loops import (
    LoopOp,
    asked_of,
    body_of,
    carried_in,
    is_loop,
    starts_of,
    yielded_by,
)
from irkit.dialects.state import state_of
from irkit.dialects.task import BufferOp, CompositeOp, ProgramOp, RepeatOp, RunOp, WhileOp
from irkit.dialects.task.composite import Place
from irkit.dialects.types import tensor_type
from irkit.errors import BudgetError, UnsupportedError
from irkit.passes.task.composed_meaning import place_in
from irkit.passes.task.composite_text import composite_of
from irkit.passes.task.launch_reader import row_bytes
from irkit.passes.task.program_text import plans_of
from irkit.passes.task.vdevices import device_of
from irkit.schedule.composite import ALIGNED


@dataclass(frozen=True)
class LinkParts(ModulePass):
    """Schedule every function of calls: run what it calls, one program after another, in its loops.

    What a loop carries has one buffer, a result of the function where it is returned, and so has state; a
    slice at a moving place is that place of the buffer. What else passes between calls has a buffer of its
    own, in bytes that lie below the arenas of the programs. Needs the programs' own memory to be planned;
    changes nothing else. A function that has a budget (`irkit.budget`, of `rematerialise`) and needs more
    is refused.
    A loop that asks is one that looks at the buffer of what it asks for; on a GPU it is refused.

    ```mlir
    func.func @main(%a: tensor<4xf64>) -> tensor<4xf64> {
      %0 = func.call @main_part1(%a) : (tensor<4xf64>) -> tensor<4xf64>
      %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%x = %0) -> (tensor<4xf64>) {
        %y = func.call @main_part0(%x) : (tensor<4xf64>) -> tensor<4xf64>
        scf.yield %y : tensor<4xf64>
      }
      func.return %r : tensor<4xf64>
    }
    ```
    also gets
    ```mlir
    task.composite @main_schedule of @main attributes {device = @cpu2, link_bytes = 0 : i64} {
      %a = task.buffer {space = "input", port = 0 : i64} : tensor<4xf64>
      %r = task.buffer {space = "output", port = 0 : i64} : tensor<4xf64>
      task.run @main_part1_schedule reads(%a) writes(%r)
      task.repeat 9 {
        task.run @main_part0_schedule state(%r)
      }
    }
    ```
    """

    name = "link-parts"
    requires: ClassVar[tuple[str, ...]] = ("planned",)
    produces: ClassVar[str] = "planned"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in list(op.ops):
            if not isinstance(function, func.FuncOp) or not is_composed(function):
                continue
            if composite_of(op, function.sym_name.data) is None:
                try:
                    _Linker(op, function).run()
                except BudgetError:
                    raise
                except UnsupportedError as error:
                    raise PassFailedException(str(error)) from None


class _Linker:
    """Gives the values of a function of calls their buffers."""

    def __init__(self, module: ModuleOp, main: func.FuncOp) -> None:
        self.module, self.main = module, main
        self.device = device_of(module)
        self.parent: dict[SSAValue, SSAValue] = {}
        # Slices of what lies elsewhere: their op says where.
        self.slices: dict[SSAValue, tensor.ExtractSliceOp | tensor.InsertSliceOp] = {}
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.block = Block()
        self.builder = Builder(InsertPoint.at_end(self.block))
        self.link_bytes = 0

    def run(self) -> None:
        self._ports(self.main.body.block)
        # Buffers first, runs behind them.
        for op in self.main.body.walk():
            if isinstance(op, func.CallOp):
                for value in (*op.arguments, *op.res):
                    if value not in self.slices and self._find(value) not in self.buffers:
                        self._link(value)
        self._steps(self.main.body.block, [], self.builder)
        name = self.main.sym_name.data
        device = self.device.name
        self._hold_to_budget()
        composite = CompositeOp(
            f"{name}_schedule", name, device, Region(self.block), self.link_bytes
        )
        Rewriter.insert_op(composite, InsertPoint.after(self.main))

    def _hold_to_budget(self) -> None:
        """Raises BudgetError where `rematerialise` said how many bytes there are, and these are more."""
        budget = self.main.attributes.get(BUDGET)
        if not isinstance(budget, IntegerAttr):
            return
        runs = [op for op in self.block.walk() if isinstance(op, RunOp)]
        ran = {op.program.string_value() for op in runs}
        plans = [p for p in self.module.ops if isinstance(p, ProgramOp) and p.sym_name.data in ran]
        arenas = (p.arena_bytes.value.data for p in plans if p.arena_bytes is not None)
        needed = self.link_bytes + max(arenas, default=0)
        if needed > budget.value.data:
            raise BudgetError(budget.value.data, needed, needed)

    # Places

    def _ports(self, block: Block) -> None:
        """Give arguments and results their buffers; a pair of state is one."""
        terminator, pairs = block.last_op, state_of(self.main)
        assert terminator is not None
        for pair in pairs:
            self._join(block.args[pair.argument], terminator.operands[pair.result])
        self._join_all(block)
        held = {pair.argument: number for number, pair in enumerate(pairs)}
        for number, argument in enumerate(block.args):
            space, port = ("state", held[number]) if number in held else ("input", number)
            self._buffer(argument, BufferOp(space, argument.type, port=port))
        kept = {pair.result for pair in pairs}
        for number, value in enumerate(terminator.operands):
            if number in kept:
                continue
            if self._find(value) in self.buffers:
                raise UnsupportedError(
                    f"result {number} of @{self.main.sym_name.data}, which is an argument or another result:"
                    " run outline-loops first"
                )
            self._buffer(value, BufferOp("output", value.type, port=number))

    def _join_all(self, block: Block) -> None:
        for op in block.ops:
            if is_loop(op):
                groups = (starts_of(op), carried_in(op), yielded_by(op), op.res)
                for first, *others in zip(*groups, strict=True):
                    for other in others:
                        self._join(first, other)
                self._join_all(body_of(op))
            elif isinstance(op, tensor.ExtractSliceOp):
                self.slices[op.result] = op
            elif isinstance(op, tensor.InsertSliceOp):
                self._join(op.dest, op.result)
                self.slices[op.source] = op

    def _join(self, a: SSAValue, b: SSAValue) -> None:
        a, b = self._find(a), self._find(b)
        if a is not b:
            self.parent[b] = a

    def _find(self, value: SSAValue) -> SSAValue:
        while value in self.parent:
            value = self.parent[value]
        return value

    def _buffer(self, value: SSAValue, op: BufferOp) -> None:
        made = self.builder.insert(op).result
        made.name_hint = value.name_hint
        self.buffers[self._find(value)] = made

    def _link(self, value: SSAValue) -> None:
        at = self.link_bytes
        self._buffer(value, BufferOp("arena", value.type, offset=at))
        self.link_bytes = -(-(at + row_bytes(tensor_type(value))) // ALIGNED) * ALIGNED

    # Steps

    def _steps(self, block: Block, loops: list[LoopOp], builder: Builder) -> None:
        for op in block.ops:
            if isinstance(op, func.CallOp):
                builder.insert(self._run(op, loops))
            elif is_loop(op):
                inner = Block()
                self._steps(body_of(op), [*loops, op], Builder(InsertPoint.at_end(inner)))
                builder.insert(self._loop(op, Region(inner)))

    def _loop(self, op: LoopOp, body: Region) -> RepeatOp | WhileOp:
        if isinstance(op, scf.ForOp):
            return RepeatOp(trips_of(op).count, body)
        if self.device.kind == "cuda":
            raise UnsupportedError(
                "'scf.while' in a schedule for a GPU: blocks walk a number of turns that is known when a call"
                " begins, and the host, which could ask, does not walk with them"
            )
        return WhileOp(self._whole(op.arguments[asked_of(op)]), body)

    def _run(self, op: func.CallOp, loops: list[LoopOp]) -> RunOp:
        name = op.callee.string_value()
        function = function_named(self.module, name)
        assert function is not None
        pairs = state_of(function)
        held, kept = {p.argument for p in pairs}, {p.result for p in pairs}
        run = RunOp(
            _program_of(self.module, name).sym_name.data,
            [self._place(v, loops) for n, v in enumerate(op.arguments) if n not in held],
            [self._place(v, loops) for n, v in enumerate(op.res) if n not in kept],
            [self._place(op.arguments[p.argument], loops) for p in pairs],
        )
        run.location = op.location
        return run

    def _place(self, value: SSAValue, loops: list[LoopOp]) -> Place:
        op = self.slices.get(value)
        if op is None:
            return Place(self.buffers[self._find(value)])
        whole = op.source if isinstance(op, tensor.ExtractSliceOp) else op.dest
        offset, steps = place_in(first_byte(op), loops)
        return Place(self._whole(whole), offset, steps)

    def _whole(self, value: SSAValue) -> SSAValue:
        found = self._find(value)
        if found not in self.buffers:
            raise UnsupportedError("a slice at a moving place of what no call makes")
        return self.buffers[found]


def _program_of(module: ModuleOp, function: str) -> ProgramOp:
    plans = plans_of(module, function)
    if len(plans) > 1:
        raise UnsupportedError(f"@{function}, which is called, has plans for ranges of rows")
    return plans[0]
