"""Which values are finite in every row that a model answers, by the limits of its input's columns."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from irkit.dialects.functions import is_straight
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.model_info import ModelInfo
from irkit.passes.graph.column_facts import Kind, as_function, column_facts, of_columns
from irkit.weights import Array, WeightStore

MODEL = "irkit.model"


def is_finite(x: SSAValue, weights: WeightStore) -> bool:
    """Whether all columns of `x`, rows×columns of a function, are: bits, or numbers that are monotone in a
    column of the input, and finite at both its limits, and where it is missing if it may be."""
    main = x.owner.parent_op()
    if main is None or not is_straight(main) or not of_columns(main):
        return False
    known = column_facts(main, weights).get(x)
    if known is None or np.isin(known.kinds, (Kind.UNKNOWN, Kind.MISSING)).any():
        return False
    numbers = np.isin(known.kinds, (Kind.NUMBER, Kind.SIZE))
    if not numbers.any():
        return True
    ends, run = _ends(main), as_function(main, x, weights)
    return ends is not None and run is not None and bool(np.isfinite(run(ends)[:, numbers]).all())


def _ends(main: FuncOp) -> Array | None:
    """Rows of the least, the greatest and the missing of each column; a number where none may be missing.
    None without limits."""
    module = main.parent_op()
    facts = module.attributes.get(MODEL) if isinstance(module, ModuleOp) else None
    if not isinstance(facts, StringAttr) or main.sym_name.data != "main":
        return None
    info = ModelInfo.from_json(facts.data)
    t = tensor_type(main.body.block.args[0])
    dtype, count = numpy_dtype(t.element_type), t.get_shape()[1]
    most = float(np.inf if info.allow_infinity else np.finfo(dtype).max)
    low, high = np.full(count, -most), np.full(count, most)
    nan = np.full(count, info.allow_nan)
    for limits in info.limits:
        low = np.maximum(low, np.array(limits.low))
        high = np.minimum(high, np.array(limits.high))
        nan &= np.array(limits.nan)
    return np.stack([low, high, np.where(nan, np.nan, low)]).astype(dtype)
