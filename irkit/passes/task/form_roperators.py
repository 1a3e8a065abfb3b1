"""`form-roperators`: gather tensor ops into rOperators, each a root with its prologue and epilogue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr
from xdsl.passes import ModulePass

from irkit.dialects import te
from irkit.dialects.roperator_root import (
    continues,
    is_contraction,
    is_elementwise,
    is_heavy,
    iterators,
    maps,
)
from irkit.dialects.task import LaunchOp
from irkit.dialects.types import DYNAMIC, ints, tensor_type
from irkit.passes.task.checks import check_types
from irkit.passes.task.outlining import (
    Outliner,
    erase_dead,
    sink_constants,
)
from irkit.passes.task.results_in_place import insert_copies
from irkit.remarks import applied, missed

# Names of this pass's rules in remarks.
CHAIN, EPILOGUE, PROLOGUE = "JoinChain", "FuseEpilogue", "FusePrologue"
_LIGHT = (tensor.PadOp, te.GatherOp, te.GatherElementsOp)


def is_contiguous_slice(op: tensor.ExtractSliceOp) -> bool:
    """Whether a slice is one run of its source's bytes, whole rows of the batch included."""
    shape = tensor_type(op.source).get_shape()
    sizes, steps = ints(op.static_sizes), ints(op.static_strides)
    if len(sizes) != len(shape) or any(s != 1 for s in steps) or DYNAMIC in shape:
        return False
    cut = [d for d, (s, n) in enumerate(zip(sizes, shape, strict=True)) if s != n]
    return not cut or all(sizes[d] == 1 for d in range(cut[-1]))


def is_contiguous_concat(op: tensor.ConcatOp) -> bool:
    """Whether each operand of a concatenation is one run of the result's bytes."""
    shape = tensor_type(op.result).get_shape()
    return all(s == 1 for s in shape[: op.dim.value.data])


def is_view(op: Operation) -> bool:
    """Ops that stay between launches: they name bytes, and move none."""
    if isinstance(op, tensor.ExtractSliceOp):
        return is_contiguous_slice(op)
    if isinstance(op, tensor.ConcatOp):
        return is_contiguous_concat(op)
    return isinstance(op, tensor.CollapseShapeOp | tensor.ExpandShapeOp)


def is_light(op: Operation) -> bool:
    """Ops whose elements are expressions, and that compute or move something."""
    if isinstance(op, tensor.ExtractSliceOp | tensor.ConcatOp):
        return not is_view(op)
    return is_elementwise(op) or isinstance(op, _LIGHT)


def only_user(op: Operation) -> Operation | None:
    """The one op that uses an op's results, if there is just one."""
    users = {use.operation for result in op.results for use in result.uses}
    return next(iter(users)) if len(users) == 1 else None


@dataclass
class Group:
    """Ops that become one rOperator, in program order."""

    ops: set[Operation] = field(default_factory=set[Operation])


class Grouping:
    """Decides which ops go together. Each op that is neither free nor a view gets one group."""

    def __init__(self, ops: list[Operation]) -> None:
        self.order = {op: n for n, op in enumerate(ops)}
        self.group: dict[Operation, Group] = {}
        for op in ops:
            if is_heavy(op):
                self._join_chain(op)
        for op in ops:
            if is_heavy(op):
                self._absorb_epilogue(op)
        for op in reversed(ops):
            if op not in self.group and is_light(op):
                self._join_consumer(op)

    def groups(self) -> Iterable[list[Operation]]:
        """Groups in program order of their last op, each in program order."""
        distinct = {id(g): sorted(g.ops, key=self.order.__getitem__) for g in self.group.values()}
        return sorted(distinct.values(), key=lambda ops: self.order[ops[-1]])

    def _add(self, op: Operation, group: Group) -> None:
        group.ops.add(op)
        self.group[op] = group

    def _join_chain(self, op: Operation) -> None:
        """A contraction that only goes on accumulating joins the one before it."""
        producer = op.operands[-1].owner
        reason = self._why_no_chain(op, producer)
        if reason is None and isinstance(producer, Operation):
            applied(op, CHAIN, "it goes on accumulating into '{}'", producer.name)
            self._add(op, self.group[producer])
        else:
            missed(op, CHAIN, "{}", reason)
            self._add(op, Group())

    def _why_no_chain(self, op: Operation, producer: Operation | Block) -> str | None:
        """Why an op begins a group of its own; None if it belongs to that of `producer`."""
        if not isinstance(op, linalg.GenericOp) or not isinstance(producer, linalg.GenericOp):
            return "it does not start from a contraction's result"
        if producer not in self.group or only_user(producer) is not op:
            return "something else reads what it starts from"
        return None if continues(producer, op) else "it does not accumulate over the same elements"

    def _absorb_epilogue(self, op: Operation) -> None:
        """The elementwise op that alone uses a root's result joins it, and so on down."""
        group, last = self.group[op], op
        while (user := only_user(last)) is not None:
            if (reason := self._why_no_epilogue(last, user)) is not None:
                return missed(user, EPILOGUE, "into '{}': {}", op.name, reason)
            applied(user, EPILOGUE, "into '{}'", op.name)
            self._add(user, group)
            last = user
            if len(user.results) > 1:
                return missed(user, EPILOGUE, "it has several results: nothing can follow it")
        missed(last, EPILOGUE, "its results have no one user")

    def _why_no_epilogue(self, producer: Operation, user: Operation) -> str | None:
        """None if `user` reads the producer once per element (or a fixed set of its last dimension), in
        place; else what is in the way."""
        if not isinstance(user, linalg.GenericOp) or not is_elementwise(user):
            return f"'{user.name}' is no elementwise op"
        if user in self.group:
            return "it belongs to another rOperator"
        loops = len(user.iterator_types)
        rank = tensor_type(producer.results[0]).get_num_dims()
        if loops != rank and not (_is_row_contraction(producer) and loops < rank):
            return f"it has {loops} loops, the root's result {rank} dimensions"
        for operand, amap in zip(user.operands, maps(user), strict=True):
            if operand.owner is not producer:
                continue
            lead, rest = amap.results[:loops], amap.results[loops:]
            in_place = all(
                isinstance(e, AffineDimExpr) and e.position == d for d, e in enumerate(lead)
            )
            if not in_place or not all(isinstance(e, AffineConstantExpr) for e in rest):
                return f"it reads the root's result as {amap}, not in place"
        return None

    def _join_consumer(self, op: Operation) -> None:
        """A light op that one op alone uses is recomputed there, where that costs nothing."""
        user = only_user(op)
        if user is None:
            missed(op, PROLOGUE, "its results have no one user")
        elif user not in self.group:
            missed(op, PROLOGUE, "'{}' belongs to no rOperator", user.name)
        elif (reason := _why_no_prologue(op, user)) is not None:
            missed(op, PROLOGUE, "into '{}': {}", user.name, reason)
        else:
            applied(op, PROLOGUE, "into '{}'", user.name)
            return self._add(op, self.group[user])
        self._add(op, Group())


def _is_row_contraction(op: Operation) -> bool:
    return (
        isinstance(op, linalg.GenericOp)
        and is_contraction(op)
        and iterators(op) == [True] * (len(op.iterator_types) - 1) + [False]
    )


def _why_no_prologue(op: Operation, user: Operation) -> str | None:
    """None if `user` reads each element of `op` about once; else what is in the way."""
    if is_light(user) or isinstance(user, te.ArgmaxOp):
        return None
    if not isinstance(user, linalg.GenericOp):
        return f"'{user.name}' reads its operands by pointer"
    position = [i for i, v in enumerate(user.operands) if v.owner is op]
    if all(i >= len(user.inputs) for i in position):
        return None
    window = any(not isinstance(e, AffineDimExpr) for i in position for e in maps(user)[i].results)
    if window:
        return None if isinstance(op, tensor.PadOp) else "its windows read elements more than once"
    return "a contraction reads each element many times" if is_contraction(user) else None


@dataclass(frozen=True)
class FormROperators(ModulePass):
    """Outline tensor ops into `task.roperator`s: a root with its fused prologue and epilogue.

    A root is a contraction (or several that accumulate into one another), another reduction, a
    softmax, an argmax or a forest walk; what remains becomes `map`s. The elementwise op that alone
    uses a root's result becomes its epilogue; a pad, slice or broadcast that one op alone reads
    becomes its prologue. Identical rOperators become one symbol. Slices, reshapes and concatenations
    that only name bytes stay between the launches. No value changes.

    ```mlir
    %0 = linalg.generic {... "reduction"} ins(%x, %w) outs(%init) {...}
    %1 = linalg.generic {... "parallel"} ins(%0) outs(%e) {... maximumf ...}
    ```
    becomes
    ```mlir
    task.roperator @gemm_0(%x, %w) { ... task.yield }
    %1 = task.launch @gemm_0(%x, %w)
    ```
    """

    name = "form-roperators"
    requires: ClassVar[tuple[str, ...]] = ("tensor", "task")
    produces: ClassVar[str] = "task"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        outliner = Outliner(op)
        for function in [f for f in op.ops if isinstance(f, func.FuncOp) and f.body.blocks]:
            _outline(function, outliner)


def _outline(function: func.FuncOp, outliner: Outliner) -> None:
    """Make all ops of a function but views launches."""
    check_types(function)
    erase_dead(function)
    for inner in list(function.body.block.ops):
        sink_constants(inner)
    insert_copies(function, is_view)
    ops = [o for o in function.body.block.ops if not isinstance(o, LaunchOp)]
    for group in Grouping(ops).groups():
        outliner.outline(group)
    erase_dead(function)
