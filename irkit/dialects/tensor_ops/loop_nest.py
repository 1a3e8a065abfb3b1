"""`linalg.generic` on NumPy arrays: all parallel loops at once, reduction loops one after another.

So every sum has the order, and the bits, of the plain loop nest.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from irkit.dialects.linalg_generic import iterators, maps
from irkit.dialects.tensor_ops.interface import Interpreter
from irkit.dialects.tensor_ops.scalar_body import Loops, yielded
from irkit.errors import UnsupportedError
from irkit.weights import Array


def evaluate_generic(
    op: linalg.GenericOp, operands: Sequence[Array], interpreter: Interpreter
) -> list[Array]:
    """The results of `op` on arrays of its operands; the operands stay as they are.

    Raises UnsupportedError for a result that is indexed by a reduction loop.
    """
    indexing, parallel = maps(op), iterators(op)
    sizes = _sizes(indexing, operands, len(parallel))
    inside = [d for d, p in enumerate(parallel) if p]
    reduced = [d for d, p in enumerate(parallel) if not p]
    shape = [sizes[d] for d in inside]
    inputs = len(op.inputs)
    if any(_uses(m, reduced) for m in indexing[inputs:]):
        raise UnsupportedError(f"'{op.name}' with a result indexed by a reduction loop")
    loops = [np.zeros((), np.int64)] * len(parallel)
    for number, d in enumerate(inside):
        grid = [1] * len(shape)
        grid[number] = sizes[d]
        loops[d] = np.arange(sizes[d]).reshape(grid)
    fixed = [not _uses(m, reduced) for m in indexing]
    values = [
        _read(a, m, loops) if f else a for a, m, f in zip(operands, indexing, fixed, strict=True)
    ]
    for point in itertools.product(*(range(sizes[d]) for d in reduced)):
        for d, i in zip(reduced, point, strict=True):
            loops[d] = np.array(i)
        arguments = [
            v if f else _read(v, m, loops) for v, m, f in zip(values, indexing, fixed, strict=True)
        ]
        made = yielded(op, op.body.block, arguments, loops, interpreter)
        values[inputs:] = [np.broadcast_to(y, shape) for y in made]
    return [
        _written(array, m, loops, value)
        for array, m, value in zip(
            operands[inputs:], indexing[inputs:], values[inputs:], strict=True
        )
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


def affine_index(amap: AffineMap, loops: Loops) -> tuple[Array, ...]:
    """What a map gives of loop indices."""
    return tuple(_affine(e, loops) for e in amap.results)


def _read(array: Array, amap: AffineMap, loops: Loops) -> Array:
    return array[affine_index(amap, loops)]


def _written(array: Array, amap: AffineMap, loops: Loops, value: Array) -> Array:
    if value.shape == array.shape and amap == AffineMap.identity(array.ndim):
        return np.array(value)
    result = array.copy()
    result[tuple(_affine(e, loops) for e in amap.results)] = value
    return result
