"""`propagate-fastmath`: write on a function's ops in what its arithmetic may differ from theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import FloatAttr, ModuleOp, f32, f64
from xdsl.dialects.func import FuncOp
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects import te
from irkit.dialects.functions import is_straight

FASTMATH = "irkit.fastmath"
"""The attribute of a `func.func` that says it, as LLVM's functions do."""

_FUNCTIONS: tuple[type[Operation], ...] = (
    math.AcosOp,
    math.AcoshOp,
    math.AsinOp,
    math.AsinhOp,
    math.Atan2Op,
    math.AtanOp,
    math.AtanhOp,
    math.CosOp,
    math.CoshOp,
    math.ErfOp,
    math.Exp2Op,
    math.ExpM1Op,
    math.ExpOp,
    math.Log10Op,
    math.Log1pOp,
    math.Log2Op,
    math.LogOp,
    math.PowFOp,
    math.SinOp,
    math.SinhOp,
    math.TanOp,
    math.TanhOp,
    te.AttentionKeyGradientOp,
    te.AttentionOp,
    te.AttentionQueryGradientOp,
    te.SoftmaxOp,
)


def _as_product(op: math.PowFOp) -> None:
    """Write a square or a cube as multiplications, which round once more than a power at most. What
    overflows, vanishes, is NaN or negative zero does so in either."""
    exponent = op.rhs.owner
    if op.result.type not in (f32, f64) or not isinstance(exponent, arith.ConstantOp):
        return
    value = exponent.value
    if not isinstance(value, FloatAttr) or value.value.data not in (2.0, 3.0):
        return
    made = [arith.MulfOp(op.lhs, op.lhs)]
    if value.value.data == 3.0:
        made.append(arith.MulfOp(made[0].result, op.lhs))
    Rewriter.replace_op(op, made)


def grant(function: FuncOp) -> None:
    """Write the function's `afn` on the ops in it that may be approximated, squares and cubes as products.

    Raises PassFailedException for an attribute of another kind, or for a flag that no op here can have.
    """
    flags = function.attributes.get(FASTMATH)
    if flags is None:
        return
    if not isinstance(flags, FastMathFlagsAttr):
        raise PassFailedException(f"'{FASTMATH}' expects #arith.fastmath<afn>, got {flags}")
    if other := [
        f.value for f in FastMathFlag if f in flags.data and f != FastMathFlag.APPROX_FUNC
    ]:
        raise PassFailedException(f"'{FASTMATH}' expects afn alone, got {', '.join(other)} too")
    if FastMathFlag.APPROX_FUNC not in flags.data:
        return
    for op in list(function.walk()):
        if isinstance(op, _FUNCTIONS):
            has = op.properties.get("fastmath")
            own = has.data if isinstance(has, FastMathFlagsAttr) else ()
            op.properties["fastmath"] = FastMathFlagsAttr({*own, FastMathFlag.APPROX_FUNC})
        if isinstance(op, math.PowFOp):
            _as_product(op)


@dataclass(frozen=True)
class PropagateFastmath(ModulePass):
    """Let the functions (exp, tanh, erf, ...) of a `func.func` be approximated where it says so.

    `irkit.fastmath = #arith.fastmath<afn>` on the function becomes `fastmath<afn>` on each such op: an
    rKernel may then compute it by another method than the C library's, to about the same error
    (docs/emission.md). A power of 2 or 3 becomes multiplications. Other arithmetic stays as it is.

    ```mlir
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32>
        attributes {irkit.fastmath = #arith.fastmath<afn>} {
      %0 = linalg.generic {...} ins(%x) outs(%e) { ^(%p, %o): %s = math.exp %p  linalg.yield %s }
    ```
    becomes
    ```mlir
      %0 = linalg.generic {...} ins(%x) outs(%e) {
        ^(%p, %o): %s = math.exp %p fastmath<afn>  linalg.yield %s }
    ```
    """

    name = "propagate-fastmath"
    requires: ClassVar[tuple[str, ...]] = ("tensor",)
    produces: ClassVar[str] = "tensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if is_straight(function):
                grant(function)
