"""Operators of transformers: rotary embeddings, and the normalisations of com.microsoft."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.frontends.onnx.handlers.normalisation import standardised
from irkit.frontends.onnx.node import Handler, Node, Value

# Rotary embeddings


def _shape(x: SSAValue) -> list[int]:
    return list(tensor_type(x).get_shape())


def _part(node: Node, x: SSAValue, begin: int, size: int) -> SSAValue:
    """Elements `begin` on of the last dimension."""
    shape = _shape(x)
    if size == shape[-1]:
        return x
    offsets, strides = [0] * (len(shape) - 1) + [begin], [1] * len(shape)
    return node.emit(graph.SliceOp, x, offsets=offsets, sizes=[*shape[:-1], size], strides=strides)


def _turned(node: Node, x: SSAValue, cos: SSAValue, sin: SSAValue, axis: int) -> SSAValue:
    """Pairs (a, b) along `axis`, of two elements, as (cos a - sin b, cos b + sin a).

    Each element is one sum of two products, the second with the pair's other element, which a slice
    backwards finds: nothing is there twice, and all of it is one elementwise rOperator.
    """
    shape = _shape(x)
    rank = len(shape)
    offsets, strides = [0] * rank, [1] * rank
    offsets[axis], strides[axis] = 1, -1
    other = node.emit(graph.SliceOp, x, offsets=offsets, sizes=shape, strides=strides)
    signs = np.array([-1, 1], numpy_dtype(tensor_type(x).element_type))
    signs = node.tensor(signs.reshape([2 if d == axis else 1 for d in range(axis, rank)]))
    along = node.emit(graph.MulOp, x, cos)
    across = node.emit(graph.MulOp, other, node.emit(graph.MulOp, sin, signs))
    return node.emit(graph.AddOp, along, across)


def rotated(
    node: Node, x: SSAValue, cos: SSAValue, sin: SSAValue, *,
    size: int, interleaved: bool, heads_behind: bool,
) -> SSAValue:  # fmt: skip
    """`x`, of four dimensions, with the first `size` elements of each head turned.

    `x` is batch × heads × steps × elements, or batch × steps × heads × elements where heads lie behind;
    `cos` and `sin` are batch × steps × pairs.
    """
    shape, (batch, steps, pairs) = _shape(x), _shape(cos)
    if size != 2 * pairs or size > shape[3] or _shape(sin) != _shape(cos):
        node.refuse(f"caches of {pairs} pairs", f"{size} of {shape[3]} elements are turned")
    part = [pairs, 2] if interleaved else [2, pairs]
    turned = node.emit(graph.ReshapeOp, _part(node, x, 0, size), shape=[*shape[:3], *part])
    lead = [batch, steps, 1] if heads_behind else [batch, 1, steps]
    angle = [*lead, pairs, 1] if interleaved else [*lead, 1, pairs]
    factors = [node.emit(graph.ReshapeOp, v, shape=angle) for v in (cos, sin)]
    y = _turned(node, turned, *factors, axis=4 if interleaved else 3)
    y = node.emit(graph.ReshapeOp, y, shape=[*shape[:3], size])
    if size == shape[3]:
        return y
    return node.emit(graph.ConcatOp, y, _part(node, x, size, shape[3] - size), axis=3)


def _rotary(node: Node, cos: SSAValue, sin: SSAValue, *, size: int, heads: int) -> Sequence[Value]:
    """`cos` and `sin` are batch × steps × pairs; `size` is 0 or elements of a head that are turned; `heads`:
    in how many parts the last of three dimensions is."""
    x, shape = node.operand(0), _shape(node.operand(0))
    interleaved = node.attribute("interleaved", 0)
    if len(shape) == 3 and (heads < 1 or shape[2] % heads):
        node.refuse(f"num_heads = {heads}", f"it does not divide {shape[2]} elements of a step")
    if len(shape) not in (3, 4):
        node.refuse(f"input of rank {len(shape)}", "3 or 4 dimensions are needed")
    inside = shape if len(shape) == 4 else [*shape[:2], heads, shape[2] // heads]
    x = node.emit(graph.ReshapeOp, x, shape=inside) if len(shape) == 3 else x
    y = rotated(
        node, x, cos, sin,
        size=size or inside[3], interleaved=bool(interleaved), heads_behind=len(shape) == 3,
    )  # fmt: skip
    return [node.emit(graph.ReshapeOp, y, shape=shape) if len(shape) == 3 else y]


def _rotary_embedding(node: Node) -> Sequence[Value]:
    """ONNX's: inputs x, caches of cosines and sines, and positions to look up in them."""
    size = int(node.attribute("rotary_embedding_dim", 0))
    caches = [node.operand(1), node.operand(2)]
    if node.given(3) is not None:
        caches = [node.emit(graph.GatherOp, c, node.operand(3), axis=0) for c in caches]
    if any(tensor_type(c).get_num_dims() != 3 for c in caches):
        node.refuse("cos_cache", "batch, steps and pairs are expected")
    return _rotary(node, *caches, size=size, heads=int(node.attribute("num_heads", 0)))


def _microsoft_rotary_embedding(node: Node) -> Sequence[Value]:
    """com.microsoft's: inputs x, positions or the first of them, and the caches."""
    node.require("is_packed_batching", 0)
    node.require("scale", 1.0)
    size = int(node.attribute("rotary_embedding_dim", 0))
    positions, shape = node.operand(1), _shape(node.operand(0))
    if _shape(positions) == [1]:
        steps = shape[-2] if len(shape) == 4 else shape[1]
        if DYNAMIC in (steps, shape[0]):
            node.refuse("position_ids", "of a dynamic batch each position is needed")
        every = node.tensor(np.arange(steps, dtype=np.int64).reshape(1, steps))
        positions = node.emit(graph.AddOp, every, positions)
    caches = [node.emit(graph.GatherOp, node.operand(n), positions, axis=0) for n in (2, 3)]
    heads, pairs = int(node.attribute("num_heads", 0)), _shape(caches[0])[-1]
    if not heads and not size and pairs:
        # All of each head is turned: the caches say how long it is.
        heads = shape[-1] // (2 * pairs)
    return _rotary(node, *caches, size=size, heads=heads)


# Normalisations


def _normalised(node: Node, x: SSAValue, scale: int, bias: int | None, centred: bool) -> SSAValue:
    """`x` by the statistics of its last dimension, times input `scale`, plus input `bias`."""
    if _shape(x)[-1] == DYNAMIC:
        node.refuse("input", "its last dimension is dynamic")
    y = standardised(node, x, float(node.attribute("epsilon", 1e-5)), centred)
    y = node.emit(graph.MulOp, y, node.operand(scale))
    if bias is not None and node.given(bias) is not None:
        y = node.emit(graph.AddOp, y, node.operand(bias))
    return y


def _skip_norm(centred: bool) -> Handler:
    """Inputs x, what is added to it, scale, bias if centred, and one more that is added."""

    def handler(node: Node) -> Sequence[Value]:
        x = node.emit(graph.AddOp, node.operand(0), node.operand(1))
        added = 4 if centred else 3
        if node.given(added) is not None:
            x = node.emit(graph.AddOp, x, node.operand(added))
        outputs = list(node.proto.output)
        if any(outputs[1:3]):
            node.refuse("outputs", "mean and deviation are not computed")
        y = _normalised(node, x, 2, 3 if centred else None, centred)
        return [y, y, y, x][: len(outputs)]

    return handler


def _simplified_norm(node: Node) -> Sequence[Value]:
    """Root mean square normalisation as ONNX Runtime calls it; models have it in the standard domain."""
    node.ignore("stash_type")
    rank = node.type_of(0).get_num_dims()
    axis = int(node.attribute("axis", -1))
    if node.axis(axis, rank) != rank - 1:
        node.refuse(f"axis = {axis}", "only the last dimension is supported")
    if len(node.proto.output) > 1:
        node.refuse("outputs", "the deviation is not computed")
    return [_normalised(node, node.operand(0), 1, None, False)]


HANDLERS: dict[str, Handler] = {
    "RotaryEmbedding": _rotary_embedding,
}

MICROSOFT: dict[str, Handler] = {
    "RotaryEmbedding": _microsoft_rotary_embedding,
    "SimplifiedLayerNormalization": _simplified_norm,
    "SkipLayerNormalization": _skip_norm(centred=True),
    "SkipSimplifiedLayerNormalization": _skip_norm(centred=False),
}
