"""com.microsoft's GroupQueryAttention: a decoder's attention, with its cache and rotary embedding.

Semantics are those of ONNX Runtime's contributed operator. Of batch entry b there are T = seqlens_k[b] + 1
tokens after the step, of which the last are the S new ones, so that P = max(T - S, 0) were in the cache.
New keys and values are written into it from place P on, and query s sees keys 0 to P + s. Heads that share
keys read them where they are. What ONNX Runtime leaves open (rows of padding behind a shorter prompt, the
cache beyond T) is open here too; a step that its cache has no room for is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.frontends.onnx.handlers.cache import written
from irkit.frontends.onnx.handlers.transformer import rotated
from irkit.frontends.onnx.node import Handler, Node, Value
from irkit.frontends.onnx.provenance import known_array
from irkit.weights import Array

_TOTAL, _LENGTHS, _POSITIONS, _ADDED, _SINK = 6, 5, 9, 10, 11
_REFUSED = {
    12: "keys of a quantised cache are not read",
    13: "values of a quantised cache are not read",
    14: "queries are not normalised here",
    15: "keys are not normalised here",
    16: "chunks with padding are not written",
}


def _shape(x: SSAValue) -> list[int]:
    return list(tensor_type(x).get_shape())


def _constant(node: Node, index: int) -> Array | None:
    """Input `index`, if it is known at import and no multiple of an open batch."""
    value = node.given(index)
    if isinstance(value, SSAValue):
        return known_array(value, node.builder.weights)
    return None if value is None or node.symbolic[index] else value


def _slice(node: Node, x: SSAValue, axis: int, begin: int, size: int) -> SSAValue:
    shape = _shape(x)
    if (begin, size) == (0, shape[axis]):
        return x
    offsets = [begin if d == axis else 0 for d in range(len(shape))]
    sizes = [size if d == axis else s for d, s in enumerate(shape)]
    return node.emit(graph.SliceOp, x, offsets=offsets, sizes=sizes, strides=[1] * len(shape))


def _turned(node: Node, x: SSAValue) -> SSAValue:
    """Steps and heads change places."""
    return node.emit(graph.TransposeOp, x, permutation=[0, 2, 1, 3])


@dataclass(frozen=True)
class _Place:
    """Where the new steps of each batch entry stand: at one place that is known (`first`), or from
    `places` on, of shape batch×1."""

    first: int | None
    places: SSAValue | None

    def steps(self, node: Node, count: int) -> SSAValue:
        """The places of `count` steps, 1×count or batch×count."""
        if self.places is None:
            assert self.first is not None
            return node.tensor(np.arange(self.first, self.first + count).reshape(1, count))
        if count == 1:
            return self.places
        dtype = numpy_dtype(tensor_type(self.places).element_type)
        every = node.tensor(np.arange(count, dtype=dtype).reshape(1, count))
        return node.emit(graph.AddOp, self.places, every)


@dataclass
class _Attention:
    """The operator's parts: queries batch×steps×heads×size, keys and values batch×heads×steps×size."""

    node: Node
    heads: int
    shared: int
    past: int
    total: int | None

    @property
    def group(self) -> int:
        """Heads of queries that share one of keys."""
        return self.heads // self.shared

    # Operands

    def operands(self) -> list[SSAValue]:
        """Queries, keys and values as batch×steps×heads×size."""
        node = self.node
        x = node.operand(0)
        if len(_shape(x)) != 3:
            node.refuse(f"query of rank {len(_shape(x))}", "batch, steps and elements are expected")
        given = [x]
        counts = [self.heads, self.shared, self.shared]
        if node.given(1) is None:
            width = _shape(x)[2]
            if width % sum(counts):
                node.refuse("query", f"{width} elements are not those of {sum(counts)} heads")
            begins, size = np.cumsum([0, *counts]), width // sum(counts)
            given = [
                _slice(node, x, 2, int(b) * size, n * size)
                for b, n in zip(begins, counts, strict=False)
            ]
        else:
            given += [node.operand(1), node.operand(2)]
        return [self._heads(v, n) for v, n in zip(given, counts, strict=True)]

    def _heads(self, x: SSAValue, heads: int) -> SSAValue:
        batch, steps, width = _shape(x)
        if width % heads:
            self.node.refuse(f"{heads} heads", f"they do not divide {width} elements of a step")
        if steps == DYNAMIC:
            self.node.refuse("query", "only the batch may be dynamic")
        return self.node.emit(graph.ReshapeOp, x, shape=[batch, steps, heads, width // heads])

    def place(self, steps: int) -> _Place:
        """Where new steps begin."""
        node = self.node
        if self.past == 0 or self.total == steps:
            return _Place(0, None)
        lengths = _constant(node, _LENGTHS)
        if lengths is not None and len({*lengths.flat}) == 1:
            return _Place(max(int(lengths.flat[0]) + 1 - steps, 0), None)
        given = node.operand(_LENGTHS)
        dtype = numpy_dtype(tensor_type(given).element_type)
        first = node.emit(graph.ReshapeOp, given, shape=[_shape(node.operand(0))[0], 1])
        if steps > 1:
            first = node.emit(graph.AddOp, first, node.tensor(np.array(1 - steps, dtype)))
            first = node.emit(graph.MaxOp, first, node.tensor(np.array(0, dtype)))
        return _Place(None, first)

    def turned(self, x: SSAValue, place: _Place) -> SSAValue:
        """Queries or keys with their rotary embedding."""
        node = self.node
        steps = _shape(x)[1]
        at = place.steps(node, steps)
        if node.given(_POSITIONS) is not None:
            at = node.operand(_POSITIONS)
            if place.first == 0:
                # Of a prompt the first position alone is looked at.
                one = _slice(node, _slice(node, at, 0, 0, 1), 1, 0, 1)
                dtype = numpy_dtype(tensor_type(at).element_type)
                every = node.tensor(np.arange(steps, dtype=dtype).reshape(1, steps))
                at = node.emit(graph.AddOp, one, every)
        caches = [node.emit(graph.GatherOp, node.operand(n), at, axis=0) for n in (7, 8)]
        size = 2 * _shape(caches[0])[-1]
        interleaved = bool(node.attribute("rotary_interleaved", 0))
        return rotated(node, x, *caches, size=size, interleaved=interleaved, heads_behind=True)

    # The cache

    @property
    def room(self) -> int:
        """Places of the cache after the step."""
        return max(self.past, self.total or 0)

    def kept(self, index: int, new: SSAValue, place: _Place) -> SSAValue:
        """The cache of input `index` with the new steps, batch×heads×places×size."""
        node = self.node
        if self.past == 0:
            return new
        cache, steps = node.operand(index), _shape(new)[2]
        if place.first is not None:
            end = place.first + steps
            parts = [(cache, 0, place.first), (new, 0, steps), (cache, end, self.past - end)]
            found = [_slice(node, v, 2, begin, size) for v, begin, size in parts if size > 0]
            cache = node.emit(graph.ConcatOp, *found, axis=2) if len(found) > 1 else found[0]
            return self._longer(cache)
        assert place.places is not None
        dtype = numpy_dtype(tensor_type(place.places).element_type)
        every = node.tensor(np.arange(self.room, dtype=dtype).reshape(1, 1, self.room, 1))
        batch = _shape(place.places)[0]
        first = node.emit(graph.ReshapeOp, place.places, shape=[batch, 1, 1, 1])
        at = node.emit(graph.SubOp, every, first)
        return written(node, self._longer(cache), new, at, 2)

    def _longer(self, cache: SSAValue) -> SSAValue:
        batch, heads, have, size = _shape(cache)
        if have >= self.room:
            return cache
        if batch == DYNAMIC:
            self.node.refuse("past_key", "a cache that grows is of a known batch only")
        element = numpy_dtype(tensor_type(cache).element_type)
        zeros = self.node.tensor(np.zeros((batch, heads, self.room - have, size), element))
        return self.node.emit(graph.ConcatOp, cache, zeros, axis=2)

    # The attention

    def parted(self, x: SSAValue, steps: int) -> SSAValue:
        """batch×heads×steps×… as batch×heads of keys×group×steps×…, of one step without that."""
        batch, heads, rows, last = _shape(x)
        pair = [1, 1] if heads == 1 != self.heads else [self.shared, heads // self.shared]
        return self.node.emit(
            graph.ReshapeOp, x, shape=[batch, *pair, *([rows] if steps > 1 else []), last]
        )

    def seen(self, place: _Place, steps: int, keys: int, causal: bool, window: int) -> SSAValue:
        """Which keys each step sees, batch×1×1×(steps×)keys."""
        node = self.node
        rows = place.steps(node, steps)
        batch = _shape(rows)[0]
        dtype = numpy_dtype(tensor_type(rows).element_type)
        if not causal:
            rows = _slice(node, rows, 1, steps - 1, 1)
        between = [1, 1] if steps == 1 else [1, 1, _shape(rows)[1]]
        rows = node.emit(graph.ReshapeOp, rows, shape=[batch, *between, 1])
        every = node.tensor(np.arange(keys, dtype=dtype))
        mask = node.emit(graph.CompareOp, every, rows, predicate="le")
        if window > 0:
            least = node.emit(graph.SubOp, rows, node.tensor(np.array(window, dtype)))
            near = node.emit(graph.CompareOp, every, least, predicate="gt")
            mask = node.emit(graph.AndOp, mask, near)
        return mask

    def added(self, keys: int, steps: int) -> SSAValue | None:
        """What is added to scores."""
        node = self.node
        if node.given(_ADDED) is None:
            return None
        x = node.operand(_ADDED)
        if len(_shape(x)) != 4 or _shape(x)[3] < keys or _shape(x)[1] not in (1, self.heads):
            node.refuse(node.name_of(_ADDED), f"a bias of shape {_shape(x)} for {keys} keys")
        return self.parted(_slice(node, x, 3, 0, keys), steps)

    def sink(self, steps: int, like: SSAValue) -> SSAValue | None:
        """The score of a key of each head that has no value, which takes part in the softmax."""
        node = self.node
        element = numpy_dtype(tensor_type(like).element_type)
        smooth = node.attribute("smooth_softmax", 0)
        if node.given(_SINK) is None and smooth != 1:
            return None
        given = node.given(_SINK) is not None
        x = node.operand(_SINK) if given else node.tensor(np.zeros(self.heads, element))
        ones = [1] if steps == 1 else [1, 1]
        return node.emit(graph.ReshapeOp, x, shape=[1, self.shared, self.group, *ones])

    def written_out(
        self, query: SSAValue, key: SSAValue, value: SSAValue, mask: Sequence[SSAValue], scale: float, *,
        softcap: float, added: SSAValue | None, sink: SSAValue | None,
    ) -> SSAValue:  # fmt: skip
        """What `graph.attention` has no word for: capped scores, and sinks."""
        node = self.node
        element = numpy_dtype(tensor_type(query).element_type)
        rank = len(_shape(key))
        order = [*range(rank - 2), rank - 1, rank - 2]
        turned = node.emit(graph.TransposeOp, key, permutation=order)
        scores = node.emit(graph.MatmulOp, query, turned)
        scores = node.emit(graph.MulOp, scores, node.tensor(np.array(scale, element)))
        if softcap > 0:
            cap = node.tensor(np.array(softcap, element))
            capped = node.emit(graph.TanhOp, node.emit(graph.DivOp, scores, cap))
            scores = node.emit(graph.MulOp, capped, cap)
        if added is not None:
            scores = node.emit(graph.AddOp, scores, added)
        for seen in mask:
            scores = node.emit(graph.WhereOp, seen, scores, node.tensor(np.array(-np.inf, element)))
        keys, axis = _shape(scores)[-1], len(_shape(scores)) - 1
        if sink is not None:
            column = node.emit(graph.ExpandOp, sink, shape=[*_shape(scores)[:-1], 1])
            scores = node.emit(graph.ConcatOp, scores, column, axis=axis)
        weights = node.emit(graph.SoftmaxOp, scores, axis=axis)
        return node.emit(graph.MatmulOp, _slice(node, weights, axis, 0, keys), value)


def _built(node: Node) -> _Attention:
    """Sizes, and what is refused."""
    for index, reason in _REFUSED.items():
        if node.given(index) is not None:
            node.refuse(node.name_of(index), reason)
    node.require("sliding_window_cache", 0)
    node.require("qk_output", 0)
    for name in ("k_quant_type", "v_quant_type"):
        node.require(name, "NONE")
    node.ignore("kv_cache_bit_width", "qk_norm_epsilon", "q_norm_epsilon", "k_norm_epsilon")
    heads, shared = (int(node.attribute(n, 0)) for n in ("num_heads", "kv_num_heads"))
    if shared < 1 or heads % shared:
        node.refuse(f"kv_num_heads = {shared}", f"it does not divide {heads} heads")
    past = 0
    if node.given(3) is not None:
        past = _shape(node.operand(3))[2]
        if past == DYNAMIC:
            node.refuse("past_key", "only the batch may be dynamic")
    total = _constant(node, _TOTAL)
    return _Attention(node, heads, shared, past, None if total is None else int(total.reshape(())))


def _group_query_attention(node: Node) -> Sequence[Value]:
    """Inputs queries, keys, values, their past, lengths, the longest, cosines and sines, and more."""
    a = _built(node)
    query, key, value = a.operands()
    batch, steps, _, size = _shape(query)
    if len(node.proto.output) > 3 and node.proto.output[3]:
        node.refuse("output_qk", "scores are not computed apart")
    if a.past == 0 and a.total not in (None, steps):
        node.refuse(f"total_sequence_length = {a.total}", f"{steps} steps have no past")
    place = a.place(steps)
    if node.attribute("do_rotary", 0):
        query, key = (a.turned(v, place) for v in (query, key))
    else:
        node.ignore("rotary_interleaved")
    key, value = (_turned(node, v) for v in (key, value))
    present = [a.kept(3 + n, v, place) for n, v in enumerate((key, value))]
    causal, window = bool(node.attribute("causal", 1)), int(node.attribute("local_window_size", -1))
    # Of what the step can see nothing more is read.
    keys = a.total or a.room or steps
    if place.first is not None:
        keys = place.first + steps
    reads = [_slice(node, v, 2, 0, keys) for v in present]
    if place.first == 0:
        reads = [key, value]
    if steps > 1:
        reads = [
            node.emit(graph.ReshapeOp, v, shape=[batch, a.shared, 1, keys, size]) for v in reads
        ]
        query = _turned(node, query)
    else:
        query = node.emit(graph.ReshapeOp, query, shape=[batch, a.heads, 1, size])
    query = a.parted(query, steps)
    static = place.first is not None and window <= 0
    mask = [] if static else [a.seen(place, steps, keys, causal, window)]
    y = _attended(a, [query, *reads], mask, {"causal": place.first} if static and causal else {})
    if place.first is None:
        y = _fitting(a, y, place, steps)
    y = node.emit(graph.ReshapeOp, y, shape=[batch, a.heads, steps, size])
    y = _turned(node, y) if steps > 1 else y
    y = node.emit(graph.ReshapeOp, y, shape=[batch, steps, a.heads * size])
    return [y, *present][: len(node.proto.output)]


def _attended(
    a: _Attention, operands: Sequence[SSAValue], mask: Sequence[SSAValue], causal: dict[str, int | None]
) -> SSAValue:  # fmt: skip
    node = a.node
    query, key, value = operands
    grouped = len(_shape(query)) == 5
    steps, keys, size = _shape(query)[3] if grouped else 1, _shape(key)[-2], _shape(query)[-1]
    scale = float(node.attribute("scale", 0.0)) or size**-0.5
    softcap = float(node.attribute("softcap", 0.0))
    added, sink = a.added(keys, steps), a.sink(steps, query)
    if steps == 1:
        causal = {}
    if softcap > 0 or sink is not None:
        if causal:
            seen = np.tri(steps, keys, causal["causal"] or 0, dtype=bool)
            mask = [*mask, node.tensor(seen)]
        return a.written_out(
            query, key, value, mask, scale, softcap=softcap, added=added, sink=sink
        )
    if added is not None and mask:
        hidden = np.array(-np.inf, numpy_dtype(tensor_type(added).element_type))
        mask = [node.emit(graph.WhereOp, mask[0], added, node.tensor(hidden))]
    elif added is not None:
        mask = [added]
    return node.emit(graph.AttentionOp, query, key, value, *mask, scale=scale, **causal)


def _fitting(a: _Attention, y: SSAValue, place: _Place, steps: int) -> SSAValue:
    """`y`, but NaN for a step that ends behind the cache."""
    node = a.node
    assert place.places is not None
    dtype = numpy_dtype(tensor_type(place.places).element_type)
    ones = [1] * (len(_shape(y)) - 1)
    first = node.emit(graph.ReshapeOp, place.places, shape=[_shape(place.places)[0], *ones])
    last = node.tensor(np.array(a.room - steps, dtype))
    fits = node.emit(graph.CompareOp, first, last, predicate="le")
    element = numpy_dtype(tensor_type(y).element_type)
    return node.emit(graph.WhereOp, fits, y, node.tensor(np.array(np.nan, element)))


MICROSOFT: dict[str, Handler] = {"GroupQueryAttention": _group_query_attention}
