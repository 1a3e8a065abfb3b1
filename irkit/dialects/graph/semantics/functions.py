"""Meaning of rounding, trigonometric and hyperbolic functions."""

from __future__ import annotations

import numpy as np

from irkit.dialects import graph
from irkit.dialects.graph.semantics.elementwise import unary
from irkit.dialects.graph.semantics.rule import Rules

RULES: Rules = {
    graph.AcosOp: unary(np.arccos),
    graph.AcoshOp: unary(np.arccosh),
    graph.AsinOp: unary(np.arcsin),
    graph.AsinhOp: unary(np.arcsinh),
    graph.AtanOp: unary(np.arctan),
    graph.AtanhOp: unary(np.arctanh),
    graph.CeilOp: unary(np.ceil),
    graph.CosOp: unary(np.cos),
    graph.CoshOp: unary(np.cosh),
    graph.Log1pOp: unary(np.log1p),
    graph.RoundOp: unary(np.rint),
    graph.SinOp: unary(np.sin),
    graph.SinhOp: unary(np.sinh),
    graph.TanOp: unary(np.tan),
}
