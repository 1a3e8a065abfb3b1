"""Move groups of ops out of a function into rOperators, each with copies of the free ops it needs."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import IndexType, ModuleOp, NameLoc
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects.roperator_body import find_root
from irkit.dialects.task import LaunchOp, ROperatorOp, YieldOp
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import kind_of, model_of
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.passes.signatures import region_signature


def first_function(module: ModuleOp) -> func.FuncOp | None:
    """The first function with a body; a declaration has nothing in it."""
    functions = (op for op in module.ops if isinstance(op, func.FuncOp))
    return next((op for op in functions if op.body.blocks), None)


def is_free(op: Operation) -> bool:
    """Ops that cost nothing and are copied into every body that needs them."""
    return kind_of(op) is Kind.FREE


class Outliner:
    """Moves groups out into rOperators; identical ones share a symbol."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.known: dict[Hashable, str] = {}
        self.count: dict[str, int] = {}
        for op in module.ops:
            if isinstance(op, ROperatorOp):
                self._learn(op)

    def _learn(self, op: ROperatorOp) -> None:
        """An rOperator that is there already: one like it is it, and no other has its name."""
        self.known.setdefault(region_signature(op.body), op.sym_name.data)
        family, _, number = op.sym_name.data.rpartition("_")
        if number.isdecimal():
            self.count[family] = max(self.count.get(family, -1), int(number))

    def outline(self, ops: list[Operation]) -> None:
        """Replace `ops` by a launch of their rOperator."""
        operands = _external_operands(ops)
        inside = set(ops)
        results = [
            r for op in ops for r in op.results if any(u.operation not in inside for u in r.uses)
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
        key = region_signature(candidate.body)
        if key in self.known:
            return self.known[key]
        family = find_root(candidate.body.block).family
        number = self.count[family] = self.count.get(family, -1) + 1
        candidate = ROperatorOp(
            f"{family}_{number}",
            candidate.body.clone(),
            candidate.sources.data if candidate.sources is not None else "",
        )
        main = next(iter(self.module.body.block.ops))
        self.module.body.block.insert_op_before(candidate, first_function(self.module) or main)
        return self.known.setdefault(key, candidate.sym_name.data)


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
    model = model_of(user)
    by_pointer = (
        model is not None and model.kind(user) is Kind.HEAVY and value in model.inputs(user)
    )
    return not (by_pointer and isinstance(owner, arith.ConstantOp))


def _external_operands(ops: list[Operation]) -> list[SSAValue]:
    """What a group reads from outside, each once, in order of first use."""
    found: dict[SSAValue, None] = {}
    inside = set(ops)
    for op in ops:
        for value in op.operands:
            owner = value.owner
            if owner not in inside and not _is_copied(op, value):
                found[value] = None
    batched = any(tensor_type(v).get_shape()[:1] == (DYNAMIC,) for v in found)
    if not batched and (source := _batch_source(ops, inside)) is not None:
        found[source] = None
    return list(found)


def _batch_source(ops: list[Operation], inside: Collection[Operation]) -> SSAValue | None:
    """What the ops take the size of the batch from, where they read no element of it."""
    pending = [v for op in ops for v in op.operands]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, tensor.DimOp):
            return owner.source
        if isinstance(owner, Operation) and owner not in inside and is_free(owner):
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


def erase_dead(main: func.FuncOp) -> None:
    """Erase ops whose results nothing uses, and then those that they alone used; in bodies too, where a
    dead op would make a destination look as if it were read."""
    for op in reversed(list(main.body.walk())):
        if op.results and not any(r.uses for r in op.results):
            Rewriter.erase_op(op)
