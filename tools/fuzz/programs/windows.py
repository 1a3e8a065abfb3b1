"""Steps that slide a window: convolution, pooling, and normalisation over channels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, is_float, numpy_dtype
from tools.fuzz.programs.facts import Facts, added, hull, multiplied, summed
from tools.fuzz.programs.program import ROWS, RandomProgram, element_of, shape_of


def image(p: RandomProgram, x: SSAValue) -> SSAValue | None:
    """x, or x reshaped, with a batch, channels and one to three spatial dimensions."""
    shape = shape_of(x)
    if len(shape) >= 3 and p.draw.chance(0.8):
        return x
    if DYNAMIC in shape[1:]:
        return None
    lead = shape[:1] if shape[:1] == [DYNAMIC] else [1]
    count = math.prod(shape[shape[:1] == [DYNAMIC] :])
    if count < 2:
        return None
    rest: list[int] = []
    for _ in range(p.draw.random.randint(1, 3)):
        factor = p.draw.random.choice([f for f in range(1, count + 1) if count % f == 0])
        rest.append(factor)
        count //= factor
    return p.put(graph.ReshapeOp, [x], p.facts[x], shape=[*lead, *rest, count])


def _choices(p: RandomProgram, count: int, *values: int) -> list[int]:
    return [p.draw.random.choice(values) for _ in range(count)]


def conv(p: RandomProgram, x: SSAValue) -> None:
    """Convolution with groups, strides, dilations, padding, bias."""
    x = image(p, x) or x
    shape, element = shape_of(x), element_of(x)
    rank = len(shape) - 2
    if rank < 1 or DYNAMIC in shape[1:] or 0 in shape:
        return
    channels = shape[1]
    group = p.draw.random.choice([g for g in (1, 1, 2, channels) if channels % g == 0])
    outputs = group * p.draw.random.choice((1, 2, 3))
    kernel = _choices(p, rank, 1, 1, 2, 3)
    w = p.random_constant(element, [outputs, channels // group, *kernel])
    operands = [x, w]
    if p.draw.chance(0.5):
        operands.append(p.random_constant(element, [outputs]))
    terms = math.prod(kernel) * channels // group
    known = hull(summed(multiplied(p.facts[x], p.facts[w]), terms), Facts(0.0, 0.0))
    if len(operands) == 3:
        known = added(known, p.facts[operands[2]])
    windows = {
        "strides": _choices(p, rank, 1, 1, 2),
        "pads": _choices(p, 2 * rank, 0, 0, 1, 2),
        "dilations": _choices(p, rank, 1, 1, 2),
        "group": group,
    }
    p.put(graph.ConvOp, operands, known, terms=terms, **windows)


def conv_transpose(p: RandomProgram, x: SSAValue) -> None:
    """Transposed convolution."""
    x = image(p, x) or x
    shape, element = shape_of(x), element_of(x)
    rank = len(shape) - 2
    if rank < 1 or DYNAMIC in shape[1:] or 0 in shape:
        return
    channels = shape[1]
    group = p.draw.random.choice([g for g in (1, 1, 2, channels) if channels % g == 0])
    outputs = p.draw.random.choice((1, 2))
    kernel = _choices(p, rank, 1, 2, 3)
    w = p.random_constant(element, [channels, outputs, *kernel])
    operands = [x, w]
    if p.draw.chance(0.5):
        operands.append(p.random_constant(element, [outputs * group]))
    terms = math.prod(kernel) * channels // group
    known = hull(summed(multiplied(p.facts[x], p.facts[w]), terms), Facts(0.0, 0.0))
    if len(operands) == 3:
        known = added(known, p.facts[operands[2]])
    windows = {
        "strides": _choices(p, rank, 1, 2),
        "pads": _choices(p, 2 * rank, 0, 0, 1),
        "dilations": _choices(p, rank, 1, 1, 2),
        "output_padding": _choices(p, rank, 0, 0, 1),
        "group": group,
    }
    p.put(graph.ConvTransposeOp, operands, known, terms=terms, **windows)


def pool(p: RandomProgram, x: SSAValue) -> None:
    """The four pools."""
    x = image(p, x) or x
    shape, known = shape_of(x), p.facts[x]
    rank = len(shape) - 2
    if rank < 1 or 0 in shape:
        return
    # Windows over the batch fit in the smallest run; nothing else is as large as what they give.
    least = p.extents(x, min(ROWS))[2:]
    kernel = [
        p.draw.random.choice((1, 2, 3) if s != DYNAMIC or e >= 5 else (1,))
        for s, e in zip(shape[2:], least, strict=True)
    ]
    windows: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": _choices(p, rank, 1, 1, 2, 3),
        "pads": _choices(p, 2 * rank, 0, 0, 1),
        "factor": 0 if DYNAMIC in shape[2:] else None,
    }
    if p.draw.chance(0.5):
        windows["dilations"] = _choices(p, rank, 1, 1, 2)
    if p.draw.chance(0.5):
        windows["ceil_mode"] = p.draw.chance(0.7)
    op = p.draw.random.choice(
        (graph.MaxPoolOp, graph.MaxPoolIndicesOp, graph.AveragePoolOp, graph.LpPoolOp)
    )
    terms = math.prod(kernel)
    if op is graph.MaxPoolOp:
        p.put(op, [x], known, **windows)
    elif op is graph.MaxPoolIndicesOp:
        if known.exact:
            many = math.prod(p.extents(x))
            p.put(op, [x], Facts(0.0, many), column_major=p.draw.chance(0.5), **windows)
    elif op is graph.AveragePoolOp:
        mean = hull(Facts(known.low, known.high, known.error, False, known.finite), Facts(0.0, 0.0))
        p.put(op, [x], mean, terms=terms, count_include_pad=p.draw.chance(0.5), **windows)
    elif known.exact and known.size < 20:
        power = p.draw.random.randint(1, 3)
        size = known.size * terms
        p.put(op, [x], Facts(0.0, size, 0.0, False, known.finite), terms=8, p=power, **windows)


def global_average(p: RandomProgram, x: SSAValue) -> None:
    """Mean over all of a channel."""
    x = image(p, x) or x
    if not is_float(element_of(x)) or 0 in shape_of(x):
        return
    known = p.facts[x]
    mean = Facts(known.low, known.high, known.error, False, known.finite)
    p.put(graph.GlobalAveragePoolOp, [x], mean, terms=math.prod(p.extents(x)[2:]) or 1)


def batch_norm(p: RandomProgram, x: SSAValue) -> None:
    """Scale, bias, mean and variance of each channel; of a convolution now and then."""
    shape, element = shape_of(x), element_of(x)
    if len(shape) < 2 or shape[1] == DYNAMIC or not is_float(element):
        return
    scale, bias, mean = (p.random_constant(element, [shape[1]]) for _ in "sbm")
    dtype = numpy_dtype(element)
    variance = p.constant((p.draw.rng.random(shape[1]) + 0.5).astype(dtype))
    centred = added(p.facts[x], Facts(-p.facts[mean].high, -p.facts[mean].low))
    known = multiplied(multiplied(centred, Facts(0.7, 1.5, 0.0, False)), p.facts[scale])
    known = added(known, p.facts[bias])
    p.put(graph.BatchNormOp, [x, scale, bias, mean, variance], known, terms=16, epsilon=1e-5)


def lrn(p: RandomProgram, x: SSAValue) -> None:
    """Over neighbouring channels."""
    known = p.facts[x]
    if known.size > 50 or known.error > 1e-4 or not known.finite:
        return
    facts = Facts(-known.size, known.size, 10 * known.error * (1 + known.size), False)
    weights = {"alpha": 0.5, "beta": p.draw.random.choice((0.5, 0.75)), "bias": 1.0}
    p.put(graph.LrnOp, [x], facts, terms=16, size=p.draw.random.randint(1, 4), **weights)


def softplus(p: RandomProgram, x: SSAValue) -> None:
    """log1p(exp(x)), as front ends write it."""
    known = p.facts[x]
    if known.size > 12 or not known.finite:
        return
    high = float(np.exp(known.size))
    power = p.put(graph.ExpOp, [x], Facts(0.0, high, known.error * high * 1.1, False), terms=4)
    if power is not None:
        facts = Facts(0.0, math.log1p(high), p.facts[power].error, False)
        p.put(graph.Log1pOp, [power], facts, terms=4)


STEPS = [conv, conv, conv_transpose, pool, pool, pool, global_average, batch_norm, lrn, softplus]
