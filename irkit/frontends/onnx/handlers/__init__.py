"""ONNX operators → graph ops: one table, its lines grouped by file."""

from irkit.frontends.onnx.handlers import (
    arithmetic,
    attention,
    block_quantised,
    cache,
    dynamic_products,
    dynamic_recurrent,
    einsum,
    elementwise,
    gather,
    grid_sample,
    grouped_attention,
    layout,
    linear,
    ml_linear,
    ml_steps,
    ml_trees,
    normalisation,
    quantisation,
    quantised_products,
    recurrent,
    reduction,
    resize,
    shape,
    text,
    transformer,
    window,
)
from irkit.frontends.onnx.handlers.microsoft import MICROSOFT
from irkit.frontends.onnx.node import Handler

HANDLERS: dict[str, Handler] = {
    **arithmetic.HANDLERS,
    **cache.HANDLERS,
    **einsum.HANDLERS,
    **elementwise.HANDLERS,
    **gather.HANDLERS,
    **grid_sample.HANDLERS,
    **layout.HANDLERS,
    **linear.HANDLERS,
    **normalisation.HANDLERS,
    **quantisation.HANDLERS,
    **quantised_products.HANDLERS,
    **recurrent.HANDLERS,
    **reduction.HANDLERS,
    **resize.HANDLERS,
    **shape.HANDLERS,
    **text.HANDLERS,
    **transformer.HANDLERS,
    **window.HANDLERS,
}
"""Operator type → handler."""

CLASSICAL: dict[str, Handler] = {
    **ml_linear.HANDLERS,
    **ml_steps.HANDLERS,
    **ml_trees.HANDLERS,
}
"""Operators of the domain ai.onnx.ml."""

DOMAINS: dict[str, dict[str, Handler]] = {
    "": HANDLERS,
    "ai.onnx.ml": {**CLASSICAL, **ml_steps.REFUSED},
    "com.microsoft": {
        **MICROSOFT,
        **attention.MICROSOFT,
        **block_quantised.MICROSOFT,
        **dynamic_products.MICROSOFT,
        **dynamic_recurrent.MICROSOFT,
        **grouped_attention.MICROSOFT,
        **transformer.MICROSOFT,
        # What ONNX Runtime's optimiser writes into models of operator sets that have none.
        "LayerNormalization": HANDLERS["LayerNormalization"],
    },
}
"""Domain → its operators."""

ANYWHERE = frozenset(
    {
        *arithmetic.HANDLERS,
        *einsum.HANDLERS,
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
