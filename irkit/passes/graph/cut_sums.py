"""`cut-sums`: scheduled sums that vEUs share: each sums its part of the terms, then the parts are summed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects import graph
from irkit.dialects.loop import ScheduleAttr
from irkit.dialects.precision import inherit
from irkit.dialects.types import int_array, tensor_type
from irkit.errors import DeviceError, UnsupportedError
from irkit.expressions.binding import Step as Statement
from irkit.expressions.printing import text_of
from irkit.expressions.steps import Step
from irkit.expressions.syntax import (
    NOWHERE,
    Apply,
    Expr,
    ExpressionError,
    Name,
    Number,
    Place,
    Range,
    Read,
    names_of,
    reads_of,
)
from irkit.rewriting import Rule, rewrite
from irkit.rkernels.scheduled.parts import parts_by_rule
from irkit.schedule.devices import device as find_device
from irkit.schedule.model import VDevice

PART = "_part"
"""What the name of a cut index ends with where it says which part."""


def cuts_of(op: graph.ExpressionOp, device: VDevice) -> dict[str, int]:
    """Into how many parts which reduced index is cut: as a schedule says, or irkit's rule for the device."""
    if op.schedule is None:
        return {}
    step, schedule = op.step, op.schedule.schedule
    reduced = {loop.name: loop.size for loop in step.domain.reduced}
    if schedule.by_rule:
        # What is cut once is not cut again.
        free = [n for n in reduced if f"{n}{PART}" not in schedule.loops]
        sizes = {n: reduced[n] for n in free if why_whole(step, n) is None}
        return parts_by_rule(step.domain.shape, sizes, step.is_product, device)
    binds = (s for s in schedule.steps if s.kind == "bind" and s.names[0] in reduced)
    return {s.names[0]: s.number for s in binds}


def why_whole(step: Statement, name: str) -> str | None:
    """Why the terms of an index cannot be summed in parts; None if they can."""
    statement = step.statement
    (loop,) = (x for x in step.domain.loops if x.name == name)
    if not statement.fresh:
        return f"of a statement that goes on from what '{statement.target}' has"
    if step.domain.checked:
        return "of a statement that picks elements by values"
    for read in (*reads_of(statement.value), *statement.exists):
        for index, size in zip(read.indices, step.shapes[read.tensor], strict=True):
            if name not in names_of(index):
                continue
            if not isinstance(index, Name) or (loop.low, loop.high) != (0, size):
                return f"which '{read.tensor}' does not read by itself, from its first to its last"
    if any(isinstance(e, Name) and e.name == name for e in _outside(statement.value)):
        return "which is a number in the statement"
    return None


def _outside(value: Expr) -> list[Expr]:
    """A value's parts, but for the indices of what it reads."""
    if isinstance(value, Apply):
        return [e for a in value.arguments for e in _outside(a)]
    return [value]


@dataclass
class CutSums(Rule):
    """sum over k = sum over the parts of k of sums over each part"""

    device: VDevice

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ExpressionOp, rewriter: PatternRewriter, /):
        cuts = {n: parts for n, parts in cuts_of(op, self.device).items() if parts > 1}
        if not cuts:
            return self.no_match(op, "its schedule shares no sum out")
        step = op.step
        for name in cuts:
            reason = why_whole(step, name)
            if reason is not None:
                raise ExpressionError(f"'bind' of '{name}' to vEUs, {reason}", _place(op, name))
        made = _Cut(op, step, cuts).made()
        rewriter.replace(op, made, [made[-1].results[0]])


def _place(op: graph.ExpressionOp, name: str) -> Place:
    """Where a schedule cuts an index."""
    steps = op.schedule.schedule.steps if op.schedule is not None else ()
    return next((s.at(0) for s in steps if s.kind == "bind" and s.names[0] == name), NOWHERE)


@dataclass
class _Cut:
    """What a statement becomes whose indices are cut."""

    op: graph.ExpressionOp
    step: Statement
    cuts: Mapping[str, int]

    def made(self) -> list[Operation]:
        """Operands by parts, the sums of parts, and their sum."""
        statement = self.step.statement
        taken = {*self.step.operands, statement.target, *(x.name for x in self.step.domain.loops)}
        parts = {name: _fresh(f"{name}{PART}", taken) for name in self.cuts}
        made: list[Operation] = []
        operands = [self._by_parts(n, made) for n in self.step.operands]
        first = replace(
            statement,
            indices=(*parts.values(), *statement.indices),
            value=_read_by_parts(statement.value, parts),
            ranges=(*(r for r in statement.ranges if r.name not in parts), *self._unread(parts)),
        )
        props = {"text": StringAttr(text_of(first)), "schedule": self._schedule(parts)}
        made.append(graph.ExpressionOp.make(operands, props))
        inherit(made[-1], self.op)
        sums = _fresh(f"{statement.target}_parts", taken)
        read = Read(sums, tuple(Name(n) for n in first.indices))
        last = replace(statement, value=read, ranges=(), exists=())
        props = {"text": StringAttr(text_of(last))}
        made.append(graph.ExpressionOp.make([made[-1].results[0]], props))
        return made

    def _unread(self, parts: Mapping[str, str]) -> list[Range]:
        """The ranges of cut indices that nothing is read at, which no read says."""
        read = {
            n for r in reads_of(self.step.statement.value) for i in r.indices for n in names_of(i)
        }
        sizes = {loop.name: loop.size for loop in self.step.domain.loops}
        found: list[Range] = []
        for name, count in self.cuts.items():
            if name not in read:
                found.append(Range(parts[name], Number(0), Number(count)))
                found.append(Range(name, Number(0), Number(sizes[name] // count)))
        return found

    def _by_parts(self, name: str, made: list[Operation]) -> SSAValue:
        """An operand, a dimension more for each that a cut index reads."""
        value = dict(zip(self.step.operands, self.op.operands, strict=True))[name]
        shape = tensor_type(value).get_shape()
        reads = [r for r in reads_of(self.step.statement.value) if r.tensor == name]
        wanted = {self._shape(read, shape) for read in reads} or {shape}
        if len(wanted) > 1:
            raise UnsupportedError(f"'bind' to vEUs of what reads '{name}' in several ways")
        (found,) = wanted
        if found == shape:
            return value
        made.append(graph.ReshapeOp.make([value], {"shape": int_array(found)}))
        return made[-1].results[0]

    def _shape(self, read: Read, shape: tuple[int, ...]) -> tuple[int, ...]:
        found: list[int] = []
        for index, size in zip(read.indices, shape, strict=True):
            parts = self.cuts.get(index.name, 1) if isinstance(index, Name) else 1
            found += [parts, size // parts] if parts > 1 else [size]
        return tuple(found)

    def _schedule(self, parts: Mapping[str, str]) -> ScheduleAttr:
        """The steps, of which those that cut sums bind the parts."""
        assert self.op.schedule is not None
        given = self.op.schedule.schedule

        def step(one: Step) -> Step:
            cut = one.kind == "bind" and one.names[0] in parts
            return replace(one, names=(parts[one.names[0]],)) if cut else one

        loops = (*parts.values(), *given.loops)
        return ScheduleAttr.of(replace(given, loops=loops, steps=tuple(map(step, given.steps))))


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _read_by_parts(value: Expr, parts: Mapping[str, str]) -> Expr:
    """A value whose reads at a cut index are at the part, and within it."""
    if isinstance(value, Apply):
        return replace(value, arguments=tuple(_read_by_parts(a, parts) for a in value.arguments))
    if not isinstance(value, Read):
        return value
    indices: list[Expr] = []
    for index in value.indices:
        if isinstance(index, Name) and index.name in parts:
            indices.append(Name(parts[index.name]))
        indices.append(index)
    return replace(value, indices=tuple(indices))


@dataclass(frozen=True)
class CutSumsPass(ModulePass):
    """Make of a statement whose schedule shares a sum out over vEUs (`bind k to veu in 4`) one that sums each
    part of the terms, and one that sums the parts, always in the same order.

    Where a schedule is `rule`, irkit's rule cuts where the results alone would leave vEUs of `device` without
    work. What no step or rule cuts stays as it is. Each part has as many terms as the others, and every read
    at the index reads it by itself. Refused else, by name.

    Numeric risk: floats are added in another order.

    ```mlir
    %c = graph.expression %a, %b {text = "C(m, n) +=! A(m, k) * B(k, n)",
      schedule = #loop.schedule<"for m, n, k of A, B; bind k to veu in 2">} : ... -> tensor<4x6xf32>
    ```
    becomes
    ```mlir
    %0 = graph.reshape %a {...} : (tensor<4x8xf32>) -> tensor<4x2x4xf32>
    %1 = graph.reshape %b {...} : (tensor<8x6xf32>) -> tensor<2x4x6xf32>
    %2 = graph.expression %0, %1 {text = "C(k_part, m, n) +=! A(m, k_part, k) * B(k_part, k, n)",
      schedule = #loop.schedule<"for k_part, m, n, k of A, B; bind k_part to veu in 2">}
      : ... -> tensor<2x4x6xf32>
    %c = graph.expression %2 {text = "C(m, n) +=! C_parts(k_part, m, n)"} : ... -> tensor<4x6xf32>
    ```
    """

    name = "cut-sums"
    device: str = "cpu"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        try:
            rewrite(op, [CutSums(find_device(self.device))])
        except ExpressionError:
            # It says where in the schedule, in lines of its own.
            raise
        except (UnsupportedError, DeviceError) as error:
            raise PassFailedException(str(error)) from None
