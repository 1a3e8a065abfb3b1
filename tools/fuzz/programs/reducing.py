"""Steps that reduce, search and sort, and matrix products."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from xdsl.dialects.builtin import f32, i1
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.nibbles import in_panels, packed_nibbles
from irkit.dialects.types import DYNAMIC, is_float, numpy_dtype
from tools.fuzz.programs.facts import LARGEST, ROUNDING, Facts, added, hull, multiplied, summed
from tools.fuzz.programs.moving import static_axes
from tools.fuzz.programs.program import RandomProgram, element_of, shape_of


def reduce(p: RandomProgram, x: SSAValue) -> None:
    """Along one axis or more."""
    axes = p.axes(x)
    if not axes:
        return
    axes = [axes[d] for d in p.draw.axes(len(axes))]
    kind = p.draw.random.choice(("sum", "mean", "max", "min", "prod"))
    terms = math.prod(p.extents(x)[d] for d in axes)
    known = _reduced(kind, p.facts[x], terms)
    if known is None or (kind == "mean" and element_of(x) == i1):
        return
    keep = p.draw.chance(0.5)
    p.put(graph.ReduceOp, [x], known, terms=max(terms, 1), kind=kind, axes=axes, keepdims=keep)


def _reduced(kind: str, known: Facts, terms: int) -> Facts | None:
    if kind in ("max", "min"):
        return known if terms else replace(known, finite=False)
    if kind == "sum":
        return hull(summed(known, terms), Facts(0.0, 0.0)) if terms else Facts(0.0, 0.0)
    if kind == "mean":
        return replace(known, whole=False, finite=known.finite and terms > 0)
    size = max(known.size, 1.0)
    if terms > 16 or size**terms > 1e15:
        return None
    error = terms * known.error * size ** max(terms - 1, 0)
    return Facts(-(size**terms), size**terms, error, known.whole, known.finite)


def argmax(p: RandomProgram, x: SSAValue) -> None:
    """Of exact values."""
    shape = shape_of(x)
    axes = [d for d in p.axes(x) if shape[d] != 0]
    if not axes or not p.facts[x].exact:
        return
    axis, keep = p.draw.random.choice(axes), p.draw.chance(0.5)
    p.put(graph.ArgmaxOp, [x], Facts(0.0, p.extents(x)[axis] - 1), axis=axis, keepdims=keep)


def cumsum(p: RandomProgram, x: SSAValue) -> None:
    """From either end."""
    axes = p.axes(x)
    if not axes:
        return
    axis = p.draw.random.choice(axes)
    terms = max(p.extents(x)[axis], 1)
    known = hull(summed(p.facts[x], terms), Facts(0.0, 0.0), p.facts[x])
    flags = {"exclusive": p.draw.chance(0.5), "reverse": p.draw.chance(0.5)}
    p.put(graph.CumSumOp, [x], known, terms=terms, axis=axis, **flags)


def top_k(p: RandomProgram, x: SSAValue) -> None:
    """Of exact values."""
    shape = shape_of(x)
    axes = [d for d in static_axes(shape) if shape[d] > 0]
    if not axes or not p.facts[x].exact:
        return
    axis = p.draw.random.choice(axes)
    where = Facts(0.0, shape[axis] - 1)
    k, largest = p.draw.random.randint(1, shape[axis]), p.draw.chance(0.5)
    p.put(graph.TopKOp, [x], p.facts[x], where, k=k, axis=axis, largest=largest)


def softmax(p: RandomProgram, x: SSAValue) -> None:
    """Along any axis."""
    axes, known = p.axes(x), p.facts[x]
    if not axes or known.error > 0.01:
        return
    axis = p.draw.random.choice(axes)
    facts = Facts(0.0, 1.0, 4 * known.error, False, known.finite)
    p.put(graph.SoftmaxOp, [x], facts, terms=8, axis=axis)


def layer_norm(p: RandomProgram, x: SSAValue) -> None:
    """Along the last dimension, centred or not. What x is wrong by grows with the reciprocal of the root."""
    shape, known, element = shape_of(x), p.facts[x], element_of(x)
    if not shape or shape[-1] in (DYNAMIC, 0) or not is_float(element) or known.error > 1e-3:
        return
    code = numpy_dtype(element).char
    if known.size > min(LARGEST[code], 1e12) ** 0.5:
        return
    bound, epsilon = shape[-1] ** 0.5, p.draw.random.choice((0.5, 4.0))
    wrong = 4 * (known.error + 4 * ROUNDING[code] * known.size * shape[-1]) / epsilon**0.5
    facts = Facts(-bound, bound, wrong * (1 + bound), False, known.finite)
    props = {"epsilon": epsilon, "centred": p.draw.chance(0.6)}
    p.put(graph.LayerNormOp, [x], facts, terms=8 + shape[-1], **props)


def expression(p: RandomProgram, x: SSAValue) -> None:
    """Elements moved, padded and chosen by their indices; what is largest over windows."""
    shape, known = shape_of(x), p.facts[x]
    if not shape or DYNAMIC in shape or 0 in shape:
        return
    rest = [f"i{d}" for d in range(len(shape) - 1)]
    lead, last = "".join(f"{i}, " for i in rest), shape[-1]
    moved = f"O({lead}j) = X({lead}{last - 1} - j)"
    padded = (
        f"O({lead}j) = j >= 1 && j <= {last} ? X({lead}j - 1) : X({lead}0) where j in 0:{last + 2}"
    )
    chosen = f"O({lead}j) = j % 2 == 0 ? X({lead}j / 2) : X({lead}j)"
    texts = [moved, padded, chosen]
    if last > 1 and element_of(x) != i1:
        texts.append(f"O({lead}j) max=! X({lead}j + k) where k in 0:2")
    p.put(graph.ExpressionOp, [x], known, terms=2, text=p.draw.random.choice(texts))


def attention(p: RandomProgram, x: SSAValue) -> None:
    """Of x to constants or to itself; masked, causal, or both."""
    shape, known, element = shape_of(x), p.facts[x], element_of(x)
    if len(shape) < 2 or not is_float(element) or not known.finite or DYNAMIC in shape[-2:]:
        return
    if known.size > 8 or known.error > 1e-4 or 0 in shape:
        return
    keys, columns = p.draw.random.choice((1, 2, 5)), p.draw.random.choice((1, 3))
    lead = [1] * (len(shape) - 2)
    operands = [x, x, x]
    if p.draw.chance(0.6):
        # Not of specials: what is NaN or infinite and hidden may show or not.
        sizes = ([*lead, keys, shape[-1]], [*lead, keys, columns])
        arrays = [
            p.draw.rng.standard_normal(s).clip(-2, 2).astype(numpy_dtype(element)) for s in sizes
        ]
        operands = [x, *(p.constant(a) for a in arrays)]
    rows, seen = shape[-2], shape_of(operands[1])[-2]
    props = {"causal": p.draw.random.randint(0, 2)} if p.draw.chance(0.4) else {}
    if p.draw.chance(0.4):
        mask = np.ones((rows, seen), bool)
        mask[:, 1:] = p.draw.rng.random((rows, seen - 1)) < 0.5
        operands.append(p.constant(mask))
    elif p.draw.chance(0.4):
        added = p.draw.rng.standard_normal((rows, seen)).clip(-2, 2)
        operands.append(p.constant(added.astype(numpy_dtype(element))))
    value = p.facts[operands[2]]
    spread = 40 * known.error * max(known.size, 1.0) * shape[-1]
    facts = Facts(value.low, value.high, value.error + spread * value.size, False)
    p.put(graph.AttentionOp, operands, facts, terms=64, scale=0.5, **props)


def attention_gradients(p: RandomProgram, x: SSAValue) -> None:
    """Both gradients of an attention of x to constants, for a cotangent that is constant too."""
    shape, known, element = shape_of(x), p.facts[x], element_of(x)
    if (
        len(shape) < 2
        or DYNAMIC in shape
        or 0 in shape
        or numpy_dtype(element) not in (np.float32, np.float64)
    ):
        return
    if not known.finite or known.size > 8 or known.error > 1e-4:
        return
    keys, columns = p.draw.random.choice((1, 2, 5)), p.draw.random.choice((1, 3))
    lead, (rows, size) = shape[:-2], shape[-2:]
    one = [1] * len(lead)
    sizes = ([*one, keys, size], [*one, keys, columns], [*lead, rows, columns])
    arrays = [p.draw.rng.standard_normal(s).clip(-2, 2).astype(numpy_dtype(element)) for s in sizes]
    operands = [x, *(p.constant(a) for a in arrays)]
    props = {"causal": p.draw.random.randint(0, 2)} if p.draw.chance(0.4) else {}
    # Scores, their cotangents, and logarithms of sums of weights; errors of scores are those of weights.
    score, slope = size * known.size + 3.0, 4.0 * columns
    spread = 64 * (1 + slope) * (1 + size) * (1 + known.size)
    most = 4.0 * slope * size + score + slope
    facts = Facts(-most, most, known.error * spread, False)
    sums = p.put(graph.AttentionQueryGradientOp, operands, facts, terms=64, scale=0.5, **props)
    if sums is None:
        return
    most = 4.0 * rows * (slope * (known.size + 1) + 2)
    facts = Facts(-most, most, known.error * spread * 4 * rows, False)
    operands.append(sums)
    p.put(graph.AttentionKeyGradientOp, operands, facts, terms=64 * rows, scale=0.5, **props)


def matmul(p: RandomProgram, x: SSAValue) -> None:
    """By a constant, or by another value; batches of matrices broadcast."""
    shape = shape_of(x)
    if len(shape) < 2:
        return
    fits = [
        v
        for v in p.values
        if element_of(v) == element_of(x) and len(shape_of(v)) >= 2 and shape_of(v)[-2] == shape[-1]
    ]
    if fits and p.draw.chance(0.5):
        operands = [x, p.draw.random.choice(fits)]
    else:
        lead = [s for s in shape[:-2] if s != DYNAMIC and p.draw.chance(0.4)][-1:]
        columns = p.draw.random.choice((1, 2, 3, 5))
        if shape[-1] == DYNAMIC:
            return
        operands = [x, p.random_constant(element_of(x), [*lead, shape[-1], columns])]
        if DYNAMIC not in shape and p.draw.chance(0.3):
            operands = [p.random_constant(element_of(x), [columns, shape[-2]]), x]
    terms = max(p.extents(operands[0])[-1], 1)
    known = hull(summed(multiplied(*(p.facts[v] for v in operands)), terms), Facts(0.0, 0.0))
    p.put(graph.MatmulOp, operands, known, terms=terms)


def nibbles(p: RandomProgram, x: SSAValue) -> None:
    """By a constant matrix of 4-bit integers, with zero points or without."""
    shape, rng = shape_of(x), p.draw.rng
    if element_of(x) != f32 or len(shape) < 2 or shape[-1] in (DYNAMIC, 0) or shape[-1] % 2:
        return
    terms, columns, block = shape[-1], p.draw.random.choice((1, 3, 70)), 2
    blocks = terms // block
    arrays = [packed_nibbles(rng.integers(-8, 8, (terms, columns)))]
    for low, high in ((-2, 3), (-8, 8))[: p.draw.random.randint(1, 2)]:
        arrays.append(in_panels(rng.integers(low, high, (blocks, columns)).astype(np.float32)))
    most = 2.0 * (8 if len(arrays) == 2 else 16)
    known = summed(multiplied(p.facts[x], Facts(-most, most)), terms)
    operands = [x, *(p.constant(a) for a in arrays)]
    p.put(graph.NibbleMatmulOp, operands, known, terms=terms, block=block, columns=columns)


def gemm(p: RandomProgram, x: SSAValue) -> None:
    """With all that ONNX's has."""
    shape, element = shape_of(x), element_of(x)
    if len(shape) != 2 or shape[1] == DYNAMIC:
        return
    trans_a, trans_b = DYNAMIC not in shape and p.draw.chance(0.3), p.draw.chance(0.5)
    rows, terms = (shape[1], shape[0]) if trans_a else shape
    columns = p.draw.random.choice((1, 2, 3, 5))
    w = p.random_constant(element, [columns, terms] if trans_b else [terms, columns])
    operands = [x, w]
    if p.draw.chance(0.7):
        c = p.draw.random.choice(([], [1], [columns], [1, columns]))
        if rows != DYNAMIC and p.draw.chance(0.3):
            c = p.draw.random.choice(([rows, 1], [rows, columns]))
        operands.append(p.random_constant(element, c))
    alpha, beta = (float(p.draw.random.choice((1, 1, 1, 2, -1))) for _ in "ab")
    if is_float(element) and p.draw.chance(0.2):
        alpha = 0.5
    known = hull(summed(multiplied(p.facts[x], p.facts[w]), max(terms, 1)), Facts(0.0, 0.0))
    known = multiplied(known, Facts(alpha, alpha, whole=alpha != 0.5))
    if len(operands) == 3:
        known = added(known, multiplied(p.facts[operands[2]], Facts(beta, beta)))
    flags = {"trans_a": trans_a, "trans_b": trans_b, "alpha": alpha, "beta": beta}
    p.put(graph.GemmOp, operands, known, terms=max(terms, 1), **flags)


def positions(p: RandomProgram, x: SSAValue) -> None:
    """A constant range as large as a dimension of x, compared with x or added to it."""
    shape, element = shape_of(x), element_of(x)
    if not shape or shape[-1] in (DYNAMIC, 0) or element == i1:
        return
    steps = p.constant(np.arange(shape[-1]).astype(numpy_dtype(element)))
    p.put(graph.AddOp, [x, steps], added(p.facts[x], p.facts[steps]))


STEPS = [
    reduce, reduce, reduce, argmax, cumsum, nibbles, top_k, softmax, matmul, matmul, gemm, positions,
    attention, attention_gradients, layer_norm, expression,
]  # fmt: skip
