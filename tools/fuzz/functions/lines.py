"""Kinds of lines of random functions."""

# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np

from tools.fuzz.functions.source import Source

BINARY = ("+", "-", "*", "+", "-", "*", "&", "|", "^", "//", "%", "/", "<", "<=", "==", "!=", ">")
FUNCTIONS = (
    "maximum",
    "minimum",
    "add",
    "subtract",
    "multiply",
    "logical_and",
    "logical_xor",
    "fmax",
    "left_shift",
    "floor_divide",
    "copysign",
    "hypot",
)
UNARY = (
    "abs",
    "negative",
    "sign",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "square",
    "isnan",
    "logical_not",
    "positive",
    "invert",
    "signbit",
    "isfinite",
    "sqrt",
)
INEXACT = ("exp", "sin", "tanh", "log1p", "arctan", "cbrt", "expm1")
REDUCTIONS = ("sum", "max", "min", "prod", "any", "all", "argmax", "argmin", "mean", "std", "var")
NUMBERS = (
    "2",
    "1",
    "-1",
    "0.5",
    "3",
    "-2.25",
    "True",
    "0",
    "7",
    "np.float32(1.5)",
    "np.int8(3)",
    "np.uint8(200)",
)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def binary(s: Source) -> None:
    """Two operands with broadcasting, one of them perhaps a number."""
    rng, new = s.rng, s.name()
    a, b = s.pick(), s.pick()
    if rng.random() < 0.35:
        b = rng.choice(NUMBERS)
    if rng.random() < 0.3:
        a, b = b, a
    op = rng.choice(BINARY)
    if rng.random() < 0.25:
        s.line(f"{new} = np.{rng.choice(FUNCTIONS)}({a}, {b})", new)
    elif op in ("<", "<=", "==", "!=", ">") and s.inexact:
        return
    else:
        s.line(f"{new} = {a} {op} {b}", new)


def unary(s: Source) -> None:
    """An elementwise function."""
    rng, new, a = s.rng, s.name(), s.pick()
    if rng.random() < 0.12:
        s.line(f"{new} = np.{rng.choice(INEXACT)}({a})", new)
        s.inexact = True
    elif not s.inexact:
        s.line(f"{new} = np.{rng.choice(UNARY)}({a})", new)


def _arrays(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0


def _index(s: Source, shape: tuple[int, ...]) -> str:
    rng, parts = s.rng, list[str]()
    for size in shape[: rng.randint(1, len(shape))] if 0 not in shape else ():
        kind = rng.random()
        if kind < 0.3:
            parts.append(str(rng.randint(-size, size - 1)))
        elif kind < 0.75:
            start, stop = (rng.choice(("", str(rng.randint(-size, size)))) for _ in "ab")
            parts.append(f"{start}:{stop}:{rng.choice(('', '2', '-1', '-2', '3'))}")
        elif kind < 0.85:
            parts.append(":")
        elif kind < 0.93:
            parts += ["None", ":"]
        else:
            parts.append(str([rng.randint(-size, size - 1) for _ in range(rng.randint(1, 3))]))
    if rng.random() < 0.2:
        parts.insert(rng.randint(0, len(parts)), "...")
    return ", ".join(parts) or "..."


def view(s: Source) -> None:
    """A slice, an element, a new axis, elements by a list."""
    a = s.pick(_arrays)
    if a:
        new = s.name()
        s.line(f"{new} = {a}[{_index(s, s.known[a].shape)}]", new)


def write(s: Source) -> None:
    """An assignment to a part of an array, through a mask, in place, to `out`."""
    rng, a = s.rng, s.pick(_arrays)
    if not a:
        return
    value = s.pick() if rng.random() < 0.6 else rng.choice(NUMBERS)
    kind = rng.choice(
        ("index", "index", "augmented", "mask", "whole", "out", "where", "copyto", "fill")
    )
    at = _index(s, s.known[a].shape)
    op = rng.choice(("+=", "-=", "*=", "|=", "&="))
    if kind == "index":
        s.line(f"{a}[{at}] {rng.choice(('=', '=', op))} {value}")
    elif kind == "augmented":
        s.line(f"{a} {op} {value}")
    elif kind == "whole":
        s.line(f"{a}[...] = {value}")
    elif kind == "fill":
        s.line(f"{a}.fill({rng.choice(('2', '0', '1'))})")
    elif s.inexact:
        return
    elif kind == "mask":
        s.line(
            f"{a}[{a} > {rng.choice(('0', '1', '2'))}] {rng.choice(('=', '+='))} {rng.choice(NUMBERS)}"
        )
    elif kind == "out":
        s.line(f"np.{rng.choice(('add', 'multiply', 'maximum'))}({a}, {value}, out={a})")
    elif kind == "where":
        s.line(f"np.subtract({a}, {value}, out={a}, where={a} > 0)")
    else:
        s.line(f"np.copyto({a}[...], {value}, where=np.asarray({a}) < 1)")


def reduction(s: Source) -> None:
    """Over one axis, several, or all."""
    rng, a, new = s.rng, s.pick(), s.name()
    if a is None:
        return
    rank = np.ndim(s.known[a])
    op = rng.choice(REDUCTIONS)
    axis = rng.choice(
        (
            "",
            "axis=0",
            "axis=-1",
            f"axis={rng.randint(-rank - 1, rank)}",
            "axis=(0, -1)",
            "axis=(1, 0)",
            "axis=()",
        )
    )
    more = ", ".join(p for p in (axis, rng.choice(("", "", "keepdims=True"))) if p)
    if s.inexact and op in ("any", "all", "argmax", "argmin"):
        return
    kinds = (
        ("float64", "float32") if np.asarray(s.known[a]).dtype.kind == "f" else ("int64", "float32")
    )
    dtype = (
        f", dtype=np.{rng.choice(kinds)}"
        if op in ("sum", "prod", "mean") and rng.random() < 0.2
        else ""
    )
    s.line(f"{new} = np.{op}({a}{', ' + more if more else ''}{dtype})", new)
    s.inexact |= op in ("mean", "std", "var", "prod", "sum") and new in s.known


def shaping(s: Source) -> None:
    """Reshapes and their kin; joins of arrays."""
    rng, a, new = s.rng, s.pick(_arrays), s.name()
    if a is None:
        return
    x = s.known[a]
    axis = rng.randint(-x.ndim, x.ndim - 1)
    order = rng.sample(range(x.ndim), x.ndim)
    s.line(
        new
        + " = "
        + rng.choice(
            (
                f"{a}.T",
                f"{a}.reshape(-1)",
                f"{a}.ravel()",
                f"np.transpose({a}, {tuple(order)})",
                f"{a}.copy()",
                f"np.flip({a}, {axis})",
                f"np.roll({a}, {rng.randint(-3, 3)}, {axis})",
                f"np.expand_dims({a}, {axis})",
                f"np.concatenate([{a}, {a}[::-1]], axis=0)",
                f"np.stack([{a}, {a}], axis={axis})",
                f"np.squeeze({a})",
                f"np.repeat({a}, {rng.randint(1, 3)}, axis={axis})",
                f"np.tile({a}, {rng.randint(1, 3)})",
                f"np.moveaxis({a}, 0, {axis})",
                f"np.swapaxes({a}, 0, {axis})",
                f"np.pad({a}, {rng.randint(0, 2)})",
                f"np.broadcast_to({a}, (2,) + {a}.shape).copy()",
                f"{a}.reshape({tuple(x.shape[::-1])})",
                f"np.diff({a}, axis={axis})",
                f"np.cumsum({a}, axis={axis})",
                f"np.atleast_2d({a})",
                f"np.zeros_like({a})",
                f"np.ones_like({a}, dtype=np.int16)",
                f"np.triu({a})",
                f"np.diagonal({a})",
                f"np.flip({a})",
                f"np.rot90({a})",
                f"np.array({a})",
                f"np.asarray({a})",
                f"np.ascontiguousarray({a})",
                f"np.array_split({a}, 2)[0]",
                f"np.split({a}, [1], axis={axis})[1]",
                f"np.sort({a}, axis={axis})",
                f"np.argsort({a}, axis={axis}, kind='stable')",
                f"np.meshgrid({a}[..., 0].ravel(), {a}.ravel()[:2])[0]",
                f"np.vstack([{a}, {a}])",
                f"np.clip({a}, -1, 2)",
                f"np.round({a}, {rng.choice((0, 1))})",
                f"np.cumprod({a}[:3], axis=0)",
                f"np.trace({a})",
            )
        ),
        new,
    )


def choosing(s: Source) -> None:
    """where, take, elements by an array of numbers."""
    if s.inexact:
        return
    rng, a, b, new = s.rng, s.pick(), s.pick(), s.name()
    if rng.random() < 0.5:
        value = b if rng.random() < 0.5 else rng.choice(NUMBERS)
        s.line(f"{new} = np.where({a} > {rng.choice(('0', '1'))}, {a}, {value})", new)
        return
    a = s.pick(_arrays)
    at = s.pick(lambda v: isinstance(v, np.ndarray) and v.dtype.kind in "iu" and v.size < 40)
    if not a or not at:
        return
    size = s.known[a].shape[0]
    s.line(
        new
        + " = "
        + rng.choice(
            (
                f"{a}[np.abs({at} % {size})]",
                f"np.take({a}, {at} % {size}, axis=0)",
                f"{a}.take({at} % 99, mode='wrap')",
                f"np.take({a}, {at}, axis=-1, mode='clip')",
                f"{a}[{at}[{at} > 0].sum() % {size}]",
                f"np.take_along_axis({a}, {at} % {size}, axis=0)",
            )
        ),
        new,
    )


def casting(s: Source) -> None:
    """To another dtype."""
    rng, a, new = s.rng, s.pick(), s.name()
    to = rng.choice(("float32", "float64", "int64", "int32", "int8", "uint8", "bool", "float16"))
    if a is None or (s.inexact and not to.startswith("f")):
        return
    if np.asarray(s.known[a]).dtype.kind == "f" and not to.startswith("f"):
        # What a float beyond an integer's range becomes, nobody says.
        s.line(f"{new} = np.clip(np.nan_to_num({a}), 0, 99).astype(np.{to})", new)
    else:
        s.line(f"{new} = {a}.astype(np.{to})", new)


def product(s: Source) -> None:
    """matmul, dot, outer, einsum."""
    rng, a, b, new = s.rng, s.pick(_arrays), s.pick(_arrays), s.name()
    if a is None or b is None:
        return
    s.line(
        new
        + " = "
        + rng.choice(
            (
                f"{a} @ {b}",
                f"{a} @ {b}.T",
                f"np.dot({a}, {b})",
                f"np.outer({a}, {b})",
                f"np.inner({a}, {b})",
                f"np.einsum('i...->...', {a})",
                f"np.einsum('ij,kj->ik', {a}, {b})",
                f"np.tensordot({a}, {b}, 1)",
                f"np.kron({a}, {b})",
                f"np.vdot({a}, {b})",
            )
        ),
        new,
    )
    s.inexact |= new in s.known


def loop(s: Source) -> None:
    """A loop that writes or carries arrays."""
    rng, a = s.rng, s.pick(_arrays)
    if a is None:
        return
    count, b = rng.choice((2, 3, 6, 9)), s.pick()
    body = rng.choice(
        (
            f"{a} += 1",
            f"{a}[i % {s.known[a].shape[0]}] = i",
            f"{a}[1:] += {a}[:-1]",
            f"{a}[...] = {a}[::-1]",
            f"{a}[i:] -= 1",
            f"{a}[0] = {a}[-1] + i",
            f"{a} += {b} * 0",
            f"{a}[{s.known[a].shape[0]} - 1] += {a}[0] * i",
        )
    )
    s.line(f"for i in range({count}): {body}")


KINDS = (
    binary,
    binary,
    binary,
    unary,
    unary,
    view,
    view,
    view,
    write,
    write,
    write,
    reduction,
    shaping,
    shaping,
    shaping,
    choosing,
    casting,
    product,
    loop,
)
