"""com.microsoft's Attention and MultiHeadAttention, onto `graph.attention`.

Semantics are those of ONNX Runtime's contributed operators: a key that a padding mask hides has
`mask_filter_value` added to its scores, one ahead of a causal row is not seen at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.frontends.onnx.handlers.cache import written
from irkit.frontends.onnx.node import Handler, Node, Value


def _shape(x: SSAValue) -> list[int]:
    return list(tensor_type(x).get_shape())


def _slice(node: Node, x: SSAValue, axis: int, begin: int, size: int) -> SSAValue:
    shape = _shape(x)
    offsets = [begin if d == axis else 0 for d in range(len(shape))]
    sizes = [size if d == axis else s for d, s in enumerate(shape)]
    return node.emit(graph.SliceOp, x, offsets=offsets, sizes=sizes, strides=[1] * len(shape))


def _turned(node: Node, x: SSAValue) -> SSAValue:
    """Steps and heads change places."""
    return node.emit(graph.TransposeOp, x, permutation=[0, 2, 1, 3])


def _heads(node: Node, x: SSAValue, heads: int) -> SSAValue:
    """batch × steps × (heads · size) as batch × heads × steps × size."""
    batch, steps, width = _shape(x)
    if heads < 1 or width % heads:
        node.refuse(f"num_heads = {heads}", f"it does not divide {width} elements of a step")
    return _turned(node, node.emit(graph.ReshapeOp, x, shape=[batch, steps, heads, width // heads]))


def _unpacked(node: Node, x: SSAValue, count: int) -> list[SSAValue]:
    """batch × steps × heads × count × size as `count` of batch × heads × steps × size."""
    batch, steps, heads, parts, size = _shape(x)
    if parts != count:
        node.refuse(f"input of shape {_shape(x)}", f"{count} packed tensors are expected")
    cut = (_slice(node, x, 3, n, 1) for n in range(count))
    return [
        _turned(node, node.emit(graph.ReshapeOp, c, shape=[batch, steps, heads, size])) for c in cut
    ]


def _known(node: Node, name: str, *sizes: int) -> None:
    if DYNAMIC in sizes:
        node.refuse(name, "only the batch may be dynamic")


def _within(node: Node, index: int, keys: int, batch: int) -> SSAValue:
    """Which keys a mask of one dimension shows, as batch × keys: those before the end of a sequence, and not
    before its begin where begins stand behind the ends."""
    mask = node.operand(index)
    length = _shape(mask)[0]
    if length not in (batch, 2 * batch):
        node.refuse(
            node.name_of(index),
            f"of one dimension it has the end of each of {batch} sequences, or ends and begins, "
            f"got {length} numbers",
        )
    places = node.tensor(np.arange(keys, dtype=numpy_dtype(tensor_type(mask).element_type)))
    if length == batch:
        ends = node.emit(graph.ReshapeOp, mask, shape=[batch, 1])
        return node.emit(graph.CompareOp, places, ends, predicate="lt")
    ends, begins = (
        node.emit(graph.ReshapeOp, _slice(node, mask, 0, at, batch), shape=[batch, 1])
        for at in (0, batch)
    )
    before = node.emit(graph.CompareOp, places, ends, predicate="lt")
    behind = node.emit(graph.CompareOp, places, begins, predicate="ge")
    return node.emit(graph.AndOp, before, behind)


def _padding(node: Node, index: int, keys: int, like: SSAValue) -> SSAValue | None:
    """What is added to scores for padded keys; None without a mask."""
    filtered = node.attribute("mask_filter_value", -10000.0)
    if node.given(index) is None:
        return None
    mask = node.operand(index)
    shape, kind = _shape(mask), numpy_dtype(tensor_type(mask).element_type)
    if len(shape) == 1:
        seen = _within(node, index, keys, _shape(like)[0])
        shape = [_shape(seen)[0], keys]
    else:
        zero = node.tensor(np.array(0, kind))
        seen = node.emit(graph.CompareOp, mask, zero, predicate="gt")
    if len(shape) not in (2, 3) or shape[-1] != keys:
        node.refuse(node.name_of(index), f"a mask of shape {shape} for {keys} keys")
    between = [1, 1] if len(shape) == 2 else [1, shape[1]]
    element = numpy_dtype(tensor_type(like).element_type)
    hidden = np.array(filtered, element)
    added = node.emit(graph.WhereOp, seen, node.tensor(np.array(0, element)), node.tensor(hidden))
    return node.emit(graph.ReshapeOp, added, shape=[shape[0], *between, keys])


def _attended(
    node: Node, query: SSAValue, key: SSAValue, value: SSAValue, masks: Sequence[SSAValue | None],
    past: int | None,
) -> SSAValue:  # fmt: skip
    """batch × steps × (heads · size): the attention of batch × heads × steps × size. Without a `past`
    the masks say what lies ahead."""
    batch, heads, steps, size = _shape(query)
    keys, columns = _shape(key)[2], _shape(value)[3]
    _known(node, "input", heads, steps, size, keys, columns)
    added = [m for m in masks if m is not None]
    while len(added) > 1:
        added = [node.emit(graph.AddOp, *added[:2]), *added[2:]]
    scale = float(node.attribute("scale", 0.0)) or size**-0.5
    # ONNX Runtime lets a lone row see every key, also where there are more than those of its past.
    ahead = node.attribute("unidirectional", 0) and steps > 1
    causal = {"causal": past} if ahead and past is not None else {}
    y = node.emit(graph.AttentionOp, query, key, value, *added, scale=scale, **causal)
    return node.emit(graph.ReshapeOp, _turned(node, y), shape=[batch, steps, heads * columns])


def _added(node: Node, index: int) -> SSAValue | None:
    """An operand that is added to scores."""
    return None if node.given(index) is None else node.operand(index)


def _attention(node: Node) -> Sequence[Value]:
    """Inputs x, weights of queries, keys and values side by side, bias, padding, past, and what is added."""
    node.ignore("past_present_share_buffer")
    node.require("do_rotary", 0)
    heads = int(node.attribute("num_heads", 0))
    x, weights = node.operand(0), node.operand(1)
    widths = [int(n) for n in node.attribute("qkv_hidden_sizes", [])] or [
        _shape(weights)[1] // 3
    ] * 3
    if len(widths) != 3 or sum(widths) != _shape(weights)[1]:
        node.refuse("qkv_hidden_sizes", f"{widths} of {_shape(weights)[1]} columns")
    if node.given(6) is not None:
        node.refuse("past_sequence_length", "it is known by the past's shape alone")
    every = node.emit(graph.MatmulOp, x, weights)
    if node.given(2) is not None:
        every = node.emit(graph.AddOp, every, node.operand(2))
    begins = (0, widths[0], widths[0] + widths[1])
    query, key, value = (
        _heads(node, _slice(node, every, 2, begin, width), heads)
        for begin, width in zip(begins, widths, strict=True)
    )
    present: list[Value] = []
    past = 0
    if node.given(4) is not None:
        kept = node.operand(4)
        _, batch, _, past, _ = _shape(kept)
        _known(node, "past", batch, past)
        parts = [
            node.emit(graph.ReshapeOp, _slice(node, kept, 0, n, 1), shape=_shape(kept)[1:])
            for n in (0, 1)
        ]
        key = node.emit(graph.ConcatOp, parts[0], key, axis=2)
        value = node.emit(graph.ConcatOp, parts[1], value, axis=2)
    if len(node.proto.output) > 1 and node.proto.output[1]:
        shape = [1, *_shape(key)]
        _known(node, "present", *shape)
        both = [node.emit(graph.ReshapeOp, v, shape=shape) for v in (key, value)]
        present.append(node.emit(graph.ConcatOp, *both, axis=0))
    masks = [_padding(node, 3, _shape(key)[2], query), _added(node, 5)]
    return [_attended(node, query, key, value, masks, past), *present]


def _operands(node: Node, heads: int) -> list[SSAValue]:
    """Query, key and value as batch × heads × steps × size, in all the layouts that there are."""
    given = [node.operand(n) for n in range(3) if node.given(n) is not None]
    ranks = [len(_shape(v)) for v in given]
    if ranks == [5]:
        return _unpacked(node, given[0], 3)
    if 3 in ranks[:1] and node.given(3) is not None:
        given = _biased(node, given)
    if ranks == [3, 5]:
        return [_heads(node, given[0], heads), *_unpacked(node, given[1], 2)]
    if ranks == [3, 3, 3]:
        return [_heads(node, v, heads) for v in given]
    if ranks == [3, 4, 4]:
        return [_heads(node, given[0], heads), *given[1:]]
    node.refuse("inputs", f"queries, keys and values of ranks {ranks}")


def _biased(node: Node, given: Sequence[SSAValue]) -> list[SSAValue]:
    """Queries, keys and values with their biases, which lie side by side."""
    widths = [_shape(v)[-1] for v in given]
    bias = node.operand(3)
    if any(len(_shape(v)) != 3 for v in given) or len(given) < 3 or _shape(bias) != [sum(widths)]:
        node.refuse("bias", "only that of queries, keys and values of rank 3 is supported")
    begins = np.cumsum([0, *widths])
    return [
        node.emit(graph.AddOp, v, _slice(node, bias, 0, int(begin), width))
        for v, begin, width in zip(given, begins, widths, strict=False)
    ]


def _in_buffer(node: Node, new: Sequence[SSAValue]) -> tuple[list[SSAValue], SSAValue]:
    """Keys and values in buffers that are as long as they will be, and what is added to scores.

    Input 8 says how many steps the buffers (inputs 6 and 7) have; those behind the new ones are not seen.
    Where the new ones do not fit, all is NaN.
    """
    buffers, steps = [node.operand(6), node.operand(7)], _shape(new[0])[2]
    room = _shape(buffers[0])[2]
    _known(node, "past_key", room, steps)
    if any(_shape(b)[2] != room for b in buffers) or steps > room:
        node.refuse("past_key", f"buffers of {[_shape(b)[2] for b in buffers]} for {steps} steps")
    first = node.emit(graph.ReshapeOp, node.operand(8), shape=[1, 1, 1, 1])
    kind = numpy_dtype(tensor_type(first).element_type)
    every = node.tensor(np.arange(room, dtype=kind).reshape(1, 1, room, 1))
    at = node.emit(graph.SubOp, every, first)
    kept = [written(node, b, v, at, 2) for b, v in zip(buffers, new, strict=True)]
    ahead = node.attribute("unidirectional", 0)
    rows = np.arange(steps, dtype=kind) if ahead else np.array([steps - 1], kind)
    last = node.emit(graph.AddOp, first, node.tensor(rows.reshape(1, 1, -1, 1)))
    places = node.tensor(np.arange(room, dtype=kind))
    seen = node.emit(graph.CompareOp, places, last, predicate="le")
    fits = node.emit(
        graph.CompareOp, first, node.tensor(np.array(room - steps, kind)), predicate="le"
    )
    element = numpy_dtype(tensor_type(new[0]).element_type)
    zero, hidden, wrong = (node.tensor(np.array(n, element)) for n in (0, -np.inf, np.nan))
    added = node.emit(graph.WhereOp, seen, zero, hidden)
    return kept, node.emit(graph.WhereOp, fits, added, wrong)


def _multi_head_attention(node: Node) -> Sequence[Value]:
    """Inputs queries, keys, values, bias, padding, what is added, keys and values of the past, its length."""
    query, key, value = _operands(node, int(node.attribute("num_heads", 0)))
    past: int | None = 0
    hidden = None
    if node.given(9) is not None:
        node.refuse("cache_indirection", "keys of several beams are not followed")
    if node.given(8) is not None:
        (key, value), hidden = _in_buffer(node, (key, value))
        past = None
    elif node.given(6) is not None:
        kept = [node.operand(6), node.operand(7)]
        past = _shape(kept[0])[2]
        _known(node, "past_key", past)
        key, value = (
            node.emit(graph.ConcatOp, *both, axis=2)
            for both in zip(kept, (key, value), strict=True)
        )
    if len(node.proto.output) > 3 and node.proto.output[3]:
        node.refuse("outputs", "scores are not computed apart")
    masks = [_padding(node, 4, _shape(key)[2], query), _added(node, 5), hidden]
    y = _attended(node, query, key, value, masks, past)
    return [y, key, value][: len(node.proto.output)]


MICROSOFT: dict[str, Handler] = {
    "Attention": _attention,
    "MultiHeadAttention": _multi_head_attention,
}
