"""Steps that compute element by element."""

from __future__ import annotations

import math
from dataclasses import replace

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.element_sets import SINGLES
from irkit.dialects.types import DYNAMIC, is_float, ui64
from tools.fuzz.programs.facts import Facts, added, hull, limits, multiplied, negated
from tools.fuzz.programs.program import RandomProgram, element_of, shape_of

# Functions without a jump and with a slope of 1 at most, by the range of their values.
GENTLE = {
    graph.TanhOp: (-1.0, 1.0),
    graph.SigmoidOp: (0.0, 1.0),
    graph.ErfOp: (-1.0, 1.0),
    graph.AtanOp: (-1.6, 1.6),
    graph.SinOp: (-1.0, 1.0),
    graph.CosOp: (-1.0, 1.0),
}
# Of two operands, that jump where one of them changes its sign: by the size of the result.
SIGNED = {
    graph.Atan2Op: lambda a: math.pi,
    graph.CopysignOp: lambda a: a.size,
    graph.ModOp: lambda a: math.inf,
    graph.RemOp: lambda a: a.size,
}
# Functions that jump, have poles or end somewhere: of exact values only. True: values are whole.
SUDDEN = {
    graph.FloorOp: True,
    graph.CeilOp: True,
    graph.RoundOp: True,
    graph.SqrtOp: False,
    graph.CbrtOp: False,
    graph.LogOp: False,
    graph.Log10Op: False,
    graph.Log2Op: False,
    graph.Log1pOp: False,
    graph.AcosOp: False,
    graph.AcoshOp: False,
    graph.AsinOp: False,
    graph.AsinhOp: False,
    graph.AtanhOp: False,
    graph.TanOp: False,
}
GROWING = {
    graph.ExpOp: math.exp,
    graph.Exp2Op: lambda x: 2.0**x,
    graph.Expm1Op: math.exp,
    graph.SinhOp: math.sinh,
    graph.CoshOp: math.cosh,
}
PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")


def gentle(p: RandomProgram, x: SSAValue) -> None:
    """A bounded smooth function."""
    op = p.draw.random.choice(list(GENTLE))
    low, high = GENTLE[op]
    slope = 1.2 if op is graph.ErfOp else 1.0
    known = p.facts[x]
    p.put(op, [x], Facts(low, high, slope * known.error, False, known.finite), terms=2)


def sudden(p: RandomProgram, x: SSAValue) -> None:
    """A function that jumps."""
    op, known = p.draw.random.choice(list(SUDDEN)), p.facts[x]
    if not known.exact:
        return
    if SUDDEN[op]:
        p.put(op, [x], replace(known, low=known.low - 1, high=known.high + 1, whole=True))
    else:
        # Of whole numbers up to `size` none of them is larger than tan near a pole.
        most = max(known.size, 1.0) if known.whole and known.size < 1e4 else math.nan
        p.put(op, [x], Facts(-1e3 * most, 1e3 * most, 0.0, False, False), terms=4)


def growing(p: RandomProgram, x: SSAValue) -> None:
    """A function that grows exponentially."""
    op, known = p.draw.random.choice(list(GROWING)), p.facts[x]
    if known.size > 12:
        return
    high = GROWING[op](known.size)
    finite = known.finite
    p.put(op, [x], Facts(-high, high, known.error * high * 1.1, False, finite), terms=4)


def plain(p: RandomProgram, x: SSAValue) -> None:
    """relu, abs, neg, not, is_nan."""
    op, known = p.draw.random.choice(list(PLAIN)), p.facts[x]
    if op is graph.IsNanOp and not known.exact:
        return
    p.put(op, [x], PLAIN[op](known))


def _magnitude(x: Facts) -> Facts:
    return replace(x, low=0.0, high=x.size)


PLAIN = {
    graph.ReluOp: lambda x: replace(x, low=max(x.low, 0.0), high=max(x.high, 0.0)),
    graph.AbsOp: _magnitude,
    graph.NegOp: negated,
    graph.NotOp: lambda x: Facts(-math.inf, math.inf),
    graph.IsNanOp: lambda x: Facts(0.0, 1.0),
}


def clip(p: RandomProgram, x: SSAValue) -> None:
    """Limits, in order."""
    low, high = sorted(p.draw.random.choices((-2.0, -1.0, 0.0, 0.5, 1.0, 6.0), k=2))
    known = p.facts[x]
    whole = known.whole and low == round(low) and high == round(high)
    p.put(graph.ClipOp, [x], Facts(low, high, known.error, whole, known.finite), min=low, max=high)


def cast(p: RandomProgram, x: SSAValue) -> None:
    """To any type that can hold the values; floats wrap and saturate nowhere."""
    to, known = p.draw.element(), p.facts[x]
    low, high = limits(to)
    of_float = is_float(element_of(x))
    if of_float and not is_float(to):
        if not (known.exact and known.finite and low <= known.low and known.high <= high):
            return
        known = replace(known, whole=True)
        if to == i1:
            known = Facts(0.0, 1.0)
    elif to == i1:
        known = Facts(0.0, 1.0)
    p.put(graph.CastOp, [x], known, to=to)


def companion(p: RandomProgram, x: SSAValue) -> SSAValue:
    """A value of x's element type that broadcasts with it: x, another, a part of one, or a constant."""
    element, shape = element_of(x), shape_of(x)
    fits = [
        v
        for v in p.values
        if element_of(v) == element and broadcast(shape_of(v), shape) is not None
    ]
    kind = p.draw.random.random()
    if kind < 0.5:
        return p.draw.random.choice(fits)
    if kind < 0.6 and (part := _first_of(p, x)) is not None:
        return part
    kept = [1 if s == DYNAMIC or p.draw.chance(0.35) else s for s in shape]
    if p.draw.chance(0.1):
        kept = [
            p.draw.random.choice((2, 3)) if s == 1 and n == 1 else s
            for s, n in zip(kept, shape, strict=True)
        ]
    if p.draw.chance(0.1) and len(kept) < 4:
        kept = [p.draw.random.choice((1, 2)), *kept] if DYNAMIC not in shape else kept
    else:
        kept = kept[p.draw.random.randint(0, len(kept)) :]
    return p.random_constant(element, kept)


def broadcast(a: list[int], b: list[int]) -> list[int] | None:
    """The shape of two that broadcast together; None if they do not."""
    rank = max(len(a), len(b))
    pairs = zip([1] * (rank - len(a)) + a, [1] * (rank - len(b)) + b, strict=True)
    shape = [s if t == 1 else t if s == 1 or s == t else None for s, t in pairs]
    return None if None in shape else shape


def _first_of(p: RandomProgram, x: SSAValue) -> SSAValue | None:
    """x cut to size 1 along some dimensions."""
    shape = shape_of(x)
    sizes = [s if s == DYNAMIC or p.draw.chance(0.5) else 1 for s in shape]
    if not shape or 0 in shape:
        return None
    offsets = [
        0 if s in (DYNAMIC, n) else p.draw.random.randrange(n)
        for s, n in zip(sizes, shape, strict=True)
    ]
    return p.put(
        graph.SliceOp, [x], p.facts[x], offsets=offsets, sizes=sizes, strides=[1] * len(shape)
    )


def pair(p: RandomProgram, x: SSAValue) -> list[SSAValue]:
    """x and a companion, in some order."""
    both = [x, companion(p, x)]
    p.draw.random.shuffle(both)
    return both


def arithmetic(p: RandomProgram, x: SSAValue) -> None:
    """add, sub, mul."""
    operands = pair(p, x)
    a, b = (p.facts[v] for v in operands)
    if element_of(x) == i1:
        a = b = Facts(0.0, 1.0)
    op = p.draw.random.choice((graph.AddOp, graph.SubOp, graph.MulOp))
    known = {
        graph.AddOp: lambda: added(a, b),
        graph.SubOp: lambda: added(a, negated(b)),
        graph.MulOp: lambda: multiplied(a, b),
    }[op]()
    p.put(op, operands, known)


def fused(p: RandomProgram, x: SSAValue) -> None:
    """fma of f32 and f64."""
    if element_of(x) not in SINGLES:
        return
    operands = [*pair(p, x), companion(p, x)]
    a, b, c = (p.facts[v] for v in operands)
    p.put(graph.FmaOp, operands, added(multiplied(a, b), c))


def extremum(p: RandomProgram, x: SSAValue) -> None:
    """max, min."""
    operands = pair(p, x)
    op = p.draw.random.choice((graph.MaxOp, graph.MinOp))
    p.put(op, operands, hull(*(p.facts[v] for v in operands)))


def signed(p: RandomProgram, x: SSAValue) -> None:
    """copysign, angles and remainders of floats that are exact."""
    op, operands = p.draw.random.choice(list(SIGNED)), pair(p, x)
    known = [p.facts[v] for v in operands]
    if not (is_float(element_of(x)) and all(v.exact and v.finite for v in known)):
        return
    # Zeros of one sign may come out with the other.
    size = SIGNED[op](known[0])
    p.put(op, operands, Facts(-size, size, 0.0, False, False), terms=4)


def compare(p: RandomProgram, x: SSAValue) -> None:
    """Of exact values."""
    operands = pair(p, x)
    if all(p.facts[v].exact for v in operands):
        predicate = p.draw.random.choice(PREDICATES)
        p.put(graph.CompareOp, operands, Facts(0.0, 1.0), predicate=predicate)


def divide(p: RandomProgram, x: SSAValue) -> None:
    """By what is not zero, or for exact floats by anything that is given from outside."""
    y = companion(p, x)
    a, b = p.facts[x], p.facts[y]
    if not is_float(element_of(x)):
        p.put(graph.DivOp, [x, y], Facts(-max(a.size, 1) - 1, max(a.size, 1) + 1))
        return
    least = min(abs(b.low), abs(b.high)) if b.low * b.high > 0 else 0.0
    if least > 0.05:
        size = a.size / least
        error = a.error / least + b.error * size / least
        p.put(graph.DivOp, [x, y], Facts(-size, size, error, False, a.finite and b.finite), terms=2)
    elif a.exact and b.exact and b.whole and not isinstance(y.owner, graph.GraphOp):
        p.put(graph.DivOp, [x, y], Facts(-a.size, a.size, 0.0, False, False), terms=2)


def power(p: RandomProgram, x: SSAValue) -> None:
    """To small whole powers."""
    y = companion(p, x)
    a, b = p.facts[x], p.facts[y]
    if not is_float(element_of(x)):
        p.put(graph.PowOp, [x, y], Facts(-math.inf, math.inf))
        return
    if not (a.exact and b.exact and b.whole and b.size <= 6):
        return
    size = max(a.size, 1.0) ** b.size
    if a.whole:
        p.put(graph.PowOp, [x, y], Facts(-size, size, 0.0, False, False), terms=4)


def integral(p: RandomProgram, x: SSAValue) -> None:
    """Bits, shifts, remainders."""
    if is_float(element_of(x)):
        return
    op = p.draw.random.choice(
        (graph.AndOp, graph.OrOp, graph.XorOp, graph.ModOp, graph.RemOp, graph.ShiftLeftOp,
         graph.ShiftRightOp)
    )  # fmt: skip
    if element_of(x) == ui64 and p.draw.random.random() < 0.5:
        op = graph.ThreefryOp
    p.put(op, pair(p, x), Facts(-math.inf, math.inf))


def where(p: RandomProgram, x: SSAValue) -> None:
    """By a condition of the program's, or one made of x."""
    shape = shape_of(x)
    conditions = [
        v for v in p.values if element_of(v) == i1 and broadcast(shape_of(v), shape) is not None
    ]
    if not conditions:
        return compare(p, x)
    operands = pair(p, x)
    known = hull(*(p.facts[v] for v in operands))
    p.put(graph.WhereOp, [p.draw.random.choice(conditions), *operands], known)


STEPS = [
    gentle, sudden, sudden, growing, plain, plain, clip, cast, cast, arithmetic, arithmetic, arithmetic,
    extremum, fused, compare, divide, signed, power, integral, integral, where,
]  # fmt: skip
