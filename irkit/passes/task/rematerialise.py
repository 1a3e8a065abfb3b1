"""`rematerialise`: launches that run again, so that what they make need not be kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from irkit.dialects.functions import BUDGET, function_named, is_composed, is_straight
from irkit.dialects.linalg_generic import is_contraction
from irkit.dialects.segments import segment_of
from irkit.dialects.state import state_of
from irkit.dialects.task import LaunchOp, ROperatorOp
from irkit.dialects.task.roperator import lookup
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import kind_of
from irkit.dialects.tensor_ops.reshape import RESHAPES
from irkit.dialects.types import Tensor, tensor_type
from irkit.errors import BudgetError, UnsupportedError
from irkit.passes.task.launch_reader import LaunchReader, Unscheduled, is_batch, row_bytes
from irkit.passes.task.vdevices import device_of
from irkit.remarks import applied
from irkit.schedule.allotments import speedups
from irkit.schedule.dependences import dependences
from irkit.schedule.footprint import Footprints
from irkit.schedule.memory_order import order_for_memory
from irkit.schedule.planner import ARENA_ALIGNMENT
from irkit.schedule.rematerialisation import Played, Program, Rematerialiser, Step

_VIEWS = (*RESHAPES, tensor.ExtractSliceOp)


@dataclass(frozen=True)
class Rematerialise(ModulePass):
    """Run launches again where what they made is read behind the turn from forward to backward, so that at
    most `budget` bytes are in use at once, in the order of the launches.

    The turn is the launch at which most bytes are in use. What is kept for behind it is chosen among minimum
    cuts that repeat no product, and segments of the part before the turn of which only what crosses their
    borders is kept (`irkit/schedule/rematerialisation.py`): of those within the budget, the one that is
    estimated to take least time, by the costs of the launches' alternatives. Nothing changes where the budget
    holds as it is, unless ops are in segments that the user named, by `loc("segment NAME"(...))`: what is
    made in one and read nowhere else before the turn is made again in any case, without a budget too. A
    budget below what is found to be possible is refused, with the least that was found. A function with loops
    stays as it is: `link-parts`, which knows what its parts need, holds it to the budget. What is kept for
    the way back through loops, and of segments beside them, `differentiate` has said.

    Results are those of the function without it, bit for bit: the same launches run on the same values. What
    reads state is run again before that is written only, and never what hangs on an open batch. Launches come
    in the order for memory of `schedule-memory`, which keeps the order that this makes; other policies may
    run launches again early, as nothing holds them back. Needs `partition-rtasks`.

    ```mlir
    %h = task.launch @tanh(%x) : (tensor<64xf32>) -> tensor<64xf32>
    %z = task.launch @loss(%h) : (tensor<64xf32>) -> tensor<64xf32>
    %g = task.launch @back(%z, %h) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    ```
    becomes
    ```mlir
    %h = task.launch @tanh(%x) : (tensor<64xf32>) -> tensor<64xf32>
    %z = task.launch @loss(%h) : (tensor<64xf32>) -> tensor<64xf32>
    %0 = task.launch @tanh(%x) : (tensor<64xf32>) -> tensor<64xf32>
    %g = task.launch @back(%z, %0) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    ```
    """

    name = "rematerialise"
    requires: ClassVar[tuple[str, ...]] = ("partitioned",)
    produces: ClassVar[str] = "partitioned"
    budget: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        main = function_named(op, "main")
        if main is not None and is_composed(main):
            if self.budget is not None:
                main.attributes[BUDGET] = IntegerAttr(self.budget, i64)
            return
        if main is None or not is_straight(main):
            raise UnsupportedError("rematerialise: expected a function @main of launches")
        self._within(ctx, op, main)

    def _within(self, ctx: Context, module: ModuleOp, main: func.FuncOp) -> None:
        steps, search = search_of(ctx, module, main)
        found = search.asked if self.budget is None else search.within(self.budget)
        if self.budget is not None and found.peak > self.budget:
            least = search.least().peak
            raise BudgetError(self.budget, least, search.naive.peak)
        if [n for n, _ in found.runs] != _places(main, steps):
            _rewrite(main, steps, found)
        text = "{} bytes in use at once, of {}; {} launches again, {:.3f} times the time"
        share = found.cost / search.naive.cost if search.naive.cost else 1.0
        launched = sum(isinstance(steps[n], LaunchOp) for n, _ in found.runs)
        repeated = launched - sum(isinstance(step, LaunchOp) for step in steps)
        applied(main, "Rematerialise", text, found.peak, search.naive.peak, repeated, share)


def search_of(
    ctx: Context, module: ModuleOp, main: func.FuncOp
) -> tuple[list[Operation], Rematerialiser]:
    """A function's ops, and what finds ways to run them, by number, within budgets. The function is at the
    task level, with the alternatives of its rOperators."""
    found = LaunchReader(ctx, module, main).read()
    alone = speedups(found.buffers, found.launches, device_of(module))
    costs: dict[Operation, float] = {
        op: one.alone.time for op, one in zip(found.ops, alone, strict=True)
    }
    steps = _in_order(main, found)
    return steps, Rematerialiser(_program(main, steps, costs))


def _in_order(main: func.FuncOp, found: Unscheduled) -> list[Operation]:
    """All ops but the last, launches in the order that needs fewest bytes and frees early, what they read
    before them."""
    launches = [launch.as_one() for launch in found.launches]
    graph = dependences(Footprints(found.buffers, launches))
    order = order_for_memory(found.buffers, launches, graph, early=True)
    ops = [op for op in main.body.block.ops if not isinstance(op, func.ReturnOp)]
    if order.launches == tuple(range(len(launches))):
        return ops
    made: dict[Operation, None] = {}
    for launch in order.launches:
        _append(found.ops[launch], made)
    for op in ops:
        _append(op, made)
    return list(made)


def _append(op: Operation, made: dict[Operation, None]) -> None:
    """An op behind those that it reads; of these, launches are there."""
    waiting = [op]
    while waiting:
        top = waiting[-1]
        missing = [o for v in top.operands if isinstance(o := v.owner, Operation) and o not in made]
        waiting += missing
        if not missing:
            made.setdefault(waiting.pop())


def _places(main: func.FuncOp, steps: list[Operation]) -> list[int]:
    """The numbers of a function's ops, as they stand."""
    number = {op: n for n, op in enumerate(steps)}
    return [number[op] for op in main.body.block.ops if op in number]


def _program(main: func.FuncOp, steps: list[Operation], costs: dict[Operation, float]) -> Program:
    """A function of launches as steps on numbered values."""
    block = main.body.block
    values: list[SSAValue] = [*block.args, *(r for op in steps for r in op.results)]
    number = {value: n for n, value in enumerate(values)}
    elsewhere = set(_returned(main)) | set(block.args)
    until = _written_at(main, steps)
    nbytes = [0 if v in elsewhere or _takes_none(v) else _planned(v) for v in values]
    root = [number[_source(v)] for v in values]
    made: list[Step] = []
    for op in steps:
        repeatable = isinstance(op, (LaunchOp, *_VIEWS)) and elsewhere.isdisjoint(op.results)
        written = [until[v] for v in map(_start, op.operands) if v in until]
        made.append(
            Step(
                tuple(number[v] for v in op.operands),
                tuple(number[v] for v in op.results),
                costs.get(op, 0.0),
                repeatable and not any(_open(r) for r in op.results),
                isinstance(op, LaunchOp) and _is_dear(op),
                segment_of(op.location),
                min(written, default=None),
            )
        )
    return Program(made, nbytes, root)


def _returned(main: func.FuncOp) -> Iterator[SSAValue]:
    """What is returned, and what that is a view of."""
    end = main.body.block.last_op
    assert end is not None
    for value in end.operands:
        yield value
        while isinstance(value.owner, RESHAPES):
            value = value.owner.operands[0]
            yield value


def _source(value: SSAValue) -> SSAValue:
    """Whose bytes a value has."""
    return value.owner.operands[0] if isinstance(value.owner, _VIEWS) else value


def _takes_none(value: SSAValue) -> bool:
    """Whether it has no bytes in the arena: it is a view, or a constant."""
    return not isinstance(value.owner, LaunchOp | tensor.ConcatOp)


def _planned(value: SSAValue) -> int:
    size = row_bytes(tensor_type(value))
    return -(-size // ARENA_ALIGNMENT) * ARENA_ALIGNMENT


def _open(value: SSAValue) -> bool:
    return isa(value.type, Tensor) and is_batch(value.type)


def _start(value: SSAValue) -> SSAValue:
    """What a chain of views starts from."""
    while isinstance(value.owner, _VIEWS):
        value = value.owner.operands[0]
    return value


def _written_at(main: func.FuncOp, steps: list[Operation]) -> dict[SSAValue, int]:
    """Of each argument that is state the step that writes it."""
    end = main.body.block.last_op
    assert end is not None
    number = {op: n for n, op in enumerate(steps)}
    found: dict[SSAValue, int] = {}
    for pair in state_of(main):
        maker = _start(end.operands[pair.result]).owner
        last = number[maker] if isinstance(maker, Operation) and maker in number else len(steps)
        found[main.body.block.args[pair.argument]] = last
    return found


def _is_dear(launch: LaunchOp) -> bool:
    """Whether it has a product in it, or anything that is as long: what is elementwise or sums is not."""
    op = lookup(launch, launch.callee)
    assert isinstance(op, ROperatorOp)
    return any(
        kind_of(inner) is Kind.HEAVY
        and (is_contraction(inner) or not isinstance(inner, linalg.GenericOp))
        for inner in op.body.block.ops
    )


def _rewrite(main: func.FuncOp, steps: list[Operation], found: Played) -> None:
    """Put copies of what runs again where it does, and let what is behind read theirs."""
    read = [tuple(op.operands) for op in steps]
    placed: list[Operation] = []
    made: dict[tuple[int, SSAValue], SSAValue] = {}
    seen: set[int] = set()
    for at, (number, _) in enumerate(found.runs):
        placed.append(steps[number].clone() if number in seen else steps[number])
        seen.add(number)
        for old, new in zip(steps[number].results, placed[at].results, strict=True):
            made[at, old] = new
    for op, (number, versions) in zip(placed, found.runs, strict=True):
        for place, (value, version) in enumerate(zip(read[number], versions, strict=True)):
            op.operands[place] = value if version is None else made[version, value]
    end = main.body.block.last_op
    assert end is not None
    for op in placed:
        if op.parent is not None:
            op.detach()
        Rewriter.insert_op(op, InsertPoint.before(end))
