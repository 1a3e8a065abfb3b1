"""A choice between a zero and a number that was converted, or is to be, whose sign LLVM would lose.

Of `0.0 if x < 0.0 else x`, where x is another type's number converted, LLVM makes a choice between numbers of
that type, but as `x if x > 0.0 else 0.0`: a negative zero becomes a positive one. So it does where what is
chosen is converted. `as_it_is(x)` is x, and no conversion to it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from irkit.dialects.types import is_float, is_half

ZEROS = ("float32(0.0)", "float64(0.0)")
"""Literals of which it does so. Of -0.0 it does not."""
# By op, where the zero of a choice may stand, and what may be chosen instead of it. A second operand of a
# maximum is chosen of equal ones, so that one which is zero has no sign to lose.
_CHOSEN: dict[type[Operation], tuple[tuple[int, int], ...]] = {
    arith.MaximumfOp: ((0, 1),),
    arith.MinimumfOp: ((0, 1),),
    arith.SelectOp: ((1, 2), (2, 1)),
}


def beside_zero(op: Operation, operands: Sequence[str], zeros: Collection[str]) -> set[int]:
    """Numbers of the operands that are chosen instead of a zero and must stay as they are. The names
    `zeros` are of zeros."""
    places = _CHOSEN.get(type(op), ()) if zeros else ()
    kept = {other for zero, other in places if operands[zero] in zeros}
    return kept if kept and is_float(op.results[0].type) and _converts(op) else set()


def _converts(op: Operation) -> bool:
    """Whether floats become others where the op stands: halves do so in memory."""
    around = op
    while (outer := around.parent_op()) is not None and not isinstance(outer, ModuleOp):
        around = outer
    return any(
        isinstance(inner, arith.ExtFOp | arith.TruncFOp)
        or any(is_half(value.type) for value in inner.results)
        for inner in around.walk()
    )
