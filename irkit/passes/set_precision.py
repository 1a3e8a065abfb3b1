"""`set-precision`: write on contractions in which precision their products are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects.functions import is_straight
from irkit.dialects.precision import (
    NAMES,
    PRECISION,
    Precision,
    contracts,
    precision_of,
    set_precision,
)
from irkit.errors import InvalidModelError
from irkit.remarks import applied, missed

RULE = "SetPrecision"


def _asked(function: FuncOp, option: str) -> Precision:
    if not option:
        try:
            return precision_of(function)
        except InvalidModelError as error:
            raise PassFailedException(str(error)) from None
    if option not in NAMES:
        raise PassFailedException(f"precision={option}: expected {', '.join(NAMES)}")
    return Precision(option)


def grant(function: FuncOp, option: str = "") -> None:
    """Write on the contractions of `function` that say nothing what `option`, or else the function, says.

    The function's own attribute has done its work then, and goes. Raises PassFailedException for what is
    no precision.
    """
    precision = _asked(function, option)
    function.attributes.pop(PRECISION, None)
    if precision is Precision.FLOAT32:
        return
    for op in function.walk():
        if not contracts(op):
            continue
        if PRECISION in op.attributes:
            missed(op, RULE, "it says {} itself", precision_of(op).value)
            continue
        set_precision(op, precision)
        applied(op, RULE, "{}", precision.value)


@dataclass(frozen=True)
class SetPrecision(ModulePass):
    """Say in which precision contractions of f32 compute their products.

    Products, convolutions and recurrent layers get `irkit.precision`, where they say none themselves: that
    of the option `precision`, or of the function's own attribute, which goes. `float32` is what saying
    nothing means; `ieee` allows plain fp32 arithmetic alone; with `tf32`, `bf16` and `f16` both factors are
    rounded to that format, and products and sums are those of float32 (`irkit/dialects/precision.py`).
    Numeric risk: that rounding, which is asked for. Takes modules of the graph and of the tensor level.

    ```mlir
    func.func @main(%x: tensor<?x8xf32>) -> tensor<?x16xf32> attributes {irkit.precision = "tf32"} {
      %y = graph.matmul %x, %w : (tensor<?x8xf32>, tensor<8x16xf32>) -> tensor<?x16xf32>
    ```
    becomes
    ```mlir
    func.func @main(%x: tensor<?x8xf32>) -> tensor<?x16xf32> {
      %y = graph.matmul %x, %w {irkit.precision = "tf32"}
        : (tensor<?x8xf32>, tensor<8x16xf32>) -> tensor<?x16xf32>
    ```
    """

    name = "set-precision"
    redefines: ClassVar[bool] = True
    """What the module computes is another thing afterwards: `--check-semantics` begins anew."""
    precision: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if is_straight(function):
                grant(function, self.precision)
