"""Rounding, trigonometric and hyperbolic functions, elementwise.

NaN stays NaN, and outside of a function's domain there is NaN. Roundings keep the sign of zero and are
exact, as `copysign` is; the others are right within a few units in the last place, and may differ by that much from one
processor to another.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition

from irkit.dialects.element_sets import FLOATS, Elements
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.elementwise import BinaryOp, UnaryOp


@irdl_op_definition
class AcosOp(UnaryOp):
    """Arc cosine, in radians; NaN outside of [-1, 1].

    ```mlir
    %y = graph.acos %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.acos"


@irdl_op_definition
class AcoshOp(UnaryOp):
    """Inverse hyperbolic cosine; NaN below 1.

    ```mlir
    %y = graph.acosh %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.acosh"


@irdl_op_definition
class AsinOp(UnaryOp):
    """Arc sine, in radians; NaN outside of [-1, 1].

    ```mlir
    %y = graph.asin %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.asin"


@irdl_op_definition
class AsinhOp(UnaryOp):
    """Inverse hyperbolic sine.

    ```mlir
    %y = graph.asinh %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.asinh"


@irdl_op_definition
class Atan2Op(BinaryOp):
    """Angle of the point (rhs, lhs) to the positive x axis, in radians from -pi to pi; signs of zeros count.

    Of (-1, 0.0) pi and of (-1, -0.0) -pi, as C's `atan2`; of infinities the angles of their quadrants; NaN if
    either is.

    ```mlir
    %y = graph.atan2 %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.atan2"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (FLOATS,)


@irdl_op_definition
class AtanOp(UnaryOp):
    """Arc tangent, in radians.

    ```mlir
    %y = graph.atan %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.atan"


@irdl_op_definition
class AtanhOp(UnaryOp):
    """Inverse hyperbolic tangent; infinite at -1 and 1, NaN outside.

    ```mlir
    %y = graph.atanh %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.atanh"


@irdl_op_definition
class CbrtOp(UnaryOp):
    """Cube root, of negative numbers too; the sign of zero stays.

    ```mlir
    %y = graph.cbrt %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.cbrt"


@irdl_op_definition
class CeilOp(UnaryOp):
    """Smallest integer not below each element; -0.0 between -1 and 0.

    ```mlir
    %y = graph.ceil %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.ceil"


@irdl_op_definition
class CopysignOp(BinaryOp):
    """lhs with the sign of rhs; exact. Of a NaN's sign nothing is said.

    ```mlir
    %y = graph.copysign %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.copysign"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (FLOATS,)


@irdl_op_definition
class CosOp(UnaryOp):
    """Cosine of radians; NaN of infinities.

    ```mlir
    %y = graph.cos %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.cos"


@irdl_op_definition
class CoshOp(UnaryOp):
    """Hyperbolic cosine.

    ```mlir
    %y = graph.cosh %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.cosh"


@irdl_op_definition
class Exp2Op(UnaryOp):
    """2 to the power of each element.

    ```mlir
    %y = graph.exp2 %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.exp2"


@irdl_op_definition
class Expm1Op(UnaryOp):
    """exp(x) - 1, exact near 0; the sign of zero stays.

    ```mlir
    %y = graph.expm1 %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.expm1"


@irdl_op_definition
class Log10Op(UnaryOp):
    """Logarithm of base 10: -inf of both zeros, NaN below.

    ```mlir
    %y = graph.log10 %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.log10"


@irdl_op_definition
class Log1pOp(UnaryOp):
    """log(1 + x), exact near 0; -inf at -1, NaN below.

    ```mlir
    %y = graph.log1p %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.log1p"


@irdl_op_definition
class Log2Op(UnaryOp):
    """Logarithm of base 2: -inf of both zeros, NaN below.

    ```mlir
    %y = graph.log2 %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.log2"


@irdl_op_definition
class RoundOp(UnaryOp):
    """Nearest integer, the even one of two; the sign of zero stays.

    ```mlir
    %y = graph.round %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.round"


@irdl_op_definition
class SinOp(UnaryOp):
    """Sine of radians; NaN of infinities.

    ```mlir
    %y = graph.sin %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.sin"


@irdl_op_definition
class SinhOp(UnaryOp):
    """Hyperbolic sine.

    ```mlir
    %y = graph.sinh %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.sinh"


@irdl_op_definition
class TanOp(UnaryOp):
    """Tangent of radians; NaN of infinities.

    ```mlir
    %y = graph.tan %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    """

    name = "graph.tan"


OPS: list[type[GraphOp]] = [
    AcosOp,
    AcoshOp,
    AsinOp,
    AsinhOp,
    Atan2Op,
    AtanOp,
    AtanhOp,
    CbrtOp,
    CeilOp,
    CopysignOp,
    CosOp,
    CoshOp,
    Exp2Op,
    Expm1Op,
    Log10Op,
    Log1pOp,
    Log2Op,
    RoundOp,
    SinOp,
    SinhOp,
    TanOp,
]
