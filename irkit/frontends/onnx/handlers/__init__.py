"""ONNX operators → graph ops: one table, its lines grouped by file."""

from irkit.frontends.onnx.handlers import (
    arithmetic,
    elementwise,
    gather,
    layout,
    linear,
    normalisation,
    quantisation,
    recurrent,
    reduction,
    resize,
    shape,
    window,
)
from irkit.frontends.onnx.node import Handler

HANDLERS: dict[str, Handler] = {
    **arithmetic.HANDLERS,
    **elementwise.HANDLERS,
    **gather.HANDLERS,
    **layout.HANDLERS,
    **linear.HANDLERS,
    **normalisation.HANDLERS,
    **quantisation.HANDLERS,
    **recurrent.HANDLERS,
    **reduction.HANDLERS,
    **resize.HANDLERS,
    **shape.HANDLERS,
    **window.HANDLERS,
}
"""Operator type → handler."""

ANYWHERE = frozenset(
    {
        *arithmetic.HANDLERS,
        *elementwise.HANDLERS,
        *linear.HANDLERS,
        *recurrent.HANDLERS,
        *reduction.HANDLERS,
        *shape.HANDLERS,
        "Gather",
        "GatherElements",
        "LayerNormalization",
        "LogSoftmax",
        "OneHot",
        "Pad",
        "RMSNormalization",
        "Softmax",
        "Tile",
    }
)
"""Operators whose handlers read a shape as it is: the batch may be any dimension of their operands.
Others take it for the leading one."""
