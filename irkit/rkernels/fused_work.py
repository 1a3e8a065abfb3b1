"""What it takes to have one element of a value: the light ops that are fused into an rKernel, counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from xdsl.dialects import arith, tensor
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from irkit.dialects import te
from irkit.dialects.float_remainder import RemFOp
from irkit.dialects.linalg_generic import maps
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import in_memory, kind_of, model_of
from irkit.dialects.tensor_ops.reshape import groups_of_shapes
from irkit.dialects.types import is_float, tensor_type
from irkit.rkernels.approximations import is_approximate

Counts = Mapping[str, float]

KINDS: dict[type[Operation], str] = {
    arith.DivfOp: "divide",
    math_dialect.SqrtOp: "divide",
    arith.DivSIOp: "index",
    arith.DivUIOp: "index",
    arith.RemSIOp: "index",
    arith.RemUIOp: "index",
    math_dialect.ExpOp: "exp",
    math_dialect.Exp2Op: "exp",
    math_dialect.LogOp: "log",
    math_dialect.Log10Op: "log",
    math_dialect.Log2Op: "log",
    math_dialect.Log1pOp: "log",
    math_dialect.TanhOp: "tanh",
    math_dialect.ErfOp: "erf",
    math_dialect.PowFOp: "pow",
    math_dialect.IPowIOp: "pow",
    math_dialect.SinOp: "sin",
    math_dialect.CosOp: "sin",
    **dict.fromkeys(
        (
            math_dialect.AcosOp,
            math_dialect.AcoshOp,
            math_dialect.AsinOp,
            math_dialect.AsinhOp,
            math_dialect.Atan2Op,
            math_dialect.AtanOp,
            math_dialect.AtanhOp,
            math_dialect.CbrtOp,
            math_dialect.CoshOp,
            math_dialect.ExpM1Op,
            math_dialect.SinhOp,
            math_dialect.TanOp,
            RemFOp,
        ),
        "function",
    ),
}
"""Op of a body → the kind of work that it is; any other is one simple op."""
_FREE = (arith.ConstantOp, linalg.YieldOp, linalg.IndexOp)
_VECTORS = {"op", "divide", "approximate"}
"""Kinds of which a loop can do several elements at once."""
_INDEXED = (te.GatherOp, te.GatherElementsOp)
_BRANCHES = (tensor.PadOp, tensor.ConcatOp)


def element_counts(values: Sequence[SSAValue], known: SSAValue | None) -> Counts:
    """Units of work for one element of each of `values`, every op that they need being counted once.

    `known`, the root's own value, costs nothing.
    """
    return _counted(values, known, None, 0)


def term_counts(root: linalg.GenericOp, along: int) -> Counts:
    """Units of work for one term of a reduction: an element of each of its inputs, and its body.

    `along` is the loop whose steps follow one another.
    """
    return _counted(list(root.inputs), None, root, along)


def term_loads(root: linalg.GenericOp) -> int:
    """Operands in memory that one term of a reduction reads."""
    return sum(isinstance(v, SSAValue) for v in _reached(list(root.inputs), None))


def _counted(
    values: Sequence[SSAValue], known: SSAValue | None, root: linalg.GenericOp | None, along: int
) -> Counts:
    reached = list(_reached(values, known))
    ops = [v for v in reached if isinstance(v, Operation)]
    operands = [v for v in reached if isinstance(v, SSAValue)]
    vectors = all(runs_on(op) for op in ops)
    counts = defaultdict[str, float](float, {"op" if vectors else "scalar": len(operands)})
    bodies = [_counts(op) for op in ops]
    if root is not None:
        bodies.append(_body_counts(root, along))
    for body in bodies:
        for kind, count in body.items():
            counts[kind] += count
    found = {kind: count for kind, count in counts.items() if count}
    if not _VECTORS.issuperset(found):
        # One call or division in a loop, and all of the loop goes element by element.
        found["scalar"] = found.get("scalar", 0.0) + found.pop("op", 0.0)
    return found


def _reached(values: Sequence[SSAValue], known: SSAValue | None) -> Iterator[Operation | SSAValue]:
    """The light ops that `values` need, and the operands in memory, each once."""
    pending, seen = list(values), set[Operation | SSAValue]()
    while pending:
        value = pending.pop()
        value = in_memory(value) or value
        if value is known:
            continue
        thing = value if isinstance(value, BlockArgument) else value.owner
        if isinstance(thing, Block) or thing in seen or _is_free(thing):
            continue
        seen.add(thing)
        if isinstance(thing, Operation):
            pending.extend(_sources(thing))
            yield thing
        else:
            yield thing


def _is_free(thing: Operation | SSAValue) -> bool:
    return isinstance(thing, Operation) and kind_of(thing) in (Kind.FREE, Kind.STORED, None)


def _sources(op: Operation) -> Sequence[SSAValue]:
    """Tensors whose elements an op's elements are made of."""
    if isinstance(op, linalg.GenericOp):
        arguments = op.body.block.args[: len(op.inputs)]
        return [v for v, a in zip(op.inputs, arguments, strict=True) if a.uses]
    model = model_of(op)
    return [v for v in model.inputs(op) if isinstance(v.type, TensorType)] if model else []


def _counts(op: Operation) -> Counts:
    if isinstance(op, linalg.GenericOp):
        return _body_counts(op, len(op.iterator_types) - 1)
    if isinstance(op, _INDEXED):
        return {"gather": 1, "scalar": 2}
    if isinstance(op, _BRANCHES):
        return {"scalar": 2 * max(1, len(op.operands))}
    if isinstance(op, tensor.CollapseShapeOp | tensor.ExpandShapeOp):
        return {"index": _divisions(op)}
    return {"op": 1}


def _body_counts(op: linalg.GenericOp, along: int) -> Counts:
    """The scalar ops of a body, and how its operands are found as the loop `along` goes on."""
    counts = defaultdict(float, scalar_counts(op.body.block.ops))
    for amap in maps(op)[: len(op.inputs)]:
        counts["index"] += _quotients(amap)
        apart = step(amap, along)
        counts["scalar"] += 1 < apart < _NEAR
        counts["stride"] += apart >= _NEAR
    return counts


def scalar_counts(ops: Iterable[Operation]) -> Counts:
    """Units of work for ops on scalars."""
    counts: defaultdict[str, float] = defaultdict(float)
    for op in ops:
        if not isinstance(op, _FREE):
            counts[_kind(op)] += _weight(op)
    return counts


def _kind(op: Operation) -> str:
    return "approximate" if is_approximate(op) else KINDS.get(type(op), "op")


def _weight(op: Operation) -> float:
    element = op.results[0].type
    return max(1.0, words(element)) if is_float(element) else 1.0


def words(element: Attribute) -> float:
    """How many times four bytes an element takes: a vector has as many fewer of them."""
    return getattr(element, "bitwidth", 64) / 32


def _divisions(op: tensor.CollapseShapeOp | tensor.ExpandShapeOp) -> int:
    """Divisions and remainders that it takes to find an index in what is reshaped."""
    shape, to = tensor_type(op.result).get_shape(), tensor_type(op.src).get_shape()
    runs = [to[own] for _, own in groups_of_shapes(shape, to)]
    return sum(max(0, 2 * sum(size != 1 for size in run) - 2) for run in runs)


def _quotients(amap: AffineMap) -> int:
    kinds = (AffineBinaryOpKind.FloorDiv, AffineBinaryOpKind.CeilDiv, AffineBinaryOpKind.Mod)
    return sum(
        isinstance(e, AffineBinaryOpExpr) and e.kind in kinds
        for result in amap.results
        for e in result.dfs()
    )


_NEAR, _FAR = 16, 1 << 20
"""Fewer elements apart than `_NEAR`, two loads may share a cache line."""


def step(amap: AffineMap, loop: int) -> int:
    """How many elements apart what two neighbours of a loop read is, as far as indices tell: 0 for the same,
    `_FAR` where another dimension than the last moves."""
    *outer, last = [_move(result, loop) for result in amap.results] or [0]
    return _FAR if any(outer) else abs(last)


def _move(expr: AffineExpr, loop: int) -> int:
    """By how much the first step of a loop moves an index."""
    count = 1 + max((e.position for e in expr.dfs() if isinstance(e, AffineDimExpr)), default=0)
    moved = expr.eval([int(d == loop) for d in range(count)], [])
    return moved - expr.eval([0] * count, [])


def runs_on(op: Operation) -> bool:
    """Whether a loop over the last dimension can take several elements of an op at once."""
    if isinstance(op, linalg.GenericOp):
        last = len(op.iterator_types) - 1
        return all(step(m, last) <= 1 for m in maps(op)[: len(op.inputs)])
    return not isinstance(op, (*_INDEXED, *_BRANCHES))
