"""Tensor expressions: new operators in a line. `irkit.te.op` makes one; docs/expressions.md is the guide."""

from irkit.driver.programs.expressions import Operator, op
from irkit.expressions.syntax import ExpressionError

__all__ = ["ExpressionError", "Operator", "op"]
