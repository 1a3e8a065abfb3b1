"""Operators that read words: n-grams counted, and strings that only the host could normalise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NoReturn

import numpy as np
from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.frontends.onnx.handlers.arithmetic import cast, element_of
from irkit.frontends.onnx.handlers.gather import slice_along
from irkit.frontends.onnx.handlers.ml_scores import beside
from irkit.frontends.onnx.node import Handler, Node, Value
from irkit.frontends.onnx.string_steps import why_no_step
from irkit.weights import Array

MODES = ("TF", "IDF", "TFIDF")


def _string_normalizer(node: Node) -> NoReturn:
    """What could be done is a step of the host already."""
    value = node.given(0)
    rank = np.ndim(value) if isinstance(value, np.ndarray) else node.type_of(0).get_num_dims()
    node.refuse(
        "",
        why_no_step(node.proto, rank)
        or "its strings are made by other operators than Flatten, Identity, Reshape, Squeeze, Unsqueeze and "
        "StringNormalizer of an input: only the host normalises strings, before the program runs",
    )


# TfIdfVectorizer


def _tf_idf(node: Node) -> Sequence[Value]:
    """Counts of n-grams a row, of words that stand side by side or with up to `max_skip_count` between."""
    x = _rows(node)
    mode, longest = node.attribute("mode", ""), node.attribute("max_gram_length", 1)
    shortest, skips = node.attribute("min_gram_length", 1), node.attribute("max_skip_count", 0)
    if mode not in MODES:
        node.refuse(f"mode = {mode!r}", f"expected {', '.join(MODES)}")
    if not 0 < shortest <= longest or skips < 0:
        node.refuse(
            "min_gram_length, max_gram_length, max_skip_count", "they make no sense together"
        )
    grams = _grams(node)
    places = np.array(node.attribute("ngram_indexes", []), np.int64)
    weights = np.array(node.attribute("weights", []), np.float32)
    numbers = np.cumsum([0, *(len(g) for g in grams)])
    if len(places) != numbers[-1] or len(weights) not in (0, len(places)) or (places < 0).any():
        node.refuse("ngram_indexes, weights", f"expected one for each of {numbers[-1]} n-grams")
    parts: list[SSAValue] = []
    which: list[Array] = []
    for length, (pool, (start, stop)) in enumerate(zip(grams, pairwise(numbers), strict=True), 1):
        if not shortest <= length <= longest or not len(pool):
            continue
        found = _counts(node, x, pool, range(1, 2 if length == 1 else skips + 2))
        if found is not None:
            parts.append(found)
            which.append(places[start:stop])
    size = int(places.max()) + 1
    counts = _placed(node, x, parts, np.concatenate([np.empty(0, np.int64), *which]), size)
    if mode != "TF" and len(weights):
        counts = _weighted(node, counts, mode, _by_place(node, places, weights, size))
    elif mode == "IDF":
        counts = _weighted(node, counts, mode, np.ones(size, np.float32))
    one_row = node.type_of(0).get_num_dims() == 1
    return [node.emit(graph.ReshapeOp, counts, shape=[size]) if one_row else counts]


def _rows(node: Node) -> SSAValue:
    """The input as rows of integers, of a known number of words."""
    x = node.operand(0)
    if (x in node.strings.values) != node.has("pool_strings"):
        node.refuse(node.name_of(0), "it has not what the n-grams are made of, strings or integers")
    if element_of(x) not in (i32, i64):
        node.refuse(node.name_of(0), f"of {x.type}: expected strings, int32 or int64")
    shape = tensor_type(x).get_shape()
    if len(shape) not in (1, 2):
        node.refuse(node.name_of(0), f"of {x.type}: expected C words, or rows of them")
    if shape[-1] == DYNAMIC:
        node.refuse(node.name_of(0), "its number of words is open, and n-grams mix them")
    x = cast(node, x, i64)
    return node.emit(graph.ReshapeOp, x, shape=[1, *shape]) if len(shape) == 1 else x


def _grams(node: Node) -> list[Array]:
    """The n-grams of 1, 2, ... words: one a row."""
    texts = node.attribute("pool_strings", [])
    pool = (
        node.strings.codes(texts)
        if len(texts)
        else np.array(node.attribute("pool_int64s", []), np.int64)
    )
    starts = [*node.attribute("ngram_counts", []), len(pool)]
    if len(starts) < 2 or starts[0] or not len(pool) or any(a > b for a, b in pairwise(starts)):
        node.refuse("ngram_counts", "expected where the n-grams of each length begin in the pool")
    found: list[Array] = []
    for length, (start, stop) in enumerate(pairwise(starts), 1):
        if (stop - start) % length:
            node.refuse("ngram_counts", f"{stop - start} words are no {length}-grams")
        grams = pool[start:stop].reshape(-1, length)
        if len({tuple(g) for g in grams.tolist()}) != len(grams):
            node.refuse("pool", "an n-gram twice")
        found.append(grams)
    return found


def _counts(node: Node, x: SSAValue, pool: Array, strides: Sequence[int]) -> SSAValue | None:
    """How often rows have each n-gram of a pool, rows×n-grams, float32; None if rows are too short."""
    words, length = tensor_type(x).get_shape()[1], pool.shape[1]
    total: SSAValue | None = None
    for stride in strides:
        begins = words - (length - 1) * stride
        if begins < 1:
            break
        hits: SSAValue | None = None
        for number in range(length):
            window = slice_along(node, x, 1, number * stride, begins)
            window = node.emit(graph.ReshapeOp, window, shape=[*tensor_type(window).get_shape(), 1])
            same = node.emit(
                graph.CompareOp, window, node.tensor(pool[:, number].copy()), predicate="eq"
            )
            hits = same if hits is None else node.emit(graph.AndOp, hits, same)
        assert hits is not None
        found = node.emit(
            graph.ReduceOp, cast(node, hits, f32), kind="sum", axes=[1], keepdims=False
        )
        total = found if total is None else node.emit(graph.AddOp, total, found)
    return total


def _placed(
    node: Node, x: SSAValue, parts: Sequence[SSAValue], places: Array, size: int
) -> SSAValue:
    """Columns of counts where the output has them, those of one place added up; 0 where there are none."""
    none = slice_along(node, x, 1, 0, 1)
    none = cast(node, node.emit(graph.CompareOp, none, none, predicate="ne"), f32)
    columns = beside(node, [*parts, none])
    total: SSAValue | None = None
    for chosen in _rounds(places.tolist(), size):
        found = node.emit(graph.GatherOp, columns, node.tensor(chosen), axis=1)
        total = found if total is None else node.emit(graph.AddOp, total, found)
    assert total is not None
    return total


def _rounds(places: Sequence[int], size: int) -> list[Array]:
    """Columns of places, so often that each column is once in one of them; the last column is of none."""
    rounds = [np.full(size, len(places), np.int64)]
    met = Counter[int]()
    for column, place in enumerate(places):
        if met[place] == len(rounds):
            rounds.append(np.full(size, len(places), np.int64))
        rounds[met[place]][place] = column
        met[place] += 1
    return rounds


def _by_place(node: Node, places: Array, weights: Array, size: int) -> Array:
    """The weight of each output."""
    found = np.zeros(size, np.float32)
    found[places] = weights
    if (found[places] != weights).any():
        node.refuse("weights", "n-grams of one place have several")
    return found


def _weighted(node: Node, counts: SSAValue, mode: str, weights: Array) -> SSAValue:
    """Counts times weights, or weights where there is a count."""
    given = node.tensor(weights)
    if mode == "TFIDF":
        return node.emit(graph.MulOp, counts, given)
    zero = node.tensor(np.array(0, np.float32))
    some = node.emit(graph.CompareOp, counts, zero, predicate="gt")
    return node.emit(graph.WhereOp, some, given, zero)


HANDLERS: dict[str, Handler] = {"StringNormalizer": _string_normalizer, "TfIdfVectorizer": _tf_idf}
