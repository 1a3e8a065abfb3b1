"""What an op of the graph level does, in kinds of work: estimated from its types alone, before anything is
compiled."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from irkit.dialects import graph
from irkit.dialects.bufferization import MaterializeInDestinationOp, ToTensorOp
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.program.views import trips_of
from irkit.dialects.types import Tensor, is_float, tensor_type
from irkit.expressions.syntax import walk
from irkit.rkernels.fused_work import words
from irkit.rkernels.work import Work, total

APPROXIMATE: Final = "approximate"
"""What a function is where it need not be the C library's."""

KINDS: Final[dict[str, str]] = {
    **dict.fromkeys(("div", "sqrt"), "divide"),
    **dict.fromkeys(("exp", "exp2", "sigmoid"), "exp"),
    **dict.fromkeys(("log", "log1p", "log2", "log10"), "log"),
    **dict.fromkeys(("sin", "cos"), "sin"),
    **dict.fromkeys(("tanh", "erf", "pow"), ""),
    **dict.fromkeys(
        (
            *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh"),
            *("cbrt", "cosh", "expm1", "sinh", "tan"),
        ),
        "function",
    ),
}
"""Graph op → the kind of work that one element is; "" where it has the op's name."""

_EXACT: Final = frozenset({"divide"})


def work_of(op: Operation, approximate: bool = True) -> Work:
    """Units of work of an op, over all its elements; of a loop, over all its rounds.

    `approximate`: functions of floats may be computed in vector registers (`afn`).
    """
    if isinstance(op, scf.ForOp):
        body = total(work_of(inner, approximate) for inner in op.body.block.ops)
        return body * len(trips_of(op))
    if isinstance(op, ToTensorOp | MaterializeInDestinationOp):
        return Work()
    if not isinstance(op, GraphOp):
        return Work()
    rule = _RULES.get(type(op), _elementwise)
    return rule(op, approximate)


def elements(value: SSAValue) -> int:
    """How many elements a tensor has."""
    return math.prod(tensor_type(value).get_shape()) if isinstance(value.type, TensorType) else 0


def nbytes(t: Tensor) -> int:
    """Bytes of a tensor's elements."""
    width = getattr(t.element_type, "bitwidth", 64)
    return math.prod(t.get_shape()) * max(1, width // 8)


def _units(kind: str, count: float, value: SSAValue) -> Work:
    element = tensor_type(value).element_type
    weight = max(1.0, words(element)) if is_float(element) else 1.0
    return Work({kind: count * weight})


def _elementwise(op: GraphOp, approximate: bool) -> Work:
    name = op.name.removeprefix("graph.")
    kind = (KINDS[name] or name) if name in KINDS else "op"
    result = op.results[0]
    floats = is_float(tensor_type(result).element_type)
    if kind == "divide" and not floats:
        kind = "index"
    if approximate and floats and kind not in ("op", *_EXACT):
        kind = APPROXIMATE
    return _units(kind, elements(result), result)


def _reduction(op: GraphOp, approximate: bool) -> Work:
    return _units("op", elements(op.operands[0]), op.operands[0])


def _running(op: GraphOp, approximate: bool) -> Work:
    """Sums that follow from one another."""
    return Work({"scalar": 4.0 * elements(op.operands[0])})


def _sorting(op: GraphOp, approximate: bool) -> Work:
    count = elements(op.operands[0])
    return Work({"scalar": 2.0 * count * math.log2(max(count, 2))})


def _product(op: GraphOp, approximate: bool) -> Work:
    terms = tensor_type(op.operands[0]).get_shape()[-1]
    if isinstance(op, graph.GemmOp):
        terms = elements(op.operands[0]) // max(1, _rows(op))
    return _units("fma", elements(op.results[0]) * terms, op.results[0])


def _rows(op: graph.GemmOp) -> int:
    return tensor_type(op.results[0]).get_shape()[0]


def _convolution(op: GraphOp, approximate: bool) -> Work:
    kernel = tensor_type(op.operands[1]).get_shape()
    return _units("fma", elements(op.results[0]) * math.prod(kernel[1:]), op.results[0])


def _normalisation(op: GraphOp, approximate: bool) -> Work:
    kind = APPROXIMATE if approximate else "exp"
    count = elements(op.operands[0])
    return _units("op", 4 * count, op.operands[0]) + _units(kind, count, op.operands[0])


def _expression(op: GraphOp, approximate: bool) -> Work:
    """A term a value of the indices, of as many operations as it applies."""
    assert isinstance(op, graph.ExpressionOp)
    step = op.step
    terms = math.prod(loop.size for loop in step.domain.loops)
    if step.is_product:
        return _units("fma", terms, op.results[0])
    return _units("op", terms * (1 + len(list(walk(step.statement.value)))), op.results[0])


def _moved(kind: str) -> Callable[[GraphOp, bool], Work]:
    return lambda op, approximate: Work({kind: float(elements(op.results[0]))})


def _unknown(op: GraphOp, approximate: bool) -> Work:
    """Ops of models, which programs of arrays have not: all their operands, a few times."""
    return Work({"scalar": 16.0 * sum(elements(v) for v in (*op.operands, *op.results))})


def _free(op: GraphOp, approximate: bool) -> Work:
    return Work()


_PLACES: Sequence[type[GraphOp]] = (graph.GatherOp, graph.GatherElementsOp)
_RULES: Final[dict[type[GraphOp], Callable[[GraphOp, bool], Work]]] = {
    graph.ReshapeOp: _free,
    graph.ExpandOp: _free,
    graph.TransposeOp: _moved("stride"),
    **dict.fromkeys(_PLACES, _moved("gather")),
    **dict.fromkeys((graph.ReduceOp, graph.ArgmaxOp), _reduction),
    graph.CumSumOp: _running,
    graph.ExpressionOp: _expression,
    graph.TopKOp: _sorting,
    **dict.fromkeys((graph.MatmulOp, graph.GemmOp), _product),
    **dict.fromkeys((graph.ConvOp, graph.ConvTransposeOp), _convolution),
    **dict.fromkeys((graph.SoftmaxOp, graph.LayerNormOp, graph.BatchNormOp), _normalisation),
    **dict.fromkeys(
        (
            graph.AttentionOp,
            graph.AttentionKeyGradientOp,
            graph.AttentionQueryGradientOp,
            graph.ForestOp,
            graph.LstmOp,
            graph.GruOp,
        ),
        _unknown,
    ),
}
