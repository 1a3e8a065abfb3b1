"""What becomes of a stored element before it is multiplied or reduced: steps, as text and as a table.

    steps = ["f64 x", "mul s0 a0", "div s1 a1"]

Each is a name and the values that it is of: `x`, the stored element; `a0`, `a1`, ..., the operands of the op that
are read beside it; `s0`, `s1`, ..., the results of the steps before. The last one's is the result, `x` if there is
none. An operand of one element is a number, one of rank 1 is read at the element's column, one of rows×1 at its row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32, f64, i1
from xdsl.ir import Attribute

from irkit.weights import Array

Value = tuple[str, int]
"""A letter (x, a or s) and a number."""


@dataclass(frozen=True)
class Step:
    """A function of scalars: its meaning in NumPy, and its text in Numba with places for operands and for the
    result's type (t).

    `truths`: how many of its first operands are i1. `result`: i1 or a float; None is the type of the others, which
    is one.
    """

    operands: int
    meaning: Callable[..., Array]
    text: str
    truths: int = 0
    result: Attribute | None = None


def _cast(dtype: type[Any]) -> Callable[[Array], Array]:
    return lambda x: x.astype(dtype)


_COMPARISONS = {
    "eq": (np.equal, "=="),
    "ge": (np.greater_equal, ">="),
    "gt": (np.greater, ">"),
    "le": (np.less_equal, "<="),
    "lt": (np.less, "<"),
    "ne": (np.not_equal, "!="),
}
STEPS: Mapping[str, Step] = {
    "abs": Step(1, np.abs, "abs({0})"),
    "add": Step(2, np.add, "{0} + {1}"),
    "div": Step(2, np.divide, "{0} / {1}"),
    "f32": Step(1, _cast(np.float32), "{t}({0})", 0, f32),
    "f64": Step(1, _cast(np.float64), "{t}({0})", 0, f64),
    "log": Step(1, np.log, "math.log({0})"),
    "mul": Step(2, np.multiply, "{0} * {1}"),
    "neg": Step(1, np.negative, "-{0}"),
    "sqrt": Step(1, np.sqrt, "math.sqrt({0})"),
    "sub": Step(2, np.subtract, "{0} - {1}"),
    "where": Step(3, np.where, "{1} if {0} else {2}", 1),
    **{
        name: Step(2, meaning, f"{{0}} {sign} {{1}}", 0, i1)
        for name, (meaning, sign) in _COMPARISONS.items()
    },
    "f32_of": Step(1, _cast(np.float32), "{t}(1) if {0} else {t}(0)", 1, f32),
    "f64_of": Step(1, _cast(np.float64), "{t}(1) if {0} else {t}(0)", 1, f64),
}
"""All steps. `f32_of` and `f64_of` make numbers of truths."""


class StepFault(ValueError):
    """What is wrong with steps, in words."""


def parsed(steps: Sequence[str], operands: int) -> list[tuple[str, list[Value]]]:
    """Steps as names and values, where there are so many operands. Raises StepFault."""
    found: list[tuple[str, list[Value]]] = []
    for number, text in enumerate(steps):
        name, *values = text.split(" ")
        step = STEPS.get(name)
        if step is None:
            raise StepFault(f"a step '{name}' (steps are {', '.join(STEPS)})")
        if len(values) != step.operands:
            raise StepFault(f"'{text}' with {step.operands} values")
        found.append((name, [_value(v, operands, number) for v in values]))
    return found


def _value(text: str, operands: int, number: int) -> Value:
    if text == "x":
        return "x", 0
    letter, place = text[:1], text[1:]
    limit = {"a": operands, "s": number}.get(letter, 0)
    if not (place.isascii() and place.isdecimal() and int(place) < limit):
        raise StepFault(
            f"value '{text}' of step {number}: x, an operand or the result of a step before it"
        )
    return letter, int(place)


def result_type(
    steps: Sequence[str], stored: Attribute, operands: Sequence[Attribute]
) -> Attribute:
    """The type of what the last step gives. Raises StepFault for types that a step does not take."""
    types: dict[Value, Attribute] = {("x", 0): stored}
    types |= {("a", number): t for number, t in enumerate(operands)}
    last = stored
    for number, (name, values) in enumerate(parsed(steps, len(operands))):
        step = STEPS[name]
        have = [types[v] for v in values]
        rest = have[step.truths :]
        floats = all(t in (f32, f64) for t in rest) and len(set(rest)) < 2
        if any(t != i1 for t in have[: step.truths]) or not floats:
            raise StepFault(f"'{steps[number]}' on {', '.join(map(str, have))}")
        last = types["s", number] = step.result or rest[0]
    return last


def computed(steps: Sequence[str], stored: Array, operands: Sequence[Array]) -> Array:
    """What becomes of `stored`, `operands` being as long as it or numbers."""
    values: dict[Value, Array] = {("x", 0): stored}
    values |= {("a", number): a for number, a in enumerate(operands)}
    last = stored
    with np.errstate(all="ignore"):
        for number, (name, found) in enumerate(parsed(steps, len(operands))):
            last = values["s", number] = STEPS[name].meaning(*(values[v] for v in found))
    return last
