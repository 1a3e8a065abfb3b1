"""Indices of what is reshaped."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from irkit.dialects.tensor_ops.reshape import groups_of_shapes
from irkit.rkernels.binding.elements import ElementPrinter


@st.composite
def shapes(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two shapes of as many elements."""
    factors = draw(st.lists(st.sampled_from([1, 2, 3, 4]), max_size=5))

    def joined() -> list[int]:
        found: list[int] = []
        for factor in factors:
            if found and draw(st.booleans()):
                found[-1] *= factor
            else:
                found.append(factor)
        return found

    return joined(), joined()


@settings(max_examples=200, deadline=None)
@given(shapes(), st.data())
def test_an_index_of_what_is_reshaped(pair: tuple[list[int], list[int]], data: st.DataObject):
    shape, to = pair
    position = data.draw(st.integers(0, math.prod(shape) - 1))
    index = tuple(str(int(i)) for i in np.unravel_index(position, shape)) if shape else ()
    printer = ElementPrinter()
    found = printer.reshaped(index, shape, to)
    names: dict[str, int] = {}
    exec("\n".join(printer.lines), names)
    want = tuple(int(i) for i in np.unravel_index(position, to)) if to else ()
    assert tuple(eval(text, names) for text in found) == want


def test_runs_of_dimensions_that_are_alike():
    def runs(shape: list[int], to: list[int]) -> list[tuple[list[int], list[int]]]:
        return [(shape[a], to[b]) for a, b in groups_of_shapes(shape, to)]

    assert runs([8, 14, 1, 14, 1], [8, 14, 14]) == [([8], [8]), ([14, 1], [14]), ([14, 1], [14])]
    assert runs([6, 4, 5], [3, 8, 5]) == [([6, 4], [3, 8]), ([5], [5])]
    # What is not known is one run with all before it: here a batch of 8 times as many.
    assert runs([-1, 8, 4], [-1, 4]) == [([-1, 8], [-1]), ([4], [4])]
    assert runs([-1, 6], [-1, 2, 3]) == [([-1], [-1]), ([6], [2, 3])]
