"""NumPy's products of arrays: transpositions and reshapes around one matrix product."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irkit.dialects import graph
from irkit.dialects.graph.composition import Ops
from irkit.errors import UnsupportedError


def matmul(o: Ops[Any], a: Any, b: Any) -> Any:
    """`a @ b`, vectors too; of booleans whether any pair is true. Operands have one type."""
    if o.dtype(a) == np.bool_:
        return o.truth(matmul(o, o.cast(a, np.int32), o.cast(b, np.int32)))
    shape_a, shape_b = o.shape(a), o.shape(b)
    left = o.reshape(a, [1, *shape_a]) if len(shape_a) == 1 else a
    right = o.reshape(b, [*shape_b, 1]) if len(shape_b) == 1 else b
    y = o(graph.MatmulOp, left, right)
    shape = list(o.shape(y))
    if len(shape_b) == 1:
        shape.pop()
    if len(shape_a) == 1:
        shape.pop(len(shape) - (1 if len(shape_b) == 1 else 2))
    return o.reshape(y, shape)


def dot(o: Ops[Any], a: Any, b: Any) -> Any:
    """NumPy's dot: over the last dimension of a and the last but one of b; a number scales."""
    ranks = len(o.shape(a)), len(o.shape(b))
    if 0 in ranks:
        return o.mul(a, b)
    if ranks[1] <= 2:
        return matmul(o, a, b)
    return tensordot(o, a, b, [ranks[0] - 1], [ranks[1] - 2])


def inner(o: Ops[Any], a: Any, b: Any) -> Any:
    """Over the last dimension of both; a number scales."""
    ranks = len(o.shape(a)), len(o.shape(b))
    return o.mul(a, b) if 0 in ranks else tensordot(o, a, b, [ranks[0] - 1], [ranks[1] - 1])


def outer(o: Ops[Any], a: Any, b: Any) -> Any:
    """Each element of a times each of b, both in C order."""
    column = o.reshape(a, [math.prod(o.shape(a)), 1])
    return o.mul(column, o.reshape(b, [1, math.prod(o.shape(b))]))


def tensordot(o: Ops[Any], a: Any, b: Any, axes_a: Sequence[int], axes_b: Sequence[int]) -> Any:
    """Summed over pairs of axes; what is left of a, then of b."""
    shape_a, shape_b = o.shape(a), o.shape(b)
    free_a = [d for d in range(len(shape_a)) if d not in axes_a]
    free_b = [d for d in range(len(shape_b)) if d not in axes_b]
    inside = math.prod(shape_a[d] for d in axes_a)
    rows, columns = [shape_a[d] for d in free_a], [shape_b[d] for d in free_b]
    left = o.reshape(o.transpose(a, [*free_a, *axes_a]), [math.prod(rows), inside])
    right = o.reshape(o.transpose(b, [*axes_b, *free_b]), [inside, math.prod(columns)])
    return o.reshape(matmul(o, left, right), [*rows, *columns])


def einsum(o: Ops[Any], inputs: Sequence[str], output: str, operands: Sequence[Any]) -> Any:
    """Einstein's sum of operands whose dimensions have the letters of `inputs`, none twice in one.

    Operands are taken from the left, two at a time. Raises UnsupportedError for a letter that is twice in
    one input, or not in any.
    """
    for letters in (*inputs, output):
        if len({*letters}) != len(letters):
            raise UnsupportedError(f"einsum: a dimension that is twice in '{letters}'")
    if missing := {*output} - {*"".join(inputs)}:
        raise UnsupportedError(f"einsum: '{''.join(sorted(missing))}' is in no operand")
    known, x = inputs[0], operands[0]
    for number in range(1, len(inputs)):
        later = {*output, *"".join(inputs[number + 1 :])}
        known, x = _joined(o, (known, x), (inputs[number], operands[number]), later)
    known, x = _summed(o, known, x, {*output})
    return o.transpose(x, [known.index(letter) for letter in output])


def _summed(o: Ops[Any], letters: str, x: Any, kept: set[str]) -> tuple[str, Any]:
    """Without the dimensions that nothing else has."""
    gone = [d for d, letter in enumerate(letters) if letter not in kept]
    if not gone:
        return letters, x
    return "".join(letter for letter in letters if letter in kept), o.reduce(x, "sum", gone)


def _joined(
    o: Ops[Any], left: tuple[str, Any], right: tuple[str, Any], later: set[str]
) -> tuple[str, Any]:
    """The product of two, summed over what only they have: dimensions in common lead, as in a batch."""
    names_a, a = _summed(o, *left, later | {*right[0]})
    names_b, b = _summed(o, *right, later | {*left[0]})
    shared = [letter for letter in names_a if letter in names_b]
    batch = [letter for letter in shared if letter in later]
    inside = [letter for letter in shared if letter not in later]
    rows = [letter for letter in names_a if letter not in shared]
    columns = [letter for letter in names_b if letter not in shared]
    sizes = dict(zip(names_a + names_b, o.shape(a) + o.shape(b), strict=True))
    for letter in shared:
        if o.shape(a)[names_a.index(letter)] != o.shape(b)[names_b.index(letter)]:
            raise UnsupportedError(f"einsum: dimensions '{letter}' of different extents")

    def matrix(x: Any, names: str, *groups: list[str]) -> Any:
        order = [names.index(letter) for group in groups for letter in group]
        extents = [math.prod(sizes[letter] for letter in group) for group in groups]
        return o.reshape(o.transpose(x, order), extents)

    product = matmul(
        o, matrix(a, names_a, batch, rows, inside), matrix(b, names_b, batch, inside, columns)
    )
    result = [*batch, *rows, *columns]
    return "".join(result), o.reshape(product, [sizes[letter] for letter in result])
