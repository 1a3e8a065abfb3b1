"""ONNX operators → graph ops: one table, its lines grouped by file."""

from irkit.frontends.onnx.handlers import (
    elementwise,
    linear,
    normalisation,
    recurrent,
    reduction,
    shape,
    window,
)
from irkit.frontends.onnx.node import Handler

HANDLERS: dict[str, Handler] = {
    **elementwise.HANDLERS,
    **linear.HANDLERS,
    **normalisation.HANDLERS,
    **recurrent.HANDLERS,
    **reduction.HANDLERS,
    **shape.HANDLERS,
    **window.HANDLERS,
}
"""Operator type → handler."""
