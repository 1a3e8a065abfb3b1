"""`form-roperators`: gather tensor ops into rOperators, each a root with its prologue and epilogue."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from irkit.dialects.functions import is_straight
from irkit.dialects.linalg_generic import continues
from irkit.dialects.task import LaunchOp
from irkit.dialects.tensor_ops.generic import reads_once
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import kind_of, model_of
from irkit.dialects.tensor_ops.reshape import RESHAPES
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.passes.task.border_slices import border_slices
from irkit.passes.task.checks import check_types
from irkit.passes.task.equal_ops import merge_equal
from irkit.passes.task.outlining import (
    Outliner,
    erase_dead,
    sink_constants,
)
from irkit.passes.task.repeated_differences import repeat_differences
from irkit.passes.task.repeated_slices import repeat_slices
from irkit.passes.task.results_in_place import insert_copies
from irkit.passes.task.state_in_place import place_state
from irkit.passes.task.updated_slices import own_slices
from irkit.remarks import applied, missed

# Names of this pass's rules in remarks.
CHAIN, EPILOGUE, PROLOGUE = "JoinChain", "FuseEpilogue", "FusePrologue"


BRANCHES = (tensor.InsertSliceOp, tensor.PadOp, tensor.ConcatOp)
DEEPEST = 48
"""Such ops of one rOperator: each may stand in a branch of the one behind it, and Python has 100 levels."""
LONGEST = 512
"""Ops in bodies of one rOperator's generics, where there are several: what is made once for so many ops costs
little to write and to read, and a function of many more costs LLVM more than its length."""
EDGES = 4
"""Edges that repeat what one rOperator makes beside them: each doubles what is written down of that."""


def only_user(op: Operation) -> Operation | None:
    """The one op that uses an op's results, if there is just one."""
    users = {use.operation for result in op.results for use in result.uses}
    return next(iter(users)) if len(users) == 1 else None


@dataclass
class Group:
    """Ops that become one rOperator, in program order. `branches`: how many are of `BRANCHES`; `edges`: how
    many of the edges that repeat what is beside them; `length`: ops in the bodies of its generics."""

    ops: set[Operation] = field(default_factory=set[Operation])
    branches: int = 0
    edges: int = 0
    length: int = 0


class Grouping:
    """Decides which ops go together. Each op that is neither free nor a view gets one group, and so do the
    views of `own` and `edges`, which repeat what they are slices of beside it. `apart`: what has several
    results is no epilogue; `on_cpu`: rKernels for one column take a matrix that is made where they read it.
    """

    def __init__(
        self,
        ops: list[Operation],
        own: Collection[Operation] = (),
        apart: bool = False,
        on_cpu: bool = True,
        edges: Collection[Operation] = (),
    ) -> None:
        self.apart, self.on_cpu, self.edges = apart, on_cpu, edges
        self.order = {op: n for n, op in enumerate(ops)}
        self.group: dict[Operation, Group] = {}
        for op in ops:
            if kind_of(op) is Kind.HEAVY:
                self._join_chain(op)
        for op in ops:
            if kind_of(op) is Kind.HEAVY:
                self._absorb_epilogue(op)
        for op in reversed(ops):
            if op in own or op in edges or (op not in self.group and kind_of(op) is Kind.LIGHT):
                self._join_consumer(op)

    def groups(self) -> Iterable[list[Operation]]:
        """Groups in program order of their last op, each in program order."""
        distinct = {id(g): sorted(g.ops, key=self.order.__getitem__) for g in self.group.values()}
        return sorted(distinct.values(), key=lambda ops: self.order[ops[-1]])

    def _add(self, op: Operation, group: Group) -> None:
        if op not in group.ops:
            group.branches += isinstance(op, BRANCHES)
            group.edges += op in self.edges
            group.length += _length(op)
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
            reason = self._why_no_epilogue(last, user)
            if (reason := reason or _why_too_long(user, group)) is not None:
                return missed(user, EPILOGUE, "into '{}': {}", op.name, reason)
            applied(user, EPILOGUE, "into '{}'", op.name)
            self._add(user, group)
            last = user
            if len(user.results) > 1:
                return missed(user, EPILOGUE, "it has several results: nothing can follow it")
        missed(last, EPILOGUE, "its results have no one user")

    def _why_no_epilogue(self, producer: Operation, user: Operation) -> str | None:
        """None if `user` is computed where the producer's elements are made; else what is in the way."""
        if self.apart and len(user.results) > 1:
            return "what has several results is to be apart"
        if user in self.group and kind_of(user) is Kind.LIGHT:
            return "it belongs to another rOperator"
        model = model_of(user)
        if model is None:
            return f"'{user.name}' is no elementwise op"
        return model.why_no_epilogue(user, producer)

    def _join_consumer(self, op: Operation) -> None:
        """A light op that one op alone uses is recomputed there, where that costs nothing."""
        users = self._around_edge(op) or _users_through_units(op)
        user = users[-1] if users else None
        if user is None:
            missed(op, PROLOGUE, "its results have no one user")
        elif user not in self.group:
            missed(op, PROLOGUE, "'{}' belongs to no rOperator", user.name)
        elif _is_deep(op, self.group[user]):
            missed(op, PROLOGUE, "into '{}': branches would lie in one another too deep", user.name)
        elif (reason := self._why_not_read(op, user)) is not None:
            missed(op, PROLOGUE, "into '{}': {}", user.name, reason)
        else:
            applied(op, PROLOGUE, "into '{}'", user.name)
            for joined in (op, *users[:-1]):
                self._add(joined, self.group[user])
            return
        self._add(op, Group())

    def _around_edge(self, op: Operation) -> list[Operation]:
        """The insertion that alone goes on from an op's result, into which it puts an edge of that; nothing
        where there is none, or the edge does not belong to it."""
        users = list(dict.fromkeys(use.operation for result in op.results for use in result.uses))
        edges = [user for user in users if user in self.edges]
        if len(users) != 2 or len(edges) != 1:
            return []
        (user,) = (user for user in users if user not in self.edges)
        group = self.group.get(user)
        if group is None or self.group.get(edges[0]) is not group:
            return []
        return [user] if group.edges <= EDGES else []

    def _why_not_read(self, op: Operation, user: Operation) -> str | None:
        """Why an op is not computed where `user` reads it, or where what is fused there is read in turn."""
        reason = _why_too_long(op, self.group[user]) or self._why_no_prologue(op, user, op)
        while reason is None and kind_of(user) is Kind.LIGHT:
            behind = only_user(user)
            if behind is None or self.group.get(behind) is not self.group[user]:
                return None
            reason, user = self._why_no_prologue(op, behind, user), behind
        return reason

    def _why_no_prologue(self, op: Operation, user: Operation, read: Operation) -> str | None:
        """None if `user` can compute elements of `op` where it reads those of `read`, which that is part of;
        else what is in the way."""
        model, own = model_of(user), model_of(op)
        assert model is not None
        assert own is not None
        if own.names_operand or (self.on_cpu and reads_once(user, read)):
            return None
        return model.why_no_prologue(user, read, own.cheap)


def _is_deep(op: Operation, group: Group) -> bool:
    return isinstance(op, BRANCHES) and group.branches >= DEEPEST


def _length(op: Operation) -> int:
    """Ops in a generic's body; 0 of what is none."""
    return sum(1 for _ in op.body.block.ops) if isinstance(op, linalg.GenericOp) else 0


def _why_too_long(op: Operation, group: Group) -> str | None:
    """Why a generic stays out of a group that has many ops already; None if it may join."""
    own = _length(op)
    if not own or own + group.length <= LONGEST:
        return None
    return f"their bodies together have more than {LONGEST} ops"


def _users_through_units(op: Operation) -> list[Operation]:
    """The one op that uses an op's results, if there is just one. Of reshapes that only add or leave out
    dimensions of size 1, which take no arithmetic, the next one too, and so on: these come before it."""
    found: list[Operation] = []
    user = only_user(op)
    while user is not None:
        found.append(user)
        if not isinstance(user, RESHAPES) or not _is_of_units(user):
            break
        user = only_user(user)
    # What a reshape's result becomes outside of an rOperator is not computed there.
    whole = user is not None and kind_of(user) is Kind.LIGHT
    return found if whole else found[:1]


def _is_of_units(op: tensor.CollapseShapeOp | tensor.ExpandShapeOp) -> bool:
    shapes = [tensor_type(v).get_shape() for v in (op.src, op.result)]
    real = [[size for size in shape if size != 1] for shape in shapes]
    return real[0] == real[1] and DYNAMIC not in real[0]


@dataclass(frozen=True)
class FormROperators(ModulePass):
    """Outline tensor ops into `task.roperator`s: a root with its fused prologue and epilogue.

    A root is a contraction (or several that accumulate into one another), another reduction, a
    softmax, an argmax or a forest walk; what remains becomes `map`s. The elementwise op that alone
    uses a root's result becomes its epilogue; a pad, slice or broadcast that one op alone reads
    becomes its prologue, and so does one behind which only dimensions of size 1 are added or left out, and
    one that widens float32 for a contraction of at most four columns; on a CPU (`device` is the vDevice that
    is planned for) also simple arithmetic that makes a matrix for one column, or one row. What an elementwise
    op computes is padded there only where no window reads it again. On a CPU an edge of what was put
    together of slices, which repeats what lies beside it, is made with it (`border_slices.py`). A slice that
    elementwise ops alone read is computed in each of them, on a GPU also a tensor without a number for
    each of its rows. Identical rOperators become one symbol. Slices, reshapes and concatenations
    that only name bytes stay between the launches. State is updated in place where no launch reads its old
    value any more, or where the launch that makes the new one reads it element by element (`in_place`;
    slices of it that are read for that belong to this launch); else
    a launch copies the new value in the end. With `apart`, what has several results becomes no epilogue, so
    that it can be computed again without the root (`rematerialise`). Equal ops are one. No value changes.

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
    apart: bool = False
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        outliner, on_cpu = Outliner(op), gpu_of(self.device) is None
        for function in [f for f in op.ops if is_straight(f)]:
            _outline(ctx, function, outliner, self.apart, on_cpu)


def _outline(
    ctx: Context, function: func.FuncOp, outliner: Outliner, apart: bool, on_cpu: bool
) -> None:
    """Make all ops of a function but views launches."""
    check_types(function)
    merge_equal(function)
    erase_dead(function)
    for inner in list(function.body.block.ops):
        sink_constants(inner)
    insert_copies(function)
    own = own_slices(function)
    repeat_slices(function)
    edges = border_slices(function) if on_cpu else ()
    if not on_cpu:
        repeat_differences(function)
    ops = [o for o in function.body.block.ops if not isinstance(o, LaunchOp)]
    for group in Grouping(ops, own, apart, on_cpu, edges).groups():
        outliner.outline(group)
    erase_dead(function)
    place_state(ctx, function, outliner)
    erase_dead(function)
