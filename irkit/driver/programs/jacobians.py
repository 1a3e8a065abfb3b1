"""All partial derivatives of an array by an array: a loop over columns or rows of the Jacobian."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType

from irkit.driver.programs.derived import Arguments, Derived, Lowered, Parts
from irkit.frontends.numpy.affine import Affine, LoopSymbol
from irkit.frontends.numpy.arrays import TracedArray, empty
from irkit.frontends.numpy.nested import Leaf, nested
from irkit.frontends.numpy.places import user_place
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.records import Buffer, For, View
from irkit.passes.graph.differentiation import Differentiation


class Jacobian(Derived):
    """All partial derivatives of one array by another."""

    def __init__(
        self, function: Callable[..., Any], what: str, argnum: Arguments, mode: str
    ) -> None:
        super().__init__(function, what)
        self.argnum, self.mode = argnum, mode

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(self.argnum, int | str):
            raise self.refused(f"argnums={self.argnum!r}: expected one argument, by number or name")
        (number,) = self.chosen(args, self.argnum)
        named = self.floats([args[number]], [number])
        if len(named) != 1:
            raise self.refused(f"argument {number} is {len(named)} arrays: expected one")
        parts = Parts(args, kwargs, [number])
        (x,) = named.values()
        found = nested(parts.call(self.function), [[x], parts.rest], list(named))
        if not isinstance(found.structure, Leaf):
            raise self.refused(f"it returns a {type(found.structure).__name__}: expected one array")
        lowered = Lowered(found, self.name, self.what)
        result = lowered.main.function_type.outputs.data[0]
        assert isinstance(result, TensorType)
        rows, columns = tuple(result.get_shape()), tuple(x.shape)
        forward = self.mode == "forward"
        if self.mode == "auto":
            forward = math.prod(columns) <= math.prod(rows)
        # In the loop's order first: that of what is given a change.
        given, made = (columns, rows) if forward else (rows, columns)
        ask = Differentiation(
            "forward" if forward else "reverse", (0,), (0,), value=False, allow_unused=True
        )
        whole = _products(lowered, ask, x.dtype, given, made)
        if not forward:
            return whole
        axes = [*range(len(given), len(given) + len(made)), *range(len(given))]
        return np.transpose(whole, axes)


def _products(
    lowered: Lowered,
    ask: Differentiation,
    dtype: np.dtype[Any],
    given: Sequence[int],
    made: Sequence[int],
) -> TracedArray:
    """Of each unit change of shape `given` what it makes, of shape `made`."""
    r, count, size = recorder(), math.prod(given), math.prod(made)
    whole = empty((*given, *made), dtype)
    if count == 0 or size == 0:
        return whole
    units = empty((count, *given), dtype).spot
    r.write(r.constant(np.eye(count, dtype=dtype).reshape(count, *given)), units.view)
    symbol = LoopSymbol(0, count - 1)
    outer, r.records = r.records, []
    try:
        unit = r.read(_row(units.buffer, symbol, given))
        (row,) = lowered.values(ask, [unit])
        r.write(row, _row(whole.spot.buffer, symbol, made))
    finally:
        inside, r.records = r.records, outer
    r.records.append(For(user_place(), symbol, 0, count, inside))
    symbol.fix(count - 1)
    return whole


def _row(buffer: Buffer, symbol: LoopSymbol, shape: Sequence[int]) -> View:
    """Row number `symbol` of rows of a shape."""
    size = math.prod(shape)
    strides = [s // 8 for s in np.empty(tuple(shape), np.float64).strides]
    return View(buffer, Affine.of(0, {symbol: size}), tuple(shape), tuple(strides))
