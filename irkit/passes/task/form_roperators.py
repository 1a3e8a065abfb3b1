"""`form-roperators`: gather tensor ops into rOperators, each a root with its prologue and epilogue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IndexType, ModuleOp, NameLoc, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects import te
from irkit.dialects.roots import (
    continues,
    find_root,
    is_contraction,
    is_elementwise,
    is_heavy,
    iterators,
    maps,
)
from irkit.dialects.task import LaunchOp, ROperatorOp, YieldOp
from irkit.dialects.types import DYNAMIC, ints, tensor_type
from irkit.passes.task.checks import check_types
from irkit.passes.task.destinations import insert_copies
from irkit.remarks import applied, missed

# Names of this pass's rules in remarks.
CHAIN, EPILOGUE, PROLOGUE = "JoinChain", "FuseEpilogue", "FusePrologue"
_LIGHT = (tensor.PadOp, te.GatherOp, te.GatherElementsOp)


def is_free(op: Operation) -> bool:
    """Ops that cost nothing and are copied into every body that needs them."""
    if isinstance(op, arith.ConstantOp):
        value = op.value
        return not isinstance(op.result.type, TensorType) or (
            isinstance(value, DenseIntOrFPElementsAttr) and value.is_splat()
        )
    return isinstance(op, tensor.EmptyOp | tensor.DimOp | linalg.FillOp)


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


class Outliner:
    """Moves groups out into rOperators; identical ones share a symbol."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.known: dict[tuple[object, ...], list[ROperatorOp]] = {}
        self.count: dict[str, int] = {}

    def outline(self, ops: list[Operation]) -> None:
        """Replace `ops` by a launch of their rOperator."""
        operands = _external_operands(ops)
        results = [
            r for op in ops for r in op.results if any(u.operation not in ops for u in r.uses)
        ]
        candidate = ROperatorOp("candidate", _body(ops, operands, results), _sources(ops))
        symbol = self._symbol(candidate)
        launch = LaunchOp(symbol, operands, [r.type for r in results])
        launch.location = ops[-1].location
        Rewriter.insert_op(launch, InsertPoint.before(ops[-1]))
        for old, new in zip(results, launch.outputs, strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        for op in reversed(ops):
            Rewriter.erase_op(op)

    def _symbol(self, candidate: ROperatorOp) -> str:
        key = (str(candidate.function_type), *(op.name for op in candidate.body.block.ops))
        for known in self.known.setdefault(key, []):
            if known.body.is_structurally_equivalent(candidate.body):
                return known.sym_name.data
        family = find_root(candidate.body.block).family
        number = self.count[family] = self.count.get(family, -1) + 1
        candidate = ROperatorOp(
            f"{family}_{number}",
            candidate.body.clone(),
            candidate.sources.data if candidate.sources is not None else "",
        )
        main = next(iter(self.module.body.block.ops))
        self.module.body.block.insert_op_before(candidate, _main(self.module) or main)
        self.known[key].append(candidate)
        return candidate.sym_name.data


def _sources(ops: list[Operation]) -> str:
    """The graph ops that these came from, which their locations name; else the ops' own names."""
    real = [op for op in ops if not is_free(op)]
    inner = [i for op in real for i in op.walk()]
    named = [i.location.desc.data for i in inner if isinstance(i.location, NameLoc)]
    return ", ".join(dict.fromkeys(named or [op.name for op in real]))


def _is_copied(user: Operation, value: SSAValue) -> bool:
    """Whether what defines `value` is copied into the body. A root reads its inputs by pointer, so a
    splat that it contracts stays outside as a constant."""
    owner = value.owner
    if not isinstance(owner, Operation) or not is_free(owner):
        return False
    inputs = user.inputs if isinstance(user, linalg.GenericOp) else user.operands
    by_pointer = is_heavy(user) and value in inputs
    return not (by_pointer and isinstance(owner, arith.ConstantOp))


def _external_operands(ops: list[Operation]) -> list[SSAValue]:
    """What a group reads from outside, each once, in order of first use."""
    found: dict[SSAValue, None] = {}
    for op in ops:
        for value in op.operands:
            owner = value.owner
            if owner not in ops and not _is_copied(op, value):
                found[value] = None
    batched = any(tensor_type(v).get_shape()[:1] == (DYNAMIC,) for v in found)
    if not batched and (source := _batch_source(ops)) is not None:
        found[source] = None
    return list(found)


def _batch_source(ops: list[Operation]) -> SSAValue | None:
    """What the ops take the size of the batch from, where they read no element of it."""
    pending = [v for op in ops for v in op.operands]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, tensor.DimOp):
            return owner.source
        if isinstance(owner, Operation) and owner not in ops and is_free(owner):
            pending.extend(owner.operands)
    return None


def _body(ops: list[Operation], operands: list[SSAValue], results: Sequence[SSAValue]) -> Region:
    """A region that computes `results` from block arguments, free ops copied in."""
    block = Block(arg_types=[v.type for v in operands])
    env: dict[SSAValue, SSAValue] = dict(zip(operands, block.args, strict=True))
    builder = Builder(InsertPoint.at_end(block))
    batch = next((a for a in block.args if tensor_type(a).get_shape()[:1] == (DYNAMIC,)), None)
    for op in ops:
        for value in op.operands:
            _copy_free(value, env, builder, batch)
        copy = op.clone(env)
        builder.insert(copy)
        env.update(zip(op.results, copy.results, strict=True))
    builder.insert(YieldOp.create(operands=[env[r] for r in results]))
    return Region(block)


def _copy_free(
    value: SSAValue, env: dict[SSAValue, SSAValue], builder: Builder, batch: SSAValue | None
) -> None:
    """Copy the free op that defines `value`, and what it needs, into the body."""
    op = value.owner
    if value in env or not isinstance(op, Operation):
        return
    if isinstance(op, tensor.DimOp) and batch is not None:
        # Every dynamic dimension is the batch: any operand that has it will do.
        zero = builder.insert(arith.ConstantOp.from_int_and_width(0, IndexType()))
        env[value] = builder.insert(tensor.DimOp(batch, zero.result)).result
        return
    for operand in op.operands:
        _copy_free(operand, env, builder, batch)
    copy = builder.insert(op.clone(env))
    env.update(zip(op.results, copy.results, strict=True))


def sink_constants(op: Operation) -> None:
    """Copy the scalar constants that the regions of `op` use from outside into them: an rOperator's
    body is isolated. Raises PassFailedException if they use anything else."""
    for inner in [i for region in op.regions for i in region.walk()]:
        for number, value in enumerate(inner.operands):
            owner = value.owner
            here = owner if isinstance(owner, Operation) else owner.parent_op()
            if here is None or op.is_ancestor(here):
                continue
            if not isinstance(owner, arith.ConstantOp):
                raise PassFailedException(f"'{op.name}' uses a value of the function in its region")
            copy = owner.clone()
            Rewriter.insert_op(copy, InsertPoint.before(inner))
            inner.operands[number] = copy.result


def _main(module: ModuleOp) -> func.FuncOp | None:
    """The function to outline; a declaration has nothing in it."""
    functions = (op for op in module.ops if isinstance(op, func.FuncOp))
    return next((op for op in functions if op.body.blocks), None)


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
        main = _main(op)
        if main is None:
            return
        if len(functions := [f for f in op.ops if isinstance(f, func.FuncOp)]) > 1:
            raise PassFailedException(f"expected one function, got {len(functions)}")
        check_types(main)
        for inner in list(main.body.block.ops):
            sink_constants(inner)
        insert_copies(main, is_view)
        ops = [o for o in main.body.block.ops if not isinstance(o, LaunchOp)]
        outliner = Outliner(op)
        for group in Grouping(ops).groups():
            outliner.outline(group)
        for inner in reversed(list(main.body.block.ops)):
            if is_free(inner) and not any(r.uses for r in inner.results):
                Rewriter.erase_op(inner)
