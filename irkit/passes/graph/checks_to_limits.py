"""`checks-to-limits`: checks of what becomes of columns of the input are limits of these columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.context import weights_of
from irkit.dialects.constants import constant
from irkit.dialects.functions import function_named, is_straight
from irkit.dialects.graph import GatherOp, ReduceOp
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.model_info import Limits, ModelInfo
from irkit.passes.graph.column_facts import Columns, Kind, as_function, column_facts, of_columns
from irkit.passes.graph.float_ranges import Ranges, holding_ranges
from irkit.passes.graph.magnitudes import overflow_bound
from irkit.remarks import applied, missed
from irkit.weights import Array, WeightStore

MODEL = "irkit.model"
NAME = "ChecksToLimits"


@dataclass(frozen=True)
class ChecksToLimits(ModulePass):
    """Refuse on the host, by the input's columns, what a check would refuse of what becomes of them.

    A check is an output that is 0 in rows which the model's own library refuses: that a step's columns are
    finite, say. It reads them all, also those that nothing else asks for. Where a column of it hangs on one
    column of the input, by ops that keep its order (scalers, imputers, casts, selections), what it accepts
    is an interval of numbers, and NaN or not. The interval's ends are found by bisection over the floats,
    running the check itself: exactly what was refused is. They go to the `limits` of `irkit.model`, which
    the host holds the input against; the rest of a check stays. Where a check is only whether sums, products
    and matrices of finite inputs overflow, a `largest` is found up to which none does, and the check is gone:
    the host refuses what is larger, also the few inputs that would come through by cancelling. `select-first`
    then finds columns that nothing reads. It needs one argument, rows×columns of f32 or f64. The outputs are
    fewer.

    ```mlir
    %1 = graph.div %x, %scale : (tensor<?x3xf64>, tensor<3xf64>) -> tensor<?x3xf64>
    %2 = graph.abs %1 : (tensor<?x3xf64>) -> tensor<?x3xf64>
    %3 = graph.compare %2, %max {predicate = "le"} : (tensor<?x3xf64>, tensor<1xf64>) -> tensor<?x3xi1>
    %4 = graph.cast %3 {to = f32} : (tensor<?x3xi1>) -> tensor<?x3xf32>
    %5 = graph.reduce %4 {kind = "min", axes = array<i64: 1>, keepdims = false}
      : (tensor<?x3xf32>) -> tensor<?xf32>
    func.return %1, %5 : tensor<?x3xf64>, tensor<?xf32>
    ```
    becomes
    ```mlir
    %1 = graph.div %x, %scale : (tensor<?x3xf64>, tensor<3xf64>) -> tensor<?x3xf64>
    func.return %1 : tensor<?x3xf64>
    ```
    """

    name = "checks-to-limits"
    # What rows are answered is said elsewhere afterwards.
    redefines: ClassVar[bool] = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        main, facts = function_named(op, "main"), op.attributes.get(MODEL)
        if main is None or not is_straight(main) or not isinstance(facts, StringAttr):
            return
        info = ModelInfo.from_json(facts.data)
        if info.checks and of_columns(main):
            op.attributes[MODEL] = StringAttr(_moved(main, info, weights_of(ctx)).to_json())


def _moved(main: FuncOp, info: ModelInfo, weights: WeightStore) -> ModelInfo:
    """The facts after checks of `main` became limits."""
    end = main.body.block.last_op
    assert isinstance(end, ReturnOp)
    facts = column_facts(main, weights)
    own = len(end.operands) - len(info.checks)
    kept, checks, limits = list(end.operands[:own]), dict[str, str](), list(info.limits)
    largest = info.largest
    for (name, message), value in zip(info.checks.items(), end.operands[own:], strict=True):
        found = _limits(main, value, facts, weights)
        if found is not None and not found[0].unlimited:
            low, high, nan = map(_short, (found[0].low, found[0].high, found[0].nan))
            limits.append(Limits(low, high, nan, message))
        if found is not None and not len(found[1]):
            continue
        bound = _bound(main, value, replace(info, limits=tuple(limits)), weights)
        if bound is not None:
            largest = bound if largest is None else min(bound, largest)
            continue
        kept.append(value if found is None else _remaining(value, found[1], weights))
        checks[name] = message
    outputs = (*info.outputs[:own], *checks)
    Rewriter.replace_op(end, ReturnOp(*kept), [])
    main.update_function_type()
    main.attributes["irkit.outputs"] = ArrayAttr([StringAttr(n) for n in outputs])
    return replace(info, outputs=outputs, checks=checks, limits=tuple(limits), largest=largest)


def _bound(main: FuncOp, value: SSAValue, info: ModelInfo, weights: WeightStore) -> float | None:
    """A magnitude of finite inputs up to which what a check looks for cannot come about."""
    reduce, count = value.owner, tensor_type(main.body.block.args[0]).get_shape()[1]
    missing = np.full(count, info.allow_nan)
    for limits in info.limits:
        missing &= np.array(limits.nan)
    if missing.any() or info.allow_infinity or not isinstance(reduce, ReduceOp):
        return None
    bound = overflow_bound(main, reduce.x, weights) if reduce.kind.data == "min" else None
    if bound is None:
        return None
    applied(reduce, NAME, "nothing that it looks at overflows up to {}", bound)
    return bound


def _short(column: Array) -> tuple[Any, ...]:
    """An element for each column, one where all are alike."""
    return tuple(column.tolist()[:1] if (column == column[0]).all() else column.tolist())


def _limits(
    main: FuncOp, value: SSAValue, facts: dict[SSAValue, Columns], weights: WeightStore
) -> tuple[Ranges, Array] | None:
    """What a check accepts of each column of the input, and the numbers of its columns that have to stay.

    None if all of them have.
    """
    reduce = value.owner
    if not isinstance(reduce, ReduceOp) or reduce.kind.data != "min" or reduce.x not in facts:
        return None
    known, (x,) = facts[reduce.x], main.body.block.args
    run = as_function(main, reduce.x, weights)
    of_one = np.flatnonzero(known.kinds == Kind.TRUTH)
    if run is None or not (len(of_one) or (known.kinds == Kind.SURE).any()):
        missed(reduce, NAME, "no column of it hangs on one column of the input, in its order")
        return None
    sources, t = known.sources[of_one], tensor_type(x)

    def holds(points: Array) -> Array:
        result = np.ones(points.shape, bool)
        np.logical_and.at(result.T, sources, (run(points)[:, of_one] != 0).T)
        return result

    ranges = holding_ranges(holds, t.get_shape()[1], numpy_dtype(t.element_type))
    gone = (known.kinds == Kind.SURE) | ((known.kinds == Kind.TRUTH) & ranges.found[known.sources])
    applied(reduce, NAME, "{} of {} columns are limits of the input", gone.sum(), len(gone))
    return ranges, np.flatnonzero(~gone)


def _remaining(value: SSAValue, columns: Array, weights: WeightStore) -> SSAValue:
    """A check of some columns only."""
    reduce = value.owner
    assert isinstance(reduce, ReduceOp)
    if len(columns) == tensor_type(reduce.x).get_shape()[1]:
        return value
    numbers = constant(columns, weights, "columns")
    picked = GatherOp.make([reduce.x, numbers.results[0]], {"axis": IntegerAttr(1, i64)})
    rest = ReduceOp.make([picked.results[0]], dict(reduce.properties))
    Rewriter.insert_op([numbers, picked, rest], InsertPoint.before(reduce))
    return rest.results[0]
