"""`linalg.generic` on NumPy arrays: all parallel loops at once, reduction loops one after another.

So every sum has the order, and the bits, of the plain loop nest.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from irkit.errors import UnsupportedError
from irkit.interp.scalars import evaluate_scalar, scalar_constant
from irkit.weights import Array

Loops = Sequence[Array]
"""Per loop its index, broadcastable over the parallel loops."""


def evaluate_generic(op: linalg.GenericOp, operands: Sequence[Array]) -> list[Array]:
    """The results of `op` on arrays of its operands; the operands stay as they are.

    Raises UnsupportedError for a result that is indexed by a reduction loop.
    """
    maps = [m.data for m in op.indexing_maps]
    parallel = [it.data == IteratorType.PARALLEL for it in op.iterator_types]
    sizes = _sizes(maps, operands, len(parallel))
    inside = [d for d, p in enumerate(parallel) if p]
    reduced = [d for d, p in enumerate(parallel) if not p]
    shape = [sizes[d] for d in inside]
    inputs = len(op.inputs)
    if any(_uses(m, reduced) for m in maps[inputs:]):
        raise UnsupportedError(f"'{op.name}' with a result indexed by a reduction loop")
    loops = [np.zeros((), np.int64)] * len(parallel)
    for number, d in enumerate(inside):
        grid = [1] * len(shape)
        grid[number] = sizes[d]
        loops[d] = np.arange(sizes[d]).reshape(grid)
    fixed = [not _uses(m, reduced) for m in maps]
    values = [_read(a, m, loops) if f else a for a, m, f in zip(operands, maps, fixed, strict=True)]
    for point in itertools.product(*(range(sizes[d]) for d in reduced)):
        for d, i in zip(reduced, point, strict=True):
            loops[d] = np.array(i)
        arguments = [
            v if f else _read(v, m, loops) for v, m, f in zip(values, maps, fixed, strict=True)
        ]
        yielded = _body(op.body.block, arguments, loops)
        values[inputs:] = [np.broadcast_to(y, shape) for y in yielded]
    return [
        _written(array, m, loops, value)
        for array, m, value in zip(operands[inputs:], maps[inputs:], values[inputs:], strict=True)
    ]


def _sizes(maps: Sequence[AffineMap], operands: Sequence[Array], loops: int) -> list[int]:
    """Extent of each loop, from an operand's dimension that it indexes alone."""
    sizes: dict[int, int] = {}
    for amap, array in zip(maps, operands, strict=True):
        for expr, size in zip(amap.results, array.shape, strict=True):
            if isinstance(expr, AffineDimExpr):
                sizes.setdefault(expr.position, size)
    return [sizes[d] for d in range(loops)]


def _uses(amap: AffineMap, loops: Sequence[int]) -> bool:
    return any(
        isinstance(e, AffineDimExpr) and e.position in loops
        for result in amap.results
        for e in result.dfs()
    )


def _affine(expr: AffineExpr, loops: Loops) -> Array:
    match expr:
        case AffineDimExpr():
            return loops[expr.position]
        case AffineConstantExpr():
            return np.array(expr.value)
        case AffineBinaryOpExpr():
            lhs, rhs = _affine(expr.lhs, loops), _affine(expr.rhs, loops)
            return _BINARY[expr.kind](lhs, rhs)
        case _:
            raise UnsupportedError(f"affine expression '{expr}' in an indexing map")


def _ceil_divide(x: Array, y: Array) -> Array:
    return -(-x // y)


_BINARY: dict[AffineBinaryOpKind, Callable[[Array, Array], Array]] = {
    AffineBinaryOpKind.Add: np.add,
    AffineBinaryOpKind.Mul: np.multiply,
    AffineBinaryOpKind.Mod: np.mod,
    AffineBinaryOpKind.FloorDiv: np.floor_divide,
    AffineBinaryOpKind.CeilDiv: _ceil_divide,
}


def _read(array: Array, amap: AffineMap, loops: Loops) -> Array:
    return array[tuple(_affine(e, loops) for e in amap.results)]


def _written(array: Array, amap: AffineMap, loops: Loops, value: Array) -> Array:
    if value.shape == array.shape and amap == AffineMap.identity(array.ndim):
        return np.array(value)
    result = array.copy()
    result[tuple(_affine(e, loops) for e in amap.results)] = value
    return result


def _body(block: Block, arguments: Sequence[Array], loops: Loops) -> list[Array]:
    scope: dict[SSAValue, Array] = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        if isinstance(op, linalg.YieldOp):
            return [_known(v, scope) for v in op.operands]
        if isinstance(op, linalg.IndexOp):
            scope[op.result] = loops[op.dim.value.data]
        else:
            scope[op.results[0]] = evaluate_scalar(op, [_known(v, scope) for v in op.operands])
    raise UnsupportedError("a 'linalg.generic' without 'linalg.yield'")


def _known(value: SSAValue, scope: Mapping[SSAValue, Array]) -> Array:
    """A value of the body, or a constant of the function around it (`cse` shares those)."""
    if value in scope:
        return scope[value]
    if isinstance(value.owner, ConstantOp):
        return scalar_constant(value.owner)
    raise UnsupportedError("a 'linalg.generic' whose body uses a value of the function around it")
