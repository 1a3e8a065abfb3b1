"""Meaning of rounding, trigonometric and hyperbolic functions."""

from __future__ import annotations

import numpy as np

from irkit.dialects import graph
from irkit.dialects.graph.semantics.elementwise import binary, unary
from irkit.dialects.graph.semantics.rule import Rules

RULES: Rules = {
    graph.AcosOp: unary(np.arccos),
    graph.AcoshOp: unary(np.arccosh),
    graph.AsinOp: unary(np.arcsin),
    graph.AsinhOp: unary(np.arcsinh),
    graph.Atan2Op: binary(np.arctan2),
    graph.AtanOp: unary(np.arctan),
    graph.AtanhOp: unary(np.arctanh),
    graph.CbrtOp: unary(np.cbrt),
    graph.CeilOp: unary(np.ceil),
    graph.CopysignOp: binary(np.copysign),
    graph.CosOp: unary(np.cos),
    graph.CoshOp: unary(np.cosh),
    graph.Exp2Op: unary(np.exp2),
    graph.Expm1Op: unary(np.expm1),
    graph.Log10Op: unary(np.log10),
    graph.Log1pOp: unary(np.log1p),
    graph.Log2Op: unary(np.log2),
    graph.RoundOp: unary(np.rint),
    graph.SinOp: unary(np.sin),
    graph.SinhOp: unary(np.sinh),
    graph.TanOp: unary(np.tan),
}
