"""Where numbers leave the range of a narrow float: the first op, and the outputs that it reaches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import NameLoc, f16
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from irkit.bfloat16 import is_floating
from irkit.dialects.precision import Precision, precision_of
from irkit.dialects.segments import unmarked
from irkit.interp.graph import steps
from irkit.weights import Array, WeightStore


@dataclass(frozen=True)
class Overflow:
    """The first op of a model with a result that is infinite or NaN where strict arithmetic has a number.

    `op`: its name, with that of the model's node if it has one; `largest`: the largest magnitude that strict
    arithmetic has among its results, or, where those fit, among its operands; `outputs`: those that the
    results go into.
    """

    op: str
    largest: float
    outputs: tuple[str, ...]

    def __str__(self) -> str:
        reached = ", ".join(f"'{name}'" for name in self.outputs) or "no output"
        return (
            f"overflow in {self.op}: its largest value is {self.largest:.6g}; it reaches {reached}"
        )


def may_overflow(function: FuncOp) -> bool:
    """Whether something is computed in float16, whose largest number is 65504."""
    for op in function.walk():
        if precision_of(op) is Precision.F16:
            return True
        if any(getattr(v.type, "element_type", None) == f16 for v in op.results):
            return True
    return False


def first_overflow(
    lowered: FuncOp,
    strict: FuncOp,
    weights: WeightStore,
    inputs: tuple[Sequence[Array], Sequence[Array]],
    names: Sequence[str],
) -> Overflow | None:
    """Runs both functions, which are alike op by op, by the interpreter; None if nothing overflows.

    `inputs`: those of `lowered` and of `strict`; `names`: those of the outputs.
    """
    narrow = steps(lowered, weights, inputs[0])
    wide = steps(strict, weights, inputs[1])
    for (op, operands, results), (_, factors, want) in zip(narrow, wide, strict=True):
        if not any(map(lost, results, want)) or any(map(lost, operands, factors)):
            continue
        largest = largest_of(want)
        limit = float(np.finfo(np.float16).max)
        if largest <= limit:
            largest = max(largest_of(factors), largest)
        return Overflow(_named(op), largest, _reached(op, names))
    return None


def lost(array: Array, want: Array) -> bool:
    """Whether an element is infinite or NaN that is a number in `want`."""
    if not is_floating(array.dtype):
        return False
    finite = np.isfinite(np.asarray(want, np.float64))
    return bool((finite & ~np.isfinite(np.asarray(array, np.float64))).any())


def largest_of(arrays: Iterable[Array]) -> float:
    """The largest magnitude that is a number; 0 if there is none."""
    found = 0.0
    for array in arrays:
        values = np.abs(np.asarray(array, np.float64))
        found = max(found, float(values[np.isfinite(values)].max(initial=0.0)))
    return found


def _named(op: Operation) -> str:
    where = unmarked(op.location)
    if isinstance(where, NameLoc):
        return f"node '{where.desc.data}' ({op.name})"
    hint = op.results[0].name_hint
    return f"'{op.name}'" if hint is None else f"'{op.name}' (%{hint})"


def _reached(op: Operation, names: Sequence[str]) -> tuple[str, ...]:
    """The outputs that `op` has a part in."""
    pending: list[SSAValue] = list(op.results)
    seen = set(pending)
    found: set[int] = set()
    while pending:
        for use in pending.pop().uses:
            if isinstance(use.operation, ReturnOp):
                found.add(use.index)
            fresh = [v for v in use.operation.results if v not in seen]
            seen.update(fresh)
            pending.extend(fresh)
    return tuple(names[n] for n in sorted(found))
