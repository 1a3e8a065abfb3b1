"""How each graph op is differentiated: a table from op class to a rule, and those that are not, with the reason.

`rule_of` is the only way in. `irkit.passes.graph.differentiation` walks programs with it.
"""

from __future__ import annotations

from collections.abc import Mapping

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.gradients import (
    attention,
    convolution,
    elementwise,
    expression,
    functions,
    linear,
    normalisation,
    pooling,
    recurrent,
    reduction,
    shape,
)
from irkit.dialects.graph.gradients.rule import Composed, Rule, Rules, has_gradient
from irkit.errors import UnsupportedError

GRADIENTS: Rules = {
    **attention.RULES,
    **convolution.RULES,
    **elementwise.RULES,
    **expression.RULES,
    **functions.RULES,
    **linear.RULES,
    **normalisation.RULES,
    **pooling.RULES,
    **recurrent.RULES,
    **reduction.RULES,
    **shape.RULES,
}
"""Rules of differentiation; a test holds this table and the next together against the dialect."""

_INTEGERS = "its operands are integers or booleans"
_PLACES = "its result is a place, an integer"
_TRUTHS = "its result is a boolean"
_STORED = "rows of a CSR matrix are scored, and what is trained reads them as dense ones"

NOT_DIFFERENTIABLE: Mapping[type[GraphOp], str] = {
    graph.AndOp: _INTEGERS,
    graph.ArgmaxOp: _PLACES,
    graph.CompareOp: _TRUTHS,
    graph.CsrDenseOp: _STORED,
    graph.CsrMatmulOp: _STORED,
    graph.CsrReduceOp: _STORED,
    graph.ForestOp: "trees are step functions of their features",
    graph.IsNanOp: _TRUTHS,
    graph.MaxPoolIndicesOp: _PLACES,
    graph.NibbleMatmulOp: "its matrix is no constant: one that is becomes floats before (unpack-nibbles)",
    graph.NotOp: _INTEGERS,
    graph.OrOp: _INTEGERS,
    graph.ShiftLeftOp: _INTEGERS,
    graph.ShiftRightOp: _INTEGERS,
    graph.ThreefryOp: "its bits are no function of anything that changes little by little",
    graph.XorOp: _INTEGERS,
}
"""Ops without a rule, and why. Where nothing of floats comes of one, nothing is propagated; else it is refused."""


_ADDED: dict[type[GraphOp], Rule] = {}


def add_rule(op: type[GraphOp], rule: Rule) -> None:
    """From here on ops of a class that is none of the dialect's are differentiated by `rule`."""
    _ADDED[op] = rule


def rule_of(op: GraphOp) -> Rule:
    """The rule of an op. Raises UnsupportedError, with the reason, where there is none."""
    if reduction.is_product(op):
        return reduction.PRODUCT
    rule = GRADIENTS.get(type(op)) or _ADDED.get(type(op))
    if rule is None:
        reason = NOT_DIFFERENTIABLE.get(type(op), "there is no rule for it")
        raise UnsupportedError(f"'{op.name}' is not differentiable: {reason}")
    return rule


__all__ = [
    "GRADIENTS",
    "NOT_DIFFERENTIABLE",
    "Composed",
    "Rule",
    "add_rule",
    "has_gradient",
    "rule_of",
]
