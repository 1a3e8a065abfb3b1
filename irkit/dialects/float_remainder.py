"""`arith.remf`, MLIR's remainder of floats, which xDSL's `arith` lacks; and that dialect with it."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.arith import FloatingPointLikeBinaryOperation
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.traits import Pure


@irdl_op_definition
class RemFOp(FloatingPointLikeBinaryOperation):
    """The remainder of a division of floats, exact and with the sign of the dividend (C's `fmod`)."""

    name = "arith.remf"
    traits = traits_def(Pure())


Arith = Dialect("arith", [*arith.Arith.operations, RemFOp], [*arith.Arith.attributes])
"""The dialect as MLIR has it, as far as irkit needs it."""
